//! The encoding of rows and snapshots: protobuf messages with fixed tags, and their checked conversions.
//!
//! Lives on: anywhere (pure).
//! Invariants: tags are never changed nor used again; a message that exists encodes to one sequence of bytes (I11), so no
//! maps here; what does not convert is refused, never guessed.
//! See: docs/format.md
mod commands;
mod parts;
mod results;
mod schema;
mod snapshot;

pub(crate) use commands::{GROUP_VERSION, Group, command, envelope};
pub(crate) use schema::schema_bytes;
pub(crate) use snapshot::{decode as decode_state, encode as encode_state};

use mink_types::LogIndex;

use crate::{ApplyError, SnapshotError};

/// Why bytes did not convert.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum WireError {
    /// No program writes this.
    Malformed(&'static str),
    /// A newer program may write this.
    Unsupported(String),
}

impl WireError {
    pub(crate) fn at(self, index: LogIndex) -> ApplyError {
        match self {
            WireError::Malformed(what) => ApplyError::Malformed { index, what },
            WireError::Unsupported(what) => ApplyError::Unsupported { index, what },
        }
    }
}

impl From<WireError> for SnapshotError {
    fn from(error: WireError) -> SnapshotError {
        match error {
            WireError::Malformed(what) => SnapshotError::Damaged { what },
            WireError::Unsupported(what) => SnapshotError::Unsupported { what },
        }
    }
}
