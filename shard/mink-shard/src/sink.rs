//! Where a shard's chunks go: the seam to the WAL writer.
//!
//! Lives on: one per core.
//! Invariants: a chunk's shard is told of its end once, also when the writer dies with it; chunks keep their order.
use s3stream::{Chunk, ChunkEnd, ChunkSender, Entry, LaneClosed, PushError};
use std::fmt;
use std::task::{Context, Poll};

/// Called once with how the chunk ended, in chain order, on whichever thread. Dropped uncalled it tells `Fenced`.
pub type Told = Box<dyn FnOnce(ChunkEnd) + Send>;

/// The bounded way to the WAL writer.
pub trait ChunkSink: Send + fmt::Debug {
    /// Ready when the next push will find room; wakes the task otherwise. An error means that the chain has ended.
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), LaneClosed>>;

    /// Hands a chunk over, after `poll_ready` said that there is room. A chunk that cannot be taken is told `Fenced`.
    fn push(&mut self, entries: Vec<Entry>, told: Told);
}

impl ChunkSink for ChunkSender {
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), LaneClosed>> {
        ChunkSender::poll_ready(self, context)
    }

    fn push(&mut self, entries: Vec<Entry>, told: Told) {
        match self.try_push(Chunk::new(entries, told)) {
            // A closed lane drops the chunk, and that tells it.
            Ok(()) | Err(PushError::Closed(_)) => {}
            Err(error) => {
                tracing::error!(%error, "chunk refused by the WAL writer, buckets of this shard are dropped");
            }
        }
    }
}
