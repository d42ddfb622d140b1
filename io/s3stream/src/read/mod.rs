//! Reading committed data: footer first, then the blocks that are wanted, out of a cache that all readers share.
//!
//! Lives on: service runtime; one reader per node, clones are handles of it.
//! Owns: footers and blocks that were read, GETs in flight, the places at which readers go on.
//! Invariants: I2, P-1: no byte is given whose block's checksum does not match; K-14, P-18: the first batch is the one that
//! holds the offset asked for, whole; P-14: an object that is gone fails the reads of its own ranges only; P-17, I20: memory
//! is a function of the bounds in [`ReaderParts`].
//!
//! [`pick`](plan::pick) says which batches answer a read. Their blocks are found in the [cache](blocks), in flight, or are
//! sent for: one GET brings a run of blocks ([`plan`]), which is long where readers go on in sequence ([`streams`]) and
//! short where they jump about. Who reads in sequence is [read ahead](ahead) for.
mod ahead;
mod blocks;
mod damage;
mod extent;
mod get;
mod held;
mod index;
mod order;
mod plan;
mod recover;
mod stats;
mod step;
mod streams;
#[cfg(test)]
mod tests;

pub use recover::{BucketRecovery, Unreadable};
pub use stats::ReadStats;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use bytes::Bytes;
use mink_object::ObjectStore;
use mink_rt::Service;
use mink_types::{BucketEpoch, BucketId, ClusterName, CommitTime, ObjectId, Offset, OffsetRange, Timestamp};

use crate::entry::{EntryKind, IndexEntry};
use crate::error::{Error, ErrorKind};
use crate::format::{Footer, FooterBucket};
use blocks::{BlockCache, tile_bytes};
use damage::Damage;
use get::Hint;
use index::FooterCache;
use plan::lies_in;
use stats::Counts;
use streams::Streams;

/// Objects that one read goes on to while it has room: small WAL objects would else answer a fetch in crumbs.
const OBJECTS_PER_READ_MAX: usize = 8;

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
    /// Memory for blocks, in bytes: a quarter of it is for those that readers hold when they have left the cache. GETs are up
    /// to a quarter of it long, and 16 MiB at most.
    pub block_cache_bytes: usize,
    /// A GET that takes longer is an error of kind `Retry`.
    pub get_timeout: Duration,
}

impl fmt::Debug for ReaderParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReaderParts")
            .field("footer_cache_bytes", &self.footer_cache_bytes)
            .field("block_cache_bytes", &self.block_cache_bytes)
            .finish_non_exhaustive()
    }
}

/// One range of a bucket as metadata knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ObjectRange {
    pub object: ObjectId,
    pub range: OffsetRange,
    pub max_timestamp: Timestamp,
    /// Of the range's batches: how much of the object concerns its readers.
    pub bytes: u64,
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
    /// A slice of the GET that brought it: holding it holds all of that (see [`ReadStats::lingering_bytes`]).
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
    /// Length of the parts of an object that a GET brings whole at most.
    tile_bytes: u64,
    footers: Arc<FooterCache>,
    blocks: Arc<BlockCache>,
    streams: Arc<Streams>,
    counts: Arc<Counts>,
    damage: Damage,
    ahead_tasks: AtomicUsize,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("stats", &self.stats()).finish_non_exhaustive()
    }
}

impl Reader {
    /// A reader with empty caches.
    pub fn new(parts: ReaderParts) -> Reader {
        let counts = Arc::<Counts>::default();
        let tile_bytes = tile_bytes(parts.block_cache_bytes);
        let inner = Inner {
            tile_bytes,
            footers: Arc::new(FooterCache::new(parts.footer_cache_bytes, tile_bytes)),
            blocks: Arc::new(BlockCache::new(parts.block_cache_bytes, Arc::clone(&counts))),
            streams: Arc::default(),
            counts,
            damage: Damage::default(),
            ahead_tasks: AtomicUsize::new(0),
            parts,
        };
        Reader { inner: Arc::new(inner) }
    }

    /// What has been counted so far, and the levels of now.
    pub fn stats(&self) -> ReadStats {
        let Inner { footers, blocks, counts, damage, .. } = self.inner.as_ref();
        ReadStats {
            footer_bytes: footers.bytes() as u64,
            kept_bytes: blocks.kept_bytes() as u64,
            lingering_bytes: blocks.lingering_bytes() as u64,
            in_flight_bytes: blocks.in_flight_bytes() as u64,
            damaged_objects: damage.len() as u64,
            ..counts.read()
        }
    }

    /// Whole batches from the one that holds `from`.
    ///
    /// # Errors
    /// [`ErrorKind::Missing`]: plan again on a newer view. [`ErrorKind::Lost`], [`ErrorKind::Corrupt`]: this range cannot be
    /// read. [`ErrorKind::Retry`]. An error behind the first batch ends the answer instead.
    pub async fn read(&self, request: &ReadRequest) -> Result<ReadAnswer, Error> {
        let inner = &self.inner;
        let mark = inner.streams.begin(request.bucket, request.from, inner.parts.service.now());
        let mut step = step::Step::new(inner, request, &mark);
        step.prepare();
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
            match step.read_object(object, from, left, answer.batches.is_empty()).await {
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
        step.finish(from, answer.bytes as u64);
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

    /// The footer of an object, and nothing else of it.
    async fn footer(&self, object: &ObjectRange) -> Result<Arc<Footer>, Error> {
        let index = self.inner.index(object, Hint::FOOTER).await?;
        Ok(Arc::clone(&index.footer))
    }
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
