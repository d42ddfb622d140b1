//! A node: membership, takeover, opening of buckets, the read lease, garbage, drain.
//!
//! Lives on: the service runtime; starts the cores.
//! Owns: the data directory's lock, the heartbeat, which buckets are open here.
//! Talks to: the command log (mink-sql), the WAL (s3stream), its shards by message; frontends meet it through mink-api.
//! Invariants: I1, I3, I5, I13, I14.     See: docs/architecture.md
#![forbid(unsafe_code)]

mod admin;
mod commits;
mod compaction;
mod config;
mod context;
mod data_dir;
mod delete_records;
mod drain;
mod error;
mod follow;
mod garbage;
mod groups;
mod lease;
mod node;
mod opened;
mod opening;
mod producer_ids;
mod renew;
mod retention;
mod running;
mod source;
mod stall;
mod status;
mod suspect;
mod takeover;
mod waiting;

pub use compaction::CompactionConfig;
pub use config::{NodeConfig, OpenStore, Progress, Stores};
pub use data_dir::{DataDir, DataDirError};
pub use error::{NodeEnd, StartError};
pub use groups::GROUP_BUCKETS;
pub use mink_group::GroupLimits;
pub use node::Node;

#[cfg(test)]
mod tests;
