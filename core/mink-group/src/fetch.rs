//! OffsetFetch: what has been committed.
//!
//! Lives on: within a coordinator.
//! Invariants: I18 only what is durable is answered.
use crate::{CommittedOffset, GroupError, GroupId, GroupState, Groups, TopicKey};

impl<T> Groups<T> {
    /// The durable offsets of these partitions, in their order; None where nothing is committed. Of a group that does not exist,
    /// nothing is.
    ///
    /// # Errors
    /// [`GroupError::GroupIdNotFound`] while the group is being deleted.
    pub fn fetch_offsets(
        &self,
        group: &GroupId,
        topics: &[TopicKey],
    ) -> Result<Vec<(TopicKey, Option<&CommittedOffset>)>, GroupError> {
        let found = self.get_living(group)?;
        let committed = |topic: &TopicKey| found.and_then(|group| group.offsets.get(topic));
        Ok(topics.iter().map(|topic| (*topic, committed(topic))).collect())
    }

    /// All durable offsets of a group, in the order of their partitions.
    ///
    /// # Errors
    /// [`GroupError::GroupIdNotFound`] while the group is being deleted.
    pub fn fetch_all_offsets(
        &self,
        group: &GroupId,
    ) -> Result<Vec<(TopicKey, &CommittedOffset)>, GroupError> {
        let found = self.get_living(group)?;
        Ok(found.map_or_else(Vec::new, |group| group.offsets.iter().map(|(topic, o)| (*topic, o)).collect()))
    }

    fn get_living(&self, group: &GroupId) -> Result<Option<&crate::group::Group<T>>, GroupError> {
        match self.get(group) {
            Some(found) if found.state == GroupState::Dead => Err(GroupError::GroupIdNotFound),
            found => Ok(found),
        }
    }
}
