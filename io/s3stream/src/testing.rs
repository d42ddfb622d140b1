//! A small world for this crate's tests: a store with faults, metadata with the rules of decision 0003, nodes that write and
//! take over, and a reader that checks what was acked.
//!
//! Lives on: the simulator of mink-rt.
mod seam;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use mink_object::{Counted, FaultSeam, MemoryStore, ObjectStore};
use mink_rt::{Service, SimConfig, simulate};
use mink_types::{
    BucketEpoch, BucketId, BucketIndex, ClusterName, ClusterUuid, CommitTime, Incarnation, LogIndex, NodeId,
    ObjectId, Offset, OffsetRange, ProducerEpoch, ProducerId, RowHash, Sequence, TableId, Timestamp,
    WalChain, WalNumber, Witness,
};

use crate::*;
pub(crate) use seam::{Seam, When};

pub(crate) fn bucket(n: u64) -> BucketId {
    BucketId::unpartitioned(TableId(n), BucketIndex(0))
}

pub(crate) fn chain(incarnation: u64) -> WalChain {
    WalChain { node: NodeId(1), incarnation: Incarnation(incarnation), tag: 0xfeed + incarnation }
}

pub(crate) fn uuid() -> ClusterUuid {
    ClusterUuid(*b"0123456789abcdef")
}

pub(crate) fn cluster() -> ClusterName {
    ClusterName::new("mink").expect("valid")
}

/// An entry of bucket `n`; times and stamp follow from the offset.
pub(crate) fn entry(n: u64, epoch: u32, base: u64, count: u32, bytes: &[u8]) -> Entry {
    let time = i64::try_from(base).expect("small");
    Entry {
        bucket: bucket(n),
        epoch: BucketEpoch(epoch),
        base_offset: Offset(base),
        count,
        kind: EntryKind::Batch,
        commit_time: CommitTime(1_000 + time),
        max_timestamp: Timestamp(500 + time),
        producer: base.is_multiple_of(2).then_some(ProducerStamp {
            id: ProducerId(7),
            epoch: ProducerEpoch(1),
            base_sequence: Sequence(i32::try_from(base).expect("small")),
        }),
        known: None,
        bytes: Bytes::copy_from_slice(bytes),
    }
}

/// A fold that counts records, as decimal text.
#[derive(Debug)]
pub(crate) struct CountingFold;

impl ProducerFold for CountingFold {
    fn fold(&self, before: &[u8], entries: &[IndexEntry]) -> Result<Bytes, FoldError> {
        let before = std::str::from_utf8(before).ok().filter(|text| !text.is_empty()).unwrap_or("0");
        let before: u64 = before.parse().map_err(|_| FoldError { reason: format!("{before:?}") })?;
        let now: u64 = entries.iter().map(|entry| u64::from(entry.count)).sum();
        Ok((before + now).to_string().into())
    }

    fn lost_below(&self, before: &[u8], _: Offset) -> Result<Bytes, FoldError> {
        self.fold(before, &[])
    }
}

/// Where a commit hangs for ever, as if the process died there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hang {
    Before,
    After,
}

#[derive(Debug, Default)]
pub(crate) struct MetaBucket {
    pub(crate) epoch: BucketEpoch,
    pub(crate) owner: Option<WalChain>,
    pub(crate) end: Offset,
    pub(crate) ranges: Vec<ObjectRange>,
}

#[derive(Debug, Default)]
pub(crate) struct MetaChain {
    pub(crate) fenced: bool,
    pub(crate) trim: WalNumber,
    pub(crate) seal: Option<WalNumber>,
}

/// Metadata with the rules for Fence, Commit and Open.
#[derive(Debug, Default)]
pub(crate) struct Meta {
    pub(crate) buckets: BTreeMap<BucketId, MetaBucket>,
    pub(crate) chains: BTreeMap<WalChain, MetaChain>,
    pub(crate) commits: Vec<StreamCommit>,
    /// Rewrites that were applied.
    pub(crate) rewrites: u64,
    pub(crate) hang: Option<Hang>,
    pub(crate) refuse: u32,
    /// The commit after so many applied ones is refused.
    pub(crate) refuse_at: Option<usize>,
}

