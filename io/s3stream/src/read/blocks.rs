//! The block cache: extents that were fetched, those that are being fetched, and the room for both.
//!
//! Lives on: service runtime; shared by all readers of a node, hence the lock (held for a look-up, never across an await).
//! Owns: which extents are kept, which GET brings which block, the bytes of GETs in flight.
//! Invariants: I20: what is kept and what is in flight stay within three quarters of the bound. A slice of an extent that has
//! left pins it: such lingering bytes are told, make the cache smaller once they pass the last quarter, and batches are copied
//! out from there on, so that a slow reader holds its answer only. A block is in one extent or one flight at most. A failed
//! GET is told to all who wait for it and leaves nothing.
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures::channel::oneshot;
use futures::future::FutureExt as _;
use mink_types::ObjectId;

use super::extent::{Extent, Outline};
use super::held::Held;
use super::index::Flight;
use super::order::Order;
use super::stats::{Count, Counts};
use crate::error::Error;

/// Bytes of one GET at most, but for a single longer block.
const GET_BYTES_MAX: u64 = 16 << 20;

/// How the memory of the block cache is split.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Room {
    /// Kept and in flight.
    pub(super) kept: usize,
    /// Held by readers beside it before batches are copied.
    pub(super) lingering: usize,
}

impl Room {
    pub(super) const fn of(bytes_max: usize) -> Room {
        let lingering = bytes_max / 4;
        Room { kept: bytes_max - lingering, lingering }
    }
}

/// Length of the tiles to which GETs keep: two and a half of them fit into what is kept, so that a reader can have one behind
/// it, one under it and half of one ahead before the next is sent for.
pub(super) const fn tile_bytes(block_cache_bytes: usize) -> u64 {
    let share = Room::of(block_cache_bytes).kept as u64 / 5 * 2;
    if share > GET_BYTES_MAX {
        GET_BYTES_MAX
    } else if share == 0 {
        1
    } else {
        share
    }
}

type Key = (ObjectId, u64);

/// Where a block is to be had.
#[derive(Clone, Debug)]
pub(super) enum Source {
    Here(Arc<Extent>),
    Flying(Flight<Arc<Extent>>),
}

#[derive(Debug)]
struct Flying {
    end: u64,
    flight: Flight<Arc<Extent>>,
}

#[derive(Debug)]
pub(super) struct BlockCache {
    room: Room,
    held: Arc<Held>,
    counts: Arc<Counts>,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    extents: BTreeMap<Key, Arc<Extent>>,
    order: Order<Key>,
    flying: BTreeMap<Key, Flying>,
    in_flight: usize,
    /// Those that wait for room to fly, first come first.
    queue: VecDeque<(usize, oneshot::Sender<Pass>)>,
}

/// The right to have so many bytes in flight.
#[derive(Debug)]
pub(super) struct Pass {
    cache: Arc<BlockCache>,
    bytes: usize,
}

/// The duty to fetch an extent: whoever drops it without a result has failed, and the next asks anew.
#[derive(Debug)]
pub(super) struct Landing {
    cache: Arc<BlockCache>,
    key: Key,
    tell: Option<oneshot::Sender<Result<Arc<Extent>, Error>>>,
}

impl BlockCache {
    pub(super) fn new(bytes_max: usize, counts: Arc<Counts>) -> BlockCache {
        let room = Room::of(bytes_max);
        let inner = Inner {
            extents: BTreeMap::new(),
            order: Order::new(room.kept),
            flying: BTreeMap::new(),
            in_flight: 0,
            queue: VecDeque::new(),
        };
        BlockCache { room, held: Arc::default(), counts, inner: Mutex::new(inner) }
    }

