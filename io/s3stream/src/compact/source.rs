//! The objects that a job reads: their footers, and the blocks of one step, by few large GETs.
//!
//! Lives on: service runtime. Beside the readers' caches: what is read once here must not drive out what others read.
//! Invariants: P-1 (nothing is given that does not match its checksum), I20 (a step's blocks, and no others, are in memory).
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use mink_object::Span;
use mink_types::{BucketId, ObjectId, ObjectKey};

use super::runs::{Run, lies_in};
use super::{CompactionEnd, CompactionMove, Compactor};
use crate::create::Pause;
use crate::entry::{Entry, IndexEntry};
use crate::error::{Error, ErrorKind};
use crate::format::{Block, Footer, FooterBucket, TAIL_BYTES, split_end};
use crate::read::ObjectRange;

/// GETs at a time.
const GETS_MAX: usize = 4;
/// Longest GET, but for a single longer block.
const GET_BYTES_MAX: u64 = 16 << 20;
/// Bytes between two blocks that are read along rather than by another GET.
const GAP_BYTES_MAX: u64 = 256 << 10;
/// An object that is no longer is read once and whole.
const WHOLE_BYTES_MAX: u64 = 256 << 10;
/// Attempts of a GET, and the pauses between them.
const ATTEMPTS_MAX: u32 = 12;
const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Reads of bytes that do not match their checksum, before they are called damaged.
const DAMAGED_READS_MAX: u32 = 2;

/// Blocks by object and position.
pub(super) type Blocks = BTreeMap<(ObjectId, u64), Bytes>;

/// The objects of a job.
pub(super) struct Sources(BTreeMap<ObjectId, Source>);

struct Source {
    footer: Footer,
    /// All of a small object.
    whole: Option<Bytes>,
}

impl Sources {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn part(&self, bucket: BucketId, range: &ObjectRange) -> Result<&FooterBucket, CompactionEnd> {
        let part = self.0.get(&range.object).and_then(|source| source.footer.bucket(&bucket));
        part.ok_or_else(|| {
            damaged(range.object, format!("it was committed for {bucket} but holds none of it"))
        })
    }

    /// The entries of a range with their blocks and their places in those.
    pub(super) fn entries(
        &self,
        bucket: BucketId,
        range: &ObjectRange,
    ) -> Result<impl Iterator<Item = (&Block, usize, &IndexEntry)>, CompactionEnd> {
        let (part, offsets) = (self.part(bucket, range)?, range.range);
        let blocks = part.blocks.iter().flat_map(|block| {
            let mut position = 0;
            block.entries.iter().map(move |entry| {
                let at = position;
                position += entry.length as usize;
                (block, at, entry)
            })
        });
        Ok(blocks.filter(move |(_, _, entry)| lies_in(entry, offsets)))
    }
}

/// The entries of a run, each a slice of its block.
pub(super) fn entries(run: &Run, sources: &Sources, blocks: &Blocks) -> Result<Vec<Entry>, CompactionEnd> {
    let mut entries = Vec::with_capacity(run.entries);
    for range in &run.ranges {
        for (block, at, index) in sources.entries(run.bucket, range)? {
            let content = blocks.get(&(range.object, block.position));
            let end = at + index.length as usize;
            let Some(content) = content.filter(|content| end <= content.len()) else {
                return Err(damaged(range.object, format!("no block at {}", block.position)));
            };
            entries.push(Entry {
                bucket: run.bucket,
                epoch: block.epoch,
                base_offset: index.base_offset,
                count: index.count,
                kind: index.kind,
                commit_time: index.commit_time,
                max_timestamp: index.max_timestamp,
                producer: index.producer,
                known: None,
                bytes: content.slice(at..end),
            });
        }
    }
    Ok(entries)
}

fn damaged(object: ObjectId, reason: impl Into<String>) -> CompactionEnd {
    CompactionEnd::Unreadable { object, reason: reason.into() }
}

/// Blocks that one GET brings.
struct Wanted {
    object: ObjectId,
    span: Range<u64>,
    /// Position, length and checksum of each.
    blocks: Vec<(u64, u32, u32)>,
}

impl Compactor {
    /// Reads the footers of all objects that the moves name.
    pub(super) async fn sources(&self, moves: &[CompactionMove]) -> Result<Sources, CompactionEnd> {
        let objects: BTreeMap<ObjectId, ObjectRange> =
            moves.iter().flat_map(|moved| moved.ranges.iter().map(|range| (range.object, *range))).collect();
        let reads = objects.into_values().map(|range| self.source(range));
        let mut reads = std::pin::pin!(futures::stream::iter(reads).buffered(GETS_MAX));
        let mut sources = BTreeMap::new();
        while let Some(read) = reads.next().await {
            let (object, source) = read?;
            sources.insert(object, source);
        }
        Ok(Sources(sources))
    }

