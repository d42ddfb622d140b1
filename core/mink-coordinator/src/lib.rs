//! Planning as pure functions: which chains to take over, which buckets to open, what to delete, what retention drops.
//!
//! Lives on: anywhere (pure).
//! Owns: nothing; every function reads one view of the metadata.     Talks to: mink-metadata.
//! Invariants: I13 (plans carry the epochs they saw), I14 (what a plan lets go is dead in the view, and stays so). Two nodes
//! with the same view and facts plan the same work, each its own share.
//! See: docs/architecture.md
#![forbid(unsafe_code)]

mod compaction;
mod garbage;
mod heartbeats;
mod placement;
mod plan;
mod retention;
mod retention_clock;

pub use compaction::{CompactionCause, CompactionJob, CompactionPolicy, Move, compaction};
pub use garbage::{Keep, Sweep, wal_floor};
pub use heartbeats::{Beating, Heartbeats, Look, Silence};
pub use placement::live_nodes;
pub use plan::{
    DELETE_OBJECTS_MAX, Facts, OPEN_BUCKETS_MAX, Step, Takeover, garbage, plan, sweep_again, takeover,
    takeovers,
};
pub use retention::{Expiry, expired_start, expires_otherwise, expiry, producers_expire};
pub use retention_clock::RetentionClock;

#[cfg(test)]
mod tests;
