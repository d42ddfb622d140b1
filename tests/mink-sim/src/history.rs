//! What clients sent, were told and have read, and whether that can be true of one log.
//!
//! Lives on: the simulation's thread.
//! Owns: every batch ever sent, where each was seen, how far readers have seen.
//! Invariants checked: I1 (what was acked is there for every later reader), I2 (offsets are dense, unique and never move), I3 (only
//! what stays is seen, and the high watermark never goes back), I4 (acked is readable at once), I5 (whoever acks), I6 (an
//! idempotent batch has one place), I7 (what was refused never appears).
mod forgotten;
mod hurt;
pub(crate) mod rows;

pub(crate) use forgotten::{Keeps, Raised};

use bytes::Bytes;
use mink_record::kafka::{BatchBuilder, BatchFormat, BatchHeader, Codec, ProducerStamp, RecordRef, batches};
use mink_router::ReadAnswer;
use mink_rt::Instant;
use mink_types::{BucketId, ObjectId, Offset, OffsetRange};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A batch is known by its timestamps: this plus its number times [`RECORDS_MAX`].
const TIME_ZERO: i64 = 1_000_000_000_000;

/// Most records of a batch.
pub(crate) const RECORDS_MAX: u64 = 16;

/// A batch, in the order of making.
pub(crate) type BatchId = usize;

/// Where a batch came from, as its maker knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sender {
    pub(crate) bucket: BucketId,
    /// Producer id and sequence of an idempotent producer.
    pub(crate) idempotent: Option<(i64, i32)>,
}

#[derive(Debug)]
struct Batch {
    sender: Sender,
    bytes: Bytes,
    count: u32,
    /// An attempt may have stored it: it is under way, was acked, or its end is not known.
    may_exist: bool,
    /// When it was sent first.
    sent: Option<Instant>,
    acked: Option<u64>,
    placed: Option<u64>,
}

impl Batch {
    fn new(sender: Sender, bytes: Bytes, count: u32) -> Batch {
        Batch { sender, bytes, count, may_exist: false, sent: None, acked: None, placed: None }
    }
}

#[derive(Debug, Default)]
struct Log {
    /// Batches by base offset, as acks and reads have shown them.
    placed: BTreeMap<u64, BatchId>,
    /// End of the furthest batch that was acked.
    acked_end: u64,
    /// Furthest high watermark that a reader was told.
    high_watermark: u64,
    /// As far as a client has asked for its records to be given up.
    asked: u64,
    /// Where the log begins, as the last row says that the ledger has seen.
    start: u64,
    start_seen: u64,
}

#[derive(Debug, Default)]
struct Inner {
    batches: Vec<Batch>,
    logs: BTreeMap<BucketId, Log>,
    keeps: BTreeMap<BucketId, Keeps>,
    /// Buckets whose tables are being dropped.
    gone: BTreeSet<BucketId>,
    /// Of buckets whose tables have columns: those.
    columns: BTreeMap<BucketId, rows::Columns>,
    /// Objects that were damaged by hand, and what lay in them.
    hurt: BTreeMap<ObjectId, Vec<(BucketId, OffsetRange)>>,
    violations: Vec<String>,
    counts: Counts,
}

/// What happened, for people.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Counts {
    /// Batches that were made.
    pub batches: u64,
    /// Those of them that are of rows, for tables with columns.
    pub of_rows: u64,
    /// Batches that were acked.
    pub acked: u64,
    /// Acks that said that the batch had been stored before.
    pub duplicates: u64,
    /// Appends whose end nobody told.
    pub lost: u64,
    /// Appends that were refused.
    pub refused: u64,
    /// Answers to reads that were looked at.
    pub reads: u64,
    /// Reads that got an error.
    pub read_errors: u64,
    /// Times that the start of a log was raised.
    pub raises: u64,
    /// Objects that were damaged by hand.
    pub damaged: u64,
    /// Reads that were refused for that.
    pub damaged_reads: u64,
}

/// What was known when a read began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    bucket: BucketId,
    start: u64,
    acked_end: u64,
    high_watermark: u64,
}

impl Mark {
    /// The furthest high watermark that was told by then.
    pub(crate) fn high_watermark(&self) -> Offset {
        Offset(self.high_watermark)
    }
}

/// The history of a simulation.
#[derive(Debug, Default)]
pub(crate) struct History {
    inner: Mutex<Inner>,
}

