//! Reading ahead for readers in sequence: what comes next is fetched before it is asked for.
//!
//! Lives on: service runtime, one task per reader at most.
//! Invariants: I20: for one reader at most a tile and a half lies ahead, and no more than it has read in sequence; for all of
//! them GETs of blocks in flight take half of the cache's room, and sequential readers share what is kept. They never wait for
//! room and fail nobody: who asks for what could not be fetched asks for himself.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use mink_types::{BucketId, Offset};

use super::extent::Outline;
use super::get::{Hint, weight};
use super::index::Index;
use super::plan::{Reach, Stretch, lies_in, offsets_of};
use super::{Inner, OBJECTS_PER_READ_MAX, ObjectRange};
use crate::format::BLOCK_BYTES;

/// Tasks that read ahead at a time.
const TASKS_MAX: usize = 64;

/// A reader that goes on, and where.
#[derive(Debug)]
pub(super) struct Onward {
    pub(super) stream: u64,
    pub(super) bucket: BucketId,
    pub(super) objects: Vec<ObjectRange>,
    pub(super) next: Offset,
    /// Bytes that it has read in sequence.
    pub(super) streak: u64,
    /// Bytes that all readers used of an object that it has read lately.
    pub(super) around: u64,
}

/// Gives back what a task has taken.
struct Turn {
    inner: Arc<Inner>,
    stream: u64,
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.inner.streams.end_ahead(self.stream);
        self.inner.ahead_tasks.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Inner {
    /// How far one sequential reader may be ahead of itself, in bytes: a tile, or its share of the room. None if there are so
    /// many that what is read ahead for one would push out what was read ahead for another.
    fn ahead_window(&self) -> Option<u64> {
        let room = self.blocks.room() as u64;
        // Behind, under and ahead of a reader lie two and a half windows; several need some play.
        let share = match self.streams.fronts() as u64 {
            0 | 1 => room / 5 * 2,
            fronts => room / (3 * fronts),
        };
        (share >= BLOCK_BYTES as u64).then_some(share.min(self.tile_bytes))
    }

    /// How far a GET that is asked for may go beyond what is asked, in bytes.
    pub(super) fn window(&self) -> u64 {
        self.ahead_window().unwrap_or(BLOCK_BYTES as u64).min(self.tile_bytes)
    }

    /// Starts a task for the reader, unless it has one.
    pub(super) fn start_ahead(self: &Arc<Inner>, onward: Onward) {
        if !self.streams.begin_ahead(onward.stream) {
            return;
        }
        let tasks: &AtomicUsize = &self.ahead_tasks;
        tasks.fetch_add(1, Ordering::Relaxed);
        let turn = Turn { inner: Arc::clone(self), stream: onward.stream };
        if tasks.load(Ordering::Relaxed) > TASKS_MAX {
            return;
        }
        let task = self.parts.service.spawn("read-ahead", async move {
            turn.inner.read_ahead(&onward).await;
        });
        // Nobody waits for it: it only prepares what others ask for.
        drop(task);
    }

    async fn read_ahead(self: &Arc<Inner>, onward: &Onward) {
        let Some(window) = self.ahead_window().map(|window| window.min(onward.streak)) else {
            return;
        };
        let hint = Hint { asked: window, streak: onward.streak, around: onward.around };
        let mut covered = 0;
        let objects = onward.objects.iter().filter(|object| object.range.end > onward.next);
        for object in objects.take(OBJECTS_PER_READ_MAX) {
            if covered >= window / 2 {
                return;
            }
            // It may bring the blocks with it; who asks for them is told of the error, if there is one.
            let Ok(index) = self.index(object, hint).await else { return };
            match self.cover(onward, object, &index, window, covered) {
                Some(now) => covered = now,
                None => return,
            }
        }
    }

    /// Sends for the next missing blocks of an object; gives the bytes that lie ready or are on their way ahead of the
    /// reader, none if there is nothing more to do.
    fn cover(
        self: &Arc<Inner>,
        onward: &Onward,
        object: &ObjectRange,
        index: &Index,
        window: u64,
        mut covered: u64,
    ) -> Option<u64> {
        let part = index.footer.bucket(&onward.bucket)?;
        let first = part.blocks.partition_point(|block| offsets_of(block).end <= onward.next);
        for block in part.blocks.iter().skip(first) {
            if !block.entries.iter().any(|entry| lies_in(entry, object.range)) {
                continue;
            }
            let length = u64::from(block.length);
            let mut look = self.blocks.look();
            if look.find(object.object, block.position).is_some() {
                covered += length;
                continue;
            }
            if covered >= window / 2 || covered + length > onward.streak {
                return None;
            }
            let own = window.min(onward.streak - covered).saturating_sub(length);
            let reach = Reach { own, neighbour: window, shared: window };
            let at = index.at(block.position)?;
            let free = |position| look.find(object.object, position).is_none();
            let expected = |part: &_, block: &_| self.expected(part, block);
            let run = Stretch { index, reach, expected: &expected, free: &free }.run(at, |_| false);
            let outline = Outline::new(object.object, index, run, |_| false)?;
            if outline.length() <= covered {
                // A crumb, and there is time: more of it may be wanted then.
                return None;
            }
            let pass = look.try_pass(weight(&outline))?;
            let (_, landing) = look.fly(&outline);
            drop(look);
            covered += length;
            self.start_extent(outline, landing, Some(pass));
        }
        Some(covered)
    }
}
