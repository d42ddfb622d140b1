//! The index at the end of an object: which bucket's batches lie where, and what recovery needs of them.
//!
//! Lives on: anywhere (pure).
//! Invariants: a footer that decodes is consistent in itself: buckets ascend, a bucket's entries ascend without overlap
//! (I2), its epochs never fall (I13), block lengths are the sums of their entries', and blocks lie inside the object's body.
use bytes::Bytes;
use mink_types::{
    BucketEpoch, BucketId, BucketIndex, CommitTime, Offset, OffsetRange, PartitionId, ProducerEpoch,
    ProducerId, Sequence, TableId, Timestamp,
};

use super::codec::{Cursor, FormatError};
use super::{EPOCHS_PER_BUCKET_MAX, HEADER_BYTES};
use crate::entry::{EntryKind, EpochStart, IndexEntry, ProducerStamp};

pub(super) const PART: &str = "object footer";
pub(super) const ENTRY_INDEX_BYTES: usize = 48;
pub(super) const BLOCK_INDEX_BYTES: usize = 24;
pub(super) const BUCKET_INDEX_BYTES: usize = 32;
pub(super) const EPOCH_INDEX_BYTES: usize = 12;
const FLAG_DECISION: u8 = 1;
const FLAG_PRODUCER: u8 = 2;

/// A footer, decoded.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Footer {
    /// In ascending order of their ids.
    pub buckets: Vec<FooterBucket>,
}

/// One bucket's part of an object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FooterBucket {
    pub bucket: BucketId,
    /// The bucket's producers after its last entry here, as the fold gave them. WAL objects have none.
    pub producers: Option<Bytes>,
    /// Where epochs began: the whole history where `producers` is there, else those that begin in this object.
    pub epochs: Vec<EpochStart>,
    /// In the order of their offsets.
    pub blocks: Vec<Block>,
}

/// A run of batches of one bucket and epoch: what a reader fetches and checks at once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    pub epoch: BucketEpoch,
    /// Where it begins in the object.
    pub position: u64,
    pub length: u32,
    /// CRC32C of its bytes.
    pub crc: u32,
    /// At least one.
    pub entries: Vec<IndexEntry>,
}

impl Footer {
    /// A bucket's part.
    pub fn bucket(&self, bucket: &BucketId) -> Option<&FooterBucket> {
        let at = self.buckets.binary_search_by(|part| part.bucket.cmp(bucket)).ok()?;
        self.buckets.get(at)
    }

    /// Roughly what it takes in memory, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.buckets.iter().map(FooterBucket::memory_bytes).sum::<usize>() + size_of::<Footer>()
    }

    /// Bytes of its encoding, or a few more.
    pub(super) fn encoded_bytes(&self) -> usize {
        let of_block = |block: &Block| BLOCK_INDEX_BYTES + block.entries.len() * ENTRY_INDEX_BYTES;
        let of_bucket = |part: &FooterBucket| {
            BUCKET_INDEX_BYTES
                + part.producers.as_ref().map_or(0, Bytes::len)
                + part.epochs.len() * EPOCH_INDEX_BYTES
                + part.blocks.iter().map(of_block).sum::<usize>()
        };
        size_of::<u32>() + self.buckets.iter().map(of_bucket).sum::<usize>()
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_count(out, self.buckets.len());
        for part in &self.buckets {
            part.encode(out);
        }
    }

    /// Reads a footer. `body_end` is where it begins in its object: no block reaches beyond.
    pub(super) fn decode(bytes: &[u8], body_end: u64) -> Result<Footer, FormatError> {
        let mut at = Cursor::new(bytes, PART);
        let count = at.count(BUCKET_INDEX_BYTES)?;
        let mut buckets: Vec<FooterBucket> = Vec::with_capacity(count);
        for _ in 0..count {
            let part = FooterBucket::decode(&mut at, body_end)?;
            if buckets.last().is_some_and(|last| last.bucket >= part.bucket) {
                return Err(at.value("buckets that do not ascend"));
            }
            buckets.push(part);
        }
        at.end()?;
        Ok(Footer { buckets })
    }
}

