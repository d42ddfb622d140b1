//! The producer table of a bucket: which batch of an idempotent producer may come next, and which came already (I6).
//!
//! Lives on: anywhere (pure).
//! Owns: the last five batches of each producer that is remembered.
//! Invariants: the table is a fold over the logged batches of idempotent producers and their commit times, so it is the same
//! after any replay (T-9). A producer is forgotten in two ways only, both part of that fold: the log's commit time passed its last
//! batch by the expiry, or the table was full and it had been idle for an hour. Where a part of the log is lost with what it told of
//! producers, who has not written since may have written there: what he sends next is taken, what is remembered of him is still a repeat
//! (decision 0016).
use crate::AppendRefused;
use crate::remembered::Remembered;
use crate::snapshot::PRODUCERS_MAX;
use mink_types::{CommitTime, Limits, Offset, ProducerEpoch, ProducerId, Sequence};

/// Batches remembered for each producer: as many as clients keep in flight, as in Kafka (K-9).
pub const WINDOW_BATCHES: usize = 5;

/// A producer idle for longer may make room for another, in ms. Forgetting one that still retries would store its batch twice.
pub const EVICTABLE_IDLE_MS: i64 = 60 * 60 * 1000;

/// How many producers are remembered, and how long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProducerLimits {
    /// Producers per bucket.
    pub producers_max: u32,
    /// A producer idle for longer is forgotten, in ms of commit time.
    pub expiry_ms: u64,
}

impl From<&Limits> for ProducerLimits {
    fn from(limits: &Limits) -> ProducerLimits {
        ProducerLimits {
            producers_max: limits.producers_per_bucket_max,
            expiry_ms: limits.producer_expiry_ms,
        }
    }
}

impl ProducerLimits {
    fn expiry(&self) -> i64 {
        i64::try_from(self.expiry_ms).unwrap_or(i64::MAX)
    }

    fn full(&self, producers: usize) -> bool {
        let most = usize::try_from(self.producers_max).unwrap_or(usize::MAX);
        producers >= most.clamp(1, PRODUCERS_MAX)
    }
}

/// What an idempotent producer wrote on a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    pub producer: ProducerId,
    pub epoch: ProducerEpoch,
    /// Sequence of the batch's first record.
    pub base_sequence: Sequence,
}

/// A batch as the log has it: what the table is folded from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LoggedBatch {
    pub base_offset: Offset,
    /// Offsets it takes; 0 for an entry that is no batch but moves the log's time.
    pub count: u32,
    pub commit_time: CommitTime,
    /// None if its producer is not idempotent.
    pub stamp: Option<Stamp>,
}

impl LoggedBatch {
    /// The offset after its last record.
    pub fn end(&self) -> Offset {
        self.base_offset.plus(u64::from(self.count))
    }
}

/// A remembered batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Placed {
    pub(crate) base_sequence: Sequence,
    pub(crate) count: u32,
    pub(crate) base_offset: Offset,
    pub(crate) commit_time: CommitTime,
}

impl Placed {
    pub(crate) fn end(&self) -> Offset {
        self.base_offset.plus(u64::from(self.count))
    }
}

/// Up to five batches, oldest first.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Window {
    batches: [Placed; WINDOW_BATCHES],
    /// At most [`WINDOW_BATCHES`]: a table holds very many windows.
    len: u8,
}

impl Window {
    pub(crate) fn push(&mut self, placed: Placed) {
        if usize::from(self.len) >= WINDOW_BATCHES {
            self.batches.rotate_left(1);
            self.len -= 1;
        }
        if let Some(free) = self.batches.get_mut(usize::from(self.len)) {
            *free = placed;
            self.len += 1;
        }
    }

    pub(crate) fn as_slice(&self) -> &[Placed] {
        self.batches.get(..usize::from(self.len)).unwrap_or_default()
    }
}

