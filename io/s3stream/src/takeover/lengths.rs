//! Lengths of a chain's objects, from one page of a listing: with them an object is read by its ends, in one round trip.
//!
//! Lives on: service runtime.
//! Invariants: a listing is a hint only (decision 0003): what it says is never taken for an object's end, what it leaves out is
//! never taken for absent. One that fails or is slow costs round trips and nothing else.
use std::collections::BTreeMap;
use std::time::Duration;

use mink_object::{LIST_PAGE_MAX, ListCursor};
use mink_types::{ObjectId, ObjectKey, WalNumber};

use super::Takeover;
use crate::create::Pause;

/// How long a takeover waits for a page, and how often it asks in that time.
const PATIENCE: Duration = Duration::from_secs(1);
const ATTEMPTS_MAX: u32 = 5;

/// What a listing said of the numbers from one on.
#[derive(Debug, Default)]
pub(super) struct Lengths {
    known: BTreeMap<WalNumber, u64>,
    /// There are more than one page holds.
    more: bool,
    /// The store has answered.
    answered: bool,
}

impl Lengths {
    /// The length of an object, if it was listed.
    pub(super) fn of(&self, number: WalNumber) -> Option<u64> {
        self.known.get(&number).copied()
    }

    /// The last number listed.
    pub(super) fn last(&self) -> Option<WalNumber> {
        self.known.last_key_value().map(|(number, _)| *number)
    }

    /// Whether the store has told all that it lists.
    pub(super) fn are_known(&self) -> bool {
        self.answered && !self.more
    }

    /// Whether another page would tell of numbers from `number` on.
    pub(super) fn ends_before(&self, number: WalNumber) -> bool {
        self.more && self.last().is_none_or(|last| last < number)
    }
}

impl Takeover {
    /// One page from `from` on. Untrimmed objects are bounded, so there is seldom a second.
    pub(super) async fn lengths(&self, from: WalNumber) -> Lengths {
        self.service.timeout(PATIENCE, self.list_lengths(from)).await.unwrap_or_default()
    }

    async fn list_lengths(&self, from: WalNumber) -> Lengths {
        let key = |number| ObjectKey::object(&self.cluster, ObjectId::Wal { chain: self.chain, number });
        let after = from.0.checked_sub(1).map(|before| ListCursor::after(&key(WalNumber(before))));
        let prefix = ObjectKey::wal_prefix(&self.cluster, self.chain);
        let mut pause = Pause::new(&self.config);
        for _ in 0..ATTEMPTS_MAX {
            if let Ok(page) = self.store.list(&prefix, after.as_ref(), LIST_PAGE_MAX).await {
                let number = |key: &ObjectKey| key.file_name().parse().ok().map(WalNumber);
                let known = page.entries.iter().filter_map(|entry| Some((number(&entry.key)?, entry.len)));
                return Lengths { known: known.collect(), more: page.next.is_some(), answered: true };
            }
            self.service.sleep(pause.next(self.service.random_u64())).await;
        }
        Lengths::default()
    }
}
