//! Why a shard does not append or read. Frontends turn each into their protocol's code in one place.
//!
//! Lives on: anywhere (pure).
use mink_types::{BucketEpoch, BucketId, ObjectId, Offset, ProducerEpoch, ProducerId, Sequence};

/// Why a batch was not ordered. Nothing of it is stored, so a retry is safe where the text says so (I7).
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AppendError {
    #[error("{bucket} is not served by this node; refresh the metadata and retry at its owner")]
    NotOwner { bucket: BucketId },
    #[error("{bucket} is being opened; retry")]
    Opening { bucket: BucketId },
    #[error("this node is draining; refresh the metadata and retry")]
    Draining,
    #[error(
        "{bucket}: the batch has {bytes} bytes, its table takes {bytes_max}; split it or raise max.message.bytes"
    )]
    TooLarge { bucket: BucketId, bytes: u64, bytes_max: u64 },
    #[error("{bucket}: producer {producer} sent sequence {found}, expected {expected:?}")]
    OutOfOrder { bucket: BucketId, producer: ProducerId, expected: Option<Sequence>, found: Sequence },
    #[error(
        "{bucket}: producer {producer} is at epoch {current}, the batch has {found}; a newer producer took over"
    )]
    ProducerFenced { bucket: BucketId, producer: ProducerId, current: ProducerEpoch, found: ProducerEpoch },
    #[error(
        "{bucket} already remembers {producers} live producers; retry later or raise producers-per-bucket-max"
    )]
    TooManyProducers { bucket: BucketId, producers: u32 },
}

/// Why a read has no answer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReadError {
    #[error("{bucket} is not served by this node; refresh the metadata and retry at its owner")]
    NotOwner { bucket: BucketId },
    #[error("{bucket} is being opened; retry")]
    Opening { bucket: BucketId },
    #[error("{bucket}: offset {offset} is outside {start}..={end}")]
    OutOfRange { bucket: BucketId, offset: Offset, start: Offset, end: Offset },
    #[error("{bucket} is at epoch {current}, the reader believes {found}; refresh the metadata")]
    EpochDiffers { bucket: BucketId, current: BucketEpoch, found: i32 },
    #[error("{bucket}: the store did not give {object}; retry ({what})")]
    StoreUnavailable { bucket: BucketId, object: ObjectId, what: String },
    #[error(
        "{bucket}: offsets from {offset} lie in {object}, which is lost or damaged ({what}); what lies beyond is readable"
    )]
    Damaged { bucket: BucketId, offset: Offset, object: ObjectId, what: String },
    #[error(
        "{bucket}: {batches} batches state timestamps that their records do not have, or cannot be read; the search by time \
         gave up before offset {from}; read from there, or search for a later time"
    )]
    SearchGaveUp { bucket: BucketId, batches: u32, from: Offset },
    #[error("the read lease of this node has run out; retry when its database is reachable")]
    LeaseExpired,
}
