//! A shard's lanes: the handle that others hold, and the inbox that the pump takes.
//!
//! Lives on: the handle anywhere, the inbox on the core.
//! Invariants: I20: every lane is bounded by the configuration.
use crate::Control;
use mink_log::ProducerLimits;
use mink_router::{Append, Receiver, Request, Sender, ShardIndex, lane};
use mink_types::Limits;

/// How many messages fit each lane of a shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaneCapacities {
    /// Appends that wait. Their bytes are bounded by the permits they hold.
    pub appends: usize,
    pub requests: usize,
    pub controls: usize,
    /// Chunks that are pushed and not yet durable. Beyond it appends wait.
    pub chunks: usize,
    /// Reads of objects in flight. Beyond it requests wait.
    pub reads: usize,
}

/// What a shard is bounded by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShardConfig {
    pub index: ShardIndex,
    /// Shards of this node.
    pub shards: usize,
    pub producers: ProducerLimits,
    /// Largest answer to one fetch, in bytes.
    pub fetch_bytes_max: u32,
    /// Memory for batches that are flushed already and stay readable without the store, in bytes. What is not flushed yet is
    /// held beyond it; the WAL's bound of untrimmed bytes is its bound.
    pub tail_bytes: u64,
    /// Bytes of answers that objects are asked for at a time; beyond it requests wait. One fetch may go beyond it.
    pub object_read_bytes_max: u64,
    /// Buckets watched by waiting readers, counted once for each reader.
    pub watched_max: usize,
    pub lanes: LaneCapacities,
}

impl ShardConfig {
    /// The configuration of shard `index` of `shards`, with defaults for what a user does not set.
    pub fn new(index: ShardIndex, shards: usize, limits: &Limits, tail_bytes: u64) -> ShardConfig {
        ShardConfig {
            index,
            shards,
            producers: ProducerLimits::from(limits),
            fetch_bytes_max: limits.fetch_bytes_max,
            tail_bytes,
            object_read_bytes_max: 64 << 20,
            watched_max: 1 << 20,
            lanes: LaneCapacities { appends: 1024, requests: 1024, controls: 256, chunks: 4096, reads: 256 },
        }
    }
}

/// What others hold of a shard.
#[derive(Clone, Debug)]
pub struct ShardHandle {
    pub index: ShardIndex,
    /// Not read while the WAL has no room: a sender waits, it is never refused.
    pub appends: Sender<Append>,
    pub requests: Sender<Request>,
    pub controls: Sender<Control>,
}

/// The receiving ends, for [`crate::run`] on the shard's core.
#[derive(Debug)]
pub struct Inbox {
    pub(crate) config: ShardConfig,
    pub(crate) appends: Receiver<Append>,
    pub(crate) requests: Receiver<Request>,
    pub(crate) controls: Receiver<Control>,
}

/// The lanes of a shard.
pub fn shard(config: ShardConfig) -> (ShardHandle, Inbox) {
    let (appends, appends_in) = lane(config.lanes.appends);
    let (requests, requests_in) = lane(config.lanes.requests);
    let (controls, controls_in) = lane(config.lanes.controls);
    let handle = ShardHandle { index: config.index, appends, requests, controls };
    let inbox = Inbox { config, appends: appends_in, requests: requests_in, controls: controls_in };
    (handle, inbox)
}
