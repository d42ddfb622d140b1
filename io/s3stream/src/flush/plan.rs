//! How a flush's entries are spread over stream objects.
//!
//! Lives on: service runtime (pure).
//! Invariants: large buckets get objects of their own, small ones share; an object fits one PUT, at most 4,096 buckets and
//! a bounded footer; the pieces of a bucket keep their order, so that their ranges follow each other in the commit.
use std::collections::BTreeMap;

use mink_types::BucketId;

use super::book::{Book, BucketState};
use crate::commit::{CommittedRange, ProducerFold};
use crate::entry::Entry;
use crate::format::{BUCKETS_PER_OBJECT_MAX, EPOCHS_PER_BUCKET_MAX, FOOTER_BYTES_MAX, Part, encoded_bytes};
use crate::wal::WalConfig;

/// Most entries of one stream object: their index stays well below the longest footer.
pub(crate) const OBJECT_ENTRIES_MAX: usize = 128 * 1024;
/// Most bytes of producer snapshots and epoch histories in one footer, but for a single bucket's.
const STATES_BYTES_MAX: usize = 8 << 20;
/// Kept free of every object for the state of its last bucket.
pub(crate) const STATE_RESERVE_BYTES: u64 = 5 << 20;

const _: () = assert!(
    encoded_bytes(OBJECT_ENTRIES_MAX, (2 * STATES_BYTES_MAX) as u64) <= FOOTER_BYTES_MAX as u64
        && EPOCHS_PER_BUCKET_MAX * 12 < (1 << 20)
);

/// A bucket's entries, or a part of them that one object can hold.
pub(crate) struct Piece<'a> {
    pub(crate) bucket: BucketId,
    pub(crate) entries: Vec<&'a Entry>,
    /// The bucket after them, if it could be folded.
    pub(crate) after: Option<BucketState>,
    pub(crate) bytes: u64,
    /// It gets an object of its own.
    pub(crate) alone: bool,
}

impl<'a> Piece<'a> {
    fn state_bytes(&self) -> usize {
        self.after.as_ref().map_or(0, |state| state.producers.len() + state.epochs.len() * 12)
    }

    /// The piece as the part of an object.
    pub(crate) fn part(&self) -> Part<'a> {
        Part {
            entries: self.entries.clone(),
            producers: self.after.as_ref().map(|state| state.producers.clone()),
            epochs: self.after.as_ref().map(|state| state.epochs.clone()).unwrap_or_default(),
        }
    }

    /// One range per epoch.
    pub(crate) fn ranges(&self) -> Vec<CommittedRange> {
        ranges_of(self.bucket, &self.entries)
    }
}

/// The ranges of a bucket's entries: one per epoch.
pub(crate) fn ranges_of(bucket: BucketId, entries: &[&Entry]) -> Vec<CommittedRange> {
    let mut ranges: Vec<CommittedRange> = Vec::new();
    for entry in entries {
        match ranges.last_mut() {
            Some(last) if last.epoch == entry.epoch => {
                last.end = entry.end();
                last.max_timestamp = last.max_timestamp.max(entry.max_timestamp);
                last.last_commit_time = last.last_commit_time.max(entry.commit_time);
                last.bytes += entry.bytes.len() as u64;
            }
            _ => ranges.push(CommittedRange {
                bucket,
                epoch: entry.epoch,
                start: entry.base_offset,
                end: entry.end(),
                max_timestamp: entry.max_timestamp,
                last_commit_time: entry.commit_time,
                bytes: entry.bytes.len() as u64,
            }),
        }
    }
    ranges
}

/// The objects of a flush, each as the pieces in it.
pub(crate) fn plan<'a>(
    config: &WalConfig,
    parts: BTreeMap<BucketId, Part<'a>>,
    book: &Book,
    fold: &dyn ProducerFold,
) -> Vec<Vec<Piece<'a>>> {
    spread(
        config,
        parts.into_iter().flat_map(|(bucket, part)| pieces(config, bucket, part.entries, book, fold)),
    )
}

/// Pieces in the order of their buckets, as objects.
pub(crate) fn spread<'a>(config: &WalConfig, pieces: impl Iterator<Item = Piece<'a>>) -> Vec<Vec<Piece<'a>>> {
    let mut objects = Vec::new();
    let mut shared = Shared::default();
    for piece in pieces {
        if piece.alone {
            objects.push(vec![piece]);
        } else if let Some(full) = shared.add(config, piece) {
            objects.push(full);
        }
    }
    if !shared.pieces.is_empty() {
        objects.push(shared.pieces);
    }
    objects
}

/// The object that small buckets share.
#[derive(Default)]
struct Shared<'a> {
    pieces: Vec<Piece<'a>>,
    bytes: u64,
    entries: usize,
    states: usize,
}