    /// A look at the cache that nobody changes meanwhile.
    pub(super) fn look(self: &Arc<Self>) -> Look<'_> {
        Look { cache: self, inner: self.lock() }
    }

    /// Whether any block of the object is here or on its way.
    pub(super) fn knows(&self, id: ObjectId) -> bool {
        let inner = self.lock();
        let all = (id, 0)..=(id, u64::MAX);
        inner.extents.range(all.clone()).next().is_some() || inner.flying.range(all).next().is_some()
    }

    /// Waits until `bytes` may fly: at once if nothing else does.
    pub(super) async fn pass(self: &Arc<Self>, bytes: usize) -> Option<Pass> {
        let waits = {
            let mut inner = self.lock();
            if inner.queue.is_empty() && inner.fits(bytes, self.room.kept) {
                return Some(self.depart(&mut inner, bytes));
            }
            let (tell, told) = oneshot::channel();
            inner.queue.push_back((bytes, tell));
            told
        };
        // Dropped only with the whole cache.
        waits.await.ok()
    }

    /// Takes in blocks that came along with a footer, unless some of them are here already. `bytes` begin at `start` in
    /// the object.
    pub(super) fn adopt(
        &self,
        outline: Outline,
        bytes: Bytes,
        start: u64,
        mut pass: Pass,
    ) -> Result<(), Error> {
        let mut inner = self.lock();
        inner.in_flight -= std::mem::take(&mut pass.bytes);
        let taken = if inner.overlaps(&outline) {
            self.counts.add(Count::AheadWasted, outline.length());
            Ok(())
        } else {
            self.take_in(&mut inner, outline, bytes, start).map(|_| ())
        };
        drop(inner);
        drop(pass);
        taken
    }

    /// An extent was used again by a reader that jumps about.
    pub(super) fn used_again(&self, extent: &Extent) {
        self.lock().order.used_again(&(extent.object, extent.start));
    }

    /// An extent that was passed is wanted by a reader after all.
    pub(super) fn wanted(&self, extent: &Extent) {
        self.lock().order.wanted(&(extent.object, extent.start));
    }

    /// Nobody is on the way to this extent: it leaves first.
    pub(super) fn passed(&self, extent: &Extent) {
        self.lock().order.passed(&(extent.object, extent.start));
    }

    /// Drops an extent, so that the next who asks fetches it anew.
    pub(super) fn forget(&self, extent: &Extent) {
        let gone = self.lock().remove(&(extent.object, extent.start));
        drop(gone);
    }

    /// Bytes that are kept.
    pub(super) fn kept_bytes(&self) -> usize {
        self.lock().order.bytes()
    }

    /// Bytes of extents that have left while readers hold slices of them.
    pub(super) fn lingering_bytes(&self) -> usize {
        let inner = self.lock();
        self.lingering_of(&inner)
    }

    /// Bytes of GETs in flight.
    pub(super) fn in_flight_bytes(&self) -> usize {
        self.lock().in_flight
    }

    /// Whether readers hold so much that their batches must be copied out.
    pub(super) fn must_copy(&self) -> bool {
        self.lingering_bytes() > self.room.lingering
    }

    /// Bytes that may be kept and in flight.
    pub(super) fn room(&self) -> usize {
        self.room.kept
    }

    fn lingering_of(&self, inner: &Inner) -> usize {
        self.held.bytes().saturating_sub(inner.order.bytes())
    }

    fn depart(self: &Arc<Self>, inner: &mut Inner, bytes: usize) -> Pass {
        inner.in_flight += bytes;
        self.make_room(inner);
        Pass { cache: Arc::clone(self), bytes }
    }

    /// Lets extents go until what is kept and in flight fits, less what readers hold beyond their share.
    fn make_room(&self, inner: &mut Inner) {
        loop {
            let excess = self.lingering_of(inner).saturating_sub(self.room.lingering);
            if inner.order.bytes() + inner.in_flight + excess <= self.room.kept {
                return;
            }
            let Some(gone) = inner.order.next_out().and_then(|first| inner.remove(&first)) else {
                return;
            };
            self.counts.add(Count::Evicted, 1);
            self.counts.add(Count::AheadWasted, gone.wasted());
        }
    }

    /// Keeps what a GET has brought, and counts it until nobody holds a slice.
    fn take_in(
        &self,
        inner: &mut Inner,
        outline: Outline,
        bytes: Bytes,
        start: u64,
    ) -> Result<Arc<Extent>, Error> {
        let size = bytes.len() + outline.beside();
        let kept = self.held.keep(bytes, outline.beside());
        let extent = Arc::new(outline.filled(&kept, start)?);
        let key = (extent.object, extent.start);
        inner.remove(&key);
        inner.order.insert(key, size);
        inner.extents.insert(key, Arc::clone(&extent));
        self.make_room(inner);
        Ok(extent)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The cache, held still for as long as it takes to find the blocks of one read and to send for what is missing.
pub(super) struct Look<'a> {
    cache: &'a Arc<BlockCache>,
    inner: MutexGuard<'a, Inner>,
}

