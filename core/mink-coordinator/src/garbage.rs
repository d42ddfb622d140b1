//! What may be deleted, and what must stay for ever (decision 0003).
//!
//! Lives on: anywhere (pure).
//! Invariants: I14 (what may go in one view may go in every later one), K-1 (the recorded seal outlives everything).
use std::collections::BTreeSet;

use mink_metadata::State;
use mink_types::{Incarnation, ObjectId, WalChain, WalNumber};

/// The cleaning of a dead incarnation's prefixes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sweep {
    pub incarnation: Incarnation,
    pub chain: WalChain,
    /// Where its stream objects lie.
    pub storage: String,
    /// Where its WAL objects lie.
    pub wal_storage: String,
    pub keep: Keep,
}

/// What stays of a dead incarnation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Keep {
    chain: WalChain,
    seal: Option<WalNumber>,
    /// Adopted WAL objects and stream objects that ranges refer to, and doomed ones, which go by their own rule.
    named: BTreeSet<ObjectId>,
}

impl Keep {
    /// Whether the object must stay. `is_seal` says what was found in it; it matters for WAL objects alone, and only if
    /// [`Keep::must_look`].
    pub fn keeps(&self, id: ObjectId, is_seal: bool) -> bool {
        match id {
            ObjectId::Wal { chain, .. } | ObjectId::Stream { chain, .. } if chain != self.chain => true,
            ObjectId::Wal { number, .. } => {
                self.seal.map_or(is_seal, |seal| seal == number) || self.named.contains(&id)
            }
            ObjectId::Stream { .. } => self.named.contains(&id),
        }
    }

    /// The numbers of WAL objects that stay: the recorded seal and what was adopted.
    pub fn wal_numbers(&self) -> BTreeSet<WalNumber> {
        let adopted = self.named.iter().filter_map(|id| match id {
            ObjectId::Wal { number, .. } => Some(*number),
            ObjectId::Stream { .. } => None,
        });
        adopted.chain(self.seal).collect()
    }

    /// The counters of stream objects that stay.
    pub fn stream_counters(&self) -> BTreeSet<u64> {
        let counter = |id: &ObjectId| match id {
            ObjectId::Stream { counter, .. } => Some(*counter),
            ObjectId::Wal { .. } => None,
        };
        self.named.iter().filter_map(counter).collect()
    }

    /// No open has recorded a seal, so every seal stays: a WAL object must be looked at before it goes.
    pub fn must_look(&self) -> bool {
        self.seal.is_none()
    }
}

/// The sweep of an incarnation, if it is dead.
pub(crate) fn sweep(view: &State, id: Incarnation) -> Option<Sweep> {
    let state = view.incarnation(id).filter(|_| view.dead(id))?;
    let chain = state.chain;
    let of_chain = |object: &ObjectId| match object {
        ObjectId::Wal { chain: of, .. } | ObjectId::Stream { chain: of, .. } => *of == chain,
    };
    let named =
        view.objects().map(|(id, _)| *id).chain(view.doomed().map(|(id, _)| *id)).filter(of_chain).collect();
    Some(Sweep {
        incarnation: id,
        chain,
        storage: state.storage.clone(),
        wal_storage: state.wal_storage.clone(),
        keep: Keep { chain, seal: state.seal, named },
    })
}

/// WAL numbers below this one may be deleted although the chain lives: all below the committed trim but the last, which is
/// the anchor.
pub fn wal_floor(view: &State, id: Incarnation) -> WalNumber {
    WalNumber(view.incarnation(id).map_or(0, |state| state.trim.0.saturating_sub(1)))
}
