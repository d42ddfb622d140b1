//! What the listener counts.
//!
//! Lives on: counted on the service runtime, read at a scrape.
use mink_api::Metric;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// Of connections that are closed for one reason, one line of log in this time.
const LOG_EVERY_SECONDS: u64 = 1;

/// Why a connection was closed by us.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Closed {
    /// Too many connections, in all or from one address.
    ConnectionLimit,
    /// New connections come too fast, in all or from one address.
    ConnectionRate,
    /// It did not say in time that it speaks HTTP/2.
    Preface,
    /// Its client took nothing of an answer that was cut off, while others waited for memory.
    WriteDeadline,
}

/// Reasons as metrics and logs name them.
const CLOSED: [(Closed, &str); 4] = [
    (Closed::ConnectionLimit, "connection_limit"),
    (Closed::ConnectionRate, "connection_rate"),
    (Closed::Preface, "frame_deadline"),
    (Closed::WriteDeadline, "write_deadline"),
];

impl Closed {
    pub(crate) fn name(self) -> &'static str {
        CLOSED.iter().find(|(closed, _)| *closed == self).map_or("other", |(_, name)| name)
    }
}

/// Connections closed for one reason.
#[derive(Debug, Default)]
struct ClosedCount {
    connections: AtomicU64,
    /// When a line of log may be written again, and what had been counted at the last.
    log_at: AtomicU64,
    logged: AtomicU64,
}

/// Counters of the listener; a clone counts into the same.
#[derive(Clone, Debug, Default)]
pub struct FlightCounters(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    calls: AtomicU64,
    refused: AtomicU64,
    rows_in: AtomicU64,
    bytes_in: AtomicU64,
    rows_out: AtomicU64,
    bytes_out: AtomicU64,
    /// Batches whose bytes were stored as they were sent.
    passed_in: AtomicU64,
    /// Batches that were sent as they were stored, whole or cut by column.
    passed_out: AtomicU64,
    batches_in: AtomicU64,
    batches_out: AtomicU64,
    too_large: AtomicU64,
    stalled: AtomicU64,
    cut_off: AtomicU64,
    connections: AtomicU64,
    accepted: AtomicU64,
    closed: [ClosedCount; CLOSED.len()],
}

fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

impl FlightCounters {
    pub(crate) fn call(&self) {
        add(&self.0.calls, 1);
    }

    pub(crate) fn refused(&self) {
        add(&self.0.refused, 1);
    }

    /// A message that was begun and did not come.
    pub(crate) fn stalled(&self) {
        add(&self.0.stalled, 1);
    }

    /// A scan whose client took too little while others waited.
    pub(crate) fn cut_off(&self) {
        add(&self.0.cut_off, 1);
    }

    /// A connection was let in.
    pub(crate) fn opened(&self) {
        add(&self.0.accepted, 1);
        add(&self.0.connections, 1);
    }

    /// A connection that was let in is gone.
    pub(crate) fn ended(&self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }

    /// A connection is closed by us. If a line of log is due: how many have been closed for this reason since the last.
    pub(crate) fn closed(&self, why: Closed) -> Option<u64> {
        let count = self.closed_count(why)?;
        let closed = count.connections.fetch_add(1, Ordering::Relaxed) + 1;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
        let due = count.log_at.load(Ordering::Relaxed);
        let next = now.saturating_add(LOG_EVERY_SECONDS);
        let ours = now >= due
            && count.log_at.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        ours.then(|| closed.saturating_sub(count.logged.swap(closed, Ordering::Relaxed)))
    }

    fn closed_count(&self, why: Closed) -> Option<&ClosedCount> {
        let of = CLOSED.iter().position(|(closed, _)| *closed == why)?;
        self.0.closed.get(of)
    }

    #[cfg(test)]
    pub(crate) fn closed_for(&self, why: Closed) -> u64 {
        self.closed_count(why).map_or(0, |count| count.connections.load(Ordering::Relaxed))
    }

    /// A message whose stated length is beyond the limit.
    pub(crate) fn too_large(&self) {
        add(&self.0.too_large, 1);
    }

    pub(crate) fn batch_in(&self, rows: u64, bytes: u64, as_sent: bool) {
        add(&self.0.batches_in, 1);
        add(&self.0.rows_in, rows);
        add(&self.0.bytes_in, bytes);
        add(&self.0.passed_in, u64::from(as_sent));
    }

    pub(crate) fn batch_out(&self, rows: u64, bytes: u64, as_stored: bool) {
        add(&self.0.batches_out, 1);
        add(&self.0.rows_out, rows);
        add(&self.0.bytes_out, bytes);
        add(&self.0.passed_out, u64::from(as_stored));
    }

    /// All counters, for `/metrics`.
    pub fn metrics(&self) -> Vec<Metric> {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let counts = &self.0;
        let way = |name, help, into, out| {
            [("in", into), ("out", out)]
                .map(|(way, count)| Metric::counter(name, help, read(count)).label("direction", way))
        };
        let mut metrics = vec![
            Metric::counter("mink_flight_calls", "calls of Arrow Flight", read(&counts.calls)),
            Metric::counter("mink_flight_refused", "calls that ended in an error", read(&counts.refused)),
            Metric::counter(
                "mink_flight_too_large",
                "messages beyond flight-message-bytes-max",
                read(&counts.too_large),
            ),
            Metric::counter(
                "mink_flight_stalled",
                "messages that were begun and did not come",
                read(&counts.stalled),
            ),
            Metric::counter(
                "mink_flight_cut_off",
                "scans that ended because their client took too little while others waited",
                read(&counts.cut_off),
            ),
            Metric::level("mink_flight_connections", "open connections", read(&counts.connections)),
            Metric::counter(
                "mink_flight_connections_accepted",
                "connections that were let in",
                read(&counts.accepted),
            ),
        ];
        metrics.extend(CLOSED.iter().zip(&counts.closed).map(|((_, reason), count)| {
            let (name, help) = ("mink_flight_connections_closed", "connections that the node closed");
            Metric::counter(name, help, read(&count.connections)).label("reason", *reason)
        }));
        metrics.extend(way("mink_flight_batches", "Arrow batches", &counts.batches_in, &counts.batches_out));
        metrics.extend(way("mink_flight_rows", "rows in Arrow batches", &counts.rows_in, &counts.rows_out));
        metrics.extend(way(
            "mink_flight_bytes",
            "bytes of Arrow batches",
            &counts.bytes_in,
            &counts.bytes_out,
        ));
        metrics.extend(way(
            "mink_flight_passed_batches",
            "Arrow batches stored as sent, or sent as stored",
            &counts.passed_in,
            &counts.passed_out,
        ));
        metrics
    }
}
