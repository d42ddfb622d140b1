//! What a bucket's new owner must know of the committed log before it takes an append.
//!
//! Lives on: service runtime.
//! Invariants: T-3, I6: producers come from the newest committed snapshot and every entry after it, nothing in between.
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{FutureExt as _, StreamExt as _};
use mink_types::{BucketEpoch, BucketId, CommitTime, ObjectId, Offset, OffsetRange};

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
/// Footers of one bucket that are read at a time.
const FOOTERS_AHEAD: usize = 64;

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
    pub async fn recover_bucket<'a>(
        &'a self,
        bucket: BucketId,
        objects: &'a [ObjectRange],
        end: Offset,
    ) -> Result<BucketRecovery, Error> {
        let mut recovery = BucketRecovery { end, ..BucketRecovery::default() };
        let mut newer: VecDeque<IndexEntry> = VecDeque::new();
        let mut epochs: BTreeMap<BucketEpoch, Offset> = BTreeMap::new();
        let mut older = objects;
        'objects: while let Some((rest, run)) = newest_run(older) {
            older = rest;
            let footer = |object: &'a ObjectRange| {
                let read = async move {
                    let lost = object.length == 0;
                    (object, if lost { Ok(None) } else { self.patient_footer(object).await.map(Some) })
                };
                read.boxed()
            };
            // At most so many as are read at a time.
            let footers: Vec<_> = run.iter().rev().map(footer).collect();
            let mut footers = std::pin::pin!(futures::stream::iter(footers).buffered(FOOTERS_AHEAD));
            while let Some((object, footer)) = footers.next().await {
                let Some(footer) = footer? else {
                    recovery.lost.push(object.range);
                    continue;
                };
                let part = part_of(&footer, bucket, object)?;
                let last = entries_in(part, object.range).last();
                recovery.last_commit_time =
                    recovery.last_commit_time.max(last.map(|(_, entry)| entry.commit_time));
                for start in part.epochs.iter().filter(|start| start.start < object.range.end) {
                    // Footers tell of the same epochs again, many of them of all before, too: the earliest start is the true one.
                    let known = epochs.entry(start.epoch).or_insert(start.start);
                    *known = start.start.min(*known);
                }
                // A snapshot is as of the object's last entry: it counts only if the range goes that far.
                let whole = part.range().end == object.range.end;
                if let Some(producers) = part.producers.as_ref().filter(|_| whole) {
                    recovery.producers = producers.clone();
                    recovery.snapshot_at = object.range.end;
                    break 'objects;
                }
                let entries: Vec<IndexEntry> =
                    entries_in(part, object.range).map(|(_, entry)| *entry).collect();
                for entry in entries.into_iter().rev() {
                    newer.push_front(entry);
                }
            }
        }
        let surplus = epochs.len().saturating_sub(EPOCHS_PER_BUCKET_MAX);
        let starts = epochs.into_iter().map(|(epoch, start)| EpochStart { epoch, start });
        recovery.epochs = starts.skip(surplus).collect();
        recovery.entries = newer.into();
        recovery.lost.reverse();
        Ok(recovery)
    }
}

/// The newest objects that a recovery must look at for certain, and what is older: WAL objects hold no snapshot, so all of them back
/// to the first stream object; at most [`FOOTERS_AHEAD`].
fn newest_run(objects: &[ObjectRange]) -> Option<(&[ObjectRange], &[ObjectRange])> {
    let stream = |object: &ObjectRange| matches!(object.object, ObjectId::Stream { .. });
    let needed = objects.iter().rev().take_while(|object| !stream(object)).count().saturating_add(1);
    let run = needed.min(FOOTERS_AHEAD).min(objects.len());
    (run > 0).then(|| objects.split_at(objects.len() - run))
}
