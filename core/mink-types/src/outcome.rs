//! How a call that left the process may end.
//!
//! Lives on: anywhere (pure).
//! Invariants: `Unknown` is never turned into a failure (I1, I7): nothing is acked, renamed, deleted or fenced on it.
use std::fmt;

/// The end of a call to the object store or the database.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub enum Outcome<T, R> {
    /// It happened, once.
    Done(T),
    /// It did not happen and will not.
    Refused(R),
    /// It may have happened, may happen still, or never: look, or repeat the very same call.
    Unknown(Indeterminate),
}

/// Why the outcome of a call is not known: a lost answer, a time-out, a 5xx, a failed sync.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Indeterminate {
    pub reason: String,
}

impl Indeterminate {
    /// An unknown outcome for `reason`.
    pub fn new(reason: impl Into<String>) -> Indeterminate {
        Indeterminate { reason: reason.into() }
    }
}

impl fmt::Display for Indeterminate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "outcome unknown: {}", self.reason)
    }
}

impl std::error::Error for Indeterminate {}

impl<T, R> Outcome<T, R> {
    /// An unknown outcome for `reason`.
    pub fn unknown(reason: impl Into<String>) -> Outcome<T, R> {
        Outcome::Unknown(Indeterminate::new(reason))
    }

    /// The same outcome with another answer.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Outcome<U, R> {
        match self {
            Outcome::Done(value) => Outcome::Done(f(value)),
            Outcome::Refused(refusal) => Outcome::Refused(refusal),
            Outcome::Unknown(unknown) => Outcome::Unknown(unknown),
        }
    }

    /// Whether the call is known to have happened.
    pub fn is_done(&self) -> bool {
        matches!(self, Outcome::Done(_))
    }
}
