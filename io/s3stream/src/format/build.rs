//! Entries become an object: sorted by bucket and offset, cut into blocks, indexed. Batches are not copied.
//!
//! Lives on: service runtime (checksums of up to 64 MiB; never on a core).
//! Invariants: the payload is a list of the entries' own `Bytes` between two small parts of ours (P-1: every attempt sends
//! the whole list).
use std::collections::BTreeMap;

use bytes::Bytes;
use mink_object::Payload;
use mink_record::joined_checksum;
use mink_types::{BucketEpoch, BucketId};

use super::footer::{BLOCK_INDEX_BYTES, BUCKET_INDEX_BYTES, ENTRY_INDEX_BYTES, EPOCH_INDEX_BYTES, Footer};
use super::{BLOCK_BYTES, Block, FooterBucket, HEADER_BYTES, Header, TAIL_BYTES, Tail};
use crate::entry::{Entry, EpochStart};

/// Object bytes that an entry causes at most beside its own: its index, a block and a bucket of its own.
const ENTRY_OVERHEAD_BYTES: usize =
    ENTRY_INDEX_BYTES + BLOCK_INDEX_BYTES + BUCKET_INDEX_BYTES + EPOCH_INDEX_BYTES;

/// Shorter runs are read again: that costs no more than to join what is known of them.
const JOINED_FROM_BYTES: usize = 8 << 10;

/// Most bytes of an object with `entries` entries that hold `bytes` bytes, without producer snapshots and epoch history.
pub(crate) const fn encoded_bytes(entries: usize, bytes: u64) -> u64 {
    (HEADER_BYTES + TAIL_BYTES + 4 + entries * ENTRY_OVERHEAD_BYTES) as u64 + bytes
}

/// A bucket's part of an object to be.
#[derive(Debug, Default)]
pub(crate) struct Part<'a> {
    /// In the order of their offsets.
    pub(crate) entries: Vec<&'a Entry>,
    pub(crate) producers: Option<Bytes>,
    /// Empty: those that begin here.
    pub(crate) epochs: Vec<EpochStart>,
}

/// An object's bytes and what a commit says of them.
#[derive(Clone, Debug)]
pub(crate) struct Built {
    pub(crate) payload: Payload,
    pub(crate) footer_length: u32,
    pub(crate) checksum: u32,
}

/// Entries by bucket, each bucket's in the order they came.
pub(crate) fn by_bucket<'a>(entries: impl Iterator<Item = &'a Entry>) -> BTreeMap<BucketId, Part<'a>> {
    let mut parts: BTreeMap<BucketId, Part<'a>> = BTreeMap::new();
    for entry in entries {
        parts.entry(entry.bucket).or_default().entries.push(entry);
    }
    parts
}

/// Where the epochs of these entries begin.
pub(crate) fn epochs_of(entries: &[&Entry]) -> Vec<EpochStart> {
    let mut epochs: Vec<EpochStart> = Vec::new();
    for entry in entries {
        if epochs.last().is_none_or(|last| last.epoch < entry.epoch) {
            epochs.push(EpochStart { epoch: entry.epoch, start: entry.base_offset });
        }
    }
    epochs
}

/// Puts an object together.
pub(crate) fn build<'a>(header: &Header, parts: impl IntoIterator<Item = (BucketId, Part<'a>)>) -> Built {
    let mut pieces = vec![Bytes::copy_from_slice(&header.encode())];
    let mut position = HEADER_BYTES as u64;
    let mut footer = Footer::default();
    for (bucket, part) in parts {
        let mut blocks: Vec<Block> = Vec::new();
        // One for the end, too.
        pieces.reserve(part.entries.len() + 1);
        for entry in &part.entries {
            let length = entry.bytes.len();
            match blocks.last_mut() {
                Some(last) if last.epoch == entry.epoch && last.length as usize + length <= BLOCK_BYTES => {
                    extend(last, entry);
                }
                _ => {
                    let mut block = empty(entry.epoch, position);
                    extend(&mut block, entry);
                    blocks.push(block);
                }
            }
            position += length as u64;
            pieces.push(entry.bytes.clone());
        }
        let epochs = if part.epochs.is_empty() { epochs_of(&part.entries) } else { part.epochs };
        footer.buckets.push(FooterBucket { bucket, producers: part.producers, epochs, blocks });
    }
    let mut end = Vec::with_capacity(footer.encoded_bytes() + TAIL_BYTES);
    footer.encode(&mut end);
    let footer_length = u32::try_from(end.len()).unwrap_or(u32::MAX);
    let checksum = crc32c::crc32c(&end);
    let total = position + u64::from(footer_length) + TAIL_BYTES as u64;
    Tail { footer_position: position, footer_length, footer_crc: checksum, total }.encode(&mut end);
    pieces.push(end.into());
    let payload = Payload::new(pieces);
    debug_assert_eq!(payload.len(), total);
    Built { payload, footer_length, checksum }
}

/// The bytes of a seal: a header, no block, an empty footer.
pub(crate) fn seal(header: &Header) -> Built {
    build(header, [])
}

fn empty(epoch: BucketEpoch, position: u64) -> Block {
    Block { epoch, position, length: 0, crc: 0, entries: Vec::new() }
}

fn extend(block: &mut Block, entry: &Entry) {
    let index = entry.index();
    block.length = block.length.saturating_add(index.length);
    block.crc = checksum(block.crc, entry);
    block.entries.push(index);
}

/// The checksum of a block that had `before`, with the entry's bytes behind it.
fn checksum(before: u32, entry: &Entry) -> u32 {
    let known = entry.known.and_then(|known| Some((entry.bytes.split_at_checked(known.from)?, known.crc)));
    match known {
        Some(((head, rest), crc)) if rest.len() >= JOINED_FROM_BYTES => {
            debug_assert!(!cfg!(test) || crc == crc32c::crc32c(rest), "a checksum that was looked at");
            joined_checksum(crc32c::crc32c_append(before, head), crc, rest.len())
        }
        _ => crc32c::crc32c_append(before, &entry.bytes),
    }
}
