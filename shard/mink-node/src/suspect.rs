//! Watches the heartbeats of other lives, and takes over those that have stopped (decisions 0003, 0015).
//!
//! Lives on: one task on the service runtime.
//! Owns: what it saw of each heartbeat, on this process's boot-time clock; which chains it could not empty, and when to try them again.
//! Talks to: the command log, the store.
//! Invariants: the clock decides nothing but whom to suspect: what follows is a `Fence` in the log, and the same walk, adoption and wait
//! as at a start (I3, I5, I13). A node whose cluster has no other life watches nothing and asks the database nothing. A chain that cannot be
//! emptied costs no second attempt while nothing about it changes, and holds up no other chain.
use crate::context::Context;
use crate::error::{NodeEnd, StartError};
use crate::lease::LeaseTimes;
use mink_coordinator::{Beating, Facts, Heartbeats, Look, Silence, Takeover, takeovers};
use mink_metadata::State;
use mink_rt::Instant;
use mink_types::{BucketId, Incarnation};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Looks that may fail in a row before all that was seen counts for nothing.
const LOOKS_MISSED_MAX: u32 = 2;
/// Least time between two looks at the log's view while nobody is watched: commits of a busy node come many times a second.
const LOOK_PAUSE: Duration = Duration::from_secs(1);
/// Longest pause before a takeover that failed is tried again: each try costs a row.
const RETRY_PAUSE_MAX: Duration = Duration::from_mins(4);

/// Runs until the node ends.
pub(crate) async fn watch(context: Arc<Context>) {
    let mut watched = Watched::default();
    let mut attempts = Attempts::default();
    let mut changes = context.metadata.changes();
    let every = context.lease_times().renew_every();
    loop {
        let state = context.state();
        attempts.forget_all_but(|id| state.incarnation(id).is_some() && !state.dead(id));
        context.take_over_all(&mut watched, &mut attempts, &state).await;
        if context.has_work(&attempts) {
            context.service.sleep(every).await;
        } else {
            if changes.next().await.is_none() {
                return;
            }
            context.service.sleep(LOOK_PAUSE.min(every)).await;
        }
    }
}

/// What was seen of the other lives.
#[derive(Debug, Default)]
struct Watched {
    heartbeats: Heartbeats,
    /// The last look failed, and that was told.
    unread: bool,
}

/// How a chain stands in the view.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Left {
    fenced: bool,
    hanging: Vec<BucketId>,
}

impl Left {
    fn of(state: &State, id: Incarnation) -> Left {
        let fenced = state.incarnation(id).is_some_and(|life| life.fenced);
        Left { fenced, hanging: state.hanging(id).collect() }
    }
}

/// The last attempt to take a chain over.
#[derive(Debug)]
struct Attempt {
    /// How the chain stood after it.
    left: Left,
    /// How many have failed in a row while it stood so.
    failed: u32,
    /// When the next is due. None if another would find what this one found: it came to its end, and what still hangs there must be
    /// looked at by a person (K-6).
    again: Option<Instant>,
}

/// Chains that were not emptied.
#[derive(Debug, Default)]
struct Attempts(BTreeMap<Incarnation, Attempt>);

impl Attempts {
    /// The last attempt, if nothing about the chain has changed since.
    fn last(&self, id: Incarnation, left: &Left) -> Option<&Attempt> {
        self.0.get(&id).filter(|last| last.left == *left)
    }

    fn is_due(&self, id: Incarnation, left: &Left, now: Instant) -> bool {
        self.last(id, left).is_none_or(|last| last.again.is_some_and(|again| again <= now))
    }

    /// Whether no attempt is due at any time, as things are.
    fn is_settled(&self, id: Incarnation, left: &Left) -> bool {
        self.last(id, left).is_some_and(|last| last.again.is_none())
    }

    fn failed(&self, id: Incarnation) -> u32 {
        self.0.get(&id).map_or(0, |last| last.failed)
    }

    fn note_done(&mut self, id: Incarnation, left: Left) {
        self.0.insert(id, Attempt { left, failed: 0, again: None });
    }

