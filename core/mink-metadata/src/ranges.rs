//! A bucket's committed ranges, by first offset: as many bytes as there are ranges while they are few, a shared tree when many.
//!
//! Lives on: anywhere (pure). A clone is cheap: both forms are shared.
//! Invariants: I2's order: starts rise. Two with the same ranges are equal, whatever their form. I20: a bucket at rest has few ranges
//! (compaction joins them), and a tree's smallest node alone would take a kilobyte.
use std::fmt;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use imbl::OrdMap;
use imbl::ordmap::RangedIter;
use imbl::shared_ptr::DefaultSharedPtr;
use mink_types::Offset;

use crate::state::ObjectRange;

/// Beyond so many ranges they lie in a tree, so that a change never copies more.
const FEW_MAX: usize = 8;
/// At so few they leave it again: apart from the other bound, so that none flips at every change.
const FEW_AGAIN: usize = 4;

type Few = Arc<[(Offset, ObjectRange)]>;

/// Ranges by their first offset.
#[derive(Clone)]
pub struct Ranges(Form);

#[derive(Clone)]
enum Form {
    Few(Few),
    Many(OrdMap<Offset, ObjectRange>),
}

impl Ranges {
    /// None.
    pub fn new() -> Ranges {
        Ranges(Form::Few(Few::default()))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match &self.0 {
            Form::Few(few) => few.len(),
            Form::Many(many) => many.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The range that begins at `start`.
    pub fn get(&self, start: &Offset) -> Option<&ObjectRange> {
        match &self.0 {
            Form::Few(few) => few.get(place(few, *start).ok()?).map(|(_, range)| range),
            Form::Many(many) => many.get(start),
        }
    }

    /// The first one.
    pub fn get_min(&self) -> Option<(&Offset, &ObjectRange)> {
        self.iter().next()
    }

    /// The last one.
    pub fn get_max(&self) -> Option<(&Offset, &ObjectRange)> {
        self.iter().next_back()
    }

    /// All, in order.
    pub fn iter(&self) -> Iter<'_> {
        self.range(..)
    }

    /// All without their starts, in order.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &ObjectRange> {
        self.iter().map(|(_, range)| range)
    }

    /// Those that begin within `bounds`, in order.
    pub fn range(&self, bounds: impl RangeBounds<Offset>) -> Iter<'_> {
        match &self.0 {
            Form::Few(few) => Iter(Run::Few(within(few, &bounds).iter())),
            Form::Many(many) => Iter(Run::Many(many.range(bounds))),
        }
    }

    /// Adds a range; one that began there goes.
    pub fn insert(&mut self, start: Offset, range: ObjectRange) {
        match &mut self.0 {
            Form::Few(few) => {
                let (below, above) = match place(few, start) {
                    Ok(at) => (few.get(..at), few.get(at + 1..)),
                    Err(at) => (few.get(..at), few.get(at..)),
                };
                let (below, above) = (below.unwrap_or_default(), above.unwrap_or_default());
                let all = below.iter().copied().chain([(start, range)]).chain(above.iter().copied());
                self.0 = if below.len() + above.len() < FEW_MAX {
                    Form::Few(all.collect())
                } else {
                    Form::Many(all.collect())
                };
            }
            Form::Many(many) => drop(many.insert(start, range)),
        }
    }

    /// Takes the range that begins at `start` out.
    pub fn remove(&mut self, start: &Offset) -> Option<ObjectRange> {
        match &mut self.0 {
            Form::Few(few) => {
                let (_, removed) = *few.get(place(few, *start).ok()?)?;
                *few = few.iter().filter(|(other, _)| other != start).copied().collect();
                Some(removed)
            }
            Form::Many(many) => {
                let removed = many.remove(start);
                if many.len() <= FEW_AGAIN {
                    self.0 = Form::Few(many.iter().map(|(start, range)| (*start, *range)).collect());
                }
                removed
            }
        }
    }
}

fn place(few: &[(Offset, ObjectRange)], start: Offset) -> Result<usize, usize> {
    few.binary_search_by(|(other, _)| other.cmp(&start))
}

/// The ranges that begin within `bounds`; none if those are upside down.
fn within<'a>(
    few: &'a [(Offset, ObjectRange)],
    bounds: &impl RangeBounds<Offset>,
) -> &'a [(Offset, ObjectRange)] {
    let from = match bounds.start_bound() {
        Bound::Included(start) => few.partition_point(|(other, _)| other < start),
        Bound::Excluded(start) => few.partition_point(|(other, _)| other <= start),
        Bound::Unbounded => 0,
    };
    let until = match bounds.end_bound() {
        Bound::Included(end) => few.partition_point(|(other, _)| other <= end),
        Bound::Excluded(end) => few.partition_point(|(other, _)| other < end),
        Bound::Unbounded => few.len(),
    };
    few.get(from..until).unwrap_or_default()
}

