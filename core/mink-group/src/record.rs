//! The keyed records that groups live in: their keys and values as bytes.
//!
//! Lives on: anywhere (pure).
//! Invariants: the same value gives the same bytes; what is read is bounded by the bytes that are there (I19); all records of one
//! group, and no other's, begin with [`group_prefix`].
//!
//! Little-endian. The integrity of the bytes is the log's affair. A *text* is its length in 2 bytes and UTF-8; an *optional* is one
//! byte, 0 or 1, and the content if it is 1; *bytes* are their length in 4 bytes and themselves.
//!
//! | size | key |
//! |------|-----|
//! | 1 | version, 1 |
//! | text | group id, not empty: with its length before it, no id is the prefix of another |
//! | 1 | kind: 1 the group, 2 a committed offset |
//! | 8, 4 | of an offset: table id, bucket |
//!
//! | size | value of a committed offset |
//! |------|-----|
//! | 1 | version, 1 |
//! | 8 | offset, as the client sent it |
//! | 4 | leader epoch, -1 for none |
//! | 8 | commit time, ms |
//! | optional 8 | when it expires whatever the group does, ms |
//! | text | metadata |
//!
//! | size | value of a group |
//! |------|-----|
//! | 1 | version, 1 |
//! | 4 | generation |
//! | optional text | protocol type |
//! | optional text | protocol |
//! | optional text | member id of the leader |
//! | optional 8 | since when it has no members, ms |
//! | 4 | members, in ascending order of their ids |
//! | each: text, optional text | member id, instance id |
//! | text, text | client id, client host |
//! | 4, 4 | session and rebalance time-out, ms |
//! | bytes, bytes | metadata for the chosen protocol, assignment |
use crate::{GroupId, InstanceId, KeyedRecord, MemberId, RecordError, TopicKey};
use bytes::Bytes;
use mink_types::{BucketIndex, CommitTime, TableId};
use std::sync::Arc;

mod cursor;
use cursor::{Cursor, put_bytes, put_optional, put_text};

const KEY_VERSION: u8 = 1;
const VALUE_VERSION: u8 = 1;
const KIND_GROUP: u8 = 1;
const KIND_OFFSET: u8 = 2;

/// What a record is about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum RecordKey {
    Group(GroupId),
    Offset(GroupId, TopicKey),
}

/// A committed offset.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommittedOffset {
    /// As the client sent it.
    pub offset: i64,
    /// -1 when the client knew none.
    pub leader_epoch: i32,
    pub metadata: Arc<str>,
    pub commit_time: CommitTime,
    /// When it expires whatever the group does; set by clients of old versions alone.
    pub expires: Option<CommitTime>,
}

/// A group as one of its generations left it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupValue {
    pub generation: i32,
    pub protocol_type: Option<Arc<str>>,
    pub protocol: Option<Arc<str>>,
    pub leader: Option<MemberId>,
    /// Since when it has no members.
    pub emptied: Option<CommitTime>,
    /// In ascending order of their ids.
    pub members: Vec<MemberValue>,
}

/// A member of a stored generation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemberValue {
    pub member: MemberId,
    pub instance: Option<InstanceId>,
    pub client_id: Arc<str>,
    pub client_host: Arc<str>,
    pub session_timeout_ms: u32,
    pub rebalance_timeout_ms: u32,
    /// For the chosen protocol.
    pub metadata: Bytes,
    pub assignment: Bytes,
}

/// A record, decoded. None stands for a tombstone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Record {
    Group(GroupId, Option<GroupValue>),
    Offset(GroupId, TopicKey, Option<CommittedOffset>),
}

/// What the keys of all records of a group begin with.
pub fn group_prefix(group: &GroupId) -> Vec<u8> {
    let mut out = Vec::with_capacity(1 + 2 + group.as_str().len() + 1 + 8 + 4);
    out.push(KEY_VERSION);
    put_text(&mut out, group.as_str());
    out
}

impl RecordKey {
    pub fn encode(&self) -> Bytes {
        match self {
            RecordKey::Group(group) => {
                let mut out = group_prefix(group);
                out.push(KIND_GROUP);
                out.into()
            }
            RecordKey::Offset(group, topic) => offset_key(group, *topic),
        }
    }

    /// # Errors
    /// When the bytes are no key of this release.
    pub fn decode(bytes: &[u8]) -> Result<RecordKey, RecordError> {
        let mut at = Cursor::new(bytes, "key");
        at.version(KEY_VERSION)?;
        let group = GroupId::new(at.text()?).map_err(|_| content("the group's id is empty or too long"))?;
        let key = match at.byte()? {
            KIND_GROUP => RecordKey::Group(group),
            KIND_OFFSET => {
                let (table, bucket) = (TableId(at.u64()?), BucketIndex(at.u32()?));
                RecordKey::Offset(group, TopicKey { table, bucket })
            }
            _ => return Err(content("the key is of a kind that this release does not know")),
        };
        at.end()?;
        Ok(key)
    }
}

pub(crate) fn offset_key(group: &GroupId, topic: TopicKey) -> Bytes {
    let mut out = group_prefix(group);
    out.push(KIND_OFFSET);
    out.extend_from_slice(&topic.table.0.to_le_bytes());
    out.extend_from_slice(&topic.bucket.0.to_le_bytes());
    out.into()
}

