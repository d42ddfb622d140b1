//! A load's result for tests to fill in.
//!
//! Lives on: tests.
use hdrhistogram::Histogram;
use mink_client::load::LoadResult;
use std::time::Duration;

/// Of a load that did nothing.
pub(super) fn empty() -> LoadResult {
    let histogram = || Histogram::new_with_bounds(1, 3_600_000_000, 3).unwrap();
    LoadResult {
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
        connections: 1,
        latency: histogram(),
        late: histogram(),
        end_to_end: histogram(),
        series: Vec::new(),
    }
}
