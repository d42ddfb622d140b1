//! What the fuzzers share: the decoders that meet outside bytes, sound inputs of each, and an allocator that knows what they hold.
//!
//! Lives on: a developer's machine and CI.
//! Owns: nothing.
//! Invariants: I19, K-28: see `targets`.

mod allocator;
mod flight;
mod json_rows;
mod seeds;
mod settings;
mod statement;
mod targets;

pub use allocator::Capped;
pub use seeds::seeds;
pub use targets::{TARGETS, Target};

#[cfg(test)]
#[global_allocator]
static ALLOCATOR: Capped = Capped;