impl History {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An invariant does not hold.
    pub(crate) fn violated(&self, what: String) {
        tracing::error!(what, "violation");
        let mut inner = self.inner();
        // The first ones tell the story; what follows from them can be endless.
        if inner.violations.len() < 10 {
            inner.violations.push(what);
        }
    }

    fn all_violated(&self, told: impl IntoIterator<Item = String>) {
        for what in told {
            self.violated(what);
        }
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        self.inner().violations.clone()
    }

    pub(crate) fn counts(&self) -> Counts {
        self.inner().counts
    }

    pub(crate) fn count(&self, count: impl FnOnce(&mut Counts)) {
        count(&mut self.inner().counts);
    }

    /// Makes a batch of `count` records of about `bytes` bytes each.
    pub(crate) fn make(&self, sender: Sender, count: u32, bytes: usize, codec: Codec) -> (BatchId, Bytes) {
        let mut inner = self.inner();
        let id = inner.batches.len();
        inner.counts.batches += 1;
        let mut builder = BatchBuilder::new();
        let number = u64::try_from(id).unwrap_or(0);
        for record in 0..count.clamp(1, u32::try_from(RECORDS_MAX).unwrap_or(1)) {
            let text = format!("{id}/{record}/");
            let value: Vec<u8> = text.bytes().cycle().take(text.len().max(bytes)).collect();
            let offset = number * RECORDS_MAX + u64::from(record);
            let timestamp = TIME_ZERO + i64::try_from(offset).unwrap_or(0);
            let record = RecordRef { timestamp, value: Some(&value), ..RecordRef::default() };
            builder.push(record).expect("a small record");
        }
        let stamp =
            sender.idempotent.map(|(id, base_sequence)| ProducerStamp { id, epoch: 0, base_sequence });
        let count = u32::try_from(builder.record_count()).unwrap_or(1);
        let bytes = builder.build(codec, stamp).expect("a small batch");
        inner.batches.push(Batch::new(sender, bytes.clone(), count));
        (id, bytes)
    }

    /// Records of a batch.
    pub(crate) fn records(&self, id: BatchId) -> u32 {
        self.inner().batches.get(id).map_or(0, |batch| batch.count)
    }

    pub(crate) fn bytes(&self, id: BatchId) -> Bytes {
        self.inner().batches.get(id).map(|batch| batch.bytes.clone()).unwrap_or_default()
    }

    /// The batch is on its way: from here it may be stored. Gives what it was before, for [`History::refused`].
    pub(crate) fn sending(&self, id: BatchId, now: Instant) -> bool {
        let mut inner = self.inner();
        let Some(batch) = inner.batches.get_mut(id) else { return false };
        batch.sent.get_or_insert(now);
        std::mem::replace(&mut batch.may_exist, true)
    }

    /// This attempt was refused: the batch exists only if an earlier attempt may have made it (`before`).
    pub(crate) fn refused(&self, id: BatchId, before: bool) {
        let mut inner = self.inner();
        inner.counts.refused += 1;
        if let Some(batch) = inner.batches.get_mut(id) {
            batch.may_exist = before;
        }
    }

    /// The batch was acked at `base`.
    pub(crate) fn acked(&self, id: BatchId, base: Offset, duplicate: bool) {
        let told = {
            let mut inner = self.inner();
            inner.counts.acked += 1;
            inner.counts.duplicates += u64::from(duplicate);
            let told = inner.place(id, base.0, "an ack");
            if let Some(batch) = inner.batches.get_mut(id) {
                batch.acked = Some(base.0);
                let (bucket, end) = (batch.sender.bucket, base.0 + u64::from(batch.count));
                let log = inner.logs.entry(bucket).or_default();
                log.acked_end = log.acked_end.max(end);
            }
            told
        };
        self.all_violated(told);
    }

    /// What is known as a read begins.
    pub(crate) fn mark(&self, bucket: BucketId) -> Mark {
        let mut inner = self.inner();
        let log = inner.logs.entry(bucket).or_default();
        Mark { bucket, start: log.start_seen, acked_end: log.acked_end, high_watermark: log.high_watermark }
    }

