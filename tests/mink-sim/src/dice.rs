//! Choices of the world, all drawn from the seed.
//!
//! Lives on: the simulation's thread.
use mink_rt::Service;
use std::time::Duration;

/// Draws from the simulation's random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Dice(Service);

impl Dice {
    pub(crate) fn new(service: Service) -> Dice {
        Dice(service)
    }

    /// 0 to `n - 1`; 0 when `n` is 0.
    pub(crate) fn below(&self, n: u64) -> u64 {
        self.0.random_u64() % n.max(1)
    }

    pub(crate) fn index(&self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or(0)
    }

    /// True once in `n` times.
    pub(crate) fn one_in(&self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// True `percent` times of 100.
    pub(crate) fn percent(&self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A time from `least` to `most`; short ones are more frequent.
    pub(crate) fn between(&self, least: Duration, most: Duration) -> Duration {
        let spread = u64::try_from(most.saturating_sub(least).as_nanos()).unwrap_or(u64::MAX);
        let (a, b) = (self.below(spread.saturating_add(1)), self.below(spread.saturating_add(1)));
        least + Duration::from_nanos(a.min(b))
    }

    pub(crate) fn pick<T: Copy>(&self, of: &[T]) -> Option<T> {
        of.get(self.index(of.len())).copied()
    }
}
