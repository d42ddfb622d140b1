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
use mink_types::{NameError, OptionError};
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

impl IntoStatus for AdminError {
    fn into_status(self) -> Status {
        let code = match &self {
            AdminError::Exists { .. } => Code::AlreadyExists,
            AdminError::NotFound { .. } => Code::NotFound,
            AdminError::Invalid { .. } => Code::InvalidArgument,
            AdminError::Limit { .. } | AdminError::Throttled { .. } => Code::ResourceExhausted,
            // May have been carried out.
            AdminError::Unavailable { .. } => Code::Unknown,
            AdminError::Conflict { .. } => Code::Aborted,
            AdminError::Stopping => Code::Unavailable,
        };
        Status::new(code, self.to_string())
    }
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
        Status::new(code, self.to_string())
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
        Status::new(code, self.to_string())
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
    use mink_types::{BucketId, BucketIndex, TableId};

    #[test]
    fn what_may_have_happened_is_never_told_as_what_did_not() {
        assert_eq!(Lost.into_status().code(), Code::Unknown);
        assert_eq!(AdminError::Unavailable { why: "x".into() }.into_status().code(), Code::Unknown);
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
