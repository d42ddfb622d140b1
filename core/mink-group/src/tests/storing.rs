//! What is stored, what a successor finds, and what a coordinator is bounded by.
//!
//! Lives on: tests.
use super::harness::{Bench, committing, group, joining, joining_static, protocol, syncing, topic};
use crate::{
    AppendRefused, Effects, Fold, GroupError, GroupId, GroupLimits, GroupState, Groups, JoinRequest,
    KeyedRecord, Protocol, Record, Reply,
};
use bytes::Bytes;

fn records(fold: &Fold) -> Vec<KeyedRecord> {
    fold.records().collect()
}

#[test]
fn a_checkpoint_says_what_the_log_says() {
    let mut bench = Bench::new();
    let (leader, _) = bench.pair();
    bench.commit(committing(leader.as_str(), 2, &[(topic(1, 0), 1), (topic(1, 1), 2)]));
    bench.commit(committing(leader.as_str(), 2, &[(topic(1, 0), 3)]));
    bench.stores_at_once = false;
    bench.commit(committing(leader.as_str(), 2, &[(topic(1, 0), 9)]));
    bench.join(joining(""));
    let snapshot: Vec<_> = bench.groups.snapshot_records().collect();
    assert_eq!(snapshot, records(&bench.fold()), "what is on its way is not in it");
    assert_eq!(snapshot.len(), 3);
    let mut again = Fold::default();
    for record in snapshot.iter().chain(&snapshot) {
        again.apply(&record.key, record.value.as_deref()).expect("a record");
    }
    assert_eq!(records(&again), snapshot, "folding is idempotent");
}

#[test]
fn the_log_folds_the_same_from_any_checkpoint_on() {
    let mut bench = Bench::new();
    let (leader, follower) = bench.pair();
    bench.commit(committing(leader.as_str(), 2, &[(topic(1, 0), 1)]));
    bench.leave(&[(follower.as_str(), None), (leader.as_str(), None)]).expect("answered");
    bench.delete();
    bench.commit(committing("", -1, &[(topic(2, 0), 1)]));
    for cut in 0..=bench.log.len() {
        let mut fold = Fold::default();
        let (before, after) = bench.log.split_at(cut);
        for record in before {
            fold.apply(&record.key, record.value.as_deref()).expect("a record");
        }
        let mut from = Fold::default();
        for record in fold.records().collect::<Vec<_>>().iter().chain(after) {
            from.apply(&record.key, record.value.as_deref()).expect("a record");
        }
        assert_eq!(records(&from), records(&bench.fold()), "cut at {cut}");
    }
}

#[test]
fn a_successor_restores_members_instances_and_protocol() {
    let mut bench = Bench::new();
    let token = bench.join(joining_static("x"));
    let member = bench.joined(token).member;
    bench.sync(syncing(&member, 1, &[(&member, "A")]));
    let before = bench.groups.describe(&group());
    bench.reload();
    assert_eq!(bench.groups.describe(&group()), before);
    assert_eq!(before.protocol.as_deref(), Some("range"));
    let again = bench.join(joining_static("x"));
    assert_eq!(bench.joined(again).generation, 1, "an instance goes on in the stored generation");
}

#[test]
fn everyone_who_waits_is_answered_when_the_coordinator_is_given_up() {
    let mut bench = Bench::new();
    let (leader, follower) = bench.pair();
    let other = GroupId::new("other").expect("an id");
    let commit = crate::CommitRequest { group: other.clone(), ..committing("", -1, &[(topic(1, 0), 1)]) };
    bench.commit(commit.clone());
    bench.stores_at_once = false;
    let join = bench.join(joining(leader.as_str()));
    let commit = bench.commit(commit);
    let third = bench.token();
    let mut effects = Effects::default();
    bench.groups.delete(&other, third, bench.now, &mut effects);
    bench.take(effects);
    let fourth = bench.join(joining(follower.as_str()));
    let sync = bench.sync(syncing(&follower, 3, &[]));
    assert_eq!(bench.joined(join).generation, bench.joined(fourth).generation);
    let waiting = [commit, third, sync];
    assert!(waiting.iter().all(|token| bench.waits(*token)));
    let groups = std::mem::replace(&mut bench.groups, Groups::new(GroupLimits::default()));
    let mut effects = Effects::default();
    groups.close(GroupError::NotCoordinator, &mut effects);
    bench.take(effects);
    let error = GroupError::NotCoordinator;
    assert_eq!(bench.answers[&commit], Reply::Commit(Err(error)));
    assert_eq!(bench.answers[&third], Reply::Delete(Err(error)));
    assert_eq!(bench.synced(sync), Err(error));
}

