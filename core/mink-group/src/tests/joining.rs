//! Who becomes a member, when a generation begins, and who is told what.
//!
//! Lives on: tests.
use super::harness::{Bench, id, joining, protocol, subscription, syncing};
use crate::{GroupError, GroupLimits, GroupState, Protocol};

#[test]
fn a_dynamic_member_of_version_4_is_told_its_id_before_it_is_a_member() {
    let mut bench = Bench::new();
    let first = bench.join(crate::JoinRequest { member_id_required: true, ..joining("") });
    let refused = bench.not_joined(first);
    assert_eq!(refused.error, GroupError::MemberIdRequired);
    assert!(refused.member.as_str().starts_with("c-"));
    assert_eq!((bench.state(), bench.groups.members()), (GroupState::Empty, 0));
    let second =
        bench.join(crate::JoinRequest { member_id_required: true, ..joining(refused.member.as_str()) });
    let joined = bench.joined(second);
    assert_eq!((joined.generation, &joined.member), (1, &refused.member));
    assert_eq!(joined.leader.as_ref(), Some(&refused.member));
    assert_eq!(joined.members.len(), 1);
}

#[test]
fn a_member_of_version_3_joins_at_once() {
    let mut bench = Bench::new();
    let token = bench.join(joining(""));
    assert_eq!(bench.joined(token).generation, 1);
    assert_eq!(bench.state(), GroupState::CompletingRebalance);
}

#[test]
fn an_id_that_nobody_was_given_is_unknown() {
    let mut bench = Bench::new();
    let token = bench.join(joining("made-up"));
    assert_eq!(bench.not_joined(token).error, GroupError::UnknownMemberId);
    assert!(bench.groups.is_empty(), "nothing is left of it");
    bench.pair();
    let token = bench.join(joining("made-up"));
    assert_eq!(bench.not_joined(token).error, GroupError::UnknownMemberId);
    assert_eq!(bench.state(), GroupState::Stable);
}

#[test]
fn an_id_that_is_never_used_expires_and_its_group_is_forgotten() {
    let mut bench = Bench::new();
    bench.join(crate::JoinRequest { member_id_required: true, ..joining("") });
    bench.advance(9_999);
    assert_eq!(bench.groups.len(), 1);
    bench.advance(1);
    assert_eq!((bench.groups.len(), bench.groups.bytes(), bench.groups.next_deadline()), (0, 0, None));
    assert!(bench.log.is_empty());
}

#[test]
fn the_session_timeout_has_bounds() {
    let mut bench = Bench::new();
    for (ms, fits) in [(5_999, false), (6_000, true), (1_800_000, true), (1_800_001, false), (-1, false)] {
        let token = bench.join(crate::JoinRequest { session_timeout_ms: ms, ..joining("") });
        let refused = match &bench.answers.get(&token) {
            Some(crate::Reply::Join(Err(refused))) => refused.error == GroupError::InvalidSessionTimeout,
            _ => false,
        };
        assert_eq!(refused, !fits, "{ms}");
    }
}

#[test]
fn a_new_group_waits_for_more_members_and_longer_while_they_arrive() {
    let mut bench = Bench::with(GroupLimits::default());
    let first = bench.join(joining(""));
    bench.advance(2_000);
    let second = bench.join(joining(""));
    bench.advance(1_000);
    assert!(bench.waits(first), "someone has come, so it waits once more");
    bench.advance(2_999);
    assert!(bench.waits(first) && bench.waits(second));
    bench.advance(1);
    assert_eq!((bench.joined(first).generation, bench.joined(second).generation), (1, 1));
    assert_eq!(bench.joined(first).members.len(), 2);
}

#[test]
fn a_new_group_does_not_wait_beyond_the_rebalance_timeout() {
    let mut bench = Bench::with(GroupLimits::default());
    let request = crate::JoinRequest { rebalance_timeout_ms: Some(10_000), ..joining("") };
    let first = bench.join(request.clone());
    for _ in 0..9 {
        bench.advance(1_000);
        bench.join(request.clone());
    }
    assert!(bench.waits(first));
    bench.advance(1_000);
    assert_eq!(bench.joined(first).generation, 1);
}

