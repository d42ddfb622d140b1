//! What can go wrong at the start of a runtime, and what to do about it.
//! Lives on: anywhere.

use std::fmt;

/// What the caller must do about an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An option has a value that this build or this machine cannot serve: change it, the remedy says how.
    Option,
    /// The machine refused a resource (a thread, a runtime): free it or raise the limit, then start again.
    Machine,
    /// The call came at the wrong place in the program: a fault of the caller, not of the user.
    Misuse,
}

/// A runtime could not be started. `Display` prints what happened and the remedy.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    remedy: &'static str,
    source: Option<std::io::Error>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>, remedy: &'static str) -> Self {
        Self { kind, message: message.into(), remedy, source: None }
    }

    pub(crate) fn with_source(mut self, source: std::io::Error) -> Self {
        self.source = Some(source);
        self
    }

    /// What the caller must do.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What happened, without the remedy.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What a person can do about it, as one sentence.
    pub fn remedy(&self) -> &'static str {
        self.remedy
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)?;
        if let Some(source) = &self.source {
            write!(f, ": {source}")?;
        }
        write!(f, " ({})", self.remedy)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}
