//! The members of one group, and what is counted over them.
//!
//! Lives on: within a group.
//! Owns: members, who holds which instance id, the requests they wait with.
//! Invariants: counts and bytes are those of the members that are there; an instance id names one member.
use crate::{InstanceId, MemberId, Protocol};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a member costs beside its texts and bytes.
const MEMBER_OVERHEAD_BYTES: usize = 512;
const PROTOCOL_OVERHEAD_BYTES: usize = 64;

#[derive(Debug)]
pub(crate) struct Member<T> {
    pub(crate) id: MemberId,
    pub(crate) instance: Option<InstanceId>,
    pub(crate) client_id: Arc<str>,
    pub(crate) client_host: Arc<str>,
    pub(crate) session_timeout_ms: u32,
    pub(crate) rebalance_timeout_ms: u32,
    pub(crate) protocols: Vec<Protocol>,
    pub(crate) assignment: Bytes,
    /// It has not been in a generation yet, so it cannot send heartbeats.
    pub(crate) is_new: bool,
    pub(crate) join: Option<T>,
    pub(crate) sync: Option<T>,
}

impl<T> Member<T> {
    pub(crate) fn is_static(&self) -> bool {
        self.instance.is_some()
    }

    /// What it gave for a protocol.
    pub(crate) fn metadata(&self, protocol: Option<&str>) -> Bytes {
        let chosen = self.protocols.iter().find(|known| Some(&*known.name) == protocol);
        chosen.map(|chosen| chosen.metadata.clone()).unwrap_or_default()
    }

    fn bytes(&self) -> usize {
        let names = self.id.as_str().len()
            + self.instance.as_ref().map_or(0, |instance| instance.as_str().len())
            + self.client_id.len()
            + self.client_host.len();
        MEMBER_OVERHEAD_BYTES + names + protocol_bytes(&self.protocols) + self.assignment.len()
    }
}

/// What protocols cost to keep.
pub(crate) fn protocol_bytes(protocols: &[Protocol]) -> usize {
    protocols.iter().map(|p| PROTOCOL_OVERHEAD_BYTES + p.name.len() + p.metadata.len()).sum()
}

#[derive(Debug)]
pub(crate) struct Members<T> {
    by_id: BTreeMap<MemberId, Member<T>>,
    by_instance: BTreeMap<InstanceId, MemberId>,
    /// How many members support each protocol.
    supporters: BTreeMap<Arc<str>, usize>,
    awaiting_join: usize,
    bytes: usize,
}

impl<T> Default for Members<T> {
    fn default() -> Members<T> {
        Members {
            by_id: BTreeMap::new(),
            by_instance: BTreeMap::new(),
            supporters: BTreeMap::new(),
            awaiting_join: 0,
            bytes: 0,
        }
    }
}

impl<T> Members<T> {
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Members whose join waits for an answer.
    pub(crate) fn awaiting_join(&self) -> usize {
        self.awaiting_join
    }

    pub(crate) fn get(&self, id: &MemberId) -> Option<&Member<T>> {
        self.by_id.get(id)
    }

    pub(crate) fn contains(&self, id: &MemberId) -> bool {
        self.by_id.contains_key(id)
    }

    pub(crate) fn by_instance(&self, instance: &InstanceId) -> Option<&MemberId> {
        self.by_instance.get(instance)
    }

