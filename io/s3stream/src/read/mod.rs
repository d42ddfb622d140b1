//! Reading committed data: footer first (cached), then one ranged GET of the blocks that are wanted.
//!
//! Lives on: service runtime; one reader per node, clones are handles of it.
//! Owns: the cache of footers. The block cache and the joining of equal reads come before `Reader::blocks`.
//! Invariants: I2, P-1: no byte is given whose block's checksum does not match; K-14, P-18: the first batch is the one that
//! holds the offset asked for, whole; P-14: an object that is gone fails the reads of its own ranges only.
mod cache;
mod recover;
#[cfg(test)]
mod tests;

pub use recover::BucketRecovery;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mink_object::{ObjectStore, Span};
use mink_rt::Service;
use mink_types::{
    BucketEpoch, BucketId, ClusterName, CommitTime, ObjectId, ObjectKey, Offset, OffsetRange, Timestamp,
};

use crate::entry::{EntryKind, IndexEntry};
use crate::error::{Error, ErrorKind};
use crate::format::{Block, Footer, FooterBucket, TAIL_BYTES, split_end};
use cache::FooterCache;

/// Objects that one read goes on to while it has room: small WAL objects would else answer a fetch in crumbs.
const OBJECTS_PER_READ_MAX: usize = 8;
/// Bytes of one ranged GET at most, but for a single longer block.
const GET_BYTES_MAX: u64 = 16 << 20;

/// What a reader is made of.
pub struct ReaderParts {
    pub service: Service,
    /// Where WAL objects lie.
    pub wal_store: Arc<dyn ObjectStore>,
    /// Where stream objects lie.
    pub stream_store: Arc<dyn ObjectStore>,
    pub cluster: ClusterName,
    /// Memory for footers, in bytes.
    pub footer_cache_bytes: usize,
    /// A GET that takes longer is an error of kind `Retry`.
    pub get_timeout: Duration,
}

impl fmt::Debug for ReaderParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReaderParts")
            .field("footer_cache_bytes", &self.footer_cache_bytes)
            .finish_non_exhaustive()
    }
}

/// One range of a bucket as metadata knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ObjectRange {
    pub object: ObjectId,
    pub range: OffsetRange,
    pub max_timestamp: Timestamp,
    /// Of the whole object; 0 says that it is lost.
    pub length: u64,
    pub footer_length: u32,
    /// CRC32C of the footer.
    pub checksum: u32,
}

/// What to read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadRequest {
    pub bucket: BucketId,
    /// Ranges in offset order, the first of which holds `from`; more than are needed do no harm.
    pub objects: Vec<ObjectRange>,
    pub from: Offset,
    /// The answer stops before it passes this, but has at least one batch.
    pub bytes_max: usize,
}

/// Batches in offset order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ReadAnswer {
    pub batches: Vec<ReadBatch>,
    /// Bytes of the batches.
    pub bytes: usize,
}

/// One entry with its bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadBatch {
    pub base_offset: Offset,
    pub count: u32,
    pub kind: EntryKind,
    pub epoch: BucketEpoch,
    pub commit_time: CommitTime,
    pub max_timestamp: Timestamp,
    /// A slice of its block: holding it holds the block.
    pub bytes: Bytes,
}

impl ReadAnswer {
    /// The offset after the last batch.
    pub fn next(&self) -> Option<Offset> {
        self.batches.last().map(|batch| batch.base_offset.plus(u64::from(batch.count)))
    }
}

/// Reads committed data.
#[derive(Clone)]
pub struct Reader {
    inner: Arc<Inner>,
}

struct Inner {
    parts: ReaderParts,
    footers: FooterCache,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("footer_bytes", &self.footer_cache_bytes()).finish_non_exhaustive()
    }
}

impl Reader {
    /// A reader with an empty cache.
    pub fn new(parts: ReaderParts) -> Reader {
        let footers = FooterCache::new(parts.footer_cache_bytes);
        Reader { inner: Arc::new(Inner { parts, footers }) }
    }

    /// Memory that footers take now, in bytes.
    pub fn footer_cache_bytes(&self) -> usize {
        self.inner.footers.bytes()
    }