impl FooterBucket {
    /// All entries, with the epoch of each.
    pub fn entries(&self) -> impl Iterator<Item = (BucketEpoch, &IndexEntry)> {
        self.blocks.iter().flat_map(|block| block.entries.iter().map(move |entry| (block.epoch, entry)))
    }

    /// The offsets from the first entry's to the last's.
    pub fn range(&self) -> OffsetRange {
        let first = self.blocks.first().and_then(|block| block.entries.first());
        let last = self.blocks.last().and_then(|block| block.entries.last());
        OffsetRange {
            start: first.map_or(Offset(0), |entry| entry.base_offset),
            end: last.map_or(Offset(0), IndexEntry::end),
        }
    }

    fn memory_bytes(&self) -> usize {
        let entries: usize = self.blocks.iter().map(|block| block.entries.len()).sum();
        size_of::<FooterBucket>()
            + self.producers.as_ref().map_or(0, Bytes::len)
            + self.epochs.len() * size_of::<EpochStart>()
            + self.blocks.len() * size_of::<Block>()
            + entries * size_of::<IndexEntry>()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bucket.table.0.to_le_bytes());
        out.extend_from_slice(&self.bucket.partition.0.to_le_bytes());
        out.extend_from_slice(&self.bucket.bucket.0.to_le_bytes());
        // Stored as length + 1, so that none differs from empty.
        put_count(out, self.producers.as_ref().map_or(0, |producers| producers.len() + 1));
        out.extend_from_slice(self.producers.as_deref().unwrap_or_default());
        put_count(out, self.epochs.len());
        for start in &self.epochs {
            out.extend_from_slice(&start.epoch.0.to_le_bytes());
            out.extend_from_slice(&start.start.0.to_le_bytes());
        }
        put_count(out, self.blocks.len());
        for block in &self.blocks {
            block.encode(out);
        }
    }

    fn decode(at: &mut Cursor<'_>, body_end: u64) -> Result<FooterBucket, FormatError> {
        let bucket = BucketId {
            table: TableId(at.u64()?),
            partition: PartitionId(at.u64()?),
            bucket: BucketIndex(at.u32()?),
        };
        let producers = match at.u32()?.checked_sub(1) {
            None => None,
            Some(len) => Some(Bytes::copy_from_slice(at.slice(len as usize)?)),
        };
        let count = at.count(EPOCH_INDEX_BYTES)?;
        if count > EPOCHS_PER_BUCKET_MAX {
            return Err(at.value("more epochs than a bucket may have"));
        }
        let mut epochs: Vec<EpochStart> = Vec::with_capacity(count);
        for _ in 0..count {
            let next = EpochStart { epoch: BucketEpoch(at.u32()?), start: Offset(at.u64()?) };
            if epochs.last().is_some_and(|last| last.epoch >= next.epoch || last.start >= next.start) {
                return Err(at.value("epochs that do not ascend"));
            }
            epochs.push(next);
        }
        let count = at.count(BLOCK_INDEX_BYTES + ENTRY_INDEX_BYTES)?;
        let mut blocks: Vec<Block> = Vec::with_capacity(count);
        for _ in 0..count {
            let block = Block::decode(at, blocks.last(), body_end)?;
            blocks.push(block);
        }
        Ok(FooterBucket { bucket, producers, epochs, blocks })
    }
}

