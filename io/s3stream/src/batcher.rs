//! A shard's side of the WAL: entries of one pump turn become one chunk.
//!
//! Lives on: one per core. Nothing here waits, locks or copies bytes.
//! Owns: the entries that are ordered and not yet pushed.     Talks to: the chunk lane of the WAL writer.
//! Invariants: a chunk's completion is called exactly once, also when the writer dies (then with [`ChunkEnd::Fenced`]);
//! a chunk is at most [`CHUNK_BYTES_MAX`] long, so that one PUT can hold it whole.
use std::collections::VecDeque;
use std::fmt;

use crate::entry::{ENTRY_BYTES_MAX, Entry};

/// A chunk is closed at this many bytes; the WAL writer joins the chunks of all shards into one object anyway.
pub const CHUNK_BYTES: usize = 8 << 20;
/// No chunk is longer than this, in bytes of entries.
pub const CHUNK_BYTES_MAX: usize = CHUNK_BYTES + ENTRY_BYTES_MAX;
/// A chunk is closed at this many entries: its part of a footer stays small beside its bytes.
pub const CHUNK_ENTRIES_MAX: usize = 64 * 1024;

const _: () = assert!(CHUNK_BYTES_MAX as u64 + (8 << 20) <= mink_object::PUT_BYTES_MAX);

/// How a chunk ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChunkEnd {
    /// The chunk and everything before it on the chain is durable: ack.
    Durable,
    /// The chain ended before that: never ack. The process drops its buckets and rejoins, or exits; a successor may have
    /// recovered the chunk all the same.
    Fenced,
}

/// Told once how its chunk ended; dropping it tells [`ChunkEnd::Fenced`], so that nobody waits for ever.
pub struct Completion(Option<Box<dyn FnOnce(ChunkEnd) + Send>>);

impl Completion {
    /// Calls `told` once. It runs on the service runtime: it must not block, and its room was reserved by the caller.
    pub fn new(told: impl FnOnce(ChunkEnd) + Send + 'static) -> Completion {
        Completion(Some(Box::new(told)))
    }

    pub(crate) fn tell(mut self, end: ChunkEnd) {
        if let Some(told) = self.0.take() {
            told(end);
        }
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        if let Some(told) = self.0.take() {
            told(ChunkEnd::Fenced);
        }
    }
}

impl fmt::Debug for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Completion")
    }
}

/// What a shard ordered since its last chunk, and whom to tell when it is durable.
#[derive(Debug)]
pub struct Chunk {
    pub entries: Vec<Entry>,
    pub done: Completion,
}

impl Chunk {
    /// A chunk of entries in the order of their making.
    pub fn new(entries: Vec<Entry>, told: impl FnOnce(ChunkEnd) + Send + 'static) -> Chunk {
        Chunk { entries, done: Completion::new(told) }
    }

    /// Bytes of the entries.
    pub fn bytes(&self) -> usize {
        self.entries.iter().map(|entry| entry.bytes.len()).sum()
    }
}

/// An entry longer than [`ENTRY_BYTES_MAX`]; no WAL object could hold it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "an entry of {bytes} bytes is more than the {ENTRY_BYTES_MAX} that the WAL takes; lower batch-bytes-max"
)]
pub struct EntryTooLarge {
    pub bytes: usize,
}

/// Collects a shard's entries.
#[derive(Debug, Default)]
pub struct Batcher {
    open: Vec<Entry>,
    open_bytes: usize,
    closed: VecDeque<Vec<Entry>>,
    bytes: usize,
}

impl Batcher {
    /// An empty batcher.
    pub fn new() -> Batcher {
        Batcher::default()
    }

    /// Whether an entry of `bytes` bytes can be taken at all; check before an offset is given to it.
    pub fn check(bytes: usize) -> Result<(), EntryTooLarge> {
        if bytes > ENTRY_BYTES_MAX { Err(EntryTooLarge { bytes }) } else { Ok(()) }
    }

    /// Adds an entry behind the ones that are there.
    pub fn push(&mut self, entry: Entry) -> Result<(), EntryTooLarge> {
        let bytes = entry.bytes.len();
        Batcher::check(bytes)?;
        self.bytes += bytes;
        self.open_bytes += bytes;
        self.open.push(entry);
        if self.open_bytes >= CHUNK_BYTES || self.open.len() >= CHUNK_ENTRIES_MAX {
            self.close();
        }
        Ok(())
    }

    /// Bytes that wait here. A shard stops taking requests when its lane is full and this passes its bound.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether nothing waits here.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty() && self.closed.is_empty()
    }

    /// The oldest chunk. Call it at the end of a pump turn, as long as the lane has room and until it gives none.
    pub fn seal(&mut self) -> Option<Vec<Entry>> {
        if self.closed.is_empty() {
            self.close();
        }
        let entries = self.closed.pop_front()?;
        self.bytes -= entries.iter().map(|entry| entry.bytes.len()).sum::<usize>();
        Some(entries)
    }

    fn close(&mut self) {
        if !self.open.is_empty() {
            self.closed.push_back(std::mem::take(&mut self.open));
            self.open_bytes = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::entry;
    use std::sync::{Arc, Mutex};

    #[test]
    fn a_turn_becomes_one_chunk_and_long_turns_become_bounded_chunks_in_order() {
        let mut batcher = Batcher::new();
        assert!(batcher.seal().is_none());
        for n in 0..3 {
            batcher.push(entry(1, 0, n, 1, b"abc")).unwrap();
        }
        assert_eq!(batcher.bytes(), 9);
        let bases: Vec<u64> = batcher.seal().unwrap().iter().map(|e| e.base_offset.0).collect();
        assert_eq!((bases, batcher.is_empty(), batcher.bytes()), (vec![0, 1, 2], true, 0));

        let large = vec![7; CHUNK_BYTES / 2 + 1];
        for n in 3..8 {
            batcher.push(entry(1, 0, n, 1, &large)).unwrap();
        }
        let sizes: Vec<usize> = std::iter::from_fn(|| batcher.seal()).map(|c| c.len()).collect();
        assert_eq!(sizes, vec![2, 2, 1]);
    }

    #[test]
    fn an_entry_that_no_object_could_hold_is_refused() {
        assert_eq!(Batcher::check(ENTRY_BYTES_MAX + 1), Err(EntryTooLarge { bytes: ENTRY_BYTES_MAX + 1 }));
        assert_eq!(Batcher::check(ENTRY_BYTES_MAX), Ok(()));
    }

    #[test]
    fn i5_a_chunk_that_is_dropped_tells_its_shard() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&told);
        drop(Chunk::new(vec![], move |end| log.lock().unwrap().push(end)));
        let log = Arc::clone(&told);
        Chunk::new(vec![], move |end| log.lock().unwrap().push(end)).done.tell(ChunkEnd::Durable);
        assert_eq!(*told.lock().unwrap(), vec![ChunkEnd::Fenced, ChunkEnd::Durable]);
    }
}
