//! What the listener counts, and the line of its log that a flood may not repeat.
//!
//! Lives on: the service runtime.
//! Owns: the counters. They are statistics: nothing is decided by them.
use mink_api::Metric;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// One line in this time; what is held back is counted in the next.
const LOG_INTERVAL: Duration = Duration::from_mins(1);

/// Why a connection was closed by us.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Closed {
    /// The head of a request did not come in its time, or was never begun.
    HeadDeadline,
    /// The head is larger than the limit.
    HeadSize,
    /// It is not HTTP/1.
    Malformed,
    /// The body did not come in its time.
    BodyDeadline,
    /// The body is larger than the limit.
    BodySize,
    /// The client took nothing of its answer, for too long or while others waited for its memory.
    WriteDeadline,
    /// No next request came for too long.
    Idle,
    /// It was silent for the longest when room was needed.
    MadeRoom,
    /// All are busy, none could make room.
    ConnectionLimit,
    /// The connection's task panicked: a fault of ours.
    Fault,
}

const CLOSED: [(Closed, &str); 10] = [
    (Closed::HeadDeadline, "head_deadline"),
    (Closed::HeadSize, "head_size"),
    (Closed::Malformed, "malformed"),
    (Closed::BodyDeadline, "body_deadline"),
    (Closed::BodySize, "body_size"),
    (Closed::WriteDeadline, "write_deadline"),
    (Closed::Idle, "idle"),
    (Closed::MadeRoom, "made_room"),
    (Closed::ConnectionLimit, "connection_limit"),
    (Closed::Fault, "fault"),
];

/// What a limit met is told as, once in a while.
#[derive(Debug, Default)]
struct Line {
    last: Option<Instant>,
    held_back: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    accepted: AtomicU64,
    accept_errors: AtomicU64,
    open: AtomicU64,
    closed: [AtomicU64; CLOSED.len()],
    line: Mutex<Line>,
}

impl Counters {
    pub(crate) fn new() -> Arc<Counters> {
        Arc::default()
    }

    pub(crate) fn accepted(&self) {
        self.accepted.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn accept_failed(&self) {
        self.accept_errors.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn opened(&self) {
        self.open.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn ended(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn closed(&self, why: Closed) {
        for (count, (closed, _)) in self.closed.iter().zip(CLOSED) {
            if closed == why {
                count.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// How often this was asked in vain since it last said yes, if it may be told now that a limit is met.
    pub(crate) fn may_tell(&self, now: Instant) -> Option<u64> {
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        if line.last.is_some_and(|last| now.saturating_duration_since(last) < LOG_INTERVAL) {
            line.held_back += 1;
            return None;
        }
        line.last = Some(now);
        Some(std::mem::take(&mut line.held_back))
    }

    pub(crate) fn metrics(&self, answer_bytes: u64) -> Vec<Metric> {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut metrics = vec![
            Metric::counter(
                "mink_http_connections_accepted",
                "HTTP connections accepted",
                get(&self.accepted),
            ),
            Metric::counter(
                "mink_http_accept_errors",
                "HTTP connections that the system refused",
                get(&self.accept_errors),
            ),
            Metric::level("mink_http_connections", "HTTP connections open", get(&self.open)),
            Metric::level(
                "mink_http_answer_bytes",
                "bytes of large HTTP answers that clients have not taken",
                answer_bytes,
            ),
        ];
        let help = "HTTP connections that the node closed";
        metrics.extend(self.closed.iter().zip(CLOSED).map(|(count, (_, name))| {
            Metric::counter("mink_http_connections_closed", help, get(count)).label("reason", name)
        }));
        metrics
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_in_a_minute_tells_how_many_were_held_back() {
        let (counters, now) = (Counters::new(), Instant::now());
        assert_eq!(counters.may_tell(now), Some(0));
        assert_eq!([counters.may_tell(now), counters.may_tell(now)], [None, None]);
        assert_eq!(counters.may_tell(now + LOG_INTERVAL), Some(2));
    }
}
