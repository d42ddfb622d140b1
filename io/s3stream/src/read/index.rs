//! Footers that were read, with what a reader needs of them: blocks by their place, tiles that long GETs keep to.
//!
//! Lives on: service runtime; shared by all readers of a node, hence the lock (held for a look-up).
//! Owns: the footers, and which of them are under way.
//! Invariants: I20: bounded by bytes. A footer never changes: objects are immutable and no key is used twice. One GET at a
//! time for a footer; a failed one is told to all who wait, and not kept.
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::channel::oneshot;
use futures::future::{FutureExt as _, Shared};
use mink_types::{BucketId, ObjectId};

use super::order::Order;
use crate::error::{Error, ErrorKind};
use crate::format::{Block, Footer, FooterBucket};

/// What a GET that others may wait for will bring.
pub(super) type Flight<T> = Shared<oneshot::Receiver<Result<T, Error>>>;

/// Waits for a GET that somebody leads.
pub(super) async fn landed<T: Clone>(id: ObjectId, flight: Flight<T>) -> Result<T, Error> {
    let ended = flight.await;
    ended.unwrap_or_else(|_| {
        Err(Error::new(ErrorKind::Retry, format!("{id}: its GET ended without a result")))
    })
}

/// Nobody has used a block of the object.
const NO_BUCKET: u32 = u32::MAX;
/// Blocks of several buckets have been used.
const MANY_BUCKETS: u32 = u32::MAX - 1;

/// A footer, and its blocks in the order in which they lie.
#[derive(Debug)]
pub(super) struct Index {
    pub(super) footer: Arc<Footer>,
    places: Box<[Place]>,
    /// Where tiles begin: about equal parts of the body that a GET brings whole at most.
    tiles: Box<[u64]>,
    /// Bytes of different blocks that readers have used; who reads on remembers it.
    pub(super) used: Arc<AtomicU64>,
    /// The bucket whose blocks were used, by its place in the footer.
    used_bucket: AtomicU32,
}

/// Where a block lies, in the object and in the footer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) position: u64,
    pub(super) length: u32,
    pub(super) bucket: u32,
    block: u32,
}

impl Place {
    /// Where the block ends in the object; exclusive.
    pub(super) fn end(&self) -> u64 {
        self.position + u64::from(self.length)
    }
}

impl Index {
    /// None if blocks overlap, which no writer of ours does.
    pub(super) fn new(footer: Arc<Footer>, tile_bytes: u64) -> Option<Index> {
        let mut places = Vec::new();
        for (bucket, part) in footer.buckets.iter().enumerate() {
            for (block, at) in part.blocks.iter().enumerate() {
                places.push(Place {
                    position: at.position,
                    length: at.length,
                    bucket: u32::try_from(bucket).ok()?,
                    block: u32::try_from(block).ok()?,
                });
            }
        }
        places.sort_by_key(|place| place.position);
        let ends = places.iter().map(Place::end);
        if ends.zip(places.iter().skip(1)).any(|(end, next)| next.position < end) {
            return None;
        }
        let tiles = tiles(&places, tile_bytes).into();
        let (used, used_bucket) = (Arc::default(), AtomicU32::new(NO_BUCKET));
        Some(Index { footer, places: places.into(), tiles, used, used_bucket })
    }

    /// Roughly what it takes in memory, in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        self.footer.memory_bytes()
            + self.places.len() * size_of::<Place>()
            + self.tiles.len() * size_of::<u64>()
            + size_of::<Index>()
    }

    /// All blocks, in the order of their positions.
    pub(super) fn places(&self) -> &[Place] {
        &self.places
    }

    /// The number of the block at exactly this position.
    pub(super) fn at(&self, position: u64) -> Option<usize> {
        self.places.binary_search_by_key(&position, |place| place.position).ok()
    }

    /// The bucket's part and the block that a place stands for.
    pub(super) fn block(&self, place: &Place) -> Option<(&FooterBucket, &Block)> {
        let part = self.footer.buckets.get(place.bucket as usize)?;
        Some((part, part.blocks.get(place.block as usize)?))
    }

    /// The tile that a position lies in: where it begins, and where the next begins.
    pub(super) fn tile(&self, position: u64) -> (u64, u64) {
        let next = self.tiles.partition_point(|start| *start <= position);
        let start = next.checked_sub(1).and_then(|at| self.tiles.get(at));
        (start.copied().unwrap_or(0), self.tiles.get(next).copied().unwrap_or(u64::MAX))
    }

    /// A block was used that nobody had used before.
    pub(super) fn note_used(&self, bucket: &BucketId, bytes: u64) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        let at = self.footer.buckets.binary_search_by(|part| part.bucket.cmp(bucket));
        let Some(at) = at.ok().and_then(|at| u32::try_from(at).ok()) else {
            return;
        };
        let before = self.used_bucket.compare_exchange(NO_BUCKET, at, Ordering::Relaxed, Ordering::Relaxed);
        if before.is_err_and(|before| before != at) {
            self.used_bucket.store(MANY_BUCKETS, Ordering::Relaxed);
        }
    }

    /// What has been used of the object, if that were blocks of another bucket than this, by its place in the footer.
    pub(super) fn used_by_others(&self, bucket: u32) -> u64 {
        let by = self.used_bucket.load(Ordering::Relaxed);
        if by == NO_BUCKET || by == bucket { 0 } else { self.used.load(Ordering::Relaxed) }
    }
}

