//! One group: its state, and what every verb needs of it.
//!
//! Lives on: within a coordinator, one per group.
//! Owns: members, the generation, the assignments, the committed offsets, the deadlines of one group.
//! Invariants: generations only grow; a member has a deadline unless it waits for an answer; I18 what is handed out for a
//! generation is what its durable record says.
//!
//! The verbs are in files of their own: join, static_join, sync, heartbeat, leave, commit, fetch, expire, delete, describe, tick,
//! durable; what moves a group from generation to generation in rebalance.
use crate::deadlines::{Deadlines, Timer};
use crate::flights::{Flights, Then, Written};
use crate::members::{Member, Members};
use crate::offsets::Offsets;
use crate::{
    Append, Effects, GroupError, GroupId, GroupLimits, GroupValue, Handle, InstanceId, KeyedRecord, MemberId,
    MemberValue, Now, RecordKey, Reply,
};
use bytes::Bytes;
use mink_types::CommitTime;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What a group costs beside its texts and bytes.
const GROUP_OVERHEAD_BYTES: usize = 1_024;
/// What an id that was handed out costs.
const PENDING_OVERHEAD_BYTES: usize = 256;

/// Where a group is in its life. The names are Kafka's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum GroupState {
    /// No members; perhaps offsets.
    Empty,
    /// Waits for its members to join.
    PreparingRebalance,
    /// Waits for its leader's assignments, and for them to be durable.
    CompletingRebalance,
    /// Members consume what they were assigned.
    Stable,
    /// Unknown, or being deleted.
    Dead,
}

impl GroupState {
    /// As Kafka writes it.
    pub fn name(self) -> &'static str {
        match self {
            GroupState::Empty => "Empty",
            GroupState::PreparingRebalance => "PreparingRebalance",
            GroupState::CompletingRebalance => "CompletingRebalance",
            GroupState::Stable => "Stable",
            GroupState::Dead => "Dead",
        }
    }
}

/// What a step works with beside the group itself.
pub(crate) struct Step<'a, T> {
    pub(crate) now: Now,
    pub(crate) limits: &'a GroupLimits,
    /// Bytes that this group may have, given what all others have.
    pub(crate) room_bytes: usize,
    pub(crate) effects: &'a mut Effects<T>,
    pub(crate) flights: &'a mut Flights<T>,
}

impl<T> Step<'_, T> {
    pub(crate) fn after_ms(&self, ms: u64) -> u64 {
        self.now.monotonic_ms.saturating_add(ms)
    }

    /// The log is so far behind that nothing more is put on its way.
    pub(crate) fn is_full(&self) -> bool {
        self.flights.len() >= self.limits.appends_in_flight_max
    }

    pub(crate) fn reply(&mut self, token: T, reply: Reply) {
        self.effects.reply(token, reply);
    }
}

#[derive(Debug)]
pub(crate) struct Group<T> {
    pub(crate) id: GroupId,
    pub(crate) state: GroupState,
    pub(crate) generation: i32,
    pub(crate) protocol_type: Option<Arc<str>>,
    pub(crate) protocol: Option<Arc<str>>,
    pub(crate) leader: Option<MemberId>,
    pub(crate) members: Members<T>,
    /// Ids that were handed out and not used yet.
    pub(crate) pending: BTreeSet<MemberId>,
    /// Members of this generation that have not asked for their assignment yet.
    pub(crate) unsynced: BTreeSet<MemberId>,
    /// Topics of all members, when their protocol type is `consumer` and their metadata says.
    pub(crate) subscribed: Option<BTreeSet<Arc<str>>>,
    /// Since when it has no members, if it had any.
    pub(crate) emptied: Option<CommitTime>,
    /// How the wait for the first members goes on; none outside that wait.
    pub(crate) initial: Option<InitialWait>,
    /// The leader's assignments of this generation are on their way to the log: no others are taken (I18).
    pub(crate) assigning: bool,
    pub(crate) offsets: Offsets,
    /// The durable record of the group.
    pub(crate) stored: Option<Bytes>,
    /// Appends of this group in flight, and the bytes of group records among them.
    pub(crate) in_flight: usize,
    pub(crate) in_flight_bytes: usize,
    pub(crate) deadlines: Deadlines,
    /// What the coordinator counts this group with, and when it will look at it again.
    pub(crate) counted_bytes: usize,
    pub(crate) wake_ms: Option<u64>,
}

/// The wait of a group that had no members, for more of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct InitialWait {
    pub(crate) delay_ms: u64,
    pub(crate) remaining_ms: u64,
    pub(crate) member_added: bool,
}

