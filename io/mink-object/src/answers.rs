//! What an HTTP status means for each call; also for faults that stand in for one.
//!
//! Lives on: anywhere (pure).
//! Invariants: I1, I7: a status that does not prove that nothing happened is `Unknown`.
use mink_types::Outcome;

use crate::faults::FaultAnswer;
use crate::store::{DeleteRefused, GetError, PutRefused, Span};

/// Longest piece of a store's error text that is kept (it may be a whole web page).
const REASON_CHARS_MAX: usize = 400;

/// The store's words, cut to a length that a log line bears.
pub(crate) fn reason(text: &dyn std::fmt::Display) -> String {
    text.to_string().chars().take(REASON_CHARS_MAX).collect()
}

/// What became of a create-only put that was answered with `status`.
pub(crate) fn put_status(status: u16, len: u64, reason: String) -> Outcome<(), PutRefused> {
    match status {
        200..=299 => Outcome::Done(()),
        // Some stores answer the condition with 304, as if it were a read.
        304 | 412 => Outcome::Refused(PutRefused::Exists),
        409 => Outcome::Refused(PutRefused::Conflict),
        401 | 403 => Outcome::Refused(PutRefused::Denied { reason }),
        413 => Outcome::Refused(PutRefused::TooLarge { len }),
        507 => Outcome::Refused(PutRefused::Full { reason }),
        // 501 is how stores without conditional puts refuse the header.
        501 => Outcome::Refused(PutRefused::Other { status: Some(501), reason }),
        // 408 and 429 may come from a proxy that had passed the request on.
        408 | 429 | 500..=599 => Outcome::unknown(format!("status {status}: {reason}")),
        _ => Outcome::Refused(PutRefused::Other { status: Some(status), reason }),
    }
}

/// Why a read that was answered with `status` gave nothing.
pub(crate) fn get_status(status: u16, span: Option<&Span>, reason: String) -> GetError {
    match (status, span) {
        // A missing bucket is no proof that an object is missing.
        (404, _) if reason.contains("NoSuchBucket") => GetError::Unavailable { reason },
        (404, _) => GetError::NotFound,
        (416, Some(Span::Range(asked))) => GetError::Range { asked: asked.clone() },
        (401 | 403, _) => GetError::Denied { reason },
        _ => GetError::Unavailable { reason: format!("status {status}: {reason}") },
    }
}

/// What became of a delete that was answered with `status`.
pub(crate) fn delete_status(status: u16, reason: String) -> Outcome<(), DeleteRefused> {
    match status {
        200..=299 => Outcome::Done(()),
        401 | 403 => Outcome::Refused(DeleteRefused::Denied { reason }),
        408 | 429 | 500..=599 => Outcome::unknown(format!("status {status}: {reason}")),
        _ => Outcome::Refused(DeleteRefused::Other { status: Some(status), reason }),
    }
}

impl FaultAnswer {
    /// The put's outcome when the caller is told this.
    pub fn put(self, len: u64) -> Outcome<(), PutRefused> {
        match self {
            FaultAnswer::Status(status) => put_status(status, len, "injected".into()),
            FaultAnswer::Lost => Outcome::unknown("injected: no answer"),
        }
    }

    /// The read's error when the caller is told this.
    pub fn get(self, span: Option<&Span>) -> GetError {
        match self {
            FaultAnswer::Status(status) => get_status(status, span, "injected".into()),
            FaultAnswer::Lost => GetError::Unavailable { reason: "injected: no answer".into() },
        }
    }

    /// The delete's outcome when the caller is told this.
    pub fn delete(self) -> Outcome<(), DeleteRefused> {
        match self {
            FaultAnswer::Status(status) => delete_status(status, "injected".into()),
            FaultAnswer::Lost => Outcome::unknown("injected: no answer"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k_4_conflict_decides_nothing_and_exists_does() {
        assert_eq!(put_status(409, 1, String::new()), Outcome::Refused(PutRefused::Conflict));
        assert_eq!(put_status(412, 1, String::new()), Outcome::Refused(PutRefused::Exists));
    }

    #[test]
    fn i7_only_a_status_that_proves_it_is_a_refusal() {
        for status in [408, 429, 500, 502, 503, 504] {
            assert!(matches!(put_status(status, 1, String::new()), Outcome::Unknown(_)), "{status}");
            assert!(matches!(delete_status(status, String::new()), Outcome::Unknown(_)), "{status}");
        }
        for status in [301, 400, 401, 403, 404, 405, 413, 501] {
            assert!(matches!(put_status(status, 1, String::new()), Outcome::Refused(_)), "{status}");
        }
    }

    #[test]
    fn a_missing_bucket_does_not_prove_that_an_object_is_missing() {
        assert_eq!(get_status(404, None, "<Code>NoSuchKey</Code>".into()), GetError::NotFound);
        assert!(matches!(get_status(404, None, "NoSuchBucket".into()), GetError::Unavailable { .. }));
    }
}
