//! Compaction: ranges move from many objects into few, and what they held moves with them.
//!
//! Lives on: anywhere (pure).
//! Invariants: I2 and T-18 (a new range takes the place of exactly the ranges it names, so offsets stay dense and no two
//! objects claim one; the second of two compactions is refused), I14 (a replaced object is doomed when its last range goes),
//! K-26 (dropped tables are skipped), I13 (only the live owner rewrites).
//!
//! Retention may have dropped ranges from a bucket's front since the plan was made. They are gone either way, so the rest of
//! the run counts: the new range then begins where the bucket's first range does.
use std::collections::{BTreeMap, BTreeSet};

use mink_types::{BucketId, CommitTime, Incarnation, ObjectId, Offset, OffsetRange, Timestamp, WalChain};

use super::{Judged, Position};
use crate::state::{Bucket, Object, ObjectRange, State};
use crate::{
    Answer, FEATURE_LEVEL_REWRITE, Invalid, ObjectFault, Refusal, RewrittenObject, RewrittenRange, Stale,
};

impl State {
    pub(super) fn rewrite(
        &mut self,
        at: Position,
        by: Incarnation,
        replaced: &[ObjectId],
        objects: &[RewrittenObject],
    ) -> Judged {
        let own = self.acting(by)?.chain;
        if self.feature_level < FEATURE_LEVEL_REWRITE {
            return Err(Refusal::Invalid(Invalid::FeatureLevel));
        }
        let sources: BTreeSet<ObjectId> = replaced.iter().copied().collect();
        self.check_rewritten(own, objects)?;
        self.check_moved(by, &sources, objects)?;
        for object in objects {
            self.rewrite_object(at, object);
        }
        for range in objects.iter().flat_map(|object| &object.ranges) {
            self.drop_unread(at.index, range.bucket);
        }
        Ok(Answer::Done)
    }

    fn check_rewritten(&self, own: WalChain, objects: &[RewrittenObject]) -> Result<(), Refusal> {
        let mut seen = BTreeSet::new();
        for object in objects {
            let id = object.id;
            let refuse = |why| Err(Refusal::Object { id, why });
            if !matches!(id, ObjectId::Stream { chain, .. } if chain == own) {
                return refuse(ObjectFault::Foreign);
            }
            if !seen.insert(id) || self.doomed.contains_key(&id) || self.objects.contains_key(&id) {
                return refuse(ObjectFault::Known);
            }
            if object.length == 0 || u64::from(object.footer_length) > object.length {
                return refuse(ObjectFault::Lengths);
            }
        }
        Ok(())
    }

    fn check_moved(
        &self,
        by: Incarnation,
        sources: &BTreeSet<ObjectId>,
        objects: &[RewrittenObject],
    ) -> Result<(), Refusal> {
        // Two new ranges of one command must not claim the same old one, in whatever order they come.
        let mut claimed: BTreeMap<(BucketId, Offset), Offset> = BTreeMap::new();
        for range in objects.iter().flat_map(|object| &object.ranges) {
            if range.end <= range.start {
                return Err(Refusal::Invalid(Invalid::EmptyRange));
            }
            let id = range.bucket;
            if !self.buckets.contains_key(&id) {
                continue;
            }
            let bucket = self.live_bucket(by, id, range.epoch)?;
            // They are disjoint so far, so the last that begins below this end reaches furthest.
            let last = claimed.range(..(id, range.end)).next_back();
            if last.is_some_and(|((of, _), end)| *of == id && *end > range.start) {
                return Err(Refusal::Stale { bucket: id, why: Stale::Ranges { at: range.start } });
            }
            claimed.insert((id, range.start), range.end);
            self.check_run(bucket, range, sources)?;
        }
        Ok(())
    }

    /// Whether the range is exactly a run of the bucket's ranges that lie in `sources`, but for those that were dropped.
    fn check_run(
        &self,
        bucket: &Bucket,
        range: &RewrittenRange,
        sources: &BTreeSet<ObjectId>,
    ) -> Result<(), Refusal> {
        let Some(kept) = kept(bucket, range) else {
            return Ok(());
        };
        let refuse = |at| Err(Refusal::Stale { bucket: range.bucket, why: Stale::Ranges { at } });
        let mut next = kept.start;
        for (start, old) in bucket.ranges.range(kept.start..) {
            if next == kept.end {
                break;
            }
            if *start != next || old.end > kept.end || !sources.contains(&old.object) {
                return refuse(next);
            }
            if self.objects.get(&old.object).is_none_or(|object| object.length == 0) {
                return Err(Refusal::Object { id: old.object, why: ObjectFault::Lost });
            }
            next = old.end;
        }
        if next == kept.end { Ok(()) } else { refuse(next) }
    }

    /// Applies one object of a rewrite that was accepted.
    fn rewrite_object(&mut self, at: Position, object: &RewrittenObject) {
        let mut ranges = 0;
        let mut lost = Vec::new();
        for range in &object.ranges {
            ranges += u32::from(self.move_range(object.id, range, &mut lost));
        }
        if ranges > 0 {
            let RewrittenObject { length, footer_length, checksum, .. } = *object;
            self.objects.insert(object.id, Object { length, footer_length, checksum, ranges });
        } else {
            self.doomed.insert(object.id, at.index);
        }
        for old in lost {
            self.lose_range(at.index, old);
        }
    }

    /// Whether anything of the range is left to move. The objects of the ranges that it replaces go to `lost`.
    fn move_range(&mut self, object: ObjectId, range: &RewrittenRange, lost: &mut Vec<ObjectId>) -> bool {
        let Some(bucket) = self.buckets.get_mut(&range.bucket) else {
            return false;
        };
        let Some(kept) = kept(bucket, range) else {
            return false;
        };
        let old: Vec<(Offset, ObjectRange)> =
            bucket.ranges.range(kept.start..kept.end).map(|(start, range)| (*start, *range)).collect();
        debug_assert_eq!(
            old.last().map(|(_, last)| last.end),
            Some(kept.end),
            "I2: check_run has judged this"
        );
        let mut new = ObjectRange {
            object,
            end: kept.end,
            max_timestamp: Timestamp(i64::MIN),
            last_commit_time: CommitTime(i64::MIN),
            bytes: 0,
        };
        for (start, range) in old {
            new.max_timestamp = new.max_timestamp.max(range.max_timestamp);
            new.last_commit_time = new.last_commit_time.max(range.last_commit_time);
            new.bytes = new.bytes.saturating_add(range.bytes);
            bucket.ranges.remove(&start);
            lost.push(range.object);
        }
        bucket.ranges.insert(kept.start, new);
        true
    }
}

/// What retention has left of the range; none if that is nothing.
fn kept(bucket: &Bucket, range: &RewrittenRange) -> Option<OffsetRange> {
    let first = bucket.ranges.get_min().map_or(bucket.end, |(start, _)| *start);
    let start = range.start.max(first);
    (start < range.end).then_some(OffsetRange { start, end: range.end })
}
