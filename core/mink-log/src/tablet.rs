//! The rules of one bucket's log: offsets and times are given here, and here alone.
//!
//! Lives on: one per bucket, on the shard that owns it (pure).
//! Owns: epoch, log start, appended end, high watermark, last commit time, producers, epoch history.
//! Invariants: I2 offsets are dense; I3 the high watermark never goes back; log start <= high watermark <= appended end;
//! commit times never go back; I19 a refused step changes nothing.
use crate::epochs::{EpochStart, Epochs};
use crate::producers::{ActiveProducer, LoggedBatch, ProducerLimits, Producers, Stamp, Verdict};
use crate::{AppendRefused, OutOfRange, RecoverError, snapshot};
use mink_record::kafka::BatchHeader;
use mink_types::{BucketEpoch, CommitTime, Offset, ProducerEpoch, ProducerId, Sequence};

/// A log may end here at most; from there on, no batch of 2^31 records per nanosecond could pass Kafka's largest offset within
/// any node's life.
const END_MAX: Offset = Offset(i64::MAX as u64 - (1 << 60));

/// What a tablet is bounded by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TabletLimits {
    /// Largest batch in bytes, header included.
    pub batch_bytes_max: u32,
    pub producers: ProducerLimits,
}

/// What a bucket's log was when this node opened it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Recovered {
    /// The epoch under which it is opened.
    pub epoch: BucketEpoch,
    /// First offset that is kept.
    pub start: Offset,
    /// End of what was committed: the first new batch gets this offset.
    pub end: Offset,
    pub last_commit_time: CommitTime,
    /// A snapshot of the producers; no bytes for a log that never held a record, or when `batches` begin at its start.
    pub producers: Vec<u8>,
    /// What was logged after the snapshot, in order. Batches without a stamp may be left out.
    pub batches: Vec<LoggedBatch>,
    /// Where each earlier epoch began, in order.
    pub epochs: Vec<EpochStart>,
}

/// What an append has to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AppendStep {
    /// Store the batch here: its offsets are taken.
    Ordered {
        base_offset: Offset,
        end: Offset,
        commit_time: CommitTime,
        stamp: Option<Stamp>,
        /// Producers that were forgotten since they had been idle for longer than the expiry at its commit time.
        expired: usize,
    },
    /// It is stored and durable: answer at once with where it lies (I6).
    DuplicateDurable { base_offset: Offset, commit_time: CommitTime },
    /// It is stored; answer when the log is durable up to `end`.
    DuplicateInFlight { base_offset: Offset, end: Offset, commit_time: CommitTime },
}

/// What a read finds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadStep {
    /// Records up to the high watermark.
    Records { until: Offset },
    /// The reader is at the end: nothing yet.
    AtEnd,
}

/// The rules of one bucket's log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tablet {
    batch_bytes_max: u32,
    epoch: BucketEpoch,
    log_start: Offset,
    high_watermark: Offset,
    next_offset: Offset,
    last_commit_time: CommitTime,
    producers: Producers,
    epochs: Epochs,
}

impl Tablet {
    /// The tablet of a bucket that is being opened. Everything recovered is durable, so all of it is visible.
    pub fn recover(recovered: Recovered, limits: TabletLimits) -> Result<Tablet, RecoverError> {
        let Recovered { epoch, start, end, last_commit_time, producers, batches, epochs } = recovered;
        if start > end {
            return Err(RecoverError::StartBehindEnd { start, end });
        }
        if end > END_MAX {
            return Err(RecoverError::EndTooLarge { end });
        }
        let (info, mut producers) = snapshot::decode_or_new(&producers, limits.producers)?;
        if info.as_of > end {
            return Err(RecoverError::ProducersAhead { as_of: info.as_of, end });
        }
        let mut last_commit_time = last_commit_time.max(info.last_commit_time);
        let mut from = info.as_of;
        for batch in batches {
            if batch.base_offset < from || batch.end() > end {
                return Err(RecoverError::BatchOutOfPlace { offset: batch.base_offset, from, end });
            }
            from = batch.end();
            last_commit_time = last_commit_time.max(batch.commit_time);
            producers.record(batch);
        }
        producers.expire(last_commit_time);
        let mut history = Epochs::default();
        for start in epochs {
            history.note(start.epoch, start.start);
        }
        Ok(Tablet {
            batch_bytes_max: limits.batch_bytes_max,
            epoch,
            log_start: start,
            high_watermark: end,
            next_offset: end,
            last_commit_time,
            producers,
            epochs: history,
        })
    }

    /// Takes a batch in at `now`: gives it the next offsets, or finds that it is stored already.
    ///
    /// `header` is that of a batch which passed `mink_record::kafka::check_produced`.
    ///
    /// # Errors
    /// Nothing has changed then.
    pub fn append(&mut self, header: &BatchHeader, now: CommitTime) -> Result<AppendStep, AppendRefused> {
        let (bytes, bytes_max) = (header.total_bytes() as u64, u64::from(self.batch_bytes_max));
        if bytes > bytes_max {
            return Err(AppendRefused::TooLarge { bytes, bytes_max });
        }
        let commit_time = self.last_commit_time.max(now);
        let count = offsets_of(header);
        let stamp = stamp_of(header);
        if let Some(stamp) = stamp {
            let never_written = self.next_offset == Offset(0);
            match self.producers.judge(stamp, count, commit_time, never_written)? {
                Verdict::New => {}
                Verdict::Repeat(placed) => {
                    return Ok(self.repeat(placed.base_offset, placed.end(), placed.commit_time));
                }
            }
        }
        let base_offset = self.next_offset;
        let batch = LoggedBatch { base_offset, count, commit_time, stamp };
        let expired = self.producers.record(batch);
        self.epochs.note(self.epoch, base_offset);
        self.next_offset = batch.end();
        self.last_commit_time = commit_time;
        debug_assert!(self.next_offset > base_offset, "I2: every batch takes at least one offset");
        Ok(AppendStep::Ordered { base_offset, end: batch.end(), commit_time, stamp, expired })
    }

