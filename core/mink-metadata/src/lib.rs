//! The command log's state machine: commands, how each is judged and applied, the state they make, its snapshot and digest.
//!
//! Lives on: anywhere (pure).
//! Owns: nothing outside the values it returns; the log itself is mink-sql's.     Talks to: mink-types.
//! Invariants: I11 (apply is deterministic), I12 (a request id is applied once), I13 (rows are chained by hash, epochs only
//! grow), I14 (nothing referenced is ever doomed), T-18 and K-26 (ranges never overlap, dropped ids stay dropped).
//! See: docs/architecture.md
#![forbid(unsafe_code)]

mod apply;
mod command;
mod error;
mod ranges;
mod result;
mod rising;
mod row;
mod since;
mod snapshot;
mod state;
mod table;
mod wire;

pub use command::{
    BrokerConfigChange, BucketOpening, Command, CommittedObject, CommittedRange, ConfigScope, Listener,
    NewPartition, NewTable, Registration, RewrittenObject, RewrittenRange, TableChange, TakenOver,
};
pub use error::{ApplyError, GroupError, SnapshotError};
pub use ranges::{Iter, Ranges};
pub use result::{Answer, CommandResult, Invalid, LimitKind, ObjectFault, Refusal, RefusalKind, Stale};
pub use row::{Group, PAYLOAD_BYTES_MAX, ROW_COMMANDS_MAX, Row, row_hash};
pub use state::{Bucket, Database, IncarnationState, Object, ObjectRange, Probe, SESSIONS_MAX, State};
pub use table::Table;

/// The newest feature level that this version applies. The log's own level rises by `Command::RaiseFeatureLevel` only.
pub const FEATURE_LEVEL_MAX: u32 = 6;

/// The feature level from which `Command::Rewrite` is accepted.
pub const FEATURE_LEVEL_REWRITE: u32 = 2;

/// The feature level from which ranges that tell of a log's producers outlive its records, until `Command::ForgetProducers`.
pub const FEATURE_LEVEL_PRODUCERS_KEPT: u32 = 3;

/// The feature level from which `Command::AlterTable` is accepted.
pub const FEATURE_LEVEL_ALTER_TABLE: u32 = 4;

/// The feature level from which tables may have times of appending, be compacted and keep configurations, and
/// `Command::AlterBrokerConfigs` is accepted.
pub const FEATURE_LEVEL_CONFIGS: u32 = 5;

/// The feature level from which tables may have columns, with schemas that change, and partitions.
pub const FEATURE_LEVEL_SCHEMAS: u32 = 6;

/// Most schemas of one table: the one that it is created with, and one more for each change.
pub const SCHEMAS_MAX: usize = 1_000;

/// Most bytes of all schemas of one table, as they are encoded.
pub const TABLE_SCHEMA_BYTES_MAX: usize = 16 << 20;

/// Most partitions of one table.
pub const PARTITIONS_PER_TABLE_MAX: usize = 10_000;

/// Most bytes of all texts among the values of one partition.
pub const PARTITION_VALUE_BYTES_MAX: usize = 1_024;

/// Most configurations that a table keeps without their being used. Names and values are bounded as a broker's are.
pub const KEPT_CONFIGS_MAX: usize = 64;

/// Most configurations of one scope.
pub const BROKER_CONFIGS_MAX: usize = 64;

/// Longest name of a broker's configuration, in bytes; it has at least one.
pub const BROKER_CONFIG_NAME_BYTES_MAX: usize = 249;

/// Longest value of a broker's configuration, in bytes.
pub const BROKER_CONFIG_VALUE_BYTES_MAX: usize = 1_024;

#[cfg(test)]
mod tests;