    /// Ends that a node told to a read which began at `mark`.
    pub(crate) fn ends(&self, mark: Mark, start: Offset, high_watermark: Offset) {
        let bucket = mark.bucket;
        let mut told = Vec::new();
        {
            let mut inner = self.inner();
            // Its table was dropped meanwhile.
            if inner.gone.contains(&bucket) {
                return;
            }
            let log = inner.logs.entry(bucket).or_default();
            let seen = high_watermark.0;
            if seen < mark.high_watermark {
                told.push(format!("I3: {bucket}: high watermark {seen} after {}", mark.high_watermark));
            }
            if seen < mark.acked_end {
                told.push(format!("I4: {bucket}: high watermark {seen}, but acked up to {}", mark.acked_end));
            }
            if start.0 < mark.start {
                told.push(format!("I2: {bucket}: begins at {start} after it began at {}", mark.start));
            }
            if start.0 > log.start {
                told.push(format!("I1: {bucket}: begins at {start}, by the rows at {}", log.start));
            }
            if start > high_watermark {
                told.push(format!("I3: {bucket}: begins at {start}, high watermark {seen}"));
            }
            log.high_watermark = log.high_watermark.max(seen);
            log.start_seen = log.start_seen.max(start.0);
        }
        self.all_violated(told);
    }

    /// Looks at what a read from `from` that began at `mark` has brought. Gives the offset after the last record.
    pub(crate) fn answer(&self, mark: Mark, from: Offset, answer: &ReadAnswer) -> Offset {
        self.ends(mark, answer.log_start, answer.high_watermark);
        let bucket = mark.bucket;
        if from.0 < mark.start {
            self.violated(format!(
                "I2: {bucket}: a read from {from} is answered, it began at {}",
                mark.start
            ));
        }
        let mut next: Option<u64> = None;
        let mut told = Vec::new();
        for piece in &answer.batches {
            for batch in batches(piece.clone()) {
                let Ok((header, batch)) = batch else {
                    told.push(format!("I2: {bucket}: a read from {from} brought bytes that are no batch"));
                    break;
                };
                let base = u64::try_from(header.base_offset).unwrap_or(u64::MAX);
                let end = base + u64::try_from(header.last_offset_delta).unwrap_or(0) + 1;
                match next {
                    None if base > from.0 || end <= from.0 => {
                        told.push(format!("I2: {bucket}: a read from {from} begins with {base}..{end}"));
                    }
                    Some(next) if next != base => {
                        told.push(format!("I2: {bucket}: {base} follows {next} in a read from {from}"));
                    }
                    _ => {}
                }
                if end > answer.high_watermark.0 {
                    told.push(format!(
                        "I3: {bucket}: {base}..{end} read, high watermark {}",
                        answer.high_watermark
                    ));
                }
                next = Some(end);
                told.extend(self.inner().seen(bucket, base, &header, &batch));
            }
        }
        self.all_violated(told);
        Offset(next.unwrap_or(from.0))
    }

    /// The whole log was read, from `start` to `end`: everything acked is there, and nothing that was refused.
    pub(crate) fn whole(&self, bucket: BucketId, start: Offset, end: Offset) {
        let mut told = Vec::new();
        {
            let inner = self.inner();
            let Some(log) = inner.logs.get(&bucket) else { return };
            for (id, batch) in inner.batches.iter().enumerate().filter(|(_, b)| b.sender.bucket == bucket) {
                if let Some(base) = batch.acked
                    && base + u64::from(batch.count) > end.0
                {
                    told.push(format!("I1: {bucket}: batch {id} was acked at {base}, the log ends at {end}"));
                }
                if batch.placed.is_some() && !batch.may_exist {
                    told.push(format!(
                        "I7: {bucket}: batch {id} was refused, but lies at {:?}",
                        batch.placed
                    ));
                }
            }
            // The log may begin in the middle of a batch.
            let count = |id: &BatchId| inner.batches.get(*id).map_or(0, |batch| u64::from(batch.count));
            let first = log.placed.range(..=start.0).next_back().filter(|(at, id)| *at + count(id) > start.0);
            let mut at = first.map_or(start.0, |(at, _)| *at);
            for (base, id) in log.placed.range(at..) {
                if *base > at && *base < end.0 && !inner.all_hurt(bucket, at, *base) {
                    told.push(format!("I2: {bucket}: nothing lies at {at}..{base}"));
                }
                if *base >= end.0 {
                    told.push(format!("I3: {bucket}: batch {id} was seen at {base}, the log ends at {end}"));
                }
                at = base + count(id);
            }
            if at < end.0 && !inner.all_hurt(bucket, at, end.0) {
                told.push(format!("I2: {bucket}: nothing lies at {at}..{end}"));
            }
        }
        self.all_violated(told);
    }

