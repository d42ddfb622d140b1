//! From one generation to the next: members join, the leader is told of them, all wait for its assignments.
//!
//! Lives on: within a group.
//! Invariants: every join and sync that waits is answered when its phase ends, and each phase has a deadline; the generation grows
//! by one each time a join phase ends (I18).
use crate::deadlines::Timer;
use crate::flights::Then;
use crate::group::{Group, GroupState, InitialWait, Step};
use crate::subscription;
use crate::{GroupError, Joined, JoinedMember, MemberId, Reply};
use std::collections::BTreeSet;
use std::sync::Arc;

/// How long a join phase that has all members waits for ids that were handed out and not used, in ms. Kafka waits for the whole
/// session time-out of an id that its client may have given up long ago (K-21).
pub(crate) const PENDING_GRACE_MS: u64 = 1_000;

impl<T> Group<T> {
    /// The set of members, or what they say of themselves, has changed.
    pub(crate) fn rebalance(&mut self, step: &mut Step<'_, T>) {
        match self.state {
            GroupState::Empty | GroupState::CompletingRebalance | GroupState::Stable => self.prepare(step),
            GroupState::PreparingRebalance => self.complete_join_if_all(step),
            GroupState::Dead => {}
        }
    }

    /// Begins a join phase.
    fn prepare(&mut self, step: &mut Step<'_, T>) {
        if self.state == GroupState::CompletingRebalance {
            self.refuse_syncs(GroupError::RebalanceInProgress, step);
        }
        self.deadlines.cancel(&Timer::Sync);
        self.unsynced.clear();
        self.assigning = false;
        let was_empty = self.state == GroupState::Empty;
        self.state = GroupState::PreparingRebalance;
        let timeout_ms = self.members.rebalance_timeout_ms();
        if !was_empty {
            self.initial = None;
            self.deadlines.set(Timer::Join, step.after_ms(timeout_ms));
            self.complete_join_if_all(step);
            return;
        }
        let delay_ms = u64::from(step.limits.rebalance_delay_ms);
        if delay_ms == 0 {
            self.complete_join(step);
            return;
        }
        let remaining_ms = timeout_ms.saturating_sub(delay_ms);
        self.initial = Some(InitialWait { delay_ms, remaining_ms, member_added: false });
        self.deadlines.set(Timer::Join, step.after_ms(delay_ms));
    }

    /// The join phase has come to its deadline.
    pub(crate) fn join_phase_over(&mut self, step: &mut Step<'_, T>) {
        if self.state != GroupState::PreparingRebalance {
            return;
        }
        match self.initial {
            Some(wait) if wait.member_added && wait.remaining_ms > 0 => {
                let delay_ms = u64::from(step.limits.rebalance_delay_ms).min(wait.remaining_ms);
                let remaining_ms = wait.remaining_ms.saturating_sub(wait.delay_ms);
                self.initial = Some(InitialWait { delay_ms, remaining_ms, member_added: false });
                self.deadlines.set(Timer::Join, step.after_ms(delay_ms));
            }
            _ => self.complete_join(step),
        }
    }

    /// Ends the join phase when all members have joined.
    pub(crate) fn complete_join_if_all(&mut self, step: &mut Step<'_, T>) {
        let waits = self.state == GroupState::PreparingRebalance && self.initial.is_none();
        if !waits || self.members.awaiting_join() < self.members.len() {
            return;
        }
        if self.pending.is_empty() {
            self.complete_join(step);
        } else if !self.deadlines.is_set(&Timer::Grace) {
            self.deadlines.set(Timer::Grace, step.after_ms(PENDING_GRACE_MS));
        }
    }

    /// The wait for ids that were handed out is over.
    pub(crate) fn grace_over(&mut self, step: &mut Step<'_, T>) {
        let waits = self.state == GroupState::PreparingRebalance && self.initial.is_none();
        if waits && self.members.awaiting_join() == self.members.len() {
            self.complete_join(step);
        }
    }

