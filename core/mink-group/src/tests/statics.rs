//! Static members: an instance that starts anew goes on where it was.
//!
//! Lives on: tests.
use super::harness::{Bench, committing, group, id, joining, joining_static, protocol, syncing, topic};
use crate::{
    AppendRefused, GroupError, GroupState, HeartbeatRequest, InstanceId, JoinRequest, MemberId, Protocol,
};

/// Two static members, `x` the leader and `y`, with an assignment each.
fn static_pair(bench: &mut Bench) -> (MemberId, MemberId) {
    let first = bench.join(joining_static("x"));
    let leader = bench.joined(first).member;
    let second = bench.join(joining_static("y"));
    let again = bench.join(JoinRequest { member: leader.clone(), ..joining_static("x") });
    assert_eq!(bench.joined(again).generation, 2);
    let follower = bench.joined(second).member;
    bench.settle(&leader, &follower);
    (leader, follower)
}

fn heartbeat_as(
    bench: &mut Bench,
    member: &MemberId,
    instance: &str,
    generation: i32,
) -> Result<(), GroupError> {
    let instance = Some(InstanceId::new(instance));
    let request = HeartbeatRequest { group: group(), member: member.clone(), instance, generation };
    bench.groups.heartbeat(&request, bench.now)
}

#[test]
fn k_22_an_instance_that_joins_again_in_stable_keeps_its_assignment_and_its_old_id_is_fenced() {
    let mut bench = Bench::new();
    let (leader, follower) = static_pair(&mut bench);
    let token = bench.join(joining_static("y"));
    let joined = bench.joined(token);
    assert_eq!((joined.generation, bench.state()), (2, GroupState::Stable));
    assert_ne!(joined.member, follower);
    assert_eq!((joined.leader.as_ref(), joined.members.len()), (Some(&leader), 0));
    let sync = bench.sync(syncing(&joined.member, 2, &[]));
    assert_eq!(bench.assignment(sync), "B");
    assert_eq!(heartbeat_as(&mut bench, &follower, "y", 2), Err(GroupError::FencedInstanceId));
    assert_eq!(bench.heartbeat(&follower, 2), Err(GroupError::UnknownMemberId));
    let instance = Some(InstanceId::new("y"));
    let sync = bench.sync(crate::SyncRequest { instance: instance.clone(), ..syncing(&follower, 2, &[]) });
    assert_eq!(bench.synced(sync), Err(GroupError::FencedInstanceId));
    let commit = committing(follower.as_str(), 2, &[(topic(1, 0), 5)]);
    let commit = bench.commit(crate::CommitRequest { instance, ..commit });
    assert_eq!(bench.committed(commit), Err(GroupError::FencedInstanceId));
    let left = bench.leave(&[(follower.as_str(), Some("y"))]).expect("answered");
    assert_eq!(left[0].result, Err(GroupError::FencedInstanceId));
}

#[test]
fn k_22_an_instance_that_joins_again_while_assignments_are_made_begins_a_rebalance() {
    let mut bench = Bench::new();
    let (leader, follower) = static_pair(&mut bench);
    bench.join(JoinRequest { member: leader.clone(), ..joining_static("x") });
    bench.join(JoinRequest { member: follower.clone(), ..joining_static("y") });
    assert_eq!((bench.state(), bench.generation()), (GroupState::CompletingRebalance, 3));
    let waiting =
        bench.sync(crate::SyncRequest { instance: Some(InstanceId::new("y")), ..syncing(&follower, 3, &[]) });
    let token = bench.join(joining_static("y"));
    assert_eq!(bench.synced(waiting), Err(GroupError::FencedInstanceId));
    assert_eq!(bench.state(), GroupState::PreparingRebalance);
    let sync = bench.sync(syncing(&leader, 3, &[(&leader, "A"), (&follower, "B")]));
    assert_eq!(bench.synced(sync), Err(GroupError::RebalanceInProgress));
    bench.join(JoinRequest { member: leader.clone(), ..joining_static("x") });
    let joined = bench.joined(token);
    assert_eq!(joined.generation, 4);
    bench.settle(&leader, &joined.member);
}

