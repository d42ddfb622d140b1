//! The memory that batches lie in, shared by tail, WAL and readers: each is copied once, out of its frame, or comes in memory of its own.
//!
//! Lives on: one per core.
//! Owns: chunks of 1 MiB that many batches share, and chunks of their own for large batches.
//! Invariants: I20: memory is counted by what is really held: a chunk counts whole until its last batch has left the tail and no
//! reader or WAL holds a slice of it; each new chunk lets go of what others have let go of meanwhile. Chunks that nobody holds any more
//! are used again, a few of them: a new one costs a page fault for every 4 KiB. Base offset, leader epoch
//! and time of appending are written before anyone else can see the bytes.
use bytes::{Bytes, BytesMut};
use mink_record::RecordError;
use mink_record::kafka::{set_append_time, set_offset_and_epoch};
use mink_router::BatchBytes;
use mink_types::{BucketEpoch, Offset, Timestamp};
use std::collections::VecDeque;

/// Bytes of a chunk that many batches share.
pub const ARENA_CHUNK_BYTES: usize = 1 << 20;

/// A batch above this gets a chunk of its own: at most a quarter of a chunk is ever wasted.
const SHARED_BYTES_MAX: usize = ARENA_CHUNK_BYTES / 4;

/// A batch from this on that comes in memory of its own stays there, as a chunk: below it, what a chunk costs is more than its copy.
const KEPT_FROM: usize = 64 << 10;

/// A batch from this on, up to a chunk, gets a whole one, which can be used again: a quarter of it is wasted at most.
const WHOLE_FROM: usize = ARENA_CHUNK_BYTES / 4 * 3;

/// Chunks kept to be used again. They count as held.
const SPARE_MAX: usize = 2;

/// Lingering chunks looked at with each new one: more than one, so that they never pile up.
const LOOKED_AT: usize = 4;

/// A chunk, by its number since the shard began.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct ChunkId(u64);

#[derive(Debug)]
struct Chunk {
    bytes: usize,
    /// Batches of it that lie in the tail.
    live: u32,
    /// One slice of it, to see whether others are left.
    keeper: Option<Bytes>,
}

#[derive(Debug, Default)]
pub(crate) struct Arena {
    open: BytesMut,
    open_id: Option<ChunkId>,
    /// Number of the first one in `chunks`.
    first: u64,
    chunks: VecDeque<Chunk>,
    tail_bytes: u64,
    copied_bytes: u64,
    /// Chunks that left the tail while somebody held a slice. They live at least until they are looked at again.
    lingering: VecDeque<(Bytes, usize)>,
    lingering_bytes: u64,
    /// Empty chunks of the common size that nobody else holds.
    spare: Vec<BytesMut>,
}

impl Arena {
    /// Takes a batch in, as the log has it at `base_offset`; all its records get the time of appending, if one is given.
    pub(crate) fn place(
        &mut self,
        batch: BatchBytes,
        base_offset: Offset,
        epoch: BucketEpoch,
        append_time: Option<Timestamp>,
    ) -> Result<(Bytes, ChunkId), RecordError> {
        let kept =
            if batch.len() < KEPT_FROM { Err(batch) } else { batch.into_own().map_err(BatchBytes::Part) };
        let (mut placed, id) = match kept {
            Ok(own) => {
                let id = self.add_chunk(own.capacity());
                (own, id)
            }
            Err(batch) => self.copy(&batch),
        };
        set_offset_and_epoch(&mut placed, base_offset.kafka(), epoch.leader_epoch())?;
        if let Some(time) = append_time {
            set_append_time(&mut placed, time.0)?;
        }
        let bytes = placed.freeze();
        if let Some(chunk) = self.chunk(id) {
            chunk.live += 1;
            if chunk.keeper.is_none() {
                chunk.keeper = Some(bytes.clone());
            }
        }
        Ok((bytes, id))
    }

    fn copy(&mut self, batch: &[u8]) -> (BytesMut, ChunkId) {
        self.copied_bytes += batch.len() as u64;
        if batch.len() <= SHARED_BYTES_MAX {
            let id = self.open_for(batch.len());
            self.open.extend_from_slice(batch);
            return (self.open.split(), id);
        }
        let whole = (WHOLE_FROM..=ARENA_CHUNK_BYTES).contains(&batch.len());
        let mut own = if whole { self.new_chunk() } else { BytesMut::with_capacity(batch.len()) };
        own.extend_from_slice(batch);
        let id = self.add_chunk(if whole { ARENA_CHUNK_BYTES } else { batch.len() });
        (own, id)
    }

