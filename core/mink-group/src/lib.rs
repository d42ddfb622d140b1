//! Consumer groups, as pure steps: who is a member, which generation holds, what has been committed, and the keyed records that
//! keep it.
//!
//! Lives on: anywhere (pure); the owner of a coordinator bucket keeps one [`Groups`] for it.
//! Owns: members, generations, assignments and committed offsets of the groups of one coordinator bucket.
//! Talks to: nobody. A step takes its time and its randomness as inputs and leaves what its caller has to do in [`Effects`].
//! Invariants: I18 one owner per partition and generation, no commit of an old generation is accepted, committed offsets survive
//! any failover; I19 a refused step changes nothing; I20 all state is bounded by [`GroupLimits`].
//!
//! A caller keeps one timer, set to [`Groups::next_deadline`], and calls [`Groups::tick`] when it fires. What a step wants stored
//! stands in [`Effects::appends`]; it is appended to the bucket's log in that order, as one batch per append. Nothing of it is
//! visible until [`Groups::durable`] says so. An append that was refused for certain is reported with [`Groups::failed`]. When it
//! is unknown whether an append happened, the caller gives the coordinator up ([`Groups::close`]), reads the log again
//! ([`Fold`], [`Groups::load`]), and goes on with what it finds.
#![forbid(unsafe_code)]

mod bucket;
mod close;
mod commit;
mod deadlines;
mod delete;
mod describe;
mod durable;
mod effects;
mod error;
mod expire;
mod fetch;
mod flights;
mod group;
mod groups;
mod heartbeat;
mod ids;
mod join;
mod leave;
mod limits;
mod load;
mod members;
mod offsets;
mod rebalance;
mod record;
mod reply;
mod request;
mod static_join;
mod subscription;
mod sync;
mod tick;

pub use bucket::coordinator_bucket;
pub use describe::{Description, MemberDescription, Summary};
pub use effects::{Append, AppendRefused, Effects, Handle, KeyedRecord};
pub use error::{GroupError, RecordError};
pub use group::GroupState;
pub use groups::Groups;
pub use ids::{GROUP_ID_BYTES_MAX, GroupId, InstanceId, MemberId, Now, TopicKey};
pub use limits::GroupLimits;
pub use load::Fold;
pub use record::{CommittedOffset, GroupValue, MemberValue, Record, RecordKey, group_prefix};
pub use reply::{JoinRefused, Joined, JoinedMember, LeftMember, Reply, Synced};
pub use request::{
    CommitRequest, HeartbeatRequest, JoinRequest, LeaveRequest, Leaving, OffsetToCommit, Protocol,
    SyncRequest,
};

#[cfg(test)]
mod tests;
