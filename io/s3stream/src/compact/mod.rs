//! Compaction: what lies in many objects is read once, written into few, and moved there by one command per step.
//!
//! Lives on: service runtime, one job at a time.
//! Owns: the pace. New objects take their numbers from the flusher's counter.     Talks to: the store, metadata through
//! [`crate::Commits`].
//! Invariants: I2 (batches keep bytes, offsets and epochs; what is not dense is not moved), P-1 (every block is checked before
//! it is copied), T-3, I6 (a new footer has the producers and epochs that a recovery would have found at its end), T-18 and
//! T-20 (a step moves exact runs or nothing; what was moved by the steps before stays moved), I14 (new objects go only once
//! the refusal of their rewrite is applied; old ones are metadata's to doom).
//!
//! A job is cut into steps of bounded bytes. A crash loses the step that was under way; its objects lie under the prefix of
//! an incarnation that will be fenced, where the sweep finds them, and the next plan is made from what is left.
mod pace;
mod runs;
mod source;
mod state;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use mink_object::ObjectStore;
use mink_rt::{Instant, fail_point};
use mink_types::{BucketEpoch, BucketId, ObjectId, ObjectKey, Offset};

use crate::commit::{CommitEnd, CommittedObject, CommittedRange, StreamRewrite};
use crate::entry::Entry;
use crate::flush::plan::{Piece, spread};
use crate::flush::{Flusher, FrozenStream};
use crate::format::{Part, encoded_bytes};
use crate::read::{ObjectRange, Reader};
use crate::wal::Wal;
use runs::Run;
use source::Sources;

/// What metadata knows of a bucket in front of an offset, in order; asked only where no source has a producer snapshot.
pub type RangesBefore = Arc<dyn Fn(BucketId, Offset) -> Vec<ObjectRange> + Send + Sync>;

/// What a compactor is made of.
#[derive(Debug)]
pub struct CompactionParts {
    /// Whose stream objects the new ones are.
    pub wal: Wal,
    pub reader: Reader,
    /// Where adopted WAL objects lie.
    pub wal_store: Arc<dyn ObjectStore>,
    /// Bytes that are moved per second on average; each is read and written once.
    pub bytes_per_second: u64,
    /// Bytes that a step holds in memory, but for a single range that is longer.
    pub window_bytes: u64,
    /// A run of so many bytes gets an object of its own.
    pub own_bytes: u64,
}

/// What to rewrite.
#[derive(Clone)]
pub struct CompactionJob {
    /// In the order of (bucket, offset).
    pub moves: Vec<CompactionMove>,
    pub before: RangesBefore,
}

impl fmt::Debug for CompactionJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CompactionJob").field("moves", &self.moves).finish_non_exhaustive()
    }
}

/// Neighbouring ranges of a bucket that become one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CompactionMove {
    pub bucket: BucketId,
    /// The epoch at which this node owns the bucket.
    pub epoch: BucketEpoch,
    /// In offset order, each beginning where the one before ends; none lost.
    pub ranges: Vec<ObjectRange>,
}

/// How a job ended. Steps before the last stay done, whatever it says.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub enum CompactionEnd {
    Done,
    /// Metadata refused a step: plan anew. `fenced`: never again.
    Refused {
        fenced: bool,
        reason: String,
    },
    /// The object is gone: plan anew on a newer view; if that names it too, it cannot be compacted.
    Missing {
        object: ObjectId,
    },
    /// The object cannot be compacted as it is; a person must look.
    Unreadable {
        object: ObjectId,
        reason: String,
    },
    /// The store does not answer: try again later.
    Unavailable {
        reason: String,
    },
    /// The metadata driver has stopped.
    CommitsStopped,
    /// Something else lies under a key of ours: stop.
    Foreign {
        object: ObjectId,
        what: String,
    },
}

/// What compaction has done since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CompactionStats {
    pub jobs: u64,
    /// Rewrites applied and refused.
    pub rewrites: u64,
    pub refused: u64,
    /// Stored bytes moved.
    pub bytes: u64,
    /// Objects read and written, each counted once per job.
    pub objects_read: u64,
    pub objects_written: u64,
}

#[derive(Debug, Default)]
struct Counts {
    jobs: AtomicU64,
    rewrites: AtomicU64,
    refused: AtomicU64,
    bytes: AtomicU64,
    objects_read: AtomicU64,
    objects_written: AtomicU64,
}

/// Rewrites objects in the name of one incarnation.
pub struct Compactor {
    parts: CompactionParts,
    flusher: Arc<Flusher>,
    counts: Counts,
    /// When the next step may begin.
    next_step: Mutex<Instant>,
}

impl fmt::Debug for Compactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compactor").field("counts", &self.counts).finish_non_exhaustive()
    }
}

/// A run with its entries, read and checked.
struct Loaded {
    run: Run,
    entries: Vec<Entry>,
    after: Option<crate::flush::book::BucketState>,
}

/// A new object, and what the rewrite says of it.
struct Made {
    frozen: FrozenStream,
    ranges: Vec<CommittedRange>,
}

impl Compactor {
    /// A compactor that has done nothing yet.
    pub fn new(parts: CompactionParts) -> Compactor {
        let flusher = parts.wal.flusher();
        Compactor { parts, flusher, counts: Counts::default(), next_step: Mutex::new(Instant::ZERO) }
    }

    /// What was done so far.
    pub fn stats(&self) -> CompactionStats {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        CompactionStats {
            jobs: read(&self.counts.jobs),
            rewrites: read(&self.counts.rewrites),
            refused: read(&self.counts.refused),
            bytes: read(&self.counts.bytes),
            objects_read: read(&self.counts.objects_read),
            objects_written: read(&self.counts.objects_written),
        }
    }

