//! The shard's state as a whole, and what its verbs share.
//!
//! Lives on: one per core; it cannot leave it. Changed by the pump alone.
//! Owns: everything a core holds of its buckets.
use crate::append::OpenChunk;
use crate::arena::Arena;
use crate::bucket::{Bucket, Opening};
use crate::durable::{ChunkDone, Flight};
use crate::fetch::Fetch;
use crate::locate::Search;
use crate::rest::Resting;
use crate::waiters::Waiters;
use crate::{
    BucketLevel, ChunkSink, ObjectFind, ObjectReadError, ObjectReads, ShardConfig, ShardParts, ShardStats,
    View,
};
use bytes::Bytes;
use futures::stream::{self, StreamExt as _};
use indexmap::IndexMap;
use mink_log::CommitClock;
use mink_router::{AppendError, ReadError, Reserved, Sender};
use mink_rt::{Core, Instant, Service, mutant};
use mink_types::{BucketId, LogIndex, Offset};
use s3stream::{ObjectRange, ReadRequest};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

/// Objects named in one read: as many as a reader goes on to.
const OBJECTS_PER_READ_MAX: usize = 8;
/// Stored bytes that a read names beyond those that it may take.
const READ_AHEAD_BYTES: u64 = 16 << 20;
/// Object reads of one fetch that are sent at a time.
const READS_AT_ONCE: usize = 8;

/// One question to the objects that waits for its answer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Ticket(pub(crate) u64);

/// What comes back from the service runtime, into a place that was kept for it.
#[derive(Debug)]
pub(crate) struct IoDone {
    pub(crate) ticket: Ticket,
    /// None when the task ended before it had a result.
    pub(crate) result: Option<IoResult>,
}

#[derive(Debug)]
pub(crate) enum IoResult {
    /// By the place of the read in its fetch.
    Reads(Vec<(usize, Result<Vec<Bytes>, ObjectReadError>)>),
    Found(Result<Option<Bytes>, ObjectReadError>),
}

/// Keeps a place for a result; dropped without one it says so, so that nobody waits for a task that died.
struct IoPlace {
    ticket: Ticket,
    place: Option<Reserved<IoDone>>,
}

impl IoPlace {
    fn send(mut self, result: IoResult) {
        self.tell(Some(result));
    }

    fn tell(&mut self, result: Option<IoResult>) {
        if let Some(place) = self.place.take() {
            place.send(IoDone { ticket: self.ticket, result });
        }
    }
}

impl Drop for IoPlace {
    fn drop(&mut self) {
        self.tell(None);
    }
}

/// A batch's place in the order in which batches may leave the tail.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Aging {
    pub(crate) bucket: BucketId,
    pub(crate) opening: Opening,
    pub(crate) end: Offset,
}

#[derive(Debug)]
pub(crate) struct Shard {
    pub(crate) core: Core,
    pub(crate) service: Service,
    pub(crate) config: ShardConfig,
    pub(crate) sink: Box<dyn ChunkSink>,
    pub(crate) objects: Arc<dyn ObjectReads>,

    pub(crate) view: Option<View>,
    /// Reads are served before this moment.
    pub(crate) lease_until: Instant,
    /// This process was fenced: nothing is open and nothing opens.
    pub(crate) fenced: bool,

    /// Side by side: a block for each, made in the midst of other things, would share its pages with what comes and goes.
    pub(crate) buckets: IndexMap<BucketId, Bucket>,
    pub(crate) openings: u64,
    /// Buckets whose log goes beyond what the view has as committed.
    pub(crate) uncommitted: BTreeSet<BucketId>,
    pub(crate) arena: Arena,
    /// All batches of all tails, oldest first.
    pub(crate) aging: VecDeque<Aging>,
    /// Batches that left their tail before their turn, and whose places in `aging` may still be there.
    pub(crate) left_early: usize,
    /// Buckets whose data is all committed, by when that was seen; see `rest`.
    pub(crate) resting: VecDeque<Resting>,

    pub(crate) chunk: OpenChunk,
    pub(crate) flights: VecDeque<Flight>,
    pub(crate) chunks_told: Sender<ChunkDone>,
    /// Kept for the chunk of this turn; without it no append is taken.
    pub(crate) chunk_place: Option<Reserved<ChunkDone>>,

    pub(crate) fetches: BTreeMap<Ticket, Fetch>,
    /// Bytes that the fetches in flight may bring.
    pub(crate) fetching_bytes: u64,
    pub(crate) searches: BTreeMap<Ticket, Search>,
    pub(crate) tickets: u64,
    pub(crate) io_told: Sender<IoDone>,
    /// Kept for the next request that needs an object; without it no request is taken.
    pub(crate) io_place: Option<Reserved<IoDone>>,