impl Meta {
    pub(crate) fn judge(&mut self, by: WalChain, commit: &StreamCommit) -> CommitEnd {
        let fenced = |chain: &WalChain| self.chains.get(chain).is_some_and(|chain| chain.fenced);
        let refused = |reason: &str| CommitEnd::Refused { fenced: false, reason: reason.to_owned() };
        if fenced(&by) {
            return CommitEnd::Refused { fenced: true, reason: "fenced".to_owned() };
        }
        if commit.source != by && !fenced(&commit.source) {
            return refused("another's living chain");
        }
        if self.refuse_at == Some(self.commits.len()) {
            return refused("the test says so");
        }
        if self.refuse > 0 {
            self.refuse -= 1;
            return refused("the test says so");
        }
        let mut ends: BTreeMap<BucketId, Offset> = BTreeMap::new();
        for range in commit.objects.iter().flat_map(|object| &object.ranges) {
            let Some(bucket) = self.buckets.get(&range.bucket) else {
                return refused("no such bucket");
            };
            let end = ends.entry(range.bucket).or_insert(bucket.end);
            if bucket.epoch != range.epoch || bucket.owner != Some(commit.source) {
                return refused("stale epoch");
            }
            if *end != range.start || range.end <= range.start {
                return refused("not at the committed end");
            }
            *end = range.end;
        }
        for object in &commit.objects {
            for range in &object.ranges {
                let bucket = self.buckets.get_mut(&range.bucket).expect("judged");
                bucket.end = range.end;
                bucket.ranges.push(ObjectRange {
                    object: object.id,
                    range: OffsetRange { start: range.start, end: range.end },
                    max_timestamp: range.max_timestamp,
                    bytes: range.bytes,
                    length: object.length,
                    footer_length: object.footer_length,
                    checksum: object.checksum,
                });
            }
        }
        if let Some(trim) = commit.trim.filter(|_| commit.source == by) {
            let chain = self.chains.entry(by).or_default();
            chain.trim = chain.trim.max(trim);
        }
        self.commits.push(commit.clone());
        CommitEnd::Applied
    }

    /// A rewrite by the rules of metadata: exact runs of ranges that lie in what was named (T-18).
    pub(crate) fn judge_rewrite(&mut self, by: WalChain, rewrite: &StreamRewrite) -> CommitEnd {
        let refused = |reason: &str| CommitEnd::Refused { fenced: false, reason: reason.to_owned() };
        if self.chains.get(&by).is_some_and(|chain| chain.fenced) {
            return CommitEnd::Refused { fenced: true, reason: "fenced".to_owned() };
        }
        if self.refuse > 0 {
            self.refuse -= 1;
            return refused("the test says so");
        }
        let mut next = self.buckets.iter().map(|(id, b)| (*id, b.ranges.clone())).collect::<BTreeMap<_, _>>();
        for object in &rewrite.objects {
            assert!(matches!(object.id, ObjectId::Stream { chain, .. } if chain == by), "its own name");
            for range in &object.ranges {
                let Some(bucket) = self.buckets.get(&range.bucket) else {
                    return refused("no such bucket");
                };
                if bucket.epoch != range.epoch || bucket.owner != Some(by) {
                    return refused("stale epoch");
                }
                let ranges = next.get_mut(&range.bucket).expect("there");
                let at = ranges.iter().position(|old| old.range.start == range.start);
                let end = ranges.iter().position(|old| old.range.end == range.end);
                let (Some(at), Some(end)) = (at, end) else {
                    return refused("no run of ranges");
                };
                let old: Vec<_> = ranges.drain(at..=end).collect();
                if old.iter().any(|old| !rewrite.replaced.contains(&old.object) || old.length == 0) {
                    return refused("others by now");
                }
                assert_eq!(old.iter().map(|old| old.bytes).sum::<u64>(), range.bytes, "bytes stay the same");
                assert_eq!(old.iter().map(|old| old.max_timestamp).max(), Some(range.max_timestamp));
                let moved = ObjectRange {
                    object: object.id,
                    range: OffsetRange { start: range.start, end: range.end },
                    max_timestamp: range.max_timestamp,
                    bytes: range.bytes,
                    length: object.length,
                    footer_length: object.footer_length,
                    checksum: object.checksum,
                };
                ranges.insert(at, moved);
            }
        }
        for (id, ranges) in next {
            self.buckets.get_mut(&id).expect("there").ranges = ranges;
        }
        self.rewrites += 1;
        CommitEnd::Applied
    }

