//! Who reads where: readers of a bucket are told apart by the place at which each goes on.
//!
//! Lives on: service runtime; shared by all readers of a node, hence the lock (held for a look-up).
//! Owns: the places. Nobody says who they are: a read that begins where another ended is taken for the same reader's next.
//! Invariants: I20: at most [`STREAMS_MAX`] places, and none that was idle for [`STREAM_IDLE`]. A mistake costs requests or
//! room, never a wrong byte: what is fetched too much was read before in the same amount (see [`super::plan`]).
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mink_rt::Instant;
use mink_types::{BucketId, ObjectId, Offset, OffsetRange};

/// Places that are remembered.
pub(super) const STREAMS_MAX: usize = 8_192;
/// A reader that has not come back for so long has gone.
pub(super) const STREAM_IDLE: Duration = Duration::from_secs(30);
/// A reader counts as behind a run of offsets up to so many times its length.
const BEHIND_MAX: u64 = 4;
/// Streams of one bucket that a question looks at.
const LOOKED_AT_MAX: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Streams {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    streams: BTreeMap<u64, Stream>,
    by_place: BTreeSet<(BucketId, Offset, u64)>,
    by_use: BTreeSet<(Instant, u64)>,
    /// Sequential streams by bucket and object: those that read one thing together count once.
    fronts: BTreeMap<(BucketId, ObjectId), usize>,
    next_id: u64,
}

#[derive(Debug)]
struct Stream {
    bucket: BucketId,
    /// Where it goes on; while it is busy, where its read began.
    at: Offset,
    busy: bool,
    /// Whether a read has gone on where one before it ended.
    sequential: bool,
    /// Bytes that it has read in sequence.
    streak: u64,
    used: Instant,
    /// Whether somebody reads ahead for it.
    ahead: bool,
    object: Option<ObjectId>,
    /// What all readers have used of its last objects, the newest first.
    seen: [Option<Arc<AtomicU64>>; 2],
}

/// A read under way.
#[derive(Debug)]
pub(super) struct Mark {
    streams: Arc<Streams>,
    id: u64,
    /// Bytes that the reader has read in sequence before; 0 for one that was never here.
    pub(super) streak: u64,
    /// Whether it goes on where it ended before.
    pub(super) sequential: bool,
    /// Bytes that all readers together used of an object that this one has read lately.
    pub(super) around: u64,
}

/// Who is expected to want a block soon.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Expected {
    /// Bytes that a reader on its way there has read in sequence.
    pub(super) streak: u64,
    /// A read of this block is under way.
    pub(super) asked: bool,
}

impl Streams {
    /// A read of `bucket` from `from` begins.
    pub(super) fn begin(self: &Arc<Self>, bucket: BucketId, from: Offset, now: Instant) -> Mark {
        let mut inner = self.lock();
        inner.forget_idle(now);
        let places = inner.by_place.range((bucket, from, 0)..=(bucket, from, u64::MAX));
        let idle = places.map(|(_, _, id)| *id).find(|id| inner.streams.get(id).is_some_and(|s| !s.busy));
        let id = idle.unwrap_or_else(|| inner.add(bucket, from, now));
        inner.touch(id, now);
        inner.leave_front(id);
        let (mut streak, mut sequential, mut around) = (0, false, 0);
        if let Some(stream) = inner.streams.get_mut(&id) {
            stream.busy = true;
            // A read that brought nothing begins at its own end again: it is no sign of a sequence.
            stream.sequential |= stream.streak > 0;
            (streak, sequential) = (stream.streak, stream.sequential);
            let seen = stream.seen.iter().flatten().map(|used| used.load(Ordering::Relaxed));
            around = seen.max().unwrap_or(0);
        }
        inner.join_front(id);
        Mark { streams: Arc::clone(self), id, streak, sequential, around }
    }

    /// Whether a reader is expected to want `block` of a bucket's `part` of an object soon: it stands before the block's
    /// end, and not before the part by more than the part's own length.
    pub(super) fn expects(
        &self,
        bucket: BucketId,
        part: OffsetRange,
        block: OffsetRange,
    ) -> Option<Expected> {
        let count = part.end.0.saturating_sub(part.start.0);
        let from = Offset(part.start.0.saturating_sub(count));
        let inner = self.lock();
        inner.between(bucket, from, block.end).fold(None, |found: Option<Expected>, stream| {
            let streak = found.map_or(0, |found| found.streak).max(stream.streak);
            let asked = found.is_some_and(|found| found.asked) || (stream.busy && block.contains(stream.at));
            Some(Expected { streak, asked })
        })
    }

