//! Who may connect: connections in all, and per address.
//!
//! Lives on: the service runtime.
//! Owns: the number of open connections per address.
//! Invariants: I20: neither count passes its limit; a connection that ends always gives its place back.
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug, Default)]
struct Places {
    total: u32,
    per_address: BTreeMap<IpAddr, u32>,
}

/// The door.
#[derive(Clone, Debug)]
pub(crate) struct Admission {
    places: Arc<Mutex<Places>>,
    total_max: u32,
    per_address_max: u32,
}

/// A place taken; given back when dropped.
#[derive(Debug)]
pub(crate) struct Admitted {
    places: Arc<Mutex<Places>>,
    address: IpAddr,
}

impl Admission {
    pub(crate) fn new(total_max: u32, per_address_max: u32) -> Admission {
        Admission { places: Arc::default(), total_max, per_address_max }
    }

    /// Takes a place for a connection from `address`, or none if a limit is reached.
    pub(crate) fn admit(&self, address: IpAddr) -> Option<Admitted> {
        // An IPv4 client on an IPv6 socket is the same client.
        let address = address.to_canonical();
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        let here = places.per_address.get(&address).copied().unwrap_or(0);
        if places.total >= self.total_max || here >= self.per_address_max {
            return None;
        }
        places.total += 1;
        places.per_address.insert(address, here + 1);
        Some(Admitted { places: Arc::clone(&self.places), address })
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        places.total = places.total.saturating_sub(1);
        match places.per_address.get_mut(&self.address) {
            Some(here) if *here > 1 => *here -= 1,
            _ => {
                places.per_address.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i20_both_limits_hold_and_places_come_back() {
        let door = Admission::new(3, 2);
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        let first = door.admit(address("10.0.0.1")).expect("room");
        let _second = door.admit(address("::ffff:10.0.0.1")).expect("room");
        assert!(door.admit(address("10.0.0.1")).is_none(), "per address");
        let _third = door.admit(address("10.0.0.2")).expect("room");
        assert!(door.admit(address("10.0.0.3")).is_none(), "in all");
        drop(first);
        assert!(door.admit(address("10.0.0.1")).is_some());
    }
}
