//! What the two hot paths are made of, ready to be run again and again: under criterion for times, under callgrind for counts.
//!
//! Lives on: a developer's machine and CI. No product code depends on it.
//! Owns: the cases and the counters around them.
//! See: docs/performance.md

pub mod allocations;
pub mod batch;
pub mod callgrind;
pub mod light;
pub mod meter;
pub mod node;
pub mod plumbing;
pub mod porcelain;
pub mod shard;
pub mod wal;
