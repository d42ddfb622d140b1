//! Counts of requests by operation and outcome, and of bytes by operation.
//!
//! Lives on: service runtime; the counters are atomic because connections of many tasks add to them.
//! Owns: the numbers behind `mink_object_store_requests_total{op,outcome}` and `mink_object_store_bytes_total{op}`.
//! Invariants: one request that left (or would have) is one count, whoever retried.
use std::sync::atomic::{AtomicU64, Ordering};

/// What a request asked for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(usize)]
pub enum Op {
    Put,
    Get,
    Head,
    List,
    Delete,
    /// Requests that the library sends for credentials.
    Credentials,
}

/// How a request ended, as far as the store's answer says.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(usize)]
pub enum RequestOutcome {
    /// 2xx.
    Ok,
    /// 404.
    NotFound,
    /// 412 (or 304 to a put).
    Exists,
    /// 409.
    Conflict,
    /// 401, 403.
    Denied,
    /// 429, 503.
    Throttled,
    /// Any other answer that says that it did not happen.
    Refused,
    /// Any other 5xx.
    ServerError,
    /// No answer: time-out, lost connection, failed sync.
    Lost,
}

impl Op {
    /// All of them, in the order of their numbers.
    pub const ALL: [Op; 6] = [Op::Put, Op::Get, Op::Head, Op::List, Op::Delete, Op::Credentials];

    /// The metric's label.
    pub fn label(self) -> &'static str {
        match self {
            Op::Put => "put",
            Op::Get => "get",
            Op::Head => "head",
            Op::List => "list",
            Op::Delete => "delete",
            Op::Credentials => "credentials",
        }
    }
}

impl RequestOutcome {
    /// All of them, in the order of their numbers.
    pub const ALL: [RequestOutcome; 9] = [
        RequestOutcome::Ok,
        RequestOutcome::NotFound,
        RequestOutcome::Exists,
        RequestOutcome::Conflict,
        RequestOutcome::Denied,
        RequestOutcome::Throttled,
        RequestOutcome::Refused,
        RequestOutcome::ServerError,
        RequestOutcome::Lost,
    ];

    /// The metric's label.
    pub fn label(self) -> &'static str {
        match self {
            RequestOutcome::Ok => "ok",
            RequestOutcome::NotFound => "not_found",
            RequestOutcome::Exists => "exists",
            RequestOutcome::Conflict => "conflict",
            RequestOutcome::Denied => "denied",
            RequestOutcome::Throttled => "throttled",
            RequestOutcome::Refused => "refused",
            RequestOutcome::ServerError => "server_error",
            RequestOutcome::Lost => "lost",
        }
    }

    /// The class of an HTTP status.
    pub fn of_status(status: u16) -> RequestOutcome {
        match status {
            200..=299 => RequestOutcome::Ok,
            404 => RequestOutcome::NotFound,
            304 | 412 => RequestOutcome::Exists,
            409 => RequestOutcome::Conflict,
            401 | 403 => RequestOutcome::Denied,
            429 | 503 => RequestOutcome::Throttled,
            500..=599 => RequestOutcome::ServerError,
            _ => RequestOutcome::Refused,
        }
    }
}

const OPS: usize = Op::ALL.len();
const OUTCOMES: usize = RequestOutcome::ALL.len();

/// A store's counters.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    requests: [[AtomicU64; OUTCOMES]; OPS],
    bytes: [AtomicU64; OPS],
}

impl Meter {
    /// Counts a request that ended.
    pub(crate) fn request(&self, op: Op, outcome: RequestOutcome) {
        if let Some(counter) = self.requests.get(op as usize).and_then(|row| row.get(outcome as usize)) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts bytes of content that were sent or received.
    pub(crate) fn bytes(&self, op: Op, bytes: u64) {
        if let Some(counter) = self.bytes.get(op as usize) {
            counter.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// The numbers now.
    pub(crate) fn snapshot(&self) -> StoreStats {
        let mut stats = StoreStats::default();
        for (to, from) in stats.requests.iter_mut().flatten().zip(self.requests.iter().flatten()) {
            *to = from.load(Ordering::Relaxed);
        }
        for (to, from) in stats.bytes.iter_mut().zip(&self.bytes) {
            *to = from.load(Ordering::Relaxed);
        }
        stats
    }
}

/// Requests and bytes of a store since it was opened.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StoreStats {
    requests: [[u64; OUTCOMES]; OPS],
    bytes: [u64; OPS],
}

impl StoreStats {
    /// Requests of `op` that ended in `outcome`.
    pub fn requests(&self, op: Op, outcome: RequestOutcome) -> u64 {
        self.requests.get(op as usize).and_then(|row| row.get(outcome as usize)).copied().unwrap_or(0)
    }

    /// Requests of `op`, whatever their outcome.
    pub fn requests_of(&self, op: Op) -> u64 {
        self.requests.get(op as usize).map_or(0, |row| row.iter().sum())
    }

    /// All requests.
    pub fn requests_total(&self) -> u64 {
        self.requests.iter().flatten().sum()
    }

    /// Bytes of content sent (put) or received (get).
    pub fn bytes(&self, op: Op) -> u64 {
        self.bytes.get(op as usize).copied().unwrap_or(0)
    }

    /// One row per operation and outcome that occurred, for the metric.
    pub fn rows(&self) -> impl Iterator<Item = (Op, RequestOutcome, u64)> + '_ {
        Op::ALL.into_iter().flat_map(move |op| {
            RequestOutcome::ALL
                .into_iter()
                .map(move |outcome| (op, outcome, self.requests(op, outcome)))
                .filter(|(_, _, count)| *count > 0)
        })
    }
}
