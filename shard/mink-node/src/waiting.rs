//! The wait of a contender: until no reader of the old process can be served any more (decision 0003).
//!
//! Lives on: the service runtime.
//! Invariants: I3: this process acks and serves nothing of a chain it took over before TTL plus margin have passed on its own boot-time
//! clock since no renewal could succeed any more, or since it saw the last one that did. The TTL is the longer one of the old process's and its
//! own.
use crate::context::Context;
use crate::error::StartError;
use crate::takeover::Taken;
use mink_rt::{Instant, Service};
use mink_sql::CommandLog;
use mink_types::{Incarnation, Outcome};
use std::time::Duration;

/// Tries while the database does not answer.
const TRIES_MAX: u32 = 60;
/// Pause between them.
const PAUSE: Duration = Duration::from_secs(1);

/// The last read lease of a process that was taken over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Closed {
    /// When it became certain that it cannot be renewed.
    pub(crate) at: Instant,
    /// How long it holds, as its holder has it.
    pub(crate) ttl: Duration,
    /// The last beat's counter: no later one came through.
    pub(crate) counter: u64,
}

impl Closed {
    /// Whoever saw this very counter before knows that the lease was renewed no later than that (decision 0006).
    #[must_use]
    pub(crate) fn seen_before(self, counter: Option<u64>, since: Instant) -> Closed {
        let same = counter == Some(self.counter);
        Closed { at: if same { self.at.min(since) } else { self.at }, ..self }
    }
}

/// Ends an incarnation's heartbeats, then reads how long the last one's lease holds: what is read after the end is final.
pub(crate) async fn close_beats(
    log: &dyn CommandLog,
    service: &Service,
    incarnation: Incarnation,
) -> Result<Closed, StartError> {
    let mut closed: Option<Instant> = None;
    let mut what = String::new();
    for attempt in 0..TRIES_MAX {
        if attempt > 0 {
            service.sleep(PAUSE).await;
        }
        if closed.is_none() {
            match log.close_beats(incarnation).await {
                Outcome::Done(()) => closed = Some(service.now()),
                Outcome::Refused(refused) => what = refused.to_string(),
                Outcome::Unknown(unknown) => what = unknown.to_string(),
            }
        }
        let Some(at) = closed else { continue };
        match log.beats().await {
            Ok(beats) => {
                let last = beats.iter().find(|beat| beat.incarnation == incarnation);
                let (ttl, counter) = last.map(|beat| (beat.ttl, beat.counter)).unwrap_or_default();
                return Ok(Closed { at, ttl, counter });
            }
            Err(error) => what = error.to_string(),
        }
    }
    Err(StartError::Takeover { incarnation, what })
}

impl Context {
    /// Waits out the lease of the process that `taken` was taken from.
    pub(crate) async fn wait_for_lease(&self, taken: &Taken) {
        let until = taken.closed.at + self.lease_times().at_least(taken.closed.ttl).wait();
        let incarnation = taken.from.incarnation;
        let wait = until.duration_since(self.service.now());
        tracing::info!(%incarnation, ?wait, "waiting for the read lease of the old process");
        self.config
            .progress
            .tell(format!("waiting {wait:.1?} for the read lease of incarnation {incarnation}"));
        self.service.sleep_until(until).await;
        // A sleep does not count suspended time and may end early by rounding; the clock decides.
        while self.service.now() < until {
            self.service.sleep_until(until).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i3_a_wait_counts_from_before_the_end_only_for_who_saw_the_last_beat() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let closed = Closed { at: at(20), ttl: Duration::from_secs(10), counter: 7 };
        assert_eq!(closed.seen_before(Some(7), at(5)).at, at(5));
        assert_eq!(closed.seen_before(Some(6), at(5)).at, at(20), "another beat came through since");
        assert_eq!(closed.seen_before(None, at(5)).at, at(20));
        assert_eq!(closed.seen_before(Some(7), at(30)).at, at(20));
    }

    use mink_rt::{SimConfig, simulate};
    use mink_sql::{Beat, BeatRefused, Coins, Database, FaultyLog, LogCall, SqliteLog};
    use mink_types::ClusterName;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn i3_a_contender_learns_the_holders_lease_after_no_renewal_can_succeed() {
        let ended = simulate(SimConfig::seeded(1), |runtime| async move {
            let service = runtime.service();
            let cluster = ClusterName::new("mink").expect("valid");
            let inner: Arc<dyn CommandLog> =
                Arc::new(SqliteLog::open(&service, Database::Memory, &cluster).await.expect("opens"));
            let beat = Beat { incarnation: Incarnation(3), counter: 1, ttl: Duration::from_secs(77) };
            assert!(inner.beat(beat).await.is_done());
            // The first try is lost on its way, the second one's answer is, and then the database cannot be read for a while.
            let calls = AtomicUsize::new(0);
            let faulty = FaultyLog::new(Arc::clone(&inner), move |call| {
                match (call, calls.fetch_add(1, Ordering::Relaxed)) {
                    (LogCall::Write, 0) => Coins::RequestLost,
                    (LogCall::Write, 1) => Coins::AnswerLost,
                    (LogCall::Read, 3 | 4) => Coins::Refused,
                    _ => Coins::Well,
                }
            });
            let before = service.now();
            let closed = close_beats(&faulty, &service, beat.incarnation).await.expect("in the end");
            assert_eq!((closed.ttl, closed.counter), (beat.ttl, 1));
            assert!(closed.at >= before + PAUSE * 2, "an unknown end counts for nothing");
            assert!(service.now() >= closed.at + PAUSE * 2, "reading again does not move the end");
            assert_eq!(inner.beat(beat).await, Outcome::Refused(BeatRefused::Closed));
            let never = close_beats(&*inner, &service, Incarnation(9)).await.expect("closed");
            assert_eq!(never.ttl, Duration::ZERO, "it never had a lease");
        });
        ended.expect("completes");
    }
}
