//! Why a node does not start, or ended: each with what a person can do about it.
//!
//! Lives on: the service runtime.
use crate::data_dir::DataDirError;
use mink_rt::CorePanic;
use mink_types::{Incarnation, LogIndex};

/// Why a node did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    DataDir(#[from] DataDirError),
    #[error("metadata: {0}")]
    Metadata(String),
    #[error(
        "the store {store} cannot keep a cluster safe: of several that create one name at once, not exactly one succeeds ({detail}); use a store whose conditional PUT works, see `mink doctor`"
    )]
    StoreLies { store: String, detail: String },
    #[error(
        "the store {store} could not be probed: {detail}; check that it is reachable and the credentials are good, then start again"
    )]
    StoreUndecided { store: String, detail: String },
    #[error(
        "the metadata database is at row {database}, but the WAL of incarnation {incarnation} was written at row {witness}: the database has lost acked commands; restore it; without a copy, `mink metadata recover` brings back what the store's newest snapshot has, which is enough if no command was acked after it"
    )]
    DatabaseBehind { database: LogIndex, witness: LogIndex, incarnation: Incarnation },
    #[error(
        "row {index} of the metadata database is not the one under which the WAL of incarnation {incarnation} was written: the database has lost acked commands, or belongs to another history; restore the right one (`mink metadata recover` cannot bring back commands that no snapshot has)"
    )]
    DatabaseDiffers { index: LogIndex, incarnation: Incarnation },
    #[error("taking over from incarnation {incarnation}: {what}")]
    Takeover { incarnation: Incarnation, what: String },
    #[error(
        "this node was fenced while it started: another process runs under the same --node-id; stop it, or give this one another --node-id"
    )]
    Fenced,
    #[error("wal: {0}")]
    Wal(String),
    #[error("cores: {0}")]
    Cores(String),
}

/// How a node ended.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NodeEnd {
    /// It drained and left.
    #[error("drained")]
    Drained,
    /// The time to drain ran out; what was acked is durable and a successor recovers it.
    #[error("the drain took longer than its time; the next start recovers the rest")]
    DrainTimedOut,
    /// A second signal came while it drained.
    #[error(
        "a second signal ended the drain; what was acked is durable, and the next start recovers the rest"
    )]
    Hurried,
    /// Another process took over.
    #[error("fenced: {how}; another process serves as this node now")]
    Fenced { how: String },
    /// Something that a person must look at.
    #[error("{what}")]
    Failed { what: String },
}

impl From<CorePanic> for NodeEnd {
    fn from(panic: CorePanic) -> NodeEnd {
        NodeEnd::Failed { what: panic.to_string() }
    }
}
