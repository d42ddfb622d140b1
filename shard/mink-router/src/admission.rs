//! Who may connect to a listener: connections in all and of one address, and how fast new ones may come.
//!
//! Lives on: the service runtime; each listener has its own. It reads no clock: times are since a start that is the listener's.
//! Owns: what is open, and what is left of each rate.
//! Invariants: I20: no count passes its limit, and a connection that ends always gives its place back. Addresses that are remembered are
//! bounded; those beyond [`ADDRESSES_MAX`] share one place.     See: docs/security.md
use mink_types::Limits;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// So many seconds' worth of new connections may come at once: all clients of a node that was restarted.
const BURST: Duration = Duration::from_secs(4);

/// Addresses that are remembered one by one.
const ADDRESSES_MAX: usize = 65_536;

/// The limit that a connection met which is not let in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TurnedAway {
    #[error("too many connections are open, in all or of this address; close some, or see connections-max")]
    TooMany,
    #[error("new connections come too fast, in all or of this address; wait, or see connections-per-second")]
    TooFast,
}

/// What is bounded: connections that are open, and that come.
#[derive(Clone, Copy, Debug)]
struct Bound {
    open: u32,
    per_second: u32,
}

/// Open connections, and the rate of new ones as the time at which all of its burst is there again: each connection moves it on.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    open: u32,
    full_at: Duration,
}

impl Bound {
    /// What one connection takes of its rate.
    fn each(self) -> Duration {
        Duration::from_secs(1) / self.per_second.max(1)
    }

    /// When the burst is there again if one more comes.
    fn full_at(self, count: Count, now: Duration) -> Duration {
        count.full_at.max(now).saturating_add(self.each())
    }

    /// Whether one more may come, in number and in time.
    fn allows(self, count: Count, now: Duration) -> Result<(), TurnedAway> {
        if count.open >= self.open {
            return Err(TurnedAway::TooMany);
        }
        let is_in_time = self.full_at(count, now) <= now.saturating_add(BURST);
        if is_in_time { Ok(()) } else { Err(TurnedAway::TooFast) }
    }

    fn count(self, count: &mut Count, now: Duration) {
        count.open += 1;
        count.full_at = self.full_at(*count, now);
    }
}

#[derive(Debug, Default)]
struct Places {
    all: Count,
    addresses: BTreeMap<IpAddr, Count>,
}

impl Places {
    /// The address itself, or the one that stands for all that there is no room to remember.
    fn known(&mut self, address: IpAddr, now: Duration) -> IpAddr {
        if self.addresses.len() < ADDRESSES_MAX || self.addresses.contains_key(&address) {
            return address;
        }
        self.addresses.retain(|_, here| here.open > 0 || here.full_at > now);
        if self.addresses.len() < ADDRESSES_MAX { address } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) }
    }
}

/// The door of one listener; cheap to clone.
#[derive(Clone, Debug)]
pub struct Admission {
    places: Arc<Mutex<Places>>,
    all: Bound,
    address: Bound,
}

/// A place taken; given back when dropped.
#[derive(Debug)]
pub struct Admitted {
    places: Arc<Mutex<Places>>,
    address: IpAddr,
}

impl Admission {
    /// A door with the limits on connections.
    pub fn new(limits: &Limits) -> Admission {
        Admission {
            places: Arc::default(),
            all: Bound { open: limits.connections_max, per_second: limits.connections_per_second },
            address: Bound {
                open: limits.connections_per_address_max,
                per_second: limits.connections_per_address_per_second,
            },
        }
    }

    /// Takes a place for a connection from `address`, `now` after the listener's start.
    ///
    /// # Errors
    /// The limit that it met. Then nothing is taken.
    pub fn admit(&self, address: IpAddr, now: Duration) -> Result<Admitted, TurnedAway> {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        self.all.allows(places.all, now)?;
        // An IPv4 client on an IPv6 socket is the same client.
        let address = places.known(address.to_canonical(), now);
        let Places { all, addresses } = &mut *places;
        let here = addresses.entry(address).or_default();
        self.address.allows(*here, now)?;
        self.all.count(all, now);
        self.address.count(here, now);
        Ok(Admitted { places: Arc::clone(&self.places), address })
    }

    /// Whether there is no place left in all.
    pub fn is_full(&self) -> bool {
        self.places.lock().unwrap_or_else(PoisonError::into_inner).all.open >= self.all.open
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.all.open = places.all.open.saturating_sub(1);
        // Its rate is remembered until there is no room for it.
        if let Some(here) = places.addresses.get_mut(&self.address) {
            here.open = here.open.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Duration = Duration::ZERO;

    fn address(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn i20_both_limits_hold_and_places_come_back() {
        let limits = Limits { connections_max: 3, connections_per_address_max: 2, ..Limits::default() };
        let door = Admission::new(&limits);
        let admit = |text: &str| door.admit(address(text), START);
        let first = admit("10.0.0.1").expect("room");
        let _second = admit("::ffff:10.0.0.1").expect("room");
        assert_eq!(admit("10.0.0.1").expect_err("two of one address"), TurnedAway::TooMany);
        assert!(!door.is_full());
        let _third = admit("10.0.0.2").expect("room");
        assert!(door.is_full());
        assert_eq!(admit("10.0.0.3").expect_err("three in all"), TurnedAway::TooMany);
        drop(first);
        assert!(!door.is_full());
        admit("10.0.0.1").expect("a place came back");
    }

    #[test]
    fn i20_new_connections_come_no_faster_than_both_rates_allow() {
        let limits =
            Limits { connections_per_second: 3, connections_per_address_per_second: 2, ..Limits::default() };
        let door = Admission::new(&limits);
        let come = |text: &str, seconds| {
            let now = Duration::from_secs(seconds);
            (0..100).filter(|_| door.admit(address(text), now).is_ok()).count()
        };
        assert_eq!(come("10.0.0.1", 0), 8, "four seconds' worth of one address");
        assert_eq!(come("10.0.0.2", 0), 4, "what is left of four seconds' worth of all");
        assert_eq!(come("10.0.0.3", 0), 0);
        assert_eq!(door.admit(address("10.0.0.1"), START).expect_err("too fast"), TurnedAway::TooFast);
        assert_eq!((come("10.0.0.1", 1), come("10.0.0.3", 1)), (2, 1));
    }

    #[test]
    fn i20_addresses_beyond_what_is_remembered_share_one_rate() {
        let limits = Limits {
            connections_max: u32::MAX,
            connections_per_second: u32::MAX,
            connections_per_address_per_second: 1,
            ..Limits::default()
        };
        let door = Admission::new(&limits);
        for n in 0..u32::try_from(ADDRESSES_MAX).expect("fits") {
            drop(door.admit(IpAddr::V4(n.into()), START).expect("the first of its address"));
        }
        let strangers = (0..100_u32).filter(|n| door.admit(IpAddr::V4((1 << 30 | n).into()), START).is_ok());
        assert_eq!(strangers.count(), 4);
        assert!(door.places.lock().expect("sound").addresses.len() <= ADDRESSES_MAX + 1);
        // Who was away long enough is forgotten.
        door.admit(IpAddr::V4((1 << 31).into()), Duration::from_secs(1)).expect("room again");
    }
}
