//! What mink-node tells a shard.
//!
//! Lives on: made on the service runtime, taken on the core.
//! Invariants: messages of one sender are taken in order: a `View` that shows an `Open` goes before the `Open` itself.
use crate::{BucketLevel, OpenError, ReleaseError, ShardStats};
use mink_log::Recovered;
use mink_metadata::State;
use mink_router::ReplyTo;
use mink_rt::Instant;
use mink_types::{BucketEpoch, BucketId, Incarnation, Offset};

/// A message from the node.
#[derive(Debug)]
pub enum Control {
    /// A newer view of the metadata: committed ends, where ranges lie, log starts.
    View(Box<View>),
    /// Until when this node may serve reads; the shard serves none before the first one. A message that comes late only
    /// shortens the lease.
    Lease(Instant),
    /// Serve a bucket from its recovered state on.
    Open(Box<OpenBucket>),
    /// Other options for a bucket that is open; one that is not is left alone.
    Options { bucket: BucketId, options: BucketOptions },
    /// The log of an open bucket is kept from `start` on; `start` is committed. Answers when no reader sees anything below it any
    /// more and the memory of it is free. A bucket that is not open, or open under another epoch, is left alone.
    Start { bucket: BucketId, epoch: BucketEpoch, start: Offset, reply: ReplyTo<()> },
    /// Take no more appends for the bucket, and answer when all it ordered is durable. It is still readable until `Close`.
    Release { bucket: BucketId, reply: ReplyTo<Result<Released, ReleaseError>> },
    /// Drop the bucket. Appends that are not durable yet end as lost (I7).
    Close { bucket: BucketId },
    /// This process was fenced: drop all buckets, for good.
    CloseAll,
    /// Answer with the counters.
    Stats { reply: ReplyTo<ShardStats> },
    /// Answer with the state of each open bucket, in the order of ids.
    Buckets { reply: ReplyTo<Vec<BucketLevel>> },
    /// End the pump. What is not durable ends as lost; release the buckets first.
    Stop,
}

/// The metadata as this node has applied it.
#[derive(Clone, Debug)]
pub struct View {
    pub state: State,
    /// This process.
    pub me: Incarnation,
}

/// A bucket to be served.
#[derive(Debug)]
pub struct OpenBucket {
    pub bucket: BucketId,
    /// Its log at the committed end, and the epoch that the `Open` gave.
    pub recovered: Recovered,
    pub options: BucketOptions,
    pub reply: ReplyTo<Result<(), OpenError>>,
}

/// What a table's options say to its buckets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BucketOptions {
    /// Largest batch in bytes; what the WAL cannot hold in one entry is refused all the same.
    pub batch_bytes_max: u32,
}

/// A bucket that takes no more appends, all of them durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Released {
    pub epoch: BucketEpoch,
    /// End of its log.
    pub end: Offset,
}