    /// Opens a bucket on `by`, which must be free or hang on a fenced chain.
    pub(crate) fn open(&mut self, by: WalChain, id: BucketId) -> BucketEpoch {
        let bucket = self.buckets.entry(id).or_default();
        assert!(bucket.owner.is_none_or(|owner| self.chains.get(&owner).is_some_and(|chain| chain.fenced)));
        bucket.owner = Some(by);
        bucket.epoch = BucketEpoch(bucket.epoch.0 + 1);
        bucket.epoch
    }
}

struct NodeCommits {
    meta: Arc<Mutex<Meta>>,
    by: WalChain,
}

#[async_trait]
impl Commits for NodeCommits {
    async fn commit(&self, commit: StreamCommit) -> Result<CommitEnd, CommitsStopped> {
        let hang = self.meta.lock().unwrap().hang;
        if hang == Some(Hang::Before) {
            std::future::pending::<()>().await;
        }
        let end = self.meta.lock().unwrap().judge(self.by, &commit);
        if hang == Some(Hang::After) {
            std::future::pending::<()>().await;
        }
        Ok(end)
    }

    async fn rewrite(&self, rewrite: StreamRewrite) -> Result<CommitEnd, CommitsStopped> {
        let hang = self.meta.lock().unwrap().hang;
        if hang == Some(Hang::Before) {
            std::future::pending::<()>().await;
        }
        let end = self.meta.lock().unwrap().judge_rewrite(self.by, &rewrite);
        if hang == Some(Hang::After) {
            std::future::pending::<()>().await;
        }
        Ok(end)
    }
}

/// Store, metadata, and what clients were told.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) service: Service,
    pub(crate) seam: Arc<Seam>,
    pub(crate) memory: Arc<MemoryStore>,
    pub(crate) store: Arc<Counted>,
    pub(crate) meta: Arc<Mutex<Meta>>,
    /// What was acked: bucket and offset to bytes.
    pub(crate) acked: Arc<Mutex<BTreeMap<(BucketId, Offset), Bytes>>>,
    /// Acks that contradict an earlier one (I2); there must be none.
    pub(crate) conflicts: Arc<Mutex<Vec<(BucketId, Offset)>>>,
    /// The same in the order of the acks, as (bucket, offset).
    pub(crate) ack_order: Arc<Mutex<Vec<(BucketId, Offset)>>>,
    pub(crate) config: WalConfig,
}

/// A node with an open WAL.
pub(crate) struct Node {
    pub(crate) chain: WalChain,
    pub(crate) wal: Wal,
    pub(crate) sender: ChunkSender,
    next: BTreeMap<BucketId, (BucketEpoch, Offset)>,
    counter: u64,
    world: World,
}

