//! Durable: a chunk's end comes back from the WAL; high watermarks move, waiters wake, acks go out in order.
//!
//! Lives on: the core.
//! Invariants: I1, I4: the high watermark moves before the ack is sent, and nothing is acked out of chain order; I5: after a
//! fence nothing is acked: the replies are dropped, which their connections see as lost.
use crate::bucket::Opening;
use crate::shard::Shard;
use mink_router::Reserved;
use mink_rt::Instant;
use mink_types::{BucketId, Offset};
use s3stream::ChunkEnd;

/// How far a bucket is durable when a chunk is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub(crate) bucket: BucketId,
    /// A bucket that was closed and opened again takes nothing from chunks of before.
    pub(crate) opening: Opening,
    pub(crate) end: Offset,
}

/// A chunk that was pushed.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) number: u64,
    pub(crate) marks: Vec<Mark>,
    pub(crate) durable: bool,
}

/// What the WAL says of a chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkDone {
    pub(crate) number: u64,
    pub(crate) end: ChunkEnd,
}

/// Keeps the place for the end of a chunk. Dropped before that end is known, it says that the chain has ended: whoever held it
/// is gone, and nobody must wait for ever.
#[derive(Debug)]
pub(crate) struct ChunkPlace {
    pub(crate) number: u64,
    pub(crate) place: Option<Reserved<ChunkDone>>,
}

impl ChunkPlace {
    pub(crate) fn tell(&mut self, end: ChunkEnd) {
        if let Some(place) = self.place.take() {
            place.send(ChunkDone { number: self.number, end });
        }
    }
}

impl Drop for ChunkPlace {
    fn drop(&mut self) {
        self.tell(ChunkEnd::Fenced);
    }
}

impl Shard {
    pub(crate) fn chunk_done(&mut self, done: ChunkDone) {
        match done.end {
            ChunkEnd::Fenced => {
                self.stats.chunks_lost += 1;
                self.close_all();
            }
            ChunkEnd::Durable => self.chunk_durable(done.number),
        }
    }

    fn chunk_durable(&mut self, number: u64) {
        self.stats.chunks_durable += 1;
        let found = self.flights.iter_mut().find(|flight| flight.number == number);
        // After a fence the flights are gone, and an end that was on its way counts for nothing.
        let Some(flight) = found else { return };
        flight.durable = true;
        let now = self.core.now();
        while self.flights.front().is_some_and(|flight| flight.durable) {
            let Some(flight) = self.flights.pop_front() else {
                return;
            };
            for mark in flight.marks {
                self.bucket_durable(mark, now);
            }
        }
    }

    fn bucket_durable(&mut self, mark: Mark, now: Instant) {
        let bucket = self.buckets.get_mut(&mark.bucket);
        let Some(bucket) = bucket.filter(|bucket| bucket.opening == mark.opening) else {
            return;
        };
        if bucket.durable_to(mark.end, now, &mut self.stats.ack_latency) {
            let high_watermark = bucket.tablet.high_watermark();
            self.stats.watches_woken += self.waiters.wake(mark.bucket, high_watermark);
        }
    }
}