impl Block {
    /// Where it ends in the object; exclusive.
    pub fn end(&self) -> u64 {
        self.position + u64::from(self.length)
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.epoch.0.to_le_bytes());
        out.extend_from_slice(&self.position.to_le_bytes());
        out.extend_from_slice(&self.length.to_le_bytes());
        out.extend_from_slice(&self.crc.to_le_bytes());
        put_count(out, self.entries.len());
        for entry in &self.entries {
            encode_entry(entry, out);
        }
    }

    fn decode(at: &mut Cursor<'_>, before: Option<&Block>, body_end: u64) -> Result<Block, FormatError> {
        let (epoch, position) = (BucketEpoch(at.u32()?), at.u64()?);
        let (length, crc) = (at.u32()?, at.u32()?);
        let end = position.checked_add(u64::from(length));
        let floor = before.map_or(HEADER_BYTES as u64, Block::end);
        if position < floor || end.is_none_or(|end| end > body_end) {
            return Err(at.value("a block outside of its place"));
        }
        if before.is_some_and(|before| before.epoch > epoch) {
            return Err(at.value("an epoch that falls"));
        }
        let count = at.count(ENTRY_INDEX_BYTES)?;
        let mut entries: Vec<IndexEntry> = Vec::with_capacity(count);
        let mut next = before.and_then(|before| before.entries.last()).map_or(Offset(0), IndexEntry::end);
        let mut bytes = 0u64;
        for _ in 0..count {
            let entry = decode_entry(at)?;
            if entry.base_offset < next {
                return Err(at.value("entries that overlap"));
            }
            next = entry.end();
            bytes += u64::from(entry.length);
            entries.push(entry);
        }
        if bytes != u64::from(length) || entries.is_empty() {
            return Err(at.value("a block whose length is not that of its entries"));
        }
        Ok(Block { epoch, position, length, crc, entries })
    }
}

fn encode_entry(entry: &IndexEntry, out: &mut Vec<u8>) {
    let decision = if entry.kind == EntryKind::Decision { FLAG_DECISION } else { 0 };
    let stamped = if entry.producer.is_some() { FLAG_PRODUCER } else { 0 };
    let (id, epoch, sequence) =
        entry.producer.map_or((-1, -1, -1), |stamp| (stamp.id.0, stamp.epoch.0, stamp.base_sequence.0));
    out.extend_from_slice(&entry.base_offset.0.to_le_bytes());
    out.extend_from_slice(&entry.count.to_le_bytes());
    out.extend_from_slice(&entry.length.to_le_bytes());
    out.extend_from_slice(&entry.commit_time.0.to_le_bytes());
    out.extend_from_slice(&entry.max_timestamp.0.to_le_bytes());
    out.extend_from_slice(&id.to_le_bytes());
    out.extend_from_slice(&epoch.to_le_bytes());
    out.extend_from_slice(&sequence.to_le_bytes());
    out.extend_from_slice(&[decision | stamped, 0]);
}

fn decode_entry(at: &mut Cursor<'_>) -> Result<IndexEntry, FormatError> {
    let base_offset = Offset(at.u64()?);
    let (count, length) = (at.u32()?, at.u32()?);
    let (commit_time, max_timestamp) = (CommitTime(at.i64()?), Timestamp(at.i64()?));
    let stamp = ProducerStamp {
        id: ProducerId(at.i64()?),
        epoch: ProducerEpoch(at.i16()?),
        base_sequence: Sequence(at.i32()?),
    };
    let flags = at.u8()?;
    at.zeros(1)?;
    let kind = if flags & FLAG_DECISION == 0 { EntryKind::Batch } else { EntryKind::Decision };
    let unstamped = (stamp.id.0, stamp.epoch.0, stamp.base_sequence.0) == (-1, -1, -1);
    let producer = if flags & FLAG_PRODUCER == 0 { None } else { Some(stamp) };
    if flags & !(FLAG_DECISION | FLAG_PRODUCER) != 0 || (producer.is_none() && !unstamped) {
        return Err(at.value("flags of an entry"));
    }
    if (kind == EntryKind::Decision) != (count == 0) {
        return Err(at.value("the record count of an entry"));
    }
    if base_offset.0.checked_add(u64::from(count)).is_none_or(|end| i64::try_from(end).is_err()) {
        return Err(at.value("an offset"));
    }
    Ok(IndexEntry { base_offset, count, length, kind, commit_time, max_timestamp, producer })
}

/// Counts of what this process made itself are far below the limit (ENTRY_BYTES_MAX, FOOTER_BYTES_MAX).
fn put_count(out: &mut Vec<u8>, count: usize) {
    debug_assert!(u32::try_from(count).is_ok());
    out.extend_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
}