/// Runs a test in a world of its own; a failure prints the seed.
pub(crate) fn in_world<F: Future<Output = ()> + 'static>(seed: u64, test: impl FnOnce(World) -> F) {
    let outcome = simulate(SimConfig::seeded(seed), |runtime| {
        let service = runtime.service();
        let seam = Arc::new(Seam::new(service.clone()));
        let memory = Arc::new(MemoryStore::new());
        let inner: Arc<dyn ObjectStore> = Arc::<MemoryStore>::clone(&memory);
        let faults: Arc<dyn FaultSeam> = Arc::<Seam>::clone(&seam);
        let store = Arc::new(Counted::new(inner, Some(faults)));
        let world = World {
            service,
            seam,
            memory,
            store,
            meta: Arc::default(),
            acked: Arc::default(),
            conflicts: Arc::default(),
            ack_order: Arc::default(),
            config: WalConfig { puts_per_second: None, ..WalConfig::default() },
        };
        test(world)
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

impl World {
    pub(crate) fn object_store(&self) -> Arc<dyn ObjectStore> {
        Arc::<Counted>::clone(&self.store)
    }

    pub(crate) async fn sleep(&self, duration: Duration) {
        self.service.sleep(duration).await;
    }

    /// Waits for `what` to hold, at most a minute of virtual time.
    pub(crate) async fn until(&self, what: &str, holds: impl Fn() -> bool) {
        for _ in 0..60_000 {
            if holds() {
                return;
            }
            self.sleep(Duration::from_millis(1)).await;
        }
        panic!("a minute has passed without: {what}");
    }

    /// A new node with open buckets; those that hang on a fenced chain must have been taken over.
    pub(crate) async fn node(&self, incarnation: u64, buckets: &[u64]) -> Node {
        let chain = chain(incarnation);
        let wal = Wal::start(WalParts {
            service: self.service.clone(),
            wal_store: self.object_store(),
            stream_store: self.object_store(),
            cluster: cluster(),
            uuid: uuid(),
            chain,
            config: self.config.clone(),
            commits: Arc::new(NodeCommits { meta: Arc::clone(&self.meta), by: chain }),
            fold: Arc::new(CountingFold),
            witness: Arc::new(move || witness(incarnation)),
        })
        .expect("the configuration fits");
        self.meta.lock().unwrap().chains.entry(chain).or_default();
        let mut next = BTreeMap::new();
        for n in buckets {
            let id = bucket(*n);
            let epoch = self.meta.lock().unwrap().open(chain, id);
            let end = self.meta.lock().unwrap().buckets[&id].end;
            let recovery = self.recovery(id).await;
            let producers = CountingFold.fold(&recovery.producers, &recovery.entries).unwrap();
            wal.open_bucket(OpenedBucket { bucket: id, epoch, at: end, producers, epochs: recovery.epochs });
            next.insert(id, (epoch, end));
        }
        let sender = wal.sender();
        Node { chain, wal, sender, next, counter: 0, world: self.clone() }
    }

    pub(crate) fn reader(&self) -> Reader {
        Reader::new(ReaderParts {
            service: self.service.clone(),
            wal_store: self.object_store(),
            stream_store: self.object_store(),
            cluster: cluster(),
            footer_cache_bytes: 1 << 20,
            block_cache_bytes: 16 << 20,
            get_timeout: Duration::from_secs(10),
        })
    }

    pub(crate) fn ranges(&self, id: BucketId) -> Vec<ObjectRange> {
        self.meta.lock().unwrap().buckets.get(&id).map(|bucket| bucket.ranges.clone()).unwrap_or_default()
    }

    pub(crate) fn end(&self, id: BucketId) -> Offset {
        self.meta.lock().unwrap().buckets.get(&id).map_or(Offset(0), |bucket| bucket.end)
    }

    pub(crate) async fn recovery(&self, id: BucketId) -> BucketRecovery {
        for _ in 0..100 {
            match self.reader().recover_bucket(id, &self.ranges(id), self.end(id)).await {
                Ok(recovery) => return recovery,
                Err(error) => assert_eq!(*error.kind(), ErrorKind::Retry, "{error}"),
            }
        }
        panic!("a recovery that never ends");
    }

    pub(crate) fn takeover(&self, dead: u64, by: u64) -> Takeover {
        let trim =
            self.meta.lock().unwrap().chains.get(&chain(dead)).map_or(WalNumber(0), |chain| chain.trim);
        Takeover {
            service: self.service.clone(),
            store: self.object_store(),
            cluster: cluster(),
            uuid: uuid(),
            chain: chain(dead),
            trim,
            me: chain(by),
            witness: witness(by),
            config: Arc::new(self.config.clone()),
        }
    }

    /// Fences a chain, walks it, commits what it holds.
    pub(crate) async fn take_over(&self, dead: u64, by: u64) -> (Recovered, Adoption) {
        self.meta.lock().unwrap().chains.entry(chain(dead)).or_default().fenced = true;
        self.meta.lock().unwrap().hang = None;
        let recovered = self.takeover(dead, by).run().await.expect("the walk ends");
        let adoption = {
            let meta = self.meta.lock().unwrap();
            recovered.adopt(|id| {
                let bucket = meta.buckets.get(id).filter(|bucket| bucket.owner == Some(chain(dead)))?;
                Some(BucketView { epoch: bucket.epoch, end: bucket.end })
            })
        };
        for commit in adoption.commits(chain(dead)) {
            let end = self.meta.lock().unwrap().judge(chain(by), &commit);
            assert_eq!(end, CommitEnd::Applied);
        }
        self.meta.lock().unwrap().chains.get_mut(&chain(dead)).unwrap().seal.get_or_insert(recovered.seal);
        (recovered, adoption)
    }

    /// Everything committed of a bucket, read in small steps.
    pub(crate) async fn read_all(&self, id: BucketId) -> BTreeMap<Offset, Bytes> {
        let (reader, objects, end) = (self.reader(), self.ranges(id), self.end(id));
        let (mut from, mut all) = (Offset(0), BTreeMap::new());
        while from < end {
            let request = ReadRequest { bucket: id, objects: objects.clone(), from, bytes_max: 64 };
            let answer = reader.read(&request).await.expect("committed data is readable");
            for batch in &answer.batches {
                assert_eq!(batch.base_offset, from, "offsets are dense");
                all.insert(batch.base_offset, batch.bytes.clone());
                from = batch.base_offset.plus(u64::from(batch.count));
            }
        }
        all
    }

    /// I1: every acked write is committed under its offset, with its bytes.
    pub(crate) async fn check_acked(&self, buckets: &[u64]) {
        let acked = self.acked.lock().unwrap().clone();
        for n in buckets {
            let all = self.read_all(bucket(*n)).await;
            for ((_, offset), bytes) in acked.iter().filter(|((id, _), _)| *id == bucket(*n)) {
                assert_eq!(all.get(offset), Some(bytes), "bucket {n} offset {offset} was acked");
            }
        }
    }

    /// Names of all objects, as file names under `wal` and `stream` of an incarnation.
    pub(crate) async fn names(&self, kind: &str, incarnation: u64) -> Vec<u64> {
        let prefix = match kind {
            "wal" => mink_object::ObjectKey::wal_prefix(&cluster(), chain(incarnation)),
            _ => mink_object::ObjectKey::stream_prefix(&cluster(), chain(incarnation)),
        };
        let (entries, _) = mink_object::list_all(self.memory.as_ref(), &prefix, 10_000).await.unwrap();
        entries.iter().map(|entry| entry.key.file_name().parse().unwrap()).collect()
    }
}

pub(crate) fn witness(index: u64) -> Witness {
    Witness { index: LogIndex(index), hash: RowHash([u8::try_from(index).unwrap(); 32]) }
}

impl Node {
    /// The next batch of a bucket: `count` records, unique bytes.
    pub(crate) fn batch(&mut self, n: u64, count: u32) -> Entry {
        let (epoch, next) = self.next.get_mut(&bucket(n)).expect("open");
        let body = format!("{n}@{next} by {} #{}", self.chain.incarnation, self.counter);
        let made = entry(n, epoch.0, next.0, count, body.as_bytes());
        *next = made.end();
        self.counter += 1;
        made
    }

    /// Pushes entries as one chunk; acks are noted in the world.
    pub(crate) async fn push(
        &mut self,
        entries: Vec<Entry>,
    ) -> futures::channel::oneshot::Receiver<ChunkEnd> {
        let (tell, told) = futures::channel::oneshot::channel();
        let kept: Vec<_> = entries.iter().map(|e| ((e.bucket, e.base_offset), e.bytes.clone())).collect();
        let world = self.world.clone();
        let mut chunk = Chunk::new(entries, move |end| {
            if end == ChunkEnd::Durable {
                world.ack_order.lock().unwrap().extend(kept.iter().map(|(key, _)| *key));
                for (key, bytes) in kept {
                    let before = world.acked.lock().unwrap().insert(key, bytes.clone());
                    if before.is_some_and(|before| before != bytes) {
                        world.conflicts.lock().unwrap().push(key);
                    }
                }
            }
            let _ = tell.send(end);
        });
        loop {
            match self.sender.try_push(chunk) {
                Ok(()) => return told,
                Err(PushError::Full(back)) => {
                    chunk = back;
                    self.sender.ready().await.expect("the writer lives");
                }
                Err(PushError::Closed(back)) => {
                    drop(back);
                    return told;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// One batch of one record for a bucket, as a chunk.
    pub(crate) async fn append(&mut self, n: u64) -> futures::channel::oneshot::Receiver<ChunkEnd> {
        let batch = self.batch(n, 1);
        self.push(vec![batch]).await
    }

    /// Appends and waits for the ack.
    pub(crate) async fn write(&mut self, n: u64) {
        let told = self.append(n).await;
        assert_eq!(told.await, Ok(ChunkEnd::Durable));
    }
}
