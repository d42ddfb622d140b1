//! JoinGroup: a member asks to be part of the next generation.
//!
//! Lives on: within a group.
//! Invariants: a refused join changes nothing, but for a group that is above its maximum; a member that joins again takes the
//! place of its earlier join.
use crate::deadlines::Timer;
use crate::group::{Group, GroupState, Step};
use crate::members::{Member, protocol_bytes};
use crate::{GroupError, GroupLimits, JoinRefused, JoinRequest, MemberId, Reply};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::sync::Arc;

/// How long a new member may wait for its first generation, in ms. It cannot send heartbeats meanwhile, and if its connection
/// is gone nobody will tell.
const NEW_MEMBER_JOIN_MS: u64 = 5 * 60 * 1_000;

/// Longest client id and instance id, in bytes: the ids made of them fit Kafka's strings.
const NAME_BYTES_MAX: usize = 16 << 10;

const _: () = assert!(NAME_BYTES_MAX + 64 <= i16::MAX as usize, "a member id is a Kafka string");

/// A join whose numbers have been checked.
pub(crate) struct Joining {
    pub(crate) request: JoinRequest,
    pub(crate) session_timeout_ms: u32,
    pub(crate) rebalance_timeout_ms: u32,
}

pub(crate) fn refused(error: GroupError, member: MemberId) -> Reply {
    Reply::Join(Err(JoinRefused { error, member }))
}

impl Joining {
    /// Checks what can be checked without the group.
    pub(crate) fn check(mut request: JoinRequest, limits: &GroupLimits) -> Result<Joining, GroupError> {
        let session_timeout_ms = u32::try_from(request.session_timeout_ms)
            .ok()
            .filter(|ms| (limits.session_timeout_min_ms..=limits.session_timeout_max_ms).contains(ms))
            .ok_or(GroupError::InvalidSessionTimeout)?;
        // Version 0 has no rebalance time-out; -1 or 0 would throw members out before they can join again (K-20).
        let rebalance_timeout_ms = request
            .rebalance_timeout_ms
            .and_then(|ms| u32::try_from(ms).ok())
            .filter(|ms| *ms > 0)
            .unwrap_or(session_timeout_ms);
        let instance = request.instance.as_ref().map_or("", |instance| instance.as_str());
        let mut names = BTreeSet::new();
        request.protocols.retain(|protocol| names.insert(Arc::clone(&protocol.name)));
        let names = request.client_id.len() + request.client_host.len() + instance.len();
        if request.client_id.len() > NAME_BYTES_MAX
            || request.client_host.len() > NAME_BYTES_MAX
            || instance.len() > NAME_BYTES_MAX
            || names + protocol_bytes(&request.protocols) > limits.member_bytes_max
        {
            return Err(GroupError::InvalidRequest);
        }
        Ok(Joining { request, session_timeout_ms, rebalance_timeout_ms })
    }
}

impl<T> Group<T> {
    pub(crate) fn join(&mut self, joining: Joining, token: T, step: &mut Step<'_, T>) {
        let member = joining.request.member.clone();
        let refusal = if self.state == GroupState::Dead {
            Some((GroupError::CoordinatorNotAvailable, member.clone()))
        } else if step.is_full() || self.in_flight_bytes > step.limits.group_bytes_max {
            Some((GroupError::CoordinatorLoadInProgress, member.clone()))
        } else if !self.accepts(&member, step) {
            self.remove_pending(&member);
            self.remove_member(&member, GroupError::GroupMaxSizeReached, step);
            self.complete_join_if_all(step);
            Some((GroupError::GroupMaxSizeReached, MemberId::new("")))
        } else if !self.supports(&joining.request) {
            Some((GroupError::InconsistentGroupProtocol, member.clone()))
        } else if !self.has_room(&joining.request, step) {
            Some((GroupError::GroupMaxSizeReached, member.clone()))
        } else {
            None
        };
        if let Some((error, member)) = refusal {
            step.reply(token, refused(error, member));
        } else if member.is_empty() {
            self.join_new(joining, token, step);
        } else {
            self.join_existing(joining, token, step);
        }
    }

    /// Whether one more may join. While members join, those that have count: the last to come again may be too many.
    fn accepts(&self, member: &MemberId, step: &Step<'_, T>) -> bool {
        let known = self.members.get(member);
        match self.state {
            GroupState::Empty | GroupState::Dead => true,
            GroupState::PreparingRebalance => {
                known.is_some_and(|known| known.join.is_some())
                    || self.members.awaiting_join() < step.limits.members_max
            }
            GroupState::CompletingRebalance | GroupState::Stable => {
                known.is_some() || self.members.len() < step.limits.members_max
            }
        }
    }

    fn supports(&self, request: &JoinRequest) -> bool {
        if self.state == GroupState::Empty {
            return !request.protocol_type.is_empty() && !request.protocols.is_empty();
        }
        self.protocol_type.as_ref() == Some(&request.protocol_type)
            && self.members.support_one_of(&request.protocols)
    }

