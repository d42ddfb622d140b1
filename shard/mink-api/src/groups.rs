//! Consumer groups: the coordinator of a group, wherever it is.
//!
//! Lives on: the service runtime.
//! Invariants: I18; I7: a commit whose outcome is not known is answered by [`GroupError::NotCoordinator`], which says "find the
//! coordinator and ask again" and never "not written". I3: what is told of a group is told only while the node's lease holds.
use crate::Broker;
use async_trait::async_trait;
use mink_group::{
    CommitRequest, CommittedOffset, Description, GroupError, GroupId, GroupState, HeartbeatRequest,
    JoinRefused, JoinRequest, Joined, LeaveRequest, LeftMember, Summary, SyncRequest, Synced, TopicKey,
};
use std::fmt::Debug;

/// Committed offsets by partition; none where nothing is committed.
pub type FetchedOffsets = Vec<(TopicKey, Option<CommittedOffset>)>;

/// The consumer groups that this node coordinates.
#[async_trait]
pub trait GroupCoordinator: Send + Sync + Debug {
    /// Which node coordinates a group, by any node. [`GroupError::CoordinatorNotAvailable`] while there is none.
    async fn coordinator(&self, group: &GroupId) -> Result<Broker, GroupError>;

    /// Answers when the group has its next generation, or refuses. Dropping the future leaves the member in the group, as a broken
    /// connection would.
    async fn join(&self, request: JoinRequest) -> Result<Joined, JoinRefused>;

    /// Answers when the leader has assigned.
    async fn sync(&self, request: SyncRequest) -> Result<Synced, GroupError>;

    async fn heartbeat(&self, request: HeartbeatRequest) -> Result<(), GroupError>;

    /// One result per member, in the request's order.
    async fn leave(&self, request: LeaveRequest) -> Result<Vec<LeftMember>, GroupError>;

    /// Answers when the offsets are durable: one result per offset, in the request's order.
    async fn commit(&self, request: CommitRequest) -> Result<Vec<Result<(), GroupError>>, GroupError>;

    /// The durable offsets of these partitions in their order; of all that have one if `topics` is none.
    async fn offsets(
        &self,
        group: &GroupId,
        topics: Option<Vec<TopicKey>>,
    ) -> Result<FetchedOffsets, GroupError>;

    /// Forgets offsets, durably: one result per partition, in their order.
    async fn delete_offsets(
        &self,
        group: &GroupId,
        topics: Vec<TopicKey>,
    ) -> Result<Vec<Result<(), GroupError>>, GroupError>;

    /// How a group stands; one that does not exist is [`GroupState::Dead`].
    async fn describe(&self, group: &GroupId) -> Result<Description, GroupError>;

    /// The groups of this node in one of these states, of all if none is named, in the order of their ids.
    async fn list(&self, states: Vec<GroupState>) -> Result<Vec<Summary>, GroupError>;

    /// Deletes a group without members, and its offsets, durably.
    async fn delete(&self, group: &GroupId) -> Result<(), GroupError>;
}
