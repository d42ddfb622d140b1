//! OffsetCommit, OffsetFetch and OffsetDelete, of groups with and without members.
//! Lives on: the test's tokio runtime.
//! Owns: nothing.

use mink_kafka_wire::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use mink_kafka_wire::messages::offset_delete::{
    OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use mink_kafka_wire::messages::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use mink_kafka_wire::{KafkaString, Uuid};

use super::groups::{Member, member};
use super::{Asker, NOBODY};

const IDS_FROM: i16 = 10;
const BATCHED_FROM: i16 = 8;
const EPOCHS_FROM: i16 = 6;
/// The longest that a committed text may be, and one more.
const METADATA_TOO_LONG: usize = 4097;

struct Target {
    name: KafkaString,
    id: Uuid,
}

async fn target(run: &mut Asker, name: &str, partitions: i32) -> Target {
    let name = run.topic(name, partitions).await;
    let id = run.id_of(&name).await;
    Target { name, id }
}

fn at(partition_index: i32, committed_offset: i64) -> OffsetCommitRequestPartition {
    OffsetCommitRequestPartition {
        partition_index,
        committed_offset,
        committed_metadata: Some("m".into()),
        ..OffsetCommitRequestPartition::default()
    }
}

impl Target {
    fn commit(&self, partitions: Vec<OffsetCommitRequestPartition>) -> OffsetCommitRequestTopic {
        OffsetCommitRequestTopic { name: self.name.clone(), topic_id: self.id, partitions }
    }

    fn fetch(&self, partition_indexes: &[i32]) -> OffsetFetchRequestTopics {
        OffsetFetchRequestTopics {
            name: self.name.clone(),
            topic_id: self.id,
            partition_indexes: partition_indexes.to_vec(),
        }
    }
}

/// From nobody: a group without members.
fn commit(group: &KafkaString, topics: Vec<OffsetCommitRequestTopic>) -> OffsetCommitRequest {
    OffsetCommitRequest {
        group_id: group.clone(),
        generation_id_or_member_epoch: -1,
        retention_time_ms: -1,
        topics,
        ..OffsetCommitRequest::default()
    }
}

fn commit_by(member: &Member, topics: Vec<OffsetCommitRequestTopic>) -> OffsetCommitRequest {
    OffsetCommitRequest {
        generation_id_or_member_epoch: member.generation,
        member_id: member.id.clone(),
        ..commit(&member.group, topics)
    }
}

pub(super) async fn offset_commit(run: &mut Asker) {
    let a = target(run, "a", 2).await;
    let g = run.name("g");
    let one = || vec![a.commit(vec![at(0, 5)])];
    run.ask("without members", commit(&g, one())).await;
    run.ask("two partitions", commit(&g, vec![a.commit(vec![at(0, 6), at(1, 7)])])).await;
    run.ask("back", commit(&g, one())).await;
    run.ask("a partition twice", commit(&g, vec![a.commit(vec![at(0, 1), at(0, 2)])])).await;
    run.ask("offset -1", commit(&g, vec![a.commit(vec![at(0, -1)])])).await;
    run.ask("offset -5", commit(&g, vec![a.commit(vec![at(0, -5)])])).await;
    run.ask("no such partition", commit(&g, vec![a.commit(vec![at(0, 5), at(9, 5), at(-1, 5)])])).await;
    let unknown = Target { name: run.name("unknown"), id: NOBODY };
    run.ask("unknown topic", commit(&g, vec![unknown.commit(vec![at(0, 5)]), a.commit(vec![at(1, 1)])]))
        .await;
    let none = Target { name: "".into(), id: Uuid::ZERO };
    run.ask("no topic name", commit(&g, vec![none.commit(vec![at(0, 5)])])).await;
    run.ask("no topics", commit(&g, vec![])).await;
    run.ask("no partitions", commit(&g, vec![a.commit(vec![])])).await;
    run.ask("no group id", commit(&"".into(), one())).await;
    let with =
        |text: Option<KafkaString>| OffsetCommitRequestPartition { committed_metadata: text, ..at(0, 5) };
    run.ask("null metadata", commit(&g, vec![a.commit(vec![with(None)])])).await;
    let long = with(Some("x".repeat(METADATA_TOO_LONG).into()));
    run.ask("long metadata", commit(&g, vec![a.commit(vec![long, at(1, 3)])])).await;
    if run.version >= EPOCHS_FROM {
        let part = OffsetCommitRequestPartition { committed_leader_epoch: 3, ..at(0, 5) };
        run.ask("an epoch", commit(&g, vec![a.commit(vec![part])])).await;
    }
    let by = |generation, id: &str| Member { group: g.clone(), id: id.into(), instance: None, generation };
    run.ask("an unknown member of no members", commit_by(&by(1, "nobody"), one())).await;
    run.ask("a generation of no members", commit_by(&by(1, ""), one())).await;
    run.ask(
        "a generation of a new group",
        commit_by(&Member { group: run.name("new"), ..by(1, "x") }, one()),
    )
    .await;
    let live = member(run, "live", None).await;
    run.ask("a member", commit_by(&live, one())).await;
    run.ask("an old generation", commit_by(&Member { generation: 0, ..live.clone() }, one())).await;
    run.ask("a later generation", commit_by(&Member { generation: 9, ..live.clone() }, one())).await;
    run.ask("an unknown member", commit_by(&Member { id: "nobody".into(), ..live.clone() }, one())).await;
    run.ask("nobody of a living group", commit(&live.group, one())).await;
    if run.version >= 7 {
        let fixed = member(run, "fixed", Some("one")).await;
        let named = |id: &KafkaString, instance: &str| OffsetCommitRequest {
            member_id: id.clone(),
            group_instance_id: Some(instance.into()),
            ..commit_by(&fixed, one())
        };
        run.ask("a static member", named(&fixed.id, "one")).await;
        run.ask("a static member by another id", named(&"nobody".into(), "one")).await;
        run.ask("an unknown instance", named(&fixed.id, "two")).await;
    }
    run.damaged(commit(&"".into(), one())).await;
}

/// One group, in the form of the version.
fn fetch(
    version: i16,
    group: &KafkaString,
    topics: Option<Vec<OffsetFetchRequestTopics>>,
) -> OffsetFetchRequest {
    if version >= BATCHED_FROM {
        let group =
            OffsetFetchRequestGroup { group_id: group.clone(), topics, ..OffsetFetchRequestGroup::default() };
        return OffsetFetchRequest { groups: vec![group], ..OffsetFetchRequest::default() };
    }
    let topic = |topic: OffsetFetchRequestTopics| OffsetFetchRequestTopic {
        name: topic.name,
        partition_indexes: topic.partition_indexes,
    };
    let topics = topics.map(|topics| topics.into_iter().map(topic).collect());
    OffsetFetchRequest { group_id: group.clone(), topics, ..OffsetFetchRequest::default() }
}

pub(super) async fn offset_fetch(run: &mut Asker) {
    let version = run.version;
    let a = target(run, "a", 3).await;
    let b = target(run, "b", 1).await;
    let g = run.name("g");
    let epoch = OffsetCommitRequestPartition { committed_leader_epoch: 0, ..at(1, 7) };
    let topics = vec![a.commit(vec![at(0, 5), epoch]), b.commit(vec![at(0, 9)])];
    run.quiet(9, &commit(&g, topics)).await;
    run.ask("two partitions", fetch(version, &g, Some(vec![a.fetch(&[0, 1])]))).await;
    run.ask("not committed", fetch(version, &g, Some(vec![a.fetch(&[2])]))).await;
    run.ask("no such partition", fetch(version, &g, Some(vec![a.fetch(&[9, -1])]))).await;
    run.ask("two topics", fetch(version, &g, Some(vec![b.fetch(&[0]), a.fetch(&[0])]))).await;
    run.ask("a partition twice", fetch(version, &g, Some(vec![a.fetch(&[0, 0])]))).await;
    run.ask("no topics", fetch(version, &g, Some(vec![]))).await;
    let unknown = Target { name: run.name("unknown"), id: NOBODY };
    run.ask("unknown topic", fetch(version, &g, Some(vec![unknown.fetch(&[0])]))).await;
    run.ask("unknown group", fetch(version, &run.name("h"), Some(vec![a.fetch(&[0])]))).await;
    run.ask("no group id", fetch(version, &"".into(), Some(vec![a.fetch(&[0])]))).await;
    if version >= 2 {
        run.ask("all topics", fetch(version, &g, None)).await;
        run.ask("all topics of an unknown group", fetch(version, &run.name("h"), None)).await;
    }
    if version >= 7 {
        let stable =
            OffsetFetchRequest { require_stable: true, ..fetch(version, &g, Some(vec![a.fetch(&[0])])) };
        run.ask("stable", stable).await;
    }
    if version >= BATCHED_FROM {
        let mut two = fetch(version, &g, Some(vec![a.fetch(&[0])]));
        two.groups.extend(fetch(version, &run.name("h"), None).groups);
        run.ask("two groups", two.clone()).await;
        two.groups.truncate(1);
        two.groups.push(two.groups[0].clone());
        run.ask("a group twice", two).await;
        run.ask("no groups", OffsetFetchRequest::default()).await;
    }
    if version >= 9 {
        let mut request = fetch(version, &g, Some(vec![a.fetch(&[0])]));
        request.groups[0].member_id = Some("nobody".into());
        request.groups[0].member_epoch = 3;
        run.ask("a member of a group without", request.clone()).await;
        let live = member(run, "live", None).await;
        request.groups[0].group_id = live.group.clone();
        run.ask("an unknown member", request.clone()).await;
        request.groups[0].member_id = Some(live.id);
        request.groups[0].member_epoch = live.generation;
        run.ask("a member", request).await;
    }
    run.damaged(fetch(version, &"".into(), Some(vec![]))).await;
}

pub(super) async fn offset_delete(run: &mut Asker) {
    let a = target(run, "a", 2).await;
    let g = run.name("g");
    let topic = |name: &KafkaString, partitions: &[i32]| OffsetDeleteRequestTopic {
        name: name.clone(),
        partitions: partitions
            .iter()
            .map(|partition_index| OffsetDeleteRequestPartition { partition_index: *partition_index })
            .collect(),
    };
    let of = |group: &KafkaString, topics| OffsetDeleteRequest { group_id: group.clone(), topics };
    run.quiet(9, &commit(&g, vec![a.commit(vec![at(0, 5), at(1, 6)])])).await;
    run.ask("one", of(&g, vec![topic(&a.name, &[0])])).await;
    run.ask("one again", of(&g, vec![topic(&a.name, &[0])])).await;
    run.ask("no such partition", of(&g, vec![topic(&a.name, &[9])])).await;
    run.ask("unknown topic", of(&g, vec![topic(&run.name("unknown"), &[0])])).await;
    run.ask("no topics", of(&g, vec![])).await;
    run.ask("unknown group", of(&run.name("h"), vec![topic(&a.name, &[0])])).await;
    run.ask("no group id", of(&"".into(), vec![topic(&a.name, &[0])])).await;
    let live = member(run, "live", None).await;
    run.quiet(9, &commit_by(&live, vec![a.commit(vec![at(0, 5)])])).await;
    run.ask("of a living group", of(&live.group, vec![topic(&a.name, &[0])])).await;
    run.damaged(of(&"".into(), vec![])).await;
    assert!(run.version < IDS_FROM, "a version with topic ids needs them here");
}
