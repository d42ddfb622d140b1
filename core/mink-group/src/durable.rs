//! The log has answered: what is durable becomes visible, what was refused is taken back.
//!
//! Lives on: within a group.
//! Invariants: only durable records change what others see (I18); a refused append changes nothing that was seen.
use crate::flights::{Then, Written};
use crate::group::{Group, GroupState, Step};
use crate::{AppendRefused, GroupError, Reply};

impl<T> Group<T> {
    /// Takes over what is durable. True when the group is gone by it.
    pub(crate) fn durable(&mut self, what: Written<T>, step: &mut Step<'_, T>) -> bool {
        self.in_flight -= 1;
        match what {
            Written::Offsets { token, offsets, results } => {
                for (topic, offset) in offsets {
                    self.offsets.end(&topic, &offset.metadata);
                    self.offsets.set(topic, offset);
                }
                step.reply(token, Reply::Commit(Ok(results)));
            }
            Written::OffsetsGone { topics, answer } => {
                for topic in &topics {
                    self.offsets.remove(topic);
                }
                if let Some((token, results)) = answer {
                    step.reply(token, Reply::DeleteOffsets(Ok(results)));
                }
            }
            Written::Group { value, generation, then } => {
                self.in_flight_bytes -= value.len();
                self.stored = Some(value);
                match then {
                    Then::Nothing => {}
                    Then::Assign(all) => self.assigned(generation, all, step),
                    Then::Replace { member, can_skip_assignment, leader_before } => {
                        self.replaced(generation, &member, can_skip_assignment, leader_before, step);
                    }
                }
            }
            Written::GroupGone { topics, token } => {
                for topic in &topics {
                    self.offsets.remove(topic);
                }
                self.stored = None;
                // Tombstones before it may have been refused: then there is a group still, and it can be deleted again.
                let gone = self.offsets.is_vacant();
                if !gone {
                    self.state = GroupState::Empty;
                }
                if let Some(token) = token {
                    let result = if gone { Ok(()) } else { Err(GroupError::CoordinatorNotAvailable) };
                    step.reply(token, Reply::Delete(result));
                }
                return gone;
            }
        }
        false
    }

    /// Takes back what will never be durable.
    pub(crate) fn refused(&mut self, what: Written<T>, why: AppendRefused, step: &mut Step<'_, T>) {
        self.in_flight -= 1;
        let error = group_error(why);
        match what {
            Written::Offsets { token, offsets, .. } => {
                for (topic, offset) in &offsets {
                    self.offsets.end(topic, &offset.metadata);
                }
                step.reply(token, Reply::Commit(Err(commit_error(why))));
            }
            Written::OffsetsGone { answer, .. } => {
                if let Some((token, _)) = answer {
                    step.reply(token, Reply::DeleteOffsets(Err(error)));
                }
            }
            Written::Group { value, generation, then } => {
                self.in_flight_bytes -= value.len();
                match then {
                    // The generation before it is then what a successor finds; it has no members that could be wronged.
                    Then::Nothing => {}
                    Then::Assign(_) => self.not_assigned(generation, error, step),
                    Then::Replace { member, .. } => self.not_replaced(generation, &member, error, step),
                }
            }
            Written::GroupGone { token, .. } => {
                self.state = GroupState::Empty;
                self.schedule_expiry(step);
                if let Some(token) = token {
                    step.reply(token, Reply::Delete(Err(error)));
                }
            }
        }
    }
}

pub(crate) fn group_error(why: AppendRefused) -> GroupError {
    match why {
        AppendRefused::Retriable => GroupError::CoordinatorNotAvailable,
        AppendRefused::NotOwner => GroupError::NotCoordinator,
        AppendRefused::TooLarge => GroupError::UnknownServerError,
    }
}

pub(crate) fn commit_error(why: AppendRefused) -> GroupError {
    match why {
        AppendRefused::TooLarge => GroupError::InvalidCommitOffsetSize,
        other => group_error(other),
    }
}
