//! The fault seam: two coins per request, *did it happen* and *was it reported*.
//!
//! Lives on: service runtime; in production nobody sits in the seam.
//! Owns: nothing. The HTTP connector asks it for `s3://`, [`crate::Counted`] for the other stores.
//! Invariants: all four combinations can be drawn: (no, no) and (no, yes) by `before`, (yes, no) by `after`, (yes, yes).
use std::fmt::Debug;

use async_trait::async_trait;

use crate::stats::{Op, RequestOutcome};

/// A request as the seam sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request<'a> {
    /// What it asks for.
    pub op: Op,
    /// The key, or the prefix of a listing; the first key of a delete; empty where the library does not say.
    pub key: &'a str,
    /// Bytes of content that it sends.
    pub bytes: u64,
}

/// The answer that the caller gets instead of the store's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultAnswer {
    /// An HTTP status: 409, 412, 403, 500, 503 ... Never a 2xx.
    Status(u16),
    /// No answer: the connection broke, or the time ran out.
    Lost,
}

impl FaultAnswer {
    /// How the counters class it.
    pub(crate) fn outcome(self) -> RequestOutcome {
        match self {
            FaultAnswer::Status(status) => RequestOutcome::of_status(status),
            FaultAnswer::Lost => RequestOutcome::Lost,
        }
    }
}

/// Somebody who is asked around each request. To delay a request, wait inside.
#[async_trait]
pub trait FaultSeam: Send + Sync + Debug {
    /// Before the request leaves: `Some` means that it never happens and the caller is told this.
    async fn before(&self, request: Request<'_>) -> Option<FaultAnswer>;

    /// After the store answered: `Some` means that it happened and the caller is told this instead.
    async fn after(&self, request: Request<'_>) -> Option<FaultAnswer>;
}
