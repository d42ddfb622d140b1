//! Deletes what metadata has given up: doomed objects after their grace, and what dead chains left behind.
//!
//! Lives on: one task on the service runtime.
//! Owns: when each piece of garbage was first seen, on this node's own monotonic clock; whose turn it is to be listed again.
//! Invariants: I14: nothing is deleted that metadata does not say is dead; nothing before a reader that planned on an older view has had
//! its grace; P-16: nor before this node's own plans of such views have ended. A deletion whose outcome is unknown is repeated. An
//! idle node with no garbage sends no request, but for one chain's listing every quarter of an hour at most ([`LIST_PAUSE_MIN`]).
use crate::context::Context;
use mink_coordinator::{Facts, Step, Sweep, garbage, sweep_again};
use mink_metadata::{Command, State};
use mink_object::ObjectStore;
use mink_rt::{Instant, Service, mutant};
use mink_types::{Incarnation, LogIndex, ObjectId, ObjectKey, WalNumber};
use s3stream::{Swept, sweep_stream, sweep_wal};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Pause before something that failed, or that a running plan holds up, is tried again.
const RETRY_PAUSE: Duration = Duration::from_secs(10);
/// Least time between two looks: commits of a busy node come many times a second.
const LOOK_PAUSE: Duration = Duration::from_secs(1);
/// Points of the log's growth that are remembered; a busy log is then judged a little late, never early.
const SEEN_MAX: usize = 1_024;
/// Each cleaned chain is listed again once in this time, as long as there are not too many.
const LIST_AGAIN_EVERY: Duration = Duration::from_hours(24);
/// Least time between two such listings, however many chains there are.
const LIST_PAUSE_MIN: Duration = Duration::from_mins(15);
/// No chain is listed again before the node has run for so long.
const LIST_AGAIN_FIRST: Duration = Duration::from_hours(1);

/// What the collector has done since the node began.
#[derive(Debug, Default)]
pub(crate) struct GarbageCounters {
    /// Doomed objects deleted.
    pub(crate) deleted: AtomicU64,
    /// Objects of dead chains deleted.
    pub(crate) swept: AtomicU64,
    /// Deletions that did not happen or may not have.
    pub(crate) failed: AtomicU64,
    /// Listings of chains that had been cleaned before.
    pub(crate) listed_again: AtomicU64,
}

/// When this node saw what.
#[derive(Debug, Default)]
struct Seen {
    /// Row indexes with the moment they were first seen, ascending.
    rows: VecDeque<(Instant, LogIndex)>,
    /// Dead chains, with the moment and the row at which they were first seen to be.
    chains: BTreeMap<Incarnation, (Instant, LogIndex)>,
}

impl Seen {
    fn note_row(&mut self, now: Instant, index: LogIndex) {
        if self.rows.back().is_none_or(|(_, last)| *last < index) && self.rows.len() < SEEN_MAX {
            self.rows.push_back((now, index));
        }
    }

    /// The last row that was seen at least `grace` ago.
    fn grace_passed(&mut self, now: Instant, grace: Duration) -> LogIndex {
        while self.rows.get(1).is_some_and(|(at, _)| *at + grace <= now) {
            self.rows.pop_front();
        }
        self.rows.front().filter(|(at, _)| *at + grace <= now).map_or(LogIndex(0), |(_, index)| *index)
    }
}

/// Whose turn it is to be listed again.
#[derive(Clone, Copy, Debug)]
struct Rounds {
    last: Incarnation,
    at: Instant,
}

impl Rounds {
    /// The first turn comes at a random time, and of a random chain: a node that is restarted often lists all of them in the long run.
    fn begin(service: &Service, state: &State) -> Rounds {
        let spread =
            u64::try_from(LIST_AGAIN_EVERY.saturating_sub(LIST_AGAIN_FIRST).as_millis()).unwrap_or(u64::MAX);
        let jitter = service.random_u64().checked_rem(spread).unwrap_or(0).checked_div(cleaned(state).max(1));
        let at = service.now() + LIST_AGAIN_FIRST + Duration::from_millis(jitter.unwrap_or(0));
        let last = Incarnation(service.random_u64().checked_rem(state.witness().index.0).unwrap_or(0));
        Rounds { last, at }
    }

    /// `last` has had its turn.
    fn after(now: Instant, last: Incarnation, state: &State) -> Rounds {
        let share = u32::try_from(cleaned(state).max(1)).unwrap_or(u32::MAX);
        Rounds { last, at: now + (LIST_AGAIN_EVERY / share).max(LIST_PAUSE_MIN) }
    }
}

/// How many chains were cleaned.
fn cleaned(state: &State) -> u64 {
    state.incarnations().filter(|(_, life)| life.swept).count() as u64
}