    fn has_room(&self, request: &JoinRequest, step: &Step<'_, T>) -> bool {
        // What the member had before is not counted out: a group at its limit is full for those who grow, too.
        let added = protocol_bytes(&request.protocols);
        let replaces =
            self.members.get(&request.member).is_some_and(|known| known.protocols == request.protocols);
        replaces
            || (self.members.bytes() + added <= step.limits.group_bytes_max
                && self.bytes() + added <= step.room_bytes)
    }

    fn join_new(&mut self, joining: Joining, token: T, step: &mut Step<'_, T>) {
        let request = &joining.request;
        let name = request.instance.as_ref().map_or(&*request.client_id, |instance| instance.as_str());
        let id = MemberId::fresh(name, request.unique);
        if self.members.contains(&id) || self.pending.contains(&id) {
            // 16 random bytes drawn twice: the next try draws others.
            step.reply(token, refused(GroupError::CoordinatorNotAvailable, MemberId::new("")));
            return;
        }
        let holder =
            request.instance.as_ref().and_then(|instance| self.members.by_instance(instance)).cloned();
        if let Some(holder) = holder {
            self.replace_static(&holder, id, joining, token, step);
        } else if request.member_id_required && request.instance.is_none() {
            self.hand_out(id, joining.session_timeout_ms, token, step);
        } else {
            self.add_member(id, joining, token, step);
        }
    }

    /// Tells a member its id; it is one when it comes with it.
    fn hand_out(&mut self, id: MemberId, session_timeout_ms: u32, token: T, step: &mut Step<'_, T>) {
        if self.pending.len() >= step.limits.members_max {
            step.reply(token, refused(GroupError::GroupMaxSizeReached, MemberId::new("")));
            return;
        }
        self.pending.insert(id.clone());
        self.deadlines.set(Timer::Pending(id.clone()), step.after_ms(u64::from(session_timeout_ms)));
        step.reply(token, refused(GroupError::MemberIdRequired, id));
    }

    fn join_existing(&mut self, joining: Joining, token: T, step: &mut Step<'_, T>) {
        let (id, instance) = (joining.request.member.clone(), joining.request.instance.clone());
        if self.pending.contains(&id) {
            if instance.is_some() {
                // Ids are handed out to dynamic members alone.
                step.reply(token, refused(GroupError::InvalidRequest, id));
            } else {
                self.remove_pending(&id);
                self.add_member(id, joining, token, step);
            }
            return;
        }
        if let Err(error) = self.check_member(&id, instance.as_ref()) {
            step.reply(token, refused(error, id));
            return;
        }
        let unchanged = self.members.get(&id).is_some_and(|m| m.protocols == joining.request.protocols);
        match self.state {
            // It did not get the answer of this generation, or a follower wants to be told again.
            GroupState::CompletingRebalance if unchanged => self.answer_again(&id, token, step),
            // A leader that joins again has a reason to assign anew, such as more partitions.
            GroupState::Stable if unchanged && !self.is_leader(&id) => self.answer_again(&id, token, step),
            _ => {
                self.update_member(&id, joining, token, step);
                self.rebalance(step);
            }
        }
    }

    fn answer_again(&mut self, id: &MemberId, token: T, step: &mut Step<'_, T>) {
        let joined = self.joined(id);
        step.reply(token, Reply::Join(Ok(joined)));
    }

    fn add_member(&mut self, id: MemberId, joining: Joining, token: T, step: &mut Step<'_, T>) {
        let Joining { request, session_timeout_ms, rebalance_timeout_ms } = joining;
        if self.members.is_empty() {
            self.protocol_type = Some(request.protocol_type);
        }
        if let Some(wait) = self.initial.as_mut().filter(|_| self.generation == 0) {
            wait.member_added = true;
        }
        self.members.insert(Member {
            id: id.clone(),
            instance: request.instance,
            client_id: request.client_id,
            client_host: request.client_host,
            session_timeout_ms,
            rebalance_timeout_ms,
            protocols: request.protocols,
            assignment: Bytes::new(),
            is_new: true,
            join: Some(token),
            sync: None,
        });
        self.leader.get_or_insert_with(|| id.clone());
        self.deadlines.set(Timer::Member(id), step.after_ms(NEW_MEMBER_JOIN_MS));
        self.rebalance(step);
    }

    /// Takes over what a member says of itself and lets its join wait. An earlier join of it that waits is told to try again:
    /// its client has, and its connection goes on with other answers.
    pub(crate) fn update_member(
        &mut self,
        id: &MemberId,
        joining: Joining,
        token: T,
        step: &mut Step<'_, T>,
    ) {
        let Joining { request, session_timeout_ms, rebalance_timeout_ms } = joining;
        self.members.update(id, request.protocols, session_timeout_ms, rebalance_timeout_ms);
        if let Some(earlier) = self.members.park_join(id, token) {
            step.reply(earlier, refused(GroupError::RebalanceInProgress, id.clone()));
        }
        // Whoever waits for an answer has a session; one that was never in a generation keeps its own deadline.
        if self.members.get(id).is_some_and(|member| !member.is_new) {
            self.deadlines.cancel(&Timer::Member(id.clone()));
        }
    }
}
