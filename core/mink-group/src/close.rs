//! The end of a coordinator: everyone who waits is answered.
//!
//! Lives on: within a coordinator.
//! Invariants: no token is lost.
use crate::flights::Written;
use crate::{Effects, GroupError, Groups, MemberId, Reply};

impl<T> Groups<T> {
    /// Gives the coordinator up, because the bucket goes to another owner or the outcome of an append is unknown, and answers
    /// everyone who waits: [`GroupError::NotCoordinator`], or [`GroupError::CoordinatorLoadInProgress`] when this node reads the
    /// log again. Both make clients ask again, which is safe: a commit that did happen is only stored twice.
    pub fn close(mut self, error: GroupError, effects: &mut Effects<T>) {
        while let Some(flight) = self.flights.pop() {
            refuse(flight.what, error, effects);
        }
        for (_, mut group) in std::mem::take(&mut self.by_id) {
            for id in group.members.ids() {
                if let Some(token) = group.members.take_join(&id) {
                    effects.reply(token, crate::join::refused(error, MemberId::new("")));
                }
                if let Some(token) = group.members.take_sync(&id) {
                    effects.reply(token, Reply::Sync(Err(error)));
                }
            }
        }
    }
}

/// Answers whoever waits for an append.
pub(crate) fn refuse<T>(what: Written<T>, error: GroupError, effects: &mut Effects<T>) {
    match what {
        Written::Offsets { token, .. } => effects.reply(token, Reply::Commit(Err(error))),
        Written::OffsetsGone { answer: Some((token, _)), .. } => {
            effects.reply(token, Reply::DeleteOffsets(Err(error)));
        }
        Written::GroupGone { token: Some(token), .. } => effects.reply(token, Reply::Delete(Err(error))),
        // Who waits for a group's record waits with its member.
        Written::OffsetsGone { answer: None, .. }
        | Written::GroupGone { token: None, .. }
        | Written::Group { .. } => {}
    }
}
