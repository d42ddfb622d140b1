//! One read: where each of its blocks comes from, and what it tells the cache about its reader.
//!
//! Lives on: service runtime.
//! Owns: nothing; a step ends with its read, whose GETs go on if it is dropped.
//! Invariants: K-14, P-14: an error behind batches that are already at hand ends the answer there.
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytes::Bytes;
use mink_types::{BucketEpoch, ObjectId, Offset};

use super::ahead::Onward;
use super::blocks::{Landing, Source};
use super::extent::{Extent, Outline, Use};
use super::get::Hint;
use super::index::{Index, landed};
use super::plan::{Reach, Stretch, Wanted, offsets_of, pick};
use super::stats::Count;
use super::streams::{Expected, Mark};
use super::{Inner, OBJECTS_PER_READ_MAX, ObjectRange, ReadBatch, ReadRequest, part_of};
use crate::entry::{EntryKind, IndexEntry};
use crate::error::Error;
use crate::format::{Block, FooterBucket};

/// A read under way.
pub(super) struct Step<'a> {
    inner: &'a Arc<Inner>,
    request: &'a ReadRequest,
    mark: &'a Mark,
    /// The last object that it has come to, and what all readers have used of it.
    object: Option<(ObjectId, Arc<AtomicU64>)>,
    /// Extents of which this read has taken the last that a reader in sequence had not passed.
    passed: Vec<Arc<Extent>>,
}

