//! A bucket's producers and epochs at the end of a run: what a recovery would have found there.
//!
//! Lives on: service runtime.
//! Invariants: T-3, I6: the newest snapshot at or before the run's end, and every entry between; nothing is guessed. P-14: a bucket whose
//! newest snapshot cannot be read is left as it is.
use bytes::Bytes;
use mink_types::Offset;

use super::runs::Run;
use super::source::Sources;
use super::{CompactionEnd, CompactionJob, Compactor};
use crate::entry::{EpochStart, IndexEntry};
use crate::error::ErrorKind;
use crate::flush::book::{BucketState, SNAPSHOT_BYTES_MAX};
use crate::format::EPOCHS_PER_BUCKET_MAX;

impl Compactor {
    /// The state at the end of a run.
    pub(super) async fn state(
        &self,
        job: &CompactionJob,
        run: &Run,
        sources: &Sources,
    ) -> Result<Option<BucketState>, CompactionEnd> {
        let (mut producers, mut epochs, from) = match known(run, sources)? {
            Some(known) => known,
            None => self.before(job, run).await?,
        };
        let mut newer: Vec<IndexEntry> = Vec::new();
        let mut at = run.start();
        for range in &run.ranges {
            at = range.range.end;
            if range.range.start < from {
                continue;
            }
            for (block, _, entry) in sources.entries(run.bucket, range)? {
                newer.push(*entry);
                let start = EpochStart { epoch: block.epoch, start: entry.base_offset };
                if epochs.last().is_none_or(|last| last.epoch < start.epoch && last.start < start.start) {
                    epochs.push(start);
                }
            }
        }
        if !newer.is_empty() {
            producers = self.fold(run, &producers, &newer)?;
        }
        if producers.len() > SNAPSHOT_BYTES_MAX {
            let reason = format!("{}: its producers take {} bytes", run.bucket, producers.len());
            return Err(unreadable(run, reason));
        }
        let surplus = epochs.len().saturating_sub(EPOCHS_PER_BUCKET_MAX);
        epochs.drain(..surplus);
        Ok(Some(BucketState { at, producers, epochs }))
    }

    /// Producers and epochs where the run begins, from what lies before it.
    async fn before(
        &self,
        job: &CompactionJob,
        run: &Run,
    ) -> Result<(Bytes, Vec<EpochStart>, Offset), CompactionEnd> {
        let start = run.start();
        let older = (job.before)(run.bucket, start);
        let found = self.parts.reader.recover_bucket(run.bucket, &older, start).await;
        let found = found.map_err(|error| match error.kind() {
            ErrorKind::Retry => CompactionEnd::Unavailable { reason: error.to_string() },
            _ => unreadable(run, error.to_string()),
        })?;
        if let Some(damaged) = found.unreadable.first() {
            // It is none of the sources, so sparing it would let the same job be planned at once.
            return Err(unreadable(run, damaged.error.to_string()));
        }
        let mut producers = found.producers;
        if let Some(lost) = found.lost.last() {
            let marked = self.flusher.fold.lost_below(&producers, lost.end);
            producers = marked.map_err(|error| unreadable(run, error.to_string()))?;
        }
        if !found.entries.is_empty() {
            producers = self.fold(run, &producers, &found.entries)?;
        }
        Ok((producers, found.epochs, start))
    }

    fn fold(&self, run: &Run, before: &[u8], entries: &[IndexEntry]) -> Result<Bytes, CompactionEnd> {
        self.flusher.fold.fold(before, entries).map_err(|error| unreadable(run, error.to_string()))
    }
}

/// The newest snapshot in the run itself, and the offset it is as of.
fn known(run: &Run, sources: &Sources) -> Result<Option<(Bytes, Vec<EpochStart>, Offset)>, CompactionEnd> {
    for range in run.ranges.iter().rev() {
        let part = sources.part(run.bucket, range)?;
        // A snapshot is as of the part's last entry.
        let whole = part.range().end == range.range.end;
        if let Some(producers) = part.producers.as_ref().filter(|_| whole) {
            let starts = part.epochs.iter().filter(|start| start.start < range.range.end);
            return Ok(Some((producers.clone(), starts.copied().collect(), range.range.end)));
        }
    }
    Ok(None)
}

fn unreadable(run: &Run, reason: String) -> CompactionEnd {
    // The bucket's last source stands for it: who spares that object leaves the bucket alone.
    let object = run.ranges.last().map(|range| range.object);
    match object {
        Some(object) => CompactionEnd::Unreadable { object, reason },
        None => CompactionEnd::Unavailable { reason },
    }
}
