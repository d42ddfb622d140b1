//! Offsets that nobody needs any more expire, as a decision that is logged: by tombstones.
//!
//! Lives on: within a group.
//! Invariants: an offset is gone when its tombstone is durable, on every owner alike; none expires that a commit is on its way for.
use crate::deadlines::Timer;
use crate::group::{Group, GroupState, Step};
use crate::{CommittedOffset, TopicKey};
use mink_types::{CommitTime, TableId};
use std::sync::Arc;

/// The name of the topic that a table is, none when the table is gone.
pub(crate) type TopicName<'a> = &'a dyn Fn(TableId) -> Option<Arc<str>>;

impl<T> Group<T> {
    pub(crate) fn schedule_expiry(&mut self, step: &Step<'_, T>) {
        if !self.deadlines.is_set(&Timer::Expiry) {
            self.deadlines.set(Timer::Expiry, step.after_ms(step.limits.expiry_check_ms.max(1)));
        }
    }

    /// Writes tombstones of what has expired; of the whole group when nothing is left and it has no members.
    pub(crate) fn expire(&mut self, name: TopicName<'_>, step: &mut Step<'_, T>) {
        if self.state == GroupState::Dead || step.is_full() {
            return;
        }
        let expired: Vec<TopicKey> = self
            .offsets
            .iter()
            .filter(|(topic, offset)| {
                !self.offsets.is_pending(topic) && self.has_expired(topic, offset, name, step)
            })
            .map(|(topic, _)| *topic)
            .collect();
        let left = self.offsets.topics().len() > expired.len();
        if self.state == GroupState::Empty && !left && self.pending.is_empty() && self.in_flight == 0 {
            // One that nothing is stored of is forgotten without a record.
            if self.stored.is_some() || !expired.is_empty() {
                self.bury(None, step);
            }
        } else if !expired.is_empty() {
            self.bury_offsets(&expired, step);
        }
    }

    fn has_expired(
        &self,
        topic: &TopicKey,
        offset: &CommittedOffset,
        name: TopicName<'_>,
        step: &Step<'_, T>,
    ) -> bool {
        let Some(since) = self.unneeded_since(topic, offset, name) else { return false };
        let now = step.now.wall;
        match offset.expires {
            Some(at) => now >= at,
            None => {
                now.0.saturating_sub(since.0)
                    >= i64::try_from(step.limits.offsets_retention_ms).unwrap_or(i64::MAX)
            }
        }
    }

    /// Since when nobody has needed an offset; none while someone may.
    fn unneeded_since(
        &self,
        topic: &TopicKey,
        offset: &CommittedOffset,
        name: TopicName<'_>,
    ) -> Option<CommitTime> {
        match (self.state, &self.subscribed) {
            // A consumer without a group, or a group that its members have left.
            (GroupState::Empty, _) if self.protocol_type.is_none() => Some(offset.commit_time),
            (GroupState::Empty, _) => {
                Some(self.emptied.unwrap_or(offset.commit_time).max(offset.commit_time))
            }
            (GroupState::Stable, Some(topics)) => {
                let read = name(topic.table).is_some_and(|name| topics.contains(&name));
                (!read).then_some(offset.commit_time)
            }
            _ => None,
        }
    }

    /// Writes tombstones of the offsets of tables that are gone.
    pub(crate) fn forget_tables(&mut self, is_gone: &dyn Fn(TableId) -> bool, step: &mut Step<'_, T>) {
        if self.state == GroupState::Dead {
            return;
        }
        let gone: Vec<_> = self.offsets.topics().into_iter().filter(|topic| is_gone(topic.table)).collect();
        self.bury_offsets(&gone, step);
    }
}