impl<'a> Step<'a> {
    pub(super) fn new(inner: &'a Arc<Inner>, request: &'a ReadRequest, mark: &'a Mark) -> Step<'a> {
        Step { inner, request, mark, object: None, passed: Vec::new() }
    }

    /// Asks for the footers of all objects that the read will come to, so that it does not wait for one after the other.
    pub(super) fn prepare(&self) {
        let mut bytes = 0;
        let from = self.request.from;
        let objects = self.request.objects.iter().skip_while(|object| object.range.end <= from);
        for (n, object) in objects.take(OBJECTS_PER_READ_MAX).enumerate() {
            if bytes >= self.request.bytes_max as u64 {
                return;
            }
            // The first is asked for at once anyway. An error is told when the read comes to the object.
            if n > 0 {
                let _ = self.inner.start_index(object, self.hint(self.request.bytes_max));
            }
            let count = object.range.end.0.saturating_sub(object.range.start.0).max(1);
            let behind = object.range.end.0.saturating_sub(from.0.max(object.range.start.0));
            let share = u128::from(object.bytes) * u128::from(behind) / u128::from(count);
            bytes += u64::try_from(share).unwrap_or(u64::MAX);
        }
    }

    fn hint(&self, bytes_max: usize) -> Hint {
        Hint { asked: (bytes_max as u64).max(1), streak: self.streak(), around: self.mark.around }
    }

    /// Bytes that the reader has read in sequence, if it does so now.
    fn streak(&self) -> u64 {
        if self.mark.sequential { self.mark.streak } else { 0 }
    }

    /// The batches of one object from `from` on.
    pub(super) async fn read_object(
        &mut self,
        object: &ObjectRange,
        from: Offset,
        bytes_max: usize,
        at_least_one: bool,
    ) -> Result<Vec<ReadBatch>, Error> {
        let index = self.inner.index(object, self.hint(bytes_max)).await?;
        let part = part_of(&index.footer, self.request.bucket, object)?;
        let wanted = pick(part, object.range, from, bytes_max, at_least_one);
        let sources = self.sources(object.object, &index, &wanted)?;
        self.object = Some((object.object, Arc::clone(&index.used)));
        let mut batches = Vec::new();
        for (wanted, source) in wanted.iter().zip(sources) {
            match self.take(object.object, &index, wanted, source, &mut batches).await {
                Ok(()) => {}
                // What is at hand is answered; who goes on there is told.
                Err(_) if batches.iter().any(|batch: &ReadBatch| batch.kind == EntryKind::Batch) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(batches)
    }

    /// Finds each block, and sends for those that are missing.
    fn sources(&self, id: ObjectId, index: &Index, wanted: &[Wanted<'_>]) -> Result<Vec<Source>, Error> {
        let outside = || Error::corrupt(id, "a block is not in its own index");
        let numbers = wanted.iter().map(|wanted| index.at(wanted.block.position)).collect::<Option<Vec<_>>>();
        let numbers = numbers.ok_or_else(outside)?;
        let asked = |n: usize| numbers.binary_search(&n).is_ok();
        let reach = self.reach();
        let expected = |part: &FooterBucket, block: &Block| self.inner.expected(part, block);
        let mut sources = Vec::with_capacity(wanted.len());
        // Dropped behind the look if something fails in between: a landing's end takes the lock.
        let mut starts: Vec<(Outline, Landing)> = Vec::new();
        let mut look = self.inner.blocks.look();
        for (wanted, number) in wanted.iter().zip(&numbers) {
            let position = wanted.block.position;
            let ours = starts.iter().any(|(outline, _)| outline.holds(position));
            let (source, count) = match look.find(id, position) {
                Some(source @ Source::Here(_)) => (source, Count::Hits),
                Some(source @ Source::Flying(_)) if !ours => (source, Count::Joined),
                Some(source @ Source::Flying(_)) => (source, Count::Misses),
                None => {
                    let free = |position| look.find(id, position).is_none();
                    let run = Stretch { index, reach, expected: &expected, free: &free }.run(*number, asked);
                    let outline = Outline::new(id, index, run, asked).ok_or_else(outside)?;
                    let (source, landing) = look.fly(&outline);
                    starts.push((outline, landing));
                    (source, Count::Misses)
                }
            };
            self.inner.counts.add(count, 1);
            if matches!(count, Count::Misses) {
                // At once, not when it lands: those who ask meanwhile are to know of each other.
                index.note_used(&self.request.bucket, u64::from(wanted.block.length));
            }
            sources.push(source);
        }
        drop(look);
        for (outline, landing) in starts {
            self.inner.start_extent(outline, landing, None);
        }
        Ok(sources)
    }

    fn reach(&self) -> Reach {
        if self.inner.blocks.must_copy() {
            return Reach::NONE;
        }
        let window = self.inner.window();
        Reach { own: self.streak().min(window), neighbour: window, shared: window }
    }

    /// The wanted batches of one block, once it is here.
    async fn take(
        &mut self,
        id: ObjectId,
        index: &Index,
        wanted: &Wanted<'_>,
        source: Source,
        batches: &mut Vec<ReadBatch>,
    ) -> Result<(), Error> {
        let extent = match source {
            Source::Here(extent) => extent,
            Source::Flying(flight) => landed(id, flight).await?,
        };
        let blocks = &self.inner.blocks;
        let Some(part) = extent.part(wanted.block.position) else {
            return Err(Error::corrupt(id, "a block lies outside of what was read"));
        };
        let content = match extent.content(part) {
            Ok(content) => content,
            Err(error) => {
                blocks.forget(&extent);
                return Err(error);
            }
        };
        match part.use_it() {
            Use::First { ahead: true } => {
                index.note_used(&part.bucket, part.length());
                self.inner.counts.add(Count::AheadUsed, part.length());
            }
            Use::Again if !self.mark.sequential => blocks.used_again(&extent),
            Use::Again if extent.all_passed() => blocks.wanted(&extent),
            Use::First { ahead: false } | Use::Again => {}
        }
        let copy = blocks.must_copy();
        let epoch = wanted.block.epoch;
        batches.extend(wanted.entries.iter().map(|(at, entry)| batch(&content, *at, entry, epoch, copy)));
        if copy {
            let copied: usize = wanted.entries.iter().map(|(_, entry)| entry.length as usize).sum();
            self.inner.counts.add(Count::Copied, copied as u64);
        }
        let last = wanted.entries.last().map(|(_, entry)| entry.end());
        if self.mark.sequential && last.is_some_and(|last| last >= offsets_of(wanted.block).end) {
            part.pass();
            if extent.all_passed() {
                self.passed.push(extent);
            }
        }
        Ok(())
    }

    /// The read has its answer, and its reader goes on at `next`.
    pub(super) fn finish(self, next: Offset, bytes: u64) {
        let Step { inner, request, mark, object, passed } = self;
        let Some((object, used)) = object else { return };
        mark.moved(next, bytes, object, used);
        for extent in passed {
            let behind = |(bucket, offsets)| inner.streams.behind(bucket, offsets);
            if !extent.offsets().any(behind) {
                inner.blocks.passed(&extent);
            }
        }
        if mark.sequential {
            let (stream, bucket, objects) = (mark.id(), request.bucket, request.objects.clone());
            let streak = mark.streak.saturating_add(bytes);
            let around = mark.around;
            inner.start_ahead(Onward { stream, bucket, objects, next, streak, around });
        }
    }
}

impl Inner {
    /// Who is expected to want a block of a part soon.
    pub(super) fn expected(&self, part: &FooterBucket, block: &Block) -> Option<Expected> {
        self.streams.expects(part.bucket, part.range(), offsets_of(block))
    }
}

/// One batch out of its block. The footer's decoder made sure that the entries' lengths sum up to the block's.
fn batch(content: &Bytes, at: usize, entry: &IndexEntry, epoch: BucketEpoch, copy: bool) -> ReadBatch {
    let bytes = content.slice(at..at + entry.length as usize);
    ReadBatch {
        base_offset: entry.base_offset,
        count: entry.count,
        kind: entry.kind,
        epoch,
        commit_time: entry.commit_time,
        max_timestamp: entry.max_timestamp,
        bytes: if copy { Bytes::copy_from_slice(&bytes) } else { bytes },
    }
}
