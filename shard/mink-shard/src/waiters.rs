//! Readers that wait for more: woken once, by the bucket that moves first.
//!
//! Lives on: one per core.
//! Owns: the replies of waiting readers, indexed by the buckets they watch.
//! Invariants: I20: bounded; a reader that does not fit is answered at once, which only makes it ask again. A reader that gave up
//! is found by a purge whenever the index has doubled since the last one.
use mink_router::{ReplyTo, WatchedOffset};
use mink_types::{BucketId, Offset};
use std::collections::{BTreeMap, BTreeSet};

/// Below so many entries no purge is worth its while.
const PURGE_MIN: usize = 1024;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Watcher(u64);

#[derive(Debug)]
struct Waiting {
    buckets: Vec<BucketId>,
    reply: ReplyTo<()>,
}

#[derive(Debug)]
pub(crate) struct Waiters {
    watched_max: usize,
    waiting: BTreeMap<Watcher, Waiting>,
    /// What each watcher has seen of each of its buckets.
    watched: BTreeMap<(BucketId, Watcher), Offset>,
    next: u64,
    purge_at: usize,
}

impl Waiters {
    pub(crate) fn new(watched_max: usize) -> Waiters {
        Waiters {
            watched_max,
            waiting: BTreeMap::new(),
            watched: BTreeMap::new(),
            next: 0,
            purge_at: PURGE_MIN,
        }
    }

    /// Lets a reader wait for any of the buckets; false, and an answer at once, if there is no room.
    pub(crate) fn add(&mut self, offsets: &[WatchedOffset], reply: ReplyTo<()>) -> bool {
        if self.watched.len() + offsets.len() > self.purge_at.min(self.watched_max) {
            self.purge();
        }
        if self.watched.len() + offsets.len() > self.watched_max {
            reply.send(());
            return false;
        }
        let watcher = Watcher(self.next);
        self.next += 1;
        let mut buckets = Vec::with_capacity(offsets.len());
        for offset in offsets {
            // Of a bucket named twice the lower offset counts.
            let seen = self.watched.entry((offset.bucket, watcher)).or_insert(offset.seen);
            *seen = (*seen).min(offset.seen);
            buckets.push(offset.bucket);
        }
        self.waiting.insert(watcher, Waiting { buckets, reply });
        true
    }

    /// Wakes whoever has seen less of the bucket than `high_watermark`; says how many.
    pub(crate) fn wake(&mut self, bucket: BucketId, high_watermark: Offset) -> u64 {
        self.wake_if(bucket, |seen| seen < high_watermark)
    }

    /// Wakes everybody who watches the bucket: it is not served here any more.
    pub(crate) fn wake_all_of(&mut self, bucket: BucketId) -> u64 {
        self.wake_if(bucket, |_| true)
    }

    fn wake_if(&mut self, bucket: BucketId, woken: impl Fn(Offset) -> bool) -> u64 {
        let of_bucket = (bucket, Watcher(0))..=(bucket, Watcher(u64::MAX));
        let found: Vec<Watcher> = self
            .watched
            .range(of_bucket)
            .filter(|(_, seen)| woken(**seen))
            .map(|((_, watcher), _)| *watcher)
            .collect();
        let count = found.len() as u64;
        for watcher in found {
            if let Some(waiting) = self.remove(watcher) {
                waiting.reply.send(());
            }
        }
        count
    }

    /// Readers that wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    fn purge(&mut self) {
        let gone: BTreeSet<Watcher> = self
            .waiting
            .iter()
            .filter(|(_, waiting)| waiting.reply.is_abandoned())
            .map(|(watcher, _)| *watcher)
            .collect();
        for watcher in gone {
            self.remove(watcher);
        }
        self.purge_at = (self.watched.len() * 2).max(PURGE_MIN);
    }

    fn remove(&mut self, watcher: Watcher) -> Option<Waiting> {
        let waiting = self.waiting.remove(&watcher)?;
        for bucket in &waiting.buckets {
            self.watched.remove(&(*bucket, watcher));
        }
        Some(waiting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;
    use mink_router::reply;
    use mink_types::{BucketIndex, TableId};

    fn at(bucket: u32, seen: u64) -> WatchedOffset {
        let bucket = BucketId::unpartitioned(TableId(1), BucketIndex(bucket));
        WatchedOffset { bucket, seen: Offset(seen) }
    }

    #[test]
    fn a_reader_is_woken_once_by_the_first_bucket_that_has_more() {
        let mut waiters = Waiters::new(100);
        let (sender, waiting) = reply();
        assert!(waiters.add(&[at(1, 5), at(2, 7)], sender));
        assert_eq!(waiters.wake(at(1, 0).bucket, Offset(5)), 0);
        assert_eq!(waiters.wake(at(2, 0).bucket, Offset(8)), 1);
        assert_eq!(waiting.answer().now_or_never(), Some(Ok(())));
        assert_eq!(waiters.wake(at(1, 0).bucket, Offset(9)), 0);
        assert_eq!((waiters.len(), waiters.watched.len()), (0, 0));
    }

    #[test]
    fn i20_readers_beyond_the_bound_are_answered_at_once() {
        let mut waiters = Waiters::new(3);
        let (first, _first_waits) = reply();
        let (second, second_waits) = reply();
        assert!(waiters.add(&[at(1, 0), at(2, 0)], first));
        assert!(!waiters.add(&[at(1, 0), at(2, 0)], second));
        assert_eq!(second_waits.answer().now_or_never(), Some(Ok(())));
    }

    #[test]
    fn i20_readers_that_gave_up_are_forgotten() {
        let mut waiters = Waiters::new(1 << 20);
        for _ in 0..50 * PURGE_MIN {
            let (sender, waiting) = reply();
            assert!(waiters.add(&[at(1, 0)], sender));
            drop(waiting);
        }
        assert!(waiters.len() <= PURGE_MIN, "{}", waiters.len());
        let (sender, _waiting) = reply();
        let mut small = Waiters::new(1);
        let (gone, _) = reply();
        assert!(small.add(&[at(1, 0)], gone) && small.add(&[at(1, 0)], sender));
    }
}