    /// The pause until the next one.
    fn note_failed(&mut self, id: Incarnation, left: Left, now: Instant, every: Duration) -> Duration {
        let failed = self.last(id, &left).map_or(0, |last| last.failed).saturating_add(1);
        let pause = every.saturating_mul(2_u32.saturating_pow(failed)).min(RETRY_PAUSE_MAX);
        self.0.insert(id, Attempt { left, failed, again: Some(now + pause) });
        pause
    }

    fn forget_all_but(&mut self, keep: impl Fn(Incarnation) -> bool) {
        self.0.retain(|id, _| keep(*id));
    }
}

impl Context {
    /// Whether there is anybody to watch, or a chain left that it is of use to take over.
    fn has_work(&self, attempts: &Attempts) -> bool {
        let (me, state) = (self.me(), self.state());
        let left = |id| state.hangs(id) && !attempts.is_settled(id, &Left::of(&state, id));
        state.incarnations().any(|(id, life)| id != me && (!life.fenced || left(id)))
    }

    /// Looks at the heartbeats, then takes over whatever falls to this node and is due, one chain after the other.
    async fn take_over_all(&self, watched: &mut Watched, attempts: &mut Attempts, state: &State) {
        let looked = self.service.now();
        let silent = self.silent(watched, state).await;
        let facts = Facts { expired: silent.keys().copied().collect(), ..Facts::default() };
        let mut chains = takeovers(state, self.me(), &facts);
        // One that fails may take minutes to do so.
        chains.sort_by_key(|chain| attempts.failed(chain.incarnation));
        for chain in chains {
            if self.is_draining() {
                return;
            }
            let (id, now) = (chain.incarnation, self.service.now());
            // Whoever was silent that long ago may have come back since: the next look tells.
            let stale = chain.fence && now >= looked + self.looks_apart_max();
            if stale || !attempts.is_due(id, &Left::of(state, id), now) {
                continue;
            }
            if !self.attempt(attempts, state, chain, silent.get(&id).copied()).await {
                return;
            }
        }
    }

    /// Looks this far apart tell nothing of what happened between them.
    fn looks_apart_max(&self) -> Duration {
        self.lease_times().renew_every() * (LOOKS_MISSED_MAX + 1)
    }

    /// The lives that have been silent for longer than their lease and a margin. Empty while the database does not answer.
    async fn silent(&self, watched: &mut Watched, state: &State) -> BTreeMap<Incarnation, Silence> {
        let others: Vec<Incarnation> = state.live().map(|(id, _)| id).filter(|id| *id != self.me()).collect();
        if others.is_empty() {
            return BTreeMap::new();
        }
        let (times, asked) = (self.lease_times(), self.service.now());
        let read = self.service.timeout(times.renew_every(), self.config.log.beats()).await;
        let read = read.map_err(|elapsed| elapsed.to_string());
        let beats = match read.and_then(|read| read.map_err(|error| error.to_string())) {
            Ok(beats) => beats,
            Err(error) => {
                if !std::mem::replace(&mut watched.unread, true) {
                    tracing::info!(error, "the heartbeats of others cannot be read");
                }
                return BTreeMap::new();
            }
        };
        watched.unread = false;
        let since_boot = |at: Instant| Duration::from_nanos(at.as_nanos());
        let look = Look {
            asked: since_boot(asked),
            answered: since_boot(self.service.now()),
            apart_max: self.looks_apart_max(),
        };
        let lives = others.into_iter().map(|incarnation| {
            let beat = beats.iter().find(|beat| beat.incarnation == incarnation);
            let LeaseTimes { ttl } = times.at_least(beat.map(|beat| beat.ttl).unwrap_or_default());
            Beating {
                incarnation,
                counter: beat.map(|beat| beat.counter),
                silence: LeaseTimes { ttl }.wait(),
            }
        });
        watched.heartbeats.look(look, lives)
    }

