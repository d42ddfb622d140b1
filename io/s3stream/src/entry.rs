//! What travels through the WAL: one batch of one bucket, or one decision that a bucket must remember.
//!
//! Lives on: anywhere (pure).
//! Owns: nothing. An entry's bytes are the very `Bytes` that the shard's tail cache holds: no copy on the way to the store.
//! Invariants: I2: (bucket, epoch, base offset) of an entry never changes once it is made.
use bytes::Bytes;
use mink_types::{
    BucketEpoch, BucketId, CommitTime, Offset, OffsetRange, ProducerEpoch, ProducerId, Sequence, Timestamp,
};

/// Largest `bytes` of one entry, in bytes. One PUT holds 64 MiB and a chunk is never split over two, so configuration
/// must not allow batches above this.
pub const ENTRY_BYTES_MAX: usize = 40 << 20;

/// What an entry is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum EntryKind {
    /// A batch of records: takes `count` offsets.
    Batch,
    /// Something the bucket decided and must decide alike after a replay. Takes no offset; its `base_offset` says before
    /// which record it holds. It must share its chunk with a batch of its bucket, so that a commit has a range to name.
    Decision,
}

/// Which idempotent producer sent a batch, and where the batch stands in that producer's sequence.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ProducerStamp {
    pub id: ProducerId,
    pub epoch: ProducerEpoch,
    pub base_sequence: Sequence,
}

/// A checksum that whoever made the bytes has looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KnownChecksum {
    /// It is that of the bytes from here on.
    pub from: usize,
    /// CRC-32C.
    pub crc: u32,
}

/// One batch or decision, ordered: it has its place in its bucket for ever.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    pub bucket: BucketId,
    /// The epoch under which the owner ordered it.
    pub epoch: BucketEpoch,
    pub base_offset: Offset,
    /// Offsets that it takes; 0 for a decision.
    pub count: u32,
    pub kind: EntryKind,
    pub commit_time: CommitTime,
    pub max_timestamp: Timestamp,
    pub producer: Option<ProducerStamp>,
    /// What is known of the bytes' checksum: an object's own is made of it, so that large batches are not read once more for it. A
    /// byte that changes on the way is so found as well. A wrong one makes the whole block unreadable.
    pub known: Option<KnownChecksum>,
    /// The batch as readers get it, verbatim.
    pub bytes: Bytes,
}

impl Entry {
    /// The offset after the entry's last record.
    pub fn end(&self) -> Offset {
        self.base_offset.plus(u64::from(self.count))
    }

    /// What the footer keeps of it.
    pub fn index(&self) -> IndexEntry {
        IndexEntry {
            base_offset: self.base_offset,
            count: self.count,
            length: u32::try_from(self.bytes.len()).unwrap_or(u32::MAX),
            kind: self.kind,
            commit_time: self.commit_time,
            max_timestamp: self.max_timestamp,
            producer: self.producer,
        }
    }
}

/// An entry without its bytes: what an object's footer says of it. Enough to find a batch by offset or by time, and to
/// fold producers and commit times after a takeover.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IndexEntry {
    pub base_offset: Offset,
    pub count: u32,
    /// Length of the entry's bytes.
    pub length: u32,
    pub kind: EntryKind,
    pub commit_time: CommitTime,
    pub max_timestamp: Timestamp,
    pub producer: Option<ProducerStamp>,
}

impl IndexEntry {
    /// The offset after the entry's last record.
    pub fn end(&self) -> Offset {
        self.base_offset.plus(u64::from(self.count))
    }

    /// The offsets that the entry takes.
    pub fn range(&self) -> OffsetRange {
        OffsetRange { start: self.base_offset, end: self.end() }
    }
}

/// Where an epoch of a bucket begins: the first offset that was ordered under it. Epochs without records do not occur.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct EpochStart {
    pub epoch: BucketEpoch,
    pub start: Offset,
}