impl Default for Ranges {
    fn default() -> Ranges {
        Ranges::new()
    }
}

impl PartialEq for Ranges {
    fn eq(&self, other: &Ranges) -> bool {
        let shared = match (&self.0, &other.0) {
            (Form::Few(one), Form::Few(other)) => Arc::ptr_eq(one, other),
            (Form::Many(one), Form::Many(other)) => one.ptr_eq(other),
            _ => false,
        };
        shared || (self.len() == other.len() && self.iter().eq(other.iter()))
    }
}

impl Eq for Ranges {}

impl fmt::Debug for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl FromIterator<(Offset, ObjectRange)> for Ranges {
    fn from_iter<I: IntoIterator<Item = (Offset, ObjectRange)>>(ranges: I) -> Ranges {
        let all: OrdMap<Offset, ObjectRange> = ranges.into_iter().collect();
        if all.len() > FEW_MAX {
            return Ranges(Form::Many(all));
        }
        Ranges(Form::Few(all.iter().map(|(start, range)| (*start, *range)).collect()))
    }
}

impl<'a> IntoIterator for &'a Ranges {
    type Item = (&'a Offset, &'a ObjectRange);
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// Ranges in order, with their starts.
#[derive(Debug)]
pub struct Iter<'a>(Run<'a>);

#[derive(Debug)]
enum Run<'a> {
    Few(std::slice::Iter<'a, (Offset, ObjectRange)>),
    Many(RangedIter<'a, Offset, ObjectRange, DefaultSharedPtr>),
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a Offset, &'a ObjectRange);

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Run::Few(few) => few.next().map(|(start, range)| (start, range)),
            Run::Many(many) => many.next(),
        }
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Run::Few(few) => few.next_back().map(|(start, range)| (start, range)),
            Run::Many(many) => many.next_back(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mink_types::{CommitTime, Incarnation, NodeId, ObjectId, Timestamp, WalChain};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn range(counter: u64) -> ObjectRange {
        let chain = WalChain { node: NodeId(1), incarnation: Incarnation(1), tag: 1 };
        ObjectRange {
            object: ObjectId::Stream { chain, counter },
            end: Offset(counter),
            max_timestamp: Timestamp(0),
            last_commit_time: CommitTime(0),
            bytes: 1,
        }
    }

    proptest! {
        #[test]
        fn both_forms_are_the_same_map(
            steps in proptest::collection::vec((0_u64..24, any::<bool>(), 0_u64..9), 0..120),
            bounds in (0_u64..26, 0_u64..26),
        ) {
            let (mut ranges, mut model) = (Ranges::new(), BTreeMap::new());
            for (start, remove, counter) in steps {
                let start = Offset(start);
                if remove {
                    prop_assert_eq!(ranges.remove(&start), model.remove(&start));
                } else {
                    ranges.insert(start, range(counter));
                    model.insert(start, range(counter));
                }
                prop_assert!(ranges.iter().eq(model.iter()));
                prop_assert!(ranges.iter().rev().eq(model.iter().rev()));
                prop_assert_eq!(ranges.len(), model.len());
                prop_assert_eq!(ranges.get(&start), model.get(&start));
                prop_assert_eq!(ranges.get_max(), model.last_key_value());
            }
            let (from, until) = (Offset(bounds.0.min(bounds.1)), Offset(bounds.0.max(bounds.1)));
            prop_assert!(ranges.range(from..until).eq(model.range(from..until)));
            prop_assert!(ranges.range(..=until).eq(model.range(..=until)));
            prop_assert!(ranges.range(from..).eq(model.range(from..)));
            let again: Ranges = model.into_iter().collect();
            prop_assert_eq!(ranges, again);
        }
    }

    #[test]
    fn a_shrunk_tree_equals_a_list_that_was_never_one() {
        let mut many: Ranges = (0..20).map(|n| (Offset(n), range(n))).collect();
        let five: Ranges = (0..5).map(|n| (Offset(n), range(n))).collect();
        for n in 5..20 {
            many.remove(&Offset(n));
        }
        assert!(matches!((&many.0, &five.0), (Form::Many(_), Form::Few(_))));
        assert_eq!(many, five);
    }
}