    /// Whole batches from the one that holds `from`.
    ///
    /// # Errors
    /// [`ErrorKind::Missing`]: plan again on a newer view. [`ErrorKind::Lost`], [`ErrorKind::Corrupt`]: this range cannot be
    /// read. [`ErrorKind::Retry`]. An error behind the first batch ends the answer instead.
    pub async fn read(&self, request: &ReadRequest) -> Result<ReadAnswer, Error> {
        let mut answer = ReadAnswer::default();
        let mut from = request.from;
        let objects = request.objects.iter().skip_while(|object| object.range.end <= request.from);
        for object in objects.take(OBJECTS_PER_READ_MAX) {
            if object.range.start > from {
                // The caller's ranges do not meet: never jump over a hole silently (I2).
                break;
            }
            let left = request.bytes_max.saturating_sub(answer.bytes);
            if !answer.batches.is_empty() && left == 0 {
                break;
            }
            match self.read_object(request.bucket, object, from, left, answer.batches.is_empty()).await {
                Ok(batches) if batches.is_empty() => break,
                Ok(batches) => {
                    answer.bytes += batches.iter().map(|batch| batch.bytes.len()).sum::<usize>();
                    answer.batches.extend(batches);
                    from = answer.next().unwrap_or(from);
                    if from < object.range.end {
                        break;
                    }
                }
                Err(error) if answer.batches.is_empty() => return Err(error),
                Err(_) => break,
            }
        }
        if answer.batches.is_empty() {
            let what =
                format!("{} is asked from {} of ranges that do not hold it", request.bucket, request.from);
            return Err(Error::new(ErrorKind::Misuse, what));
        }
        Ok(answer)
    }

    /// The first batch at or after `from` that may hold a record of `target` or later, by record time: its base offset.
    /// Whoever needs the record itself reads that batch. None if there is no such batch in these ranges.
    pub async fn find_by_time(
        &self,
        bucket: BucketId,
        objects: &[ObjectRange],
        from: Offset,
        target: Timestamp,
    ) -> Result<Option<Offset>, Error> {
        let late = |object: &&ObjectRange| object.range.end > from && object.max_timestamp >= target;
        for object in objects.iter().filter(late) {
            let footer = self.footer(object).await?;
            let part = part_of(&footer, bucket, object)?;
            let found = entries_in(part, object.range).map(|(_, entry)| entry).find(|entry| {
                entry.kind == EntryKind::Batch && entry.end() > from && entry.max_timestamp >= target
            });
            if let Some(entry) = found {
                return Ok(Some(entry.base_offset));
            }
        }
        Ok(None)
    }

    async fn read_object(
        &self,
        bucket: BucketId,
        object: &ObjectRange,
        from: Offset,
        bytes_max: usize,
        at_least_one: bool,
    ) -> Result<Vec<ReadBatch>, Error> {
        let footer = self.footer(object).await?;
        let part = part_of(&footer, bucket, object)?;
        let mut wanted: Vec<(&Block, Vec<(usize, &IndexEntry)>)> = Vec::new();
        let (mut bytes, mut full, mut must) = (0usize, false, at_least_one);
        let before = |block: &Block| block.entries.last().is_some_and(|last| last.end() < from);
        let first = part.blocks.partition_point(before);
        for block in part.blocks.iter().skip(first) {
            let mut position = 0;
            let mut picked = Vec::new();
            for entry in &block.entries {
                let length = entry.length as usize;
                let inside =
                    lies_in(entry, object.range) && (entry.end() > from || entry.base_offset >= from);
                if inside && !full {
                    full = !must && bytes + length > bytes_max;
                    if !full {
                        bytes += length;
                        must = must && entry.kind != EntryKind::Batch;
                        picked.push((position, entry));
                    }
                }
                position += length;
            }
            let span = wanted.first().map_or(0, |(first, _)| block.end().saturating_sub(first.position));
            if span > GET_BYTES_MAX {
                break;
            }
            if !picked.is_empty() {
                wanted.push((block, picked));
            }
            if full {
                break;
            }
        }
        self.blocks(object.object, &wanted).await
    }