impl CommittedOffset {
    pub fn encode(&self) -> Bytes {
        let mut out = Vec::with_capacity(1 + 8 + 4 + 8 + 9 + 2 + self.metadata.len());
        out.push(VALUE_VERSION);
        out.extend_from_slice(&self.offset.to_le_bytes());
        out.extend_from_slice(&self.leader_epoch.to_le_bytes());
        out.extend_from_slice(&self.commit_time.0.to_le_bytes());
        put_optional(&mut out, self.expires, |out, at| out.extend_from_slice(&at.0.to_le_bytes()));
        put_text(&mut out, &self.metadata);
        out.into()
    }

    /// # Errors
    /// When the bytes are no value of this release.
    pub fn decode(bytes: &[u8]) -> Result<CommittedOffset, RecordError> {
        let mut at = Cursor::new(bytes, "committed offset");
        at.version(VALUE_VERSION)?;
        let value = CommittedOffset {
            offset: at.i64()?,
            leader_epoch: at.i32()?,
            commit_time: CommitTime(at.i64()?),
            expires: at.optional(|at| at.i64().map(CommitTime))?,
            metadata: at.text()?.into(),
        };
        at.end()?;
        Ok(value)
    }
}

impl GroupValue {
    pub fn encode(&self) -> Bytes {
        let member_bytes = |member: &MemberValue| 64 + member.metadata.len() + member.assignment.len();
        let mut out = Vec::with_capacity(64 + self.members.iter().map(member_bytes).sum::<usize>());
        out.push(VALUE_VERSION);
        out.extend_from_slice(&self.generation.to_le_bytes());
        put_optional(&mut out, self.protocol_type.as_deref(), put_text);
        put_optional(&mut out, self.protocol.as_deref(), put_text);
        put_optional(&mut out, self.leader.as_ref().map(MemberId::as_str), put_text);
        put_optional(&mut out, self.emptied, |out, at| out.extend_from_slice(&at.0.to_le_bytes()));
        // No coordinator has 2^32 members; its limits see to it.
        out.extend_from_slice(&u32::try_from(self.members.len()).unwrap_or(u32::MAX).to_le_bytes());
        for member in &self.members {
            put_text(&mut out, member.member.as_str());
            put_optional(&mut out, member.instance.as_ref().map(InstanceId::as_str), put_text);
            put_text(&mut out, &member.client_id);
            put_text(&mut out, &member.client_host);
            out.extend_from_slice(&member.session_timeout_ms.to_le_bytes());
            out.extend_from_slice(&member.rebalance_timeout_ms.to_le_bytes());
            put_bytes(&mut out, &member.metadata);
            put_bytes(&mut out, &member.assignment);
        }
        out.into()
    }

    /// # Errors
    /// When the bytes are no value of this release, or say what no coordinator writes.
    pub fn decode(bytes: &[u8]) -> Result<GroupValue, RecordError> {
        let mut at = Cursor::new(bytes, "group");
        at.version(VALUE_VERSION)?;
        let (generation, protocol_type) = (at.i32()?, at.optional(Cursor::shared_text)?);
        let (protocol, leader) =
            (at.optional(Cursor::shared_text)?, at.optional(|at| at.text().map(MemberId::new))?);
        let emptied = at.optional(|at| at.i64().map(CommitTime))?;
        let count = at.u32()?;
        // Grows with what is read: the count itself sizes nothing.
        let mut members: Vec<MemberValue> = Vec::new();
        for _ in 0..count {
            let member = at.member()?;
            if members.last().is_some_and(|before| before.member >= member.member) {
                return Err(content("its members are not in order"));
            }
            members.push(member);
        }
        at.end()?;
        if generation < 0 {
            return Err(content("its generation is negative"));
        }
        if !members.is_empty() && (protocol_type.is_none() || protocol.is_none()) {
            return Err(content("it has members and no protocol"));
        }
        if leader.as_ref().is_some_and(|leader| members.iter().all(|member| member.member != *leader)) {
            return Err(content("its leader is no member"));
        }
        let instances: std::collections::BTreeSet<_> =
            members.iter().filter_map(|member| member.instance.as_ref()).collect();
        if instances.len() != members.iter().filter(|member| member.instance.is_some()).count() {
            return Err(content("two of its members have one instance id"));
        }
        Ok(GroupValue { generation, protocol_type, protocol, leader, emptied, members })
    }
}

impl Record {
    /// # Errors
    /// When key or value are none of this release.
    pub fn decode(key: &[u8], value: Option<&[u8]>) -> Result<Record, RecordError> {
        Ok(match RecordKey::decode(key)? {
            RecordKey::Group(group) => Record::Group(group, value.map(GroupValue::decode).transpose()?),
            RecordKey::Offset(group, topic) => {
                Record::Offset(group, topic, value.map(CommittedOffset::decode).transpose()?)
            }
        })
    }

    pub fn encode(&self) -> KeyedRecord {
        match self {
            Record::Group(group, value) => KeyedRecord {
                key: RecordKey::Group(group.clone()).encode(),
                value: value.as_ref().map(GroupValue::encode),
            },
            Record::Offset(group, topic, value) => KeyedRecord {
                key: offset_key(group, *topic),
                value: value.as_ref().map(CommittedOffset::encode),
            },
        }
    }
}

fn content(what: &'static str) -> RecordError {
    RecordError::Content { what }
}

#[cfg(test)]
mod tests;
