//! How long something took, counted in fixed buckets: no allocation, no floating point on the hot path.
//!
//! Lives on: the core; the copies anywhere.
use std::time::Duration;

/// Upper bounds of the buckets. What takes longer than the last one is counted behind them.
pub const LATENCY_BOUNDS: [Duration; 13] = [
    Duration::from_millis(1),
    Duration::from_millis(2),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(20),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(200),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(10),
];

/// Durations, counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Latencies {
    /// How many were at most as long as the bound at their place, and longer than the one before it; the last are beyond all.
    counts: [u64; LATENCY_BOUNDS.len() + 1],
    sum_nanos: u64,
}

impl Latencies {
    pub(crate) fn record(&mut self, took: Duration) {
        let at = LATENCY_BOUNDS.partition_point(|bound| *bound < took);
        if let Some(count) = self.counts.get_mut(at) {
            *count += 1;
        }
        self.sum_nanos = self.sum_nanos.saturating_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Each bucket's upper bound, none for the last, with its own count.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<Duration>, u64)> + '_ {
        let bounds = LATENCY_BOUNDS.into_iter().map(Some).chain([None]);
        bounds.zip(self.counts.iter().copied())
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// All of them together.
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum_nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_its_bucket_and_nothing_is_left_out() {
        let mut latencies = Latencies::default();
        for millis in [0, 1, 2, 3, 10_000, 10_001, 3_600_000] {
            latencies.record(Duration::from_millis(millis));
        }
        let counted: Vec<_> = latencies.buckets().filter(|(_, count)| *count > 0).collect();
        let bound = |millis| Some(Duration::from_millis(millis));
        assert_eq!(counted, [(bound(1), 2), (bound(2), 1), (bound(5), 1), (bound(10_000), 1), (None, 2)]);
        assert_eq!((latencies.count(), latencies.sum().as_millis()), (7, 3_620_007));
    }
}
