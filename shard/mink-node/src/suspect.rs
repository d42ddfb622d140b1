//! Watches the heartbeats of other lives, and takes over those that have stopped (DESIGN 2.4, 2.7).
//!
//! Lives on: one task on the service runtime.
//! Owns: what it saw of each heartbeat, on this process's boot-time clock.     Talks to: the command log, the store.
//! Invariants: the clock decides nothing but whom to suspect: what follows is a `Fence` in the log, and the same walk, adoption and wait
//! as at a start (I3, I5, I13). A node whose cluster has no other life watches nothing and asks the database nothing.
use crate::context::Context;
use crate::error::{NodeEnd, StartError};
use crate::lease::LeaseTimes;
use mink_coordinator::{Beating, Facts, Heartbeats, Look, Silence, Takeover, takeovers};
use mink_metadata::State;
use mink_rt::Instant;
use mink_types::Incarnation;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// Looks that may fail in a row before all that was seen counts for nothing.
const LOOKS_MISSED_MAX: u32 = 2;
/// Least time between two looks at the log's view while nobody is watched: commits of a busy node come many times a second.
const LOOK_PAUSE: Duration = Duration::from_secs(1);

/// Runs until the node ends.
pub(crate) async fn watch(context: Arc<Context>) {
    let mut heartbeats = Heartbeats::default();
    let mut changes = context.metadata.changes();
    let every = context.lease_times().renew_every();
    loop {
        let state = context.state();
        let silent = context.silent(&mut heartbeats, &state).await;
        let facts = Facts { expired: silent.keys().copied().collect(), ..Facts::default() };
        for chain in takeovers(&state, context.me(), &facts) {
            let silence = silent.get(&chain.incarnation).copied();
            if context.is_draining() || !context.take_over(&state, chain, silence).await {
                break;
            }
        }
        if context.has_work(&state) {
            context.service.sleep(every).await;
        } else {
            if changes.next().await.is_none() {
                return;
            }
            context.service.sleep(LOOK_PAUSE.min(every)).await;
        }
    }
}

impl Context {
    /// Whether there is anybody to watch, or a chain left to take over.
    fn has_work(&self, state: &State) -> bool {
        let me = self.me();
        state.incarnations().any(|(id, life)| id != me && (!life.fenced || state.hangs(id)))
    }

    /// The lives that have been silent for longer than their lease and a margin. Empty while the database does not answer.
    async fn silent(&self, heartbeats: &mut Heartbeats, state: &State) -> BTreeMap<Incarnation, Silence> {
        let others: Vec<Incarnation> = state.live().map(|(id, _)| id).filter(|id| *id != self.me()).collect();
        if others.is_empty() {
            return BTreeMap::new();
        }
        let (times, asked) = (self.lease_times(), self.service.now());
        let beats = match self.service.timeout(times.renew_every(), self.config.log.beats()).await {
            Ok(Ok(beats)) => beats,
            Ok(Err(error)) => {
                tracing::info!(%error, "the heartbeats of others could not be read");
                return BTreeMap::new();
            }
            Err(elapsed) => {
                tracing::info!(%elapsed, "the heartbeats of others could not be read");
                return BTreeMap::new();
            }
        };
        let since_boot = |at: Instant| Duration::from_nanos(at.as_nanos());
        let look = Look {
            asked: since_boot(asked),
            answered: since_boot(self.service.now()),
            apart_max: times.renew_every() * (LOOKS_MISSED_MAX + 1),
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
        heartbeats.look(look, lives)
    }

    /// Takes a chain over and opens what hung on it; false if this node must end, or should look at the log anew first.
    async fn take_over(&self, state: &State, chain: Takeover, silence: Option<Silence>) -> bool {
        let incarnation = chain.incarnation;
        if chain.fence {
            tracing::warn!(%incarnation, node = %chain.chain.node, "no heartbeat any more, taking over");
        }
        let taken = match self.wal_store_of(state, incarnation) {
            Ok(store) => self.taker().take(incarnation, store).await,
            Err(what) => Err(StartError::Takeover { incarnation, what }),
        };
        let opened = match taken {
            Ok(mut taken) => {
                if let Some(Silence { counter, since }) = silence {
                    taken.closed = taken.closed.seen_before(counter, Instant::ZERO + since);
                }
                if !chain.drained {
                    self.wait_for_lease(&taken).await;
                }
                self.lost.lock().unwrap_or_else(PoisonError::into_inner).extend(taken.lost);
                self.open(&taken.buckets, Some(taken.from)).await
            }
            Err(error) => Err(error),
        };
        match opened {
            Ok(()) => true,
            Err(StartError::Fenced) => {
                self.end(NodeEnd::Fenced { how: "by the command log".into() });
                false
            }
            Err(error @ (StartError::DatabaseBehind { .. } | StartError::DatabaseDiffers { .. })) => {
                self.end(NodeEnd::Failed { what: error.to_string() });
                false
            }
            Err(error) => {
                tracing::error!(%incarnation, %error, "a chain was not taken over, it is tried again");
                false
            }
        }
    }
}
