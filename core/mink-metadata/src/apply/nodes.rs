//! Lives of nodes, and facts about the cluster: register, fence, leave, sweep, probe, feature level.
//!
//! Lives on: anywhere (pure).
//! Invariants: I5 (what a fenced incarnation sends changes nothing), I13 (an incarnation is the index of its row).
use mink_types::{Incarnation, WalChain, WalNumber};

use super::{Judged, Position, TEXT_BYTES_MAX};
use crate::state::{IncarnationState, Probe};
use crate::{Answer, Invalid, LimitKind, Refusal, Registration, State};

/// Most listeners of a registration.
const LISTENERS_MAX: usize = 64;
/// Most stores whose verdict is kept.
const STORES_MAX: usize = 256;

fn bounded<'a>(texts: impl IntoIterator<Item = &'a String>) -> Result<(), Refusal> {
    if texts.into_iter().any(|text| text.len() > TEXT_BYTES_MAX) {
        return Err(Refusal::Limit { limit: LimitKind::TextBytes, max: TEXT_BYTES_MAX as u64 });
    }
    Ok(())
}

impl State {
    /// The incarnation, if it is registered and may still act.
    pub(super) fn acting(&self, id: Incarnation) -> Result<&IncarnationState, Refusal> {
        match self.incarnations.get(&id) {
            None => Err(Refusal::NotRegistered { incarnation: id }),
            Some(state) if state.fenced => Err(Refusal::Fenced { incarnation: id }),
            Some(state) => Ok(state),
        }
    }

    pub(super) fn register(&mut self, at: Position, registration: &Registration) -> Judged {
        let r = registration;
        if at.registered {
            return Err(Refusal::Invalid(Invalid::SecondRegistration));
        }
        if r.listeners.len() > LISTENERS_MAX {
            return Err(Refusal::Limit { limit: LimitKind::Listeners, max: LISTENERS_MAX as u64 });
        }
        bounded([&r.storage, &r.wal_storage, &r.version])?;
        bounded(r.listeners.iter().flat_map(|listener| [&listener.name, &listener.host]))?;
        if r.feature_level_max < self.feature_level {
            return Err(Refusal::Invalid(Invalid::FeatureLevel));
        }
        let incarnation = Incarnation(at.index.0);
        let state = IncarnationState {
            chain: WalChain { node: r.node, incarnation, tag: r.tag },
            storage: r.storage.clone(),
            wal_storage: r.wal_storage.clone(),
            listeners: r.listeners.clone(),
            version: r.version.clone(),
            feature_level_max: r.feature_level_max,
            fenced: false,
            drained: false,
            trim: WalNumber(0),
            seal: None,
            swept: false,
        };
        self.incarnations.insert(incarnation, state);
        Ok(Answer::Registered(incarnation))
    }

    pub(super) fn fence(&mut self, incarnation: Incarnation, by: Incarnation) -> Judged {
        self.acting(by)?;
        let state = self.incarnations.get_mut(&incarnation).ok_or(Refusal::NotRegistered { incarnation })?;
        if state.fenced {
            return Err(Refusal::AlreadyFenced { incarnation });
        }
        state.fenced = true;
        Ok(Answer::Done)
    }

    pub(super) fn leave(&mut self, id: Incarnation, trim: WalNumber, seal: Option<WalNumber>) -> Judged {
        let trim = self.acting(id)?.trim.max(trim);
        if seal.is_some_and(|seal| seal < trim) {
            return Err(Refusal::Invalid(Invalid::SealBelowTrim));
        }
        // The seal stands where the first uncommitted byte would: every bucket is as after a release.
        if seal == Some(trim) {
            let hanging: Vec<_> = self.hanging(id).collect();
            for bucket in hanging {
                self.set_owner(bucket, None);
            }
        }
        if let Some(state) = self.incarnations.get_mut(&id) {
            state.fenced = true;
            state.drained = true;
            state.trim = trim;
            state.seal = seal;
        }
        Ok(Answer::Done)
    }

    pub(super) fn swept(&mut self, incarnation: Incarnation) -> Judged {
        let hangs = self.hangs(incarnation);
        let state = self.incarnations.get_mut(&incarnation).ok_or(Refusal::NotRegistered { incarnation })?;
        if !state.fenced {
            return Err(Refusal::NotFenced { incarnation });
        }
        if hangs {
            return Err(Refusal::StillNeeded { incarnation });
        }
        state.swept = true;
        Ok(Answer::Done)
    }

    pub(super) fn probed(&mut self, at: Position, store: &String, sound: bool, detail: &String) -> Judged {
        bounded([store, detail])?;
        if self.probes.len() >= STORES_MAX && !self.probes.contains_key(store) {
            return Err(Refusal::Limit { limit: LimitKind::Stores, max: STORES_MAX as u64 });
        }
        self.probes.insert(store.clone(), Probe { sound, detail: detail.clone(), at: at.index });
        Ok(Answer::Done)
    }

    pub(super) fn raise_feature_level(&mut self, level: u32) -> Judged {
        let next = self.feature_level.checked_add(1) == Some(level);
        if !next || self.live().any(|(_, state)| state.feature_level_max < level) {
            return Err(Refusal::Invalid(Invalid::FeatureLevel));
        }
        self.feature_level = level;
        Ok(Answer::Done)
    }
}