    /// The first offset at or after `from` that is known to hold a record with `timestamp` or later, among what was acked.
    pub(crate) fn first_at(&self, bucket: BucketId, timestamp: i64) -> Option<u64> {
        let inner = self.inner();
        let log = inner.logs.get(&bucket)?;
        log.placed.range(log.start..).find_map(|(base, id)| {
            let batch = inner.batches.get(*id).filter(|batch| batch.acked.is_some())?;
            if inner.all_hurt(bucket, *base, base + 1) {
                return None;
            }
            let first = time_of(*id);
            let skip = timestamp.saturating_sub(first).max(0);
            let skip = u64::try_from(skip).unwrap_or(u64::MAX);
            (skip < u64::from(batch.count)).then(|| base + skip)
        })
    }

    /// A timestamp of some batch made so far.
    pub(crate) fn some_time(&self, random: u64) -> i64 {
        let made = self.inner().batches.len().max(1) as u64;
        TIME_ZERO + i64::try_from(random % (made * RECORDS_MAX)).unwrap_or(0)
    }

    /// A bucket is gone with its table: nothing is expected of it any more.
    pub(crate) fn forget(&self, bucket: BucketId) {
        let mut inner = self.inner();
        inner.logs.remove(&bucket);
        inner.gone.insert(bucket);
    }
}

/// Timestamp of the first record of a batch.
fn time_of(id: BatchId) -> i64 {
    TIME_ZERO + i64::try_from(id as u64 * RECORDS_MAX).unwrap_or(0)
}

impl Inner {
    /// A reader has seen a batch.
    fn seen(&mut self, bucket: BucketId, base: u64, header: &BatchHeader, bytes: &Bytes) -> Option<String> {
        let id = if let Some(columns) = self.columns.get(&bucket) {
            rows::number(columns, bytes)
        } else {
            let time = u64::try_from(header.base_timestamp - TIME_ZERO).ok();
            time.and_then(|time| usize::try_from(time / RECORDS_MAX).ok())
        };
        let Some(id) = id else {
            return Some(format!("I2: {bucket}: at {base} lies what nobody can have sent"));
        };
        let Some(batch) = self.batches.get(id).filter(|batch| batch.sender.bucket == bucket) else {
            return Some(format!("I2: {bucket}: at {base} lies a batch that nobody sent there"));
        };
        // Base offset and leader epoch are the log's; everything else is as sent.
        let (sent, read) = (&batch.bytes, bytes);
        let is_same = match header.format {
            BatchFormat::Kafka => sent.get(8..12) == read.get(8..12) && sent.get(16..) == read.get(16..),
            BatchFormat::Arrow => rows::is_same(sent, read),
        };
        if !is_same {
            return Some(format!("I1: {bucket}: batch {id} at {base} is not what was sent"));
        }
        self.place(id, base, "a read")
    }

    /// Whether what lies at an offset was given up with the start of the log.
    fn is_given_up(&self, bucket: BucketId, at: u64) -> bool {
        self.logs.get(&bucket).is_some_and(|log| at < log.start)
    }

    /// A batch is shown at `base`.
    fn place(&mut self, id: BatchId, base: u64, by: &str) -> Option<String> {
        let batch = self.batches.get(id)?;
        let bucket = batch.sender.bucket;
        match batch.placed {
            Some(placed) if placed == base || self.all_hurt(bucket, base, base + 1) => return None,
            // It was lost before it was acked, and sent again.
            Some(placed) if self.all_hurt(bucket, placed, placed + 1) => {}
            // Its records were given up, and what told of its producer was lost before it was sent again.
            Some(placed) if self.is_given_up(bucket, placed) && self.any_hurt(bucket) => {}
            Some(placed) => {
                let which = if batch.sender.idempotent.is_some() { "I6" } else { "I2" };
                return Some(format!(
                    "{which}: {bucket}: batch {id} lies at {placed}, and by {by} at {base}"
                ));
            }
            None => {}
        }
        let batch = self.batches.get_mut(id)?;
        batch.placed = Some(base);
        let end = base + u64::from(batch.count);
        let log = self.logs.entry(bucket).or_default();
        let count = |id: &BatchId| self.batches.get(*id).map_or(0, |batch| u64::from(batch.count));
        let before = log.placed.range(..=base).next_back().map(|(at, id)| (*at, at + count(id), *id));
        let after = log.placed.range(base..).next().map(|(at, id)| (*at, at + count(id), *id));
        log.placed.insert(base, id);
        let other = before.filter(|(_, to, _)| *to > base).or(after.filter(|(at, _, _)| *at < end))?;
        let (at, to, other) = other;
        Some(format!("I2: {bucket}: batch {id} lies at {base}..{end} by {by}, batch {other} at {at}..{to}"))
    }
}
