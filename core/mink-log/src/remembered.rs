//! The producers of a bucket by id, and who of them was idle for longest: one in place, a short list of a few, two trees of many.
//!
//! Lives on: anywhere (pure).
//! Owns: the entries.
//! Invariants: I20: a bucket at rest has a producer or two, for which the smallest nodes of two trees would take two kilobytes. Two
//! with the same entries are equal, whatever their form.
use crate::producers::Entry;
use mink_types::{CommitTime, ProducerId};
use std::collections::{BTreeMap, BTreeSet};

/// Beyond so many entries they lie in trees.
const FEW_MAX: usize = 8;
/// At so few they leave them again: apart from the other bound, so that none flips at every change.
const FEW_AGAIN: usize = 4;

#[derive(Clone, Debug)]
pub(crate) struct Remembered(Form);

#[derive(Clone, Debug)]
enum Form {
    /// Here, in the bucket itself: a block of its own, made while batches come and go, would keep a page alone when they are gone.
    One([(ProducerId, Entry); 1]),
    /// None, or in the order of ids.
    Few(Vec<(ProducerId, Entry)>),
    Many(Box<Trees>),
}

#[derive(Clone, Debug, Default)]
struct Trees {
    by_id: BTreeMap<ProducerId, Entry>,
    /// The same producers by the commit time of their last batch.
    by_time: BTreeSet<(CommitTime, ProducerId)>,
}

impl Trees {
    fn insert(&mut self, producer: ProducerId, entry: Entry) {
        self.by_time.insert((entry.last_commit_time(), producer));
        if let Some(before) = self.by_id.insert(producer, entry)
            && before.last_commit_time() != entry.last_commit_time()
        {
            self.by_time.remove(&(before.last_commit_time(), producer));
        }
    }
}

impl Form {
    /// The form of a few, in the order of ids.
    fn of(few: Vec<(ProducerId, Entry)>) -> Form {
        match <[_; 1]>::try_from(few) {
            Ok(one) => Form::One(one),
            Err(few) => Form::Few(few),
        }
    }
}

impl Remembered {
    pub(crate) fn new() -> Remembered {
        Remembered(Form::Few(Vec::new()))
    }

    /// All of them, unless they are many.
    fn few(&self) -> &[(ProducerId, Entry)] {
        match &self.0 {
            Form::One(one) => one,
            Form::Few(few) => few,
            Form::Many(_) => &[],
        }
    }

    pub(crate) fn len(&self) -> usize {
        match &self.0 {
            Form::One(_) | Form::Few(_) => self.few().len(),
            Form::Many(trees) => trees.by_id.len(),
        }
    }

    pub(crate) fn get(&self, producer: ProducerId) -> Option<&Entry> {
        match &self.0 {
            Form::One(_) | Form::Few(_) => {
                let few = self.few();
                few.get(place(few, producer).ok()?).map(|(_, entry)| entry)
            }
            Form::Many(trees) => trees.by_id.get(&producer),
        }
    }

    /// Puts an entry in place, instead of the one that the producer had.
    pub(crate) fn put(&mut self, producer: ProducerId, entry: Entry) {
        let few: &mut [(ProducerId, Entry)] = match &mut self.0 {
            Form::One(one) => one,
            Form::Few(few) => few,
            Form::Many(trees) => return trees.insert(producer, entry),
        };
        match place(few, producer) {
            Ok(at) => {
                if let Some((_, there)) = few.get_mut(at) {
                    *there = entry;
                }
            }
            Err(at) => self.add(at, producer, entry),
        }
    }

    /// Puts a new one at `at` among the few.
    fn add(&mut self, at: usize, producer: ProducerId, entry: Entry) {
        let few = self.few();
        if few.len() >= FEW_MAX {
            let mut trees = Trees::default();
            for (producer, entry) in few.iter().copied().chain([(producer, entry)]) {
                trees.insert(producer, entry);
            }
            self.0 = Form::Many(Box::new(trees));
            return;
        }
        let mut grown = Vec::with_capacity(few.len() + 1);
        grown.extend_from_slice(few);
        grown.insert(at, (producer, entry));
        self.0 = Form::of(grown);
    }

