//! Deleting the WAL objects that a commit has made superfluous.
//!
//! Lives on: service runtime, one deletion at a time.
//! Owns: how far the chain has been deleted.
//! Invariants: I14: only numbers below the *committed* trim go, and the object before the trim stays as the anchor that
//! shows a later takeover that its view is not stale.
use std::ops::Range;

use mink_object::ObjectStore;
use mink_types::{ClusterName, ObjectId, ObjectKey, WalChain, WalNumber};

/// Numbers that may go now, given that those below `deleted_below` went before.
pub(crate) fn deletable(deleted_below: u64, trim: WalNumber) -> Range<u64> {
    deleted_below..trim.0.saturating_sub(1).max(deleted_below)
}

/// Deletes WAL objects. Whether all are gone; if not, the next trim tries them again (a number that is gone counts as done).
pub(crate) async fn delete(
    store: &dyn ObjectStore,
    cluster: &ClusterName,
    chain: WalChain,
    numbers: Range<u64>,
) -> bool {
    let keys: Vec<ObjectKey> = numbers
        .map(|number| ObjectKey::object(cluster, ObjectId::Wal { chain, number: WalNumber(number) }))
        .collect();
    let mut all = true;
    for (key, outcome) in store.delete(&keys).await {
        if !outcome.is_done() {
            tracing::info!(%key, ?outcome, "trimmed WAL object not deleted, trying again at the next trim");
            all = false;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i14_the_anchor_before_the_trim_stays() {
        assert_eq!(deletable(0, WalNumber(0)), 0..0);
        assert_eq!(deletable(0, WalNumber(1)), 0..0);
        assert_eq!(deletable(0, WalNumber(5)), 0..4);
        assert_eq!(deletable(4, WalNumber(5)), 4..4);
        assert_eq!(deletable(4, WalNumber(9)), 4..8);
    }
}
