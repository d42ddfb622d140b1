//! What the command log says, row by row as it grows, and whether deletions keep to it.
//!
//! Lives on: the simulation's thread.
//! Owns: a state of its own, applied from the rows themselves.
//! Invariants checked: I11 (the rows give one state), I12 (a request counts once), I14 (nothing is deleted that metadata or a
//! reader within its grace can reach; seals and anchors stay), decision 0013 (retention takes what is too old or too much, and no more).
use crate::history::{History, Raised};
use crate::plan::Plan;
use mink_metadata::{Answer, Bucket, CommandResult, State};
use mink_object::{MemoryStore, ObjectKey, ObjectStore, list_all};
use mink_rt::{Instant, Service};
use mink_sql::CommandLog;
use mink_types::{
    ClusterName, Incarnation, LogIndex, NodeId, ObjectId, Offset, RequestId, WalChain, WalNumber,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Rows of one read.
const ROWS: usize = 256;

/// Clocks drift, and a node sees a row a moment before the ledger notes it.
const GRACE_PERCENT: u32 = 90;

#[derive(Debug)]
pub(crate) struct Ledger {
    service: Service,
    log: Arc<dyn CommandLog>,
    cluster: ClusterName,
    plan: Plan,
    began: Instant,
    history: Arc<History>,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    state: Option<State>,
    doomed: BTreeMap<ObjectId, Instant>,
    results: BTreeMap<RequestId, CommandResult>,
    made: BTreeMap<u64, RequestId>,
}

impl Ledger {
    pub(crate) fn new(
        service: &Service,
        log: Arc<dyn CommandLog>,
        cluster: &ClusterName,
        plan: &Plan,
        history: &Arc<History>,
    ) -> Ledger {
        let (plan, began) = (plan.clone(), service.now());
        let (service, cluster, history) = (service.clone(), cluster.clone(), Arc::clone(history));
        Ledger { service, log, cluster, plan, began, history, inner: Mutex::default() }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state as of the last row seen.
    pub(crate) fn state(&self) -> Option<State> {
        self.inner().state.clone()
    }

    /// Applies the rows that are new.
    pub(crate) async fn catch_up(&self) {
        let known = self.inner().state.as_ref().map(|state| state.witness().index);
        let after = match known {
            Some(after) => after,
            None => match self.log.identity().await {
                Ok(Some(identity)) => {
                    self.inner().state.get_or_insert_with(|| State::new(identity.cluster));
                    LogIndex(0)
                }
                _ => return,
            },
        };
        let rows = match self.log.read_after(after, ROWS).await {
            Ok(rows) => rows,
            Err(error) => return self.history.violated(format!("the database cannot be read: {error}")),
        };
        let now = self.service.now();
        let mut inner = self.inner();
        let Inner { state: Some(state), doomed, results, made } = &mut *inner else { return };
        for row in rows {
            if row.index <= state.witness().index {
                continue;
            }
            let before = state.clone();
            let applied = match state.apply(&row) {
                Ok(applied) => applied,
                Err(error) => return self.history.violated(format!("I11: row {}: {error}", row.index)),
            };
            for (id, bucket) in state.buckets_since(&before) {
                if before.bucket(id).is_some_and(|old| old.start < bucket.start) {
                    self.history.raised(Raised {
                        bucket: *id,
                        start: bucket.start,
                        kept_bytes: kept_bytes(bucket, bucket.start),
                        now,
                        age_error: self.plan.age_error(now.duration_since(self.began)),
                    });
                }
            }
            for (request, result) in applied {
                if let CommandResult::Done(Answer::TableCreated(id)) = &result
                    && made.insert(id.0, request).is_some_and(|other| other != request)
                {
                    self.history.violated(format!("I12: table {id} was made by two requests"));
                }
                let first = results.entry(request).or_insert_with(|| result.clone());
                if *first != result
                    && !matches!(&result, CommandResult::Refused(mink_metadata::Refusal::Forgotten))
                {
                    self.history
                        .violated(format!("I12: {request:?} was answered {first:?}, then {result:?}"));
                }
            }
            *doomed = state.doomed().map(|(id, _)| (*id, doomed.get(id).copied().unwrap_or(now))).collect();
        }
    }

    /// Deletion requests happen now.
    pub(crate) fn deleting(&self, keys: &[ObjectKey]) {
        let inner = self.inner();
        let Some(state) = &inner.state else { return };
        let now = self.service.now();
        for key in keys {
            let Some(id) = object_id(&self.cluster, key) else { continue };
            if let Some(why) = self.must_stay(state, &inner.doomed, id, now) {
                self.history.violated(format!("I14: {key} is deleted, {why}"));
            }
        }
    }

    /// Why an object may not go now.
    fn must_stay(
        &self,
        state: &State,
        doomed: &BTreeMap<ObjectId, Instant>,
        id: ObjectId,
        now: Instant,
    ) -> Option<String> {
        if state.object(&id).is_some() {
            return Some("though ranges refer to it".into());
        }
        if let Some(since) = doomed.get(&id) {
            let age = now.duration_since(*since);
            let least = self.plan.deletion_grace * GRACE_PERCENT / 100;
            return (age < least).then(|| format!("only {age:?} after it was given up"));
        }
        let ObjectId::Wal { chain, number } = id else { return None };
        let life = state.incarnation(chain.incarnation)?;
        if life.seal == Some(number) {
            return Some("though it is the recorded seal".into());
        }
        let dead = state.dead(chain.incarnation);
        (!dead && number.0 + 1 >= life.trim.0).then(|| format!("though the trim is {}", life.trim))
    }

    /// Everything that the state refers to is there, and nothing else is.
    pub(crate) async fn check_objects(&self, memory: &MemoryStore, garbage_too: bool) {
        self.catch_up().await;
        let Some(state) = self.state() else { return };
        let now = self.service.now();
        let doomed = self.inner().doomed.clone();
        // What was given up a moment ago still has its grace, and that of a compaction that planned on an older view (P-16).
        let grace = self.plan.deletion_grace * 3 + self.plan.compaction_takes();
        let fresh = |id: &ObjectId| doomed.get(id).is_some_and(|at| now.duration_since(*at) < grace);
        let mut may_stay = BTreeSet::new();
        for (id, object) in state.objects() {
            let key = ObjectKey::object(&self.cluster, *id);
            may_stay.insert(key.clone());
            if self.history.is_hurt(*id) {
                continue;
            }
            match memory.head(&key).await {
                Ok(meta) if meta.len == object.length => {}
                Ok(meta) => {
                    let told = format!("I14: {key} has {} bytes, metadata says {}", meta.len, object.length);
                    self.history.violated(told);
                }
                Err(error) => self.history.violated(format!("I14: {key} is referred to, but: {error}")),
            }
        }
        if !garbage_too {
            return;
        }
        let prefix = ObjectKey::parse(self.cluster.as_str()).ok();
        let Some(prefix) = prefix else { return };
        let Ok((all, false)) = list_all(memory, &prefix, usize::MAX).await else {
            return self.history.violated("the store cannot be listed".into());
        };
        let mut snapshots = 0;
        for entry in all {
            let key = entry.key;
            let kept = match object_id(&self.cluster, &key) {
                Some(id) if fresh(&id) => true,
                Some(ObjectId::Wal { chain, number }) => {
                    may_stay.contains(&key) || Self::wal_may_stay(&state, chain, number)
                }
                Some(ObjectId::Stream { .. }) => may_stay.contains(&key),
                None => {
                    snapshots += u64::from(key.as_str().contains("/meta/"));
                    true
                }
            };
            if !kept {
                let since = object_id(&self.cluster, &key).and_then(|id| doomed.get(&id).copied());
                let since = since.map(|at| now.duration_since(at));
                self.history
                    .violated(format!("I14: {key} is garbage and still there; given up for {since:?}"));
            }
        }
        if snapshots > 20 {
            self.history.violated(format!("I14: {snapshots} metadata snapshots are kept"));
        }
    }

    /// Long after the last append: what is too old is gone, and so is what is too much.
    pub(crate) fn check_forgotten(&self, state: &State) {
        for (id, bucket) in state.buckets() {
            let Some(options) = state.table(id.table).map(|table| &table.options) else { continue };
            if options.log_ttl_ms.is_some() && bucket.start < bucket.end {
                let (start, end) = (bucket.start, bucket.end);
                self.history
                    .violated(format!("retention: {id} still has {start}..{end}, all of it is too old"));
            }
            let mut ranges = bucket.ranges_from(bucket.start);
            let second = ranges.next().map_or(bucket.end, |(first, _)| first.end);
            let kept = kept_bytes(bucket, second);
            if options.retention_bytes.is_some_and(|most| kept >= most && second < bucket.end) {
                self.history.violated(format!("retention: {id} keeps {kept} bytes behind its first range"));
            }
        }
    }

    fn wal_may_stay(state: &State, chain: WalChain, number: WalNumber) -> bool {
        let Some(life) = state.incarnation(chain.incarnation) else { return false };
        life.seal == Some(number) || (!state.dead(chain.incarnation) && number.0 + 1 >= life.trim.0)
    }
}

/// Bytes that metadata counts of a bucket from an offset on.
fn kept_bytes(bucket: &Bucket, from: Offset) -> u64 {
    bucket.ranges_from(from).map(|(_, range)| range.bytes).sum()
}

/// The object that a key names, if it is a WAL or stream object.
pub(crate) fn object_id(cluster: &ClusterName, key: &ObjectKey) -> Option<ObjectId> {
    let rest = key.as_str().strip_prefix(cluster.as_str())?.strip_prefix('/')?;
    let mut parts = rest.split('/');
    let kind = parts.next()?;
    let _spread = parts.next()?;
    let node = NodeId(parts.next()?.parse().ok()?);
    let (incarnation, tag) = parts.next()?.split_once('-')?;
    let incarnation = Incarnation(incarnation.parse().ok()?);
    let tag = u64::from_str_radix(tag, 16).ok()?;
    let number: u64 = parts.next()?.parse().ok()?;
    let chain = WalChain { node, incarnation, tag };
    match kind {
        "wal" => Some(ObjectId::Wal { chain, number: WalNumber(number) }),
        "stream" => Some(ObjectId::Stream { chain, counter: number }),
        _ => None,
    }
}