#[test]
fn a_join_that_waits_is_fenced_when_its_instance_joins_again() {
    let mut bench = Bench::new();
    let (leader, follower) = static_pair(&mut bench);
    bench.join(joining(""));
    let waiting = bench.join(JoinRequest { member: follower.clone(), ..joining_static("y") });
    bench.join(joining_static("y"));
    assert_eq!(bench.not_joined(waiting).error, GroupError::FencedInstanceId);
    assert_eq!(bench.state(), GroupState::PreparingRebalance);
    bench.join(JoinRequest { member: leader, ..joining_static("x") });
    assert_eq!((bench.state(), bench.generation()), (GroupState::CompletingRebalance, 3));
}

#[test]
fn a_leader_that_joins_again_is_told_to_assign_nothing_when_it_can_be_told() {
    let mut bench = Bench::new();
    let (leader, _) = static_pair(&mut bench);
    let token = bench.join(joining_static("x"));
    let old = bench.joined(token);
    assert_eq!(
        (old.leader.as_ref(), old.skip_assignment),
        (Some(&leader), false),
        "it is not the leader, it reads"
    );
    assert!(old.members.is_empty());
    let token = bench.join(JoinRequest { can_skip_assignment: true, ..joining_static("x") });
    let new = bench.joined(token);
    assert_eq!((new.leader.as_ref(), new.skip_assignment), (Some(&new.member), true));
    assert_eq!((new.members.len(), new.generation), (2, 2));
    let token = bench.join(JoinRequest { can_skip_assignment: true, ..joining_static("y") });
    assert!(!bench.joined(token).skip_assignment);
}

#[test]
fn an_instance_that_changes_the_chosen_protocol_begins_a_rebalance() {
    let mut bench = Bench::new();
    let both = |member: &str, instance| JoinRequest {
        protocols: vec![protocol("range"), protocol("sticky")],
        member: id(member),
        ..joining_static(instance)
    };
    let first = bench.join(both("", "x"));
    let leader = bench.joined(first).member;
    bench.sync(syncing(&leader, 1, &[]));
    let sticky = Protocol { name: "sticky".into(), ..protocol("range") };
    let token = bench.join(JoinRequest { protocols: vec![sticky], ..joining_static("x") });
    let joined = bench.joined(token);
    assert_eq!((joined.generation, joined.protocol.as_deref()), (2, Some("sticky")));
}

#[test]
fn i18_a_successor_is_answered_when_its_id_is_durable() {
    let mut bench = Bench::new();
    static_pair(&mut bench);
    bench.stores_at_once = false;
    let token = bench.join(joining_static("y"));
    assert!(bench.waits(token));
    bench.refuse(AppendRefused::Retriable);
    assert_eq!(bench.not_joined(token).error, GroupError::CoordinatorNotAvailable);
    let token = bench.join(joining_static("y"));
    bench.store_all();
    let member = bench.joined(token).member;
    bench.reload();
    assert_eq!(heartbeat_as(&mut bench, &member, "y", 2), Ok(()));
}

#[test]
fn a_successor_that_waits_for_the_log_is_answered_by_a_rebalance_that_comes_first() {
    let mut bench = Bench::new();
    let (leader, _) = static_pair(&mut bench);
    bench.stores_at_once = false;
    let token = bench.join(joining_static("y"));
    bench.join(JoinRequest { member: leader, ..joining_static("x") });
    assert_eq!(bench.joined(token).generation, 3);
    bench.store_all();
    assert_eq!(bench.state(), GroupState::CompletingRebalance);
}

#[test]
fn an_absent_instance_stays_a_member_until_its_session_or_the_wait_for_syncs_ends() {
    let mut bench = Bench::new();
    let request = |member: &str, instance| JoinRequest {
        session_timeout_ms: 1_000_000,
        member: id(member),
        ..joining_static(instance)
    };
    let first = bench.join(request("", "x"));
    let leader = bench.joined(first).member;
    let second = bench.join(request("", "y"));
    bench.join(request(leader.as_str(), "x"));
    let follower = bench.joined(second).member;
    bench.settle(&leader, &follower);
    let again = bench.join(request(leader.as_str(), "x"));
    bench.advance(60_000);
    let joined = bench.joined(again);
    assert_eq!((joined.generation, joined.members.len()), (3, 2), "y keeps its place");
    bench.sync(syncing(&leader, 3, &[(&leader, "A"), (&follower, "B")]));
    assert_eq!(bench.state(), GroupState::Stable);
    bench.advance(60_000);
    assert_eq!(bench.state(), GroupState::PreparingRebalance, "y never asked for its assignment");
    let again = bench.join(request(leader.as_str(), "x"));
    assert_eq!(bench.joined(again).members.len(), 1);
}
