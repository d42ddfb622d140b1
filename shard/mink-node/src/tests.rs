//! A small cluster of whole nodes in virtual time: one store and one database in memory, and machines that come and go.
//!
//! Lives on: the simulation's thread.
use crate::{CompactionConfig, DataDir, Node, NodeConfig, Progress, StartError, Stores};
use bytes::Bytes;
use mink_group::GroupLimits;
use mink_metadata::{Answer, Command, CommandResult, FEATURE_LEVEL_MAX, Registration, State};
use mink_object::{MemoryStore, ObjectStore, list_all};
use mink_record::kafka::{BatchBuilder, BatchHeader, Codec, RecordRef, batches};
use mink_router::{BytePermits, FirstSequence, Read};
use mink_rt::{Instant, Runtime, SimClock, SimConfig, SimProcess, SimWorld, simulate_world};
use mink_sql::{CommandLog, Database, Home, Metadata, MetadataConfig, SqliteLog};
use mink_types::{
    BucketId, ClusterName, DatabaseName, Incarnation, Limits, NodeId, ObjectKey, Offset, TableId,
    TableOptions, TablePath, TimestampType,
};
use s3stream::WalConfig;
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

mod alter;
mod garbage;
mod groups;
mod limits;
mod month;
mod suspect;
mod unready;

pub(crate) const TTL: Duration = Duration::from_secs(3);
pub(crate) const GRACE: Duration = Duration::from_mins(1);

/// What all nodes share.
#[derive(Clone)]
pub(crate) struct Site {
    pub(crate) world: SimWorld,
    pub(crate) cluster: ClusterName,
    pub(crate) store: Arc<dyn ObjectStore>,
    pub(crate) log: Arc<dyn CommandLog>,
    root: Arc<tempfile::TempDir>,
}

/// A process with a node in it.
pub(crate) struct Machine {
    pub(crate) process: SimProcess,
    pub(crate) node: Node,
}

/// Runs `story` in a world of its own.
pub(crate) fn story<F: Future<Output = ()> + 'static>(tell: impl FnOnce(Site) -> F + 'static) {
    story_of(SimConfig::seeded(7), tell);
}

/// The same with other bounds.
pub(crate) fn story_of<F: Future<Output = ()> + 'static>(
    bounds: SimConfig,
    tell: impl FnOnce(Site) -> F + 'static,
) {
    let ended = simulate_world(bounds, |world| async move {
        let service = world.runtime().service();
        let cluster = ClusterName::new("mink").expect("valid");
        let log = SqliteLog::open(&service, Database::Memory, &cluster).await.expect("opens");
        let site = Site {
            world: world.clone(),
            cluster,
            store: Arc::new(MemoryStore::new()),
            log: Arc::new(log),
            root: Arc::new(tempfile::tempdir().expect("a directory")),
        };
        tell(site).await;
    });
    ended.expect("completes");
}

impl Site {
    pub(crate) fn config(&self, node: u32) -> NodeConfig {
        let only = Arc::clone(&self.store);
        NodeConfig {
            cluster: self.cluster.clone(),
            node: NodeId(node),
            stores: Stores {
                stream: Arc::clone(&self.store),
                wal: Arc::clone(&self.store),
                probed: vec![Arc::clone(&self.store)],
                open: Arc::new(move |_| Ok(Arc::clone(&only))),
            },
            log: Arc::clone(&self.log),
            database: "in memory".into(),
            listeners: Vec::new(),
            kafka_database: DatabaseName::new("kafka").expect("valid"),
            shards: NonZeroUsize::MIN,
            limits: Limits::default(),
            groups: GroupLimits::default(),
            wal: WalConfig { flush_age: Duration::from_millis(300), ..WalConfig::default() },
            lease_ttl: TTL,
            tail_bytes: 1 << 20,
            object_read_bytes: 1 << 20,
            footer_cache_bytes: 1 << 20,
            block_cache_bytes: 1 << 20,
            compaction: CompactionConfig {
                bytes_per_second: 0,
                window_bytes: CompactionConfig::WINDOW_BYTES_MIN,
            },
            deletion_grace: GRACE,
            snapshot_rows: 1_000,
            runtime: "sim".into(),
            version: "test".into(),
            progress: Progress::new(|_| {}),
        }
    }

    async fn metadata(
        &self,
        runtime: &Arc<dyn Runtime>,
        log: &Arc<dyn CommandLog>,
    ) -> Result<Metadata, StartError> {
        let home = Home {
            service: runtime.service(),
            log: Arc::clone(log),
            store: Arc::clone(&self.store),
            cluster: self.cluster.clone(),
        };
        let opened = Metadata::open(home, MetadataConfig::default()).await;
        opened.map_err(|error| StartError::Metadata(error.to_string()))
    }

    /// The same site for a machine whose own directory is lost.
    pub(crate) fn wiped(&self) -> Site {
        Site { root: Arc::new(tempfile::tempdir().expect("a directory")), ..self.clone() }
    }