    /// Takes a chain over and remembers what became of it; false if this node must end.
    async fn attempt(
        &self,
        attempts: &mut Attempts,
        state: &State,
        chain: Takeover,
        silence: Option<Silence>,
    ) -> bool {
        let incarnation = chain.incarnation;
        let taken = self.take_over(state, chain, silence).await;
        let left = Left::of(&self.state(), incarnation);
        match taken {
            Ok(()) => {
                attempts.note_done(incarnation, left);
                true
            }
            Err(StartError::Fenced) => {
                self.end(NodeEnd::Fenced { how: "by the command log".into() });
                false
            }
            Err(error @ (StartError::DatabaseBehind { .. } | StartError::DatabaseDiffers { .. })) => {
                self.end(NodeEnd::Failed { what: error.to_string() });
                false
            }
            Err(error) => {
                let every = self.lease_times().renew_every();
                let pause = attempts.note_failed(incarnation, left, self.service.now(), every);
                tracing::error!(%incarnation, %error, ?pause, "a chain was not taken over, it is tried again");
                true
            }
        }
    }

    /// Takes a chain over and opens what hung on it.
    async fn take_over(
        &self,
        state: &State,
        chain: Takeover,
        silence: Option<Silence>,
    ) -> Result<(), StartError> {
        let incarnation = chain.incarnation;
        if chain.fence {
            tracing::warn!(%incarnation, node = %chain.chain.node, "no heartbeat any more, taking over");
        }
        let store = self
            .wal_store_of(state, incarnation)
            .map_err(|what| StartError::Takeover { incarnation, what })?;
        let mut taken = self.taker().take(incarnation, store).await?;
        if let Some(Silence { counter, since }) = silence {
            taken.closed = taken.closed.seen_before(counter, Instant::ZERO + since);
        }
        if !chain.drained {
            self.wait_for_lease(&taken).await;
        }
        self.note_lost(taken.lost);
        self.open(&taken.buckets, Some(taken.from)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mink_types::{BucketIndex, TableId};

    fn left(fenced: bool, hanging: &[u32]) -> Left {
        let bucket = |index: &u32| BucketId::unpartitioned(TableId(1), BucketIndex(*index));
        Left { fenced, hanging: hanging.iter().map(bucket).collect() }
    }

    const CHAIN: Incarnation = Incarnation(7);
    const EVERY: Duration = Duration::from_secs(3);

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn a_chain_that_cannot_be_emptied_is_let_alone_until_it_changes() {
        let mut attempts = Attempts::default();
        assert!(attempts.is_due(CHAIN, &left(true, &[1, 2]), at(0)));
        attempts.note_done(CHAIN, left(true, &[1]));
        assert!(!attempts.is_due(CHAIN, &left(true, &[1]), at(1_000_000)));
        assert!(attempts.is_settled(CHAIN, &left(true, &[1])));
        assert!(attempts.is_due(CHAIN, &left(true, &[]), at(1)), "a bucket of it was dropped");
        assert!(!attempts.is_settled(CHAIN, &left(true, &[])));
    }

    #[test]
    fn pauses_between_failures_double_up_to_minutes_and_begin_anew_with_any_change() {
        let mut attempts = Attempts::default();
        let mut fail =
            |fenced, now| attempts.note_failed(CHAIN, left(fenced, &[1]), at(now), EVERY).as_secs();
        assert_eq!([fail(false, 0), fail(true, 1), fail(true, 10)], [6, 6, 12], "fenced meanwhile");
        assert_eq!((fail(true, 100), fail(true, 200)), (24, 48));
        for round in 0..100 {
            assert!(fail(true, 1_000 + round) <= RETRY_PAUSE_MAX.as_secs());
        }
        assert_eq!(fail(true, 2_000), RETRY_PAUSE_MAX.as_secs());
        let due = |left, now| attempts.is_due(CHAIN, &left, at(now));
        assert_eq!([2_239, 2_240].map(|now| due(left(true, &[1]), now)), [false, true]);
        assert!(due(left(true, &[2]), 2_000));
        assert!(!attempts.is_settled(CHAIN, &left(true, &[1])), "it is to be tried again");
    }
}