    /// In ascending order of their ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Member<T>> {
        self.by_id.values()
    }

    pub(crate) fn ids(&self) -> Vec<MemberId> {
        self.by_id.keys().cloned().collect()
    }

    /// The largest rebalance time-out of all, in ms.
    pub(crate) fn rebalance_timeout_ms(&self) -> u64 {
        u64::from(self.iter().map(|member| member.rebalance_timeout_ms).max().unwrap_or(0))
    }

    /// Adds a member whose id, and instance id, nobody has.
    pub(crate) fn insert(&mut self, member: Member<T>) {
        debug_assert!(!self.contains(&member.id));
        self.bytes += member.bytes();
        self.awaiting_join += usize::from(member.join.is_some());
        self.support(&member.protocols);
        if let Some(instance) = &member.instance {
            let before = self.by_instance.insert(instance.clone(), member.id.clone());
            debug_assert!(before.is_none());
        }
        self.by_id.insert(member.id.clone(), member);
    }

    pub(crate) fn remove(&mut self, id: &MemberId) -> Option<Member<T>> {
        let member = self.by_id.remove(id)?;
        self.bytes -= member.bytes();
        self.awaiting_join -= usize::from(member.join.is_some());
        self.unsupport(&member.protocols);
        if let Some(instance) = &member.instance {
            self.by_instance.remove(instance);
        }
        Some(member)
    }

    /// What a member says of itself when it joins again.
    pub(crate) fn update(
        &mut self,
        id: &MemberId,
        protocols: Vec<Protocol>,
        session_ms: u32,
        rebalance_ms: u32,
    ) {
        if !self.contains(id) {
            return;
        }
        self.support(&protocols);
        let Some(member) = self.by_id.get_mut(id) else { return };
        self.bytes -= member.bytes();
        let before = std::mem::replace(&mut member.protocols, protocols);
        (member.session_timeout_ms, member.rebalance_timeout_ms) = (session_ms, rebalance_ms);
        self.bytes += member.bytes();
        self.unsupport(&before);
    }

    pub(crate) fn set_assignment(&mut self, id: &MemberId, assignment: Bytes) {
        if let Some(member) = self.by_id.get_mut(id) {
            self.bytes -= member.assignment.len();
            self.bytes += assignment.len();
            member.assignment = assignment;
        }
    }

    /// It has been in a generation.
    pub(crate) fn set_known(&mut self, id: &MemberId) {
        if let Some(member) = self.by_id.get_mut(id) {
            member.is_new = false;
        }
    }

    /// Lets a join wait. Gives back one that waited already, or the token when there is no such member.
    pub(crate) fn park_join(&mut self, id: &MemberId, token: T) -> Option<T> {
        let Some(member) = self.by_id.get_mut(id) else { return Some(token) };
        let before = member.join.replace(token);
        self.awaiting_join += usize::from(before.is_none());
        before
    }

    pub(crate) fn take_join(&mut self, id: &MemberId) -> Option<T> {
        let token = self.by_id.get_mut(id)?.join.take()?;
        self.awaiting_join -= 1;
        Some(token)
    }

    /// Lets a sync wait. Gives back one that waited already, or the token when there is no such member.
    pub(crate) fn park_sync(&mut self, id: &MemberId, token: T) -> Option<T> {
        match self.by_id.get_mut(id) {
            Some(member) => member.sync.replace(token),
            None => Some(token),
        }
    }

    pub(crate) fn take_sync(&mut self, id: &MemberId) -> Option<T> {
        self.by_id.get_mut(id)?.sync.take()
    }

    /// Whether all members support one of these.
    pub(crate) fn support_one_of(&self, protocols: &[Protocol]) -> bool {
        protocols.iter().any(|protocol| self.all_support(&protocol.name))
    }

    /// The protocol that all support and most prefer; of equals the one whose name sorts first.
    pub(crate) fn choose_protocol(&self) -> Option<Arc<str>> {
        let mut votes: BTreeMap<&Arc<str>, usize> = BTreeMap::new();
        for member in self.iter() {
            let vote = member.protocols.iter().map(|p| &p.name).find(|name| self.all_support(name));
            *votes.entry(vote?).or_default() += 1;
        }
        votes.into_iter().rev().max_by_key(|(_, count)| *count).map(|(name, _)| Arc::clone(name))
    }

    fn all_support(&self, protocol: &Arc<str>) -> bool {
        self.supporters.get(protocol).copied().unwrap_or(0) == self.len()
    }

    fn support(&mut self, protocols: &[Protocol]) {
        for protocol in protocols {
            *self.supporters.entry(Arc::clone(&protocol.name)).or_default() += 1;
        }
    }

    fn unsupport(&mut self, protocols: &[Protocol]) {
        for protocol in protocols {
            if let Some(count) = self.supporters.get_mut(&protocol.name) {
                *count -= 1;
                if *count == 0 {
                    self.supporters.remove(&protocol.name);
                }
            }
        }
    }
}
