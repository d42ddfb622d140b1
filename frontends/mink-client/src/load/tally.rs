//! What a load has come to so far, counted by all its tasks.
//!
//! Lives on: shared by the load's tasks; its lock is held for one batch or read at a time.
//! Invariants: what was offered or asked for before the end of the warm-up is left out.
use super::outcome::{LATENCY_US_MAX, LoadResult, Second, histogram, us};
use crate::error::ClientError;
use hdrhistogram::Histogram;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Seconds of the series.
const SERIES_SECONDS_MAX: u64 = 3600;
/// Digits of a second's latencies that are told apart: there may be many seconds.
const SERIES_DIGITS: u8 = 2;

#[derive(Debug)]
pub(super) struct Tally {
    measured_from: Instant,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    result: LoadResult,
    seconds: Vec<Counted>,
    last: Instant,
}

#[derive(Debug)]
struct Counted {
    records: u64,
    bytes: u64,
    latency: Histogram<u32>,
}

/// Records that came to their end together.
#[derive(Debug, Default)]
pub(super) struct Came<'a> {
    pub(super) records: u64,
    pub(super) bytes: u64,
    pub(super) batches: u64,
    /// When waits began, and how many then: of every record that was acked, or of the one read.
    pub(super) since: &'a [(Instant, u64)],
    /// Of each record from its timestamp on, in ms.
    pub(super) ages_ms: &'a [u64],
}

impl Tally {
    pub(super) fn new(measured_from: Instant) -> Result<Tally, ClientError> {
        let state = State { result: LoadResult::new()?, seconds: Vec::new(), last: measured_from };
        Ok(Tally { measured_from, state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Counts are whole after every step under the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a wait that began then is counted.
    pub(super) fn counts(&self, since: Instant) -> bool {
        since >= self.measured_from
    }

    /// Records were acked, or read, at `at`. All of them count.
    pub(super) fn came(&self, at: Instant, came: &Came<'_>) {
        let mut state = self.state();
        let state = &mut *state;
        state.last = state.last.max(at);
        state.result.records += came.records;
        state.result.bytes += came.bytes;
        state.result.batches += came.batches;
        let second = at.saturating_duration_since(self.measured_from).as_secs();
        let mut second = second_of(&mut state.seconds, second);
        if let Some(second) = &mut second {
            second.records += came.records;
            second.bytes += came.bytes;
        }
        for (since, count) in came.since {
            let waited = us(at.saturating_duration_since(*since));
            state.result.latency.saturating_record_n(waited, *count);
            if let Some(second) = &mut second {
                let count = u32::try_from(*count).unwrap_or(u32::MAX);
                // It grows as far as the values need, which is all that could fail.
                second.latency.record_n(waited.min(LATENCY_US_MAX), count).unwrap_or_default();
            }
        }
        for age in came.ages_ms {
            state.result.end_to_end.saturating_record(us(Duration::from_millis(*age)));
        }
    }

    /// Records were given up.
    pub(super) fn failed(&self, at: Instant, records: u64, error: ClientError) {
        let mut state = self.state();
        state.last = state.last.max(at);
        state.result.errors += records;
        state.result.first_error.get_or_insert(error);
    }

    /// What one connection could not offer in time, and how late it was with the others.
    pub(super) fn paced(&self, late: &Histogram<u64>, unsent: u64) {
        let mut state = self.state();
        state.result.unsent += unsent;
        // Both have the same bounds, which is all that adding can fail for.
        state.result.late.add(late).unwrap_or_default();
    }

    /// The result, counted until now. A load that follows ends when it is told to, not with the last record.
    pub(super) fn result(&self, follows: bool) -> Result<LoadResult, ClientError> {
        let mut state = self.state();
        let last = if follows { Instant::now() } else { state.last };
        let mut result = std::mem::replace(&mut state.result, LoadResult::new()?);
        result.elapsed = last.saturating_duration_since(self.measured_from);
        result.series = state.seconds.drain(..).map(Second::from).collect();
        Ok(result)
    }
}

/// The count of a second, unless it is beyond those that are kept.
fn second_of(seconds: &mut Vec<Counted>, second: u64) -> Option<&mut Counted> {
    let at = usize::try_from(second).ok().filter(|_| second < SERIES_SECONDS_MAX)?;
    while seconds.len() <= at {
        seconds.push(Counted { records: 0, bytes: 0, latency: Histogram::new(SERIES_DIGITS).ok()? });
    }
    seconds.get_mut(at)
}

impl From<Counted> for Second {
    fn from(counted: Counted) -> Second {
        let p99 = Duration::from_micros(counted.latency.value_at_quantile(0.99));
        Second { records: counted.records, bytes: counted.bytes, p99 }
    }
}

/// How late the records of one connection were offered.
#[derive(Debug)]
pub(super) struct Lateness(pub(super) Histogram<u64>);

impl Lateness {
    pub(super) fn new() -> Result<Lateness, ClientError> {
        histogram().map(Lateness)
    }

    pub(super) fn note(&mut self, late: Duration) {
        self.0.saturating_record(us(late));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(number: u64) -> Duration {
        Duration::from_secs(number)
    }

    #[test]
    fn acks_count_in_the_second_in_which_they_came_and_waits_from_where_they_began() {
        let begun = Instant::now();
        let tally = Tally::new(begun + second(10)).unwrap();
        assert!(!tally.counts(begun + second(9)) && tally.counts(begun + second(10)));
        let since = [(begun + second(10), 1), (begun + second(11), 1)];
        tally.came(
            begun + second(12),
            &Came { records: 2, bytes: 200, batches: 1, since: &since, ages_ms: &[7] },
        );
        tally.came(begun + second(10), &Came { records: 1, bytes: 50, ..Came::default() });
        let result = tally.result(false).unwrap();
        assert_eq!((result.records, result.bytes, result.elapsed), (3, 250, second(2)));
        let counts: Vec<u64> = result.series.iter().map(|second| second.records).collect();
        assert_eq!(counts, [1, 0, 2]);
        let tenths: Vec<u128> = result.series.iter().map(|second| second.p99.as_millis() / 100).collect();
        assert_eq!(tenths, [0, 0, 20], "of the slower one");
        assert!(result.latency.equivalent(result.latency.max(), 2_000_000), "{}", result.latency.max());
        assert!(result.latency.equivalent(result.latency.min(), 1_000_000), "{}", result.latency.min());
        assert!(result.end_to_end.equivalent(result.end_to_end.max(), 7000));
    }

    #[test]
    fn i20_a_load_of_days_keeps_the_series_of_its_first_hour() {
        let begun = Instant::now();
        let tally = Tally::new(begun).unwrap();
        tally.came(begun + second(SERIES_SECONDS_MAX), &Came { records: 1, bytes: 1, ..Came::default() });
        assert_eq!(tally.result(false).unwrap().series.len(), 0);
        tally.came(begun + second(SERIES_SECONDS_MAX - 1), &Came { records: 1, bytes: 1, ..Came::default() });
        assert_eq!(tally.result(false).unwrap().series.len(), 3600);
    }
}