    /// Ends the join phase: who has not joined is no member any more, but for static members, which have until the end of their
    /// session.
    fn complete_join(&mut self, step: &mut Step<'_, T>) {
        self.deadlines.cancel(&Timer::Join);
        self.deadlines.cancel(&Timer::Grace);
        self.initial = None;
        let late: Vec<_> = self
            .members
            .iter()
            .filter(|m| m.join.is_none() && !m.is_static())
            .map(|m| m.id.clone())
            .collect();
        for id in late {
            self.remove_member(&id, GroupError::UnknownMemberId, step);
        }
        if self.members.is_empty() {
            self.become_empty(step);
        } else if self.elect_leader() {
            self.next_generation(step);
        } else {
            // Static members alone, none of which has come: their sessions will end the wait.
            let timeout_ms = self.members.rebalance_timeout_ms();
            self.deadlines.set(Timer::Join, step.after_ms(timeout_ms.max(PENDING_GRACE_MS)));
        }
    }

    fn elect_leader(&mut self) -> bool {
        let joined = |id: &MemberId| self.members.get(id).is_some_and(|member| member.join.is_some());
        if !self.leader.as_ref().is_some_and(joined) {
            let Some(first) = self.members.iter().find(|member| member.join.is_some()) else { return false };
            self.leader = Some(first.id.clone());
        }
        true
    }

    fn become_empty(&mut self, step: &mut Step<'_, T>) {
        // 2^31 rebalances take longer than any cluster lives; if they do not, better the same number than a lower one.
        self.generation = self.generation.saturating_add(1);
        self.state = GroupState::Empty;
        (self.protocol, self.leader) = (None, None);
        self.subscribed = self.is_consumer().then(BTreeSet::new);
        self.emptied = Some(step.now.wall);
        self.store(None, Then::Nothing, step);
    }

    fn next_generation(&mut self, step: &mut Step<'_, T>) {
        self.generation = self.generation.saturating_add(1);
        self.state = GroupState::CompletingRebalance;
        self.protocol = self.members.choose_protocol();
        debug_assert!(self.protocol.is_some(), "a join that leaves no common protocol is refused");
        self.subscribed = self.subscribed_topics();
        self.emptied = None;
        let ids = self.members.ids();
        self.unsynced = ids.iter().cloned().collect();
        self.deadlines.set(Timer::Sync, step.after_ms(self.members.rebalance_timeout_ms()));
        for id in ids {
            if let Some(token) = self.members.take_join(&id) {
                let joined = self.joined(&id);
                step.reply(token, Reply::Join(Ok(joined)));
            }
            self.members.set_known(&id);
            self.extend_session(&id, step.now);
        }
    }

    /// The answer to a join, as the group is now.
    pub(crate) fn joined(&self, id: &MemberId) -> Joined {
        Joined {
            generation: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            leader: self.leader.clone(),
            member: id.clone(),
            skip_assignment: false,
            members: if self.is_leader(id) { self.joined_members() } else { Vec::new() },
        }
    }

    fn joined_members(&self) -> Vec<JoinedMember> {
        let protocol = self.protocol.as_deref();
        self.members
            .iter()
            .map(|member| JoinedMember {
                member: member.id.clone(),
                instance: member.instance.clone(),
                metadata: member.metadata(protocol),
            })
            .collect()
    }

    /// What the members of protocol type `consumer` subscribe to; None when one of them does not say.
    pub(crate) fn subscribed_topics(&self) -> Option<BTreeSet<Arc<str>>> {
        if !self.is_consumer() {
            return None;
        }
        let mut topics = BTreeSet::new();
        for member in self.members.iter() {
            subscription::add_topics(&member.metadata(self.protocol.as_deref()), &mut topics)?;
        }
        Some(topics)
    }

    /// Answers all syncs that wait; nobody has an assignment then.
    pub(crate) fn refuse_syncs(&mut self, error: GroupError, step: &mut Step<'_, T>) {
        for id in self.members.ids() {
            self.members.set_assignment(&id, bytes::Bytes::new());
            if let Some(token) = self.members.take_sync(&id) {
                step.reply(token, Reply::Sync(Err(error)));
                self.extend_session(&id, step.now);
            }
        }
    }

    /// The time for members to sync is over: who has not is no member any more.
    pub(crate) fn sync_phase_over(&mut self, step: &mut Step<'_, T>) {
        if !matches!(self.state, GroupState::CompletingRebalance | GroupState::Stable) {
            return;
        }
        let late = std::mem::take(&mut self.unsynced);
        if late.is_empty() {
            return;
        }
        for id in late {
            self.remove_member(&id, GroupError::UnknownMemberId, step);
        }
        self.rebalance(step);
    }
}
