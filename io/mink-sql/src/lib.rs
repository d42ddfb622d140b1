//! The command log's home in SQL: append, tail, heartbeats, identity, snapshots, and the driver that owns the state.
//!
//! Lives on: service runtime (its tasks), anywhere (the [`Metadata`] handle, views).
//! Owns: the connection to the database; the one [`mink_metadata::State`] that is applied to.
//! Talks to: mink-metadata (rules), mink-object (snapshots, identity), mink-rt (blocking work, sleep).
//! Invariants: I1 (an answered command is durable), I12 (a lost commit answer never applies a command twice, nor fails it),
//! I13 (a database that is behind, or that differs, is refused and named). Only this crate names a database driver.
//! See: docs/architecture.md
#![forbid(unsafe_code)]

mod driver;
mod faults;
mod identity;
mod log;
mod metadata;
mod recover;
mod snapshots;
mod sqlite;
mod steady;

pub use faults::{Coins, FaultyLog, LogCall};
pub use identity::{IdentityError, ensure_identity};
pub use log::{
    AppendRefused, Beat, BeatRefused, BeatState, CommandLog, IdentityRow, LogError, SnapshotPlace,
    WriteRefused,
};
pub use metadata::{Changes, Home, LoadError, Metadata, MetadataConfig, MetadataError};
pub use recover::{RecoverError, Recovered, recover};
pub use snapshots::{
    ROWS_KEPT_DEFAULT, SNAPSHOTS_KEPT, SnapshotWriteError, witness_of_store, write_snapshot,
};
pub use sqlite::{Database, OpenLogError, SqliteLog};

#[cfg(test)]
mod tests;