#[test]
fn groups_are_listed_by_state_and_an_unknown_one_is_dead() {
    let mut bench = Bench::new();
    assert_eq!(bench.groups.describe(&group()).state, GroupState::Dead);
    bench.pair();
    let other = GroupId::new("a").expect("an id");
    bench.commit(crate::CommitRequest { group: other.clone(), ..committing("", -1, &[(topic(1, 0), 1)]) });
    let ids = |states: &[GroupState]| -> Vec<_> {
        bench.groups.list(states).iter().map(|summary| summary.group.to_string()).collect()
    };
    assert_eq!(ids(&[]), ["a", "g"]);
    assert_eq!(ids(&[GroupState::Stable]), ["g"]);
    assert_eq!(ids(&[GroupState::Empty]), ["a"]);
    assert_eq!(ids(&[GroupState::Dead, GroupState::PreparingRebalance]), Vec::<String>::new());
    assert_eq!(bench.groups.list(&[])[1].protocol_type.as_deref(), Some("consumer"));
    let names = [
        GroupState::Empty,
        GroupState::PreparingRebalance,
        GroupState::CompletingRebalance,
        GroupState::Stable,
        GroupState::Dead,
    ];
    let names = names.map(GroupState::name);
    assert_eq!(names, ["Empty", "PreparingRebalance", "CompletingRebalance", "Stable", "Dead"]);
}

#[test]
fn i20_groups_members_and_bytes_are_bounded() {
    let limits = GroupLimits {
        groups_max: 3,
        members_max: 5,
        member_bytes_max: 2_000,
        group_bytes_max: 6_000,
        coordinator_bytes_max: 20_000,
        rebalance_delay_ms: 0,
        ..GroupLimits::default()
    };
    let mut bench = Bench::with(limits);
    let large = |bytes| {
        let metadata = Bytes::from(vec![0; bytes]);
        JoinRequest { protocols: vec![Protocol { metadata, ..protocol("range") }], ..joining("") }
    };
    let token = bench.join(large(2_001));
    assert_eq!(bench.not_joined(token).error, GroupError::InvalidRequest);
    let mut errors = Vec::new();
    for _ in 0..8 {
        let token = bench.join(large(1_000));
        if let Some(Reply::Join(Err(refused))) = bench.answers.get(&token) {
            errors.push(refused.error);
        }
    }
    assert!(errors.contains(&GroupError::GroupMaxSizeReached), "{errors:?}");
    for n in 0..50 {
        let id = GroupId::new(&format!("h{n}")).expect("an id");
        let many: Vec<_> = (0..20).map(|bucket| (topic(1, bucket), 1)).collect();
        bench.commit(crate::CommitRequest { group: id.clone(), ..committing("", -1, &many) });
        bench.join(JoinRequest { group: id, member_id_required: true, ..joining("") });
    }
    assert!(bench.groups.len() <= 3 && bench.groups.bytes() <= 22_000, "{}", bench.groups.bytes());
    let first = GroupId::new("h0").expect("an id");
    for _ in 0..50 {
        bench.join(JoinRequest { group: first.clone(), member_id_required: true, ..joining("") });
    }
    assert_eq!(bench.groups.get(&first).expect("there").pending.len(), 5);
}

#[test]
fn i20_appends_on_their_way_are_bounded() {
    let limits = GroupLimits { appends_in_flight_max: 4, rebalance_delay_ms: 0, ..GroupLimits::default() };
    let mut bench = Bench::with(limits);
    let token = bench.join(joining_static("x"));
    let member = bench.joined(token).member;
    bench.sync(syncing(&member, 1, &[]));
    bench.stores_at_once = false;
    for _ in 0..4 {
        bench.join(joining_static("x"));
    }
    let token = bench.join(joining_static("x"));
    assert_eq!(bench.not_joined(token).error, GroupError::CoordinatorLoadInProgress);
    let other = GroupId::new("other").expect("an id");
    let commit = committing("", -1, &[(topic(1, 0), 1)]);
    let token = bench.commit(crate::CommitRequest { group: other, ..commit });
    assert_eq!(bench.committed(token), Err(GroupError::CoordinatorLoadInProgress));
    assert_eq!((bench.groups.in_flight(), bench.groups.len()), (4, 1));
    bench.store_all();
    assert_eq!(bench.groups.in_flight(), 0);
}

#[test]
fn an_empty_generation_that_could_not_be_stored_leaves_the_one_before() {
    let mut bench = Bench::new();
    let (leader, follower) = bench.pair();
    bench.stores_at_once = false;
    bench.leave(&[(leader.as_str(), None), (follower.as_str(), None)]).expect("answered");
    bench.refuse(AppendRefused::Retriable);
    assert_eq!((bench.state(), bench.generation()), (GroupState::Empty, 3));
    let stored = bench.groups.snapshot_records().next().expect("a record");
    let Ok(Record::Group(_, Some(value))) = Record::decode(&stored.key, stored.value.as_deref()) else {
        panic!("no group")
    };
    assert_eq!((value.generation, value.members.len()), (2, 2));
}
