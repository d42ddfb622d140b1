//! What the test kit reports: its kind says what the test should do.
//! Lives on: anywhere (pure).
//! Owns: nothing.
//! Invariants: none of the product's.

use std::fmt;
use std::io;

/// Result of the test kit.
pub type Result<T> = std::result::Result<T, Error>;

/// What the caller should do about an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// A part of the outside world can't be had on this machine: skip the test by name.
    Unavailable,
    /// A bounded wait ended without its condition: fail the test.
    TimedOut,
    /// A process ended, or answered, otherwise than it should: fail the test.
    Failed,
    /// The test kit's own reading, writing or starting failed: fail the test, and look at the machine.
    Io,
}

/// An error of the test kit, with all that a reader of the test's output needs (logs included).
pub struct Error {
    kind: ErrorKind,
    message: String,
}

impl Error {
    /// An error of this kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// What to do about it.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The same error with what was being done in front.
    #[must_use]
    pub fn during(self, doing: impl fmt::Display) -> Self {
        Self { kind: self.kind, message: format!("{doing}: {}", self.message) }
    }

    pub(crate) fn io(doing: impl fmt::Display, source: &io::Error) -> Self {
        Self::new(ErrorKind::Io, format!("{doing}: {source}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// As `Display`: tests unwrap these errors, and a message with logs in it must keep its lines.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.kind, self.message)
    }
}

impl std::error::Error for Error {}
