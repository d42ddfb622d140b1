//! What a bucket's new owner must know of the committed log before it takes an append.
//!
//! Lives on: service runtime.
//! Invariants: T-3, I6: producers come from the newest committed snapshot that can be read and every entry after it; P-14: an object
//! that is gone or damaged for certain is passed over, and its range is told, for what it knew of producers is lost (decision 0016).
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{FutureExt as _, StreamExt as _};
use mink_types::{BucketEpoch, BucketId, CommitTime, ObjectId, Offset, OffsetRange};

use super::damage::{LOOK_PAUSE, LOOKS};
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
    /// The fold's snapshot as of `snapshot_at`; empty if no object has one: then `entries` are all there are that can be read.
    pub producers: Bytes,
    pub snapshot_at: Offset,
    /// Every entry from `snapshot_at` on that can be read, in order. Fold them over `producers`.
    pub entries: Vec<IndexEntry>,
    /// Of the last entry that can be read.
    pub last_commit_time: Option<CommitTime>,
    /// Where each epoch began, as far as is known.
    pub epochs: Vec<EpochStart>,
    /// The committed end.
    pub end: Offset,
    /// Ranges that could not be looked at, in order: producers who wrote there are not known (P-14).
    pub lost: Vec<OffsetRange>,
    /// Those of them of which metadata does not say that they are lost.
    pub unreadable: Vec<Unreadable>,
}

/// A range whose object is gone, or damaged where it tells what is in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unreadable {
    pub object: ObjectId,
    pub range: OffsetRange,
    /// [`ErrorKind::Missing`] or [`ErrorKind::Corrupt`].
    pub error: Error,
}

/// What a look at an object has brought.
enum Looked {
    Footer(Arc<Footer>),
    /// Metadata say that it is lost.
    Lost,
    Unreadable(Error),
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

    /// The footer of an object, or what is wrong with it for certain.
    async fn look(&self, object: &ObjectRange) -> Result<Looked, Error> {
        if object.length == 0 {
            return Ok(Looked::Lost);
        }
        let (damage, service) = (&self.inner.damage, &self.inner.parts.service);
        if let Some(error) = damage.known(object.object, service.now()) {
            return Ok(Looked::Unreadable(error));
        }
        let mut looks = 1;
        let error = loop {
            match self.patient_footer(object).await {
                Ok(footer) => {
                    damage.forget(object.object);
                    return Ok(Looked::Footer(footer));
                }
                Err(error) => match error.kind() {
                    ErrorKind::Missing { .. } | ErrorKind::Corrupt { .. } if looks >= LOOKS => break error,
                    ErrorKind::Missing { .. } | ErrorKind::Corrupt { .. } => {}
                    _ => return Err(error),
                },
            }
            looks += 1;
            service.sleep(LOOK_PAUSE).await;
        };
        damage.note(object.object, error.clone(), service.now());
        Ok(Looked::Unreadable(error))
    }

    /// Whether a recovery has found the object damaged and nobody was told so yet: whoever asks tells.
    pub fn tell_damaged(&self, object: ObjectId) -> bool {
        self.inner.damage.tell(object)
    }

    /// Reads footers from the newest object back to the newest with a producer snapshot. `objects` are all ranges of the
    /// bucket in offset order; `end` is its committed end, also when there are none.
    ///
    /// What cannot be read for certain is passed over. Who may have planned on an old view must look whether a newer one names
    /// the objects in `unreadable`, too.
    ///
    /// # Errors
    /// [`ErrorKind::Retry`]: the store does not answer. [`ErrorKind::Corrupt`]: an object that is whole is not what metadata say of it.
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
        let mut streams = 1;
        'objects: while let Some((rest, run)) = newest_run(older, streams) {
            older = rest;
            let unreadable = recovery.unreadable.len();
            let footer = |object: &'a ObjectRange| async move { (object, self.look(object).await) }.boxed();
            // At most so many as are read at a time.
            let footers: Vec<_> = run.iter().rev().map(footer).collect();
            let mut footers = std::pin::pin!(futures::stream::iter(footers).buffered(FOOTERS_AHEAD));
            while let Some((object, looked)) = footers.next().await {
                let footer = match looked? {
                    Looked::Footer(footer) => footer,
                    looked => {
                        recovery.lost.push(object.range);
                        if let Looked::Unreadable(error) = looked {
                            let (object, range) = (object.object, object.range);
                            recovery.unreadable.push(Unreadable { object, range, error });
                        }
                        continue;
                    }
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
            // Behind one that is damaged there may be many: they are looked at together.
            let more = recovery.unreadable.len() > unreadable;
            streams = if more { streams.saturating_mul(2).min(FOOTERS_AHEAD) } else { streams };
        }
        let surplus = epochs.len().saturating_sub(EPOCHS_PER_BUCKET_MAX);
        let starts = epochs.into_iter().map(|(epoch, start)| EpochStart { epoch, start });
        recovery.epochs = starts.skip(surplus).collect();
        recovery.entries = newer.into();
        recovery.lost.reverse();
        recovery.unreadable.reverse();
        Ok(recovery)
    }
}

/// The newest objects that a recovery must look at, and what is older: WAL objects hold no snapshot, so all of them back to the last
/// of so many stream objects; at most [`FOOTERS_AHEAD`].
fn newest_run(objects: &[ObjectRange], streams: usize) -> Option<(&[ObjectRange], &[ObjectRange])> {
    let stream = |object: &ObjectRange| matches!(object.object, ObjectId::Stream { .. });
    let places = objects.iter().rev().enumerate().filter(|(_, object)| stream(object)).map(|(at, _)| at);
    let needed = places.take(streams).last().map_or(objects.len(), |last| last.saturating_add(1));
    let run = needed.min(FOOTERS_AHEAD).min(objects.len());
    (run > 0).then(|| objects.split_at(objects.len() - run))
}
