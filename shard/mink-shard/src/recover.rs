//! Recover: what s3stream found of a bucket becomes the tablet's, and the tablet's rules become s3stream's fold of producers.
//!
//! Lives on: the service runtime (pure).
//! Invariants: T-3, I6: the fold is the tablet's own, so what a recovery reads is what the owner had.
use bytes::Bytes;
use mink_log::{EpochStart, LoggedBatch, ProducerLimits, RecoverError, Recovered, Stamp, fold_producers};
use mink_types::{BucketEpoch, BucketId, CommitTime, Offset};
use s3stream::{BucketRecovery, FoldError, IndexEntry, OpenedBucket, ProducerFold};

/// The log of a bucket that is opened under `epoch` and kept from `start` on.
pub fn recovered(epoch: BucketEpoch, start: Offset, recovery: &BucketRecovery) -> Recovered {
    Recovered {
        epoch,
        start,
        end: recovery.end,
        last_commit_time: recovery.last_commit_time.unwrap_or(CommitTime(0)),
        producers: recovery.producers.to_vec(),
        batches: recovery.entries.iter().map(LogFold::logged).collect(),
        epochs: recovery
            .epochs
            .iter()
            .map(|known| EpochStart { epoch: known.epoch, start: known.start })
            .collect(),
    }
}

/// The same log as the WAL's flusher must know it before the bucket's first chunk.
///
/// # Errors
/// When the producers' snapshot cannot be read, or is not that of this log; the bucket must stay closed.
pub fn opened(
    bucket: BucketId,
    recovered: &Recovered,
    limits: ProducerLimits,
) -> Result<OpenedBucket, RecoverError> {
    let producers = fold_producers(&recovered.producers, recovered.batches.iter().copied(), limits)?;
    Ok(OpenedBucket {
        bucket,
        epoch: recovered.epoch,
        at: recovered.end,
        producers: Bytes::from(producers),
        epochs: recovered
            .epochs
            .iter()
            .map(|known| s3stream::EpochStart { epoch: known.epoch, start: known.start })
            .collect(),
    })
}

/// [`ProducerFold`] by the rules of mink-log.
#[derive(Clone, Copy, Debug)]
pub struct LogFold {
    pub limits: ProducerLimits,
}

impl LogFold {
    /// An entry of a footer as the tablet's rules know it.
    pub fn logged(entry: &IndexEntry) -> LoggedBatch {
        LoggedBatch {
            base_offset: entry.base_offset,
            count: entry.count,
            commit_time: entry.commit_time,
            stamp: entry.producer.map(|producer| Stamp {
                producer: producer.id,
                epoch: producer.epoch,
                base_sequence: producer.base_sequence,
            }),
        }
    }
}

impl ProducerFold for LogFold {
    fn fold(&self, before: &[u8], entries: &[IndexEntry]) -> Result<Bytes, FoldError> {
        fold_producers(before, entries.iter().map(LogFold::logged), self.limits)
            .map(Bytes::from)
            .map_err(|error| FoldError { reason: error.to_string() })
    }
}
