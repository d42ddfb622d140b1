//! The tail of a bucket: its last batches, in memory, in the same bytes that the WAL holds.
//!
//! Lives on: one per bucket, on its core.
//! Owns: references into the arena.
//! Invariants: I2: batches follow each other without a gap, the last one to the appended end; the caller says how far a reader may see.
use crate::arena::ChunkId;
use bytes::Bytes;
use mink_types::{Offset, Timestamp};
use std::collections::VecDeque;

/// A batch in memory.
#[derive(Clone, Debug)]
pub(crate) struct TailBatch {
    pub(crate) base: Offset,
    pub(crate) end: Offset,
    pub(crate) max_timestamp: Timestamp,
    pub(crate) chunk: ChunkId,
    pub(crate) bytes: Bytes,
}

/// The batches from some offset to the appended end.
#[derive(Debug)]
pub(crate) struct Tail {
    batches: VecDeque<TailBatch>,
}

impl Tail {
    /// An empty one.
    pub(crate) const fn new() -> Tail {
        Tail { batches: VecDeque::new() }
    }

    /// The first offset that is in memory, if one is.
    pub(crate) fn start(&self) -> Option<Offset> {
        self.batches.front().map(|batch| batch.base)
    }

    /// Where the oldest batch ends, if there is one.
    pub(crate) fn first_end(&self) -> Option<Offset> {
        self.batches.front().map(|batch| batch.end)
    }

    pub(crate) fn push(&mut self, batch: TailBatch) {
        let follows = self.batches.back().is_none_or(|last| last.end == batch.base);
        debug_assert!(follows && batch.end > batch.base, "I2: {batch:?} behind {:?}", self.batches.back());
        self.batches.push_back(batch);
    }

    /// Drops the oldest batch.
    pub(crate) fn pop(&mut self) -> Option<TailBatch> {
        self.batches.pop_front()
    }

    /// Batches from the one that holds `from`, none that ends beyond `until`, up to `bytes_max` bytes. The first one comes
    /// however large if `at_least_one`.
    pub(crate) fn slice(
        &self,
        from: Offset,
        until: Offset,
        bytes_max: u64,
        at_least_one: bool,
    ) -> Vec<Bytes> {
        let first = self.batches.partition_point(|batch| batch.end <= from);
        let (mut count, mut bytes) = (0, 0_u64);
        for batch in self.batches.range(first..) {
            bytes += batch.bytes.len() as u64;
            let fits = bytes <= bytes_max || (at_least_one && count == 0);
            if !fits || batch.end > until {
                break;
            }
            count += 1;
        }
        // Counted first: a list of many batches would else be moved as it grows.
        self.batches.range(first..first + count).map(|batch| batch.bytes.clone()).collect()
    }

    /// The first batch that ends beyond `from` and not beyond `until` and says that it holds a record at or after `time`.
    pub(crate) fn first_at_or_after(
        &self,
        time: Timestamp,
        from: Offset,
        until: Offset,
    ) -> Option<&TailBatch> {
        self.visible(from, until).find(|batch| batch.max_timestamp >= time)
    }

    /// The largest timestamp of the batches that end beyond `from` and not beyond `until`.
    pub(crate) fn max_timestamp(&self, from: Offset, until: Offset) -> Option<Timestamp> {
        self.visible(from, until).map(|batch| batch.max_timestamp).max()
    }

    fn visible(&self, from: Offset, until: Offset) -> impl Iterator<Item = &TailBatch> {
        let first = self.batches.partition_point(|batch| batch.end <= from);
        let last = self.batches.partition_point(|batch| batch.end <= until);
        self.batches.range(first.min(last)..last)
    }

    /// Gives back the room that its batches do not need.
    pub(crate) fn shrink(&mut self) {
        self.batches.shrink_to_fit();
    }

    pub(crate) fn len(&self) -> usize {
        self.batches.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::Arena;
    use mink_types::BucketEpoch;

    /// Batches of ten offsets and 100 bytes each, from offset 20.
    fn tail(times: &[i64]) -> Tail {
        let mut arena = Arena::default();
        let mut tail = Tail::new();
        for (n, time) in (0_u64..).zip(times) {
            let base = Offset(20 + 10 * n);
            let (bytes, chunk) = arena
                .place(Bytes::from_static(&[0; 100]).into(), base, BucketEpoch(1), None)
                .expect("long enough");
            tail.push(TailBatch { base, end: base.plus(10), max_timestamp: Timestamp(*time), chunk, bytes });
        }
        tail
    }

    fn bases(batches: &[Bytes]) -> Vec<u8> {
        batches.iter().map(|bytes| bytes[7]).collect()
    }

    #[test]
    fn k_14_a_read_inside_a_batch_gets_that_whole_batch() {
        let tail = tail(&[1, 2, 3]);
        let until = Offset(50);
        assert_eq!(bases(&tail.slice(Offset(20), until, 1000, false)), [20, 30, 40]);
        assert_eq!(bases(&tail.slice(Offset(29), until, 1000, false)), [20, 30, 40]);
        assert_eq!(bases(&tail.slice(Offset(30), until, 1000, false)), [30, 40]);
        assert!(tail.slice(Offset(50), until, 1000, true).is_empty());
    }

    #[test]
    fn i3_nothing_beyond_the_given_end_comes_not_even_as_the_one_batch() {
        let tail = tail(&[1, 2, 3]);
        assert_eq!(bases(&tail.slice(Offset(20), Offset(40), 1000, true)), [20, 30]);
        assert!(tail.slice(Offset(20), Offset(20), 1000, true).is_empty());
        assert!(tail.first_at_or_after(Timestamp(3), Offset(20), Offset(40)).is_none());
        assert_eq!(tail.max_timestamp(Offset(20), Offset(40)), Some(Timestamp(2)));
    }

    #[test]
    fn bytes_are_a_bound_but_for_the_first_batch_if_one_must_come() {
        let tail = tail(&[1, 2, 3]);
        let until = Offset(50);
        assert_eq!(bases(&tail.slice(Offset(20), until, 200, false)), [20, 30]);
        assert_eq!(bases(&tail.slice(Offset(20), until, 99, true)), [20]);
        assert!(tail.slice(Offset(20), until, 99, false).is_empty());
    }

    #[test]
    fn k_15_times_need_no_order() {
        let tail = tail(&[5, 9, 1, 9]);
        let found = |time, from| {
            tail.first_at_or_after(Timestamp(time), Offset(from), Offset(60)).map(|batch| batch.base.0)
        };
        assert_eq!(found(4, 20), Some(20));
        assert_eq!(found(6, 20), Some(30));
        assert_eq!(found(6, 40), Some(50));
        assert_eq!(found(10, 20), None);
    }
}