/// Runs until the node ends.
pub(crate) async fn collect(context: Arc<Context>) {
    let mut seen = Seen::default();
    let mut rounds = Rounds::begin(&context.service, &context.state());
    let mut changes = context.metadata.changes();
    loop {
        let next = context.collect_once(&mut seen, &mut rounds).await;
        let now = context.service.now();
        let pause = next.duration_since(now).min(LOOK_PAUSE);
        context.service.sleep(pause).await;
        let wait = next.duration_since(context.service.now());
        if let Ok(None) = context.service.timeout(wait, changes.next()).await {
            return;
        }
    }
}

impl Context {
    /// Deletes what is due; when to look again, whatever happens.
    async fn collect_once(&self, seen: &mut Seen, rounds: &mut Rounds) -> Instant {
        let (state, now, grace) = (self.state(), self.service.now(), self.config.deletion_grace);
        let grace = if mutant("no-grace") { Duration::ZERO } else { grace };
        seen.note_row(now, state.witness().index);
        let oldest = self.running.oldest();
        let ripe = seen.grace_passed(now, grace);
        let facts = Facts {
            // Who collects is the oldest of those that live: one at a time, without a word between them.
            collect: state.live().next().map(|(id, _)| id) == Some(self.me()),
            grace_passed: oldest.map_or(ripe, |oldest| ripe.min(oldest)),
            ..Facts::default()
        };
        let mut failed = false;
        let mut waiting: Vec<Instant> = Vec::new();
        seen.chains.retain(|id, _| state.incarnation(*id).is_some_and(|chain| !chain.swept));
        for step in garbage(&state, self.me(), &facts) {
            match step {
                Step::Delete { objects } => failed |= !self.delete(&state, &objects).await,
                Step::Sweep(sweep) => {
                    let first = (now, state.witness().index);
                    let (at, row) = *seen.chains.entry(sweep.incarnation).or_insert(first);
                    if at + grace > now {
                        waiting.push(at + grace);
                    } else if oldest.is_some_and(|oldest| oldest < row) {
                        failed = true; // a plan of an older view may read what the sweep would take
                    } else {
                        failed |= !self.sweep(&state, &sweep).await;
                    }
                }
                Step::TakeOver(_) | Step::Open { .. } => {}
            }
        }
        if facts.collect && state.doomed().any(|(_, at)| at > facts.grace_passed) {
            waiting.extend(seen.rows.iter().map(|(at, _)| *at + grace).find(|at| *at > now));
            failed |= facts.grace_passed < ripe;
        }
        if rounds.at <= now {
            *rounds = self.list_again(&state, *rounds, facts.collect).await;
        }
        waiting.extend(failed.then(|| now + RETRY_PAUSE));
        waiting.into_iter().fold(rounds.at, Instant::min)
    }

    /// Deletes doomed objects and tells the log; false if some must be tried again.
    async fn delete(&self, state: &State, objects: &[ObjectId]) -> bool {
        let mut whole = true;
        let mut deleted = Vec::new();
        let mut by_chain: BTreeMap<Option<Incarnation>, Vec<ObjectId>> = BTreeMap::new();
        for id in objects {
            let wal_of = match id {
                ObjectId::Wal { chain, .. } => Some(chain.incarnation),
                ObjectId::Stream { .. } => None,
            };
            by_chain.entry(wal_of).or_default().push(*id);
        }
        for (wal_of, part) in by_chain {
            let store = wal_of.map(|incarnation| self.wal_store_of(state, incarnation)).transpose();
            let store = match store {
                Ok(store) => store.unwrap_or_else(|| Arc::clone(&self.config.stores.stream)),
                Err(error) => {
                    tracing::warn!(?wal_of, %error, "the store of doomed WAL objects cannot be opened");
                    whole = false;
                    continue;
                }
            };
            let keys: Vec<ObjectKey> =
                part.iter().map(|id| ObjectKey::object(&self.config.cluster, *id)).collect();
            let outcomes = store.delete(&keys).await;
            let (mut failed, mut first) = (0_u64, None);
            for (id, (_, outcome)) in part.iter().zip(outcomes) {
                if outcome.is_done() {
                    deleted.push(*id);
                } else {
                    failed += 1;
                    first.get_or_insert((*id, outcome));
                }
            }
            // One line, however many: a store that fails fails them all.
            if let Some((object, outcome)) = first {
                whole = false;
                self.garbage.failed.fetch_add(failed, Ordering::Relaxed);
                tracing::warn!(objects = failed, first = %object, ?outcome, "not yet deleted, trying again");
            }
        }
        self.garbage.deleted.fetch_add(deleted.len() as u64, Ordering::Relaxed);
        if !deleted.is_empty()
            && let Err(error) = self.metadata.submit(Command::Deleted { objects: deleted }).await
        {
            tracing::warn!(%error, "deleted objects could not be told to the log");
            whole = false;
        }
        whole
    }

