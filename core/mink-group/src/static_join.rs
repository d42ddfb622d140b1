//! A static member that starts anew: it takes its predecessor's place under a new id.
//!
//! Lives on: within a group.
//! Invariants: the predecessor is fenced at once, whatever happens to the record; the successor is not answered before the
//! record with its id is durable (K-22).
use crate::deadlines::Timer;
use crate::flights::Then;
use crate::group::{Group, GroupState, Step};
use crate::join::{Joining, refused};
use crate::members::Member;
use crate::{GroupError, MemberId, Reply};
use std::sync::Arc;

impl<T> Group<T> {
    pub(crate) fn replace_static(
        &mut self,
        holder: &MemberId,
        id: MemberId,
        joining: Joining,
        token: T,
        step: &mut Step<'_, T>,
    ) {
        let leader_before = self.leader.clone();
        let can_skip_assignment = joining.request.can_skip_assignment;
        self.rename_member(holder, &id, &joining, step);
        self.update_member(&id, joining, token, step);
        let same_protocol = self.members.choose_protocol() == self.protocol;
        match self.state {
            GroupState::Stable if same_protocol => {
                let then = Then::Replace { member: id, can_skip_assignment, leader_before };
                self.store(None, then, step);
            }
            // While assignments are made, the leader may already assign to the id that is gone.
            _ => self.rebalance(step),
        }
    }

    /// The member is the same, its id another: whoever still uses the old one is fenced.
    fn rename_member(&mut self, holder: &MemberId, id: &MemberId, joining: &Joining, step: &mut Step<'_, T>) {
        let was_unsynced = self.unsynced.remove(holder);
        let was_leader = self.is_leader(holder);
        let Some(mut member) = self.members.remove(holder) else { return };
        self.deadlines.cancel(&Timer::Member(holder.clone()));
        if let Some(token) = member.join.take() {
            step.reply(token, refused(GroupError::FencedInstanceId, holder.clone()));
        }
        if let Some(token) = member.sync.take() {
            step.reply(token, Reply::Sync(Err(GroupError::FencedInstanceId)));
        }
        self.members.insert(Member {
            id: id.clone(),
            client_id: Arc::clone(&joining.request.client_id),
            client_host: Arc::clone(&joining.request.client_host),
            // It has a session from now on, as its predecessor had.
            is_new: false,
            ..member
        });
        if was_leader {
            self.leader = Some(id.clone());
        }
        if was_unsynced {
            self.unsynced.insert(id.clone());
        }
        self.extend_session(id, step.now);
    }

    /// The record with the successor's id is durable: the generation goes on, and so does its assignment.
    pub(crate) fn replaced(
        &mut self,
        generation: i32,
        id: &MemberId,
        can_skip_assignment: bool,
        leader_before: Option<MemberId>,
        step: &mut Step<'_, T>,
    ) {
        // Otherwise a rebalance has begun meanwhile, which answers the join.
        if self.state != GroupState::Stable || self.generation != generation {
            return;
        }
        let Some(token) = self.members.take_join(id) else { return };
        let mut joined = self.joined(id);
        if can_skip_assignment {
            joined.skip_assignment = self.is_leader(id);
        } else {
            // It must not take itself for the leader: it would assign, and nobody would take it.
            joined.leader = leader_before;
            joined.members.clear();
        }
        self.members.set_known(id);
        self.extend_session(id, step.now);
        step.reply(token, Reply::Join(Ok(joined)));
    }

    /// The record was refused: the successor tries again, under yet another id.
    pub(crate) fn not_replaced(
        &mut self,
        generation: i32,
        id: &MemberId,
        error: GroupError,
        step: &mut Step<'_, T>,
    ) {
        if self.state != GroupState::Stable || self.generation != generation {
            return;
        }
        if let Some(token) = self.members.take_join(id) {
            self.members.set_known(id);
            self.extend_session(id, step.now);
            step.reply(token, refused(error, MemberId::new("")));
        }
    }
}
