//! Recover: what s3stream found of a bucket becomes the tablet's, and the tablet's rules become s3stream's fold of producers.
//!
//! Lives on: the service runtime (pure).
//! Invariants: T-3, I6: the fold is the tablet's own, so what a recovery reads is what the owner had; where a part of the log is lost with
//! what it knew of producers, both are told so (decision 0016).
use bytes::Bytes;
use mink_log::{
    EpochStart, LoggedBatch, ProducerLimits, RecoverError, Recovered, Stamp, fold_producers, lost_below,
};
use mink_types::{BucketEpoch, BucketId, CommitTime, Offset};
use s3stream::{BucketRecovery, FoldError, IndexEntry, OpenedBucket, ProducerFold};

/// The log of a bucket that is opened under `epoch` and kept from `start` on.
///
/// # Errors
/// When a part is lost and the producers' snapshot before it cannot be read; the bucket must stay closed.
pub fn recovered(
    epoch: BucketEpoch,
    start: Offset,
    recovery: &BucketRecovery,
) -> Result<Recovered, RecoverError> {
    let producers = match recovery.lost.last() {
        Some(lost) => lost_below(&recovery.producers, lost.end)?,
        None => recovery.producers.to_vec(),
    };
    Ok(Recovered {
        epoch,
        start,
        end: recovery.end,
        last_commit_time: recovery.last_commit_time.unwrap_or(CommitTime(0)),
        producers,
        batches: recovery.entries.iter().map(LogFold::logged).collect(),
        epochs: recovery
            .epochs
            .iter()
            .map(|known| EpochStart { epoch: known.epoch, start: known.start })
            .collect(),
    })
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

    fn lost_below(&self, before: &[u8], offset: Offset) -> Result<Bytes, FoldError> {
        lost_below(before, offset).map(Bytes::from).map_err(|error| FoldError { reason: error.to_string() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mink_types::OffsetRange;

    fn recovery(lost: &[(u64, u64)]) -> BucketRecovery {
        let lost = lost.iter().map(|(start, end)| OffsetRange { start: Offset(*start), end: Offset(*end) });
        BucketRecovery { lost: lost.collect(), end: Offset(100), ..BucketRecovery::default() }
    }

    #[test]
    fn p_14_a_loss_marks_the_producers_for_the_tablet_and_for_the_flusher() {
        let limits = ProducerLimits { producers_max: 10, expiry_ms: 1_000 };
        let lost = recovered(BucketEpoch(7), Offset(0), &recovery(&[(10, 20), (60, 90)])).expect("sound");
        assert_eq!(lost.producers, lost_below(&[], Offset(90)).expect("sound"));
        let bucket = BucketId::unpartitioned(mink_types::TableId(1), mink_types::BucketIndex(0));
        let opened = opened(bucket, &lost, limits).expect("sound");
        assert_eq!((opened.at, opened.producers.as_ref()), (Offset(100), lost.producers.as_slice()));
        let whole = recovered(BucketEpoch(7), Offset(0), &recovery(&[])).expect("sound");
        assert!(whole.producers.is_empty());
    }
}
