//! What can go wrong, by what the caller must do about it.
//!
//! Lives on: anywhere.
use mink_kafka_wire::ErrorCode;
use std::fmt;

/// What the caller must do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No connection, or it broke: what was asked may have happened. The client's own loops retry.
    Connection,
    /// The server does not answer in time: what was asked may have happened.
    Timeout,
    /// The server answered with this code.
    Server(ErrorCode),
    /// The server's answer makes no sense: a fault of it or of this client.
    Protocol,
    /// The caller's request is at fault.
    Misuse,
}

/// An error of the client.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientError {
    kind: ErrorKind,
    message: String,
}

impl ClientError {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> ClientError {
        ClientError { kind, message: message.into() }
    }

    /// For callers that find an answer at odds with what was acked before.
    pub fn misread(message: impl Into<String>) -> ClientError {
        ClientError::new(ErrorKind::Protocol, message)
    }

    /// What a code of the server means for `what`; the server's own words are kept.
    pub(crate) fn server(code: i16, what: &str, words: Option<&str>) -> ClientError {
        let (kind, name) = match ErrorCode::from_code(code) {
            Some(code) => (ErrorKind::Server(code), code.name()),
            None => (ErrorKind::Protocol, "an error code that this client does not know"),
        };
        let words = words.map(|words| format!(": {words}")).unwrap_or_default();
        ClientError { kind, message: format!("{what}: {name} ({code}){words}") }
    }

    /// What the caller must do.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The server's code, if it answered with one.
    pub fn code(&self) -> Option<ErrorCode> {
        match self.kind {
            ErrorKind::Server(code) => Some(code),
            _ => None,
        }
    }

    /// Whether the same call may succeed later.
    pub fn is_retriable(&self) -> bool {
        match self.kind {
            ErrorKind::Connection | ErrorKind::Timeout => true,
            ErrorKind::Server(code) => code.retriable(),
            ErrorKind::Protocol | ErrorKind::Misuse => false,
        }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ClientError {}
