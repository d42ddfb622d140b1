//! LeaveGroup: members go, by their own will or an administrator's.
//!
//! Lives on: within a group.
use crate::group::{Group, GroupState, Step};
use crate::{GroupError, LeaveRequest, Leaving, LeftMember};

impl<T> Group<T> {
    pub(crate) fn leave(
        &mut self,
        request: LeaveRequest,
        step: &mut Step<'_, T>,
    ) -> Result<Vec<LeftMember>, GroupError> {
        if self.state == GroupState::Dead {
            return Err(GroupError::CoordinatorNotAvailable);
        }
        let left: Vec<_> = request
            .members
            .into_iter()
            .map(|leaving| {
                let result = self.leave_one(&leaving, step);
                LeftMember { member: leaving.member, instance: leaving.instance, result }
            })
            .collect();
        // An id that was handed out may have been all that the group waited for; an empty group waits for nobody.
        if left.iter().any(|left| left.result.is_ok()) && self.state != GroupState::Empty {
            self.rebalance(step);
        }
        Ok(left)
    }

    fn leave_one(&mut self, leaving: &Leaving, step: &mut Step<'_, T>) -> Result<(), GroupError> {
        let (member, instance) = (&leaving.member, leaving.instance.as_ref());
        let id = if member.is_empty() {
            instance
                .and_then(|instance| self.members.by_instance(instance))
                .cloned()
                .ok_or(GroupError::UnknownMemberId)?
        } else if self.remove_pending(member) {
            return Ok(());
        } else {
            self.check_member(member, instance)?;
            member.clone()
        };
        self.remove_member(&id, GroupError::UnknownMemberId, step);
        Ok(())
    }
}
