//! How a node is, as `/readyz`, `/api/v1/status` and `mink doctor` show it.
//!
//! Lives on: the service runtime.
use mink_types::{BucketEpoch, BucketId, Incarnation, LogIndex, NodeId, Offset, RowHash};

/// The state of a node at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NodeStatus {
    pub node: NodeId,
    /// 0 while the node is not registered yet.
    pub incarnation: Incarnation,
    /// Why the node is not ready; empty when it is.
    pub not_ready: Vec<String>,
    pub draining: bool,
    /// Whether the read lease holds now.
    pub lease: bool,
    pub metadata_index: LogIndex,
    pub metadata_hash: RowHash,
    /// WAL bytes and objects that are not yet trimmed.
    pub untrimmed_bytes: u64,
    pub untrimmed_objects: u64,
    /// Objects that metadata has given up and that are not deleted yet.
    pub pending_deletions: u64,
    /// WAL objects found lost or damaged when this node took a chain over.
    pub lost: Vec<String>,
    pub buckets: Vec<BucketStatus>,
    pub storage: String,
    pub database: String,
    pub shards: usize,
    pub runtime: String,
}

/// The state of one bucket that this node serves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BucketStatus {
    pub bucket: BucketId,
    pub epoch: BucketEpoch,
    pub log_start: Offset,
    /// Offsets below it lie in objects; those from it on in the WAL.
    pub committed_end: Offset,
    /// Readers see what lies below it; none while the bucket's shard does not answer.
    pub high_watermark: Option<Offset>,
}

impl NodeStatus {
    /// Whether `/readyz` answers 200.
    pub fn is_ready(&self) -> bool {
        self.not_ready.is_empty() && !self.draining
    }
}
