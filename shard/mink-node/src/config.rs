//! What a node is started with.
//!
//! Lives on: anywhere.
use crate::compaction::CompactionConfig;
use mink_group::GroupLimits;
use mink_metadata::Listener;
use mink_object::ObjectStore;
use mink_sql::CommandLog;
use mink_types::{ClusterName, DatabaseName, Limits, NodeId};
use s3stream::WalConfig;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

/// Opens a store by the address in another node's registration.
pub type OpenStore = Arc<dyn Fn(&str) -> Result<Arc<dyn ObjectStore>, String> + Send + Sync>;

/// The stores of a node.
#[derive(Clone)]
pub struct Stores {
    /// Where stream objects, snapshots and the identity lie.
    pub stream: Arc<dyn ObjectStore>,
    /// Where this node's WAL objects go; the same, unless `--wal-storage` says otherwise.
    pub wal: Arc<dyn ObjectStore>,
    /// Every gateway by which the stores can be reached: the probe races over all of them.
    pub probed: Vec<Arc<dyn ObjectStore>>,
    pub open: OpenStore,
}

impl fmt::Debug for Stores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stores").field("stream", &self.stream).field("wal", &self.wal).finish_non_exhaustive()
    }
}

/// Told what the node does while it starts, in words.
#[derive(Clone)]
pub struct Progress(Arc<dyn Fn(String) + Send + Sync>);

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Progress")
    }
}

impl Progress {
    pub fn new(tell: impl Fn(String) + Send + Sync + 'static) -> Progress {
        Progress(Arc::new(tell))
    }

    pub(crate) fn tell(&self, step: impl Into<String>) {
        (self.0)(step.into());
    }
}

/// The configuration of a node.
#[derive(Clone, Debug)]
pub struct NodeConfig {
    pub cluster: ClusterName,
    pub node: NodeId,
    pub stores: Stores,
    pub log: Arc<dyn CommandLog>,
    /// Name of the database's place for people, without credentials.
    pub database: String,
    /// Addresses that clients and other nodes are told.
    pub listeners: Vec<Listener>,
    pub kafka_database: DatabaseName,
    pub shards: NonZeroUsize,
    pub limits: Limits,
    pub groups: GroupLimits,
    pub wal: WalConfig,
    pub lease_ttl: Duration,
    /// Memory for batches of the log, over all shards, in bytes: those that are not flushed, and as many flushed ones as fit beside.
    pub tail_bytes: u64,
    /// Bytes that the shards ask objects for at a time, in all.
    pub object_read_bytes: u64,
    /// Memory for footers, in bytes.
    pub footer_cache_bytes: usize,
    /// Memory for blocks of objects that readers have asked for or are about to, in bytes.
    pub block_cache_bytes: usize,
    pub compaction: CompactionConfig,
    /// How long a reader that planned on an older view may still look for an object that metadata has given up.
    pub deletion_grace: Duration,
    /// Rows of the command log between two snapshots.
    pub snapshot_rows: u64,
    /// Name of the cores' backend, for people.
    pub runtime: String,
    pub version: String,
    pub progress: Progress,
}
