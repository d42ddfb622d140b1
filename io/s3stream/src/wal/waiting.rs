//! Chunks that wait to be cut.
//!
//! Lives on: the WAL writer (pure).
//! Invariants: an object takes whole chunks in their order, as many as fit; a chunk is never split.
use std::collections::VecDeque;

use mink_rt::Instant;

use crate::batcher::{CHUNK_ENTRIES_MAX, Chunk, Completion};
use crate::entry::Entry;
use crate::format::{FOOTER_BYTES_MAX, encoded_bytes};

/// Most entries of one WAL object: their index stays below the longest footer.
const OBJECT_ENTRIES_MAX: usize = 224 * 1024;

const _: () = assert!(
    encoded_bytes(OBJECT_ENTRIES_MAX, 0) <= FOOTER_BYTES_MAX as u64
        && CHUNK_ENTRIES_MAX <= OBJECT_ENTRIES_MAX
);

/// The chunks, oldest first.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    chunks: VecDeque<Timed>,
    bytes: u64,
    entries: usize,
}

#[derive(Debug)]
struct Timed {
    chunk: Chunk,
    bytes: u64,
    since: Instant,
}

/// What an object will be made of.
#[derive(Debug, Default)]
pub(super) struct Cutting {
    pub(super) entries: Vec<Entry>,
    pub(super) done: Vec<Completion>,
    /// Bytes of the entries.
    pub(super) data_bytes: u64,
}

impl Waiting {
    /// Whether another chunk may be taken out of the lanes.
    pub(super) fn has_room(&self, bytes_max: u64) -> bool {
        self.bytes < bytes_max && self.entries < OBJECT_ENTRIES_MAX
    }

    pub(super) fn push(&mut self, chunk: Chunk, now: Instant) {
        let bytes = chunk.bytes() as u64;
        self.bytes += bytes;
        self.entries += chunk.entries.len();
        self.chunks.push_back(Timed { chunk, bytes, since: now });
    }

    pub(super) fn len(&self) -> usize {
        self.chunks.len()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Since when the oldest waits.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.chunks.front().map(|timed| timed.since)
    }

    /// How many chunks the next object takes (at least one, if there is one), and the most bytes that it will have.
    pub(super) fn next_object(&self, bytes_max: u64) -> (usize, u64) {
        let fits =
            |entries, bytes| entries <= OBJECT_ENTRIES_MAX && encoded_bytes(entries, bytes) <= bytes_max;
        if fits(self.entries, self.bytes) {
            return (self.chunks.len(), encoded_bytes(self.entries, self.bytes));
        }
        let (mut chunks, mut entries, mut bytes) = (0, 0, 0);
        for timed in &self.chunks {
            let then = (entries + timed.chunk.entries.len(), bytes + timed.bytes);
            if chunks > 0 && !fits(then.0, then.1) {
                break;
            }
            chunks += 1;
            (entries, bytes) = then;
        }
        (chunks, encoded_bytes(entries, bytes))
    }

    /// Takes the oldest `chunks`.
    pub(super) fn cut(&mut self, chunks: usize) -> Cutting {
        let mut cutting = Cutting::default();
        for timed in self.chunks.drain(..chunks.min(self.chunks.len())) {
            if cutting.entries.is_empty() {
                cutting.entries = timed.chunk.entries;
            } else {
                cutting.entries.extend(timed.chunk.entries);
            }
            cutting.done.push(timed.chunk.done);
            cutting.data_bytes += timed.bytes;
        }
        self.bytes -= cutting.data_bytes;
        self.entries -= cutting.entries.len();
        cutting
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::entry;

    #[test]
    fn an_object_takes_as_many_whole_chunks_as_fit_and_at_least_one() {
        let mut waiting = Waiting::default();
        assert_eq!(waiting.next_object(1_000_000).0, 0);
        let body = vec![1; 1_000];
        for n in 0..5 {
            waiting.push(Chunk::new(vec![entry(1, 0, n, 1, &body)], |_| ()), Instant::from_nanos(n));
        }
        assert_eq!(waiting.next_object(1_000_000), (5, encoded_bytes(5, 5_000)));
        assert_eq!(waiting.next_object(encoded_bytes(3, 3_500)), (3, encoded_bytes(3, 3_000)));
        assert_eq!(waiting.next_object(10).0, 1);
        let cutting = waiting.cut(3);
        assert_eq!((cutting.entries.len(), cutting.done.len(), cutting.data_bytes), (3, 3, 3_000));
        assert_eq!((waiting.len(), waiting.bytes()), (2, 2_000));
        assert_eq!(waiting.oldest(), Some(Instant::from_nanos(3)));
        assert!(waiting.has_room(2_001) && !waiting.has_room(2_000));
    }
}
