//! What can go wrong, by what the caller must do about it; one function says what each code of gRPC means.
//!
//! Lives on: anywhere (pure).
//! Invariants: I7: a code that does not surely stand for what did not happen is `Unknown`.
use mink_proto::ProtoError;
use std::error::Error;
use std::fmt;
use tonic::{Code, ConnectError, Status};

/// What the caller must do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FlightErrorKind {
    /// It did not happen, and may succeed later: try again.
    Retry,
    /// It may have happened or not: look before it is done again. An idempotent writer is resumed.
    Unknown,
    /// It did not happen and never will as it was asked: ask differently.
    Refused,
    /// What it names does not exist: create it, or correct the name.
    NotFound,
    /// What it would create exists.
    Exists,
    /// It did not happen, for somebody else was faster: look again, then decide.
    Conflict,
    /// The place lies before the first row that is kept, or behind the last: choose another.
    OutOfRange,
    /// Stored rows cannot be read: whoever runs the cluster must look.
    Damaged,
    /// The server's answer makes no sense: a fault of it or of this client.
    Protocol,
}

/// An error of the native client.
///
/// ```
/// use mink_client::flight::{FlightClient, FlightErrorKind};
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
/// # runtime.block_on(async {
/// // Nobody listens there.
/// let error = FlightClient::connect("127.0.0.1:1").await.expect_err("no server");
/// assert_eq!(error.kind(), FlightErrorKind::Retry);
/// let error = FlightClient::connect("https://127.0.0.1").await.expect_err("no such address");
/// assert_eq!(error.kind(), FlightErrorKind::Refused);
/// # });
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlightError {
    kind: FlightErrorKind,
    message: String,
}

impl FlightError {
    pub(super) fn new(kind: FlightErrorKind, message: impl Into<String>) -> FlightError {
        FlightError { kind, message: message.into() }
    }

    pub(super) fn refused(message: impl Into<String>) -> FlightError {
        FlightError::new(FlightErrorKind::Refused, message)
    }

    pub(super) fn protocol(message: impl fmt::Display) -> FlightError {
        FlightError::new(FlightErrorKind::Protocol, format!("the server's answer makes no sense: {message}"))
    }

    /// What an answer of the server, or the lack of one, means.
    pub(super) fn from_status(status: &Status) -> FlightError {
        let kind = match attempt(status) {
            Attempt::NeverSent => FlightErrorKind::Retry,
            Attempt::Broken => FlightErrorKind::Unknown,
            Attempt::Answered => kind_of(status.code()),
        };
        FlightError::new(kind, text(status))
    }

    /// What the caller must do.
    pub fn kind(&self) -> FlightErrorKind {
        self.kind
    }

    /// What went wrong, in words.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Whether the same call may succeed later. After `Unknown` it may also be done twice.
    pub fn is_retriable(&self) -> bool {
        matches!(self.kind, FlightErrorKind::Retry | FlightErrorKind::Unknown)
    }
}

impl fmt::Display for FlightError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for FlightError {}

impl From<ProtoError> for FlightError {
    fn from(error: ProtoError) -> FlightError {
        FlightError::protocol(error)
    }
}

/// How far an attempt came that ended with an error.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Attempt {
    /// There was no connection.
    NeverSent,
    /// The connection broke: nobody answered.
    Broken,
    /// The server answered with the status.
    Answered,
}

/// Tells an answer of the server from an error that was made here.
pub(super) fn attempt(status: &Status) -> Attempt {
    let mut source = status.source();
    if source.is_none() {
        return Attempt::Answered;
    }
    while let Some(error) = source {
        if error.is::<ConnectError>() {
            return Attempt::NeverSent;
        }
        source = error.source();
    }
    Attempt::Broken
}

/// What a code that the server answered with asks of the caller.
fn kind_of(code: Code) -> FlightErrorKind {
    match code {
        Code::Unavailable | Code::ResourceExhausted => FlightErrorKind::Retry,
        Code::Cancelled | Code::Unknown | Code::DeadlineExceeded | Code::Internal => FlightErrorKind::Unknown,
        Code::InvalidArgument
        | Code::FailedPrecondition
        | Code::PermissionDenied
        | Code::Unauthenticated
        | Code::Unimplemented => FlightErrorKind::Refused,
        Code::NotFound => FlightErrorKind::NotFound,
        Code::AlreadyExists => FlightErrorKind::Exists,
        Code::Aborted => FlightErrorKind::Conflict,
        Code::OutOfRange => FlightErrorKind::OutOfRange,
        Code::DataLoss => FlightErrorKind::Damaged,
        Code::Ok => FlightErrorKind::Protocol,
    }
}

/// The server's words, or what broke.
fn text(status: &Status) -> String {
    let mut text = if status.message().is_empty() {
        status.code().description().to_owned()
    } else {
        status.message().to_owned()
    };
    let mut source = status.source();
    while let Some(error) = source {
        let why = error.to_string();
        if !text.contains(&why) {
            text = format!("{text}: {why}");
        }
        source = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_have_happened_is_unknown() {
        for code in [Code::Unknown, Code::Cancelled, Code::DeadlineExceeded, Code::Internal] {
            assert_eq!(kind_of(code), FlightErrorKind::Unknown, "{code:?}");
        }
    }

    #[test]
    fn a_connection_that_broke_is_no_answer_whatever_its_code() {
        let broken = Status::from_error(Box::new(std::io::Error::other("reset")));
        assert_eq!(attempt(&broken), Attempt::Broken);
        assert_eq!(FlightError::from_status(&broken).kind(), FlightErrorKind::Unknown);
        let unmade = Status::from_error(Box::new(ConnectError("refused".into())));
        assert_eq!((unmade.code(), attempt(&unmade)), (Code::Unavailable, Attempt::NeverSent));
        assert_eq!(FlightError::from_status(&Status::unavailable("opening")).kind(), FlightErrorKind::Retry);
    }
}
