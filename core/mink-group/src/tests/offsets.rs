//! Committed offsets: who may commit, what is seen, what expires.
//!
//! Lives on: tests.
use super::harness::{Bench, START_MS, committing, group, id, joining, topic};
use crate::{AppendRefused, CommitRequest, Effects, GroupError, GroupState, Reply};

const HOUR_MS: u64 = 3_600_000;
const WEEK_MS: u64 = 7 * 24 * HOUR_MS;

/// State by state: (generation offset from the group's, member) and what a commit gets.
#[test]
fn k_23_a_commit_is_judged_by_state_generation_and_member() {
    let unknown = Err(GroupError::UnknownMemberId);
    let illegal = Err(GroupError::IllegalGeneration);
    let mut bench = Bench::new();
    let commit = |bench: &mut Bench, member: &str, generation| {
        let token = bench.commit(committing(member, generation, &[(topic(1, 0), 1)]));
        bench.committed(token)
    };
    assert_eq!(commit(&mut bench, "", 0), illegal, "of a group that does not exist");
    assert_eq!(commit(&mut bench, "m", -1), Ok(()), "the group is made by it");
    assert_eq!((bench.state(), bench.generation()), (GroupState::Empty, 0));
    assert_eq!(commit(&mut bench, "", -1), Ok(()));
    assert_eq!(commit(&mut bench, "m", 0), unknown);
    let (leader, follower) = bench.pair();
    let cases = |in_state: Result<(), GroupError>| {
        [
            ("", -1, unknown),
            ("m", -1, unknown),
            ("m", 2, unknown),
            ("", 2, unknown),
            (leader.as_str(), -1, illegal),
            (leader.as_str(), 1, illegal),
            (leader.as_str(), 3, illegal),
            (leader.as_str(), 2, in_state),
            (follower.as_str(), 2, in_state),
        ]
    };
    for (member, generation, expected) in cases(Ok(())) {
        assert_eq!(commit(&mut bench, member, generation), expected, "Stable: {member} {generation}");
    }
    bench.join(joining(leader.as_str()));
    assert_eq!(bench.state(), GroupState::PreparingRebalance);
    for (member, generation, expected) in cases(Ok(())) {
        assert_eq!(commit(&mut bench, member, generation), expected, "Preparing: {member} {generation}");
    }
    bench.join(joining(follower.as_str()));
    assert_eq!((bench.state(), bench.generation()), (GroupState::CompletingRebalance, 3));
    assert_eq!(commit(&mut bench, leader.as_str(), 2), illegal, "the old generation is over");
    assert_eq!(commit(&mut bench, leader.as_str(), 3), Err(GroupError::RebalanceInProgress));
    assert_eq!(commit(&mut bench, "", -1), unknown);
}

#[test]
fn i18_a_commit_is_seen_when_it_is_durable() {
    let mut bench = Bench::new();
    bench.stores_at_once = false;
    let first = bench.commit(committing("", -1, &[(topic(1, 0), 5), (topic(1, 1), 6)]));
    assert!(bench.waits(first));
    assert_eq!(bench.offset(topic(1, 0)), None);
    bench.store();
    assert_eq!(bench.committed(first), Ok(()));
    assert_eq!(bench.offset(topic(1, 0)).map(|o| o.offset), Some(5));
    let second = bench.commit(committing("", -1, &[(topic(1, 0), 9)]));
    let third = bench.commit(committing("", -1, &[(topic(1, 0), 12)]));
    assert_eq!(bench.offset(topic(1, 0)).map(|o| o.offset), Some(5));
    bench.refuse(AppendRefused::Retriable);
    assert_eq!(bench.committed(second), Err(GroupError::CoordinatorNotAvailable));
    assert_eq!(bench.offset(topic(1, 0)).map(|o| o.offset), Some(5), "what failed was never seen");
    bench.store();
    assert_eq!(bench.committed(third), Ok(()));
    assert_eq!(bench.offset(topic(1, 0)).map(|o| o.offset), Some(12));
    let too_large = bench.commit(committing("", -1, &[(topic(1, 0), 13)]));
    bench.refuse(AppendRefused::TooLarge);
    assert_eq!(bench.committed(too_large), Err(GroupError::InvalidCommitOffsetSize));
}

#[test]
fn a_later_append_that_is_durable_says_so_of_those_before_it() {
    let mut bench = Bench::new();
    bench.stores_at_once = false;
    let tokens = [1, 2, 3].map(|n| bench.commit(committing("", -1, &[(topic(1, 0), n)])));
    let (_, second) = (bench.queued.pop_front(), bench.queued.pop_front().expect("an append"));
    let mut effects = Effects::default();
    bench.groups.durable(second.handle, bench.now, &mut effects);
    bench.take(effects);
    assert!(!bench.waits(tokens[0]) && !bench.waits(tokens[1]) && bench.waits(tokens[2]));
    assert_eq!(bench.offset(topic(1, 0)).map(|o| o.offset), Some(2));
}