/// Cuts the body into as few parts as `tile_bytes` allows, all about as long. A part ends with the block that fills it.
fn tiles(places: &[Place], tile_bytes: u64) -> Vec<u64> {
    let (Some(first), Some(last)) = (places.first(), places.last()) else {
        return Vec::new();
    };
    let body = last.end().saturating_sub(first.position);
    let length = body.div_ceil(body.div_ceil(tile_bytes.max(1)).max(1)).max(1);
    let mut starts = vec![first.position];
    let mut full = first.position.saturating_add(length);
    for place in places.iter().skip(1) {
        if place.position >= full {
            starts.push(place.position);
            while full <= place.position {
                full = full.saturating_add(length);
            }
        }
    }
    starts
}

/// A footer, or whoever fetches it.
#[derive(Clone, Debug)]
pub(super) enum Footing {
    Ready(Arc<Index>),
    Flying(Flight<Arc<Index>>),
}

/// The footers of a node's readers.
#[derive(Debug)]
pub(super) struct FooterCache {
    bytes_max: usize,
    tile_bytes: u64,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    footers: BTreeMap<ObjectId, Arc<Index>>,
    order: Order<ObjectId>,
    flying: BTreeMap<ObjectId, Flight<Arc<Index>>>,
}

/// The duty to fetch a footer: whoever drops it without a result has failed, and the next asks anew.
#[derive(Debug)]
pub(super) struct FooterLanding {
    cache: Arc<FooterCache>,
    id: ObjectId,
    tell: Option<oneshot::Sender<Result<Arc<Index>, Error>>>,
}

impl FooterCache {
    pub(super) fn new(bytes_max: usize, tile_bytes: u64) -> FooterCache {
        let (footers, order, flying) = (BTreeMap::new(), Order::new(bytes_max), BTreeMap::new());
        FooterCache { bytes_max, tile_bytes, inner: Mutex::new(Inner { footers, order, flying }) }
    }

    /// The footer, or its flight; with a landing if the caller must fetch it.
    pub(super) fn find_or_fly(self: &Arc<Self>, id: ObjectId) -> (Footing, Option<FooterLanding>) {
        let mut inner = self.lock();
        if let Some(found) = inner.footers.get(&id).map(Arc::clone) {
            inner.order.used_again(&id);
            return (Footing::Ready(found), None);
        }
        if let Some(flight) = inner.flying.get(&id) {
            return (Footing::Flying(flight.clone()), None);
        }
        let (tell, told) = oneshot::channel();
        let flight = told.shared();
        inner.flying.insert(id, flight.clone());
        let landing = FooterLanding { cache: Arc::clone(self), id, tell: Some(tell) };
        (Footing::Flying(flight), Some(landing))
    }

    /// Keeps a footer; none if its blocks overlap.
    pub(super) fn put(&self, id: ObjectId, footer: Arc<Footer>) -> Option<Arc<Index>> {
        let index = Arc::new(Index::new(footer, self.tile_bytes)?);
        let bytes = index.memory_bytes();
        let mut inner = self.lock();
        inner.remove(&id);
        if bytes <= self.bytes_max {
            inner.footers.insert(id, Arc::clone(&index));
            inner.order.insert(id, bytes);
        }
        while inner.order.bytes() > self.bytes_max {
            let Some(first) = inner.order.next_out() else { break };
            inner.remove(&first);
        }
        Some(index)
    }

    pub(super) fn forget(&self, id: &ObjectId) {
        self.lock().remove(id);
    }

