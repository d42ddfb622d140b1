//! Which lines of the log that clients cause are due: one in a while, however often they cause it.
//!
//! Lives on: the service runtime.
//! Owns: when a line may be written next, and how many were held back. Nothing else is decided by it.
//! Invariants: I20: subjects that are remembered are bounded; those beyond share one line.
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Subjects that are remembered one by one.
const SUBJECTS_MAX: usize = 1_000;

/// The subject that stands for all that there is no room to remember: none is called so.
const OTHERS: &str = "";

/// Lets one line through per interval. Times are since a start that all calls of a gate have in common.
#[derive(Debug, Default)]
pub(crate) struct LogGate {
    /// Milliseconds since the start at which the next line may go; 0 at first.
    next: AtomicU64,
    held_back: AtomicU64,
}

impl LogGate {
    /// The number of lines held back since the last, if one may be written now.
    pub(crate) fn pass(&self, now: Duration, interval: Duration) -> Option<u64> {
        let next = self.next.load(Ordering::Relaxed);
        let after = milliseconds(now.saturating_add(interval));
        let ours = milliseconds(now) >= next
            && self.next.compare_exchange(next, after, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if ours {
            return Some(self.held_back.swap(0, Ordering::Relaxed));
        }
        self.held_back.fetch_add(1, Ordering::Relaxed);
        None
    }

    fn is_open(&self, now: Duration) -> bool {
        milliseconds(now) >= self.next.load(Ordering::Relaxed)
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A gate for each subject that lines are about.
#[derive(Debug, Default)]
pub(crate) struct LogGates(Mutex<BTreeMap<String, LogGate>>);

impl LogGates {
    /// The number of lines about the subject that were held back since the last, if one may be written now.
    pub(crate) fn pass(&self, subject: &str, now: Duration, interval: Duration) -> Option<u64> {
        let mut gates = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(gate) = gates.get(subject) {
            return gate.pass(now, interval);
        }
        if gates.len() >= SUBJECTS_MAX {
            gates.retain(|_, gate| !gate.is_open(now));
        }
        let subject = if gates.len() < SUBJECTS_MAX { subject } else { OTHERS };
        gates.entry(subject.to_owned()).or_default().pass(now, interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);

    #[test]
    fn each_subject_has_its_line_and_the_next_one_counts_what_was_held_back() {
        let gates = LogGates::default();
        let pass = |subject: &str, seconds| gates.pass(subject, Duration::from_secs(seconds), MINUTE);
        assert_eq!((pass("a", 5), pass("b", 6)), (Some(0), Some(0)));
        assert_eq!((pass("a", 64), pass("a", 64), pass("b", 65)), (None, None, None));
        assert_eq!((pass("a", 65), pass("b", 66)), (Some(2), Some(1)));
    }

    #[test]
    fn i20_subjects_beyond_those_that_are_remembered_share_one_line() {
        let gates = LogGates::default();
        let lines = |from: usize, now| {
            (from..from + 2 * SUBJECTS_MAX).filter_map(|n| gates.pass(&format!("t{n}"), now, MINUTE)).count()
        };
        assert_eq!(lines(0, Duration::ZERO), SUBJECTS_MAX + 1);
        assert_eq!(lines(10 * SUBJECTS_MAX, Duration::ZERO), 0);
        assert_eq!(gates.0.lock().expect("sound").len(), SUBJECTS_MAX + 1);
        // Whose time is over is forgotten.
        assert_eq!(lines(0, MINUTE), SUBJECTS_MAX + 1);
    }
}