#[test]
fn p_22_the_metadata_of_a_commit_comes_back_and_is_bounded_for_each_offset() {
    let mut bench = Bench::new();
    let mut request = committing("", -1, &[(topic(1, 0), 1), (topic(1, 1), 1)]);
    request.offsets[0].metadata = "m1".into();
    request.offsets[1].metadata = "x".repeat(4_097).into();
    let token = bench.commit(request);
    let results = vec![Ok(()), Err(GroupError::OffsetMetadataTooLarge)];
    assert_eq!(bench.answers[&token], Reply::Commit(Ok(results)));
    bench.reload();
    assert_eq!(bench.offset(topic(1, 0)).map(|o| o.metadata), Some("m1".into()));
    assert_eq!(bench.offset(topic(1, 1)), None);
}

#[test]
fn k_18_a_topic_that_is_made_again_inherits_no_offset() {
    let mut bench = Bench::new();
    bench.commit(committing("", -1, &[(topic(1, 0), 5)]));
    assert_eq!(bench.offset(topic(2, 0)), None);
    let mut effects = Effects::default();
    bench.groups.forget_tables(&|table| table.0 == 1, bench.now, &mut effects);
    bench.take(effects);
    assert_eq!(bench.offset(topic(1, 0)), None);
    bench.reload();
    assert!(bench.groups.is_empty());
}

#[test]
fn a_commit_is_a_sign_of_life() {
    let mut bench = Bench::new();
    let (leader, follower) = bench.pair();
    for _ in 0..5 {
        bench.advance(6_000);
        bench.commit(committing(leader.as_str(), 2, &[(topic(1, 0), 1)]));
        assert_eq!(bench.heartbeat(&follower, 2), Ok(()));
    }
    assert_eq!(bench.state(), GroupState::Stable);
}

#[test]
fn offsets_of_a_topic_that_members_read_are_not_deleted() {
    let mut bench = Bench::new();
    let token = bench.delete_offsets(&[topic(1, 0)]);
    assert_eq!(bench.answers[&token], Reply::DeleteOffsets(Err(GroupError::GroupIdNotFound)));
    let (leader, _) = bench.pair();
    bench.commit(committing(leader.as_str(), 2, &[(topic(1, 0), 1), (topic(2, 0), 2)]));
    let token = bench.delete_offsets(&[topic(1, 0), topic(2, 0), topic(3, 0)]);
    let results = vec![Err(GroupError::GroupSubscribedToTopic), Ok(()), Ok(())];
    assert_eq!(bench.answers[&token], Reply::DeleteOffsets(Ok(results)));
    assert!(bench.offset(topic(1, 0)).is_some() && bench.offset(topic(2, 0)).is_none());
}

#[test]
fn offsets_of_members_that_are_no_consumers_are_not_deleted() {
    let mut bench = Bench::new();
    bench.join(crate::JoinRequest { protocol_type: "connect".into(), ..joining("") });
    let token = bench.delete_offsets(&[topic(1, 0)]);
    assert_eq!(bench.answers[&token], Reply::DeleteOffsets(Err(GroupError::NonEmptyGroup)));
}

#[test]
fn a_group_is_deleted_when_it_has_no_members_and_its_tombstones_are_durable() {
    let mut bench = Bench::new();
    let token = bench.delete();
    assert_eq!(bench.answers[&token], Reply::Delete(Err(GroupError::GroupIdNotFound)));
    let (leader, follower) = bench.pair();
    bench.commit(committing(leader.as_str(), 2, &[(topic(1, 0), 1)]));
    let token = bench.delete();
    assert_eq!(bench.answers[&token], Reply::Delete(Err(GroupError::NonEmptyGroup)));
    bench.leave(&[(leader.as_str(), None), (follower.as_str(), None)]).expect("answered");
    bench.stores_at_once = false;
    let pending = bench.commit(committing("", -1, &[(topic(2, 0), 1)]));
    let token = bench.delete();
    assert!(bench.waits(token));
    assert_eq!(bench.state(), GroupState::Dead);
    let join = bench.join(joining(""));
    assert_eq!(bench.not_joined(join).error, GroupError::CoordinatorNotAvailable);
    let commit = bench.commit(committing("", -1, &[(topic(1, 0), 2)]));
    assert_eq!(bench.committed(commit), Err(GroupError::CoordinatorNotAvailable));
    assert_eq!(bench.heartbeat(&id("m"), 1), Err(GroupError::CoordinatorNotAvailable));
    assert_eq!(bench.groups.fetch_all_offsets(&group()), Err(GroupError::GroupIdNotFound));
    bench.store_all();
    assert_eq!(bench.committed(pending), Ok(()));
    assert_eq!(bench.answers[&token], Reply::Delete(Ok(())));
    assert_eq!((bench.groups.len(), bench.groups.bytes()), (0, 0));
    bench.reload();
    assert!(bench.groups.is_empty());
}

#[test]
fn a_group_whose_deletion_is_refused_lives_on() {
    let mut bench = Bench::new();
    bench.commit(committing("", -1, &[(topic(1, 0), 1)]));
    bench.stores_at_once = false;
    let token = bench.delete();
    bench.refuse(AppendRefused::Retriable);
    assert_eq!(bench.answers[&token], Reply::Delete(Err(GroupError::CoordinatorNotAvailable)));
    assert_eq!(bench.state(), GroupState::Empty);
    assert_eq!(bench.offset(topic(1, 0)).map(|o| o.offset), Some(1));
}

