//! What the task that coordinates is asked.
//!
//! Lives on: made wherever a frontend calls, taken by the one task.
//! Invariants: I20: so many wait in its lane at most; whoever finds no room waits.
use super::lag::Levels;
use mink_api::FetchedOffsets;
use mink_group::{
    CommitRequest, Description, GroupError, GroupId, GroupState, HeartbeatRequest, JoinRequest, LeaveRequest,
    LeftMember, Reply, Summary, SyncRequest, TopicKey,
};
use mink_router::ReplyTo;

/// Questions that wait to be taken, all groups together.
pub(crate) const ASKS_MAX: usize = 256;

/// By which a request that waits for other members, or for the log, is answered.
pub(super) type Token = ReplyTo<Reply>;

/// One question.
#[derive(Debug)]
pub(crate) enum Ask {
    Join(Box<JoinRequest>, Token),
    Sync(Box<SyncRequest>, Token),
    Commit(Box<CommitRequest>, Token),
    DeleteOffsets {
        group: GroupId,
        topics: Vec<TopicKey>,
        reply: Token,
    },
    Delete(GroupId, Token),
    Heartbeat(HeartbeatRequest, ReplyTo<Result<(), GroupError>>),
    Leave(LeaveRequest, ReplyTo<Result<Vec<LeftMember>, GroupError>>),
    Offsets {
        group: GroupId,
        topics: Option<Vec<TopicKey>>,
        reply: ReplyTo<Result<FetchedOffsets, GroupError>>,
    },
    Describe(GroupId, ReplyTo<Result<Description, GroupError>>),
    List(Vec<GroupState>, ReplyTo<Result<Vec<Summary>, GroupError>>),
    /// For `/metrics`.
    Levels(ReplyTo<Levels>),
    /// The node drains: whoever waits is told.
    Drain(ReplyTo<()>),
}
