//! What the flusher remembers of each open bucket: its producers and epochs at the committed end.
//!
//! Lives on: service runtime; filled by whoever opens a bucket, hence the lock (held for a look-up, never over a wait).
//! Owns: one producer snapshot per open bucket.
//! Invariants: T-3, I6: a snapshot is written only if it was folded without a gap from one that was known to be right at
//! the range's start; otherwise the object goes without, and a recovery folds from an older one.
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use mink_types::{BucketId, Offset};

use super::shelf::Shelf;
use crate::commit::{OpenedBucket, ProducerFold};
use crate::entry::{Entry, EpochStart, IndexEntry};
use crate::format::{EPOCHS_PER_BUCKET_MAX, epochs_of};

/// Longest producer snapshot that goes into a footer, in bytes; a longer one is left out and the recovery reads more. A bucket takes
/// no more producers than fit.
pub(crate) const SNAPSHOT_BYTES_MAX: usize = 4 << 20;

/// A bucket at an offset.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct BucketState {
    pub(crate) at: Offset,
    pub(crate) producers: Bytes,
    pub(crate) epochs: Vec<EpochStart>,
}

impl BucketState {
    /// The state after `entries`, which begin at `self.at`.
    pub(crate) fn after(&self, entries: &[&Entry], fold: &dyn ProducerFold) -> Option<BucketState> {
        let first = entries.first()?;
        if first.base_offset != self.at {
            return None;
        }
        let index: Vec<IndexEntry> = entries.iter().map(|entry| entry.index()).collect();
        let producers = match fold.fold(&self.producers, &index) {
            Ok(producers) if producers.len() <= SNAPSHOT_BYTES_MAX => producers,
            Ok(producers) => {
                let bytes = producers.len();
                tracing::warn!(bucket = %first.bucket, bytes, "producer snapshot too long for a footer, left out");
                return None;
            }
            Err(error) => {
                tracing::error!(bucket = %first.bucket, %error, "producer snapshot left out of a stream object");
                return None;
            }
        };
        let mut epochs = self.epochs.clone();
        for start in epochs_of(entries) {
            if epochs.last().is_none_or(|last| last.epoch < start.epoch && last.start < start.start) {
                epochs.push(start);
            }
        }
        let surplus = epochs.len().saturating_sub(EPOCHS_PER_BUCKET_MAX);
        epochs.drain(..surplus);
        Some(BucketState { at: entries.last()?.end(), producers, epochs })
    }
}

/// The states of all open buckets.
#[derive(Debug, Default)]
pub(crate) struct Book {
    shelf: Mutex<Shelf>,
}

impl Book {
    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        // A change notes a place only when its bytes are there: a panic in between leaves bytes that nobody refers to.
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn open(&self, opened: OpenedBucket) {
        let OpenedBucket { bucket, at, producers, epochs, .. } = opened;
        self.shelf().put(bucket, &BucketState { at, producers, epochs });
    }

    pub(crate) fn close(&self, bucket: &BucketId) {
        self.shelf().remove(bucket);
    }

    /// The state of `bucket` at `at`, if it is known. At offset 0 nothing has been, which is known.
    pub(crate) fn at(&self, bucket: &BucketId, at: Offset) -> Option<BucketState> {
        match self.shelf().get(bucket) {
            Some(state) if state.at == at => Some(state),
            _ if at == Offset(0) => Some(BucketState::default()),
            _ => None,
        }
    }

    /// Notes states that have been committed.
    pub(crate) fn committed(&self, states: Vec<(BucketId, Option<BucketState>)>) {
        let mut shelf = self.shelf();
        for (bucket, state) in states {
            match state {
                Some(state) => shelf.put(bucket, &state),
                None => shelf.remove(&bucket),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{CountingFold, bucket, entry};

    #[test]
    fn t_3_a_snapshot_is_folded_only_without_a_gap() {
        let book = Book::default();
        let entries = [entry(1, 0, 0, 2, b"ab"), entry(1, 1, 2, 3, b"cde")];
        let refs: Vec<&Entry> = entries.iter().collect();
        let state = book.at(&bucket(1), Offset(0)).unwrap().after(&refs, &CountingFold).unwrap();
        assert_eq!((state.at, state.producers.as_ref()), (Offset(5), &b"5"[..]));
        assert_eq!(state.epochs.len(), 2);
        book.committed(vec![(bucket(1), Some(state.clone()))]);
        assert_eq!(book.at(&bucket(1), Offset(5)), Some(state.clone()));
        assert_eq!(book.at(&bucket(1), Offset(6)), None);
        assert_eq!(state.after(&refs, &CountingFold), None);
        assert_eq!(book.at(&bucket(2), Offset(5)), None);
    }
}
