//! Consumer groups over the wire, before the real state machines.
//!
//! Lives on: tests only.
mod life;
mod waiting;

use super::fake::{Running, start};
use super::raw_client::Client;
use mink_kafka_wire::messages::heartbeat::HeartbeatRequest;
use mink_kafka_wire::messages::join_group::{JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse};
use mink_kafka_wire::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use mink_kafka_wire::messages::offset_delete::{
    OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
};
use mink_kafka_wire::messages::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
    OffsetFetchResponsePartitions,
};
use mink_kafka_wire::messages::sync_group::{SyncGroupRequest, SyncGroupRequestAssignment};
use mink_kafka_wire::{ErrorCode, KafkaString, Uuid};

/// A join of a consumer of topic `t`.
fn join(group: &str, member: &KafkaString) -> JoinGroupRequest {
    JoinGroupRequest {
        group_id: group.into(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 60_000,
        member_id: member.clone(),
        protocol_type: "consumer".into(),
        protocols: vec![JoinGroupRequestProtocol {
            name: "range".into(),
            metadata: b"\0\x01\0\0\0\x01\0\x01t\xff\xff\xff\xff".as_slice().into(),
        }],
        ..JoinGroupRequest::default()
    }
}

/// Joins a group that nobody else is in or joins: with the round in which the member is told its id, where there is one.
async fn joined(client: &mut Client, version: i16, group: &str) -> JoinGroupResponse {
    let first = client.call(version, &join(group, &KafkaString::default())).await;
    if version < 4 {
        return first;
    }
    assert_eq!(first.error_code, ErrorCode::MemberIdRequired.code());
    assert!(first.member_id.as_str().starts_with("test-"), "{:?}", first.member_id);
    client.call(version, &join(group, &first.member_id)).await
}

/// A leader's sync that gives itself everything; of version 5 and above with the protocol.
fn sync(version: i16, group: &str, joined: &JoinGroupResponse) -> SyncGroupRequest {
    SyncGroupRequest {
        group_id: group.into(),
        generation_id: joined.generation_id,
        member_id: joined.member_id.clone(),
        group_instance_id: None,
        protocol_type: (version >= 5).then(|| "consumer".into()),
        protocol_name: (version >= 5).then(|| "range".into()),
        assignments: vec![SyncGroupRequestAssignment {
            member_id: joined.member_id.clone(),
            assignment: b"all".as_slice().into(),
        }],
    }
}

fn heartbeat(group: &str, joined: &JoinGroupResponse) -> HeartbeatRequest {
    HeartbeatRequest {
        group_id: group.into(),
        generation_id: joined.generation_id,
        member_id: joined.member_id.clone(),
        group_instance_id: None,
    }
}

/// A commit of one offset; by the topic's id if there is one.
fn commit(
    group: &str,
    member: (&KafkaString, i32),
    topic: (&str, Uuid),
    offset: (i32, i64),
) -> OffsetCommitRequest {
    OffsetCommitRequest {
        group_id: group.into(),
        generation_id_or_member_epoch: member.1,
        member_id: member.0.clone(),
        topics: vec![OffsetCommitRequestTopic {
            name: topic.0.into(),
            topic_id: topic.1,
            partitions: vec![OffsetCommitRequestPartition {
                partition_index: offset.0,
                committed_offset: offset.1,
                committed_metadata: Some("m".into()),
                ..OffsetCommitRequestPartition::default()
            }],
        }],
        ..OffsetCommitRequest::default()
    }
}

/// Commits without being a member, and gives the partition's code.
async fn commit_alone(client: &mut Client, group: &str, topic: &str, partition: i32, offset: i64) -> i16 {
    let nobody = KafkaString::default();
    let request = commit(group, (&nobody, -1), (topic, Uuid::ZERO), (partition, offset));
    client.call(9, &request).await.topics[0].partitions[0].error_code
}

/// What a group has committed of these partitions of a topic, of all if none is named, as version 8 and above answer it.
async fn fetch(
    client: &mut Client,
    version: i16,
    group: &str,
    topic: Option<(&str, Uuid, &[i32])>,
) -> Vec<(KafkaString, Vec<OffsetFetchResponsePartitions>)> {
    if version >= 8 {
        let topics = topic.map(|(name, topic_id, partitions)| {
            vec![OffsetFetchRequestTopics {
                name: name.into(),
                topic_id,
                partition_indexes: partitions.to_vec(),
            }]
        });
        let asked =
            OffsetFetchRequestGroup { group_id: group.into(), topics, ..OffsetFetchRequestGroup::default() };
        let request = OffsetFetchRequest {
            // Named twice, answered once.
            groups: vec![asked.clone(), asked],
            ..OffsetFetchRequest::default()
        };
        let mut answer = client.call(version, &request).await;
        assert_eq!((answer.groups.len(), answer.groups[0].error_code), (1, 0));
        return answer
            .groups
            .remove(0)
            .topics
            .into_iter()
            .map(|topic| (topic.name, topic.partitions))
            .collect();
    }
    let topics = topic.map(|(name, _, partitions)| {
        vec![OffsetFetchRequestTopic { name: name.into(), partition_indexes: partitions.to_vec() }]
    });
    let request = OffsetFetchRequest { group_id: group.into(), topics, ..OffsetFetchRequest::default() };
    let answer = client.call(version, &request).await;
    assert_eq!(answer.error_code, 0);
    let topics = answer.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.into_iter().map(|one| OffsetFetchResponsePartitions {
            partition_index: one.partition_index,
            committed_offset: one.committed_offset,
            committed_leader_epoch: one.committed_leader_epoch,
            metadata: one.metadata,
            error_code: one.error_code,
        });
        (topic.name, partitions.collect())
    });
    topics.collect()
}

/// Index, offset and error of each.
fn offsets(partitions: &[OffsetFetchResponsePartitions]) -> Vec<(i32, i64, i16)> {
    partitions.iter().map(|one| (one.partition_index, one.committed_offset, one.error_code)).collect()
}

fn delete_offset(group: &str, topic: &str, partitions: &[i32]) -> OffsetDeleteRequest {
    let partitions = partitions.iter().map(|index| OffsetDeleteRequestPartition { partition_index: *index });
    OffsetDeleteRequest {
        group_id: group.into(),
        topics: vec![OffsetDeleteRequestTopic { name: topic.into(), partitions: partitions.collect() }],
    }
}

async fn with_topic(partitions: u32) -> (Running, Client, Uuid) {
    use mink_api::Admin as _;
    let running = start().await;
    let table = running.fake.topic("t", partitions);
    let id = Uuid(running.fake.state().table(table).expect("there").uuid.0);
    let client = Client::connect(running.address).await;
    (running, client, id)
}
