//! SyncGroup: the leader brings the assignments, everyone else asks for theirs.
//!
//! Lives on: within a group.
//! Invariants: I18 one set of assignments is taken per generation, and nobody is given one before it is durable (P-19).
use crate::deadlines::Timer;
use crate::flights::Then;
use crate::group::{Group, GroupState, Step};
use crate::{GroupError, MemberId, Reply, SyncRequest, Synced};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;

impl<T> Group<T> {
    pub(crate) fn sync(&mut self, request: SyncRequest, token: T, step: &mut Step<'_, T>) {
        if let Err(error) = self.check_sync(&request) {
            step.reply(token, Reply::Sync(Err(error)));
            return;
        }
        let id = request.member;
        self.synced(&id);
        if self.state == GroupState::Stable {
            let synced = self.assignment_of(&id);
            step.reply(token, Reply::Sync(Ok(synced)));
            self.extend_session(&id, step.now);
            return;
        }
        // Whoever waits for an answer has a session.
        self.deadlines.cancel(&Timer::Member(id.clone()));
        if let Some(earlier) = self.members.park_sync(&id, token) {
            step.reply(earlier, Reply::Sync(Err(GroupError::RebalanceInProgress)));
        }
        // A leader that syncs again while its assignments are on their way waits for those.
        if self.is_leader(&id) && !self.assigning {
            self.assign(request.assignments, step);
        }
    }

    fn check_sync(&self, request: &SyncRequest) -> Result<(), GroupError> {
        match self.state {
            GroupState::Dead => return Err(GroupError::CoordinatorNotAvailable),
            GroupState::Empty => return Err(GroupError::UnknownMemberId),
            _ => {}
        }
        self.check_member(&request.member, request.instance.as_ref())?;
        let differs = |said: &Option<Arc<str>>, is: &Option<Arc<str>>| said.is_some() && said != is;
        if request.generation != self.generation {
            Err(GroupError::IllegalGeneration)
        } else if differs(&request.protocol_type, &self.protocol_type)
            || differs(&request.protocol, &self.protocol)
        {
            Err(GroupError::InconsistentGroupProtocol)
        } else if self.state == GroupState::PreparingRebalance {
            Err(GroupError::RebalanceInProgress)
        } else {
            Ok(())
        }
    }

    /// Stores the leader's assignments; they are handed out when they are durable.
    fn assign(&mut self, assignments: Vec<(MemberId, Bytes)>, step: &mut Step<'_, T>) {
        let mut given: BTreeMap<_, _> = assignments.into_iter().collect();
        let all: Vec<_> = self
            .members
            .iter()
            .map(|member| (member.id.clone(), given.remove(&member.id).unwrap_or_default()))
            .collect();
        let added: usize = all.iter().map(|(_, bytes)| bytes.len()).sum();
        let kept: usize = self.members.iter().map(|member| member.assignment.len()).sum();
        let group_bytes = (self.members.bytes() - kept).saturating_add(added);
        if group_bytes > step.limits.group_bytes_max || self.bytes().saturating_add(added) > step.room_bytes {
            // As Kafka does with a group whose record fits no batch.
            self.not_assigned(self.generation, GroupError::UnknownServerError, step);
            return;
        }
        self.assigning = true;
        // A batch that holds the request would be kept for as long as the group lives.
        let all: Vec<_> = all.into_iter().map(|(id, bytes)| (id, Bytes::copy_from_slice(&bytes))).collect();
        self.store(Some(&all), Then::Assign(all.clone()), step);
    }

    /// The assignments are durable: they are the generation's, and whoever waits is given its own.
    pub(crate) fn assigned(&mut self, generation: i32, all: Vec<(MemberId, Bytes)>, step: &mut Step<'_, T>) {
        // Otherwise a rebalance has begun meanwhile.
        if self.state != GroupState::CompletingRebalance || self.generation != generation {
            return;
        }
        self.assigning = false;
        self.state = GroupState::Stable;
        for (id, assignment) in all {
            self.members.set_assignment(&id, assignment);
            if let Some(token) = self.members.take_sync(&id) {
                let synced = self.assignment_of(&id);
                step.reply(token, Reply::Sync(Ok(synced)));
                self.extend_session(&id, step.now);
            }
        }
    }

    /// The assignments cannot be stored: all are told, and join again.
    pub(crate) fn not_assigned(&mut self, generation: i32, error: GroupError, step: &mut Step<'_, T>) {
        if self.state != GroupState::CompletingRebalance || self.generation != generation {
            return;
        }
        self.refuse_syncs(error, step);
        self.rebalance(step);
    }

    fn assignment_of(&self, id: &MemberId) -> Synced {
        Synced {
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            assignment: self.members.get(id).map(|member| member.assignment.clone()).unwrap_or_default(),
        }
    }
}
