//! Who may connect: connections in all and per address, and how fast new ones may come.
//!
//! Lives on: the service runtime.
//! Owns: the number of open connections per address, and what each has left of its rate.
//! Invariants: I20: no count passes its limit; a connection that ends always gives its place back. What is remembered of addresses is
//! bounded too: beyond [`ADDRESSES_MAX`] those that are not known share one rate.
use crate::counters::Closed;
use mink_types::Limits;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::time::Instant;

/// So many seconds' worth of new connections may come at once: all clients of a node that was restarted.
const BURST_SECONDS: f64 = 4.0;

/// Addresses remembered one by one.
const ADDRESSES_MAX: usize = 65_536;

/// What is left of a rate, in connections.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl Bucket {
    fn full(per_second: u32, now: Instant) -> Bucket {
        Bucket { left: f64::from(per_second) * BURST_SECONDS, at: now }
    }

    fn refill(&mut self, per_second: u32, now: Instant) {
        let come = now.saturating_duration_since(self.at).as_secs_f64() * f64::from(per_second);
        self.left = (self.left + come).min(f64::from(per_second) * BURST_SECONDS);
        self.at = now;
    }

    fn is_full(mut self, per_second: u32, now: Instant) -> bool {
        self.refill(per_second, now);
        self.left + 1.0 > f64::from(per_second) * BURST_SECONDS
    }
}

#[derive(Debug)]
struct Address {
    open: u32,
    rate: Bucket,
}

#[derive(Debug)]
struct Places {
    total: u32,
    rate: Bucket,
    addresses: BTreeMap<IpAddr, Address>,
}

/// The door.
#[derive(Clone, Debug)]
pub(crate) struct Admission {
    places: Arc<Mutex<Places>>,
    limits: Bounds,
}

#[derive(Clone, Copy, Debug)]
struct Bounds {
    total: u32,
    per_address: u32,
    per_second: u32,
    per_address_per_second: u32,
}

/// A place taken; given back when dropped.
#[derive(Debug)]
pub(crate) struct Admitted {
    places: Arc<Mutex<Places>>,
    address: IpAddr,
}

impl Admission {
    pub(crate) fn new(limits: &Limits) -> Admission {
        let limits = Bounds {
            total: limits.connections_max,
            per_address: limits.connections_per_address_max,
            per_second: limits.connections_per_second.max(1),
            per_address_per_second: limits.connections_per_address_per_second.max(1),
        };
        let rate = Bucket::full(limits.per_second, Instant::now());
        let places = Places { total: 0, rate, addresses: BTreeMap::new() };
        Admission { places: Arc::new(Mutex::new(places)), limits }
    }

    /// Takes a place for a connection from `address`; else the limit that it met.
    pub(crate) fn admit(&self, address: IpAddr, now: Instant) -> Result<Admitted, Closed> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let places = &mut *places;
        // An IPv4 client on an IPv6 socket is the same client.
        let address = places.known(address.to_canonical(), &self.limits, now);
        let limits = &self.limits;
        let here = places
            .addresses
            .entry(address)
            .or_insert_with(|| Address { open: 0, rate: Bucket::full(limits.per_address_per_second, now) });
        if places.total >= limits.total || here.open >= limits.per_address {
            return Err(Closed::ConnectionLimit);
        }
        places.rate.refill(limits.per_second, now);
        here.rate.refill(limits.per_address_per_second, now);
        if places.rate.left < 1.0 || here.rate.left < 1.0 {
            return Err(Closed::ConnectionRate);
        }
        places.rate.left -= 1.0;
        here.rate.left -= 1.0;
        places.total += 1;
        here.open += 1;
        Ok(Admitted { places: Arc::clone(&self.places), address })
    }

    /// Whether there is no place left in all.
    pub(crate) fn is_full(&self) -> bool {
        self.places.lock().unwrap_or_else(PoisonError::into_inner).total >= self.limits.total
    }
}

impl Places {
    /// The address itself, or the one that stands for all that there is no room to remember.
    fn known(&mut self, address: IpAddr, limits: &Bounds, now: Instant) -> IpAddr {
        if self.addresses.len() < ADDRESSES_MAX || self.addresses.contains_key(&address) {
            return address;
        }
        self.addresses
            .retain(|_, here| here.open > 0 || !here.rate.is_full(limits.per_address_per_second, now));
        if self.addresses.len() < ADDRESSES_MAX { address } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) }
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.total = places.total.saturating_sub(1);
        // Its rate is remembered until there is no room for it.
        if let Some(here) = places.addresses.get_mut(&self.address) {
            here.open = here.open.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn i20_both_limits_hold_and_places_come_back() {
        let limits = Limits { connections_max: 3, connections_per_address_max: 2, ..Limits::default() };
        let (door, now) = (Admission::new(&limits), Instant::now());
        let admit = |text: &str| door.admit(address(text), now);
        let first = admit("10.0.0.1").expect("room");
        let _second = admit("::ffff:10.0.0.1").expect("room");
        assert_eq!(admit("10.0.0.1").expect_err("per address"), Closed::ConnectionLimit);
        assert!(!door.is_full());
        let _third = admit("10.0.0.2").expect("room");
        assert!(door.is_full());
        assert_eq!(admit("10.0.0.3").expect_err("in all"), Closed::ConnectionLimit);
        drop(first);
        admit("10.0.0.1").expect("a place came back");
    }

    #[test]
    fn i20_new_connections_come_no_faster_than_both_rates_allow() {
        let limits =
            Limits { connections_per_second: 3, connections_per_address_per_second: 2, ..Limits::default() };
        let (door, now) = (Admission::new(&limits), Instant::now());
        let come =
            |text: &str, at: Instant| (0..100).filter(|_| door.admit(address(text), at).is_ok()).count();
        assert_eq!(come("10.0.0.1", now), 8, "four seconds' worth of one address");
        assert_eq!(come("10.0.0.2", now), 4, "what is left of four seconds' worth of all");
        assert_eq!(come("10.0.0.3", now), 0);
        let later = now + Duration::from_secs(1);
        assert_eq!(door.admit(address("10.0.0.1"), now).expect_err("too fast"), Closed::ConnectionRate);
        assert_eq!(come("10.0.0.1", later), 2);
        assert_eq!(come("10.0.0.3", later), 1);
    }

    #[test]
    fn i20_addresses_beyond_what_is_remembered_share_one_rate() {
        let limits = Limits {
            connections_max: u32::MAX,
            connections_per_second: u32::MAX,
            connections_per_address_per_second: 1,
            ..Limits::default()
        };
        let (door, now) = (Admission::new(&limits), Instant::now());
        for n in 0..u32::try_from(ADDRESSES_MAX).expect("fits") {
            drop(door.admit(IpAddr::V4(n.into()), now).expect("the first of its address"));
        }
        let strangers = (0..100_u32).filter(|n| door.admit(IpAddr::V4((1 << 30 | n).into()), now).is_ok());
        assert_eq!(strangers.count(), 4);
        assert!(door.places.lock().expect("sound").addresses.len() <= ADDRESSES_MAX + 1);
        // Who was away long enough is forgotten.
        let later = now + Duration::from_secs(1);
        door.admit(IpAddr::V4((1 << 31).into()), later).expect("room again");
    }
}
