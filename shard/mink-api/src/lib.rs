//! The traits by which frontends and lake meet a node: a source of logs, and administration.
//!
//! Lives on: the service runtime; implementations carry calls to the cores.
//! Owns: nothing.     Talks to: whoever implements it (mink-node).
//! Invariants: no frontend names a shard, a store or a database; errors here are typed, and each protocol turns them into its own
//! codes in one place.
#![forbid(unsafe_code)]

mod admin;
mod delete_records;
mod groups;
mod log_source;
mod metric;
mod status;

pub use admin::{Admin, AdminError, Broker, NodeIdentity};
pub use delete_records::{DeleteRecordsError, DeleteUpTo};
pub use groups::{FetchedOffsets, GroupCoordinator};
pub use log_source::{Found, LogSource};
pub use metric::{Metric, MetricValue};
pub use status::{BucketStatus, NodeStatus};