    async fn source(&self, range: ObjectRange) -> Result<(ObjectId, Source), CompactionEnd> {
        let (id, length) = (range.object, range.length);
        let end_bytes = u64::from(range.footer_length) + TAIL_BYTES as u64;
        let start = length.checked_sub(end_bytes);
        let Some(start) = start.filter(|_| length > 0) else {
            return Err(damaged(id, "metadata gives it a footer longer than itself"));
        };
        let whole = length <= WHOLE_BYTES_MAX;
        let mut reads = 1;
        loop {
            let bytes = self.get(id, if whole { 0 } else { start }..length).await?;
            match split_end(&bytes, length) {
                Ok((tail, Some(footer))) if tail.footer_crc == range.checksum => {
                    return Ok((id, Source { footer, whole: whole.then_some(bytes) }));
                }
                _ if reads < DAMAGED_READS_MAX => reads += 1,
                Ok(_) => return Err(damaged(id, "its footer is not the one that was committed")),
                Err(error) => return Err(damaged(id, error.to_string())),
            }
        }
    }

    /// Reads the blocks of a step.
    pub(super) async fn blocks(&self, step: &[Run], sources: &Sources) -> Result<Blocks, CompactionEnd> {
        let mut blocks = Blocks::new();
        let mut wanted = Vec::new();
        for get in wanted_of(step, sources)? {
            match sources.0.get(&get.object).and_then(|source| source.whole.as_ref()) {
                Some(whole) => take(&get, whole, 0, &mut blocks)?,
                None => wanted.push(get),
            }
        }
        let reads = wanted.into_iter().map(|get| self.fetch(get));
        let mut reads = std::pin::pin!(futures::stream::iter(reads).buffered(GETS_MAX));
        while let Some(read) = reads.next().await {
            blocks.append(&mut read?);
        }
        Ok(blocks)
    }

    async fn fetch(&self, wanted: Wanted) -> Result<Blocks, CompactionEnd> {
        let mut reads = 1;
        loop {
            let bytes = self.get(wanted.object, wanted.span.clone()).await?;
            let mut blocks = Blocks::new();
            match take(&wanted, &bytes, wanted.span.start, &mut blocks) {
                Ok(()) => return Ok(blocks),
                Err(_) if reads < DAMAGED_READS_MAX => reads += 1,
                Err(error) => return Err(error),
            }
        }
    }

    async fn get(&self, id: ObjectId, span: Range<u64>) -> Result<Bytes, CompactionEnd> {
        let creator = &self.flusher.creator;
        let store = match id {
            ObjectId::Wal { .. } => &self.parts.wal_store,
            ObjectId::Stream { .. } => &creator.store,
        };
        let key = ObjectKey::object(&self.flusher.cluster, id);
        let mut pause = Pause::between(PAUSE_FIRST, PAUSE_MAX);
        let mut reason = String::new();
        for _ in 0..ATTEMPTS_MAX {
            let get = store.get(&key, Span::Range(span.clone()));
            match creator.service.timeout(creator.config.get_timeout, get).await {
                Ok(Ok(bytes)) => return Ok(bytes),
                Ok(Err(error)) => {
                    let error = Error::read(id, error);
                    match error.kind() {
                        ErrorKind::Missing { object } => {
                            return Err(CompactionEnd::Missing { object: *object });
                        }
                        ErrorKind::Retry => reason = error.to_string(),
                        _ => return Err(damaged(id, error.to_string())),
                    }
                }
                Err(elapsed) => reason = format!("{id}: {elapsed}"),
            }
            creator.service.sleep(pause.next(creator.service.random_u64())).await;
        }
        Err(CompactionEnd::Unavailable { reason })
    }
}

/// The GETs that bring all blocks of a step: neighbouring blocks of an object by one.
fn wanted_of(step: &[Run], sources: &Sources) -> Result<Vec<Wanted>, CompactionEnd> {
    let mut blocks: BTreeMap<(ObjectId, u64), (u32, u32)> = BTreeMap::new();
    for run in step {
        for range in &run.ranges {
            for (block, _, _) in sources.entries(run.bucket, range)? {
                blocks.insert((range.object, block.position), (block.length, block.crc));
            }
        }
    }
    let mut wanted: Vec<Wanted> = Vec::new();
    for ((object, position), (length, crc)) in blocks {
        let end = position + u64::from(length);
        let near = |last: &Wanted| {
            last.object == object
                && position.saturating_sub(last.span.end) <= GAP_BYTES_MAX
                && end - last.span.start <= GET_BYTES_MAX
        };
        match wanted.last_mut().filter(|last| near(last)) {
            Some(last) => {
                last.span.end = end;
                last.blocks.push((position, length, crc));
            }
            None => {
                wanted.push(Wanted { object, span: position..end, blocks: vec![(position, length, crc)] });
            }
        }
    }
    Ok(wanted)
}

/// Cuts blocks out of bytes that begin at `from` in their object, and checks each.
fn take(wanted: &Wanted, bytes: &Bytes, from: u64, blocks: &mut Blocks) -> Result<(), CompactionEnd> {
    for (position, length, crc) in &wanted.blocks {
        let start = position.checked_sub(from).and_then(|start| usize::try_from(start).ok());
        let span = start.and_then(|start| Some(start..start.checked_add(*length as usize)?));
        let Some(span) = span.filter(|span| span.end <= bytes.len()) else {
            return Err(damaged(wanted.object, "a block lies outside of what was read"));
        };
        let content = bytes.slice(span);
        if crc32c::crc32c(&content) != *crc {
            return Err(damaged(wanted.object, format!("block at {position} does not match its checksum")));
        }
        blocks.insert((wanted.object, *position), content);
    }
    Ok(())
}
