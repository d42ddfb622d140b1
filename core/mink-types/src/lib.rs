//! The nouns of Mink: ids, offsets, epochs, names, table options, limits, outcomes of outside calls.
//!
//! Lives on: anywhere (pure).
//! Owns: nothing. Every other crate speaks in these types, so that a table id is never passed for a bucket number.
//! Invariants: a value that exists is valid (names are checked when made); no type here knows a protocol, a store or a database.
#![forbid(unsafe_code)]

mod civil;
mod closest;
mod ids;
mod kept_configs;
mod limits;
mod names;
mod object;
mod options;
mod outcome;
pub mod schema;
mod time;

pub use civil::Civil;
pub use closest::closest;
pub use ids::{
    BucketEpoch, BucketId, BucketIndex, ClusterUuid, DatabaseId, Incarnation, LogIndex, NodeId, Offset,
    OffsetRange, PartitionId, ProducerEpoch, ProducerId, RequestId, RowHash, Sequence, SessionId, TableId,
    TableUuid, WalNumber, Witness,
};
pub use kept_configs::{KEPT_VALUE_BYTES_MAX, Kept, KeptConfigs, KeptKind};
pub use limits::{LimitError, Limits};
pub use names::{ClusterName, DatabaseName, NAME_BYTES_MAX, NameError, TableName, TablePath};
pub use object::{KeyError, ObjectId, ObjectKey, WalChain};
pub use options::{
    ArrowCompression, BATCH_BYTES_MAX_DEFAULT, CleanupPolicy, KafkaValueFormat, LOG_TTL_MS_DEFAULT,
    LogFormat, OptionError, TableOptions, TimestampType,
};
pub use outcome::{Indeterminate, Outcome};
pub use time::{CommitTime, Timestamp};
