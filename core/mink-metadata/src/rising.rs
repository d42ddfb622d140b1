//! A shared tree whose keys mostly rise, without the free places that such an order leaves in it.
//!
//! Lives on: anywhere (pure). A clone is cheap: the tree is shared.
//! Invariants: I20. A full leaf is split into two halves, and keys that only rise never come to the left one: ids are given in order, so
//! every leaf but the last stayed half empty, which was a tenth of what a topic takes.
use std::fmt;
use std::ops::Deref;

use imbl::OrdMap;

/// So many keys that rose are put in their places anew, at twice the work of adding them.
const RUN: usize = 256;

/// An [`OrdMap`], which it gives to read.
#[derive(Clone)]
pub(crate) struct Rising<K, V> {
    tree: OrdMap<K, V>,
    /// Keys that rose since the last run.
    rose: usize,
}

impl<K, V> Default for Rising<K, V> {
    fn default() -> Rising<K, V> {
        Rising { tree: OrdMap::default(), rose: 0 }
    }
}

impl<K: Ord + fmt::Debug, V: fmt::Debug> fmt::Debug for Rising<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tree.fmt(f)
    }
}

impl<K, V> Deref for Rising<K, V> {
    type Target = OrdMap<K, V>;

    fn deref(&self) -> &OrdMap<K, V> {
        &self.tree
    }
}

impl<K: Ord + Clone, V: Clone> Rising<K, V> {
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let rises = self.tree.get_max().is_some_and(|(last, _)| *last < key);
        let before = self.tree.insert(key, value);
        self.rose += usize::from(rises);
        if self.rose >= RUN {
            self.rose = 0;
            self.fill();
        }
        before
    }

    pub(crate) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.tree.get_mut(key)
    }

    pub(crate) fn remove(&mut self, key: &K) -> Option<V> {
        self.tree.remove(key)
    }

    /// Takes the last run out and puts every other entry back, which leaves the leaves half empty, and then those in between, which
    /// fills them.
    fn fill(&mut self) {
        let last = self.tree.iter().rev().take(RUN);
        let mut run: Vec<(K, V)> = last.map(|(key, value)| (key.clone(), value.clone())).collect();
        run.reverse();
        for (key, _) in &run {
            self.tree.remove(key);
        }
        let (first, second): (Vec<_>, Vec<_>) = run.into_iter().enumerate().partition(|(at, _)| at % 2 == 0);
        for (_, (key, value)) in first.into_iter().chain(second) {
            self.tree.insert(key, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_holds_what_a_map_holds(steps in proptest::collection::vec((0_u32..40, any::<bool>()), 0..60)) {
            let (mut rising, mut model, mut next) = (Rising::default(), BTreeMap::new(), 0_u32);
            for (at, remove) in steps {
                if remove {
                    let key = at * next / 40;
                    prop_assert_eq!(rising.remove(&key), model.remove(&key));
                    prop_assert_eq!(rising.insert(key / 2, at), model.insert(key / 2, at));
                } else {
                    for key in next..next + at {
                        prop_assert_eq!(rising.insert(key, at), model.insert(key, at));
                    }
                    next += at;
                }
                let shared = rising.clone();
                if let Some(value) = rising.get_mut(&at) {
                    *value += 1;
                    prop_assert_eq!(shared.get(&at), model.get(&at));
                }
                model.entry(at).and_modify(|value| *value += 1);
                prop_assert!(rising.iter().eq(model.iter()) && rising.len() == model.len());
            }
        }
    }
}