    pub(super) fn bytes(&self) -> usize {
        self.lock().order.bytes()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FooterLanding {
    /// Tells all who wait. What is found from now on is the cache's.
    pub(super) fn land(mut self, result: Result<Arc<Index>, Error>) {
        self.cache.lock().flying.remove(&self.id);
        if let Some(tell) = self.tell.take() {
            // Nobody may be waiting any more.
            let _ = tell.send(result);
        }
    }
}

impl Drop for FooterLanding {
    fn drop(&mut self) {
        if self.tell.is_some() {
            self.cache.lock().flying.remove(&self.id);
        }
    }
}

impl Inner {
    fn remove(&mut self, id: &ObjectId) {
        self.order.remove(id);
        self.footers.remove(id);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::entry::Entry;
    use crate::format::{Part, by_bucket};
    use crate::testing::{bucket, chain, entry};

    fn id(counter: u64) -> ObjectId {
        ObjectId::Stream { chain: chain(1), counter }
    }

    /// A footer with each entry in a block of its own.
    pub(in crate::read) fn footer(entries: &[Entry]) -> Arc<Footer> {
        let mut at = 160;
        let parts = by_bucket(entries.iter()).into_iter().map(|(bucket, part): (_, Part<'_>)| {
            let mut blocks = Vec::new();
            for entry in part.entries {
                let length = entry.index().length;
                let entries = vec![entry.index()];
                blocks.push(Block { epoch: entry.epoch, position: at, length, crc: 0, entries });
                at += u64::from(length);
            }
            FooterBucket { bucket, producers: None, epochs: Vec::new(), blocks }
        });
        let buckets = parts.collect();
        Arc::new(Footer { buckets })
    }

    #[test]
    fn i20_the_least_used_footer_goes_first() {
        let empty = Arc::new(Footer::default());
        let size = Index::new(Arc::clone(&empty), 1).unwrap().memory_bytes();
        let cache = Arc::new(FooterCache::new(2 * size, 1));
        cache.put(id(1), Arc::clone(&empty));
        cache.put(id(2), Arc::clone(&empty));
        assert!(matches!(cache.find_or_fly(id(1)), (Footing::Ready(_), None)));
        cache.put(id(3), Arc::clone(&empty));
        let here = |n| matches!(cache.find_or_fly(id(n)), (Footing::Ready(_), _));
        assert!(!here(2) && here(1) && here(3));
        cache.put(id(3), Arc::clone(&empty));
        assert_eq!(cache.bytes(), 2 * size);
        cache.forget(&id(3));
        cache.forget(&id(1));
        assert_eq!(cache.bytes(), 0);
    }

    #[test]
    fn a_landing_that_is_dropped_fails_those_who_wait_and_the_next_asks_anew() {
        let cache = Arc::new(FooterCache::new(1 << 20, 1));
        let (Footing::Flying(flight), Some(landing)) = cache.find_or_fly(id(1)) else {
            panic!("nothing is there");
        };
        assert!(matches!(cache.find_or_fly(id(1)), (Footing::Flying(_), None)), "joined");
        drop(landing);
        assert!(flight.now_or_never().unwrap().is_err());
        assert!(cache.find_or_fly(id(1)).1.is_some());
    }

    #[test]
    fn tiles_are_as_few_as_can_be_and_about_as_long() {
        let body = vec![0; 10];
        let entries: Vec<_> = (0..20).map(|n| entry(1 + n / 10, 0, n, 1, &body)).collect();
        let index = Index::new(footer(&entries), 64).unwrap();
        // 200 bytes in four parts of 50.
        assert_eq!(*index.tiles, [160, 210, 260, 310]);
        assert_eq!(
            (index.tile(160), index.tile(259), index.tile(350)),
            ((160, 210), (210, 260), (310, u64::MAX))
        );
        let place = index.places()[index.at(270).unwrap()];
        let (part, block) = index.block(&place).unwrap();
        assert_eq!((part.bucket, block.entries[0].base_offset.0), (bucket(2), 11));
        assert_eq!(index.at(271), None);
        assert_eq!(*Index::new(footer(&entries), 1 << 20).unwrap().tiles, [160]);
    }

    #[test]
    fn what_others_have_used_of_an_object() {
        let entries: Vec<_> = (0..4).map(|n| entry(1 + n % 2, 0, n, 1, b"0123456789")).collect();
        let index = Index::new(footer(&entries), 64).unwrap();
        index.note_used(&bucket(1), 10);
        assert_eq!((index.used_by_others(0), index.used_by_others(1)), (0, 10));
        index.note_used(&bucket(2), 10);
        assert_eq!((index.used_by_others(0), index.used_by_others(1)), (20, 20));
    }
}