#[test]
fn a_group_with_very_many_offsets_is_deleted_in_parts_and_again_when_one_is_refused() {
    let mut bench = Bench::new();
    let offsets: Vec<_> = (0..25_000).map(|bucket| (topic(1, bucket), 1)).collect();
    bench.commit(committing("", -1, &offsets));
    bench.stores_at_once = false;
    let token = bench.delete();
    assert_eq!(bench.queued.len(), 3);
    bench.refuse(AppendRefused::Retriable);
    bench.store_all();
    assert_eq!(bench.answers[&token], Reply::Delete(Err(GroupError::CoordinatorNotAvailable)));
    assert_eq!(bench.state(), GroupState::Empty);
    let left: Vec<_> = bench.groups.snapshot_records().collect();
    assert_eq!(left.len(), 10_000);
    assert_eq!(left, bench.fold().records().collect::<Vec<_>>());
    let token = bench.delete();
    bench.store_all();
    assert_eq!(bench.answers[&token], Reply::Delete(Ok(())));
    assert_eq!((bench.groups.len(), bench.groups.bytes()), (0, 0));
}

#[test]
fn offsets_of_a_consumer_without_a_group_expire_a_week_after_their_commit() {
    let mut bench = Bench::new();
    bench.commit(committing("", -1, &[(topic(1, 0), 1)]));
    bench.advance(24 * HOUR_MS);
    bench.commit(committing("", -1, &[(topic(2, 0), 1)]));
    bench.advance(WEEK_MS - 24 * HOUR_MS - 1_000);
    assert!(bench.offset(topic(1, 0)).is_some());
    bench.advance(HOUR_MS);
    assert!(bench.offset(topic(1, 0)).is_none() && bench.offset(topic(2, 0)).is_some());
    bench.advance(24 * HOUR_MS);
    assert_eq!((bench.groups.len(), bench.groups.next_deadline()), (0, None));
    bench.reload();
    assert!(bench.groups.is_empty(), "the decision is in the log");
}

#[test]
fn offsets_of_a_group_expire_a_week_after_its_last_member_left() {
    let mut bench = Bench::new();
    let (leader, follower) = bench.pair();
    bench.commit(committing(leader.as_str(), 2, &[(topic(1, 0), 1)]));
    for _ in 0..(8 * 24 * 60 * 12) {
        bench.advance(5_000);
        let lives = (bench.heartbeat(&leader, 2), bench.heartbeat(&follower, 2));
        assert_eq!(lives, (Ok(()), Ok(())));
    }
    assert!(bench.offset(topic(1, 0)).is_some(), "members read it");
    bench.leave(&[(leader.as_str(), None), (follower.as_str(), None)]).expect("answered");
    bench.advance(WEEK_MS - 1_000);
    assert!(bench.offset(topic(1, 0)).is_some());
    bench.advance(HOUR_MS);
    assert!(bench.groups.is_empty());
}

#[test]
fn offsets_of_a_topic_that_members_do_not_read_expire() {
    let mut bench = Bench::new();
    let session = |member: &str| crate::JoinRequest { session_timeout_ms: 1_800_000, ..joining(member) };
    let token = bench.join(session(""));
    let member = bench.joined(token).member;
    bench.sync(super::harness::syncing(&member, 1, &[]));
    bench.commit(committing(member.as_str(), 1, &[(topic(1, 0), 1), (topic(2, 0), 2)]));
    for _ in 0..(8 * 24 * 3) {
        bench.advance(HOUR_MS / 3);
        assert_eq!(bench.heartbeat(&member, 1), Ok(()));
    }
    assert!(bench.offset(topic(1, 0)).is_some() && bench.offset(topic(2, 0)).is_none());
}

#[test]
fn an_offset_with_a_time_of_its_own_expires_by_it() {
    let mut bench = Bench::new();
    let request = committing("", -1, &[(topic(1, 0), 1)]);
    bench.commit(CommitRequest { retention_ms: Some(HOUR_MS), ..request });
    let expires = bench.offset(topic(1, 0)).and_then(|o| o.expires).expect("a time");
    assert_eq!(expires.0, START_MS + i64::try_from(HOUR_MS).expect("small"));
    bench.advance(HOUR_MS - 1);
    assert!(bench.offset(topic(1, 0)).is_some());
    bench.advance(HOUR_MS / 2);
    assert!(bench.groups.is_empty());
}

#[test]
fn i18_an_offset_does_not_expire_that_a_commit_is_on_its_way_for() {
    let mut bench = Bench::new();
    bench.commit(committing("", -1, &[(topic(1, 0), 1)]));
    bench.stores_at_once = false;
    bench.commit(committing("", -1, &[(topic(1, 0), 2)]));
    bench.advance(WEEK_MS + HOUR_MS);
    assert_eq!(bench.queued.len(), 1, "no tombstone was written");
    bench.store_all();
    assert_eq!(bench.offset(topic(1, 0)).map(|o| o.offset), Some(2));
}
