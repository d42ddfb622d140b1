//! The seam to metadata: what s3stream asks to be committed, and who answers.
//!
//! Lives on: service runtime.
//! Owns: nothing. mink-node implements [`Commits`] over the command log; s3stream knows no metadata crate.
//! Invariants: a commit names whole ranges that follow each other; its trim counts applied commits and itself, never
//! others in flight (I1, P-2).
use async_trait::async_trait;
use bytes::Bytes;
use mink_types::{BucketEpoch, BucketId, CommitTime, ObjectId, Offset, Timestamp, WalChain, WalNumber};

use crate::entry::{EpochStart, IndexEntry};

/// One command for the metadata: these objects hold these ranges.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamCommit {
    /// On whose chain the data was acked: the committer's own, or a fenced one that is being adopted.
    pub source: WalChain,
    pub objects: Vec<CommittedObject>,
    /// Numbers of `source` below this hold nothing uncommitted once this commit is applied. None for an adoption.
    pub trim: Option<WalNumber>,
}

/// One command for the metadata: offsets move from old objects into new ones, bytes unchanged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamRewrite {
    /// What was read. A range that lies elsewhere by now was rewritten by another: the rewrite is refused as a whole.
    pub replaced: Vec<ObjectId>,
    /// The new objects; each of their ranges is exactly a run of old ones.
    pub objects: Vec<CommittedObject>,
}

/// An object and what it holds. `length` 0 marks a lost WAL object: its ranges are known, its bytes are gone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommittedObject {
    pub id: ObjectId,
    /// Whole length in bytes.
    pub length: u64,
    /// Length of the footer in bytes, without the tail; what one ranged GET needs to know.
    pub footer_length: u32,
    /// CRC32C of the footer: it names the object's content, since the footer holds the CRC of every block.
    pub checksum: u32,
    /// In the order of (bucket, start); ranges of one bucket follow each other.
    pub ranges: Vec<CommittedRange>,
}

/// Offsets of one bucket, ordered under one epoch, in one object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CommittedRange {
    pub bucket: BucketId,
    pub epoch: BucketEpoch,
    pub start: Offset,
    /// Exclusive; above `start`.
    pub end: Offset,
    pub max_timestamp: Timestamp,
    pub last_commit_time: CommitTime,
    /// Bytes of the range's batches.
    pub bytes: u64,
}

/// How a commit ended. There is no third way: whoever implements [`Commits`] waits until it is decided.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub enum CommitEnd {
    /// Applied by this node's own view.
    Applied,
    /// Refused, and this node has applied the refusal: the objects it named may be deleted.
    Refused {
        /// The committer is fenced: stop.
        fenced: bool,
        reason: String,
    },
}

/// The node is stopping; nothing is known of the commit, and nobody will ask again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the metadata driver has stopped")]
pub struct CommitsStopped;

/// Who commits.
#[async_trait]
pub trait Commits: Send + Sync {
    /// Submits the commit under one request id and waits until it is applied or refused.
    async fn commit(&self, commit: StreamCommit) -> Result<CommitEnd, CommitsStopped>;

    /// Submits a rewrite in the same way. Ranges of which retention has dropped a part or all count for what is left.
    async fn rewrite(&self, rewrite: StreamRewrite) -> Result<CommitEnd, CommitsStopped>;
}

/// The producers of a bucket as a fold over its entries, in bytes that s3stream keeps without knowing them.
///
/// The flusher calls it with the snapshot at the start of a range and the range's entries (all of them: expiry goes by
/// the commit times of others too), and puts the result into the object's footer. It must be pure: a replay of the same
/// entries over the same snapshot gives the same producers (T-3, I6).
pub trait ProducerFold: Send + Sync {
    /// The snapshot after `entries`, given the one before; an empty slice is that of a bucket that never held anything.
    fn fold(&self, before: &[u8], entries: &[IndexEntry]) -> Result<Bytes, FoldError>;

    /// The same snapshot, of a log that has lost entries below `offset` that nobody knows of (P-14, decision 0016).
    fn lost_below(&self, before: &[u8], offset: Offset) -> Result<Bytes, FoldError>;
}

/// The snapshot cannot be read. The object is then written without one, and a recovery starts from an older one.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("producer snapshot: {reason}")]
pub struct FoldError {
    pub reason: String,
}

/// What a bucket looked like at its committed end when this node opened it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenedBucket {
    pub bucket: BucketId,
    /// The epoch that the `Open` gave.
    pub epoch: BucketEpoch,
    /// The committed end: the offset that the first new batch will get.
    pub at: Offset,
    /// Producers at `at`.
    pub producers: Bytes,
    /// Where each epoch before this one began.
    pub epochs: Vec<EpochStart>,
}
