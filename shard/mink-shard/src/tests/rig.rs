//! What the tests hold: a shard on a simulated core, its WAL, its objects, its metadata.
use super::held::{Objects, Sink};
use super::metadata::Metadata;
use crate::*;
use bytes::Bytes;
use futures::FutureExt as _;
use mink_log::Recovered;
use mink_record::kafka::{BatchBuilder, BatchHeader, Codec, ProducerStamp, RecordRef};
use mink_router::*;
use mink_rt::{Cores, CoresConfig, Instant, Runtime, SimConfig, simulate};
use mink_types::*;
use s3stream::{ChunkEnd, Entry};
use std::cell::RefCell;
use std::future::Future;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Looks for a condition so often before a test gives up; 100 us of virtual time each.
const LOOKS_MAX: usize = 20_000;

/// A shard with all that it talks to.
pub(super) struct Rig {
    pub(super) runtime: Arc<dyn Runtime>,
    pub(super) handle: ShardHandle,
    pub(super) sink: Sink,
    pub(super) objects: Objects,
    pub(super) metadata: RefCell<Metadata>,
    pub(super) permits: BytePermits,
    pub(super) ended: Arc<Mutex<Option<ShardEnd>>>,
    pub(super) cores: Option<Cores>,
}

/// Where a core's main takes what it was made for from.
type Handed = Arc<Mutex<Option<(Inbox, ShardParts)>>>;

/// Runs a test under several seeds, with a shard of the default configuration.
pub(super) fn sim<F: Future<Output = ()> + 'static>(test: impl Fn(Rig) -> F + Copy + 'static) {
    sim_with(|config| config, test);
}

pub(super) fn sim_with<F: Future<Output = ()> + 'static>(
    change: impl Fn(ShardConfig) -> ShardConfig + Copy + 'static,
    test: impl Fn(Rig) -> F + Copy + 'static,
) {
    for seed in 0..8 {
        let outcome = simulate(SimConfig::seeded(seed), move |runtime| async move {
            let sink = Sink::default();
            sink.set_room(usize::MAX);
            let objects = Objects::new(&runtime);
            let (given, seen) = (sink.clone(), objects.clone());
            let config = change(ShardConfig::new(ShardIndex(0), 1, &Limits::default(), 64 << 20));
            let rig =
                Rig::start(runtime, config, Metadata::new(), sink, objects, Box::new(given), Arc::new(seen));
            rig.lease().await;
            test(rig).await;
        });
        if let Err(failure) = outcome {
            panic!("{failure}");
        }
    }
}

impl Rig {
    pub(super) fn start(
        runtime: Arc<dyn Runtime>,
        config: ShardConfig,
        metadata: Metadata,
        sink: Sink,
        objects: Objects,
        wal: Box<dyn ChunkSink>,
        reads: Arc<dyn ObjectReads>,
    ) -> Rig {
        let (handle, inbox) = shard(config);
        let parts = ShardParts { sink: wal, objects: reads, service: runtime.service() };
        let handed: Handed = Arc::new(Mutex::new(Some((inbox, parts))));
        let ended = Arc::new(Mutex::new(None));
        let tells = Arc::clone(&ended);
        let main: mink_rt::CoreMain = Arc::new(move |core| {
            let (inbox, parts) = handed.lock().expect("one thread").take().expect("one core");
            let tells = Arc::clone(&tells);
            async move {
                let end = run(core, inbox, parts).await;
                *tells.lock().expect("one thread") = Some(end);
            }
            .boxed_local()
        });
        let one = NonZeroUsize::new(1).expect("not zero");
        let cores = CoresConfig { count: one, pin: vec![], name: "shard", on_fatal: None };
        let cores = Some(runtime.start_cores(cores, main).expect("started"));
        Rig {
            runtime,
            handle,
            sink,
            objects,
            metadata: RefCell::new(metadata),
            permits: BytePermits::new(1 << 30),
            ended,
            cores,
        }
    }

