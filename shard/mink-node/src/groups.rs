//! Consumer groups of this node: the way in for frontends, and the task that coordinates.
//!
//! Lives on: the service runtime.
//! Owns: nothing here; one task, [`Actor`], owns every coordinator, and is asked by messages.
//! Invariants: I3: what is told of a group is told only if the node's lease holds when the answer leaves; I18 (mink-group). A commit, and
//! whatever else the log has taken, is told without the lease, as an append is: a successor recovers it before it serves.
//! See: docs/decisions/0017-group-offsets-in-a-keyed-log.md
mod actor;
mod answer;
mod append;
mod ask;
mod checkpoint;
mod clock;
mod coordinator;
mod fullness;
mod lag;
mod load;
mod log;
mod table;

pub(crate) use actor::Actor;
pub(crate) use ask::{ASKS_MAX, Ask};
pub use table::GROUP_BUCKETS;
pub(crate) use table::{is_internal_topic, refuse_internal};

use crate::context::Context;
use async_trait::async_trait;
use mink_api::{Broker, FetchedOffsets, GroupCoordinator};
use mink_group::{
    CommitRequest, Description, GroupError, GroupId, GroupState, HeartbeatRequest, JoinRefused, JoinRequest,
    Joined, LeaveRequest, LeftMember, MemberId, Reply, Summary, SyncRequest, Synced, TopicKey,
    coordinator_bucket,
};
use mink_router::{ReplyTo, reply};
use mink_types::{BucketId, BucketIndex};
use std::sync::Arc;
use std::time::Duration;

/// How long the search for a coordinator waits for its bucket to have an owner, and to be open if it is ours.
const OPEN_WAIT_MAX: Duration = Duration::from_secs(5);

/// [`GroupCoordinator`] of a node.
#[derive(Clone, Debug)]
pub(crate) struct NodeGroups(pub(crate) Arc<Context>);

impl NodeGroups {
    /// Asks the task that coordinates, waiting for room in its lane.
    async fn ask<T>(&self, ask: impl FnOnce(ReplyTo<T>) -> Ask) -> Result<T, GroupError> {
        let (reply, answer) = reply();
        self.0.groups.send(ask(reply)).await.map_err(|_| GroupError::NotCoordinator)?;
        answer.answer().await.map_err(|_| GroupError::NotCoordinator)
    }

    /// What a group's state says leaves only while no successor can have another.
    fn told<T>(&self, answer: Result<T, GroupError>) -> Result<T, GroupError> {
        if self.0.lease_holds() { answer } else { Err(GroupError::NotCoordinator) }
    }

    /// What the log has taken is true for every successor; a refusal is the group's state.
    fn stored<T>(&self, answer: Result<T, GroupError>) -> Result<T, GroupError> {
        if answer.is_ok() { answer } else { self.told(answer) }
    }
}

impl Context {
    /// The node drains: every question is answered by "not the coordinator" from then on; those that wait are answered here.
    pub(crate) async fn drain_groups(&self) {
        let (reply, answer) = reply();
        // Without the task that coordinates nobody waits.
        if self.groups.send(Ask::Drain(reply)).await.is_ok() {
            let _ = answer.answer().await;
        }
    }
}

#[async_trait]
impl GroupCoordinator for NodeGroups {
    async fn coordinator(&self, group: &GroupId) -> Result<Broker, GroupError> {
        let context = &self.0;
        let found = async {
            let (table, buckets) = context.group_table().await.ok()?;
            let bucket = BucketId::unpartitioned(table, BucketIndex(coordinator_bucket(group, buckets)));
            let owner = |state: &mink_metadata::State| {
                let owner = state.bucket(&bucket)?.owner?;
                state.incarnation(owner).filter(|life| !life.fenced).map(|life| (owner, life.node()))
            };
            let state = context.metadata.wait_until(|state| owner(state).is_some()).await.ok()?;
            let (owner, node) = owner(&state)?;
            if owner == context.me() {
                // It answers nothing any more; whoever takes the bucket next does.
                if context.is_draining() {
                    return None;
                }
                context.opened.wait(&[bucket]).await;
            }
            context.brokers().into_iter().find(|broker| broker.node == node)
        };
        let found = context.service.timeout(OPEN_WAIT_MAX, found).await.ok().flatten();
        found.ok_or(GroupError::CoordinatorNotAvailable)
    }

    async fn join(&self, request: JoinRequest) -> Result<Joined, JoinRefused> {
        let member = request.member.clone();
        let refused = |error| JoinRefused { error, member: MemberId::new("") };
        let answer = match self.ask(|reply| Ask::Join(Box::new(request), reply)).await {
            Ok(Reply::Join(answer)) => answer,
            Ok(_) => Err(refused(GroupError::UnknownServerError)),
            Err(error) => Err(refused(error)),
        };
        if self.0.lease_holds() {
            answer
        } else {
            Err(JoinRefused { error: GroupError::NotCoordinator, member })
        }
    }

    async fn sync(&self, request: SyncRequest) -> Result<Synced, GroupError> {
        let answer = match self.ask(|reply| Ask::Sync(Box::new(request), reply)).await? {
            Reply::Sync(answer) => answer,
            _ => Err(GroupError::UnknownServerError),
        };
        self.told(answer)
    }

    async fn heartbeat(&self, request: HeartbeatRequest) -> Result<(), GroupError> {
        let answer = self.ask(|reply| Ask::Heartbeat(request, reply)).await?;
        self.told(answer)
    }

    async fn leave(&self, request: LeaveRequest) -> Result<Vec<LeftMember>, GroupError> {
        let answer = self.ask(|reply| Ask::Leave(request, reply)).await?;
        self.told(answer)
    }

    async fn commit(&self, request: CommitRequest) -> Result<Vec<Result<(), GroupError>>, GroupError> {
        let answer = match self.ask(|reply| Ask::Commit(Box::new(request), reply)).await? {
            Reply::Commit(answer) => answer,
            _ => Err(GroupError::UnknownServerError),
        };
        self.stored(answer)
    }

    async fn offsets(
        &self,
        group: &GroupId,
        topics: Option<Vec<TopicKey>>,
    ) -> Result<FetchedOffsets, GroupError> {
        let answer = self.ask(|reply| Ask::Offsets { group: group.clone(), topics, reply }).await?;
        self.told(answer)
    }

    async fn delete_offsets(
        &self,
        group: &GroupId,
        topics: Vec<TopicKey>,
    ) -> Result<Vec<Result<(), GroupError>>, GroupError> {
        let group = group.clone();
        let answer = match self.ask(|reply| Ask::DeleteOffsets { group, topics, reply }).await? {
            Reply::DeleteOffsets(answer) => answer,
            _ => Err(GroupError::UnknownServerError),
        };
        self.stored(answer)
    }

    async fn describe(&self, group: &GroupId) -> Result<Description, GroupError> {
        let answer = self.ask(|reply| Ask::Describe(group.clone(), reply)).await?;
        self.told(answer)
    }

    async fn list(&self, states: Vec<GroupState>) -> Result<Vec<Summary>, GroupError> {
        let answer = self.ask(|reply| Ask::List(states, reply)).await?;
        self.told(answer)
    }

    async fn delete(&self, group: &GroupId) -> Result<(), GroupError> {
        let answer = match self.ask(|reply| Ask::Delete(group.clone(), reply)).await? {
            Reply::Delete(answer) => answer,
            _ => Err(GroupError::UnknownServerError),
        };
        self.stored(answer)
    }
}
