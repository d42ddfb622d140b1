//! Errors of this crate, and how those of the tablet and of object reads become the router's.
//!
//! Lives on: anywhere.
use crate::ObjectReadError;
use mink_log::{AppendRefused, OutOfRange, RecoverError};
use mink_router::{AppendError, ReadError, ShardIndex};
use mink_types::{BucketId, Offset};

/// Why a bucket is not opened. The node must not serve it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OpenError {
    #[error(
        "{bucket} belongs to shard {owner}, it was sent to shard {sent_to}; report this as a fault of Mink"
    )]
    WrongShard { bucket: BucketId, owner: ShardIndex, sent_to: ShardIndex },
    #[error("{bucket} is open already; close it first")]
    Open { bucket: BucketId },
    #[error("this process was fenced and opens nothing any more; restart it")]
    Fenced,
    #[error("{bucket}: {error}")]
    Recover {
        bucket: BucketId,
        #[source]
        error: RecoverError,
    },
}

/// Why a bucket cannot be released.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReleaseError {
    #[error("{bucket} is not open here")]
    NotOpen { bucket: BucketId },
}

pub(crate) fn append_error(bucket: BucketId, refused: AppendRefused) -> AppendError {
    match refused {
        AppendRefused::TooLarge { bytes, bytes_max } => AppendError::TooLarge { bucket, bytes, bytes_max },
        AppendRefused::OutOfOrder { producer, expected, found } => {
            AppendError::OutOfOrder { bucket, producer, expected, found }
        }
        AppendRefused::ProducerFenced { producer, current, found } => {
            AppendError::ProducerFenced { bucket, producer, current, found }
        }
        AppendRefused::TooManyProducers { producers } => AppendError::TooManyProducers { bucket, producers },
    }
}

pub(crate) fn out_of_range(bucket: BucketId, error: OutOfRange) -> ReadError {
    let OutOfRange { offset, start, end } = error;
    ReadError::OutOfRange { bucket, offset, start, end }
}

/// The end of a read that will not be tried again. `offset` is where the affected range begins.
pub(crate) fn object_error(bucket: BucketId, offset: Offset, error: ObjectReadError) -> ReadError {
    match error {
        ObjectReadError::Missing { object } => {
            ReadError::Damaged { bucket, offset, object, what: "it is not in the store".into() }
        }
        ObjectReadError::Damaged { object, what } => ReadError::Damaged { bucket, offset, object, what },
        ObjectReadError::Unavailable { object, what } => ReadError::StoreUnavailable { bucket, object, what },
    }
}
