//! What a bucket's new owner must know of the committed log before it takes an append.
//!
//! Lives on: service runtime.
//! Invariants: T-3, I6: producers come from the newest committed snapshot and every entry after it, nothing in between.
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use mink_types::{BucketId, CommitTime, ObjectId, Offset, OffsetRange};

use super::{ObjectRange, Reader, entries_in, part_of};
use crate::create::Pause;
use crate::entry::{EpochStart, IndexEntry};
use crate::error::{Error, ErrorKind};
use crate::format::{EPOCHS_PER_BUCKET_MAX, Footer};
use crate::takeover::Recovered;

/// Attempts to read one footer, and the pauses between: in all about half a minute beside the store's own time.
const ATTEMPTS_MAX: u32 = 20;
const PAUSE_FIRST: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// A bucket's committed log in brief.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BucketRecovery {
    /// The fold's snapshot as of `snapshot_at`; empty if no object has one: then `entries` are all there are.
    pub producers: Bytes,
    pub snapshot_at: Offset,
    /// Every entry from `snapshot_at` on, in order. Fold them over `producers`.
    pub entries: Vec<IndexEntry>,
    /// Of the last entry.
    pub last_commit_time: Option<CommitTime>,
    /// Where each epoch began, as far as is known.
    pub epochs: Vec<EpochStart>,
    /// The committed end.
    pub end: Offset,
    /// Ranges that could not be looked at because they are lost: producers who wrote there are not known (P-14).
    pub lost: Vec<OffsetRange>,
}

impl Reader {
    /// Keeps the footers that a takeover has read, so that the recovery of its buckets reads none of them again.
    pub fn remember(&self, recovered: &Recovered) {
        for object in &recovered.objects {
            let id = ObjectId::Wal { chain: recovered.chain, number: object.number };
            self.inner.footers.put(id, Arc::clone(&object.footer));
        }
    }

    async fn patient_footer(&self, object: &ObjectRange) -> Result<Arc<Footer>, Error> {
        let service = &self.inner.parts.service;
        let mut pause = Pause::between(PAUSE_FIRST, PAUSE_MAX);
        for _ in 1..ATTEMPTS_MAX {
            match self.footer(object).await {
                Err(error) if *error.kind() == ErrorKind::Retry => {
                    service.sleep(pause.next(service.random_u64())).await;
                }
                end => return end,
            }
        }
        self.footer(object).await
    }

    /// Reads footers from the newest object back to the newest with a producer snapshot. `objects` are all ranges of the
    /// bucket in offset order; `end` is its committed end, also when there are none.
    pub async fn recover_bucket(
        &self,
        bucket: BucketId,
        objects: &[ObjectRange],
        end: Offset,
    ) -> Result<BucketRecovery, Error> {
        let mut recovery = BucketRecovery { end, ..BucketRecovery::default() };
        let mut newer: VecDeque<IndexEntry> = VecDeque::new();
        let mut epochs: VecDeque<EpochStart> = VecDeque::new();
        for object in objects.iter().rev() {
            if object.length == 0 {
                recovery.lost.push(object.range);
                continue;
            }
            let footer = self.patient_footer(object).await?;
            let part = part_of(&footer, bucket, object)?;
            let last = entries_in(part, object.range).last();
            recovery.last_commit_time =
                recovery.last_commit_time.max(last.map(|(_, entry)| entry.commit_time));
            // A snapshot is as of the object's last entry: it counts only if the range goes that far.
            let whole = part.range().end == object.range.end;
            for start in part.epochs.iter().rev().filter(|start| start.start < object.range.end) {
                // An older object's start of the same epoch is the earlier one.
                if epochs.front().is_some_and(|first| first.epoch == start.epoch) {
                    epochs.pop_front();
                }
                epochs.push_front(*start);
            }
            if let Some(producers) = part.producers.as_ref().filter(|_| whole) {
                recovery.producers = producers.clone();
                recovery.snapshot_at = object.range.end;
                break;
            }
            let entries: Vec<IndexEntry> = entries_in(part, object.range).map(|(_, entry)| *entry).collect();
            for entry in entries.into_iter().rev() {
                newer.push_front(entry);
            }
        }
        let surplus = epochs.len().saturating_sub(EPOCHS_PER_BUCKET_MAX);
        recovery.epochs = epochs.into_iter().skip(surplus).collect();
        recovery.entries = newer.into();
        recovery.lost.reverse();
        Ok(recovery)
    }
}