impl<T> Group<T> {
    pub(crate) fn new(id: GroupId) -> Group<T> {
        Group {
            id,
            state: GroupState::Empty,
            generation: 0,
            protocol_type: None,
            protocol: None,
            leader: None,
            members: Members::default(),
            pending: BTreeSet::new(),
            unsynced: BTreeSet::new(),
            subscribed: None,
            emptied: None,
            initial: None,
            assigning: false,
            offsets: Offsets::default(),
            stored: None,
            in_flight: 0,
            in_flight_bytes: 0,
            deadlines: Deadlines::default(),
            counted_bytes: 0,
            wake_ms: None,
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        let id = self.id.as_str().len();
        GROUP_OVERHEAD_BYTES
            + id
            + self.members.bytes()
            + self.pending.len() * PENDING_OVERHEAD_BYTES
            + self.offsets.bytes()
            + self.stored.as_ref().map_or(0, Bytes::len)
            + self.in_flight_bytes
    }

    /// Nothing of it is stored or about to be, and nobody is in it: it may be forgotten.
    pub(crate) fn is_vacant(&self) -> bool {
        self.state == GroupState::Empty
            && self.pending.is_empty()
            && self.stored.is_none()
            && self.in_flight == 0
            && self.offsets.is_vacant()
    }

    pub(crate) fn is_consumer(&self) -> bool {
        self.protocol_type.as_deref() == Some(crate::subscription::CONSUMER)
    }

    pub(crate) fn is_leader(&self, member: &MemberId) -> bool {
        self.leader.as_ref() == Some(member)
    }

    /// Whether the request comes from a member, and from the one that holds the instance id.
    pub(crate) fn check_member(
        &self,
        member: &MemberId,
        instance: Option<&InstanceId>,
    ) -> Result<(), GroupError> {
        if let Some(instance) = instance {
            match self.members.by_instance(instance) {
                None => return Err(GroupError::UnknownMemberId),
                Some(holder) if holder != member => return Err(GroupError::FencedInstanceId),
                Some(_) => {}
            }
        }
        if self.members.contains(member) { Ok(()) } else { Err(GroupError::UnknownMemberId) }
    }

    /// A sign of life: the session starts anew.
    pub(crate) fn extend_session(&mut self, member: &MemberId, now: Now) {
        let Some(known) = self.members.get(member) else { return };
        let ends = now.monotonic_ms.saturating_add(u64::from(known.session_timeout_ms));
        self.deadlines.set(Timer::Member(member.clone()), ends);
    }

    /// Takes a member out and answers what it waited with.
    pub(crate) fn remove_member(&mut self, id: &MemberId, error: GroupError, step: &mut Step<'_, T>) {
        let Some(mut member) = self.members.remove(id) else { return };
        self.deadlines.cancel(&Timer::Member(id.clone()));
        if let Some(token) = member.join.take() {
            step.reply(token, Reply::Join(Err(crate::JoinRefused { error, member: MemberId::new("") })));
        }
        if let Some(token) = member.sync.take() {
            step.reply(token, Reply::Sync(Err(error)));
        }
        self.synced(id);
        if self.is_leader(id) {
            self.leader = self.members.iter().next().map(|member| member.id.clone());
        }
    }

    pub(crate) fn remove_pending(&mut self, id: &MemberId) -> bool {
        self.deadlines.cancel(&Timer::Pending(id.clone()));
        self.pending.remove(id)
    }

    /// A member has asked for its assignment, or never will.
    pub(crate) fn synced(&mut self, id: &MemberId) {
        if self.unsynced.remove(id) && self.unsynced.is_empty() {
            self.deadlines.cancel(&Timer::Sync);
        }
    }

    /// Puts an append in flight.
    pub(crate) fn append(
        &mut self,
        records: Vec<KeyedRecord>,
        what: Written<T>,
        step: &mut Step<'_, T>,
    ) -> Handle {
        debug_assert!(!records.is_empty());
        let handle = step.flights.begin(self.id.clone(), what);
        self.in_flight += 1;
        step.effects.appends.push(Append { handle, group: self.id.clone(), records });
        handle
    }

    /// Stores the group as it is, with these assignments in place of the members' own.
    pub(crate) fn store(
        &mut self,
        assignments: Option<&[(MemberId, Bytes)]>,
        then: Then,
        step: &mut Step<'_, T>,
    ) {
        let value = self.value(assignments).encode();
        let record =
            KeyedRecord { key: RecordKey::Group(self.id.clone()).encode(), value: Some(value.clone()) };
        self.in_flight_bytes += value.len();
        let what = Written::Group { value, generation: self.generation, then };
        self.append(vec![record], what, step);
    }

    fn value(&self, assignments: Option<&[(MemberId, Bytes)]>) -> GroupValue {
        let assignment = |member: &Member<T>| match assignments {
            Some(all) => all
                .binary_search_by(|(id, _)| id.cmp(&member.id))
                .ok()
                .and_then(|at| all.get(at))
                .map_or(Bytes::new(), |(_, bytes)| bytes.clone()),
            None => member.assignment.clone(),
        };
        let stored = |member: &Member<T>| MemberValue {
            member: member.id.clone(),
            instance: member.instance.clone(),
            client_id: Arc::clone(&member.client_id),
            client_host: Arc::clone(&member.client_host),
            session_timeout_ms: member.session_timeout_ms,
            rebalance_timeout_ms: member.rebalance_timeout_ms,
            metadata: member.metadata(self.protocol.as_deref()),
            assignment: assignment(member),
        };
        GroupValue {
            generation: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            leader: self.leader.clone(),
            emptied: self.emptied,
            members: self.members.iter().map(stored).collect(),
        }
    }
}
