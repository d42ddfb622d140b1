//! What a read wants of an object, and how far its GETs go beyond that.
//!
//! Lives on: anywhere (pure).
//! Invariants: a GET goes beyond what is asked only by blocks that somebody is expected to want, and by no more of them than
//! was read before: by the same reader in sequence, by a reader of a neighbouring bucket in sequence, or by readers of
//! several buckets of the same object. So a reader that jumps about costs the blocks it touches, and whoever reads on never
//! costs more than twice what it reads. A GET stays inside one tile of its object.
use mink_types::{Offset, OffsetRange};

use super::index::{Index, Place};
use super::streams::Expected;
use crate::entry::{EntryKind, IndexEntry};
use crate::format::{Block, FooterBucket};

/// Bytes of blocks that one read takes of one object at most, but for a single longer block.
pub(super) const READ_SPAN_MAX: u64 = 16 << 20;

/// A block, and the entries of it that are wanted with their places in it.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    pub(super) block: &'a Block,
    pub(super) entries: Vec<(usize, &'a IndexEntry)>,
}

/// The batches of a bucket's part from the one that holds `from` on, inside `range` and within `bytes_max`; with
/// `at_least_one` the first batch comes however long it is.
pub(super) fn pick(
    part: &FooterBucket,
    range: OffsetRange,
    from: Offset,
    bytes_max: usize,
    at_least_one: bool,
) -> Vec<Wanted<'_>> {
    let mut wanted: Vec<Wanted<'_>> = Vec::new();
    let (mut bytes, mut full, mut must) = (0usize, false, at_least_one);
    let before = |block: &Block| block.entries.last().is_some_and(|last| last.end() < from);
    let first = part.blocks.partition_point(before);
    for block in part.blocks.iter().skip(first) {
        let mut position = 0;
        let mut entries = Vec::new();
        for entry in &block.entries {
            let length = entry.length as usize;
            let inside = lies_in(entry, range) && (entry.end() > from || entry.base_offset >= from);
            if inside && !full {
                full = !must && bytes + length > bytes_max;
                if !full {
                    bytes += length;
                    must = must && entry.kind != EntryKind::Batch;
                    entries.push((position, entry));
                }
            }
            position += length;
        }
        let start = wanted.first().map_or(block.position, |first| first.block.position);
        if !wanted.is_empty() && block.end().saturating_sub(start) > READ_SPAN_MAX {
            break;
        }
        if !entries.is_empty() {
            wanted.push(Wanted { block, entries });
        }
        if full {
            break;
        }
    }
    wanted
}

/// Whether an entry belongs to a range: a decision at its end belongs to it, since it was made before the next record.
pub(super) fn lies_in(entry: &IndexEntry, range: OffsetRange) -> bool {
    range.start <= entry.base_offset && entry.end() <= range.end
}

/// The offsets of a block's entries.
pub(super) fn offsets_of(block: &Block) -> OffsetRange {
    OffsetRange {
        start: block.entries.first().map_or(Offset(0), |first| first.base_offset),
        end: block.entries.last().map_or(Offset(0), IndexEntry::end),
    }
}

/// Blocks that follow each other without a gap, by their numbers in the index; both ends are in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Run {
    pub(super) first: usize,
    pub(super) last: usize,
}

/// How far a GET may go beyond what is asked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reach {
    /// Bytes of the asked bucket behind what is asked.
    pub(super) own: u64,
    /// Bytes of one neighbouring bucket whose reader is expected; one block may be longer.
    pub(super) neighbour: u64,
    /// Bytes of neighbouring buckets nobody is expected for, once blocks of several buckets were used.
    pub(super) shared: u64,
}

impl Reach {
    /// What is asked and nothing else.
    pub(super) const NONE: Reach = Reach { own: 0, neighbour: 0, shared: 0 };
}

/// How far the GET of a block goes.
pub(super) struct Stretch<'a> {
    pub(super) index: &'a Index,
    pub(super) reach: Reach,
    /// Who is expected to want a block of another bucket.
    pub(super) expected: &'a dyn Fn(&FooterBucket, &Block) -> Option<Expected>,
    /// Whether nobody has or fetches the block at this position.
    pub(super) free: &'a dyn Fn(u64) -> bool,
}

/// What a GET has taken on beyond what is asked.
#[derive(Default)]
struct Taken {
    own: u64,
    shared: u64,
    neighbour: Option<(u32, u64)>,
}

