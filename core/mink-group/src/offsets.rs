//! The committed offsets of one group, and how many commits are on their way to the log.
//!
//! Lives on: within a group.
//! Invariants: what is here is durable; a commit on its way is counted per partition and seen by nobody (I18).
use crate::{CommittedOffset, TopicKey};
use std::collections::BTreeMap;

/// What an offset costs beside its metadata.
const OFFSET_OVERHEAD_BYTES: usize = 128;

#[derive(Debug, Default)]
pub(crate) struct Offsets {
    durable: BTreeMap<TopicKey, CommittedOffset>,
    pending: BTreeMap<TopicKey, u32>,
    bytes: usize,
}

/// What an offset costs to keep, or to have on its way.
pub(crate) fn offset_bytes(metadata: &str) -> usize {
    OFFSET_OVERHEAD_BYTES + metadata.len()
}

impl Offsets {
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Neither durable offsets nor any on their way.
    pub(crate) fn is_vacant(&self) -> bool {
        self.durable.is_empty() && self.pending.is_empty()
    }

    pub(crate) fn get(&self, topic: &TopicKey) -> Option<&CommittedOffset> {
        self.durable.get(topic)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&TopicKey, &CommittedOffset)> {
        self.durable.iter()
    }

    /// Every partition that has an offset or is about to.
    pub(crate) fn topics(&self) -> Vec<TopicKey> {
        let mut topics: Vec<_> = self.durable.keys().chain(self.pending.keys()).copied().collect();
        topics.sort_unstable();
        topics.dedup();
        topics
    }

    pub(crate) fn knows(&self, topic: &TopicKey) -> bool {
        self.durable.contains_key(topic) || self.is_pending(topic)
    }

    pub(crate) fn is_pending(&self, topic: &TopicKey) -> bool {
        self.pending.contains_key(topic)
    }

    /// A commit goes to the log.
    pub(crate) fn begin(&mut self, topic: TopicKey, metadata: &str) {
        *self.pending.entry(topic).or_default() += 1;
        self.bytes += offset_bytes(metadata);
    }

    /// It is there, or it will never be.
    pub(crate) fn end(&mut self, topic: &TopicKey, metadata: &str) {
        if let Some(count) = self.pending.get_mut(topic) {
            self.bytes -= offset_bytes(metadata);
            *count -= 1;
            if *count == 0 {
                self.pending.remove(topic);
            }
        }
    }

    pub(crate) fn set(&mut self, topic: TopicKey, offset: CommittedOffset) {
        self.bytes += offset_bytes(&offset.metadata);
        if let Some(before) = self.durable.insert(topic, offset) {
            self.bytes -= offset_bytes(&before.metadata);
        }
    }

    pub(crate) fn remove(&mut self, topic: &TopicKey) {
        if let Some(before) = self.durable.remove(topic) {
            self.bytes -= offset_bytes(&before.metadata);
        }
    }
}
