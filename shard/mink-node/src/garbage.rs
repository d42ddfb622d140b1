//! Deletes what metadata has given up: doomed objects after their grace, and what dead chains left behind.
//!
//! Lives on: one task on the service runtime.
//! Owns: when each piece of garbage was first seen, on this node's own monotonic clock.
//! Invariants: I14: nothing is deleted that metadata does not say is dead, and nothing before a reader that planned on an older view has
//! had its grace; a deletion whose outcome is unknown is repeated. An idle node with no garbage sends no request.
use crate::context::Context;
use mink_coordinator::{Facts, Step, Sweep, plan};
use mink_metadata::{Command, State};
use mink_object::ObjectStore;
use mink_rt::Instant;
use mink_types::{Incarnation, LogIndex, ObjectId, ObjectKey};
use s3stream::{sweep_stream, sweep_wal};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Pause before something that failed is tried again.
const RETRY_PAUSE: Duration = Duration::from_secs(10);
/// Points of the log's growth that are remembered; a busy log is then judged a little late, never early.
const SEEN_MAX: usize = 1_024;

/// When this node saw what.
#[derive(Debug, Default)]
struct Seen {
    /// Row indexes with the moment they were first seen, ascending.
    rows: VecDeque<(Instant, LogIndex)>,
    chains: BTreeMap<Incarnation, Instant>,
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

/// Runs until the node ends.
pub(crate) async fn collect(context: Arc<Context>) {
    let mut seen = Seen::default();
    let mut changes = context.metadata.changes();
    loop {
        let next = context.collect_once(&mut seen).await;
        let changed = changes.next();
        let change = match next {
            Some(at) => context.service.timeout(at.duration_since(context.service.now()), changed).await.ok(),
            None => Some(changed.await),
        };
        if matches!(change, Some(None)) {
            return;
        }
    }
}

impl Context {
    /// Deletes what is due; when to look again, if anything waits.
    async fn collect_once(&self, seen: &mut Seen) -> Option<Instant> {
        let (state, now, grace) = (self.state(), self.service.now(), self.config.deletion_grace);
        seen.note_row(now, state.witness().index);
        let facts = Facts {
            // Who collects is the oldest of those that live: one at a time, without a word between them.
            collect: state.live().next().map(|(id, _)| id) == Some(self.me()),
            grace_passed: seen.grace_passed(now, grace),
            ..Facts::default()
        };
        let mut failed = false;
        let mut waiting: Vec<Instant> = Vec::new();
        seen.chains.retain(|id, _| state.incarnation(*id).is_some_and(|chain| !chain.swept));
        for step in plan(&state, self.me(), &facts) {
            match step {
                Step::Delete { objects } => failed |= !self.delete(&objects).await,
                Step::Sweep(sweep) => {
                    let due = *seen.chains.entry(sweep.incarnation).or_insert(now) + grace;
                    if due > now {
                        waiting.push(due);
                    } else {
                        failed |= !self.sweep(&state, &sweep).await;
                    }
                }
                Step::TakeOver(_) | Step::Open { .. } => {}
            }
        }
        if facts.collect && state.doomed().any(|(_, at)| at > facts.grace_passed) {
            waiting.extend(seen.rows.iter().map(|(at, _)| *at + grace).find(|at| *at > now));
        }
        waiting.extend(failed.then(|| now + RETRY_PAUSE));
        waiting.into_iter().min()
    }

    /// Deletes doomed objects and tells the log; false if some must be tried again.
    async fn delete(&self, objects: &[ObjectId]) -> bool {
        let mut whole = true;
        let mut deleted = Vec::new();
        let (wal, stream): (Vec<ObjectId>, Vec<ObjectId>) =
            objects.iter().partition(|id| matches!(id, ObjectId::Wal { .. }));
        for part in [wal, stream] {
            let Some(first) = part.first() else { continue };
            let keys: Vec<ObjectKey> =
                part.iter().map(|id| ObjectKey::object(&self.config.cluster, *id)).collect();
            let outcomes = self.store_of(first).delete(&keys).await;
            for (id, (_, outcome)) in part.iter().zip(outcomes) {
                if outcome.is_done() {
                    deleted.push(*id);
                } else {
                    whole = false;
                    tracing::warn!(object = %id, ?outcome, "deletion is tried again");
                }
            }
        }
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
                swept
                    .inspect_err(|error| tracing::warn!(%error, "sweep could not be told to the log"))
                    .is_ok()
            }
            Ok(false) => false,
            Err(error) => {
                tracing::warn!(%incarnation, %error, "sweep of a dead chain");
                false
            }
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

    async fn sweep_prefixes(&self, sweep: &Sweep, wal: &dyn ObjectStore) -> Result<bool, s3stream::Error> {
        let (cluster, chain) = (&self.config.cluster, sweep.chain);
        let swept = sweep_wal(wal, cluster, chain, &sweep.keep.wal_numbers()).await?;
        let counters = sweep.keep.stream_counters();
        let stream = sweep_stream(&*self.config.stores.stream, cluster, chain, &counters).await?;
        Ok(swept.failed == 0 && stream.failed == 0)
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
