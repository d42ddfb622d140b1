//! The WAL alone: chunks become objects of a store that keeps nothing.
//!
//! Lives on: the runtime that it is started in.
use crate::batch::Batch;
use async_trait::async_trait;
use bytes::Bytes;
use futures::channel::oneshot;
use mink_object::{
    DeleteRefused, GetError, ListCursor, ListPage, ObjectMeta, ObjectStore, Payload, PutRefused, Span,
    StoreHealth, StoreStats,
};
use mink_record::kafka::stated_checksum;
use mink_rt::Service;
use mink_types::{
    BucketEpoch, BucketId, BucketIndex, ClusterName, ClusterUuid, CommitTime, Incarnation, NodeId, ObjectKey,
    Offset, Outcome, TableId, Timestamp, WalChain, Witness,
};
use s3stream::{
    Chunk, ChunkEnd, ChunkSender, CommitEnd, Commits, CommitsStopped, Entry, EntryKind, FoldError,
    IndexEntry, KnownChecksum, ProducerFold, StreamCommit, StreamRewrite, Wal, WalConfig, WalParts,
};
use std::sync::Arc;
use std::time::Duration;

/// A store that takes everything and keeps nothing, so that what is counted is not its own.
#[derive(Debug)]
pub struct NoStore;

#[async_trait]
impl ObjectStore for NoStore {
    async fn put(&self, _key: &ObjectKey, _payload: &Payload) -> Outcome<(), PutRefused> {
        Outcome::Done(())
    }

    async fn get(&self, _key: &ObjectKey, _span: Span) -> Result<Bytes, GetError> {
        Err(GetError::NotFound)
    }

    async fn head(&self, _key: &ObjectKey) -> Result<ObjectMeta, GetError> {
        Err(GetError::NotFound)
    }

    async fn list(
        &self,
        _prefix: &ObjectKey,
        _cursor: Option<&ListCursor>,
        _limit: usize,
    ) -> Result<ListPage, GetError> {
        Ok(ListPage { entries: Vec::new(), next: None, foreign: 0 })
    }

    async fn delete(&self, keys: &[ObjectKey]) -> Vec<(ObjectKey, Outcome<(), DeleteRefused>)> {
        keys.iter().map(|key| (key.clone(), Outcome::Done(()))).collect()
    }

    fn health(&self) -> StoreHealth {
        StoreHealth::Well
    }

    fn stats(&self) -> StoreStats {
        StoreStats::default()
    }

    fn address(&self) -> String {
        "none://".into()
    }

    fn needs_put_budget(&self) -> bool {
        false
    }
}

/// Metadata that applies every commit.
struct Agrees;

#[async_trait]
impl Commits for Agrees {
    async fn commit(&self, _commit: StreamCommit) -> Result<CommitEnd, CommitsStopped> {
        Ok(CommitEnd::Applied)
    }

    async fn rewrite(&self, _rewrite: StreamRewrite) -> Result<CommitEnd, CommitsStopped> {
        Ok(CommitEnd::Applied)
    }
}

/// Buckets without producers.
struct NoProducers;

impl ProducerFold for NoProducers {
    fn fold(&self, _before: &[u8], _entries: &[IndexEntry]) -> Result<Bytes, FoldError> {
        Ok(Bytes::new())
    }

    fn lost_below(&self, _before: &[u8], _offset: Offset) -> Result<Bytes, FoldError> {
        Ok(Bytes::new())
    }
}

/// Bounds that nothing meets while it is measured, so that no flush begins.
#[must_use]
pub fn never_flushed() -> WalConfig {
    WalConfig {
        puts_per_second: None,
        hedge_puts: false,
        untrimmed_bytes_max: 16 << 30,
        untrimmed_objects_max: 1 << 20,
        flush_age: Duration::from_hours(1000),
        flush_bytes: 16 << 30,
        ..WalConfig::default()
    }
}

/// A WAL, and a lane to it.
#[derive(Debug)]
pub struct BenchWal {
    lane: ChunkSender,
    next: Vec<u64>,
    _wal: Wal,
}

impl BenchWal {
    /// Starts a WAL for so many buckets.
    #[must_use]
    pub fn start(service: &Service, buckets: usize) -> BenchWal {
        let store: Arc<dyn ObjectStore> = Arc::new(NoStore);
        let cluster = ClusterName::new("bench");
        let wal = Wal::start(WalParts {
            service: service.clone(),
            wal_store: Arc::clone(&store),
            stream_store: store,
            cluster: cluster.unwrap_or_else(|error| unreachable!("a sound name: {error}")),
            uuid: ClusterUuid([7; 16]),
            chain: WalChain { node: NodeId(1), incarnation: Incarnation(1), tag: 1 },
            config: never_flushed(),
            commits: Arc::new(Agrees),
            fold: Arc::new(NoProducers),
            witness: Arc::new(Witness::default),
        });
        let wal = wal.unwrap_or_else(|error| unreachable!("a sound configuration: {error}"));
        BenchWal { lane: wal.sender(), next: vec![0; buckets], _wal: wal }
    }

    /// One chunk with a batch of each bucket, until its object is there.
    pub async fn chunk(&mut self, batch: &Batch) {
        let entries = (0..).zip(&mut self.next).map(|(bucket, next)| {
            let base = *next;
            *next += u64::from(batch.header.record_count.unsigned_abs());
            Entry {
                bucket: BucketId::unpartitioned(TableId(1), BucketIndex(bucket)),
                epoch: BucketEpoch(1),
                base_offset: Offset(base),
                count: batch.header.record_count.unsigned_abs(),
                kind: EntryKind::Batch,
                commit_time: CommitTime(1_767_225_600_000),
                max_timestamp: Timestamp(1_767_225_600_000),
                producer: None,
                known: stated_checksum(&batch.bytes).map(|(from, crc)| KnownChecksum { from, crc }),
                bytes: batch.bytes.clone(),
            }
        });
        let (tell, told) = oneshot::channel();
        let chunk = Chunk::new(entries.collect(), move |end| {
            // Whoever measures has gone.
            let _ = tell.send(end);
        });
        assert!(self.lane.ready().await.is_ok(), "the WAL runs");
        assert!(self.lane.try_push(chunk).is_ok(), "there is room");
        assert_eq!(told.await, Ok(ChunkEnd::Durable));
    }
}
