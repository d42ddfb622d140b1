//! Members that leave, one by one or many at once.
//!
//! Lives on: tests.
use super::harness::{Bench, group, joining, joining_static, syncing};
use crate::{GroupError, GroupState, JoinRequest};

#[test]
fn the_last_member_leaves_an_empty_group_whose_generation_is_stored() {
    let mut bench = Bench::new();
    let (leader, follower) = bench.pair();
    let left = bench.leave(&[(leader.as_str(), None)]).expect("answered");
    assert_eq!(left[0].result, Ok(()));
    assert_eq!(bench.state(), GroupState::PreparingRebalance);
    assert_eq!(bench.heartbeat(&leader, 2), Err(GroupError::UnknownMemberId));
    bench.leave(&[(follower.as_str(), None)]).expect("answered");
    assert_eq!((bench.state(), bench.generation()), (GroupState::Empty, 3));
    bench.reload();
    assert_eq!((bench.state(), bench.generation()), (GroupState::Empty, 3));
    let token = bench.join(joining(""));
    assert_eq!(bench.joined(token).generation, 4, "generations never go back");
}

#[test]
fn each_of_many_that_leave_is_answered_for_itself() {
    let mut bench = Bench::new();
    let first = bench.join(joining_static("x"));
    let leader = bench.joined(first).member;
    bench.sync(syncing(&leader, 1, &[]));
    let handed = bench.join(JoinRequest { member_id_required: true, ..joining("") });
    let pending = bench.not_joined(handed).member;
    let left = bench
        .leave(&[
            ("nobody", None),
            ("", Some("nobody")),
            ("", None),
            ("wrong", Some("x")),
            (pending.as_str(), None),
            ("", Some("x")),
        ])
        .expect("answered");
    let unknown = Err(GroupError::UnknownMemberId);
    let results: Vec<_> = left.iter().map(|left| left.result).collect();
    assert_eq!(results, [unknown, unknown, unknown, Err(GroupError::FencedInstanceId), Ok(()), Ok(())]);
    assert_eq!(bench.state(), GroupState::Empty);
}

#[test]
fn nobody_can_leave_a_group_that_does_not_exist() {
    let mut bench = Bench::new();
    let left = bench.leave(&[("m", None)]).expect("answered");
    assert_eq!(left[0].result, Err(GroupError::UnknownMemberId));
    assert!(bench.groups.is_empty());
}

#[test]
fn what_a_member_waits_with_is_answered_when_it_leaves() {
    let mut bench = Bench::new();
    let (leader, follower) = bench.pair();
    let join = bench.join(joining(leader.as_str()));
    bench.leave(&[(leader.as_str(), None)]).expect("answered");
    assert_eq!(bench.not_joined(join).error, GroupError::UnknownMemberId);
    let join = bench.join(joining(follower.as_str()));
    assert_eq!(bench.joined(join).members.len(), 1);
    let other = bench.join(joining(""));
    bench.join(joining(follower.as_str()));
    let other = bench.joined(other).member;
    let sync = bench.sync(syncing(&other, bench.generation(), &[]));
    bench.leave(&[(other.as_str(), None)]).expect("answered");
    assert_eq!(bench.synced(sync), Err(GroupError::UnknownMemberId));
    assert_eq!(bench.groups.describe(&group()).members.len(), 1);
}
