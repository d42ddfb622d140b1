//! What a load came to.
//!
//! Lives on: anywhere (pure).
use crate::error::{ClientError, ErrorKind};
use hdrhistogram::Histogram;
use std::time::Duration;

/// Longest latency that is told apart, in us.
pub(super) const LATENCY_US_MAX: u64 = 3_600_000_000;
/// Digits of a latency that are told apart.
const DIGITS: u8 = 3;

/// What a load came to; nothing of its warm-up.
#[derive(Clone, Debug)]
pub struct LoadResult {
    /// Acked, or read.
    pub records: u64,
    /// Of keys and values.
    pub bytes: u64,
    /// Of them, those that came before the load's time was over or it was told to stop; all of a load that came to its own end.
    pub records_in_time: u64,
    /// Of keys and values of those.
    pub bytes_in_time: u64,
    /// That were acked; 0 of a load that reads.
    pub batches: u64,
    /// Records that were given up by an error, in the warm-up too.
    pub errors: u64,
    /// Records without an ack: given up by an error, outstanding at the end, or never offered. They are in `latency` with the time from
    /// when theirs began until the run ended, to a ms.
    pub unacked: u64,
    pub first_error: Option<ClientError>,
    /// Records of an open loop that were due, but so far behind at the end that they were not offered any more; about.
    pub unsent: u64,
    /// From the end of the warm-up to when the load's time was over or it was told to stop, else to the last ack or read. What a second
    /// brought is told over this.
    pub elapsed: Duration,
    /// From then to the last ack, or to when what was outstanding was given up.
    pub drain: Duration,
    /// Connections that were used.
    pub connections: usize,
    /// Of an ack, or of a read that brought records, in us; of a record without an ack until the end.
    pub latency: Histogram<u64>,
    /// How long after it was due a record of an open loop was offered to the producer, in us: this load's own part in its latency.
    pub late: Histogram<u64>,
    /// From a record's timestamp to when it had been read, in us; of a load that follows.
    pub end_to_end: Histogram<u64>,
    /// By the second in which acks or reads came; those of the first hour.
    pub series: Vec<Second>,
}

/// What came in one second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Second {
    pub records: u64,
    /// Of keys and values.
    pub bytes: u64,
    /// None came slower but one in a hundred.
    pub p99: Duration,
}

impl LoadResult {
    pub(super) fn new() -> Result<LoadResult, ClientError> {
        Ok(LoadResult {
            records: 0,
            bytes: 0,
            records_in_time: 0,
            bytes_in_time: 0,
            batches: 0,
            errors: 0,
            unacked: 0,
            first_error: None,
            unsent: 0,
            elapsed: Duration::ZERO,
            drain: Duration::ZERO,
            connections: 0,
            latency: histogram()?,
            late: histogram()?,
            end_to_end: histogram()?,
            series: Vec::new(),
        })
    }

    /// Records per second.
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    pub fn records_per_second(&self) -> f64 {
        self.records_in_time as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// MiB of keys and values per second.
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    pub fn mib_per_second(&self) -> f64 {
        self.bytes_in_time as f64 / f64::from(1 << 20) / self.elapsed.as_secs_f64().max(1e-9)
    }
}

/// Of durations in us.
pub(super) fn histogram() -> Result<Histogram<u64>, ClientError> {
    let made = Histogram::new_with_bounds(1, LATENCY_US_MAX, DIGITS);
    made.map_err(|error| ClientError::new(ErrorKind::Misuse, error.to_string()))
}

/// A duration as histograms take it.
pub(super) fn us(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX).max(1)
}
