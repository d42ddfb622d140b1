//! What a shard counts: plain numbers, copied into a message when the node asks.
//!
//! Lives on: the core; the copies anywhere.
use crate::Latencies;
use mink_router::AppendError;
use mink_types::{BucketEpoch, BucketId, Offset};

/// A shard's counters since it began, and its levels now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ShardStats {
    /// Turns of the pump.
    pub turns: u64,
    /// Batches, records and bytes that were ordered.
    pub appended_batches: u64,
    pub appended_records: u64,
    pub appended_bytes: u64,
    /// Bytes of batches copied into the arena.
    pub copied_bytes: u64,
    /// Repeats of batches that were stored already (I6).
    pub duplicates: u64,
    /// Producers forgotten since they were idle for longer than the expiry when a batch moved their log's time.
    pub producers_expired: u64,
    /// From an append's offset to its ack, for each append that was acked through the WAL.
    pub ack_latency: Latencies,
    pub refused: AppendRefusals,
    /// Appends that reached the shard in a form it must never see.
    pub malformed: u64,
    /// Chunks handed to the WAL, told durable, told that the chain had ended.
    pub chunks_pushed: u64,
    pub chunks_durable: u64,
    pub chunks_lost: u64,
    /// Reads of buckets, by where their bytes came from; `reads_empty` found nothing to give.
    pub reads_tail: u64,
    pub reads_object: u64,
    pub reads_empty: u64,
    pub reads_refused: u64,
    pub read_bytes_tail: u64,
    pub read_bytes_object: u64,
    /// Object reads planned again since an object was missing.
    pub reads_replanned: u64,
    /// Reads and searches that an object failed which is gone or damaged.
    pub damaged_reads: u64,
    /// Those that the store failed, or a view that was behind.
    pub failed_reads: u64,
    pub locates: u64,
    pub watches: u64,
    pub watches_woken: u64,
    /// Watches answered at once for lack of room.
    pub watches_refused: u64,
    /// Readings of a wall clock more than an hour ahead of the time that passed.
    pub clock_jumps: u64,
    // Levels.
    pub buckets: u64,
    pub producers: u64,
    pub tail_batches: u64,
    /// Places in the order of eviction: one for each batch of a tail, and some of batches that went before their turn.
    pub tail_places: u64,
    /// Bytes of arena chunks that the tail keeps, and of all that anybody keeps.
    pub tail_bytes: u64,
    pub arena_bytes: u64,
    pub chunks_in_flight: u64,
    pub appends_in_flight: u64,
    pub watchers: u64,
    pub object_reads_in_flight: u64,
    /// Whether this process was fenced.
    pub fenced: bool,
}

/// What an open bucket takes beside its batches and producers, in bytes.
const BUCKET_BYTES: u64 = 512;
/// What a remembered producer takes.
const PRODUCER_BYTES: u64 = 160;

impl ShardStats {
    /// What the rules of all open buckets take, in bytes.
    pub fn state_bytes(&self) -> u64 {
        self.buckets * BUCKET_BYTES + self.producers * PRODUCER_BYTES
    }
}

/// Appends refused, by reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AppendRefusals {
    pub not_owner: u64,
    pub opening: u64,
    pub draining: u64,
    pub too_large: u64,
    pub out_of_order: u64,
    pub producer_fenced: u64,
    pub too_many_producers: u64,
}

impl AppendRefusals {
    pub(crate) fn count(&mut self, error: &AppendError) {
        let counter = match error {
            AppendError::NotOwner { .. } => &mut self.not_owner,
            AppendError::Opening { .. } => &mut self.opening,
            AppendError::Draining => &mut self.draining,
            AppendError::TooLarge { .. } => &mut self.too_large,
            AppendError::OutOfOrder { .. } => &mut self.out_of_order,
            AppendError::ProducerFenced { .. } => &mut self.producer_fenced,
            AppendError::TooManyProducers { .. } => &mut self.too_many_producers,
        };
        *counter += 1;
    }
}

/// How far one open bucket has got.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BucketLevel {
    pub bucket: BucketId,
    pub epoch: BucketEpoch,
    pub log_start: Offset,
    /// End of what readers may see.
    pub high_watermark: Offset,
    /// End of what was ordered.
    pub end: Offset,
}
