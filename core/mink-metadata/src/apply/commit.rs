//! Commits: which offsets become readable from which objects, and how far chains and logs are trimmed.
//!
//! Lives on: anywhere (pure).
//! Invariants: I2 and T-18 (a commit starts at the committed end, so ranges neither overlap nor leave gaps), K-26 (ranges of
//! dropped tables are skipped), I14 (an id that was doomed or is in use is not taken again), I13 (epochs are checked).
use std::collections::{BTreeMap, BTreeSet};

use mink_types::{BucketId, Incarnation, ObjectId, Offset, WalChain, WalNumber};

use super::{Judged, Position};
use crate::state::{Object, ObjectRange, State};
use crate::{Answer, CommittedObject, CommittedRange, Invalid, ObjectFault, Refusal, Stale};

/// Whether an object's lengths can be true. A WAL object of no length at all is one that was lost: its offsets are taken for
/// ever, and a reader of them is told so (P-14).
fn lengths_fit(object: &CommittedObject) -> bool {
    match object.id {
        ObjectId::Wal { .. } if object.length == 0 => object.footer_length == 0 && object.checksum == 0,
        _ => object.length > 0 && u64::from(object.footer_length) <= object.length,
    }
}

impl State {
    pub(super) fn commit(
        &mut self,
        at: Position,
        by: Incarnation,
        source: Incarnation,
        objects: &[CommittedObject],
        trim: Option<WalNumber>,
    ) -> Judged {
        let own = self.acting(by)?.chain;
        let from = self.incarnations.get(&source).ok_or(Refusal::NotRegistered { incarnation: source })?;
        if source != by && !from.fenced {
            return Err(Refusal::NotFenced { incarnation: source });
        }
        if source != by && trim.is_some() {
            return Err(Refusal::Invalid(Invalid::ForeignTrim));
        }
        self.check_objects(own, from.chain, objects)?;
        self.check_ranges(source, objects)?;
        for object in objects {
            self.commit_object(at, object);
        }
        for range in objects.iter().flat_map(|object| &object.ranges) {
            self.drop_unread(at.index, range.bucket);
        }
        if let (Some(trim), Some(state)) = (trim, self.incarnations.get_mut(&by)) {
            state.trim = state.trim.max(trim);
        }
        Ok(Answer::Done)
    }

    fn check_objects(
        &self,
        own: WalChain,
        source: WalChain,
        objects: &[CommittedObject],
    ) -> Result<(), Refusal> {
        let mut seen = BTreeSet::new();
        for object in objects {
            let id = object.id;
            let refuse = |why| Err(Refusal::Object { id, why });
            if !seen.insert(id) || self.doomed.contains_key(&id) {
                return refuse(ObjectFault::Known);
            }
            if !lengths_fit(object) {
                return refuse(ObjectFault::Lengths);
            }
            let known = self.objects.get(&id);
            match id {
                ObjectId::Stream { chain, .. } if chain != own => return refuse(ObjectFault::Foreign),
                ObjectId::Stream { .. } if known.is_some() => return refuse(ObjectFault::Known),
                // An author's own WAL goes by its trim; only a sealed chain's objects may be referred to.
                ObjectId::Wal { chain, .. } if chain != source || chain == own => {
                    return refuse(ObjectFault::Foreign);
                }
                _ => {}
            }
            // Two takers may adopt different buckets of one WAL object: it is the same object for both.
            let same = |o: &Object| {
                (o.length, o.footer_length, o.checksum)
                    == (object.length, object.footer_length, object.checksum)
            };
            if !known.is_none_or(same) {
                return refuse(ObjectFault::Differs);
            }
        }
        Ok(())
    }

    fn check_ranges(&self, source: Incarnation, objects: &[CommittedObject]) -> Result<(), Refusal> {
        let mut ends: BTreeMap<BucketId, Offset> = BTreeMap::new();
        for range in objects.iter().flat_map(|object| &object.ranges) {
            if range.end <= range.start || i64::try_from(range.end.0).is_err() {
                return Err(Refusal::Invalid(Invalid::EmptyRange));
            }
            let id = range.bucket;
            let Some(bucket) = self.buckets.get(&id) else {
                continue;
            };
            let refuse = |why| Err(Refusal::Stale { bucket: id, why });
            if bucket.epoch != range.epoch {
                return refuse(Stale::Epoch { current: bucket.epoch });
            }
            if bucket.owner != Some(source) {
                return refuse(Stale::Hangs { on: bucket.owner });
            }
            let end = ends.entry(id).or_insert(bucket.end);
            if range.start != *end {
                return refuse(Stale::End { committed: *end });
            }
            *end = range.end;
        }
        Ok(())
    }

    /// Applies one object of a commit that was accepted.
    fn commit_object(&mut self, at: Position, object: &CommittedObject) {
        let mut ranges = 0;
        for range in &object.ranges {
            ranges += u32::from(self.commit_range(object.id, range));
        }
        if ranges > 0 {
            let CommittedObject { length, footer_length, checksum, .. } = *object;
            let fresh = Object { length, footer_length, checksum, ranges: 0 };
            let kept = self.objects.entry(object.id).or_insert(fresh);
            kept.ranges = kept.ranges.saturating_add(ranges);
        } else if matches!(object.id, ObjectId::Stream { .. }) {
            self.doomed.insert(object.id, at.index);
        }
    }

    /// Whether the range belongs to a table that exists.
    fn commit_range(&mut self, object: ObjectId, range: &CommittedRange) -> bool {
        let Some(bucket) = self.buckets.get_mut(&range.bucket) else {
            return false;
        };
        debug_assert_eq!(bucket.end, range.start, "I2: check_ranges has judged this range");
        let kept = ObjectRange {
            object,
            end: range.end,
            max_timestamp: range.max_timestamp,
            last_commit_time: range.last_commit_time,
            bytes: range.bytes,
        };
        bucket.ranges.insert(range.start, kept);
        bucket.end = range.end;
        true
    }
}
