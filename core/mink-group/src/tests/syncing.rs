//! Assignments: taken once per generation, handed out when they are durable.
//!
//! Lives on: tests.
use super::harness::{Bench, joining, syncing};
use crate::{AppendRefused, GroupError, GroupLimits, GroupState, MemberId};

/// A group of two in CompletingRebalance, generation 2.
fn completing(bench: &mut Bench) -> (MemberId, MemberId) {
    let first = bench.join(joining(""));
    let leader = bench.joined(first).member;
    let second = bench.join(joining(""));
    bench.join(joining(leader.as_str()));
    (leader, bench.joined(second).member)
}

#[test]
fn p_19_a_follower_waits_for_the_leader_and_gets_what_it_assigns() {
    let mut bench = Bench::new();
    let (leader, follower) = completing(&mut bench);
    let waiting = bench.sync(syncing(&follower, 2, &[]));
    bench.advance(500);
    assert!(bench.waits(waiting));
    let first = bench.sync(syncing(&leader, 2, &[(&leader, "A"), (&follower, "B")]));
    assert_eq!((bench.assignment(first), bench.assignment(waiting)), ("A".into(), "B".into()));
    let again = bench.sync(syncing(&follower, 2, &[]));
    assert_eq!(bench.assignment(again), "B");
}

#[test]
fn i18_no_assignment_is_handed_out_before_it_is_durable() {
    let mut bench = Bench::new();
    let (leader, follower) = completing(&mut bench);
    bench.stores_at_once = false;
    let waiting = bench.sync(syncing(&follower, 2, &[]));
    let first = bench.sync(syncing(&leader, 2, &[(&leader, "A"), (&follower, "B")]));
    bench.advance(5_000);
    assert!(bench.waits(waiting) && bench.waits(first));
    assert_eq!(bench.state(), GroupState::CompletingRebalance);
    bench.store_all();
    assert_eq!((bench.assignment(first), bench.assignment(waiting)), ("A".into(), "B".into()));
    assert_eq!(bench.state(), GroupState::Stable);
}

#[test]
fn i18_a_leader_that_syncs_twice_is_taken_at_its_first_word() {
    let mut bench = Bench::new();
    let (leader, follower) = completing(&mut bench);
    bench.stores_at_once = false;
    let first = bench.sync(syncing(&leader, 2, &[(&leader, "A"), (&follower, "B")]));
    let second = bench.sync(syncing(&leader, 2, &[(&leader, "B"), (&follower, "A")]));
    assert_eq!(bench.synced(first), Err(GroupError::RebalanceInProgress));
    assert_eq!(bench.queued.len(), 1);
    bench.store_all();
    assert_eq!(bench.assignment(second), "A");
}

#[test]
fn i18_the_assignment_of_a_stored_generation_holds_after_a_crash() {
    let mut bench = Bench::new();
    let (leader, follower) = bench.pair();
    bench.reload();
    assert_eq!((bench.state(), bench.generation()), (GroupState::Stable, 2));
    let sync = bench.sync(syncing(&follower, 2, &[]));
    assert_eq!(bench.assignment(sync), "B");
    bench.advance(9_999);
    assert_eq!(bench.heartbeat(&leader, 2), Ok(()), "a whole session after the crash");
    bench.advance(1);
    assert_eq!(bench.state(), GroupState::PreparingRebalance, "the follower has been silent");
}

#[test]
fn a_member_that_the_leader_forgot_gets_nothing() {
    let mut bench = Bench::new();
    let (leader, follower) = completing(&mut bench);
    bench.sync(syncing(&leader, 2, &[(&leader, "A")]));
    let sync = bench.sync(syncing(&follower, 2, &[]));
    assert_eq!(bench.assignment(sync), "");
}

#[test]
fn a_leader_that_never_syncs_is_no_member_after_the_rebalance_timeout() {
    let mut bench = Bench::new();
    let (leader, follower) = completing(&mut bench);
    let waiting = bench.sync(syncing(&follower, 2, &[]));
    for _ in 0..59 {
        bench.advance(1_000);
        assert_eq!(bench.heartbeat(&leader, 2), Ok(()));
    }
    bench.advance(1_000);
    assert_eq!(bench.synced(waiting), Err(GroupError::RebalanceInProgress));
    assert_eq!(bench.heartbeat(&leader, 2), Err(GroupError::UnknownMemberId));
    let again = bench.join(joining(follower.as_str()));
    assert_eq!((bench.joined(again).generation, bench.joined(again).members.len()), (3, 1));
}

