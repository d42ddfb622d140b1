//! Who may connect: connections in all and of one address, and how fast new ones may come. The limits are those of Kafka's listener, by
//! the same keys; each listener counts its own.
//!
//! Lives on: the service runtime.
//! Owns: what is open, and what is left of each rate.
//! Invariants: I20: no count passes its limit, and a connection that ends gives its place back. Addresses that are remembered are bounded;
//! those beyond share one entry.
use crate::counters::Closed;
use mink_types::Limits;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// So many seconds' worth of connections may come at once.
const BURST_SECONDS: u32 = 4;

/// Addresses that are remembered one by one.
const ADDRESSES_MAX: usize = 16_384;

/// What is bounded: connections that are open, and that come.
#[derive(Clone, Copy, Debug)]
struct Bound {
    open: u32,
    per_second: u32,
}

/// Open connections, and the rate of new ones as the time at which all of its burst is there again: each connection moves it on.
#[derive(Clone, Copy, Debug)]
struct Count {
    open: u32,
    full_at: Instant,
}

#[derive(Debug)]
struct Places {
    all: Count,
    addresses: BTreeMap<IpAddr, Count>,
}

/// The door; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Admission {
    places: Arc<Mutex<Places>>,
    all: Bound,
    address: Bound,
}

/// A place; given back when dropped.
#[derive(Debug)]
pub(crate) struct Admitted {
    places: Arc<Mutex<Places>>,
    address: IpAddr,
}

impl Bound {
    fn each(self) -> Duration {
        Duration::from_secs(1) / self.per_second.max(1)
    }

    /// Whether one more may come, in number and in time.
    fn allows(self, count: Count, now: Instant) -> Result<(), Closed> {
        if count.open >= self.open {
            return Err(Closed::ConnectionLimit);
        }
        let after = count.full_at.max(now) + self.each();
        if after > now + Duration::from_secs(1) * BURST_SECONDS {
            Err(Closed::ConnectionRate)
        } else {
            Ok(())
        }
    }

    fn count(self, count: &mut Count, now: Instant) {
        count.open += 1;
        count.full_at = count.full_at.max(now) + self.each();
    }
}

impl Admission {
    pub(crate) fn new(limits: &Limits) -> Admission {
        let all = Count { open: 0, full_at: Instant::now() };
        Admission {
            places: Arc::new(Mutex::new(Places { all, addresses: BTreeMap::new() })),
            all: Bound { open: limits.connections_max, per_second: limits.connections_per_second },
            address: Bound {
                open: limits.connections_per_address_max,
                per_second: limits.connections_per_address_per_second,
            },
        }
    }

    /// Takes a place for a connection from `address`; else says which limit it met.
    pub(crate) fn admit(&self, address: IpAddr, now: Instant) -> Result<Admitted, Closed> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let Places { all, addresses } = &mut *places;
        self.all.allows(*all, now)?;
        // An IPv4 client on an IPv6 socket is the same client.
        let mut address = address.to_canonical();
        if addresses.len() >= ADDRESSES_MAX && !addresses.contains_key(&address) {
            addresses.retain(|_, count| count.open > 0 || count.full_at > now);
            if addresses.len() >= ADDRESSES_MAX {
                address = IpAddr::V6(Ipv6Addr::UNSPECIFIED);
            }
        }
        let here = addresses.entry(address).or_insert(Count { open: 0, full_at: now });
        self.address.allows(*here, now)?;
        self.all.count(all, now);
        self.address.count(here, now);
        Ok(Admitted { places: Arc::clone(&self.places), address })
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.all.open = places.all.open.saturating_sub(1);
        if let Some(here) = places.addresses.get_mut(&self.address) {
            here.open = here.open.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    /// I20
    #[test]
    fn i20_no_more_are_open_than_may_be_and_places_come_back() {
        let limits = Limits { connections_max: 3, connections_per_address_max: 2, ..Limits::default() };
        let (door, now) = (Admission::new(&limits), Instant::now());
        let admit = |text: &str| door.admit(address(text), now);
        let first = admit("10.0.0.1").expect("room");
        let _second = admit("::ffff:10.0.0.1").expect("room");
        assert_eq!(admit("10.0.0.1").expect_err("two of one address"), Closed::ConnectionLimit);
        let _third = admit("10.0.0.2").expect("room");
        assert_eq!(admit("10.0.0.3").expect_err("three in all"), Closed::ConnectionLimit);
        drop(first);
        admit("10.0.0.1").expect("a place came back");
    }

    /// I20
    #[test]
    fn i20_no_more_come_in_a_time_than_may() {
        let limits =
            Limits { connections_per_second: 3, connections_per_address_per_second: 2, ..Limits::default() };
        let (door, begun) = (Admission::new(&limits), Instant::now());
        let come = |text: &str, seconds| {
            let now = begun + Duration::from_secs(seconds);
            (0..100).filter(|_| door.admit(address(text), now).is_ok()).count()
        };
        assert_eq!(come("10.0.0.1", 0), 8, "four seconds' worth of one address");
        assert_eq!(come("10.0.0.2", 0), 4, "what is left of four seconds' worth of all");
        assert_eq!(come("10.0.0.3", 0), 0);
        assert_eq!(door.admit(address("10.0.0.3"), begun).expect_err("too fast"), Closed::ConnectionRate);
        assert_eq!((come("10.0.0.1", 1), come("10.0.0.3", 1)), (2, 1));
    }

    /// I20
    #[test]
    fn i20_addresses_that_are_remembered_are_bounded() {
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
        assert_eq!(strangers.count(), 4, "they share one rate");
        assert!(door.places.lock().expect("sound").addresses.len() <= ADDRESSES_MAX + 1);
        let later = now + Duration::from_secs(1);
        door.admit(IpAddr::V4((1 << 31).into()), later).expect("the others are forgotten");
    }
}
