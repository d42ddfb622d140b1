//! What a log forgets: offsets below its start, and at last its producers.
//!
//! Lives on: anywhere (pure).
//! Invariants: I2 (ranges stay dense up to the committed end), I6 (what tells of a log's producers outlives its records: a batch whose
//! records are deleted may still be sent again), I14 (a range that goes takes its object along if it was the last).
use mink_types::{BucketEpoch, BucketId, Incarnation, LogIndex, ObjectId, Offset};

use super::{Judged, Position};
use crate::state::{Bucket, State};
use crate::{Answer, FEATURE_LEVEL_PRODUCERS_KEPT, Invalid, Refusal, Stale};

impl State {
    pub(super) fn raise_start(
        &mut self,
        at: Position,
        by: Incarnation,
        id: BucketId,
        epoch: BucketEpoch,
        start: Offset,
    ) -> Judged {
        self.acting(by)?;
        self.live_bucket(by, id, epoch)?;
        let Some(bucket) = self.buckets.get_mut(&id) else {
            return Err(Refusal::Stale { bucket: id, why: Stale::Gone });
        };
        if start <= bucket.start || start > bucket.end {
            return Err(Refusal::Invalid(Invalid::StartOutOfRange));
        }
        bucket.start = start;
        self.drop_unread(at.index, id);
        Ok(Answer::Done)
    }

    pub(super) fn forget_producers(
        &mut self,
        at: Position,
        by: Incarnation,
        id: BucketId,
        epoch: BucketEpoch,
        end: Offset,
    ) -> Judged {
        self.acting(by)?;
        if self.feature_level < FEATURE_LEVEL_PRODUCERS_KEPT {
            return Err(Refusal::Invalid(Invalid::FeatureLevel));
        }
        let committed = self.live_bucket(by, id, epoch)?.end;
        if committed != end {
            return Err(Refusal::Stale { bucket: id, why: Stale::End { committed } });
        }
        if self.buckets.get(&id).is_some_and(|bucket| bucket.start < end) {
            return Err(Refusal::Invalid(Invalid::StartOutOfRange));
        }
        self.drop_ranges_below(at.index, id, end);
        Ok(Answer::Done)
    }

    /// Drops the ranges that nobody can read, but for those that tell of producers.
    pub(super) fn drop_unread(&mut self, at: LogIndex, id: BucketId) {
        let keeps = self.feature_level >= FEATURE_LEVEL_PRODUCERS_KEPT;
        let Some(bucket) = self.buckets.get(&id) else {
            return;
        };
        // Mostly there is none: this is asked at every commit.
        if bucket.unread().next().is_none() {
            return;
        }
        let below = if keeps { bucket.start.min(bucket.tells_of_producers_from()) } else { bucket.start };
        self.drop_ranges_below(at, id, below);
    }

    /// Drops the ranges that end at or before an offset.
    fn drop_ranges_below(&mut self, at: LogIndex, id: BucketId, below: Offset) {
        let Some(bucket) = self.buckets.get_mut(&id) else {
            return;
        };
        let gone: Vec<(Offset, ObjectId)> = bucket
            .ranges
            .iter()
            .take_while(|(_, range)| range.end <= below)
            .map(|(first, range)| (*first, range.object))
            .collect();
        for (first, _) in &gone {
            bucket.ranges.remove(first);
        }
        for (_, object) in gone {
            self.lose_range(at, object);
        }
    }

    pub(super) fn deleted(&mut self, objects: &[ObjectId]) -> Answer {
        for id in objects {
            self.doomed.remove(id);
        }
        Answer::Done
    }
}

impl Bucket {
    /// From which offset on ranges tell of the log's producers: the newest stream object has all who came before it, too; WAL objects
    /// have only their own. Without a stream object all ranges do.
    fn tells_of_producers_from(&self) -> Offset {
        let stream =
            |(_, range): &(&Offset, &crate::ObjectRange)| matches!(range.object, ObjectId::Stream { .. });
        let newest = self.ranges.iter().rev().find(stream).or_else(|| self.ranges.get_min());
        newest.map_or(self.end, |(first, _)| *first)
    }
}
