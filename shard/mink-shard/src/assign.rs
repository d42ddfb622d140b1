//! Assign: which buckets are open here, until when they may be read, and what of them is committed.
//!
//! Lives on: the core.
//! Invariants: I5: after a fence nothing opens; I13: a bucket is open once; what the view has as committed may leave the tail,
//! nothing else; P-10: closing a bucket loses its acks, never turns them into refusals (I7).
use crate::bucket::{Bucket, Opening};
use crate::shard::Shard;
use crate::{BucketOptions, Control, OpenBucket, OpenError, ReleaseError, View};
use mink_log::{Recovered, Tablet, TabletLimits};
use mink_router::{Watch, shard_of};
use mink_types::{BucketEpoch, BucketId, Offset};

/// So many places of batches that left their tail early are no trouble.
const PLACES_KEPT_MIN: usize = 1_024;
/// Chunks that left the tail, looked at in one turn before more is dropped.
const LINGERING_LOOKED_AT_MAX: usize = 256;

impl Shard {
    /// Does what the node asks; false when the pump is to end.
    pub(crate) fn control(&mut self, control: Control) -> bool {
        match control {
            Control::View(view) => self.view(*view),
            Control::Lease(until) => {
                self.lease_until = self.lease_until.max(until);
                // Comes for as long as the node lives, every few seconds.
                self.rest();
            }
            Control::Open(open) => {
                let OpenBucket { bucket, recovered, options, reply } = *open;
                reply.send(self.open(bucket, recovered, options));
            }
            Control::Options { bucket, options } => self.options(bucket, options),
            Control::Start { bucket, epoch, start, reply } => {
                self.start_at(bucket, epoch, start);
                reply.send(());
            }
            Control::Release { bucket: id, reply } => match self.buckets.get_mut(&id) {
                Some(bucket) => {
                    bucket.draining = true;
                    bucket.flow().release.push(reply);
                    bucket.answer_release();
                }
                None => reply.send(Err(ReleaseError::NotOpen { bucket: id })),
            },
            Control::Close { bucket } => self.close(bucket),
            Control::CloseAll => self.close_all(),
            Control::Stats { reply } => reply.send(self.stats()),
            Control::Buckets { reply } => reply.send(self.levels()),
            Control::Stop => return false,
        }
        true
    }

    fn limits(&self, options: BucketOptions) -> TabletLimits {
        let largest_entry = u32::try_from(s3stream::ENTRY_BYTES_MAX).unwrap_or(u32::MAX);
        TabletLimits {
            batch_bytes_max: options.batch_bytes_max.min(largest_entry),
            producers: self.config.producers,
        }
    }

    fn open(&mut self, id: BucketId, recovered: Recovered, options: BucketOptions) -> Result<(), OpenError> {
        if self.fenced {
            return Err(OpenError::Fenced);
        }
        let owner = shard_of(id, self.config.shards);
        if owner != self.config.index {
            return Err(OpenError::WrongShard { bucket: id, owner, sent_to: self.config.index });
        }
        if self.buckets.contains_key(&id) {
            return Err(OpenError::Open { bucket: id });
        }
        let tablet = Tablet::recover(recovered, self.limits(options))
            .map_err(|error| OpenError::Recover { bucket: id, error })?;
        self.openings += 1;
        self.buckets.insert(id, Bucket::new(Opening(self.openings), tablet));
        Ok(())
    }

    fn options(&mut self, id: BucketId, options: BucketOptions) {
        let limits = self.limits(options);
        if let Some(bucket) = self.buckets.get_mut(&id) {
            bucket.tablet.set_limits(limits);
        }
    }

    /// Forgets what lies below `start`: readers see it no more, and its batches leave the tail (never one that is not committed).
    fn start_at(&mut self, id: BucketId, epoch: BucketEpoch, start: Offset) {
        let Some(bucket) = self.buckets.get_mut(&id).filter(|bucket| bucket.tablet.epoch() == epoch) else {
            return;
        };
        bucket.committed = bucket.committed.max(start.min(bucket.tablet.high_watermark()));
        bucket.tablet.start_at(start);
        let start = bucket.tablet.log_start();
        while bucket.tail().first_end().is_some_and(|end| end <= start) {
            let Some(batch) = bucket.pop() else { break };
            self.arena.release(batch.chunk);
            self.left_early += 1;
        }
        self.forget_places();
    }