impl Stretch<'_> {
    /// The run around the block numbered `at`. `wanted` says which blocks are asked for: those come in any case, as far
    /// as they follow each other inside the tile.
    pub(super) fn run(&self, at: usize, wanted: impl Fn(usize) -> bool) -> Run {
        let places = self.index.places();
        let mut run = Run { first: at, last: at };
        let Some(asked) = places.get(at) else { return run };
        let (tile_start, tile_end) = self.index.tile(asked.position);
        let mut taken = Taken::default();
        let mut end = asked.end();
        for (n, place) in places.iter().enumerate().skip(at + 1) {
            let near = place.position == end && place.position < tile_end && (self.free)(place.position);
            if !near || !(wanted(n) || self.takes(asked, place, true, &mut taken)) {
                break;
            }
            (run.last, end) = (n, place.end());
        }
        let mut start = asked.position;
        for (n, place) in places.iter().enumerate().take(at).rev() {
            let near = place.end() == start && place.position >= tile_start && (self.free)(place.position);
            if !near || !self.takes(asked, place, false, &mut taken) {
                break;
            }
            (run.first, start) = (n, place.position);
        }
        run
    }

    fn takes(&self, asked: &Place, place: &Place, behind: bool, taken: &mut Taken) -> bool {
        let length = u64::from(place.length);
        if place.bucket == asked.bucket {
            let fits = behind && taken.own + length <= self.reach.own;
            taken.own += if fits { length } else { 0 };
            return fits;
        }
        let expected = self.index.block(place).and_then(|(part, block)| (self.expected)(part, block));
        if expected.is_some_and(|expected| expected.asked) {
            return true;
        }
        let before = taken.neighbour.filter(|(bucket, _)| *bucket == place.bucket).map_or(0, |(_, n)| n);
        let streak = expected.map_or(0, |expected| expected.streak);
        // One block in any case, if its reader has read as much: that block is asked for as a whole.
        let most = self.reach.neighbour.min(streak).max(if streak >= length { length } else { 0 });
        if before + length <= most {
            taken.neighbour = Some((place.bucket, before + length));
            return true;
        }
        let shared = taken.shared + length <= self.index.used_by_others(asked.bucket).min(self.reach.shared);
        taken.shared += if shared { length } else { 0 };
        shared
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::index::tests::footer;
    use crate::testing::{bucket, entry};

    /// Buckets 1 to 4 with four blocks of 10 bytes each, in tiles of 80 bytes: two buckets a tile.
    fn index() -> Index {
        let entries: Vec<_> = (0..16).map(|n| entry(1 + n / 4, 0, n % 4, 1, b"0123456789")).collect();
        Index::new(footer(&entries), 80).unwrap()
    }

    fn run(
        index: &Index,
        at: usize,
        wanted: &[usize],
        reach: Reach,
        expected: impl Fn(u64, u64) -> Option<Expected>,
        taken: &[usize],
    ) -> (usize, usize) {
        let expected =
            |part: &FooterBucket, block: &Block| expected(part.bucket.table.0, offsets_of(block).start.0);
        let free = |position: u64| !taken.contains(&index.at(position).unwrap());
        let stretch = Stretch { index, reach, expected: &expected, free: &free };
        let run = stretch.run(at, |n| wanted.contains(&n));
        (run.first, run.last)
    }

    fn nobody(_: u64, _: u64) -> Option<Expected> {
        None
    }

    const FAR: Reach = Reach { own: 1_000, neighbour: 1_000, shared: 1_000 };

    #[test]
    fn a_reader_that_jumps_about_gets_what_it_asks_for() {
        let index = index();
        assert_eq!(run(&index, 1, &[1], Reach { own: 0, ..FAR }, nobody, &[]), (1, 1));
        assert_eq!(run(&index, 1, &[1, 2], Reach { own: 0, ..FAR }, nobody, &[]), (1, 2));
        assert_eq!(
            run(&index, 1, &[1, 2], Reach::NONE, |_, _| Some(Expected { streak: 99, asked: false }), &[]),
            (1, 2)
        );
    }

    #[test]
    fn who_reads_on_gets_as_much_more_as_it_has_read_inside_the_tile_up_to_what_others_have() {
        let index = index();
        assert_eq!(run(&index, 0, &[0], Reach { own: 20, ..FAR }, nobody, &[]), (0, 2));
        assert_eq!(run(&index, 0, &[0], Reach { own: 29, ..FAR }, nobody, &[]), (0, 2));
        assert_eq!(
            run(&index, 0, &[0], FAR, nobody, &[]),
            (0, 3),
            "the next bucket's reader is not expected"
        );
        assert_eq!(run(&index, 0, &[0], FAR, nobody, &[2]), (0, 1));
        assert_eq!(run(&index, 7, &[7, 8], FAR, nobody, &[]), (7, 7), "the next tile is another GET");
    }

    #[test]
    fn neighbours_that_are_expected_come_along_on_both_sides() {
        let index = index();
        let streak = |streak| move |_: u64, _: u64| Some(Expected { streak, asked: false });
        assert_eq!(run(&index, 4, &[4], Reach { own: 0, ..FAR }, streak(20), &[]), (2, 4));
        assert_eq!(run(&index, 4, &[4], Reach { own: 30, ..FAR }, streak(1_000), &[]), (0, 7));
        assert_eq!(run(&index, 4, &[4], Reach { own: 0, neighbour: 5, shared: 0 }, streak(10), &[]), (3, 4));
        assert_eq!(
            run(&index, 4, &[4], Reach { own: 0, ..FAR }, streak(9), &[]),
            (4, 4),
            "it has read less than a block"
        );
        // A read that is under way wants its block whatever it has read.
        let asked = |bucket, offset| (bucket == 1).then_some(Expected { streak: 0, asked: offset == 3 });
        assert_eq!(run(&index, 4, &[4], Reach { own: 0, ..FAR }, asked, &[]), (3, 4));
    }

    #[test]
    fn once_two_buckets_were_used_others_may_come_as_much_as_was_used() {
        let index = index();
        index.note_used(&bucket(2), 20);
        assert_eq!(run(&index, 0, &[0], Reach { own: 30, ..FAR }, nobody, &[]), (0, 5));
        assert_eq!(
            run(&index, 4, &[4], Reach { own: 30, ..FAR }, nobody, &[]),
            (4, 7),
            "that was bucket 2 itself"
        );
        assert_eq!(run(&index, 0, &[0], Reach { own: 30, shared: 10, ..FAR }, nobody, &[]), (0, 4));
    }
}
