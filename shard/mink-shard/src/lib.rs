//! The per-core loop: a shard owns its buckets outright and does what frontends and node ask by message.
//!
//! Lives on: one per core; only [`ShardHandle`] leaves it.
//! Owns: for each bucket its tablet, its tail and its pending acks; the arena; the waiters.
//! Talks to: frontends and mink-node (lanes), the WAL writer ([`ChunkSink`]), object reads on the service runtime ([`ObjectReads`]).
//! Invariants: I1 no ack before its chunk is durable; I3 reads end at the high watermark; I4 the high watermark moves before the
//! ack is sent; I5 after a fence nothing is acked or read; I7 an append that has its offset ends durable or lost, never refused.
//! No lock and no atomic of ours, no borrow across an await, no blocking call. It knows no protocol.
//! See: docs/architecture.md
#![forbid(unsafe_code)]

mod append;
mod arena;
mod assign;
mod bucket;
mod durable;
mod epoch_end;
mod error;
mod fetch;
mod handle;
mod latency;
mod locate;
mod message;
mod objects;
mod producers;
mod pump;
mod recover;
mod rest;
mod shard;
mod sink;
mod stats;
mod tail;
mod waiters;

pub use arena::ARENA_CHUNK_BYTES;
pub use error::{OpenError, ReleaseError};
pub use handle::{Inbox, LaneCapacities, ShardConfig, ShardHandle, shard};
pub use latency::{LATENCY_BOUNDS, Latencies};
pub use message::{BucketOptions, Control, OpenBucket, Released, View};
pub use objects::{ObjectFind, ObjectReadError, ObjectReads};
pub use pump::{ShardEnd, ShardParts, run};
pub use recover::{LogFold, opened, recovered};
pub use sink::{ChunkSink, Told};
pub use stats::{AppendRefusals, BucketLevel, ShardStats};

#[cfg(test)]
mod tests;
