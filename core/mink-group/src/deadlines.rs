//! The deadlines of one group, ordered by time.
//!
//! Lives on: within a group.
//! Invariants: a timer has one deadline at most and one place in the order; that place is never later than the deadline.
//!
//! A heartbeat only ever moves a deadline back, and most deadlines are moved many times before they come. So a later deadline is
//! noted beside the timer and the order is left as it is; when the old place is reached, the timer is put where it belongs.
use crate::MemberId;
use std::collections::{BTreeMap, BTreeSet};

/// What a deadline is for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Timer {
    /// The end of the join phase.
    Join,
    /// The end of the wait for ids that were handed out, when all members have joined (K-21).
    Grace,
    /// The end of the wait for members to sync.
    Sync,
    /// Look for offsets to expire.
    Expiry,
    /// The end of a member's session, or of what a new member may wait for its first generation.
    Member(MemberId),
    /// The end of an id that was handed out and not used.
    Pending(MemberId),
}

#[derive(Clone, Copy, Debug)]
struct Place {
    deadline_ms: u64,
    ordered_ms: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    order: BTreeSet<(u64, Timer)>,
    timers: BTreeMap<Timer, Place>,
}

impl Deadlines {
    /// Sets or moves a deadline.
    pub(crate) fn set(&mut self, timer: Timer, deadline_ms: u64) {
        if let Some(place) = self.timers.get_mut(&timer) {
            if place.ordered_ms <= deadline_ms {
                place.deadline_ms = deadline_ms;
                return;
            }
            self.cancel(&timer);
        }
        self.order.insert((deadline_ms, timer.clone()));
        self.timers.insert(timer, Place { deadline_ms, ordered_ms: deadline_ms });
    }

    pub(crate) fn cancel(&mut self, timer: &Timer) {
        if let Some(place) = self.timers.remove(timer) {
            self.order.remove(&(place.ordered_ms, timer.clone()));
        }
    }

    pub(crate) fn is_set(&self, timer: &Timer) -> bool {
        self.timers.contains_key(timer)
    }

    /// A timer whose deadline has come; it is not set any more.
    pub(crate) fn due(&mut self, now_ms: u64) -> Option<Timer> {
        // Ends: each turn takes a place that is due away, or moves it behind `now_ms`.
        while self.next().is_some_and(|next| next <= now_ms) {
            let (ordered_ms, timer) = self.order.pop_first()?;
            let place = self.timers.get_mut(&timer)?;
            if place.deadline_ms <= now_ms {
                self.timers.remove(&timer);
                return Some(timer);
            }
            debug_assert!(ordered_ms < place.deadline_ms);
            place.ordered_ms = place.deadline_ms;
            self.order.insert((place.deadline_ms, timer));
        }
        None
    }

    /// When to look again: not later than the next deadline.
    pub(crate) fn next(&self) -> Option<u64> {
        self.order.first().map(|(at, _)| *at)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        debug_assert_eq!(self.order.len(), self.timers.len());
        self.timers.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_that_moved_back_does_not_come_early() {
        let mut deadlines = Deadlines::default();
        deadlines.set(Timer::Join, 10);
        deadlines.set(Timer::Join, 30);
        assert_eq!(deadlines.next(), Some(10));
        assert_eq!(deadlines.due(20), None);
        assert_eq!(deadlines.next(), Some(30));
        assert_eq!(deadlines.due(30), Some(Timer::Join));
        assert_eq!((deadlines.next(), deadlines.len()), (None, 0));
    }

    #[test]
    fn a_deadline_that_moved_forward_comes_first() {
        let mut deadlines = Deadlines::default();
        deadlines.set(Timer::Join, 30);
        deadlines.set(Timer::Sync, 20);
        deadlines.set(Timer::Join, 10);
        assert_eq!(deadlines.due(25), Some(Timer::Join));
        assert_eq!(deadlines.due(25), Some(Timer::Sync));
        assert_eq!(deadlines.due(25), None);
    }

    #[test]
    fn a_cancelled_deadline_never_comes() {
        let mut deadlines = Deadlines::default();
        deadlines.set(Timer::Expiry, 30);
        deadlines.set(Timer::Expiry, 40);
        deadlines.cancel(&Timer::Expiry);
        assert_eq!((deadlines.due(100), deadlines.len()), (None, 0));
    }
}
