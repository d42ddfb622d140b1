//! DeleteGroups and OffsetDelete: what is stored of a group goes, by tombstones.
//!
//! Lives on: within a group.
//! Invariants: nothing is gone before its tombstone is durable; a group that is being deleted takes nothing in.
use crate::deadlines::Timer;
use crate::flights::Written;
use crate::group::{Group, GroupState, Step};
use crate::record::offset_key;
use crate::{GROUP_ID_BYTES_MAX, GroupError, KeyedRecord, RecordKey, Reply, TopicKey};
use std::sync::Arc;

/// Tombstones of one append: with the longest group id they still fit a batch.
pub(crate) const TOMBSTONES_PER_APPEND_MAX: usize = 10_000;

const _: () = assert!(TOMBSTONES_PER_APPEND_MAX * (GROUP_ID_BYTES_MAX + 64) <= 16 << 20);

impl<T> Group<T> {
    pub(crate) fn delete(&mut self, token: T, step: &mut Step<'_, T>) {
        match self.state {
            GroupState::Dead => step.reply(token, Reply::Delete(Err(GroupError::GroupIdNotFound))),
            GroupState::Empty => self.bury(Some(token), step),
            _ => step.reply(token, Reply::Delete(Err(GroupError::NonEmptyGroup))),
        }
    }

    /// Writes tombstones of an empty group and of all it has, commits on their way included.
    pub(crate) fn bury(&mut self, token: Option<T>, step: &mut Step<'_, T>) {
        debug_assert!(self.members.is_empty());
        self.state = GroupState::Dead;
        for id in std::mem::take(&mut self.pending) {
            self.deadlines.cancel(&Timer::Pending(id));
        }
        let mut topics = self.offsets.topics();
        let last = topics.split_off(topics.len().saturating_sub(TOMBSTONES_PER_APPEND_MAX));
        self.bury_offsets(&topics, step);
        let mut records = self.tombstones(&last);
        records.push(KeyedRecord { key: RecordKey::Group(self.id.clone()).encode(), value: None });
        self.append(records, Written::GroupGone { topics: last, token }, step);
    }

    /// Writes tombstones of offsets that nobody asked for.
    pub(crate) fn bury_offsets(&mut self, topics: &[TopicKey], step: &mut Step<'_, T>) {
        for topics in topics.chunks(TOMBSTONES_PER_APPEND_MAX) {
            let records = self.tombstones(topics);
            self.append(records, Written::OffsetsGone { topics: topics.to_vec(), answer: None }, step);
        }
    }

    pub(crate) fn tombstones(&self, topics: &[TopicKey]) -> Vec<KeyedRecord> {
        topics.iter().map(|topic| KeyedRecord { key: offset_key(&self.id, *topic), value: None }).collect()
    }

    pub(crate) fn delete_offsets(
        &mut self,
        topics: &[(TopicKey, Arc<str>)],
        token: T,
        step: &mut Step<'_, T>,
    ) {
        let refusal = match self.state {
            GroupState::Dead => Some(GroupError::GroupIdNotFound),
            GroupState::Empty => None,
            _ => (!self.is_consumer()).then_some(GroupError::NonEmptyGroup),
        };
        if let Some(error) = refusal {
            step.reply(token, Reply::DeleteOffsets(Err(error)));
            return;
        }
        let (mut results, mut gone) = (Vec::with_capacity(topics.len()), Vec::new());
        for (topic, name) in topics {
            if self.subscribes_to(name) {
                results.push(Err(GroupError::GroupSubscribedToTopic));
                continue;
            }
            results.push(Ok(()));
            if self.offsets.knows(topic) {
                gone.push(*topic);
            }
        }
        if gone.is_empty() {
            step.reply(token, Reply::DeleteOffsets(Ok(results)));
            return;
        }
        let records = self.tombstones(&gone);
        self.append(records, Written::OffsetsGone { topics: gone, answer: Some((token, results)) }, step);
    }

    /// Whether members read the topic; members that do not say are taken to read every topic.
    fn subscribes_to(&self, name: &str) -> bool {
        match &self.subscribed {
            Some(topics) => topics.contains(name),
            None => self.is_consumer() && !self.members.is_empty(),
        }
    }
}
