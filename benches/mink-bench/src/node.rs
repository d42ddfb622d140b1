//! A whole node on a store in memory, without its frontends: what a listener sees of it.
//!
//! Lives on: the runtime that it is started in: the simulator's for counts, the real one for times.
use crate::batch::Batch;
use mink_api::LogSource;
use mink_node::{CompactionConfig, DataDir, GroupLimits, Node, NodeConfig, Progress, Stores};
use mink_object::{MemoryStore, ObjectStore};
use mink_router::{BytePermits, FirstSequence, Read, ReadAnswer};
use mink_rt::Runtime;
use mink_sql::{CommandLog, Database, Home, Metadata, MetadataConfig, SqliteLog};
use mink_types::{
    BucketId, BucketIndex, ClusterName, DatabaseName, Limits, NodeId, Offset, TableOptions, TablePath,
    TimestampType,
};
use s3stream::WalConfig;
use std::fmt::Debug;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

/// A node with a table whose buckets are open.
#[derive(Debug)]
pub struct BenchNode {
    source: Arc<dyn LogSource>,
    buckets: Vec<BucketId>,
    permits: BytePermits,
    _node: Node,
    _dir: tempfile::TempDir,
}

/// What cannot fail here, or nothing is worth measuring.
fn sound<T, E: Debug>(result: Result<T, E>, what: &str) -> T {
    result.unwrap_or_else(|error| unreachable!("{what}: {error:?}"))
}

impl BenchNode {
    /// Starts a node of one shard with a table of so many buckets.
    pub async fn start(runtime: &Arc<dyn Runtime>, buckets: u32, wal: WalConfig) -> BenchNode {
        let service = runtime.service();
        let cluster = sound(ClusterName::new("bench"), "a name");
        let store: Arc<dyn ObjectStore> = Arc::new(MemoryStore::new());
        let log = SqliteLog::open(&service, Database::Memory, &cluster).await;
        let log: Arc<dyn CommandLog> = Arc::new(sound(log, "a database in memory"));
        let home =
            Home { service, log: Arc::clone(&log), store: Arc::clone(&store), cluster: cluster.clone() };
        let metadata = sound(Metadata::open(home, MetadataConfig::default()).await, "metadata");
        let dir = sound(tempfile::tempdir(), "a folder");
        let only = Arc::clone(&store);
        let config = NodeConfig {
            cluster,
            node: NodeId(1),
            stores: Stores {
                stream: Arc::clone(&store),
                wal: Arc::clone(&store),
                probed: vec![store],
                open: Arc::new(move |_| Ok(Arc::clone(&only))),
            },
            log,
            database: "in memory".into(),
            listeners: Vec::new(),
            kafka_database: sound(DatabaseName::new("kafka"), "a name"),
            shards: NonZeroUsize::MIN,
            limits: Limits::default(),
            groups: GroupLimits::default(),
            wal,
            lease_ttl: Duration::from_secs(10),
            tail_bytes: 1 << 30,
            object_read_bytes: 64 << 20,
            footer_cache_bytes: 8 << 20,
            block_cache_bytes: 64 << 20,
            compaction: CompactionConfig {
                bytes_per_second: 0,
                window_bytes: CompactionConfig::WINDOW_BYTES_MIN,
            },
            deletion_grace: Duration::from_mins(10),
            snapshot_rows: 1_000_000,
            runtime: runtime.name().into(),
            version: "bench".into(),
            progress: Progress::new(|_| {}),
        };
        let data = sound(DataDir::open(&dir.path().join("node")), "a data directory");
        let node = sound(Node::start(config, runtime, metadata, data).await, "a node");
        let path = sound(TablePath::parse("kafka.bench"), "a path");
        let options = TableOptions { buckets, batch_bytes_max: 8 << 20, ..TableOptions::default() };
        let table = sound(node.admin().create_table(path, options, None).await, "a table");
        assert!(node.admin().wait_open(table, Duration::from_mins(1)).await, "the buckets open");
        let buckets = (0..buckets).map(|index| BucketId::unpartitioned(table, BucketIndex(index)));
        BenchNode {
            source: node.source(),
            buckets: buckets.collect(),
            permits: BytePermits::new(1 << 30),
            _node: node,
            _dir: dir,
        }
    }

    /// Appends `batches` batches, to the buckets in turn, and waits until all are durable.
    pub async fn append(&self, batch: &Batch, batches: usize) {
        let mut tickets = Vec::with_capacity(batches);
        for bucket in self.buckets.iter().cycle().take(batches) {
            let Batch { header, bytes } = batch.clone();
            let permit = self.permits.take(bytes.len() as u64).await;
            let handed = self.source.append(
                *bucket,
                header,
                bytes.into(),
                TimestampType::CreateTime,
                FirstSequence::Any,
                permit,
            );
            tickets.push(sound(handed.await, "an append is handed over"));
        }
        for mut ticket in tickets {
            sound(sound(ticket.ordered().await, "an append is answered"), "an append is ordered");
            sound(ticket.durable().await, "an append is durable");
        }
    }

    /// Reads every bucket from its start, at most `bytes_max` each; the bytes found.
    pub async fn read(&self, bytes_max: u32) -> usize {
        let read =
            |bucket: &BucketId| Read { bucket: *bucket, from: Offset(0), bytes_max, leader_epoch: None };
        let answers = self.source.read(self.buckets.iter().map(read).collect(), u32::MAX).await;
        answers.iter().flatten().map(ReadAnswer::bytes).sum()
    }
}