    /// A batch of the chunk has left the tail.
    pub(crate) fn release(&mut self, id: ChunkId) {
        let is_open = self.open_id == Some(id);
        let Some(chunk) = self.chunk(id) else { return };
        debug_assert!(chunk.live > 0, "a batch leaves the tail once");
        chunk.live = chunk.live.saturating_sub(1);
        if chunk.live == 0 && !is_open {
            self.let_go(id);
        }
    }

    /// Bytes copied in so far.
    pub(crate) fn copied_bytes(&self) -> u64 {
        self.copied_bytes
    }

    /// Bytes of the chunks that the tail's batches lie in.
    pub(crate) fn tail_bytes(&self) -> u64 {
        self.tail_bytes
    }

    /// Bytes of all chunks that there are, those included that only somebody else still holds a slice of.
    pub(crate) fn held_bytes(&self) -> u64 {
        self.tail_bytes + self.lingering_bytes + (self.spare.len() * ARENA_CHUNK_BYTES) as u64
    }

    fn new_chunk(&mut self) -> BytesMut {
        self.spare.pop().unwrap_or_else(|| BytesMut::with_capacity(ARENA_CHUNK_BYTES))
    }

    /// Keeps a chunk that nobody else holds, if it is of the common size and the shard is not at rest.
    fn recycle(&mut self, keeper: Bytes, bytes: usize) {
        if bytes != ARENA_CHUNK_BYTES || self.open_id.is_none() || self.spare.len() >= SPARE_MAX {
            return;
        }
        if let Ok(mut chunk) = keeper.try_into_mut() {
            chunk.clear();
            if chunk.capacity() >= ARENA_CHUNK_BYTES {
                self.spare.push(chunk);
            }
        }
    }

    fn open_for(&mut self, bytes: usize) -> ChunkId {
        if let Some(id) = self.open_id.filter(|_| self.open.capacity() >= bytes) {
            return id;
        }
        let closed = self.open_id.take();
        let chunk = self.new_chunk();
        // The last of the old one's handles that is no batch.
        self.open = chunk;
        let id = self.add_chunk(ARENA_CHUNK_BYTES);
        self.open_id = Some(id);
        if let Some(closed) = closed
            && self.chunk(closed).is_some_and(|chunk| chunk.live == 0)
        {
            self.let_go(closed);
        }
        id
    }

    fn add_chunk(&mut self, bytes: usize) -> ChunkId {
        self.sweep(LOOKED_AT);
        let id = ChunkId(self.first + self.chunks.len() as u64);
        self.chunks.push_back(Chunk { bytes, live: 0, keeper: None });
        self.tail_bytes += bytes as u64;
        id
    }

    fn chunk(&mut self, id: ChunkId) -> Option<&mut Chunk> {
        let at = usize::try_from(id.0.checked_sub(self.first)?).ok()?;
        self.chunks.get_mut(at)
    }

    fn let_go(&mut self, id: ChunkId) {
        let Some(chunk) = self.chunk(id) else { return };
        let bytes = std::mem::take(&mut chunk.bytes);
        let keeper = chunk.keeper.take();
        self.tail_bytes = self.tail_bytes.saturating_sub(bytes as u64);
        match keeper {
            Some(keeper) if keeper.is_unique() => self.recycle(keeper, bytes),
            Some(keeper) => {
                self.lingering.push_back((keeper, bytes));
                self.lingering_bytes += bytes as u64;
            }
            None => {}
        }
        while self.chunks.front().is_some_and(|chunk| chunk.bytes == 0) {
            self.chunks.pop_front();
            self.first += 1;
        }
    }

    /// Lets go of the open chunk if no batch of it is left in the tail, and of spare ones: a shard at rest holds none.
    pub(crate) fn rest(&mut self) {
        self.spare = Vec::new();
        let Some(open) = self.open_id.filter(|_| self.tail_bytes == ARENA_CHUNK_BYTES as u64) else { return };
        if self.chunk(open).is_some_and(|chunk| chunk.live == 0) {
            self.open_id = None;
            self.open = BytesMut::new();
            self.let_go(open);
        }
    }