    /// As [`Tablet::append`], of a writer whose sequences are counted from 0 in this log: one that the log does not know begins there. So
    /// all sequences below a known one are stored, or were.
    ///
    /// # Errors
    /// Those of `append`.
    pub fn append_counted(
        &mut self,
        header: &BatchHeader,
        now: CommitTime,
    ) -> Result<AppendStep, AppendRefused> {
        if let Some(Stamp { producer, base_sequence: found, .. }) = stamp_of(header)
            && found != Sequence(0)
            && !self.producers.knows(producer)
        {
            return Err(AppendRefused::OutOfOrder { producer, expected: Some(Sequence(0)), found });
        }
        self.append(header, now)
    }

    fn repeat(&self, base_offset: Offset, end: Offset, commit_time: CommitTime) -> AppendStep {
        if end <= self.high_watermark {
            AppendStep::DuplicateDurable { base_offset, commit_time }
        } else {
            AppendStep::DuplicateInFlight { base_offset, end, commit_time }
        }
    }

    /// The log is durable up to `end`; says whether the high watermark moved. It never goes back, and never passes what was
    /// appended.
    pub fn durable_to(&mut self, end: Offset) -> bool {
        debug_assert!(end <= self.next_offset, "I3: durable beyond what was appended: {end}");
        let end = end.min(self.next_offset);
        let moved = end > self.high_watermark;
        if moved {
            self.high_watermark = end;
        }
        moved
    }

    /// The log is kept from `start` on. It never goes back, and never passes the high watermark.
    pub fn start_at(&mut self, start: Offset) {
        self.log_start = self.log_start.max(start.min(self.high_watermark));
    }

    /// What a read from `from` may see.
    pub fn read(&self, from: Offset) -> Result<ReadStep, OutOfRange> {
        if from < self.log_start || from > self.high_watermark {
            return Err(OutOfRange { offset: from, start: self.log_start, end: self.high_watermark });
        }
        if from == self.high_watermark {
            Ok(ReadStep::AtEnd)
        } else {
            Ok(ReadStep::Records { until: self.high_watermark })
        }
    }

    /// Other limits from now on. Producers that are remembered stay until they expire.
    pub fn set_limits(&mut self, limits: TabletLimits) {
        self.batch_bytes_max = limits.batch_bytes_max;
        self.producers.set_limits(limits.producers);
    }

    /// The limits in force.
    pub fn limits(&self) -> TabletLimits {
        TabletLimits { batch_bytes_max: self.batch_bytes_max, producers: self.producers.limits() }
    }

    /// The producers as of the appended end, in bytes ([`crate::snapshot_info`]).
    pub fn producers_snapshot(&self) -> Vec<u8> {
        snapshot::encode(&self.producers, self.next_offset, self.last_commit_time)
    }

    /// Producers that are remembered.
    pub fn producers(&self) -> usize {
        self.producers.len()
    }

    /// The producers whose ids are `from` or larger, in the order of ids, by what readers see of them (I3): one whose every batch that
    /// is remembered lies behind the high watermark is left out.
    pub fn active_producers(&self, from: ProducerId) -> impl Iterator<Item = ActiveProducer> {
        self.producers.active(from, self.high_watermark)
    }

    /// The epoch under which the bucket is open.
    pub fn epoch(&self) -> BucketEpoch {
        self.epoch
    }

    /// First offset that is kept.
    pub fn log_start(&self) -> Offset {
        self.log_start
    }

    /// End of what readers may see: all of it is durable.
    pub fn high_watermark(&self) -> Offset {
        self.high_watermark
    }

    /// The offset that the next record gets.
    pub fn next_offset(&self) -> Offset {
        self.next_offset
    }

    /// The commit time of the last batch.
    pub fn last_commit_time(&self) -> CommitTime {
        self.last_commit_time
    }

    /// The largest epoch not above `epoch` that wrote, and the offset at which the next one began (the high watermark for the
    /// last). None if no such epoch is remembered.
    pub fn epoch_end(&self, epoch: BucketEpoch) -> Option<(BucketEpoch, Offset)> {
        self.epochs.end_of(epoch, self.high_watermark)
    }

    /// Where each epoch that wrote began, in order.
    pub fn epochs(&self) -> impl Iterator<Item = EpochStart> + '_ {
        self.epochs.iter()
    }
}

/// Offsets that a batch takes. The delta is never negative in a header that was parsed.
fn offsets_of(header: &BatchHeader) -> u32 {
    u32::try_from(header.last_offset_delta).unwrap_or(0).saturating_add(1)
}

fn stamp_of(header: &BatchHeader) -> Option<Stamp> {
    header.is_idempotent().then_some(Stamp {
        producer: ProducerId(header.producer_id),
        epoch: ProducerEpoch(header.producer_epoch),
        base_sequence: Sequence(header.base_sequence),
    })
}

#[cfg(test)]
mod tests;
