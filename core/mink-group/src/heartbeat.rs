//! Heartbeat: a member says that it lives, and learns of a rebalance.
//!
//! Lives on: within a group.
use crate::group::{Group, GroupState};
use crate::{GroupError, HeartbeatRequest, Now};

impl<T> Group<T> {
    pub(crate) fn heartbeat(&mut self, request: &HeartbeatRequest, now: Now) -> Result<(), GroupError> {
        if self.state == GroupState::Dead {
            return Err(GroupError::CoordinatorNotAvailable);
        }
        self.check_member(&request.member, request.instance.as_ref())?;
        if request.generation != self.generation {
            return Err(GroupError::IllegalGeneration);
        }
        self.sign_of_life(&request.member, now);
        match self.state {
            GroupState::PreparingRebalance => Err(GroupError::RebalanceInProgress),
            _ => Ok(()),
        }
    }

    /// Extends the session of a member that does not wait for an answer; one that does has no deadline, or one of its own.
    pub(crate) fn sign_of_life(&mut self, member: &crate::MemberId, now: Now) {
        let waits = |member: &crate::members::Member<T>| member.join.is_some() || member.sync.is_some();
        if !self.members.get(member).is_none_or(waits) {
            self.extend_session(member, now);
        }
    }
}