    pub(crate) waiters: Waiters,
    pub(crate) clock: CommitClock,
    /// When the appends of this turn began to be taken.
    pub(crate) turn_began: Instant,
    pub(crate) stats: ShardStats,
    _on_its_core: PhantomData<*const ()>,
}

impl Shard {
    pub(crate) fn new(
        core: Core,
        config: ShardConfig,
        parts: ShardParts,
        chunks_told: Sender<ChunkDone>,
        io_told: Sender<IoDone>,
    ) -> Shard {
        let ShardParts { sink, objects, service } = parts;
        let mut clock = CommitClock::default();
        // Later readings are judged by this one: a wall clock that jumps before the first append is noticed, too.
        clock.read(core.wall().as_millis(), Duration::from_nanos(core.now().as_nanos()));
        Shard {
            core,
            service,
            config,
            sink,
            objects,
            view: None,
            lease_until: Instant::ZERO,
            fenced: false,
            buckets: IndexMap::new(),
            openings: 0,
            uncommitted: BTreeSet::new(),
            arena: Arena::default(),
            aging: VecDeque::new(),
            left_early: 0,
            resting: VecDeque::new(),
            chunk: OpenChunk::default(),
            flights: VecDeque::new(),
            chunks_told,
            chunk_place: None,
            fetches: BTreeMap::new(),
            fetching_bytes: 0,
            searches: BTreeMap::new(),
            tickets: 0,
            io_told,
            io_place: None,
            waiters: Waiters::new(config.watched_max),
            clock,
            turn_began: Instant::ZERO,
            stats: ShardStats::default(),
            _on_its_core: PhantomData,
        }
    }

    /// Whether the view says that this process serves the bucket, though it is not open here: it is about to be.
    fn is_coming(&self, bucket: BucketId) -> bool {
        let owner = |view: &View| view.state.bucket(&bucket).and_then(|known| known.owner) == Some(view.me);
        !self.fenced && self.view.as_ref().is_some_and(owner)
    }

    /// Why an append to a bucket that is not open here is refused.
    pub(crate) fn append_absent(&self, bucket: BucketId) -> AppendError {
        if self.is_coming(bucket) {
            AppendError::Opening { bucket }
        } else {
            AppendError::NotOwner { bucket }
        }
    }

    /// The bucket, for a reader who believes in `leader_epoch`; or why it may not read (I5).
    pub(crate) fn readable(&mut self, id: BucketId, leader_epoch: Option<i32>) -> Result<&Bucket, ReadError> {
        if self.core.now() >= self.lease_until && !self.fenced && !mutant("lease-ignored") {
            return Err(ReadError::LeaseExpired);
        }
        let coming = self.is_coming(id);
        let view = self.view.as_ref();
        let Some(bucket) = self.buckets.get_mut(&id) else {
            return Err(if coming {
                ReadError::Opening { bucket: id }
            } else {
                ReadError::NotOwner { bucket: id }
            });
        };
        let current = bucket.tablet.epoch();
        if let Some(found) = leader_epoch.filter(|found| *found != current.leader_epoch()) {
            return Err(ReadError::EpochDiffers { bucket: id, current, found });
        }
        if let Some(known) = view.and_then(|view| view.state.bucket(&id)) {
            bucket.tablet.start_at(known.start);
        }
        Ok(bucket)
    }

    /// Where the committed batches of a bucket lie from `from` on: up to `bytes_max` bytes of them, and what comes next, which
    /// may be read ahead.
    pub(crate) fn object_ranges(&self, bucket: BucketId, from: Offset, bytes_max: u64) -> Vec<ObjectRange> {
        let mut bytes = 0_u64;
        let mut out = Vec::new();
        for (range, stored) in self.all_object_ranges(bucket, from) {
            // Of the first one only the end may be left.
            bytes = bytes.saturating_add(if out.is_empty() { 0 } else { stored });
            out.push(range);
            if bytes >= bytes_max.saturating_add(READ_AHEAD_BYTES) || out.len() >= OBJECTS_PER_READ_MAX {
                break;
            }
        }
        out
    }