impl<'a> Shared<'a> {
    /// Adds a piece; gives the object before it when that has no room for it.
    fn add(&mut self, config: &WalConfig, piece: Piece<'a>) -> Option<Vec<Piece<'a>>> {
        let (bytes, entries) = (self.bytes + piece.bytes, self.entries + piece.entries.len());
        let states = self.states + piece.state_bytes();
        let fits = self.pieces.len() < BUCKETS_PER_OBJECT_MAX
            && states <= STATES_BYTES_MAX
            && entries <= OBJECT_ENTRIES_MAX
            && encoded_bytes(entries, bytes + states as u64) <= config.object_bytes_max;
        let full = if fits || self.pieces.is_empty() {
            (self.bytes, self.entries, self.states) = (bytes, entries, states);
            None
        } else {
            (self.bytes, self.entries, self.states) = (piece.bytes, piece.entries.len(), piece.state_bytes());
            Some(std::mem::take(&mut self.pieces))
        };
        self.pieces.push(piece);
        full
    }
}

/// Cuts a bucket's entries so that each piece fits an object, and folds its state along.
fn pieces<'a>(
    config: &WalConfig,
    bucket: BucketId,
    entries: Vec<&'a Entry>,
    book: &Book,
    fold: &dyn ProducerFold,
) -> Vec<Piece<'a>> {
    let total: u64 = entries.iter().map(|entry| entry.bytes.len() as u64).sum();
    let mut cuts: Vec<(Vec<&Entry>, u64)> = Vec::new();
    for entry in entries {
        let length = entry.bytes.len() as u64;
        match cuts.last_mut() {
            Some((piece, bytes)) if fits(config, piece, *bytes + length) => {
                piece.push(entry);
                *bytes += length;
            }
            _ => cuts.push((vec![entry], length)),
        }
    }
    let alone = cuts.len() > 1 || total >= config.own_object_bytes;
    let mut state =
        cuts.first().and_then(|(first, _)| first.first()).and_then(|e| book.at(&bucket, e.base_offset));
    let mut pieces = Vec::with_capacity(cuts.len());
    for (entries, bytes) in cuts {
        state = state.and_then(|state| state.after(&entries, fold));
        pieces.push(Piece { bucket, entries, after: state.clone(), bytes, alone });
    }
    pieces
}

/// Whether one more entry makes a piece that fits. A decision stays with the batch behind it.
fn fits(config: &WalConfig, piece: &[&Entry], bytes: u64) -> bool {
    let decided = piece.last().is_some_and(|last| last.count == 0);
    let room = piece.len() < OBJECT_ENTRIES_MAX
        && encoded_bytes(piece.len() + 1, bytes) + STATE_RESERVE_BYTES <= config.object_bytes_max;
    room || (decided && encoded_bytes(piece.len() + 1, bytes) <= config.object_bytes_max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::by_bucket;
    use crate::testing::{CountingFold, bucket, entry};

    fn shape(config: &WalConfig, entries: &[Entry]) -> Vec<Vec<(u64, usize)>> {
        plan(config, by_bucket(entries.iter()), &Book::default(), &CountingFold)
            .iter()
            .map(|object| object.iter().map(|piece| (piece.bucket.table.0, piece.entries.len())).collect())
            .collect()
    }

    #[test]
    fn small_buckets_share_and_large_ones_do_not() {
        let config = WalConfig { own_object_bytes: 100, ..WalConfig::default() };
        let large = vec![1; 100];
        let entries = [
            entry(3, 0, 0, 1, b"c"),
            entry(2, 0, 0, 1, &large),
            entry(1, 0, 0, 1, b"a"),
            entry(3, 0, 1, 1, b"c"),
        ];
        assert_eq!(shape(&config, &entries), vec![vec![(2, 1)], vec![(1, 1), (3, 2)]]);
    }

    #[test]
    fn at_most_4096_buckets_share_an_object() {
        let entries: Vec<Entry> = (0..5_000).map(|n| entry(n, 0, 0, 1, b"x")).collect();
        let shape = shape(&WalConfig::default(), &entries);
        assert_eq!(shape.iter().map(Vec::len).collect::<Vec<_>>(), vec![4096, 904]);
    }

    #[test]
    fn a_bucket_beyond_one_object_is_cut_in_order_with_its_state_at_each_cut() {
        let body = vec![7; 20 << 20];
        let entries: Vec<Entry> = (0..5).map(|n| entry(1, 0, n, 1, &body)).collect();
        let objects = plan(&WalConfig::default(), by_bucket(entries.iter()), &Book::default(), &CountingFold);
        let cuts: Vec<_> =
            objects.iter().map(|object| (object[0].ranges()[0], object[0].after.clone())).collect();
        let ends: Vec<_> = cuts.iter().map(|(range, _)| (range.start.0, range.end.0)).collect();
        assert_eq!(ends, vec![(0, 2), (2, 4), (4, 5)]);
        assert_eq!(cuts.last().unwrap().1.as_ref().unwrap().producers.as_ref(), b"5");
        assert_eq!(objects[0][0].bucket, bucket(1));
    }
}