    pub(super) fn bucket(&self, index: u32) -> BucketId {
        BucketId::unpartitioned(self.metadata.borrow().table, BucketIndex(index))
    }

    pub(super) async fn control(&self, control: Control) {
        self.handle.controls.send(control).await.expect("the shard runs");
    }

    /// A lease for an hour.
    pub(super) async fn lease(&self) {
        self.lease_for(Duration::from_hours(1)).await;
    }

    pub(super) async fn lease_for(&self, time: Duration) {
        let until: Instant = self.runtime.service().now() + time;
        self.control(Control::Lease(until)).await;
    }

    pub(super) async fn send_view(&self) {
        let view = {
            let metadata = self.metadata.borrow();
            View { state: metadata.state.clone(), me: metadata.me }
        };
        self.control(Control::View(Box::new(view))).await;
    }

    /// Opens a bucket in the metadata and here, from its committed end.
    pub(super) async fn open(&self, index: u32) -> BucketId {
        let bucket = self.bucket(index);
        let recovered = {
            let mut metadata = self.metadata.borrow_mut();
            let epoch = metadata.open(bucket);
            let known = metadata.state.bucket(&bucket).expect("exists");
            Recovered { epoch, start: known.start, end: known.end, ..Recovered::default() }
        };
        self.send_view().await;
        self.open_from(bucket, recovered).await.expect("opened");
        bucket
    }

    pub(super) async fn open_from(&self, bucket: BucketId, recovered: Recovered) -> Result<(), OpenError> {
        let (reply, answer) = reply();
        let options = BucketOptions { batch_bytes_max: BATCH_BYTES_MAX_DEFAULT };
        self.control(Control::Open(Box::new(OpenBucket { bucket, recovered, options, reply }))).await;
        answer.answer().await.expect("the shard runs")
    }

    pub(super) async fn append(&self, bucket: BucketId, batch: Bytes) -> AppendTicket {
        self.append_with(bucket, batch, TimestampType::CreateTime).await
    }

    pub(super) async fn append_with(
        &self,
        bucket: BucketId,
        batch: Bytes,
        timestamps: TimestampType,
    ) -> AppendTicket {
        let permit = self.permits.take(batch.len() as u64).await;
        let (reply, ticket) = append_reply(permit);
        let header = BatchHeader::parse(&batch).expect("sound");
        let sent = self
            .handle
            .appends
            .send(Append {
                bucket,
                header,
                batch: batch.into(),
                timestamps,
                first: FirstSequence::Any,
                reply,
            })
            .await;
        assert!(sent.is_ok(), "the shard runs");
        ticket
    }

    /// Appends and expects an offset.
    pub(super) async fn ordered(&self, bucket: BucketId, batch: Bytes) -> (u64, AppendTicket) {
        let mut ticket = self.append(bucket, batch).await;
        let ordered = ticket.ordered().await.expect("answered").expect("ordered");
        (ordered.base_offset.0, ticket)
    }

    pub(super) async fn refused(&self, bucket: BucketId, batch: Bytes) -> AppendError {
        let mut ticket = self.append(bucket, batch).await;
        ticket.ordered().await.expect("answered").expect_err("refused")
    }

    /// The next chunk of the shard.
    pub(super) async fn chunk(&self) -> (Vec<Entry>, Told) {
        for _ in 0..LOOKS_MAX {
            if let Some(chunk) = self.sink.take() {
                return chunk;
            }
            self.runtime.service().sleep(Duration::from_micros(100)).await;
        }
        panic!("no chunk came");
    }

    /// Appends batches, makes them durable, and gives their entries.
    pub(super) async fn stored(&self, bucket: BucketId, batches: &[Bytes]) -> Vec<Entry> {
        let mut entries = Vec::new();
        for batch in batches {
            let (_, ticket) = self.ordered(bucket, batch.clone()).await;
            let (new, told) = self.chunk().await;
            told(ChunkEnd::Durable);
            ticket.durable().await.expect("durable");
            entries.extend(new);
        }
        entries
    }