impl Look<'_> {
    /// Where the block at this position is to be had, if anywhere.
    pub(super) fn find(&self, id: ObjectId, position: u64) -> Option<Source> {
        let upto = (id, 0)..=(id, position);
        let extent = self.inner.extents.range(upto.clone()).next_back();
        if let Some((_, extent)) = extent.filter(|(_, extent)| extent.end > position) {
            return Some(Source::Here(Arc::clone(extent)));
        }
        let flying = self.inner.flying.range(upto).next_back();
        flying
            .filter(|(_, flying)| flying.end > position)
            .map(|(_, flying)| Source::Flying(flying.flight.clone()))
    }

    /// The pass for something that nobody has asked for yet: at once or not at all, and never more than half of the room.
    /// It must not be dropped before the look is.
    pub(super) fn try_pass(&mut self, bytes: usize) -> Option<Pass> {
        let room = &self.cache.room;
        let may = self.inner.queue.is_empty()
            && self.inner.fits(bytes, room.kept / 2)
            && self.cache.lingering_of(&self.inner) <= room.lingering;
        may.then(|| self.cache.depart(&mut self.inner, bytes))
    }

    /// Announces a GET; nobody else fetches these blocks until it lands.
    pub(super) fn fly(&mut self, outline: &Outline) -> (Source, Landing) {
        let (tell, told) = oneshot::channel();
        let (key, flight) = ((outline.object, outline.start), told.shared());
        self.inner.flying.insert(key, Flying { end: outline.end, flight: flight.clone() });
        (Source::Flying(flight), Landing { cache: Arc::clone(self.cache), key, tell: Some(tell) })
    }
}

impl Landing {
    /// Keeps what came and tells all who wait.
    pub(super) fn land(mut self, outline: Outline, result: Result<Bytes, Error>, mut pass: Pass) {
        let result = {
            let mut inner = self.cache.lock();
            inner.flying.remove(&self.key);
            // What was in flight is kept now: not both.
            inner.in_flight -= std::mem::take(&mut pass.bytes);
            let start = outline.start;
            result.and_then(|bytes| self.cache.take_in(&mut inner, outline, bytes, start))
        };
        drop(pass);
        if let Some(tell) = self.tell.take() {
            // Nobody may be waiting any more.
            let _ = tell.send(result);
        }
    }
}

impl Drop for Landing {
    fn drop(&mut self) {
        if self.tell.is_some() {
            self.cache.lock().flying.remove(&self.key);
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut departed = Vec::new();
        {
            let mut inner = self.cache.lock();
            inner.in_flight -= self.bytes;
            while let Some((bytes, _)) = inner.queue.front()
                && inner.fits(*bytes, self.cache.room.kept)
                && let Some((bytes, tell)) = inner.queue.pop_front()
            {
                let pass = self.cache.depart(&mut inner, bytes);
                departed.push((tell, pass));
            }
        }
        for (tell, pass) in departed {
            // A leader that is gone hands its pass back by dropping it, without the lock.
            drop(tell.send(pass));
        }
    }
}

impl Inner {
    fn fits(&self, bytes: usize, most: usize) -> bool {
        self.in_flight == 0 || self.in_flight + bytes <= most
    }

    fn overlaps(&self, extent: &Outline) -> bool {
        let upto = (extent.object, 0)..(extent.object, extent.end);
        let here =
            self.extents.range(upto.clone()).next_back().is_some_and(|(_, here)| here.end > extent.start);
        here || self.flying.range(upto).next_back().is_some_and(|(_, flying)| flying.end > extent.start)
    }

    fn remove(&mut self, key: &Key) -> Option<Arc<Extent>> {
        self.order.remove(key);
        self.extents.remove(key)
    }
}