#[test]
fn k_20_two_members_without_a_rebalance_timeout_are_stable_after_one_rebalance() {
    let mut bench = Bench::new();
    let request = |member| crate::JoinRequest { rebalance_timeout_ms: None, ..joining(member) };
    let first = bench.join(request(""));
    let leader = bench.joined(first).member;
    let token = bench.sync(syncing(&leader, 1, &[(&leader, "A")]));
    assert_eq!(bench.assignment(token), "A");
    let second = bench.join(request(""));
    bench.advance(3_000);
    assert_eq!(bench.heartbeat(&leader, 1), Err(GroupError::RebalanceInProgress));
    let again = bench.join(request(leader.as_str()));
    let (leader, follower) = (bench.joined(again), bench.joined(second));
    assert_eq!((leader.generation, follower.generation, leader.members.len()), (2, 2, 2));
    bench.settle(&leader.member, &follower.member);
    assert_eq!(bench.generation(), 2);
}

#[test]
fn k_21_an_id_that_was_given_up_does_not_hold_the_group_back() {
    let mut bench = Bench::with(GroupLimits::default());
    let request = |member| crate::JoinRequest { member_id_required: true, ..joining(member) };
    bench.join(request(""));
    let second = bench.join(request(""));
    let member = bench.not_joined(second).member;
    let token = bench.join(request(member.as_str()));
    bench.advance(4_900);
    assert_eq!(bench.joined(token).generation, 1);
    // And neither when the group is no new one.
    let sync = bench.sync(syncing(&member, 1, &[(&member, "A")]));
    assert_eq!(bench.assignment(sync), "A");
    bench.join(request(""));
    let again = bench.join(request(member.as_str()));
    assert!(bench.waits(again), "it may come any moment");
    bench.advance(1_000);
    assert_eq!(bench.joined(again).generation, 2);
}

#[test]
fn members_share_a_protocol_or_are_refused() {
    let mut bench = Bench::new();
    let empty = bench.join(crate::JoinRequest { protocols: Vec::new(), ..joining("") });
    assert_eq!(bench.not_joined(empty).error, GroupError::InconsistentGroupProtocol);
    let no_type = bench.join(crate::JoinRequest { protocol_type: "".into(), ..joining("") });
    assert_eq!(bench.not_joined(no_type).error, GroupError::InconsistentGroupProtocol);
    bench.pair();
    let other = bench.join(crate::JoinRequest { protocols: vec![protocol("sticky")], ..joining("") });
    assert_eq!(bench.not_joined(other).error, GroupError::InconsistentGroupProtocol);
    let connect = bench.join(crate::JoinRequest { protocol_type: "connect".into(), ..joining("") });
    assert_eq!(bench.not_joined(connect).error, GroupError::InconsistentGroupProtocol);
    assert_eq!(bench.state(), GroupState::Stable, "nothing has changed");
}

#[test]
fn the_protocol_that_most_prefer_among_those_that_all_support_is_chosen() {
    let mut bench = Bench::with(GroupLimits::default());
    let with = |names: &[&str]| crate::JoinRequest {
        protocols: names.iter().map(|name| protocol(name)).collect(),
        ..joining("")
    };
    let tokens = [
        bench.join(with(&["fast", "range", "sticky"])),
        bench.join(with(&["sticky", "range"])),
        bench.join(with(&["sticky", "range", "fast"])),
    ];
    bench.advance(10_000);
    for token in tokens {
        assert_eq!(bench.joined(token).protocol.as_deref(), Some("sticky"));
    }
}

#[test]
fn a_full_group_refuses_new_members_and_keeps_those_it_has() {
    let limits = GroupLimits { members_max: 2, rebalance_delay_ms: 0, ..GroupLimits::default() };
    let mut bench = Bench::with(limits);
    let (leader, follower) = bench.pair();
    let third = bench.join(joining(""));
    assert_eq!(bench.not_joined(third).error, GroupError::GroupMaxSizeReached);
    assert_eq!(bench.state(), GroupState::Stable);
    let again = bench.join(joining(leader.as_str()));
    let other = bench.join(joining(follower.as_str()));
    assert_eq!((bench.joined(again).generation, bench.joined(other).generation), (3, 3));
}

#[test]
fn who_has_not_come_at_the_rebalance_deadline_is_no_member_any_more() {
    let mut bench = Bench::new();
    let (leader, follower) = bench.pair();
    let again = bench.join(joining(leader.as_str()));
    for _ in 0..59 {
        bench.advance(1_000);
        assert_eq!(bench.heartbeat(&follower, 2), Err(GroupError::RebalanceInProgress));
        assert!(bench.waits(again));
    }
    bench.advance(1_000);
    let joined = bench.joined(again);
    assert_eq!((joined.generation, joined.members.len()), (3, 1));
    assert_eq!(bench.heartbeat(&follower, 2), Err(GroupError::UnknownMemberId));
}

