//! Answers to requests that may have to wait: for other members, or for the log.
//!
//! Lives on: anywhere (pure).
use crate::{GroupError, InstanceId, MemberId};
use bytes::Bytes;
use std::sync::Arc;

/// The answer to one request, by its kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    Join(Result<Joined, JoinRefused>),
    Sync(Result<Synced, GroupError>),
    /// One result per offset, in the request's order.
    Commit(Result<Vec<Result<(), GroupError>>, GroupError>),
    /// One result per partition, in the request's order.
    DeleteOffsets(Result<Vec<Result<(), GroupError>>, GroupError>),
    Delete(Result<(), GroupError>),
}

/// A member of a new generation, or of the current one again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Joined {
    pub generation: i32,
    pub protocol_type: Option<Arc<str>>,
    pub protocol: Option<Arc<str>>,
    /// Who assigns. Before version 9 a leader that must not assign is told its predecessor's id.
    pub leader: Option<MemberId>,
    pub member: MemberId,
    /// The leader is to assign nothing: the assignments of this generation hold.
    pub skip_assignment: bool,
    /// All members, for the leader; nobody, for the others.
    pub members: Vec<JoinedMember>,
}

/// What the leader is told of each member.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JoinedMember {
    pub member: MemberId,
    pub instance: Option<InstanceId>,
    /// What it gave for the chosen protocol.
    pub metadata: Bytes,
}

/// A refused join, with the member id to answer (for [`GroupError::MemberIdRequired`] the new one).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JoinRefused {
    pub error: GroupError,
    /// Empty when there is none to keep.
    pub member: MemberId,
}

/// What a member is to consume.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Synced {
    pub protocol_type: Option<Arc<str>>,
    pub protocol: Option<Arc<str>>,
    pub assignment: Bytes,
}

/// What became of one member of a LeaveGroup.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeftMember {
    pub member: MemberId,
    pub instance: Option<InstanceId>,
    pub result: Result<(), GroupError>,
}
