//! The shard with the real WAL writer, flusher and reader over a store in memory: what is acked is what is read, from the tail
//! or from objects, and a new owner knows the producers.
use super::held::{Objects, Sink};
use super::metadata::Metadata;
use super::rig::*;
use crate::*;
use async_trait::async_trait;
use mink_metadata::{Command, CommittedObject, CommittedRange};
use mink_object::MemoryStore;
use mink_router::ShardIndex;
use mink_rt::{Runtime, SimConfig, simulate};
use mink_types::*;
use s3stream::{
    CommitEnd, Commits, CommitsStopped, ObjectRange, Reader, ReaderParts, StreamCommit, StreamRewrite, Wal,
    WalConfig, WalParts,
};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Commits into the log, and keeps it for the test.
#[derive(Clone)]
struct Log(Arc<Mutex<Metadata>>);

#[async_trait]
impl Commits for Log {
    async fn commit(&self, commit: StreamCommit) -> Result<CommitEnd, CommitsStopped> {
        let mut log = self.0.lock().expect("one thread");
        let objects = commit.objects.iter().map(|object| CommittedObject {
            id: object.id,
            length: object.length,
            footer_length: object.footer_length,
            checksum: object.checksum,
            ranges: object
                .ranges
                .iter()
                .map(|range| CommittedRange {
                    bucket: range.bucket,
                    epoch: range.epoch,
                    start: range.start,
                    end: range.end,
                    max_timestamp: range.max_timestamp,
                    last_commit_time: range.last_commit_time,
                    bytes: range.bytes,
                })
                .collect(),
        });
        let (me, objects) = (log.me, objects.collect());
        log.run(&Command::Commit { by: me, source: me, objects, trim: commit.trim });
        Ok(CommitEnd::Applied)
    }

    async fn rewrite(&self, rewrite: StreamRewrite) -> Result<CommitEnd, CommitsStopped> {
        panic!("nothing is compacted: {rewrite:?}")
    }
}

impl Log {
    fn view(&self) -> View {
        let log = self.0.lock().expect("one thread");
        View { state: log.state.clone(), me: log.me }
    }

    fn ranges(&self, bucket: BucketId) -> Vec<ObjectRange> {
        let log = self.0.lock().expect("one thread");
        log.state
            .objects_of(&bucket)
            .map(|(range, place, object)| ObjectRange {
                object: place.object,
                range,
                max_timestamp: place.max_timestamp,
                bytes: place.bytes,
                length: object.length,
                footer_length: object.footer_length,
                checksum: object.checksum,
            })
            .collect()
    }
}

struct Node {
    rig: Rig,
    log: Log,
    wal: Wal,
    reader: Reader,
    config: ShardConfig,
}

fn start(runtime: Arc<dyn Runtime>) -> Node {
    let store = Arc::new(MemoryStore::new());
    let log = Log(Arc::new(Mutex::new(Metadata::new())));
    let cluster = ClusterName::new("mink").expect("valid");
    let config = ShardConfig::new(ShardIndex(0), 1, &Limits::default(), 0);
    let witness = log.clone();
    let chain = log.0.lock().expect("one thread").chain();
    let wal = Wal::start(WalParts {
        service: runtime.service(),
        wal_store: Arc::<MemoryStore>::clone(&store),
        stream_store: Arc::<MemoryStore>::clone(&store),
        cluster: cluster.clone(),
        uuid: ClusterUuid([7; 16]),
        chain,
        config: WalConfig::default(),
        commits: Arc::new(log.clone()),
        fold: Arc::new(LogFold { limits: config.producers }),
        witness: Arc::new(move || witness.view().state.witness()),
    })
    .expect("a sound configuration");
    let reader = Reader::new(ReaderParts {
        service: runtime.service(),
        wal_store: Arc::<MemoryStore>::clone(&store),
        stream_store: store,
        cluster,
        footer_cache_bytes: 1 << 20,
        block_cache_bytes: 16 << 20,
        get_timeout: Duration::from_secs(5),
    });
    let objects = Objects::new(&runtime);
    let rig = Rig::start(
        runtime,
        config,
        Metadata::new(),
        Sink::default(),
        objects,
        Box::new(wal.sender()),
        Arc::new(reader.clone()),
    );
    Node { rig, log, wal, reader, config }
}

impl Node {
    /// Opens a bucket as a node does: metadata, recovery, flusher, shard.
    async fn open(&self, bucket: BucketId) {
        let epoch = self.log.0.lock().expect("one thread").open(bucket);
        let end = self.log.view().state.bucket(&bucket).expect("exists").end;
        let recovery =
            self.reader.recover_bucket(bucket, &self.log.ranges(bucket), end).await.expect("readable");
        let recovered = recovered(epoch, Offset(0), &recovery).expect("sound");
        self.wal.open_bucket(opened(bucket, &recovered, self.config.producers).expect("sound"));
        self.rig.control(Control::View(Box::new(self.log.view()))).await;
        self.rig.open_from(bucket, recovered).await.expect("opened");
    }