    /// Cleans the prefixes of a dead incarnation; false if it must be tried again.
    async fn sweep(&self, state: &State, sweep: &Sweep) -> bool {
        let incarnation = sweep.incarnation;
        let store = match self.wal_store_of(state, incarnation) {
            Ok(store) => store,
            Err(error) => {
                tracing::warn!(%incarnation, %error, "the store of a dead chain cannot be opened");
                return false;
            }
        };
        if sweep.keep.must_look() {
            // Nobody has recorded its seal yet: end the chain first; the row that records it brings us back here.
            return self.end_chain(incarnation, store).await;
        }
        match self.sweep_prefixes(sweep, &*store).await {
            Ok(true) => {
                let swept = self.metadata.submit(Command::Swept { incarnation }).await;
                if let Err(error) = &swept {
                    tracing::warn!(%error, "sweep could not be told to the log");
                    return false;
                }
                self.forget_beats().await;
                true
            }
            Ok(false) => false,
            Err(error) => {
                tracing::warn!(%incarnation, %error, "sweep of a dead chain");
                false
            }
        }
    }

    /// Heartbeats of lives that are over and cleaned tell nobody anything. What fails here is made up for by the next sweep.
    async fn forget_beats(&self) {
        let state = self.state();
        let over = state.incarnations().take_while(|(_, life)| life.swept).last();
        let Some((upto, _)) = over else { return };
        let forgotten = self.config.log.forget_beats(upto).await;
        if !forgotten.is_done() {
            tracing::info!(%upto, ?forgotten, "heartbeats of past lives are not forgotten yet");
        }
    }

    async fn end_chain(&self, incarnation: Incarnation, store: Arc<dyn ObjectStore>) -> bool {
        let ended = match self.taker().take(incarnation, store).await {
            Ok(taken) => self.open(&taken.buckets, Some(taken.from)).await,
            Err(error) => Err(error),
        };
        ended
            .inspect_err(|error| tracing::warn!(%incarnation, %error, "a dead chain could not be ended"))
            .is_ok()
    }

    /// Lists the next of the chains that were cleaned, if this node collects.
    async fn list_again(&self, state: &State, rounds: Rounds, collect: bool) -> Rounds {
        let now = self.service.now();
        let Some(sweep) = sweep_again(state, rounds.last).filter(|_| collect) else {
            return Rounds::after(now, rounds.last, state);
        };
        let incarnation = sweep.incarnation;
        self.garbage.listed_again.fetch_add(1, Ordering::Relaxed);
        match self.wal_store_of(state, incarnation) {
            Ok(store) => match self.sweep_prefixes(&sweep, &*store).await {
                Ok(_) => {}
                Err(error) => {
                    tracing::info!(%incarnation, %error, "a cleaned chain could not be listed again");
                }
            },
            Err(error) => {
                tracing::warn!(%incarnation, %error, "the store of a cleaned chain cannot be opened");
            }
        }
        // What failed has its next turn.
        Rounds::after(now, incarnation, state)
    }

    /// Whether all that had to go went.
    async fn sweep_prefixes(&self, sweep: &Sweep, wal: &dyn ObjectStore) -> Result<bool, s3stream::Error> {
        let (cluster, chain) = (&self.config.cluster, sweep.chain);
        let mut kept = sweep.keep.wal_numbers();
        if mutant("seal-collected") {
            kept = [WalNumber(u64::MAX)].into();
        }
        let in_wal = sweep_wal(wal, cluster, chain, &kept).await?;
        self.count(in_wal);
        let counters = sweep.keep.stream_counters();
        let in_stream = sweep_stream(&*self.config.stores.stream, cluster, chain, &counters).await?;
        self.count(in_stream);
        Ok(in_wal.failed == 0 && in_stream.failed == 0)
    }

    fn count(&self, swept: Swept) {
        self.garbage.swept.fetch_add(swept.deleted, Ordering::Relaxed);
        self.garbage.failed.fetch_add(swept.failed, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i14_grace_counts_from_when_a_row_was_seen() {
        let (mut seen, grace) = (Seen::default(), Duration::from_mins(1));
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        for (seconds, index) in [(0, 5), (10, 6), (50, 9)] {
            seen.note_row(at(seconds), LogIndex(index));
        }
        assert_eq!(seen.grace_passed(at(59), grace), LogIndex(0));
        assert_eq!(seen.grace_passed(at(60), grace), LogIndex(5));
        assert_eq!(seen.grace_passed(at(100), grace), LogIndex(6));
        assert_eq!(seen.grace_passed(at(110), grace), LogIndex(9));
    }
}
