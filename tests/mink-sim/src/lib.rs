//! The simulator: one node and its successors, real code in virtual time on one thread, with seeded crashes, stalls and faults of the
//! store and the database, and a checker of all that clients were told.
//!
//! Lives on: the test's thread; nothing real (clock, thread, socket) is in it but the lock files of the machines.
//! Owns: the world.     Talks to: mink-node through mink-api, as the frontends do.
//! Invariants: the same seed gives the same trace; a failing seed says how to replay it.     See: docs/simulation.md
#![forbid(unsafe_code)]

mod clients;
mod damage;
mod dice;
mod group_history;
mod history;
mod ledger;
mod levels;
mod log;
mod loud;
mod machine;
mod nature;
mod plan;
mod run;
mod store;
mod weather;

pub use history::Counts;
pub use run::{Options, Report, run};

#[cfg(test)]
mod tests;
