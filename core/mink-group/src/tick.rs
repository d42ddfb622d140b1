//! What has come to its deadline.
//!
//! Lives on: within a group.
use crate::GroupError;
use crate::deadlines::Timer;
use crate::expire::TopicName;
use crate::group::{Group, GroupState, Step};

impl<T> Group<T> {
    /// Does what is due. Ends: every timer that fires is gone, or set again to a later time.
    pub(crate) fn tick(&mut self, name: TopicName<'_>, step: &mut Step<'_, T>) {
        while let Some(timer) = self.deadlines.due(step.now.monotonic_ms) {
            match timer {
                Timer::Join => self.join_phase_over(step),
                Timer::Grace => self.grace_over(step),
                Timer::Sync => self.sync_phase_over(step),
                Timer::Expiry => {
                    self.expire(name, step);
                    self.schedule_expiry(step);
                }
                Timer::Member(id) => {
                    self.remove_member(&id, GroupError::UnknownMemberId, step);
                    self.rebalance_unless_empty(step);
                }
                Timer::Pending(id) => {
                    self.remove_pending(&id);
                    self.complete_join_if_all(step);
                }
            }
        }
    }

    fn rebalance_unless_empty(&mut self, step: &mut Step<'_, T>) {
        if self.state != GroupState::Empty {
            self.rebalance(step);
        }
    }
}
