//! What the listener counts, and the lines of its log that a hostile client may not flood.
//!
//! Lives on: the service runtime.
//! Owns: the counters. They are statistics: nothing is decided by them.
use crate::fetch_sessions::SessionCounts;
use crate::limits_met::LimitsMet;
use crate::log_gate::{LogGate, LogGates};
use mink_api::Metric;
use mink_kafka_wire::{ApiKey, ErrorCode, OFFERED};
use mink_router::TurnedAway;
use mink_types::TablePath;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// One line per kind in this time; what is held back is counted in the next line.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

/// Files that run out stay so for long, and who asks in vain asks again: one line in this time.
const LOG_OF_LASTING_INTERVAL: Duration = Duration::from_mins(5);

/// Whoever looks for what is wrong with his records sends them again after some seconds: one line per table and kind in this time.
const LOG_OF_ROWS_INTERVAL: Duration = Duration::from_secs(10);

/// Why a connection was closed by us.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Closed {
    /// The frame's length is negative or beyond the limit.
    FrameLength,
    /// The first bytes are those of TLS or HTTP, which this listener does not speak.
    OtherProtocol,
    /// The frame is not the message it says it is, or one that is not offered.
    Malformed,
    /// The frame did not arrive in its time.
    FrameDeadline,
    /// Nothing was asked for too long.
    Idle,
    /// The client did not take its answer.
    WriteDeadline,
    /// An append's outcome is not known (I7).
    Lost,
    /// A batch sent without asking for an answer was refused.
    Unacknowledged,
    /// Too many connections, in all or from one address.
    ConnectionLimit,
    /// New connections come too fast, in all or from one address.
    ConnectionRate,
    /// The process may not open many files more.
    OpenFiles,
    /// It was idle for the longest when room was needed.
    MadeRoom,
    /// The connection's task panicked, or an answer could not be encoded: a fault of ours.
    Fault,
}

const CLOSED: [(Closed, &str); 13] = [
    (Closed::FrameLength, "frame_length"),
    (Closed::OtherProtocol, "other_protocol"),
    (Closed::Malformed, "malformed"),
    (Closed::FrameDeadline, "frame_deadline"),
    (Closed::Idle, "idle"),
    (Closed::WriteDeadline, "write_deadline"),
    (Closed::Lost, "lost"),
    (Closed::Unacknowledged, "unacknowledged"),
    (Closed::ConnectionLimit, "connection_limit"),
    (Closed::ConnectionRate, "connection_rate"),
    (Closed::OpenFiles, "open_files"),
    (Closed::MadeRoom, "made_room"),
    (Closed::Fault, "fault"),
];

impl Closed {
    /// As metrics and logs name it.
    pub(crate) fn name(self) -> &'static str {
        CLOSED.iter().find(|(closed, _)| *closed == self).map_or("other", |(_, name)| name)
    }
}

impl From<TurnedAway> for Closed {
    fn from(why: TurnedAway) -> Closed {
        match why {
            TurnedAway::TooMany => Closed::ConnectionLimit,
            TurnedAway::TooFast => Closed::ConnectionRate,
        }
    }
}

#[derive(Debug)]
struct Inner {
    accepted: AtomicU64,
    open: AtomicU64,
    accept_errors: AtomicU64,
    requests: [AtomicU64; OFFERED.len()],
    closed: [AtomicU64; CLOSED.len()],
    partition_errors: AtomicU64,
    produced_bytes: AtomicU64,
    fetched_bytes: AtomicU64,
    copied_bytes: AtomicU64,
    fetch_sessions: AtomicU64,
    fetch_session_bytes: AtomicU64,
    started: Instant,
    log: [LogGate; CLOSED.len()],
    log_of_files: LogGate,
    log_of_transactions: LogGate,
    log_of_topics: LogGates,
    log_of_rows: LogGates,
    limits: LimitsMet,
}

/// A handle on the listener's counters; cheap to clone.
#[derive(Clone, Debug)]
pub struct KafkaCounters(Arc<Inner>);

impl KafkaCounters {
    pub(crate) fn new() -> KafkaCounters {
        KafkaCounters(Arc::new(Inner {
            accepted: AtomicU64::new(0),
            open: AtomicU64::new(0),
            accept_errors: AtomicU64::new(0),
            requests: std::array::from_fn(|_| AtomicU64::new(0)),
            closed: std::array::from_fn(|_| AtomicU64::new(0)),
            partition_errors: AtomicU64::new(0),
            produced_bytes: AtomicU64::new(0),
            fetched_bytes: AtomicU64::new(0),
            copied_bytes: AtomicU64::new(0),
            fetch_sessions: AtomicU64::new(0),
            fetch_session_bytes: AtomicU64::new(0),
            started: Instant::now(),
            log: std::array::from_fn(|_| LogGate::default()),
            log_of_files: LogGate::default(),
            log_of_transactions: LogGate::default(),
            log_of_topics: LogGates::default(),
            log_of_rows: LogGates::default(),
            limits: LimitsMet::default(),
        }))
    }

