//! What a client may ask to be forgotten, and why it is not.
//!
//! Lives on: anywhere (pure).
use crate::AdminError;
use mink_types::{BucketId, Offset};

/// Up to where a log is to be forgotten.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeleteUpTo {
    /// Everything that readers see now.
    HighWatermark,
    /// Everything below this offset.
    Offset(Offset),
}

/// Why the start of a log was not raised.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DeleteRecordsError {
    #[error("{bucket} does not exist")]
    NotFound { bucket: BucketId },
    #[error("{bucket} is not served by this node; refresh the metadata and retry at its owner")]
    NotOwner { bucket: BucketId },
    #[error("{bucket}: offset {offset} lies beyond {end}, where the log ends")]
    OutOfRange { bucket: BucketId, offset: Offset, end: Offset },
    #[error(transparent)]
    Admin(#[from] AdminError),
}
