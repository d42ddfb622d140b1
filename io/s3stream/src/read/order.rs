//! Who leaves a cache first: what a reader has passed, then the new, then what was used again.
//!
//! Lives on: anywhere (pure).
//! Owns: the order and the sizes of a cache's entries; the entries themselves belong to the cache.
//! Invariants: I20: sizes are summed exactly. A scan that uses everything once moves through `Fresh` and never displaces
//! `Hot` entries, which keep at most half of the room.
use std::collections::BTreeMap;

/// Where an entry stands. Those of a class leave oldest first, the classes in this order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    /// Read to its end by a reader that will not come back.
    Passed,
    /// Came in and was not used again since.
    Fresh,
    /// Was used again.
    Hot,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    class: Class,
    turn: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Queue<K> {
    keys: BTreeMap<u64, K>,
    bytes: usize,
}

/// The order in which the entries of a cache leave it.
#[derive(Debug)]
pub(super) struct Order<K> {
    places: BTreeMap<K, Place>,
    passed: Queue<K>,
    fresh: Queue<K>,
    hot: Queue<K>,
    hot_max: usize,
    turn: u64,
}

impl<K: Ord + Copy> Order<K> {
    /// The order of a cache of `bytes_max` bytes.
    pub(super) fn new(bytes_max: usize) -> Order<K> {
        let queue = || Queue { keys: BTreeMap::new(), bytes: 0 };
        let (passed, fresh, hot) = (queue(), queue(), queue());
        Order { places: BTreeMap::new(), passed, fresh, hot, hot_max: bytes_max / 2, turn: 0 }
    }

    /// Bytes of all entries.
    pub(super) fn bytes(&self) -> usize {
        self.passed.bytes + self.fresh.bytes + self.hot.bytes
    }

    /// A new entry. One under the same key must have been removed before.
    pub(super) fn insert(&mut self, key: K, bytes: usize) {
        debug_assert!(!self.places.contains_key(&key), "an entry comes in once");
        self.place(key, Class::Fresh, bytes);
    }

    /// Takes an entry out; whether it was there.
    pub(super) fn remove(&mut self, key: &K) -> bool {
        self.take(key).is_some()
    }

    /// The entry has been used again.
    pub(super) fn used_again(&mut self, key: &K) {
        let Some(place) = self.take(key) else { return };
        self.place(*key, Class::Hot, place.bytes);
        while self.hot.bytes > self.hot_max {
            let Some(oldest) = self.hot.keys.first_key_value().map(|(_, key)| *key) else {
                return;
            };
            let Some(place) = self.take(&oldest) else { return };
            self.place(oldest, Class::Fresh, place.bytes);
        }
    }

    /// Nobody is expected to want the entry again; one that was used again in its time keeps its place.
    pub(super) fn passed(&mut self, key: &K) {
        self.shift(key, Class::Fresh, Class::Passed);
    }

    /// The entry is wanted after all.
    pub(super) fn wanted(&mut self, key: &K) {
        self.shift(key, Class::Passed, Class::Fresh);
    }

    /// The entry that leaves next.
    pub(super) fn next_out(&self) -> Option<K> {
        let queues = [&self.passed, &self.fresh, &self.hot];
        queues.iter().find_map(|queue| queue.keys.first_key_value()).map(|(_, key)| *key)
    }

    #[cfg(test)]
    pub(super) fn class(&self, key: &K) -> Option<Class> {
        self.places.get(key).map(|place| place.class)
    }

    fn shift(&mut self, key: &K, from: Class, to: Class) {
        if self.places.get(key).is_some_and(|place| place.class == from)
            && let Some(place) = self.take(key)
        {
            self.place(*key, to, place.bytes);
        }
    }

    fn place(&mut self, key: K, class: Class, bytes: usize) {
        self.turn += 1;
        let turn = self.turn;
        self.places.insert(key, Place { class, turn, bytes });
        let queue = self.queue(class);
        queue.keys.insert(turn, key);
        queue.bytes += bytes;
    }

    fn take(&mut self, key: &K) -> Option<Place> {
        let place = self.places.remove(key)?;
        let queue = self.queue(place.class);
        queue.keys.remove(&place.turn);
        queue.bytes -= place.bytes;
        Some(place)
    }

    fn queue(&mut self, class: Class) -> &mut Queue<K> {
        match class {
            Class::Passed => &mut self.passed,
            Class::Fresh => &mut self.fresh,
            Class::Hot => &mut self.hot,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_was_passed_leaves_first_and_a_scan_displaces_nothing_hot() {
        let mut order = Order::new(10);
        for key in 0..4 {
            order.insert(key, 2);
        }
        order.used_again(&0);
        order.passed(&2);
        order.passed(&0);
        assert_eq!(order.class(&0), Some(Class::Hot), "it was used again in its time");
        let mut out = Vec::new();
        for scanned in 100..104 {
            let leaves = order.next_out().unwrap();
            out.push(leaves);
            order.remove(&leaves);
            order.insert(scanned, 2);
        }
        assert_eq!(out, [2, 1, 3, 100]);
        order.passed(&103);
        order.wanted(&103);
        assert_eq!(order.next_out(), Some(101));
    }

    #[test]
    fn hot_entries_keep_half_of_the_room() {
        let mut order = Order::new(10);
        for key in 0..5 {
            order.insert(key, 2);
            order.used_again(&key);
        }
        let hot = (0..5).filter(|key| order.class(key) == Some(Class::Hot));
        assert_eq!(hot.collect::<Vec<_>>(), [3, 4]);
    }

    proptest! {
        #[test]
        fn i20_sizes_are_summed_exactly(steps in prop::collection::vec((0u8..5, 0u8..8, 1usize..9), 1..200)) {
            let mut order = Order::new(16);
            let mut model = BTreeMap::new();
            for (what, key, bytes) in steps {
                match what {
                    0 => {
                        order.remove(&key);
                        order.insert(key, bytes);
                        model.insert(key, bytes);
                    }
                    1 => prop_assert_eq!(order.remove(&key), model.remove(&key).is_some()),
                    2 => order.used_again(&key),
                    3 => order.passed(&key),
                    _ => order.wanted(&key),
                }
                prop_assert_eq!(order.bytes(), model.values().sum::<usize>());
                prop_assert!(order.hot.bytes <= 8);
                prop_assert_eq!(order.next_out().is_some(), !model.is_empty());
            }
        }
    }
}