    /// All ranges of a bucket from the one that holds `from`, with their stored bytes.
    pub(crate) fn all_object_ranges(
        &self,
        bucket: BucketId,
        from: Offset,
    ) -> impl Iterator<Item = (ObjectRange, u64)> + '_ {
        let state = self.view.as_ref().map(|view| &view.state);
        let known = state.and_then(|state| state.bucket(&bucket));
        let ranges = known.into_iter().flat_map(move |known| known.ranges_from(from));
        ranges.filter_map(move |(range, place)| {
            let object = state?.object(&place.object)?;
            let range = ObjectRange {
                object: place.object,
                range,
                max_timestamp: place.max_timestamp,
                bytes: place.bytes,
                length: object.length,
                footer_length: object.footer_length,
                checksum: object.checksum,
            };
            Some((range, place.bytes))
        })
    }

    pub(crate) fn ticket(&mut self) -> Ticket {
        self.tickets += 1;
        Ticket(self.tickets)
    }

    /// Keeps a place for an answer from the objects, if there is one and memory for it; the pump takes no request without (I20).
    pub(crate) fn keep_io_place(&mut self) -> bool {
        if self.fetching_bytes >= self.config.object_read_bytes_max.max(1) {
            return false;
        }
        if self.io_place.is_none() {
            self.io_place = self.io_told.try_reserve();
        }
        self.io_place.is_some()
    }

    /// The row of the view that reads are planned on.
    fn planned(&self) -> LogIndex {
        self.view.as_ref().map_or(LogIndex(0), |view| view.state.witness().index)
    }

    /// Reads objects on the service runtime.
    pub(crate) fn read_objects(&mut self, ticket: Ticket, reads: Vec<(usize, ReadRequest)>) {
        let Some(place) = self.io_place(ticket) else {
            return;
        };
        let (objects, planned) = (Arc::clone(&self.objects), self.planned());
        let task = self.service.spawn("shard-read", async move {
            let reads = reads.into_iter().map(|(at, read)| {
                let read = objects.read(planned, read);
                async move { (at, read.await) }
            });
            place.send(IoResult::Reads(stream::iter(reads).buffered(READS_AT_ONCE).collect().await));
        });
        // Its end is told through the place, whatever happens to it.
        drop(task);
    }

    /// Searches objects on the service runtime.
    pub(crate) fn search_objects(&mut self, ticket: Ticket, find: ObjectFind) {
        let Some(place) = self.io_place(ticket) else {
            return;
        };
        let (objects, planned) = (Arc::clone(&self.objects), self.planned());
        let task = self.service.spawn("shard-search", async move {
            place.send(IoResult::Found(objects.find(planned, find).await));
        });
        drop(task);
    }

    /// The place that was kept for this question. Without one its asker is told at once that it is lost.
    fn io_place(&mut self, ticket: Ticket) -> Option<IoPlace> {
        let place = self.io_place.take().or_else(|| self.io_told.try_reserve());
        debug_assert!(place.is_some(), "the pump keeps a place before it takes a request");
        if place.is_none() {
            self.io_done(IoDone { ticket, result: None });
            return None;
        }
        Some(IoPlace { ticket, place })
    }

    /// An answer came back from the service runtime.
    pub(crate) fn io_done(&mut self, done: IoDone) {
        if let Some(fetch) = self.fetches.remove(&done.ticket) {
            self.fetch_done(fetch, done.result);
        } else if let Some(search) = self.searches.remove(&done.ticket) {
            self.search_done(search, done.result);
        }
    }

    pub(crate) fn levels(&self) -> Vec<BucketLevel> {
        let levels = self.buckets.iter().map(|(bucket, open)| BucketLevel {
            bucket: *bucket,
            epoch: open.tablet.epoch(),
            log_start: open.tablet.log_start(),
            high_watermark: open.tablet.high_watermark(),
            end: open.tablet.next_offset(),
        });
        let mut levels: Vec<BucketLevel> = levels.collect();
        levels.sort_unstable_by_key(|level| level.bucket);
        levels
    }

    /// Counts a failed read of an object and logs the 1st, 2nd, 4th, 8th of its kind: readers of a damaged range come again for ever.
    /// Damage is an alarm (P-14); a store that does not answer, or a view that is behind, is not.
    pub(crate) fn object_failed(&mut self, from: Offset, error: &ReadError) {
        let alarm = matches!(error, ReadError::Damaged { .. });
        let count = if alarm { &mut self.stats.damaged_reads } else { &mut self.stats.failed_reads };
        *count += 1;
        let times = *count;
        if !times.is_power_of_two() {
            return;
        }
        if alarm {
            tracing::error!(%from, %error, times, "acknowledged data cannot be read; a person must look");
        } else {
            tracing::warn!(%from, %error, times, "object read failed");
        }
    }

    /// The counters, with the levels of now.
    pub(crate) fn stats(&mut self) -> ShardStats {
        ShardStats {
            buckets: self.buckets.len() as u64,
            producers: self.buckets.values().map(|bucket| bucket.tablet.producers() as u64).sum(),
            tail_batches: self.buckets.values().map(|bucket| bucket.tail().len() as u64).sum(),
            tail_places: self.aging.len() as u64,
            copied_bytes: self.arena.copied_bytes(),
            tail_bytes: self.arena.tail_bytes(),
            arena_bytes: self.arena.held_bytes(),
            chunks_in_flight: self.flights.len() as u64,
            appends_in_flight: self.buckets.values().map(|bucket| bucket.pending() as u64).sum(),
            watchers: self.waiters.len() as u64,
            object_reads_in_flight: (self.fetches.len() + self.searches.len()) as u64,
            fenced: self.fenced,
            ..self.stats
        }
    }
}
