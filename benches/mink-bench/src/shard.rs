//! A shard alone: its WAL takes every chunk and says at once that it is durable.
//!
//! Lives on: a core of the runtime that it is started in, and whoever asks it.
use crate::batch::Batch;
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use mink_log::Recovered;
use mink_router::{
    Append, BytePermits, FirstSequence, Read, Reads, ReadsAnswer, Request, ShardIndex, append_reply, reply,
};
use mink_rt::{CoreMain, Cores, CoresConfig, Runtime};
use mink_shard::{
    BucketOptions, ChunkSink, Control, Inbox, ObjectFind, ObjectReadError, ObjectReads, OpenBucket,
    ShardConfig, ShardHandle, ShardParts, Told, run, shard,
};
use mink_types::{
    BATCH_BYTES_MAX_DEFAULT, BucketEpoch, BucketId, BucketIndex, Limits, LogIndex, Offset, TableId,
    TimestampType,
};
use s3stream::{ChunkEnd, Entry, LaneClosed, ReadRequest};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

/// A WAL that keeps nothing.
#[derive(Debug)]
struct NoWal;

impl ChunkSink for NoWal {
    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), LaneClosed>> {
        Poll::Ready(Ok(()))
    }

    fn push(&mut self, entries: Vec<Entry>, told: Told) {
        drop(entries);
        told(ChunkEnd::Durable);
    }
}

/// Objects that nobody asks for: all is in the tail.
#[derive(Debug)]
struct NoObjects;

impl ObjectReads for NoObjects {
    fn read(&self, _: LogIndex, _: ReadRequest) -> BoxFuture<'static, Result<Vec<Bytes>, ObjectReadError>> {
        futures::future::ready(Ok(Vec::new())).boxed()
    }

    fn find(&self, _: LogIndex, _: ObjectFind) -> BoxFuture<'static, Result<Option<Bytes>, ObjectReadError>> {
        futures::future::ready(Ok(None)).boxed()
    }
}

/// Where a core's main takes what it was made for from.
type Handed = Arc<Mutex<Option<(Inbox, ShardParts)>>>;

/// A shard with open buckets.
#[derive(Debug)]
pub struct BenchShard {
    handle: ShardHandle,
    permits: BytePermits,
    buckets: Vec<BucketId>,
    _cores: Cores,
}

impl BenchShard {
    /// Starts a shard with so many buckets.
    pub async fn start(runtime: &Arc<dyn Runtime>, buckets: u32) -> BenchShard {
        let config = ShardConfig::new(ShardIndex(0), 1, &Limits::default(), 1 << 30);
        let (handle, inbox) = shard(config);
        let parts =
            ShardParts { sink: Box::new(NoWal), objects: Arc::new(NoObjects), service: runtime.service() };
        let handed: Handed = Arc::new(Mutex::new(Some((inbox, parts))));
        let main: CoreMain = Arc::new(move |core| {
            let handed = handed.lock().unwrap_or_else(PoisonError::into_inner).take();
            async move {
                if let Some((inbox, parts)) = handed {
                    run(core, inbox, parts).await;
                }
            }
            .boxed_local()
        });
        let config = CoresConfig { count: NonZeroUsize::MIN, pin: vec![], name: "shard", on_fatal: None };
        let cores = runtime.start_cores(config, main);
        let cores = cores.unwrap_or_else(|error| unreachable!("one core starts: {error}"));
        let until = runtime.service().now() + Duration::from_hours(100);
        assert!(handle.controls.send(Control::Lease(until)).await.is_ok(), "the shard runs");
        let buckets: Vec<_> =
            (0..buckets).map(|index| BucketId::unpartitioned(TableId(1), BucketIndex(index))).collect();
        for bucket in &buckets {
            let (reply, answer) = reply();
            let recovered = Recovered { epoch: BucketEpoch(1), ..Recovered::default() };
            let options = BucketOptions { batch_bytes_max: BATCH_BYTES_MAX_DEFAULT };
            let open = OpenBucket { bucket: *bucket, recovered, options, reply };
            assert!(handle.controls.send(Control::Open(Box::new(open))).await.is_ok(), "the shard runs");
            assert!(matches!(answer.answer().await, Ok(Ok(()))), "a new bucket opens");
        }
        BenchShard { handle, permits: BytePermits::new(1 << 30), buckets, _cores: cores }
    }

    /// Appends one batch to each bucket and waits until all are durable.
    pub async fn append(&self, batch: &Batch) {
        let mut tickets = Vec::with_capacity(self.buckets.len());
        for bucket in &self.buckets {
            let Batch { header, bytes } = batch.clone();
            let (reply, ticket) = append_reply(self.permits.take(bytes.len() as u64).await);
            let timestamps = TimestampType::CreateTime;
            let append = Append {
                bucket: *bucket,
                header,
                batch: bytes.into(),
                timestamps,
                first: FirstSequence::Any,
                reply,
            };
            assert!(self.handle.appends.send(append).await.is_ok(), "the shard runs");
            tickets.push(ticket);
        }
        for ticket in tickets {
            assert!(ticket.durable().await.is_ok(), "the shard runs");
        }
    }

    /// Reads each bucket from its start, up to `bytes_max` each.
    pub async fn read(&self, bytes_max: u32) -> ReadsAnswer {
        let read =
            |bucket: &BucketId| Read { bucket: *bucket, from: Offset(0), bytes_max, leader_epoch: None };
        let (reply, answer) = reply();
        let reads = Reads { reads: self.buckets.iter().map(read).collect(), bytes_max: u32::MAX, reply };
        assert!(self.handle.requests.send(Request::Reads(reads)).await.is_ok(), "the shard runs");
        answer.answer().await.unwrap_or_default()
    }
}