    async fn flush(&self) {
        self.wal.flush_now().await.expect("the WAL runs");
        self.rig.control(Control::View(Box::new(self.log.view()))).await;
    }

    /// The base offsets of a whole log, read as a client would.
    async fn read_log(&self, bucket: BucketId) -> Vec<i64> {
        let (mut from, mut found) = (0, Vec::new());
        loop {
            let answer = self.rig.read_all(&[(bucket, from, 400)], 400).await.remove(0).expect("readable");
            let Some(last) = answer.batches.last() else {
                return found;
            };
            let last = mink_record::kafka::BatchHeader::parse(last).expect("sound");
            from = u64::try_from(last.last_offset() + 1).expect("not negative");
            found.extend(bases(&answer.batches));
        }
    }
}

fn sim_node<F: Future<Output = ()> + 'static>(test: impl Fn(Node) -> F + Copy + 'static) {
    for seed in 0..4 {
        let outcome = simulate(SimConfig::seeded(seed), move |runtime| async move {
            let node = start(runtime);
            node.rig.lease().await;
            test(node).await;
        });
        if let Err(failure) = outcome {
            panic!("{failure}");
        }
    }
}

#[test]
fn i1_i2_what_is_acked_is_read_back_from_tail_and_objects() {
    sim_node(|node| async move {
        let buckets = [node.rig.bucket(0), node.rig.bucket(1), node.rig.bucket(2)];
        for bucket in buckets {
            node.open(bucket).await;
        }
        let mut acked = [const { Vec::new() }; 3];
        for round in 0..6_u32 {
            let mut tickets = Vec::new();
            for n in 0..20_u32 {
                let at = (n % 3) as usize;
                tickets.push((at, node.rig.ordered(buckets[at], batch(1 + (n + round) % 4)).await));
            }
            for (at, (base, ticket)) in tickets {
                let appended = ticket.durable().await.expect("durable");
                assert_eq!(appended.base_offset.0, base);
                acked[at].push(appended.base_offset.kafka());
            }
            if round % 2 == 0 {
                node.flush().await;
            }
            for (bucket, acked) in buckets.iter().zip(&acked) {
                assert_eq!(&node.read_log(*bucket).await, acked, "in round {round}");
            }
        }
        let stats = node.rig.stats().await;
        assert!(stats.reads_object > 0 && stats.reads_tail > 0, "{stats:?}");
        assert_eq!(stats.tail_batches, 20, "what was flushed is gone, what was not is there");
    });
}

#[test]
fn t_3_i6_a_new_owner_knows_the_producers_and_repeats_keep_their_offsets() {
    sim_node(|node| async move {
        let bucket = node.rig.bucket(0);
        node.open(bucket).await;
        for sequence in 0..4 {
            let (_, ticket) = node.rig.ordered(bucket, stamped(2, 7, sequence * 2)).await;
            ticket.durable().await.expect("durable");
            if sequence == 1 {
                node.flush().await;
            }
        }
        node.flush().await;
        // Given back and opened again: everything comes from footers.
        let (reply, released) = mink_router::reply();
        node.rig.control(Control::Release { bucket, reply }).await;
        let released = released.answer().await.expect("answered").expect("released");
        node.rig.control(Control::Close { bucket }).await;
        node.wal.close_bucket(&bucket);
        let me = node.log.view().me;
        let end = released.end;
        let epoch = released.epoch;
        node.log.0.lock().expect("one thread").run(&Command::Release { by: me, bucket, epoch, end });
        node.open(bucket).await;
        for sequence in [3, 0, 2, 1] {
            let (base, ticket) = node.rig.ordered(bucket, stamped(2, 7, sequence * 2)).await;
            let acked = ticket.durable().await.expect("durable");
            assert_eq!((base, acked.duplicate), (u64::try_from(sequence).expect("small") * 2, true));
        }
        assert_eq!(node.rig.ordered(bucket, stamped(2, 7, 8)).await.0, 8);
    });
}

#[test]
fn i5_a_stopped_wal_is_a_fence() {
    sim_node(|node| async move {
        let bucket = node.rig.bucket(0);
        node.open(bucket).await;
        let (_, ticket) = node.rig.ordered(bucket, batch(1)).await;
        ticket.durable().await.expect("durable");
        node.wal.stop().await;
        let refused = node.rig.refused(bucket, batch(1)).await;
        assert_eq!(refused, mink_router::AppendError::NotOwner { bucket });
    });
}
