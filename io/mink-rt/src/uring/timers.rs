//! The timers of one core: which task to wake when, and how long the core may park.
//! Lives on: one per core.
//! Owns: the deadlines.     Talks to: nobody.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant as Monotonic};

/// In the order in which they fire; the number tells timers of one deadline apart.
type Key = (Monotonic, u64);

#[derive(Debug, Default)]
pub(super) struct Timers {
    waiting: RefCell<BTreeMap<Key, Waker>>,
    next_number: std::cell::Cell<u64>,
}

impl Timers {
    pub(super) fn sleep(self: &Rc<Self>, duration: Duration) -> Sleep {
        let number = self.next_number.replace(self.next_number.get() + 1);
        // A deadline past the end of the clock is never.
        let key = Monotonic::now().checked_add(duration).map(|deadline| (deadline, number));
        Sleep { key, timers: Rc::clone(self) }
    }

    /// Wakes whoever waits for a time that has come.
    pub(super) fn fire(&self) {
        if self.waiting.borrow().is_empty() {
            return;
        }
        let now = Monotonic::now();
        // One at a time, for a waker may run code that starts or drops a timer.
        loop {
            let first = self.waiting.borrow().first_key_value().map(|(key, _)| *key);
            match first {
                Some(key) if key.0 <= now => {
                    let waker = self.waiting.borrow_mut().remove(&key);
                    waker.iter().for_each(Waker::wake_by_ref);
                }
                _ => return,
            }
        }
    }

    /// Time until the first deadline; none if there is none.
    pub(super) fn next(&self) -> Option<Duration> {
        let first = self.waiting.borrow().first_key_value().map(|(key, _)| key.0)?;
        Some(first.saturating_duration_since(Monotonic::now()))
    }
}

/// Completes at its deadline, never before.
#[derive(Debug)]
pub(super) struct Sleep {
    key: Option<Key>,
    timers: Rc<Timers>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Some(key) = self.key else { return Poll::Pending };
        if Monotonic::now() >= key.0 {
            return Poll::Ready(());
        }
        let mut waiting = self.timers.waiting.borrow_mut();
        let waker = waiting.entry(key).or_insert_with(|| cx.waker().clone());
        if !waker.will_wake(cx.waker()) {
            waker.clone_from(cx.waker());
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = &self.key {
            // Let go before the waker drops, which may be the last that knows of its task.
            let waker = self.timers.waiting.borrow_mut().remove(key);
            drop(waker);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    #[test]
    fn timers_are_forgotten_when_they_fire_or_are_dropped_and_never_is_never() {
        let timers = Rc::new(Timers::default());
        let mut cx = Context::from_waker(Waker::noop());
        let (mut soon, mut late, mut never) = (
            timers.sleep(Duration::from_millis(1)),
            timers.sleep(Duration::from_hours(1)),
            timers.sleep(Duration::MAX),
        );
        assert!(late.poll_unpin(&mut cx).is_pending());
        assert!(timers.next().unwrap() > Duration::from_secs(3_500));
        while soon.poll_unpin(&mut cx).is_pending() {
            assert!(timers.next().unwrap() <= Duration::from_millis(1));
            timers.fire();
        }
        drop(soon);
        assert!(never.poll_unpin(&mut cx).is_pending());
        assert_eq!(timers.waiting.borrow().len(), 1, "never needs no timer");
        drop(late);
        assert_eq!(timers.next(), None);
    }
}
