//! How far a load has come, and what ends it: its time, or whoever watches it.
//!
//! Lives on: shared by the load's tasks and whoever watches.
//! Invariants: what ends a load stays so; nothing of it is waited for longer than `DRAIN_MAX` after that.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};

/// How long after its time, or after it was told to stop, a load waits for acks; an open loop still offers then what was due before.
pub const DRAIN_MAX: Duration = Duration::from_secs(5);

/// How far a load has come, warm-up included; may be looked at while it runs.
#[derive(Debug, Default)]
pub struct Progress {
    /// Acked, or read.
    pub records: AtomicU64,
    /// Of keys and values.
    pub bytes: AtomicU64,
    warm: Notify,
    /// As `stop_at`, to be looked at for every record.
    is_stopped: AtomicBool,
    stop_at: watch::Sender<Option<Instant>>,
}

impl Progress {
    pub(super) fn add(&self, records: u64, bytes: u64) {
        self.records.fetch_add(records, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn tell_warm(&self) {
        self.warm.notify_one();
    }

    /// Resolves once, when the warm-up has ended.
    pub async fn warm(&self) {
        self.warm.notified().await;
    }

    /// Ends the load as if its time were over.
    pub fn stop(&self) {
        self.stop_at.send_if_modified(|at| at.is_none() && at.replace(Instant::now()).is_none());
        self.is_stopped.store(true, Ordering::Release);
    }

    /// Whether the load was told to stop.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    /// Resolves when the load is told to stop.
    pub(super) async fn stopped(&self) -> Instant {
        let mut stop_at = self.stop_at.subscribe();
        let stop_at = stop_at.wait_for(Option::is_some).await.map(|at| *at);
        match stop_at {
            Ok(Some(at)) => at,
            // Its sender is in `self`: it is not gone.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }
}

/// When a load offers or asks no more, and when it gives up what is outstanding.
#[derive(Clone, Debug)]
pub(super) struct Ending {
    until: Option<Instant>,
    progress: Arc<Progress>,
}

impl Ending {
    pub(super) fn new(until: Option<Instant>, progress: &Arc<Progress>) -> Ending {
        Ending { until, progress: Arc::clone(progress) }
    }

    pub(super) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// When the load's time ends, if it has one.
    pub(super) fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Since when nothing more is offered, if it is so by now.
    pub(super) fn over_since(&self, now: Instant) -> Option<Instant> {
        let until = self.until.filter(|until| *until <= now);
        if !self.progress.is_stopped() {
            return until;
        }
        let stop_at = *self.progress.stop_at.borrow();
        [until, stop_at].into_iter().flatten().min()
    }

    /// Resolves when nothing more is to be offered.
    pub(super) async fn over(&self) -> Instant {
        match self.until {
            None => self.progress.stopped().await,
            Some(until) => tokio::select! {
                biased;
                at = self.progress.stopped() => at,
                () = sleep_until(until) => until,
            },
        }
    }

    /// Resolves when nothing is waited for any more.
    pub(super) async fn given_up(&self) {
        let over = self.over().await;
        sleep_until(over + DRAIN_MAX).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_hours(1);

    #[tokio::test]
    async fn a_load_is_over_at_its_time_or_when_it_is_stopped_whichever_is_first() {
        let (begun, progress) = (Instant::now(), Arc::<Progress>::default());
        let until = begun + Duration::from_millis(50);
        let ending = Ending::new(Some(until), &progress);
        assert_eq!((ending.over_since(begun), ending.over_since(until)), (None, Some(until)));
        assert_eq!(ending.over().await, until);
        assert!(Instant::now() >= until);
        let progress = Arc::<Progress>::default();
        let ending = Ending::new(Some(begun + LONG), &progress);
        progress.stop();
        let stopped = ending.over_since(Instant::now()).expect("it was stopped");
        // It is not given up while time passes.
        assert!(tokio::time::timeout(Duration::from_millis(5), ending.given_up()).await.is_err());
        progress.stop();
        assert_eq!(ending.over().await, stopped, "the first word counts");
        assert!(tokio::time::timeout(Duration::from_millis(5), ending.given_up()).await.is_err());
    }

    #[tokio::test]
    async fn without_a_time_a_load_goes_on_until_it_is_stopped() {
        let progress = Arc::<Progress>::default();
        let ending = Ending::new(None, &progress);
        assert!(tokio::time::timeout(Duration::from_millis(5), ending.over()).await.is_err());
        progress.stop();
        assert!(ending.over_since(Instant::now()).is_some() && progress.is_stopped());
    }
}