    /// Commits entries into one object that exists, and shows the shard.
    pub(super) async fn committed(&self, entries: &[Entry]) -> ObjectId {
        let id = self.metadata.borrow_mut().commit(entries);
        self.objects.put(id, entries);
        self.send_view().await;
        // The turn that took the view ends with the eviction.
        self.settle().await;
        id
    }

    pub(super) async fn read_all(&self, reads: &[(BucketId, u64, u32)], bytes_max: u32) -> ReadsAnswer {
        let reads = reads.iter().map(|(bucket, from, bytes_max)| Read {
            bucket: *bucket,
            from: Offset(*from),
            bytes_max: *bytes_max,
            leader_epoch: None,
        });
        let (reply, answer) = reply();
        let reads = Reads { reads: reads.collect(), bytes_max, reply };
        assert!(self.handle.requests.send(Request::Reads(reads)).await.is_ok(), "the shard runs");
        answer.answer().await.expect("answered")
    }

    pub(super) async fn read(&self, bucket: BucketId, from: u64) -> Result<ReadAnswer, ReadError> {
        self.read_all(&[(bucket, from, 1 << 20)], 1 << 20).await.remove(0)
    }

    pub(super) async fn watch(&self, offsets: &[(BucketId, u64)]) -> Waiting<()> {
        let (reply, answer) = reply();
        let offsets =
            offsets.iter().map(|(bucket, seen)| WatchedOffset { bucket: *bucket, seen: Offset(*seen) });
        let watch = Watch { offsets: offsets.collect(), reply };
        assert!(self.handle.requests.send(Request::Watch(watch)).await.is_ok(), "the shard runs");
        answer
    }

    pub(super) async fn locate(&self, bucket: BucketId, position: Position) -> Result<Located, ReadError> {
        let (reply, answer) = reply();
        let locate = Request::Locate { bucket, position, leader_epoch: None, reply };
        assert!(self.handle.requests.send(locate).await.is_ok(), "the shard runs");
        answer.answer().await.expect("answered")
    }

    pub(super) async fn stats(&self) -> ShardStats {
        let (reply, answer) = reply();
        self.control(Control::Stats { reply }).await;
        answer.answer().await.expect("answered")
    }

    /// Lets everything run that can run.
    pub(super) async fn settle(&self) {
        self.runtime.service().sleep(Duration::from_millis(5)).await;
    }
}

/// A batch of `count` records of 10 bytes with this timestamp.
pub(super) fn batch_at(count: u32, timestamp: i64) -> Bytes {
    make(count, timestamp, 10, None)
}

pub(super) fn batch(count: u32) -> Bytes {
    batch_at(count, 1)
}

pub(super) fn large_batch(bytes: usize) -> Bytes {
    make(1, 1, bytes, None)
}

/// A batch of an idempotent producer at epoch 0.
pub(super) fn stamped(count: u32, producer: i64, base_sequence: i32) -> Bytes {
    make(count, 1, 10, Some(ProducerStamp { id: producer, epoch: 0, base_sequence }))
}

fn make(count: u32, timestamp: i64, bytes: usize, stamp: Option<ProducerStamp>) -> Bytes {
    let value = vec![b'v'; bytes];
    let mut builder = BatchBuilder::new();
    for _ in 0..count {
        builder.push(RecordRef { timestamp, value: Some(&value), ..RecordRef::default() }).expect("a record");
    }
    builder.build(Codec::None, stamp).expect("a batch")
}

/// Base offsets of the batches of an answer.
pub(super) fn bases(batches: &[Bytes]) -> Vec<i64> {
    batches.iter().map(|batch| BatchHeader::parse(batch).expect("sound").base_offset).collect()
}

/// Whether a reply is still being waited for.
pub(super) fn poll_now<T>(waiting: impl Future<Output = T>) -> Option<T> {
    waiting.now_or_never()
}