impl PartialEq for Window {
    fn eq(&self, other: &Window) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for Window {}

/// A producer by the last of its batches that readers see.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ActiveProducer {
    pub producer: ProducerId,
    pub epoch: ProducerEpoch,
    /// Sequence of its last record.
    pub last_sequence: Sequence,
    pub last_commit_time: CommitTime,
}

/// What is remembered of one producer; its window is never empty.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    pub(crate) epoch: ProducerEpoch,
    pub(crate) window: Window,
}

impl Entry {
    fn last(&self) -> Placed {
        self.window.as_slice().last().copied().unwrap_or_default()
    }

    pub(crate) fn last_commit_time(&self) -> CommitTime {
        self.last().commit_time
    }

    /// The producer as of `end`; none if all that is remembered of it lies behind.
    fn as_of(&self, producer: ProducerId, end: Offset) -> Option<ActiveProducer> {
        let last = self.window.as_slice().iter().rev().find(|placed| placed.end() <= end)?;
        Some(ActiveProducer {
            producer,
            epoch: self.epoch,
            last_sequence: last.base_sequence.plus(last.count.saturating_sub(1)),
            last_commit_time: last.commit_time,
        })
    }

    fn next_sequence(&self) -> Sequence {
        let last = self.last();
        last.base_sequence.plus(last.count)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    New,
    Repeat(Placed),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Producers {
    limits: ProducerLimits,
    remembered: Remembered,
    /// Below this offset batches were lost that nobody knows of: of a producer whose last batch lies there, more may have been stored.
    unsure_below: Offset,
}

impl Producers {
    pub(crate) fn new(limits: ProducerLimits) -> Producers {
        Producers { limits, remembered: Remembered::new(), unsure_below: Offset(0) }
    }

    /// Whether anything is remembered of a producer.
    pub(crate) fn knows(&self, producer: ProducerId) -> bool {
        self.remembered.get(producer).is_some()
    }

    /// Judges a batch that would get `commit_time`. `never_written` says that the log never held a record.
    pub(crate) fn judge(
        &self,
        claim: Stamp,
        count: u32,
        commit_time: CommitTime,
        never_written: bool,
    ) -> Result<Verdict, AppendRefused> {
        let gap = |expected| AppendRefused::OutOfOrder {
            producer: claim.producer,
            expected: Some(expected),
            found: claim.base_sequence,
        };
        let Some(entry) = self.remembered.get(claim.producer) else {
            // K-10: a later batch must not overtake the producer's first; where there once was data, the producer may only be
            // forgotten, and refusing it would never end.
            if never_written && claim.base_sequence != Sequence(0) {
                return Err(gap(Sequence(0)));
            }
            return self.check_room(commit_time).map(|()| Verdict::New);
        };
        if claim.epoch < entry.epoch {
            return Err(AppendRefused::ProducerFenced {
                producer: claim.producer,
                current: entry.epoch,
                found: claim.epoch,
            });
        }
        let unsure = self.is_unsure(entry);
        if claim.epoch > entry.epoch {
            let first = claim.base_sequence == Sequence(0) || unsure;
            return if first { Ok(Verdict::New) } else { Err(gap(Sequence(0))) };
        }
        let repeat = |placed: &&Placed| placed.base_sequence == claim.base_sequence && placed.count == count;
        if let Some(placed) = entry.window.as_slice().iter().find(repeat) {
            return Ok(Verdict::Repeat(*placed));
        }
        let expected = entry.next_sequence();
        let next = claim.base_sequence == expected || (unsure && is_after(claim.base_sequence, expected));
        if next { Ok(Verdict::New) } else { Err(gap(expected)) }
    }

    /// Whether batches of the producer may have been lost since the last that is known of him.
    fn is_unsure(&self, entry: &Entry) -> bool {
        entry.last().base_offset < self.unsure_below
    }

    /// Batches below `offset` were lost.
    pub(crate) fn lost_below(&mut self, offset: Offset) {
        self.unsure_below = self.unsure_below.max(offset);
    }

    /// Below which offset batches were lost, as long as that matters for a log that goes as far as `end`.
    pub(crate) fn unsure_below(&self, end: Offset) -> Option<Offset> {
        let lost = self.unsure_below > Offset(0);
        let matters =
            lost && (end < self.unsure_below || self.iter().any(|(_, entry)| self.is_unsure(entry)));
        matters.then_some(self.unsure_below)
    }

    fn check_room(&self, commit_time: CommitTime) -> Result<(), AppendRefused> {
        let evictable = |(last, _): (CommitTime, ProducerId)| {
            idle_ms(last, commit_time) > EVICTABLE_IDLE_MS.min(self.limits.expiry())
        };
        if !self.limits.full(self.len()) || self.remembered.oldest().is_some_and(evictable) {
            return Ok(());
        }
        let producers = u32::try_from(self.len()).unwrap_or(u32::MAX);
        Err(AppendRefused::TooManyProducers { producers })
    }

    /// Folds a logged batch in, and says how many producers its time let expire.
    pub(crate) fn record(&mut self, batch: LoggedBatch) -> usize {
        let expired = self.expire(batch.commit_time);
        let Some(stamp) = batch.stamp.filter(|_| batch.count > 0) else {
            return expired;
        };
        let placed = Placed {
            base_sequence: stamp.base_sequence,
            count: batch.count,
            base_offset: batch.base_offset,
            commit_time: batch.commit_time,
        };
        let known = self.remembered.get(stamp.producer).copied();
        if known.is_none() {
            self.make_room(batch.commit_time);
        }
        let follows =
            |entry: &Entry| entry.epoch == stamp.epoch && entry.next_sequence() == stamp.base_sequence;
        let mut entry =
            known.filter(follows).unwrap_or(Entry { epoch: stamp.epoch, window: Window::default() });
        entry.window.push(placed);
        self.remembered.put(stamp.producer, entry);
        expired
    }

    /// Forgets who was idle for longer than the expiry when the log reached `commit_time`, and says how many.
    pub(crate) fn expire(&mut self, commit_time: CommitTime) -> usize {
        let before = self.len();
        while let Some((last, _)) = self.remembered.oldest() {
            if idle_ms(last, commit_time) <= self.limits.expiry() {
                break;
            }
            self.remembered.forget_oldest();
        }
        before - self.len()
    }

    /// After the limit was lowered the table may be above it: only the idle ones go.
    fn make_room(&mut self, commit_time: CommitTime) {
        while self.limits.full(self.len()) {
            let Some((last, _)) = self.remembered.oldest() else {
                return;
            };
            if idle_ms(last, commit_time) <= EVICTABLE_IDLE_MS {
                return;
            }
            self.remembered.forget_oldest();
        }
    }

    pub(crate) fn insert(&mut self, producer: ProducerId, entry: Entry) {
        self.remembered.put(producer, entry);
    }

    pub(crate) fn limits(&self) -> ProducerLimits {
        self.limits
    }

    pub(crate) fn set_limits(&mut self, limits: ProducerLimits) {
        self.limits = limits;
    }

    pub(crate) fn len(&self) -> usize {
        self.remembered.len()
    }

    /// The producers from `from` on as of `end`, in the order of ids.
    pub(crate) fn active(&self, from: ProducerId, end: Offset) -> impl Iterator<Item = ActiveProducer> {
        self.remembered.iter_from(from).filter_map(move |(producer, entry)| entry.as_of(producer, end))
    }

    /// In the order of ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (ProducerId, &Entry)> {
        self.remembered.iter()
    }
}

/// Whether a sequence comes after another rather than before it, in the circle of Kafka's sequences.
fn is_after(sequence: Sequence, other: Sequence) -> bool {
    let ahead = (i64::from(sequence.0) - i64::from(other.0)) & i64::from(i32::MAX);
    ahead <= i64::from(i32::MAX / 2)
}

fn idle_ms(last: CommitTime, now: CommitTime) -> i64 {
    now.0.saturating_sub(last.0)
}