    /// Whether a reader will come to these offsets who has not passed them.
    pub(super) fn behind(&self, bucket: BucketId, offsets: OffsetRange) -> bool {
        let count = offsets.end.0.saturating_sub(offsets.start.0);
        let from = Offset(offsets.start.0.saturating_sub(count.saturating_mul(BEHIND_MAX)));
        self.lock().between(bucket, from, offsets.end).next().is_some()
    }

    /// Places at which sequential readers are: those of one bucket in one object count once.
    pub(super) fn fronts(&self) -> usize {
        self.lock().fronts.len()
    }

    /// Takes the right to read ahead for the mark's reader; false if somebody has it.
    pub(super) fn begin_ahead(&self, id: u64) -> bool {
        let mut inner = self.lock();
        inner.streams.get_mut(&id).is_some_and(|stream| !std::mem::replace(&mut stream.ahead, true))
    }

    pub(super) fn end_ahead(&self, id: u64) {
        if let Some(stream) = self.lock().streams.get_mut(&id) {
            stream.ahead = false;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Mark {
    /// Its name among the streams.
    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// The read has brought `bytes` bytes, the last of them from `object`, of which all readers have `used` so much; the
    /// reader goes on at `next`.
    pub(super) fn moved(&self, next: Offset, bytes: u64, object: ObjectId, used: Arc<AtomicU64>) {
        let mut guard = self.streams.lock();
        let inner = &mut *guard;
        inner.leave_front(self.id);
        if let Some(stream) = inner.streams.get_mut(&self.id) {
            inner.by_place.remove(&(stream.bucket, stream.at, self.id));
            inner.by_place.insert((stream.bucket, next, self.id));
            stream.at = next;
            stream.streak = stream.streak.saturating_add(bytes);
            if stream.object.replace(object) != Some(object) {
                let [last, _] = std::mem::take(&mut stream.seen);
                stream.seen = [Some(used), last];
            }
        }
        inner.join_front(self.id);
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        if let Some(stream) = self.streams.lock().streams.get_mut(&self.id) {
            stream.busy = false;
        }
    }
}

impl Inner {
    fn add(&mut self, bucket: BucketId, at: Offset, now: Instant) -> u64 {
        if self.streams.len() >= STREAMS_MAX
            && let Some((_, oldest)) = self.by_use.first().copied()
        {
            self.forget(oldest);
        }
        self.next_id += 1;
        let (id, used) = (self.next_id, now);
        let stream = Stream {
            bucket,
            at,
            busy: false,
            sequential: false,
            streak: 0,
            used,
            ahead: false,
            object: None,
            seen: [None, None],
        };
        self.streams.insert(id, stream);
        self.by_place.insert((bucket, at, id));
        self.by_use.insert((now, id));
        id
    }

    fn touch(&mut self, id: u64, now: Instant) {
        if let Some(stream) = self.streams.get_mut(&id) {
            self.by_use.remove(&(stream.used, id));
            stream.used = now;
            self.by_use.insert((now, id));
        }
    }

    fn front(&self, id: u64) -> Option<(BucketId, ObjectId)> {
        let stream = self.streams.get(&id).filter(|stream| stream.sequential)?;
        Some((stream.bucket, stream.object?))
    }

    fn join_front(&mut self, id: u64) {
        if let Some(front) = self.front(id) {
            *self.fronts.entry(front).or_insert(0) += 1;
        }
    }

    fn leave_front(&mut self, id: u64) {
        let Some(front) = self.front(id) else { return };
        if let Some(count) = self.fronts.get_mut(&front) {
            *count -= 1;
            if *count == 0 {
                self.fronts.remove(&front);
            }
        }
    }

    fn forget_idle(&mut self, now: Instant) {
        while let Some((used, id)) = self.by_use.first().copied() {
            if now.duration_since(used) < STREAM_IDLE {
                return;
            }
            self.forget(id);
        }
    }

    fn forget(&mut self, id: u64) {
        self.leave_front(id);
        if let Some(stream) = self.streams.remove(&id) {
            self.by_place.remove(&(stream.bucket, stream.at, id));
            self.by_use.remove(&(stream.used, id));
        }
    }

    /// Streams that stand at `from` or after it and before `end`; some of them, if they are many.
    fn between(&self, bucket: BucketId, from: Offset, end: Offset) -> impl Iterator<Item = &Stream> + '_ {
        let places = (from < end).then(|| self.by_place.range((bucket, from, 0)..(bucket, end, 0)));
        let places = places.into_iter().flatten().rev().take(LOOKED_AT_MAX);
        places.filter_map(|(_, _, id)| self.streams.get(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{bucket, chain};

    fn object(counter: u64) -> ObjectId {
        ObjectId::Stream { chain: chain(1), counter }
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    fn read(streams: &Arc<Streams>, from: u64, to: u64, now: u64) -> (u64, bool) {
        let mark = streams.begin(bucket(1), Offset(from), at(now));
        mark.moved(Offset(to), (to - from) * 10, object(from / 100), Arc::new(AtomicU64::new(from)));
        (mark.streak, mark.sequential)
    }

    fn range(start: u64, end: u64) -> OffsetRange {
        OffsetRange { start: Offset(start), end: Offset(end) }
    }

    #[test]
    fn a_read_that_goes_on_is_the_same_readers() {
        let streams = Arc::new(Streams::default());
        assert_eq!(read(&streams, 0, 5, 0), (0, false));
        assert_eq!(read(&streams, 5, 9, 0), (50, true));
        assert_eq!(read(&streams, 7, 9, 0), (0, false), "another's");
        assert_eq!(streams.fronts(), 1);
        // Two stand at 9 now: each is found once while both read.
        let (a, b) = (streams.begin(bucket(1), Offset(9), at(1)), streams.begin(bucket(1), Offset(9), at(1)));
        assert_ne!(a.id(), b.id());
        let c = streams.begin(bucket(1), Offset(9), at(1));
        assert_eq!((c.streak, c.sequential), (0, false));
    }

    #[test]
    fn who_is_expected_and_who_is_behind() {
        let streams = Arc::new(Streams::default());
        read(&streams, 90, 100, 0);
        let expected = Expected { streak: 100, asked: false };
        assert_eq!(streams.expects(bucket(1), range(100, 120), range(100, 110)), Some(expected));
        let reading = streams.begin(bucket(1), Offset(100), at(0));
        let asked = |block| streams.expects(bucket(1), range(100, 120), block).unwrap().asked;
        assert!(asked(range(100, 110)) && !asked(range(110, 120)));
        drop(reading);
        assert_eq!(streams.expects(bucket(1), range(90, 100), range(90, 100)), None, "passed");
        assert_eq!(streams.expects(bucket(1), range(200, 210), range(200, 210)), None, "far away");
        assert_eq!(streams.expects(bucket(2), range(100, 120), range(100, 110)), None);
        assert!(streams.behind(bucket(1), range(100, 101)) && streams.behind(bucket(1), range(120, 130)));
        assert!(!streams.behind(bucket(1), range(90, 100)) && !streams.behind(bucket(1), range(900, 901)));
    }

    #[test]
    fn i20_streams_are_bounded_and_the_idle_are_forgotten() {
        let streams = Arc::new(Streams::default());
        for n in 0..2 * STREAMS_MAX as u64 {
            read(&streams, 10 * n, 10 * n + 1, 0);
        }
        let count = |streams: &Streams| {
            let inner = streams.lock();
            assert_eq!(
                (inner.by_place.len(), inner.by_use.len()),
                (inner.streams.len(), inner.streams.len())
            );
            inner.streams.len()
        };
        assert_eq!(count(&streams), STREAMS_MAX);
        read(&streams, 3, 4, 40);
        assert_eq!((count(&streams), streams.fronts()), (1, 0));
    }

    #[test]
    fn what_all_have_used_of_the_last_two_objects_is_remembered() {
        let streams = Arc::new(Streams::default());
        let around = |from: u64, to: u64| {
            let mark = streams.begin(bucket(1), Offset(from), at(0));
            mark.moved(Offset(to), 1, object(from / 100), Arc::new(AtomicU64::new(1_000 - from)));
            mark.around
        };
        let seen = [around(100, 150), around(150, 200), around(200, 300), around(300, 400), around(400, 401)];
        assert_eq!(seen, [0, 900, 900, 900, 800]);
    }

    #[test]
    fn one_at_a_time_reads_ahead_for_a_reader() {
        let streams = Arc::new(Streams::default());
        let mark = streams.begin(bucket(1), Offset(0), at(0));
        assert!(streams.begin_ahead(mark.id()) && !streams.begin_ahead(mark.id()));
        streams.end_ahead(mark.id());
        assert!(streams.begin_ahead(mark.id()));
    }
}
