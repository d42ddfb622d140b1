//! Rest: a bucket that nobody writes or reads for a while keeps its rules, and gives back what else it holds.
//!
//! Lives on: the core.
//! Invariants: I20: topics at rest are many, and each takes what its rules need: its batches are committed, so who asks for them reads
//! objects; nothing that is not committed leaves a tail (I1).
use crate::bucket::Opening;
use crate::shard::Shard;
use mink_rt::Instant;
use mink_types::BucketId;
use std::collections::VecDeque;
use std::time::Duration;

/// A bucket that was let alone for so long rests.
const REST_AFTER: Duration = Duration::from_secs(30);
/// Buckets looked at in one turn; the others have their turn with the next lease.
const LOOKED_AT_MAX: usize = 4_096;

/// A bucket that may rest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resting {
    /// Not to be looked at before.
    at: Instant,
    bucket: BucketId,
    opening: Opening,
}

impl Shard {
    /// Batches of the bucket's tail were of use.
    pub(crate) fn touch(&mut self, id: BucketId) {
        let now = self.core.now();
        if let Some(bucket) = self.buckets.get_mut(&id) {
            bucket.touched = now;
            if !bucket.resting && bucket.tail().len() > 0 && !self.uncommitted.contains(&id) {
                self.may_rest(id);
            }
        }
    }

    /// All of the bucket's data is committed.
    pub(crate) fn may_rest(&mut self, id: BucketId) {
        let now = self.core.now();
        if let Some(bucket) = self.buckets.get_mut(&id).filter(|bucket| !bucket.resting) {
            bucket.resting = true;
            self.resting.push_back(Resting { at: now + REST_AFTER, bucket: id, opening: bucket.opening });
        }
    }

    /// Lets those rest that were let alone.
    pub(crate) fn rest(&mut self) {
        let now = self.core.now();
        for _ in 0..LOOKED_AT_MAX {
            let Some(first) = self.resting.front().copied().filter(|first| first.at <= now) else { break };
            self.resting.pop_front();
            let bucket = self.buckets.get_mut(&first.bucket);
            let Some(bucket) = bucket.filter(|bucket| bucket.opening == first.opening) else { continue };
            bucket.resting = false;
            // Written to again: its next commit brings it back here.
            if self.uncommitted.contains(&first.bucket) {
                continue;
            }
            let rests_at = bucket.touched + REST_AFTER;
            if rests_at > now {
                bucket.resting = true;
                self.resting.push_back(Resting { at: rests_at, ..first });
                continue;
            }
            let committed = bucket.committed.min(bucket.tablet.high_watermark());
            while bucket.tail().first_end().is_some_and(|end| end <= committed) {
                let Some(batch) = bucket.pop() else { break };
                self.arena.release(batch.chunk);
                self.left_early += 1;
            }
            bucket.rest();
        }
        if self.resting.is_empty() && self.uncommitted.is_empty() {
            self.arena.rest();
        }
        self.arena.sweep(LOOKED_AT_MAX);
        self.forget_places();
        for_its_size(&mut self.resting);
        for_its_size(&mut self.aging);
        if self.buckets.capacity() > LOOKED_AT_MAX && self.buckets.len() < self.buckets.capacity() / 4 {
            self.buckets.shrink_to(self.buckets.len() * 2);
        }
    }
}

/// Gives back the room of what has shrunk a lot.
fn for_its_size<T>(queue: &mut VecDeque<T>) {
    if queue.capacity() > LOOKED_AT_MAX && queue.len() < queue.capacity() / 4 {
        queue.shrink_to(queue.len() * 2);
    }
}