    /// Who was idle for longest, and since when; the smaller id of two.
    pub(crate) fn oldest(&self) -> Option<(CommitTime, ProducerId)> {
        match &self.0 {
            Form::One(_) | Form::Few(_) => {
                self.few().iter().map(|(id, entry)| (entry.last_commit_time(), *id)).min()
            }
            Form::Many(trees) => trees.by_time.first().copied(),
        }
    }

    pub(crate) fn forget_oldest(&mut self) {
        let Some((last, producer)) = self.oldest() else { return };
        match &mut self.0 {
            Form::One(_) | Form::Few(_) => {
                let left = self.few().iter().filter(|(id, _)| *id != producer).copied().collect();
                self.0 = Form::of(left);
            }
            Form::Many(trees) => {
                trees.by_time.remove(&(last, producer));
                trees.by_id.remove(&producer);
                if trees.by_id.len() <= FEW_AGAIN {
                    self.0 = Form::of(std::mem::take(&mut trees.by_id).into_iter().collect());
                }
            }
        }
    }

    /// Those from `from` on, in the order of ids.
    pub(crate) fn iter_from(&self, from: ProducerId) -> impl Iterator<Item = (ProducerId, &Entry)> {
        let trees = match &self.0 {
            Form::One(_) | Form::Few(_) => None,
            Form::Many(trees) => Some(trees.by_id.range(from..)),
        };
        let few = self.few().iter().filter(move |(id, _)| *id >= from).map(|(id, entry)| (*id, entry));
        few.chain(trees.into_iter().flatten().map(|(id, entry)| (*id, entry)))
    }

    /// In the order of ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ProducerId, &Entry)> {
        let trees = match &self.0 {
            Form::One(_) | Form::Few(_) => None,
            Form::Many(trees) => Some(&trees.by_id),
        };
        let few = self.few().iter().map(|(id, entry)| (*id, entry));
        few.chain(trees.into_iter().flatten().map(|(id, entry)| (*id, entry)))
    }
}

fn place(few: &[(ProducerId, Entry)], producer: ProducerId) -> Result<usize, usize> {
    few.binary_search_by(|(id, _)| id.cmp(&producer))
}

impl PartialEq for Remembered {
    fn eq(&self, other: &Remembered) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for Remembered {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::producers::{Placed, Window};
    use mink_types::{Offset, ProducerEpoch, Sequence};
    use proptest::prelude::*;

    fn entry(time: i64) -> Entry {
        let mut window = Window::default();
        window.push(Placed {
            base_sequence: Sequence(0),
            count: 1,
            base_offset: Offset(0),
            commit_time: CommitTime(time),
        });
        Entry { epoch: ProducerEpoch(0), window }
    }

    proptest! {
        #[test]
        fn both_forms_are_the_same_map(
            steps in proptest::collection::vec((0_i64..20, 0_i64..6, any::<bool>()), 0..150),
        ) {
            let (mut remembered, mut model) = (Remembered::new(), BTreeMap::new());
            for (id, time, forget) in steps {
                if forget {
                    let oldest = model.iter().map(|(id, time)| (*time, *id)).min();
                    prop_assert_eq!(remembered.oldest(), oldest.map(|(t, id)| (CommitTime(t), ProducerId(id))));
                    remembered.forget_oldest();
                    oldest.map(|(_, id)| model.remove(&id));
                } else {
                    remembered.put(ProducerId(id), entry(time));
                    model.insert(id, time);
                }
                prop_assert_eq!(remembered.len(), model.len());
                let found: Vec<_> = remembered.iter().map(|(id, e)| (id.0, e.last_commit_time().0)).collect();
                let expected: Vec<_> = model.iter().map(|(id, time)| (*id, *time)).collect();
                prop_assert_eq!(found, expected);
                let known = remembered.get(ProducerId(id)).map(|e| e.last_commit_time().0);
                prop_assert_eq!(known, model.get(&id).copied());
            }
            let mut again = Remembered::new();
            for (id, time) in model {
                again.put(ProducerId(id), entry(time));
            }
            prop_assert_eq!(remembered, again);
        }
    }

    #[test]
    fn i20_one_producer_takes_no_more_than_its_entry() {
        let mut remembered = Remembered::new();
        remembered.put(ProducerId(1), entry(1));
        assert!(matches!(remembered.0, Form::One(_)));
        assert!(size_of::<(ProducerId, Entry)>() <= 144 && size_of::<Remembered>() <= 152);
    }
}
