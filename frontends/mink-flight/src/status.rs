//! Which gRPC status answers which situation: one exhaustive function for each family of errors.
//!
//! Lives on: anywhere (pure).
//! Invariants: I7: UNAVAILABLE, FAILED_PRECONDITION, INVALID_ARGUMENT and ABORTED stand for what did not happen; UNKNOWN for what may have.
use crate::address;
use http::HeaderMap;
use mink_api::AdminError;
use mink_ddl::{LiteralError, ParseError};
use mink_metadata::Table;
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

/// Of a status' text, in bytes. It travels in a header, each byte beyond ASCII as three, and clients give up on 16 KiB of headers.
const TEXT_BYTES_MAX: usize = 4 << 10;
const LEFT_OUT: &str = "...";
/// How tonic begins to tell of a message that is no protobuf of its call.
const UNDECODED: &str = "failed to decode Protobuf message";

/// A status as clients are told it: its text cut to what a header carries; bytes that are no message of Flight's are the client's fault.
pub(crate) fn told(status: Status) -> Status {
    let code = match status.code() {
        Code::Internal if status.message().starts_with(UNDECODED) => Code::InvalidArgument,
        code => code,
    };
    let text = status.message();
    if code == status.code() && text.len() <= TEXT_BYTES_MAX {
        return status;
    }
    let cut = match text.len() {
        0..=TEXT_BYTES_MAX => text.to_owned(),
        _ => text[..text.floor_char_boundary(TEXT_BYTES_MAX - LEFT_OUT.len())].to_owned() + LEFT_OUT,
    };
    Status::new(code, cut)
}

/// The same of an answer that is nothing but a status.
pub(crate) fn told_in(headers: &mut HeaderMap) {
    let Some(status) = Status::from_header_map(headers).filter(|status| status.code() != Code::Ok) else {
        return;
    };
    // The texts of our own are sound; were one not, what tonic wrote stays.
    drop(told(status).add_header(headers));
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
/// which SHOW PARTITIONS lists it, until [`of_bucket`] names it.
fn without_table(words: String, bucket: Option<&BucketId>) -> String {
    let Some(bucket) = bucket else { return words };
    let named = match bucket.partition {
        PartitionId(0) => format!("bucket {}", bucket.bucket),
        partition => format!("partition {partition} bucket {}", bucket.bucket),
    };
    words.replacen(&bucket.to_string(), &named, 1)
}

/// A status about a bucket of this table, with the values of its partition instead of the number.
pub(crate) fn of_bucket(table: &Table, bucket: &BucketId, status: Status) -> Status {
    let numbered = format!("partition {} bucket {}", bucket.partition, bucket.bucket);
    if !status.message().contains(&numbered) || table.partition(bucket.partition).is_none() {
        return status;
    }
    let named = status.message().replacen(&numbered, &address::bucket_name(table, bucket), 1);
    Status::new(status.code(), named)
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
        // What other listeners call a producer is a writer here.
        let text = match &self {
            AppendError::OutOfOrder { bucket, expected, found, .. } => format!(
                "{bucket}: the batch has the sequence {found}, and {} follows; the action writer.state tells it",
                expected.map_or_else(|| "none".to_owned(), |expected| expected.to_string())
            ),
            AppendError::ProducerFenced { bucket, current, found, .. } => format!(
                "{bucket}: the writer is at epoch {current} there, and the batch has {found}: a newer one has its id; open another writer"
            ),
            AppendError::TooManyProducers { bucket, producers } => format!(
                "{bucket} remembers {producers} writers, and no more; try again later, or raise producers-per-bucket-max"
            ),
            _ => self.to_string(),
        };
        Status::new(code, without_table(text, bucket))
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
    fn a_text_is_cut_to_what_a_header_carries_and_no_message_is_no_fault_of_the_node() {
        for long in ["x".repeat(1 << 20), "\u{20ac}".repeat(1 << 18)] {
            let status = told(Status::not_found(long));
            let (code, text) = (status.code(), status.message());
            assert!(
                code == Code::NotFound && text.len() <= TEXT_BYTES_MAX && text.ends_with(LEFT_OUT),
                "{text}"
            );
            let mut headers = HeaderMap::new();
            status.add_header(&mut headers).expect("it goes into headers");
            assert!(headers["grpc-message"].len() < 16 << 10);
        }
        assert_eq!(told(Status::not_found("short")).message(), "short");
        let garbage = Status::internal("failed to decode Protobuf message: invalid wire type");
        assert_eq!(told(garbage.clone()).code(), Code::InvalidArgument);
        assert_eq!(told(Status::internal("a fault")).code(), Code::Internal);
        let mut headers = HeaderMap::new();
        garbage.add_header(&mut headers).expect("it goes into headers");
        told_in(&mut headers);
        let found = Status::from_header_map(&headers).expect("a status");
        assert_eq!((found.code(), found.message()), (Code::InvalidArgument, garbage.message()));
        // An answer that has no status yet is left as it is.
        let mut headers = HeaderMap::new();
        told_in(&mut headers);
        assert!(headers.is_empty());
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