    /// Starts a node in a process of its own.
    pub(crate) async fn start(&self, config: NodeConfig) -> Result<Machine, StartError> {
        let process = self.world.process(SimClock::default());
        let runtime = process.runtime();
        let metadata = self.metadata(&runtime, &config.log).await?;
        let dir = DataDir::open(&self.root.path().join(format!("node-{}", config.node)))?;
        let node = Node::start(config, &runtime, metadata, dir).await?;
        Ok(Machine { process, node })
    }

    /// A process of `node` that registers and dies before it does anything else.
    pub(crate) async fn stillborn(&self, node: u32) -> Incarnation {
        self.stillborn_of(node, FEATURE_LEVEL_MAX).await
    }

    /// The same of a version that knows the log up to a feature level.
    pub(crate) async fn stillborn_of(&self, node: u32, feature_level_max: u32) -> Incarnation {
        let process = self.world.process(SimClock::default());
        let metadata = self.metadata(&process.runtime(), &self.log).await.expect("opens");
        let registration = Registration {
            node: NodeId(node),
            tag: 77,
            storage: self.store.address(),
            wal_storage: self.store.address(),
            listeners: Vec::new(),
            version: "test".into(),
            feature_level_max,
        };
        let registered = metadata.submit(Command::Register(registration)).await.expect("answered");
        process.kill();
        match registered {
            CommandResult::Done(Answer::Registered(incarnation)) => incarnation,
            other => panic!("{other:?}"),
        }
    }

    /// The keys of all stream objects.
    pub(crate) async fn stream_objects(&self) -> BTreeSet<ObjectKey> {
        let prefix = ObjectKey::parse(&format!("{}/stream", self.cluster)).expect("valid");
        let (entries, _) = list_all(&*self.store, &prefix, 10_000).await.expect("lists");
        entries.into_iter().map(|entry| entry.key).collect()
    }

    /// Waits until `so` holds, at most `limit`.
    pub(crate) async fn until(&self, limit: Duration, mut so: impl AsyncFnMut() -> bool) {
        for _ in 0..limit.as_millis() / 100 {
            if so().await {
                return;
            }
            self.sleep(Duration::from_millis(100)).await;
        }
        panic!("did not come to pass in {limit:?}");
    }

    pub(crate) fn now(&self) -> Instant {
        self.world.runtime().service().now()
    }

    pub(crate) async fn sleep(&self, time: Duration) {
        self.world.runtime().service().sleep(time).await;
    }
}

impl Machine {
    pub(crate) fn id(&self) -> Incarnation {
        self.node.admin().identity().incarnation
    }

    /// How far a bucket is committed.
    pub(crate) fn end(&self, bucket: BucketId) -> Offset {
        self.state().bucket(&bucket).expect("there").end
    }

    pub(crate) fn state(&self) -> State {
        self.node.admin().state()
    }

    /// Creates a table and tells whether all its buckets opened within `limit`.
    pub(crate) async fn create(&self, name: &str, buckets: u32, limit: Duration) -> bool {
        let table = self.create_table(name, buckets).await;
        self.node.admin().wait_open(table, limit).await
    }

    async fn create_table(&self, name: &str, buckets: u32) -> TableId {
        self.create_with(name, TableOptions { buckets, ..TableOptions::default() }).await
    }

    pub(crate) async fn create_with(&self, name: &str, options: TableOptions) -> TableId {
        let path = TablePath::parse(&format!("kafka.{name}")).expect("valid");
        self.node.admin().create_table(path, options, None).await.expect("created")
    }

    /// Appends a batch; its first offset once it is durable.
    pub(crate) async fn append(&self, bucket: BucketId, records: usize) -> Offset {
        let mut batch = BatchBuilder::new();
        for _ in 0..records {
            let record =
                RecordRef { timestamp: 1_767_225_600_000, value: Some(b"record"), ..RecordRef::default() };
            batch.push(record).expect("small");
        }
        self.append_batch(bucket, batch.build(Codec::None, None).expect("small")).await
    }

    /// The same with a batch as it is.
    pub(crate) async fn append_batch(&self, bucket: BucketId, batch: Bytes) -> Offset {
        let header = BatchHeader::parse(&batch).expect("a batch");
        let permit = BytePermits::new(1 << 20).take(batch.len() as u64).await;
        let timestamps = TimestampType::CreateTime;
        let handed = self
            .node
            .source()
            .append(bucket, header, batch.into(), timestamps, FirstSequence::Any, permit)
            .await;
        let ticket = handed.expect("handed over");
        ticket.durable().await.expect("durable").base_offset
    }

    /// How many records can be read from the log's start to its end.
    pub(crate) async fn records(&self, bucket: BucketId) -> u64 {
        let (mut from, mut found) = (Offset(0), 0);
        loop {
            let read = Read { bucket, from, bytes_max: 1 << 20, leader_epoch: None };
            let answer = self.node.source().read(vec![read], 1 << 20).await.remove(0).expect("readable");
            for (header, _) in answer.batches.into_iter().flat_map(batches).map(|batch| batch.expect("sound"))
            {
                let count = u64::try_from(header.record_count).expect("counted");
                assert_eq!(header.base_offset, from.kafka(), "nothing is jumped over");
                (from, found) = (Offset(from.0 + count), found + count);
            }
            if from >= answer.high_watermark {
                return found;
            }
        }
    }
}