#[test]
fn a_member_that_sends_no_heartbeat_is_no_member_after_its_session() {
    let mut bench = Bench::new();
    let (leader, follower) = bench.pair();
    bench.advance(9_000);
    assert_eq!(bench.heartbeat(&leader, 2), Ok(()));
    bench.advance(1_000);
    assert_eq!(bench.state(), GroupState::PreparingRebalance);
    assert_eq!(bench.heartbeat(&follower, 2), Err(GroupError::UnknownMemberId));
    assert_eq!(bench.heartbeat(&leader, 2), Err(GroupError::RebalanceInProgress));
    let again = bench.join(joining(leader.as_str()));
    assert_eq!(bench.joined(again).members.len(), 1);
}

#[test]
fn heartbeats_are_answered_by_state_and_generation() {
    let mut bench = Bench::new();
    assert_eq!(bench.heartbeat(&id("m"), 0), Err(GroupError::UnknownMemberId));
    let token = bench.join(joining(""));
    let member = bench.joined(token).member;
    assert_eq!(bench.heartbeat(&member, 1), Ok(()), "CompletingRebalance is no reason to join again");
    assert_eq!(bench.heartbeat(&member, 0), Err(GroupError::IllegalGeneration));
    bench.sync(syncing(&member, 1, &[]));
    assert_eq!(bench.heartbeat(&member, 1), Ok(()));
    assert_eq!(bench.heartbeat(&member, 2), Err(GroupError::IllegalGeneration));
    bench.join(joining(""));
    assert_eq!(bench.heartbeat(&member, 1), Err(GroupError::RebalanceInProgress));
}

#[test]
fn a_second_join_of_a_member_takes_the_place_of_the_first() {
    let mut bench = Bench::new();
    let (leader, follower) = bench.pair();
    let first = bench.join(joining(leader.as_str()));
    let second = bench.join(joining(leader.as_str()));
    assert_eq!(bench.not_joined(first).error, GroupError::RebalanceInProgress);
    assert!(bench.waits(second));
    bench.join(joining(follower.as_str()));
    assert_eq!(bench.joined(second).generation, 3);
}

#[test]
fn a_follower_that_joins_again_unchanged_is_told_the_generation_it_is_in() {
    let mut bench = Bench::new();
    let (leader, follower) = bench.pair();
    let again = bench.join(joining(follower.as_str()));
    assert_eq!(bench.joined(again).generation, 2);
    assert!(bench.joined(again).members.is_empty());
    assert_eq!(bench.state(), GroupState::Stable);
    // With another subscription it wants another assignment; a leader always does.
    let changed = Protocol { name: "range".into(), metadata: subscription(&["t2"]) };
    bench.join(crate::JoinRequest { protocols: vec![changed], ..joining(follower.as_str()) });
    assert_eq!(bench.state(), GroupState::PreparingRebalance);
    bench.join(joining(leader.as_str()));
    assert_eq!((bench.state(), bench.generation()), (GroupState::CompletingRebalance, 3));
    bench.settle(&leader, &follower);
    bench.join(joining(leader.as_str()));
    assert_eq!(bench.state(), GroupState::PreparingRebalance);
}

#[test]
fn a_member_that_missed_its_answer_is_told_again_while_the_leader_assigns() {
    let mut bench = Bench::new();
    let token = bench.join(joining(""));
    let member = bench.joined(token).member;
    let again = bench.join(joining(member.as_str()));
    assert_eq!(bench.joined(again), bench.joined(token));
    assert_eq!(bench.state(), GroupState::CompletingRebalance);
}

#[test]
fn a_new_member_whose_generation_never_comes_is_told_so_after_five_minutes() {
    let mut bench = Bench::new();
    let request = |member| crate::JoinRequest { rebalance_timeout_ms: Some(3_600_000), ..joining(member) };
    let first = bench.join(request(""));
    let member = bench.joined(first).member;
    bench.sync(syncing(&member, 1, &[]));
    let second = bench.join(request(""));
    for _ in 0..60 {
        bench.advance(5_000);
        assert!(bench.heartbeat(&member, 1).is_err(), "the first lives, but does not join");
    }
    assert_eq!(bench.not_joined(second).error, GroupError::UnknownMemberId);
}
