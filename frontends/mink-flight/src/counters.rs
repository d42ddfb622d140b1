//! What the listener counts.
//!
//! Lives on: counted on the service runtime, read at a scrape.
use mink_api::Metric;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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
        ];
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
