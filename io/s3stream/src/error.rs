//! What can go wrong with reads, takeovers and clean-up, by what the caller must do about it.
//!
//! Lives on: anywhere.
use std::fmt;

use mink_object::GetError;
use mink_types::ObjectId;

/// What the caller must do.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The store does not answer now: the same call may succeed later.
    Retry,
    /// The object is not there. A reader plans again on a newer view; if that names the object too, it is lost.
    Missing { object: ObjectId },
    /// The object's bytes are not what was written. Nobody may use them; a person must look.
    Corrupt { object: ObjectId },
    /// Metadata knows that these bytes are lost. Only this range is affected (P-14).
    Lost { object: ObjectId },
    /// The chain's objects do not fit the view: the view is stale, or this is another cluster's chain. Stop.
    Stale,
    /// The caller's request is at fault.
    Misuse,
}

/// An error of s3stream. `Display` prints what happened, then the remedy.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<GetError>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error { kind, message: message.into(), source: None }
    }

    pub(crate) fn corrupt(object: ObjectId, message: impl fmt::Display) -> Error {
        Error::new(ErrorKind::Corrupt { object }, format!("{object}: {message}"))
    }

    /// What a failed read of `object` means.
    pub(crate) fn read(object: ObjectId, error: GetError) -> Error {
        let kind = match &error {
            GetError::NotFound => ErrorKind::Missing { object },
            GetError::Range { .. } | GetError::TooLarge { .. } | GetError::WrongLength { .. } => {
                ErrorKind::Corrupt { object }
            }
            GetError::Denied { .. } | GetError::Unavailable { .. } => ErrorKind::Retry,
        };
        Error { kind, message: format!("{object}"), source: Some(error) }
    }

    /// A listing or another call that concerns no single object failed.
    pub(crate) fn store(message: impl Into<String>, error: GetError) -> Error {
        Error { kind: ErrorKind::Retry, message: message.into(), source: Some(error) }
    }

    /// What the caller must do.
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// What a person can do about it.
    pub fn remedy(&self) -> &'static str {
        match self.kind {
            ErrorKind::Retry => {
                "check that the object store is reachable and the credentials are good; it heals by itself"
            }
            ErrorKind::Missing { .. } => "restore the object if somebody deleted it by hand",
            ErrorKind::Corrupt { .. } => {
                "restore the object from a version or a backup; the store has damaged it"
            }
            ErrorKind::Lost { .. } => "these records are lost; move the readers past them",
            ErrorKind::Stale => {
                "check that the metadata database and the storage belong together and that neither was set back"
            }
            ErrorKind::Misuse => "report this as a fault of Mink",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(source) = &self.source {
            write!(f, ": {source}")?;
        }
        write!(f, " ({})", self.remedy())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_ref().map(|source| source as _)
    }
}
