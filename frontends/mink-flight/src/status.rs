//! Which gRPC status answers which situation: one exhaustive function for each family of errors.
//!
//! Lives on: anywhere (pure).
//! Invariants: I7: UNAVAILABLE, FAILED_PRECONDITION, INVALID_ARGUMENT and ABORTED stand for what did not happen; UNKNOWN for what may have.
use mink_api::AdminError;
use mink_ddl::{LiteralError, ParseError};
use mink_proto::ProtoError;
use mink_record::{RecordError, RecordErrorKind};
use mink_router::{AppendError, Lost, ReadError};
use mink_types::schema::SchemaError;
use mink_types::{BucketId, NameError, OptionError, PartitionId};
use std::fmt::Display;
use tonic::{Code, Status};

/// An error of one of the layers below, on its way to a client.
pub(crate) trait IntoStatus {
    fn into_status(self) -> Status;
}

/// `?` for errors of the layers below.
pub(crate) trait OrStatus<T> {
    fn or_status(self) -> Result<T, Status>;
}

impl<T, E: IntoStatus> OrStatus<T> for Result<T, E> {
    fn or_status(self) -> Result<T, Status> {
        self.map_err(IntoStatus::into_status)
    }
}

/// The status of an error, with what to do about it behind its words.
pub(crate) fn advised(error: impl IntoStatus, advice: impl Display) -> Status {
    let status = error.into_status();
    Status::new(status.code(), format!("{}; {advice}", status.message()))
}

impl IntoStatus for AdminError {
    fn into_status(self) -> Status {
        let code = match &self {
            AdminError::Exists { .. } => Code::AlreadyExists,
            AdminError::NotFound { .. } => Code::NotFound,
            AdminError::Invalid { .. } => Code::InvalidArgument,
            // Clients try again what is exhausted: a limit stays.
            AdminError::Limit { .. } => Code::FailedPrecondition,
            AdminError::Throttled { .. } => Code::ResourceExhausted,
            // May have been carried out.
            AdminError::Unavailable { .. } => Code::Unknown,
            AdminError::Conflict { .. } => Code::Aborted,
            AdminError::Stopping => Code::Unavailable,
        };
        Status::new(code, self.to_string())
    }
}

/// The words about a bucket without the id of its table: the client has named that, and knows no ids. A partition keeps its number, by
/// which SHOW PARTITIONS lists it.
fn without_table(words: String, bucket: Option<&BucketId>) -> String {
    let Some(bucket) = bucket else { return words };
    let named = match bucket.partition {
        PartitionId(0) => format!("bucket {}", bucket.bucket),
        partition => format!("partition {partition} bucket {}", bucket.bucket),
    };
    words.replacen(&bucket.to_string(), &named, 1)
}

/// A batch that was not ordered: nothing of it is stored.
impl IntoStatus for AppendError {
    fn into_status(self) -> Status {
        let code = match &self {
            AppendError::NotOwner { .. }
            | AppendError::Opening { .. }
            | AppendError::Draining
            | AppendError::TooManyProducers { .. } => Code::Unavailable,
            AppendError::TooLarge { .. } => Code::InvalidArgument,
            AppendError::OutOfOrder { .. } => Code::FailedPrecondition,
            AppendError::ProducerFenced { .. } => Code::Aborted,
        };
        let bucket = match &self {
            AppendError::NotOwner { bucket }
            | AppendError::Opening { bucket }
            | AppendError::TooManyProducers { bucket, .. }
            | AppendError::TooLarge { bucket, .. }
            | AppendError::OutOfOrder { bucket, .. }
            | AppendError::ProducerFenced { bucket, .. } => Some(bucket),
            AppendError::Draining => None,
        };
        Status::new(code, without_table(self.to_string(), bucket))
    }
}

impl IntoStatus for Lost {
    fn into_status(self) -> Status {
        Status::unknown(format!(
            "{self}: the rows may be stored or not; an idempotent writer sends them again under the same sequence"
        ))
    }
}

impl IntoStatus for ReadError {
    fn into_status(self) -> Status {
        let code = match &self {
            ReadError::NotOwner { .. }
            | ReadError::Opening { .. }
            | ReadError::LeaseExpired
            | ReadError::StoreUnavailable { .. } => Code::Unavailable,
            ReadError::OutOfRange { .. } => Code::OutOfRange,
            ReadError::EpochDiffers { .. } => Code::FailedPrecondition,
            ReadError::Damaged { .. } | ReadError::SearchGaveUp { .. } => Code::DataLoss,
        };
        let bucket = match &self {
            ReadError::NotOwner { bucket }
            | ReadError::Opening { bucket }
            | ReadError::StoreUnavailable { bucket, .. }
            | ReadError::OutOfRange { bucket, .. }
            | ReadError::EpochDiffers { bucket, .. }
            | ReadError::Damaged { bucket, .. }
            | ReadError::SearchGaveUp { bucket, .. } => Some(bucket),
            ReadError::LeaseExpired => None,
        };
        Status::new(code, without_table(self.to_string(), bucket))
    }
}

impl IntoStatus for RecordError {
    fn into_status(self) -> Status {
        let code = match self.kind() {
            RecordErrorKind::SchemaMismatch => Code::FailedPrecondition,
            RecordErrorKind::Corrupt => Code::DataLoss,
            // The list is open to the crate that owns it; what it adds are bytes that we do not take.
            _ => Code::InvalidArgument,
        };
        Status::new(code, self.to_string())
    }
}

macro_rules! invalid_argument {
    ($($error:ty),*) => {$(
        impl IntoStatus for $error {
            fn into_status(self) -> Status {
                Status::invalid_argument(self.to_string())
            }
        }
    )*};
}

invalid_argument!(ProtoError, ParseError, LiteralError, NameError, OptionError, SchemaError);

#[cfg(test)]
mod tests {
    use super::*;
    use mink_types::{BucketIndex, Offset, TableId};

    #[test]
    fn what_may_have_happened_is_never_told_as_what_did_not() {
        assert_eq!(Lost.into_status().code(), Code::Unknown);
        assert_eq!(AdminError::Unavailable { why: "x".into() }.into_status().code(), Code::Unknown);
    }

    #[test]
    fn a_bucket_is_told_without_the_id_of_its_table() {
        let told = |bucket| {
            let (offset, start, end) = (Offset(9), Offset(0), Offset(3));
            ReadError::OutOfRange { bucket, offset, start, end }.into_status().message().to_owned()
        };
        let bucket = BucketId::unpartitioned(TableId(1_966_080), BucketIndex(2));
        assert_eq!(told(bucket), "bucket 2: offset 9 is outside 0..=3");
        let partitioned = BucketId { partition: PartitionId(720_896), ..bucket };
        assert_eq!(told(partitioned), "partition 720896 bucket 2: offset 9 is outside 0..=3");
        let opening = AppendError::Opening { bucket }.into_status();
        assert_eq!(opening.message(), "bucket 2 is being opened; retry");
    }

    #[test]
    fn a_refusal_that_a_retry_cures_is_unavailable() {
        let bucket = BucketId::unpartitioned(TableId(1), BucketIndex(0));
        for error in
            [AppendError::NotOwner { bucket }, AppendError::Opening { bucket }, AppendError::Draining]
        {
            assert_eq!(error.into_status().code(), Code::Unavailable);
        }
    }
}