    /// One ranged GET over neighbouring blocks, each checked before anything of it is given.
    async fn blocks(
        &self,
        id: ObjectId,
        wanted: &[(&Block, Vec<(usize, &IndexEntry)>)],
    ) -> Result<Vec<ReadBatch>, Error> {
        let (Some((first, _)), Some((last, _))) = (wanted.first(), wanted.last()) else {
            return Ok(Vec::new());
        };
        let bytes = self.get(id, Span::Range(first.position..last.end())).await?;
        let mut batches = Vec::new();
        for (block, entries) in wanted {
            let outside = || Error::corrupt(id, "a block lies outside of what was read");
            let start = usize::try_from(block.position - first.position).map_err(|_| outside())?;
            let end = start + block.length as usize;
            if end > bytes.len() {
                return Err(outside());
            }
            let content = bytes.slice(start..end);
            let found = crc32c::crc32c(&content);
            if found != block.crc {
                let what = format!(
                    "block at {} has checksum {found:08x}, expected {:08x}",
                    block.position, block.crc
                );
                return Err(Error::corrupt(id, what));
            }
            // The footer's decoder made sure that the entries' lengths sum up to the block's.
            batches.extend(entries.iter().map(|(at, entry)| ReadBatch {
                base_offset: entry.base_offset,
                count: entry.count,
                kind: entry.kind,
                epoch: block.epoch,
                commit_time: entry.commit_time,
                max_timestamp: entry.max_timestamp,
                bytes: content.slice(*at..*at + entry.length as usize),
            }));
        }
        Ok(batches)
    }

    /// The footer of an object, from the cache or by one GET.
    async fn footer(&self, object: &ObjectRange) -> Result<Arc<Footer>, Error> {
        let id = object.object;
        if object.length == 0 {
            return Err(Error::new(ErrorKind::Lost { object: id }, format!("{id} is lost")));
        }
        if let Some(footer) = self.inner.footers.get(&id) {
            return Ok(footer);
        }
        let end_bytes = u64::from(object.footer_length) + TAIL_BYTES as u64;
        let Some(start) = object.length.checked_sub(end_bytes) else {
            return Err(Error::corrupt(id, "metadata gives it a footer longer than itself"));
        };
        let bytes = self.get(id, Span::Range(start..object.length)).await?;
        let (tail, footer) = split_end(&bytes, object.length).map_err(|error| Error::corrupt(id, error))?;
        let footer = match footer {
            Some(footer) if tail.footer_crc == object.checksum => Arc::new(footer),
            _ => return Err(Error::corrupt(id, "its footer is not the one that was committed")),
        };
        self.inner.footers.put(id, Arc::clone(&footer));
        Ok(footer)
    }

    async fn get(&self, id: ObjectId, span: Span) -> Result<Bytes, Error> {
        let parts = &self.inner.parts;
        let store = match id {
            ObjectId::Wal { .. } => &parts.wal_store,
            ObjectId::Stream { .. } => &parts.stream_store,
        };
        let key = ObjectKey::object(&parts.cluster, id);
        match parts.service.timeout(parts.get_timeout, store.get(&key, span)).await {
            Err(elapsed) => Err(Error::new(ErrorKind::Retry, format!("{id}: {elapsed}"))),
            Ok(Err(error)) => {
                self.inner.footers.forget(&id);
                Err(Error::read(id, error))
            }
            Ok(Ok(bytes)) => Ok(bytes),
        }
    }
}

/// Whether an entry belongs to a range: a decision at its end belongs to it, since it was made before the next record.
fn lies_in(entry: &IndexEntry, range: OffsetRange) -> bool {
    range.start <= entry.base_offset && entry.end() <= range.end
}

fn entries_in(
    part: &FooterBucket,
    range: OffsetRange,
) -> impl Iterator<Item = (BucketEpoch, &IndexEntry)> + '_ {
    part.entries().filter(move |(_, entry)| lies_in(entry, range))
}

fn part_of<'a>(
    footer: &'a Footer,
    bucket: BucketId,
    object: &ObjectRange,
) -> Result<&'a FooterBucket, Error> {
    let part = footer.bucket(&bucket);
    part.ok_or_else(|| {
        Error::corrupt(object.object, format!("it was committed for {bucket} but holds none of it"))
    })
}