    /// Carries a job out.
    pub async fn run(&self, job: &CompactionJob) -> CompactionEnd {
        match self.try_run(job).await {
            Ok(()) => {
                self.counts.jobs.fetch_add(1, Ordering::Relaxed);
                CompactionEnd::Done
            }
            Err(end) => end,
        }
    }

    async fn try_run(&self, job: &CompactionJob) -> Result<(), CompactionEnd> {
        let sources = self.sources(&job.moves).await?;
        self.counts.objects_read.fetch_add(sources.len() as u64, Ordering::Relaxed);
        let runs = runs::runs(&self.flusher.creator.config, &job.moves, &sources)?;
        for step in runs::steps(runs, self.parts.window_bytes) {
            let bytes = step.iter().map(|run| run.bytes).sum();
            self.wait_for_turn(bytes).await;
            self.step(job, &sources, step).await?;
            self.counts.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Moves some runs: reads them, writes the new objects, commits.
    async fn step(
        &self,
        job: &CompactionJob,
        sources: &Sources,
        step: Vec<Run>,
    ) -> Result<(), CompactionEnd> {
        let replaced: BTreeSet<ObjectId> =
            step.iter().flat_map(|run| run.ranges.iter().map(|range| range.object)).collect();
        let blocks = self.blocks(&step, sources).await?;
        let mut loaded = Vec::with_capacity(step.len());
        for run in step {
            let entries = source::entries(&run, sources, &blocks)?;
            let after = self.state(job, &run, sources).await?;
            loaded.push(Loaded { run, entries, after });
        }
        let made = self.make(&loaded);
        // The payloads hold what they need of the blocks.
        drop((loaded, blocks));
        fail_point("compact.put.before");
        let objects = made.iter().map(|made| made.frozen.object.clone());
        if let Some((object, what)) = self.flusher.put(objects).await {
            return Err(CompactionEnd::Foreign { object, what });
        }
        self.commit(made, replaced).await
    }

    async fn commit(&self, made: Vec<Made>, replaced: BTreeSet<ObjectId>) -> Result<(), CompactionEnd> {
        let keys: Vec<ObjectKey> = made.iter().map(|made| made.frozen.object.key.clone()).collect();
        let objects = made.into_iter().map(|Made { frozen, ranges }| CommittedObject {
            id: frozen.object.id,
            length: frozen.object.payload.len(),
            footer_length: frozen.footer_length,
            checksum: frozen.checksum,
            ranges,
        });
        let rewrite = StreamRewrite { replaced: replaced.into_iter().collect(), objects: objects.collect() };
        fail_point("compact.commit.before");
        match self.flusher.commits.rewrite(rewrite).await {
            Err(_) => Err(CompactionEnd::CommitsStopped),
            Ok(CommitEnd::Applied) => {
                fail_point("compact.commit.after");
                self.counts.rewrites.fetch_add(1, Ordering::Relaxed);
                self.counts.objects_written.fetch_add(keys.len() as u64, Ordering::Relaxed);
                Ok(())
            }
            Ok(CommitEnd::Refused { fenced, reason }) => {
                self.counts.refused.fetch_add(1, Ordering::Relaxed);
                self.flusher.discard(keys).await;
                Err(CompactionEnd::Refused { fenced, reason })
            }
        }
    }

    /// Builds the objects of a step. Nothing waits in here, so the plan may borrow the entries.
    fn make(&self, loaded: &[Loaded]) -> Vec<Made> {
        let config = &self.flusher.creator.config;
        let epochs: BTreeMap<BucketId, BucketEpoch> =
            loaded.iter().map(|loaded| (loaded.run.bucket, loaded.run.epoch)).collect();
        let pieces = loaded.iter().map(|loaded| {
            let (run, entries) = (&loaded.run, &loaded.entries);
            let state = loaded.after.clone().filter(|state| {
                let state_bytes = (state.producers.len() + state.epochs.len() * 12) as u64;
                encoded_bytes(entries.len(), run.bytes + state_bytes) <= config.object_bytes_max
            });
            Piece {
                bucket: run.bucket,
                entries: entries.iter().collect(),
                after: state,
                bytes: run.bytes,
                alone: run.bytes >= self.parts.own_bytes,
            }
        });
        let made = spread(config, pieces).into_iter().map(|pieces| {
            let ranges = pieces.iter().filter_map(|piece| range(piece, &epochs)).collect();
            Made { frozen: self.flusher.frozen(joined(&pieces), None), ranges }
        });
        made.collect()
    }
}

/// Pieces as an object's parts: a bucket has one, also when several runs of it share the object.
fn joined<'a>(pieces: &[Piece<'a>]) -> BTreeMap<BucketId, Part<'a>> {
    let mut parts: BTreeMap<BucketId, Part<'a>> = BTreeMap::new();
    for piece in pieces {
        let Part { entries, producers, epochs } = piece.part();
        let part = parts.entry(piece.bucket).or_default();
        part.entries.extend(entries);
        (part.producers, part.epochs) = (producers, epochs);
    }
    parts
}

/// One range for all of a piece, whatever epochs its batches are from.
fn range(piece: &Piece<'_>, epochs: &BTreeMap<BucketId, BucketEpoch>) -> Option<CommittedRange> {
    let (first, last) = (piece.entries.first()?, piece.entries.last()?);
    Some(CommittedRange {
        bucket: piece.bucket,
        epoch: *epochs.get(&piece.bucket)?,
        start: first.base_offset,
        end: last.end(),
        max_timestamp: piece.entries.iter().map(|entry| entry.max_timestamp).max()?,
        last_commit_time: piece.entries.iter().map(|entry| entry.commit_time).max()?,
        bytes: piece.bytes,
    })
}
