//! Which buckets this node serves now, for those who wait for one.
//!
//! Lives on: the service runtime.
//! Owns: the list. Written by those who open and close: the start, then the tasks that follow the log and take chains over.
//! Invariants: a bucket is opened by one task at a time, who holds its claim.
use mink_types::{BucketEpoch, BucketId};
use std::collections::{BTreeMap, BTreeSet};
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// The buckets that are open here.
#[derive(Clone, Debug, Default)]
pub(crate) struct Opened(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    buckets: BTreeMap<BucketId, BucketEpoch>,
    claimed: BTreeSet<BucketId>,
    /// Grows with each change of `buckets`.
    version: u64,
    waiting: Vec<Waker>,
}

impl Opened {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The right to open a bucket, if it is not open and nobody else is at it.
    pub(crate) fn claim(&self, bucket: BucketId) -> Option<Claim> {
        let mut inner = self.inner();
        let free = !inner.buckets.contains_key(&bucket) && inner.claimed.insert(bucket);
        free.then(|| Claim { opened: self.clone(), bucket })
    }

    pub(crate) fn insert(&self, bucket: BucketId, epoch: BucketEpoch) {
        let mut inner = self.inner();
        inner.buckets.insert(bucket, epoch);
        inner.changed();
    }

    /// Takes a bucket off the list, if it is there with this epoch: of several who find it gone, the one who is told so closes it.
    pub(crate) fn remove(&self, bucket: &BucketId, epoch: BucketEpoch) -> bool {
        let mut inner = self.inner();
        let there = inner.buckets.get(bucket) == Some(&epoch);
        let removed = there && inner.buckets.remove(bucket).is_some();
        if removed {
            inner.changed();
        }
        removed
    }

    pub(crate) fn epoch(&self, bucket: &BucketId) -> Option<BucketEpoch> {
        self.inner().buckets.get(bucket).copied()
    }

    pub(crate) fn all(&self) -> Vec<(BucketId, BucketEpoch)> {
        self.inner().buckets.iter().map(|(bucket, epoch)| (*bucket, *epoch)).collect()
    }

    /// Waits until the list is another than at version `seen`, 0 being the empty one, and gives its version now.
    pub(crate) async fn changed(&self, seen: u64) -> u64 {
        poll_fn(|context| {
            let mut inner = self.inner();
            if inner.version != seen {
                return Poll::Ready(inner.version);
            }
            inner.wait(context.waker());
            Poll::Pending
        })
        .await
    }

    /// Waits until all of `buckets` are open.
    pub(crate) async fn wait(&self, buckets: &[BucketId]) {
        poll_fn(|context| {
            let mut inner = self.inner();
            if buckets.iter().all(|bucket| inner.buckets.contains_key(bucket)) {
                return Poll::Ready(());
            }
            inner.wait(context.waker());
            Poll::Pending
        })
        .await;
    }
}

impl Inner {
    fn changed(&mut self) {
        self.version += 1;
        self.waiting.drain(..).for_each(Waker::wake);
    }

    fn wait(&mut self, waker: &Waker) {
        if !self.waiting.iter().any(|known| known.will_wake(waker)) {
            self.waiting.push(waker.clone());
        }
    }
}

/// Stands for a bucket that is being opened.
#[derive(Debug)]
pub(crate) struct Claim {
    opened: Opened,
    pub(crate) bucket: BucketId,
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.opened.inner().claimed.remove(&self.bucket);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use mink_types::{BucketIndex, TableId};

    #[test]
    fn who_waits_is_told_when_the_last_bucket_opens() {
        let (opened, buckets) = (
            Opened::default(),
            [0, 1].map(|bucket| BucketId::unpartitioned(TableId(1), BucketIndex(bucket))),
        );
        opened.insert(buckets[0], BucketEpoch(1));
        assert!(opened.wait(&buckets).now_or_never().is_none());
        opened.insert(buckets[1], BucketEpoch(1));
        assert!(opened.wait(&buckets).now_or_never().is_some());
        assert!(!opened.remove(&buckets[0], BucketEpoch(2)), "another opening of it");
        assert_eq!([(); 2].map(|()| opened.remove(&buckets[0], BucketEpoch(1))), [true, false]);
        assert_eq!(opened.all(), [(buckets[1], BucketEpoch(1))]);
        assert_eq!(opened.changed(0).now_or_never(), Some(3), "two came, one went");
        assert!(opened.changed(3).now_or_never().is_none());
    }

    #[test]
    fn a_bucket_is_opened_by_one_at_a_time_and_once() {
        let (opened, bucket) = (Opened::default(), BucketId::unpartitioned(TableId(1), BucketIndex(0)));
        let claim = opened.claim(bucket).expect("free");
        assert!(opened.claim(bucket).is_none(), "somebody is at it");
        drop(claim);
        let claim = opened.claim(bucket).expect("given up, so free again");
        opened.insert(bucket, BucketEpoch(1));
        drop(claim);
        assert!(opened.claim(bucket).is_none(), "open");
    }
}
