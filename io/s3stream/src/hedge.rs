//! When a late PUT is sent a second time: what PUTs took lately, and what hedges may cost.
//!
//! Lives on: service runtime; one per chain, shared by the tasks of its PUTs, hence the lock (held for a look-up).
//! Owns: a short window of latencies per size class, the credit of hedges.
//! Invariants: I20: windows and credit are bounded. A store that is slow for everything is not hedged to death: hedges are
//! earned by PUTs that ended well, one by [`PUTS_PER_HEDGE`], so an outage earns none and a slow store gets 5 % more PUTs.
//!
//! A hedge's own latency is noted, never the sum of waiting and hedge: the window would else creep up with every PUT that
//! a hedge has saved, until nothing is late any more.
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Latencies that are remembered of each size class.
const SAMPLES_MAX: usize = 128;
/// Fewer say nothing about a 99th percentile: no hedge.
const SAMPLES_MIN: usize = 32;
/// A PUT is late after so many times the recent p99 ...
const LATE_FACTOR: u32 = 2;
/// ... and not before this: what a second request could win is then not worth it.
const LATE_MIN: Duration = Duration::from_millis(25);
/// PUTs that must end well for one hedge.
const PUTS_PER_HEDGE: u32 = 20;
/// Hedges that may be saved up.
const HEDGES_MAX: u32 = 4;
/// Size classes: what a PUT takes goes with its bytes, so a long object must not look late among short ones.
const CLASS_BYTES: [u64; 3] = [256 << 10, 2 << 20, 16 << 20];

/// The latencies of one chain's PUTs and the hedges that they allow.
#[derive(Debug, Default)]
pub(crate) struct Hedges {
    inner: Mutex<Inner>,
    sent: AtomicU64,
    won: AtomicU64,
}

#[derive(Debug, Default)]
struct Inner {
    windows: [VecDeque<Duration>; CLASS_BYTES.len() + 1],
    /// In PUTs: a hedge costs [`PUTS_PER_HEDGE`] of it.
    credit: u32,
}

impl Hedges {
    /// After how long a PUT of so many bytes is late; none while too little is known.
    pub(crate) fn late_after(&self, bytes: u64) -> Option<Duration> {
        let inner = self.lock();
        let window = inner.windows.get(class(bytes)).filter(|window| window.len() >= SAMPLES_MIN)?;
        let mut sorted: Vec<Duration> = window.iter().copied().collect();
        sorted.sort_unstable();
        let p99 = sorted.get((sorted.len() * 99).div_ceil(100).saturating_sub(1))?;
        Some((*p99 * LATE_FACTOR).max(LATE_MIN))
    }

    /// Takes one hedge, if there is credit for it and `pay` finds that the bill has room.
    pub(crate) fn take(&self, pay: impl FnOnce() -> bool) -> bool {
        let mut inner = self.lock();
        match inner.credit.checked_sub(PUTS_PER_HEDGE) {
            Some(left) if pay() => {
                inner.credit = left;
                self.sent.fetch_add(1, Ordering::Relaxed);
                true
            }
            _ => false,
        }
    }

    /// A PUT, first or hedge, has created its object, so long after it was sent.
    pub(crate) fn done(&self, bytes: u64, took: Duration, hedge: bool) {
        let mut inner = self.lock();
        inner.credit = (inner.credit + 1).min(HEDGES_MAX * PUTS_PER_HEDGE);
        if let Some(window) = inner.windows.get_mut(class(bytes)) {
            if window.len() == SAMPLES_MAX {
                window.pop_front();
            }
            window.push_back(took);
        }
        if hedge {
            self.won.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Hedges sent.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Hedges that ended before the PUT that was late.
    pub(crate) fn won(&self) -> u64 {
        self.won.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Each change leaves windows and credit whole.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn class(bytes: u64) -> usize {
    CLASS_BYTES.iter().take_while(|most| bytes > **most).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn nothing_is_late_before_there_are_samples_of_its_size() {
        let hedges = Hedges::default();
        for n in 0..SAMPLES_MIN {
            assert_eq!(hedges.late_after(1_000), None, "{n} samples");
            hedges.done(1_000, MS * 50, false);
        }
        assert_eq!(hedges.late_after(1_000), Some(MS * 100));
        assert_eq!(hedges.late_after(8 << 20), None);
        for _ in 0..SAMPLES_MAX {
            hedges.done(1_000, MS * 2, false);
        }
        assert_eq!(hedges.late_after(1_000), Some(LATE_MIN));
    }

    #[test]
    fn a_single_straggler_does_not_hide_the_next_one() {
        let hedges = Hedges::default();
        hedges.done(1_000, MS * 9_000, false);
        for _ in 1..SAMPLES_MAX {
            hedges.done(1_000, MS * 50, false);
        }
        assert_eq!(hedges.late_after(1_000), Some(MS * 100));
    }

    #[test]
    fn i20_hedges_are_earned_by_puts_that_end_well_and_are_few() {
        let hedges = Hedges::default();
        assert!(!hedges.take(|| panic!("nothing to pay for")));
        (0..PUTS_PER_HEDGE).for_each(|_| hedges.done(1, MS, false));
        assert!(!hedges.take(|| false), "not paid");
        assert!(hedges.take(|| true) && !hedges.take(|| true));
        (0..10_000).for_each(|_| hedges.done(1, MS, false));
        assert_eq!((0..100).filter(|_| hedges.take(|| true)).count(), HEDGES_MAX as usize);
        assert_eq!(hedges.sent(), u64::from(HEDGES_MAX) + 1);
    }
}
