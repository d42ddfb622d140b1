//! Records become groups when a coordinator opens, and groups become records again for a checkpoint.
//!
//! Lives on: the owner of a coordinator bucket (pure).
//! Invariants: folding is idempotent, and the last record of a key wins; a checkpoint holds what is durable, nothing that is on
//! its way (I18).
use crate::deadlines::Timer;
use crate::group::{Group, GroupState};
use crate::members::Member;
use crate::record::offset_key;
use crate::{
    CommittedOffset, GroupId, GroupLimits, GroupValue, Groups, KeyedRecord, MemberValue, Now, Protocol,
    Record, RecordError, RecordKey, TopicKey,
};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The fold of a coordinator bucket's records: of its checkpoint, then of the log behind it, in log order.
#[derive(Debug, Default)]
pub struct Fold {
    groups: BTreeMap<GroupId, Folded>,
}

#[derive(Debug, Default)]
struct Folded {
    group: Option<GroupValue>,
    offsets: BTreeMap<TopicKey, CommittedOffset>,
}

impl Fold {
    /// Folds the next record in.
    ///
    /// # Errors
    /// When the record is none: the coordinator must not open, as it would forget what was committed.
    pub fn apply(&mut self, key: &[u8], value: Option<&[u8]>) -> Result<(), RecordError> {
        let id = match Record::decode(key, value)? {
            Record::Group(id, Some(group)) => {
                self.groups.entry(id).or_default().group = Some(group);
                return Ok(());
            }
            Record::Offset(id, topic, Some(offset)) => {
                self.groups.entry(id).or_default().offsets.insert(topic, offset);
                return Ok(());
            }
            Record::Group(id, None) => {
                self.groups.entry(id.clone()).or_default().group = None;
                id
            }
            Record::Offset(id, topic, None) => {
                self.groups.entry(id.clone()).or_default().offsets.remove(&topic);
                id
            }
        };
        if self.groups.get(&id).is_some_and(|folded| folded.group.is_none() && folded.offsets.is_empty()) {
            self.groups.remove(&id);
        }
        Ok(())
    }

    /// The records that say the same, in the order of groups and partitions: a checkpoint without a coordinator.
    pub fn records(&self) -> impl Iterator<Item = KeyedRecord> {
        self.groups.iter().flat_map(|(id, folded)| {
            let group = folded.group.as_ref().map(|group| group_record(id, group.encode()));
            group
                .into_iter()
                .chain(folded.offsets.iter().map(|(topic, offset)| offset_record(id, *topic, offset)))
        })
    }
}

impl<T> Groups<T> {
    /// The groups of a bucket that this node begins to coordinate. Members of the stored generation have a whole session from
    /// now on. What is stored is taken whatever the limits say.
    pub fn load(limits: GroupLimits, fold: Fold, now: Now) -> Groups<T> {
        let expiry_ms = now.monotonic_ms.saturating_add(limits.expiry_check_ms.max(1));
        let mut groups = Groups::new(limits);
        for (id, folded) in fold.groups {
            let mut group = Group::new(id);
            for (topic, offset) in folded.offsets {
                group.offsets.set(topic, offset);
            }
            if let Some(value) = folded.group {
                group.restore(value, now);
            }
            group.deadlines.set(Timer::Expiry, expiry_ms);
            groups.insert(group);
        }
        groups
    }

    /// Everything that is durable, as records: a checkpoint. Folding them gives the same groups as folding the log up to the last
    /// append that was reported durable.
    pub fn snapshot_records(&self) -> impl Iterator<Item = KeyedRecord> {
        self.iter().flat_map(|group| {
            let stored = group.stored.as_ref().map(|value| group_record(&group.id, value.clone()));
            let offsets =
                group.offsets.iter().map(|(topic, offset)| offset_record(&group.id, *topic, offset));
            stored.into_iter().chain(offsets)
        })
    }
}

impl<T> Group<T> {
    fn restore(&mut self, value: GroupValue, now: Now) {
        self.stored = Some(value.encode());
        let GroupValue { generation, protocol_type, protocol, leader, emptied, members } = value;
        self.state = if members.is_empty() { GroupState::Empty } else { GroupState::Stable };
        (self.generation, self.protocol_type, self.protocol) = (generation, protocol_type, protocol);
        (self.leader, self.emptied) = (leader, emptied);
        for member in members {
            let id = member.member.clone();
            self.members.insert(restored(member, self.protocol.as_ref()));
            self.extend_session(&id, now);
        }
        self.subscribed = self.subscribed_topics();
    }
}

fn restored<T>(member: MemberValue, protocol: Option<&Arc<str>>) -> Member<T> {
    let MemberValue { metadata, assignment, .. } = member;
    Member {
        id: member.member,
        instance: member.instance,
        client_id: member.client_id,
        client_host: member.client_host,
        session_timeout_ms: member.session_timeout_ms,
        rebalance_timeout_ms: member.rebalance_timeout_ms,
        protocols: protocol.map(|name| Protocol { name: Arc::clone(name), metadata }).into_iter().collect(),
        assignment,
        is_new: false,
        join: None,
        sync: None,
    }
}

fn group_record(id: &GroupId, value: Bytes) -> KeyedRecord {
    KeyedRecord { key: RecordKey::Group(id.clone()).encode(), value: Some(value) }
}

fn offset_record(id: &GroupId, topic: TopicKey, offset: &CommittedOffset) -> KeyedRecord {
    KeyedRecord { key: offset_key(id, topic), value: Some(offset.encode()) }
}
