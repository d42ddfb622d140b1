//! Why a row, a group or a snapshot could not be taken.
//!
//! Lives on: anywhere (pure).
use mink_types::{LogIndex, RowHash};

/// Why a row was not applied. The state is as before.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ApplyError {
    /// Rows are missing in between: wait for them, or load the snapshot.
    #[error("row {found} came where row {expected} was expected")]
    Gap { expected: LogIndex, found: LogIndex },
    /// The row was applied before: skip it.
    #[error("row {found} was applied before; row {expected} is next")]
    Old { expected: LogIndex, found: LogIndex },
    /// The row does not follow from the one applied before it: the database has lost or changed rows (I13). Stop.
    #[error(
        "row {index} does not follow from the row before it (hash {found}, expected {expected}): the database has lost or \
         changed rows; run `mink metadata recover`"
    )]
    Hash { index: LogIndex, expected: RowHash, found: RowHash },
    /// The payload is no group of commands. Stop.
    #[error("row {index} is damaged: {what}; run `mink metadata recover`")]
    Malformed { index: LogIndex, what: &'static str },
    /// A newer program wrote the row. Stop.
    #[error("row {index} needs a newer version of mink: {what}; upgrade this node")]
    Unsupported { index: LogIndex, what: String },
}

/// Why a command does not fit into a row.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GroupError {
    /// The row is full: put the command into the next one.
    #[error("the row is full")]
    Full,
    /// The command fits into no row: cut it into several.
    #[error("the command takes {bytes} bytes, a row at most {max}; cut it into several")]
    TooLarge { bytes: usize, max: usize },
}

/// Why a snapshot was not loaded.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SnapshotError {
    /// Not a snapshot, cut off, or changed.
    #[error("the snapshot is damaged: {what}; remove it, and an older one is used")]
    Damaged { what: &'static str },
    /// A newer program wrote it.
    #[error("the snapshot needs a newer version of mink: {what}; upgrade this node")]
    Unsupported { what: String },
}
