//! An exhaustive model of chain, seal, takeover, trim, adoption and garbage (decision 0003), driven by the engine's own metadata.
//!
//! Lives on: a developer's machine and CI.
//! Owns: nothing that lasts.     Talks to: mink-metadata (`State::apply` of real rows), mink-coordinator (its plans).
//! Invariants: every run of a scope is met, breadth first, so what it shows is the shortest way to a fault.
//! See: docs/simulation.md
#![forbid(unsafe_code)]
// A model is arithmetic on small arrays in the letters of its rules (i acts, x is taken over, b a bucket, n a number, c a stream object),
// and panics are how it reports its own mistakes.
#![expect(
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    reason = "arrays of fixed size, numbers below eight"
)]
#![expect(clippy::many_single_char_names, reason = "the letters above")]
#![cfg_attr(
    not(test),
    expect(
        clippy::wildcard_imports,
        clippy::enum_glob_use,
        reason = "all files speak of one state and one list of mutants"
    )
)]
#![expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "it is the sizes of a model's parts that are small, not their meaning"
)]
#![expect(clippy::struct_excessive_bools, reason = "a scope is made of switches")]

mod act;
mod apply;
mod audit;
mod canon;
mod change;
mod check;
mod collect;
mod config;
mod engine;
/// The engine's own walk, from its source: the crate around it would bring the store and its clients along.
#[path = "../../../io/s3stream/src/takeover/walk.rs"]
pub mod engine_walk;
mod log;
mod recover;
mod scopes;
mod search;
mod state;
mod step;
mod task;
mod view;
mod world;

pub use act::Act;
pub use check::MET;
pub use config::{CLAIM_FIRST_PUT, CLAIM_ONE_SEAL, CLAIM_PUT_PROVES, CLAIM_SILENT, Config, Mutant};
pub use scopes::{Expect, LARGE, SMALL, Scope, Trial, mutants};
pub use search::{Found, Options, Report, search};

#[cfg(test)]
mod tests;
