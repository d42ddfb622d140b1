//! How many PUTs may be sent: a rate with a burst, so that the bill is bounded whatever the store's latency.
//!
//! Lives on: the WAL writer (pure: time comes from outside).
//! Invariants: within any span of t seconds at most burst + t * rate PUTs are granted.
use std::time::Duration;

use mink_rt::Instant;

const SECOND_NANOS: u64 = 1_000_000_000;

/// A budget of `rate` PUTs per second with a burst of `rate`; without a rate everything is granted.
#[derive(Debug)]
pub(crate) struct PutBudget {
    interval: Option<Duration>,
    burst: u32,
    /// When the budget will be full again: each PUT moves it one interval on.
    full_at: Instant,
}

impl PutBudget {
    pub(crate) fn new(rate: Option<u32>) -> PutBudget {
        let rate = rate.filter(|rate| *rate > 0);
        PutBudget {
            interval: rate.map(|rate| Duration::from_nanos(SECOND_NANOS / u64::from(rate))),
            burst: rate.unwrap_or(0),
            full_at: Instant::ZERO,
        }
    }

    /// The earliest moment at which the next PUT may be sent.
    pub(crate) fn ready_at(&self) -> Instant {
        match self.interval {
            None => Instant::ZERO,
            Some(interval) => {
                let room = interval.saturating_mul(self.burst.saturating_sub(1));
                self.full_at.checked_sub(room).unwrap_or(Instant::ZERO)
            }
        }
    }

    /// Takes one PUT out of the budget.
    pub(crate) fn spend(&mut self, now: Instant) {
        if let Some(interval) = self.interval {
            self.full_at = self.full_at.max(now) + interval;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn granted(budget: &mut PutBudget, from: u64, to: u64) -> u32 {
        let mut count = 0;
        for ms in from..to {
            let now = Instant::from_nanos(ms * 1_000_000);
            while budget.ready_at() <= now && count < 10_000 {
                budget.spend(now);
                count += 1;
            }
        }
        count
    }

    #[test]
    fn a_burst_then_the_rate_then_a_burst_after_a_rest() {
        let mut budget = PutBudget::new(Some(20));
        assert_eq!(granted(&mut budget, 10_000, 10_001), 20);
        assert_eq!(granted(&mut budget, 10_001, 11_001), 20);
        assert_eq!(granted(&mut budget, 20_000, 20_001), 20);
    }

    #[test]
    fn without_a_rate_nothing_is_held_back() {
        assert_eq!(granted(&mut PutBudget::new(None), 0, 1), 10_000);
    }
}
