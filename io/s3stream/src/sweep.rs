//! Cleaning up after a dead chain: everything of its WAL goes but what metadata wants kept.
//!
//! Lives on: service runtime.
//! Invariants: I14, K-1: the seal that `Open` recorded and adopted objects stay (the caller names them); a chain is swept
//! only once it is dead (fenced, and no bucket hangs on it), which the caller knows. K-8: every page of the listing.
use std::collections::BTreeSet;

use mink_object::{LIST_PAGE_MAX, ObjectStore};
use mink_types::{ClusterName, ObjectId, ObjectKey, WalChain, WalNumber};

use crate::error::{Error, ErrorKind};

/// What a sweep did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Swept {
    pub deleted: u64,
    pub kept: u64,
    /// Deletions that did not happen or may not have: sweep again later.
    pub failed: u64,
}

/// Deletes the WAL objects of a dead chain whose numbers are not in `keep`, which must hold its recorded seal.
pub async fn sweep_wal(
    store: &dyn ObjectStore,
    cluster: &ClusterName,
    chain: WalChain,
    keep: &BTreeSet<WalNumber>,
) -> Result<Swept, Error> {
    if keep.is_empty() {
        let what = format!("sweep of node {} incarnation {} keeps no seal", chain.node, chain.incarnation);
        return Err(Error::new(ErrorKind::Misuse, what));
    }
    let kept = keep.iter().map(|n| ObjectKey::object(cluster, ObjectId::Wal { chain, number: *n })).collect();
    sweep(store, &ObjectKey::wal_prefix(cluster, chain), &kept).await
}

/// Deletes the stream objects of a fenced incarnation whose counters are not in `keep`: those that metadata references.
pub async fn sweep_stream(
    store: &dyn ObjectStore,
    cluster: &ClusterName,
    chain: WalChain,
    keep: &BTreeSet<u64>,
) -> Result<Swept, Error> {
    let kept =
        keep.iter().map(|n| ObjectKey::object(cluster, ObjectId::Stream { chain, counter: *n })).collect();
    sweep(store, &ObjectKey::stream_prefix(cluster, chain), &kept).await
}

async fn sweep(
    store: &dyn ObjectStore,
    prefix: &ObjectKey,
    keep: &BTreeSet<ObjectKey>,
) -> Result<Swept, Error> {
    let mut swept = Swept::default();
    let mut cursor = None;
    loop {
        let listed = store.list(prefix, cursor.as_ref(), LIST_PAGE_MAX).await;
        let page = listed.map_err(|error| Error::store(format!("listing {prefix}"), error))?;
        let (kept, gone): (Vec<_>, Vec<_>) =
            page.entries.into_iter().map(|entry| entry.key).partition(|key| keep.contains(key));
        swept.kept += kept.len() as u64;
        for (key, outcome) in store.delete(&gone).await {
            if outcome.is_done() {
                swept.deleted += 1;
            } else {
                tracing::info!(%key, ?outcome, "object of a dead chain not deleted, trying again at the next sweep");
                swept.failed += 1;
            }
        }
        if page.next.is_none() {
            return Ok(swept);
        }
        if page.next == cursor {
            return Err(Error::new(ErrorKind::Retry, format!("the listing of {prefix} does not advance")));
        }
        cursor = page.next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{World, chain, cluster, in_world};
    use mink_object::{FaultAnswer, Op};

    async fn fill(world: &World, count: u64) {
        for number in 0..count {
            let id = ObjectId::Wal { chain: chain(1), number: WalNumber(number) };
            let key = ObjectKey::object(&cluster(), id);
            assert!(world.memory.put(&key, &bytes::Bytes::from_static(b"x").into()).await.is_done());
        }
    }

    #[test]
    fn k_8_every_page_is_swept_and_what_is_kept_stays() {
        in_world(1, |world| async move {
            fill(&world, 2_500).await;
            let keep = [WalNumber(7), WalNumber(1_500), WalNumber(2_499)].into();
            let swept = sweep_wal(world.store.as_ref(), &cluster(), chain(1), &keep).await.unwrap();
            assert_eq!((swept.deleted, swept.kept, swept.failed), (2_497, 3, 0));
            assert_eq!(world.names("wal", 1).await, [7, 1_500, 2_499]);
            // Another incarnation's objects are not touched.
            let swept = sweep_wal(world.store.as_ref(), &cluster(), chain(2), &keep).await.unwrap();
            assert_eq!(swept, Swept::default());
        });
    }

    #[test]
    fn i14_a_deletion_that_fails_is_counted_and_a_sweep_without_a_seal_is_refused() {
        in_world(2, |world| async move {
            fill(&world, 3).await;
            world.seam.fault(Op::Delete, "", crate::testing::When::Before, FaultAnswer::Lost, 1);
            let keep = [WalNumber(2)].into();
            let swept = sweep_wal(world.store.as_ref(), &cluster(), chain(1), &keep).await.unwrap();
            assert_eq!((swept.deleted, swept.failed), (0, 2));
            let error =
                sweep_wal(world.store.as_ref(), &cluster(), chain(1), &BTreeSet::new()).await.unwrap_err();
            assert_eq!(*error.kind(), ErrorKind::Misuse);
            assert_eq!(world.names("wal", 1).await, [0, 1, 2]);
        });
    }
}