    /// Drops the places of batches that left their tail before their turn, once they are the greater part: an idle bucket's batch at
    /// the front would else hold them for ever (I20).
    pub(crate) fn forget_places(&mut self) {
        if self.left_early <= PLACES_KEPT_MIN.max(self.aging.len() / 2) {
            return;
        }
        self.left_early = 0;
        let buckets = &self.buckets;
        self.aging.retain(|place| {
            let bucket = buckets.get(&place.bucket).filter(|bucket| bucket.opening == place.opening);
            bucket.is_some_and(|bucket| bucket.tail_start() < place.end)
        });
    }

    fn close(&mut self, id: BucketId) {
        self.uncommitted.remove(&id);
        if let Some(mut bucket) = self.buckets.swap_remove(&id) {
            while let Some(batch) = bucket.pop() {
                self.arena.release(batch.chunk);
                self.left_early += 1;
            }
            bucket.refuse_release(ReleaseError::NotOpen { bucket: id });
        }
        self.forget_places();
        // After the removal: whoever is woken asks again and must find it gone.
        self.stats.watches_woken += self.waiters.wake_all_of(id);
    }

    /// The process was fenced: nothing is acked or read from here on.
    pub(crate) fn close_all(&mut self) {
        if !self.fenced {
            self.fenced = true;
            tracing::warn!(shard = %self.config.index, buckets = self.buckets.len(), "fenced, buckets dropped");
        }
        // The last one first: none need move into the place of another.
        let open: Vec<BucketId> = self.buckets.keys().rev().copied().collect();
        for id in open {
            self.close(id);
        }
        self.flights.clear();
        self.aging.clear();
        self.resting.clear();
        self.chunk.entries.clear();
        self.chunk.marks.clear();
        self.chunk.bytes = 0;
    }

    fn view(&mut self, view: View) {
        let mut done = Vec::new();
        for id in &self.uncommitted {
            let Some(bucket) = self.buckets.get_mut(id) else {
                done.push(*id);
                continue;
            };
            // A view of another epoch speaks of another owner's log.
            let known = view.state.bucket(id).filter(|known| known.epoch == bucket.tablet.epoch());
            let Some(known) = known else { continue };
            bucket.committed = bucket.committed.max(known.end);
            bucket.tablet.start_at(known.start);
            if bucket.committed >= bucket.tablet.next_offset() {
                done.push(*id);
            }
        }
        for id in done {
            self.uncommitted.remove(&id);
            self.may_rest(id);
        }
        // The turn ends with the eviction that this allows.
        self.view = Some(view);
    }

    /// Before anything is dropped for want of room: what readers have let go of is room.
    pub(crate) fn look_at_what_lingers(&mut self) {
        if self.arena.held_bytes() > self.config.tail_bytes {
            self.arena.sweep(LINGERING_LOOKED_AT_MAX);
        }
    }

    /// Drops the oldest batch of all tails if they are beyond the budget and it is committed; false when there is nothing to do.
    pub(crate) fn evict_one(&mut self) -> bool {
        let Some(oldest) = self.aging.front() else {
            return false;
        };
        let bucket = self.buckets.get_mut(&oldest.bucket);
        if let Some(bucket) = bucket.filter(|bucket| bucket.opening == oldest.opening) {
            // What retention forgot has left the tail before its turn.
            let there = bucket.tail_start() < oldest.end;
            let fits = self.arena.held_bytes() <= self.config.tail_bytes;
            // A view can overtake the word that a chunk is durable, since it comes by another lane.
            let committed = bucket.committed.min(bucket.tablet.high_watermark());
            if there && (fits || committed < oldest.end) {
                return false;
            }
            if there && let Some(batch) = bucket.pop() {
                self.arena.release(batch.chunk);
            }
        }
        self.aging.pop_front();
        true
    }

    /// Lets a reader wait, or answers at once if there is something to see, or nothing to wait for.
    pub(crate) fn watch(&mut self, watch: Watch) {
        self.stats.watches += 1;
        let Watch { offsets, reply } = watch;
        let now = offsets.iter().any(|offset| {
            let bucket = self.buckets.get(&offset.bucket);
            bucket.is_none_or(|bucket| bucket.tablet.high_watermark() > offset.seen)
        });
        if now || offsets.is_empty() {
            return reply.send(());
        }
        if !self.waiters.add(&offsets, reply) {
            self.stats.watches_refused += 1;
        }
    }
}
