//! When records are due.
//!
//! Lives on: anywhere; the same seed gives the same times.
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// Slowest rate, in records per second.
const RATE_MIN: f64 = 1e-3;
/// Moments that stand for all records that were due and not offered.
const LEFT_MOMENTS_MAX: u64 = 10_000;

/// What decides when the next record goes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Pace {
    /// Closed loop: as soon as the producer has room, which is what is in flight.
    AsFastAsItGoes,
    /// Open loop: so many records a second over all connections, whatever the server does.
    Rate { per_second: f64, arrivals: Arrivals },
}

/// How the records of a rate are spread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Arrivals {
    /// As from many clients that know nothing of each other: bursts and gaps, the rate on average.
    #[default]
    Poisson,
    /// One after the other at the same distance.
    Even,
}

/// The times at which one connection's records are due.
#[derive(Debug)]
pub(super) struct Schedule {
    due: Instant,
    gap: Duration,
    arrivals: Arrivals,
    random: Random,
}

impl Schedule {
    /// Number `index` of so many connections, from `begun` on; none in a closed loop. The same seed gives the same times.
    pub(super) fn new(
        pace: Pace,
        (index, connections): (usize, usize),
        begun: Instant,
        seed: u64,
    ) -> Option<Schedule> {
        let Pace::Rate { per_second, arrivals } = pace else { return None };
        let all = Duration::from_secs_f64(1.0 / per_second.max(RATE_MIN));
        let times = |count: usize| all * u32::try_from(count).unwrap_or(u32::MAX);
        // Seeds that differ by one give numbers that have nothing in common.
        let random = Random(seed.wrapping_add(index as u64));
        let mut schedule = Schedule { due: begun + times(index), gap: times(connections), arrivals, random };
        if arrivals == Arrivals::Poisson {
            schedule.due = begun;
            schedule.step();
        }
        Some(schedule)
    }

    fn step(&mut self) {
        self.due += match self.arrivals {
            Arrivals::Even => self.gap,
            // The gap between two of them has an exponential distribution.
            Arrivals::Poisson => self.gap.mul_f64(-self.random.unit().ln()),
        };
    }

    /// When the next record is due; the one after it comes later.
    pub(super) fn next(&mut self) -> Instant {
        let due = self.due;
        self.step();
        due
    }

    /// About how many are due before `until` beside those that `next` gave, and about when: a few moments stand for all.
    pub(super) fn left(&self, until: Instant) -> Vec<(Instant, u64)> {
        let left = until.saturating_duration_since(self.due);
        let count = u64::try_from(left.as_nanos() / self.gap.as_nanos().max(1)).unwrap_or(u64::MAX);
        let steps = count.clamp(1, LEFT_MOMENTS_MAX);
        // As many more in the first ones as do not divide.
        let share = |step| count / steps + u64::from(step < count % steps);
        let at = |step: u64| self.due + left.mul_f64(ratio(step, steps));
        (0..steps).map(|step| (at(step), share(step))).filter(|(_, count)| *count > 0).collect()
    }
}

#[expect(clippy::cast_precision_loss, reason = "both are small")]
fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// Wall time by the clock that latencies are taken with.
#[derive(Debug)]
pub(super) struct Clock {
    at: Instant,
    ms: i64,
}

impl Clock {
    pub(super) fn now() -> Clock {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { at: Instant::now(), ms: i64::try_from(since.as_millis()).unwrap_or(i64::MAX) }
    }

    pub(super) fn ms(&self, now: Instant) -> i64 {
        let passed = now.saturating_duration_since(self.at).as_millis();
        self.ms.saturating_add(i64::try_from(passed).unwrap_or(i64::MAX))
    }
}

/// Numbers that look random and are the same for one seed (splitmix64).
#[derive(Clone, Debug)]
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Above 0, at most 1.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// From 0 up to `bound`, without it.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % (bound as u64).max(1)).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: u64 = 7;

    fn times(arrivals: Arrivals, connections: usize, count: usize) -> Vec<Duration> {
        let begun = Instant::now();
        let pace = Pace::Rate { per_second: 1000.0, arrivals };
        let mut all = Vec::new();
        for index in 0..connections {
            let mut schedule = Schedule::new(pace, (index, connections), begun, SEED).unwrap();
            all.extend((0..count).map(|_| schedule.next() - begun));
        }
        all.sort();
        all
    }

    #[test]
    fn an_even_rate_is_even_over_all_connections() {
        let expected: Vec<_> = (0..12).map(Duration::from_millis).collect();
        assert_eq!(times(Arrivals::Even, 3, 4), expected);
    }

    #[test]
    fn poisson_arrivals_have_the_rate_on_average_and_their_spread() {
        let times = times(Arrivals::Poisson, 2, 50_000);
        let seconds = times.last().unwrap().as_secs_f64();
        assert!((97.0..103.0).contains(&seconds), "{seconds} s for 100,000 at 1,000 a second");
        // Of gaps with an exponential distribution, 1 - 1/e are shorter than the mean.
        let short = times.windows(2).filter(|pair| pair[1] < pair[0] + Duration::from_millis(1)).count();
        assert!((61_000..65_500).contains(&short), "{short} of 99,999");
    }

    #[test]
    fn what_is_left_is_told_by_the_rate() {
        let begun = Instant::now();
        let pace = Pace::Rate { per_second: 100.0, arrivals: Arrivals::Even };
        let mut schedule = Schedule::new(pace, (0, 1), begun, SEED).unwrap();
        schedule.next();
        let left = schedule.left(begun + Duration::from_millis(1010));
        assert_eq!((left.len(), left[0]), (100, (begun + Duration::from_millis(10), 1)));
        assert!(left[99].0 >= begun + Duration::from_millis(999), "{:?}", left[99].0 - begun);
        assert_eq!(schedule.left(begun), []);
        assert!(Schedule::new(Pace::AsFastAsItGoes, (0, 1), begun, SEED).is_none());
    }

    #[test]
    fn i20_what_is_left_of_a_high_rate_is_told_by_few_moments_and_in_full() {
        let begun = Instant::now();
        let pace = Pace::Rate { per_second: 1e6, arrivals: Arrivals::Even };
        let schedule = Schedule::new(pace, (0, 1), begun, SEED).unwrap();
        let left = schedule.left(begun + Duration::from_mins(1));
        assert_eq!(left.len() as u64, LEFT_MOMENTS_MAX);
        assert_eq!(left.iter().map(|(_, count)| count).sum::<u64>(), 60_000_000);
    }

    #[test]
    fn the_seed_decides_the_times() {
        let first = |seed| {
            let begun = Instant::now();
            let pace = Pace::Rate { per_second: 1000.0, arrivals: Arrivals::Poisson };
            let mut schedule = Schedule::new(pace, (0, 1), begun, seed).unwrap();
            (0..10).map(|_| schedule.next() - begun).collect::<Vec<_>>()
        };
        assert_eq!(first(1), first(1));
        assert_ne!(first(1), first(2));
    }
}