    pub(crate) fn accepted(&self) {
        self.0.accepted.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn accept_failed(&self) {
        self.0.accept_errors.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn opened(&self) {
        self.0.open.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn ended(&self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn requested(&self, key: ApiKey) {
        if let Some(at) = OFFERED.iter().position(|offer| offer.key == key)
            && let Some(count) = self.0.requests.get(at)
        {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn produced(&self, bytes: usize) {
        self.0.produced_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn fetched(&self, bytes: usize) {
        self.0.fetched_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// How many fetch sessions there are, and their bytes.
    pub(crate) fn fetch_sessions(&self, counts: SessionCounts) {
        self.0.fetch_sessions.store(counts.sessions, Ordering::Relaxed);
        self.0.fetch_session_bytes.store(counts.bytes, Ordering::Relaxed);
    }

    /// Bytes of a frame were moved in memory before it was whole.
    pub(crate) fn copied(&self, bytes: usize) {
        self.0.copied_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn partition_error(&self) {
        self.0.partition_errors.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a connection closed by us. When a line of log may be written about it, gives the number of those that were held
    /// back since the last.
    pub(crate) fn closed(&self, why: Closed) -> Option<u64> {
        let at = CLOSED.iter().position(|(closed, _)| *closed == why)?;
        self.0.closed.get(at)?.fetch_add(1, Ordering::Relaxed);
        self.0.log.get(at)?.pass(self.0.started.elapsed(), LOG_INTERVAL)
    }

    /// Whether a line of log may be written about files that run out.
    pub(crate) fn may_tell_of_files(&self) -> bool {
        self.0.log_of_files.pass(self.0.started.elapsed(), LOG_OF_LASTING_INTERVAL).is_some()
    }

    /// Whether a line of log may be written about a client that wants transactions: some ask for ever, and tell nobody.
    pub(crate) fn may_tell_of_transactions(&self) -> bool {
        self.0.log_of_transactions.pass(self.0.started.elapsed(), LOG_OF_LASTING_INTERVAL).is_some()
    }

    /// When a line of log may be written about a topic that is not made on first use, gives the number of those that were held back
    /// since the last: a client that wants it asks for ever.
    pub(crate) fn may_tell_of_topic(&self, name: &str) -> Option<u64> {
        self.0.log_of_topics.pass(name, self.0.started.elapsed(), LOG_OF_LASTING_INTERVAL)
    }

    /// The same about records that were refused for a table with columns, by the table and the kind of refusal.
    pub(crate) fn may_tell_of_rows(&self, table: &TablePath, code: ErrorCode) -> Option<u64> {
        let subject = format!("{table} {}", code.name());
        self.0.log_of_rows.pass(&subject, self.0.started.elapsed(), LOG_OF_ROWS_INTERVAL)
    }

    /// Limits that were met by requests.
    pub(crate) fn limits(&self) -> &LimitsMet {
        &self.0.limits
    }

    /// Connections that are open now.
    pub fn open_connections(&self) -> u64 {
        self.0.open.load(Ordering::Relaxed)
    }

    #[cfg(test)]
    pub(crate) fn closed_count(&self, why: Closed) -> u64 {
        CLOSED
            .iter()
            .position(|(closed, _)| *closed == why)
            .map_or(0, |at| self.0.closed[at].load(Ordering::Relaxed))
    }

    /// The counters as `/metrics` shows them.
    pub fn metrics(&self) -> Vec<Metric> {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        #[expect(clippy::cast_precision_loss, reason = "a number of connections is far below 2^52")]
        let open = read(&self.0.open) as f64;
        let mut metrics = vec![
            Metric::gauge("mink_kafka_connections", "open Kafka connections", open),
            Metric::counter(
                "mink_kafka_connections_accepted",
                "Kafka connections accepted",
                read(&self.0.accepted),
            ),
            Metric::counter(
                "mink_kafka_accept_errors",
                "failures to accept a Kafka connection",
                read(&self.0.accept_errors),
            ),
            Metric::counter(
                "mink_kafka_produced_bytes",
                "bytes of record batches that clients sent and that were made durable",
                read(&self.0.produced_bytes),
            ),
            Metric::counter(
                "mink_kafka_fetched_bytes",
                "bytes of record batches in Fetch answers",
                read(&self.0.fetched_bytes),
            ),
            Metric::counter(
                "mink_kafka_partition_errors",
                "partitions of Produce and Fetch requests answered with an error",
                read(&self.0.partition_errors),
            ),
            Metric::counter(
                "mink_copied_bytes",
                "bytes of requests copied in user space, by where",
                read(&self.0.copied_bytes),
            )
            .label("site", "frame"),
            Metric::level(
                "mink_kafka_fetch_sessions",
                "fetch sessions that are remembered",
                read(&self.0.fetch_sessions),
            ),
            Metric::level(
                "mink_kafka_fetch_session_bytes",
                "memory of the fetch sessions, estimated",
                read(&self.0.fetch_session_bytes),
            ),
        ];
        metrics.extend(OFFERED.iter().zip(&self.0.requests).map(|(offer, count)| {
            Metric::counter("mink_kafka_requests", "Kafka requests by API", read(count))
                .label("api", offer.key.name())
        }));
        metrics.extend(CLOSED.iter().zip(&self.0.closed).map(|((_, name), count)| {
            Metric::counter(
                "mink_kafka_connections_closed",
                "Kafka connections closed by the node, by reason",
                read(count),
            )
            .label("reason", *name)
        }));
        metrics.extend(self.0.limits.metrics());
        metrics
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_one_kind_gives_one_line_and_the_count_of_the_rest() {
        let counters = KafkaCounters::new();
        assert_eq!(counters.closed(Closed::Malformed), Some(0));
        let lines = (0..100).filter(|_| counters.closed(Closed::Malformed).is_some()).count();
        assert_eq!(lines, 0);
        assert_eq!(counters.closed(Closed::Idle), Some(0));
        assert_eq!(counters.closed_count(Closed::Malformed), 101);
    }
}
