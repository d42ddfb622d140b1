//! What a load has come to so far, counted by all its tasks.
//!
//! Lives on: shared by the load's tasks; its lock is held for one batch or read at a time.
//! Invariants: what was offered or asked for before the end of the warm-up is left out. Once a load is over by its time or a stop, what
//! comes later counts as a record and in the latency, and not in the throughput.
use super::ending::DRAIN_MAX;
use super::outcome::{LATENCY_US_MAX, LoadResult, Second, histogram, us};
use crate::error::{ClientError, ErrorKind};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Seconds of the series.
const SERIES_SECONDS_MAX: u64 = 3600;
/// Digits of a second's latencies that are told apart: there may be many seconds.
const SERIES_DIGITS: u8 = 2;
/// Moments, to a ms, from which records without an ack are kept apart; those of later ones are counted from the last.
const UNACKED_MOMENTS_MAX: usize = 1 << 17;

#[derive(Debug)]
pub(super) struct Tally {
    measured_from: Instant,
    /// When the load's time ends, if it has one.
    until: Option<Instant>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    result: LoadResult,
    seconds: Vec<Counted>,
    /// When the last ack, read or failure came.
    last: Instant,
    /// Since when nothing was offered or asked for any more, if time or a stop ended the load.
    over: Option<Instant>,
    /// Records without an ack, by the ms after the warm-up from which their latency counts.
    unacked: BTreeMap<u64, u64>,
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
    pub(super) fn new(measured_from: Instant, until: Option<Instant>) -> Result<Tally, ClientError> {
        let state = State {
            result: LoadResult::new()?,
            seconds: Vec::new(),
            last: measured_from,
            over: None,
            unacked: BTreeMap::new(),
        };
        Ok(Tally { measured_from, until, state: Mutex::new(state) })
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
        if ![self.until, state.over].into_iter().flatten().any(|over| at > over) {
            state.result.records_in_time += came.records;
            state.result.bytes_in_time += came.bytes;
        }
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

    /// Nothing is offered or asked for any more: the load's time is over, or it was told to stop.
    pub(super) fn over(&self, at: Instant) {
        let mut state = self.state();
        state.over = Some(state.over.map_or(at, |over| over.min(at)));
    }

    /// Records have no ack, and get none that is waited for.
    pub(super) fn unacked(&self, since: &[(Instant, u64)]) {
        let mut state = self.state();
        for (since, count) in since {
            let at = since.saturating_duration_since(self.measured_from).as_millis();
            let mut at = u64::try_from(at).unwrap_or(u64::MAX);
            if state.unacked.len() >= UNACKED_MOMENTS_MAX && !state.unacked.contains_key(&at) {
                at = state.unacked.last_key_value().map_or(at, |(last, _)| *last);
            }
            *state.unacked.entry(at).or_default() += count;
        }
    }

    /// Records were given up by the producer, or a read failed.
    pub(super) fn failed(&self, at: Instant, records: u64, error: ClientError) {
        let mut state = self.state();
        state.last = state.last.max(at);
        state.result.errors += records;
        state.result.first_error.get_or_insert(error);
    }

    /// How late one connection was with what it offered, and from when on what it could not offer was due.
    pub(super) fn paced(&self, late: &Histogram<u64>, unsent: &[(Instant, u64)]) {
        self.unacked(unsent);
        let mut state = self.state();
        state.result.unsent += unsent.iter().map(|(_, count)| count).sum::<u64>();
        // Both have the same bounds, which is all that adding can fail for.
        state.result.late.add(late).unwrap_or_default();
    }

    /// The result, counted until now. A load that follows ends when it is told to, not with the last record.
    pub(super) fn result(&self, follows: bool) -> Result<LoadResult, ClientError> {
        self.result_at(Instant::now(), follows)
    }

    fn result_at(&self, now: Instant, follows: bool) -> Result<LoadResult, ClientError> {
        let mut state = self.state();
        let last = if follows { now } else { state.last };
        let mut result = std::mem::replace(&mut state.result, LoadResult::new()?);
        result.unacked = state.unacked.values().sum();
        let from = self.measured_from;
        if let Some(over) = state.over {
            result.elapsed = over.saturating_duration_since(from);
            let ended = if result.unacked > 0 { now } else { state.last };
            result.drain = ended.saturating_duration_since(over);
        } else {
            // It came to its own end: nothing was cut off.
            (result.records_in_time, result.bytes_in_time) = (result.records, result.bytes);
            result.elapsed = last.saturating_duration_since(from);
        }
        for (at, count) in std::mem::take(&mut state.unacked) {
            let since = from + Duration::from_millis(at);
            result.latency.saturating_record_n(us(now.saturating_duration_since(since)), count);
        }
        if result.unacked > result.unsent && now.saturating_duration_since(state.last) >= DRAIN_MAX {
            let what = format!("no ack came in the last {DRAIN_MAX:?}; what is outstanding may be stored");
            result.first_error.get_or_insert_with(|| ClientError::new(ErrorKind::Timeout, what));
        }
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
        let tally = Tally::new(begun + second(10), None).unwrap();
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
    fn what_comes_when_the_time_is_over_is_no_throughput_and_what_never_comes_is_latency() {
        let begun = Instant::now();
        let until = begun + second(10);
        let tally = Tally::new(begun, Some(until)).unwrap();
        let came = |at, records| {
            let since = [(begun + second(8), records)];
            tally.came(at, &Came { records, bytes: 10 * records, batches: 1, since: &since, ages_ms: &[] });
        };
        came(begun + second(9), 90);
        came(begun + second(11), 10);
        tally.over(until);
        tally.over(until + second(1));
        tally.unacked(&[(begun + second(9), 25)]);
        tally.paced(&histogram().unwrap(), &[(begun + second(4), 75)]);
        let result = tally.result_at(begun + second(12), false).unwrap();
        assert_eq!((result.records, result.records_in_time, result.bytes_in_time), (100, 90, 900));
        assert_eq!((result.elapsed, result.drain), (second(10), second(2)), "until it was given up");
        assert!((result.records_per_second() - 9.0).abs() < 1e-9);
        assert_eq!((result.unacked, result.unsent, result.latency.len()), (100, 75, 200));
        let at = |percentile| result.latency.value_at_percentile(percentile) / 100_000;
        assert_eq!((at(45.0), at(62.0), at(100.0)), (10, 30, 80), "8 s for those that were due at 4");
        assert!(result.first_error.is_none(), "an ack came a second ago");
    }

    #[test]
    fn a_server_that_went_silent_is_an_error_at_the_end() {
        let begun = Instant::now();
        let tally = Tally::new(begun, None).unwrap();
        tally.unacked(&[(begun, 1)]);
        let error = tally.result_at(begun + DRAIN_MAX, false).unwrap().first_error.expect("nothing came");
        assert_eq!(error.kind(), ErrorKind::Timeout);
    }

    #[test]
    fn i20_records_without_an_ack_are_kept_by_a_bounded_number_of_moments() {
        let begun = Instant::now();
        let tally = Tally::new(begun, None).unwrap();
        let all = 2 * UNACKED_MOMENTS_MAX as u64;
        let since: Vec<_> = (0..all).map(|ms| (begun + Duration::from_millis(ms), 1)).collect();
        tally.unacked(&since);
        assert_eq!(tally.state().unacked.len(), UNACKED_MOMENTS_MAX);
        assert_eq!(tally.result(false).unwrap().unacked, all);
    }

    #[test]
    fn i20_a_load_of_days_keeps_the_series_of_its_first_hour() {
        let begun = Instant::now();
        let tally = Tally::new(begun, None).unwrap();
        tally.came(begun + second(SERIES_SECONDS_MAX), &Came { records: 1, bytes: 1, ..Came::default() });
        assert_eq!(tally.result(false).unwrap().series.len(), 0);
        tally.came(begun + second(SERIES_SECONDS_MAX - 1), &Came { records: 1, bytes: 1, ..Came::default() });
        assert_eq!(tally.result(false).unwrap().series.len(), 3600);
    }
}
