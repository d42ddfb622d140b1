//! What members ask for, decoded and typed. Versions of the protocol appear as what they mean.
//!
//! Lives on: anywhere (pure).
use crate::{GroupId, InstanceId, MemberId, TopicKey};
use bytes::Bytes;
use std::sync::Arc;

/// One way of assigning that a member supports, with what the leader needs to know of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Protocol {
    pub name: Arc<str>,
    pub metadata: Bytes,
}

/// JoinGroup.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JoinRequest {
    pub group: GroupId,
    /// Empty for a member that has no id yet.
    pub member: MemberId,
    pub instance: Option<InstanceId>,
    pub client_id: Arc<str>,
    pub client_host: Arc<str>,
    pub session_timeout_ms: i32,
    /// None in version 0, which has none: the session time-out stands for it (K-20).
    pub rebalance_timeout_ms: Option<i32>,
    pub protocol_type: Arc<str>,
    /// In the order of preference.
    pub protocols: Vec<Protocol>,
    /// Version 4 and above: a dynamic member is told its id before it is a member.
    pub member_id_required: bool,
    /// Version 9 and above: a leader can be told to assign nothing.
    pub can_skip_assignment: bool,
    /// 16 random bytes, from which a new member gets its id.
    pub unique: [u8; 16],
}

/// SyncGroup.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SyncRequest {
    pub group: GroupId,
    pub member: MemberId,
    pub instance: Option<InstanceId>,
    pub generation: i32,
    /// Version 5 and above.
    pub protocol_type: Option<Arc<str>>,
    pub protocol: Option<Arc<str>>,
    /// The leader's assignments; whoever is not in them gets an empty one.
    pub assignments: Vec<(MemberId, Bytes)>,
}

/// Heartbeat.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeartbeatRequest {
    pub group: GroupId,
    pub member: MemberId,
    pub instance: Option<InstanceId>,
    pub generation: i32,
}

/// LeaveGroup.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeaveRequest {
    pub group: GroupId,
    pub members: Vec<Leaving>,
}

/// One member that leaves: by its id, or by its instance id with an empty member id.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leaving {
    pub member: MemberId,
    pub instance: Option<InstanceId>,
}

/// OffsetCommit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommitRequest {
    pub group: GroupId,
    /// Empty for a consumer that is no member.
    pub member: MemberId,
    pub instance: Option<InstanceId>,
    /// -1 for a consumer that is no member.
    pub generation: i32,
    pub offsets: Vec<OffsetToCommit>,
    /// Versions 2 to 4 may say how long the offsets are to be kept, in ms.
    pub retention_ms: Option<u64>,
}

/// One offset of a commit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OffsetToCommit {
    pub topic: TopicKey,
    /// As the client sends it.
    pub offset: i64,
    /// -1 when the client knows none.
    pub leader_epoch: i32,
    pub metadata: Arc<str>,
}