    /// Looks at so many lingering chunks, those first that were not looked at for longest, and frees what nobody else holds.
    pub(crate) fn sweep(&mut self, looked_at: usize) {
        for _ in 0..looked_at.min(self.lingering.len()) {
            let Some((keeper, bytes)) = self.lingering.pop_front() else { break };
            if keeper.is_unique() {
                self.lingering_bytes = self.lingering_bytes.saturating_sub(bytes as u64);
                self.recycle(keeper, bytes);
            } else {
                self.lingering.push_back((keeper, bytes));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(arena: &mut Arena, bytes: usize) -> (Bytes, ChunkId) {
        let batch = BatchBytes::Part(vec![7; bytes].into());
        arena.place(batch, Offset(0x0102), BucketEpoch(5), None).expect("long enough")
    }

    #[test]
    fn the_copy_has_its_offset_and_epoch_and_the_frame_is_left_alone() {
        let mut arena = Arena::default();
        let frame = Bytes::from(vec![9_u8; 100]);
        let part = BatchBytes::Part(frame.clone());
        let (bytes, _) = arena.place(part, Offset(0x0102), BucketEpoch(5), None).expect("long enough");
        assert_eq!(&bytes[..8], &[0, 0, 0, 0, 0, 0, 1, 2]);
        assert_eq!(&bytes[12..16], &[0, 0, 0, 5]);
        assert_eq!(&bytes[16..], &frame[16..]);
        assert_eq!(frame, vec![9_u8; 100]);
    }

    #[test]
    fn i20_a_large_batch_in_memory_of_its_own_is_kept_as_it_lies_and_counts() {
        let mut arena = Arena::default();
        let own = Bytes::from(vec![7; KEPT_FROM]);
        let at = own.as_ptr();
        let placed = arena.place(BatchBytes::Own(own), Offset(0x0102), BucketEpoch(5), None);
        let (bytes, id) = placed.expect("long enough");
        assert_eq!((bytes.as_ptr(), &bytes[..8]), (at, &[0, 0, 0, 0, 0, 0, 1, 2][..]));
        assert_eq!((arena.tail_bytes(), arena.copied_bytes()), (KEPT_FROM as u64, 0));
        arena.release(id);
        assert_eq!(arena.held_bytes(), KEPT_FROM as u64, "somebody reads it");
        drop(bytes);
        arena.sweep(1);
        assert_eq!(arena.held_bytes(), 0);
        for own in [vec![7; KEPT_FROM - 1], vec![7; KEPT_FROM]] {
            let held = Bytes::from(own);
            let reader = (held.len() == KEPT_FROM).then(|| held.clone());
            let at = held.as_ptr();
            let placed = arena.place(BatchBytes::Own(held), Offset(1), BucketEpoch(5), None);
            assert_ne!(placed.expect("long enough").0.as_ptr(), at, "small, or held by somebody: copied");
            assert!(reader.is_none_or(|reader| reader.iter().all(|byte| *byte == 7)), "and left alone");
        }
    }

    #[test]
    fn i20_a_chunk_counts_whole_until_its_last_batch_is_gone() {
        let mut arena = Arena::default();
        let quarter = SHARED_BYTES_MAX;
        let placed: Vec<_> = (0..5).map(|_| place(&mut arena, quarter)).collect();
        assert_eq!(arena.tail_bytes(), 2 * ARENA_CHUNK_BYTES as u64);
        for (_, id) in &placed[..3] {
            arena.release(*id);
        }
        assert_eq!(arena.tail_bytes(), 2 * ARENA_CHUNK_BYTES as u64);
        arena.release(placed[3].1);
        assert_eq!(arena.tail_bytes(), ARENA_CHUNK_BYTES as u64);
        // Readers still hold slices of the first chunk.
        assert_eq!(arena.held_bytes(), 2 * ARENA_CHUNK_BYTES as u64);
        drop(placed);
        arena.sweep(usize::MAX);
        assert_eq!(arena.held_bytes(), 2 * ARENA_CHUNK_BYTES as u64, "kept for the next");
        arena.rest();
        assert_eq!(arena.held_bytes(), ARENA_CHUNK_BYTES as u64);
    }

    #[test]
    fn i20_what_readers_let_go_is_freed_by_the_batches_that_follow_whatever_their_size() {
        for bytes in [SHARED_BYTES_MAX / 2, SHARED_BYTES_MAX, SHARED_BYTES_MAX + 1, ARENA_CHUNK_BYTES] {
            let mut arena = Arena::default();
            let mut reading = VecDeque::new();
            let mut most = 0;
            for _ in 0..1_000 {
                let (slice, id) = place(&mut arena, bytes);
                reading.push_back(slice);
                arena.release(id);
                if reading.len() > 8 {
                    reading.pop_front();
                }
                most = most.max(arena.held_bytes());
            }
            assert!(most <= 16 * ARENA_CHUNK_BYTES as u64, "{bytes}: {most}");
            drop(reading);
            for _ in 0..16 {
                let (_, id) = place(&mut arena, bytes);
                arena.release(id);
            }
            assert!(arena.held_bytes() <= 2 * ARENA_CHUNK_BYTES as u64, "{bytes}: {}", arena.held_bytes());
        }
    }

    #[test]
    fn a_chunk_that_nobody_holds_is_used_again_before_the_system_is_asked_for_another() {
        for bytes in [SHARED_BYTES_MAX, WHOLE_FROM, ARENA_CHUNK_BYTES] {
            let mut arena = Arena::default();
            place(&mut arena, 100);
            let placed: Vec<_> =
                (0..4 * ARENA_CHUNK_BYTES / bytes).map(|_| place(&mut arena, bytes)).collect();
            // A chunk that is full and no longer open.
            let id = placed[placed.len() / 2].1;
            let (gone, _kept): (Vec<_>, Vec<_>) = placed.into_iter().partition(|(_, of)| *of == id);
            let at = gone.first().map(|(slice, _)| slice.as_ptr());
            for (slice, id) in gone {
                drop(slice);
                arena.release(id);
            }
            let before = arena.held_bytes();
            // Would be given that memory if it had been let go of.
            let decoy = BytesMut::with_capacity(ARENA_CHUNK_BYTES);
            let again: Vec<_> =
                (0..4 * ARENA_CHUNK_BYTES / bytes).map(|_| place(&mut arena, bytes)).collect();
            assert!(again.iter().any(|(slice, _)| Some(slice.as_ptr()) == at), "{bytes}");
            assert!(arena.held_bytes() <= before + 4 * ARENA_CHUNK_BYTES as u64, "{bytes}");
            drop(decoy);
        }
    }

    #[test]
    fn i20_spare_chunks_are_few_and_count() {
        let mut arena = Arena::default();
        let placed: Vec<_> = (0..8).map(|_| place(&mut arena, ARENA_CHUNK_BYTES)).collect();
        place(&mut arena, 100);
        for (slice, id) in placed {
            drop(slice);
            arena.release(id);
        }
        assert_eq!(arena.held_bytes(), arena.tail_bytes() + (SPARE_MAX * ARENA_CHUNK_BYTES) as u64);
    }

    #[test]
    fn i20_a_shard_at_rest_holds_no_chunk() {
        let mut arena = Arena::default();
        let (first, id) = place(&mut arena, 100);
        arena.rest();
        assert_eq!(arena.held_bytes(), ARENA_CHUNK_BYTES as u64, "a batch lies in it");
        arena.release(id);
        arena.rest();
        assert_eq!(arena.tail_bytes(), 0);
        assert_eq!(arena.held_bytes(), ARENA_CHUNK_BYTES as u64, "somebody reads it");
        drop(first);
        arena.sweep(1);
        assert_eq!(arena.held_bytes(), 0);
        let (_, again) = place(&mut arena, 100);
        assert!(again > id);
    }

    #[test]
    fn a_large_batch_has_a_chunk_of_its_own_and_the_shared_one_stays_open() {
        let mut arena = Arena::default();
        let (_, shared) = place(&mut arena, 100);
        let (_, own) = place(&mut arena, SHARED_BYTES_MAX + 1);
        let (_, again) = place(&mut arena, 100);
        assert_eq!(shared, again);
        arena.release(own);
        assert_eq!(arena.tail_bytes(), ARENA_CHUNK_BYTES as u64);
        arena.release(shared);
        arena.release(shared);
        assert_eq!(arena.tail_bytes(), ARENA_CHUNK_BYTES as u64, "the open one is held whatever lies in it");
    }
}