#[test]
fn a_follower_that_never_syncs_is_no_member_after_the_rebalance_timeout() {
    let mut bench = Bench::new();
    let (leader, follower) = completing(&mut bench);
    bench.sync(syncing(&leader, 2, &[(&leader, "A")]));
    for _ in 0..60 {
        assert_eq!(bench.state(), GroupState::Stable);
        bench.advance(1_000);
        let _ = (bench.heartbeat(&leader, 2), bench.heartbeat(&follower, 2));
    }
    assert_eq!(bench.state(), GroupState::PreparingRebalance);
    assert_eq!(bench.heartbeat(&follower, 2), Err(GroupError::UnknownMemberId));
}

#[test]
fn a_sync_is_refused_by_generation_member_and_protocol() {
    let mut bench = Bench::new();
    let token = bench.sync(syncing(&MemberId::new("m"), 1, &[]));
    assert_eq!(bench.synced(token), Err(GroupError::UnknownMemberId));
    let (leader, _) = bench.pair();
    let mut refused = |request| {
        let token = bench.sync(request);
        bench.synced(token).err()
    };
    let sound = syncing(&leader, 2, &[]);
    assert_eq!(refused(syncing(&MemberId::new("m"), 2, &[])), Some(GroupError::UnknownMemberId));
    assert_eq!(refused(syncing(&leader, 1, &[])), Some(GroupError::IllegalGeneration));
    let other = crate::SyncRequest { protocol_type: Some("connect".into()), ..sound.clone() };
    assert_eq!(refused(other), Some(GroupError::InconsistentGroupProtocol));
    let other = crate::SyncRequest { protocol: Some("sticky".into()), ..sound.clone() };
    assert_eq!(refused(other), Some(GroupError::InconsistentGroupProtocol));
    let same = crate::SyncRequest {
        protocol_type: Some("consumer".into()),
        protocol: Some("range".into()),
        ..sound.clone()
    };
    assert_eq!(refused(same), None);
    bench.join(joining(""));
    let token = bench.sync(sound);
    assert_eq!(bench.synced(token), Err(GroupError::RebalanceInProgress));
}

#[test]
fn assignments_that_cannot_be_stored_begin_a_rebalance() {
    let mut bench = Bench::new();
    let (leader, follower) = completing(&mut bench);
    bench.stores_at_once = false;
    for (why, error) in [
        (AppendRefused::Retriable, GroupError::CoordinatorNotAvailable),
        (AppendRefused::NotOwner, GroupError::NotCoordinator),
        (AppendRefused::TooLarge, GroupError::UnknownServerError),
    ] {
        let generation = bench.generation();
        let waiting = bench.sync(syncing(&follower, generation, &[]));
        let first = bench.sync(syncing(&leader, generation, &[(&leader, "A"), (&follower, "B")]));
        bench.refuse(why);
        assert_eq!((bench.synced(first), bench.synced(waiting)), (Err(error), Err(error)));
        assert_eq!(bench.state(), GroupState::PreparingRebalance);
        bench.join(joining(leader.as_str()));
        bench.join(joining(follower.as_str()));
        assert_eq!(bench.generation(), generation + 1);
    }
}

#[test]
fn i18_assignments_that_become_durable_after_a_rebalance_began_are_not_handed_out() {
    let mut bench = Bench::new();
    let (leader, follower) = completing(&mut bench);
    bench.stores_at_once = false;
    let first = bench.sync(syncing(&leader, 2, &[(&leader, "A"), (&follower, "B")]));
    let third = bench.join(joining(""));
    assert_eq!(bench.synced(first), Err(GroupError::RebalanceInProgress));
    bench.store_all();
    assert_eq!(bench.state(), GroupState::PreparingRebalance);
    bench.join(joining(leader.as_str()));
    bench.join(joining(follower.as_str()));
    assert_eq!(bench.joined(third).generation, 3);
}

#[test]
fn assignments_larger_than_a_group_may_be_are_refused() {
    let limits = GroupLimits { rebalance_delay_ms: 0, group_bytes_max: 4_096, ..GroupLimits::default() };
    let mut bench = Bench::with(limits);
    let token = bench.join(joining(""));
    let leader = bench.joined(token).member;
    let sync = bench.sync(syncing(&leader, 1, &[(&leader, &"A".repeat(4_096))]));
    assert_eq!(bench.synced(sync), Err(GroupError::UnknownServerError));
    assert!(bench.log.is_empty());
}
