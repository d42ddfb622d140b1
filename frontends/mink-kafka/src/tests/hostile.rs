//! Bytes that are not what they say: the connection closes, nothing else happens (I19).
//!
//! Lives on: tests only.
use super::alter::{alter, grow};
use super::epochs::epoch_of;
use super::fake::start;
use super::producers::producers_of;
use super::raw_client::{Client, batch, fetch, frame, produce};
use crate::counters::Closed;
use bytes::{BufMut, Bytes, BytesMut};
use mink_kafka_wire::messages::alter_configs::AlterConfigsRequest;
use mink_kafka_wire::messages::alter_partition_reassignments::AlterPartitionReassignmentsRequest;
use mink_kafka_wire::messages::alter_replica_log_dirs::AlterReplicaLogDirsRequest;
use mink_kafka_wire::messages::api_versions::ApiVersionsRequest;
use mink_kafka_wire::messages::create_acls::CreateAclsRequest;
use mink_kafka_wire::messages::create_topics::{CreatableTopic, CreateTopicsRequest};
use mink_kafka_wire::messages::delete_acls::DeleteAclsRequest;
use mink_kafka_wire::messages::delete_groups::DeleteGroupsRequest;
use mink_kafka_wire::messages::delete_records::DeleteRecordsRequest;
use mink_kafka_wire::messages::delete_topics::DeleteTopicsRequest;
use mink_kafka_wire::messages::describe_acls::DescribeAclsRequest;
use mink_kafka_wire::messages::describe_cluster::DescribeClusterRequest;
use mink_kafka_wire::messages::describe_configs::{DescribeConfigsRequest, DescribeConfigsResource};
use mink_kafka_wire::messages::describe_groups::DescribeGroupsRequest;
use mink_kafka_wire::messages::describe_log_dirs::DescribeLogDirsRequest;
use mink_kafka_wire::messages::describe_quorum::DescribeQuorumRequest;
use mink_kafka_wire::messages::describe_topic_partitions::DescribeTopicPartitionsRequest;
use mink_kafka_wire::messages::elect_leaders::ElectLeadersRequest;
use mink_kafka_wire::messages::find_coordinator::FindCoordinatorRequest;
use mink_kafka_wire::messages::heartbeat::HeartbeatRequest;
use mink_kafka_wire::messages::init_producer_id::InitProducerIdRequest;
use mink_kafka_wire::messages::join_group::JoinGroupRequest;
use mink_kafka_wire::messages::leave_group::LeaveGroupRequest;
use mink_kafka_wire::messages::list_config_resources::ListConfigResourcesRequest;
use mink_kafka_wire::messages::list_groups::ListGroupsRequest;
use mink_kafka_wire::messages::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use mink_kafka_wire::messages::list_partition_reassignments::ListPartitionReassignmentsRequest;
use mink_kafka_wire::messages::metadata::{MetadataRequest, MetadataRequestTopic};
use mink_kafka_wire::messages::offset_commit::OffsetCommitRequest;
use mink_kafka_wire::messages::offset_delete::OffsetDeleteRequest;
use mink_kafka_wire::messages::offset_fetch::OffsetFetchRequest;
use mink_kafka_wire::messages::sync_group::SyncGroupRequest;
use mink_kafka_wire::{ApiKey, ErrorCode, OFFERED, Request, decode_api_versions_response};
use std::time::Duration;
use tokio::io::AsyncReadExt;

/// A sound frame of each API, at each version that it is decoded at and this message fits.
fn sound_frames() -> Vec<Bytes> {
    fn all<R: Request>(frames: &mut Vec<Bytes>, request: &R) {
        let offer = mink_kafka_wire::offer(R::API_KEY).expect("offered");
        for version in offer.decoded.iter() {
            if let Ok(frame) = mink_kafka_wire::encode_request(version, 5, None, request) {
                frames.push(frame.to_bytes());
            }
        }
    }
    let mut frames = Vec::new();
    all(&mut frames, &produce("t", 0, batch(&["x", "y"]), -1));
    all(&mut frames, &fetch("t", &[(0, 0), (1, 0)]));
    all(
        &mut frames,
        &ListOffsetsRequest {
            topics: vec![ListOffsetsTopic {
                name: "t".into(),
                partitions: vec![ListOffsetsPartition::default()],
            }],
            ..ListOffsetsRequest::default()
        },
    );
    all(
        &mut frames,
        &MetadataRequest {
            topics: Some(vec![MetadataRequestTopic {
                name: Some("t".into()),
                ..MetadataRequestTopic::default()
            }]),
            ..MetadataRequest::default()
        },
    );
    all(
        &mut frames,
        &CreateTopicsRequest {
            topics: vec![CreatableTopic {
                name: "made".into(),
                num_partitions: 1,
                replication_factor: 1,
                ..CreatableTopic::default()
            }],
            validate_only: true,
            ..CreateTopicsRequest::default()
        },
    );
    all(
        &mut frames,
        &DescribeConfigsRequest {
            resources: vec![DescribeConfigsResource {
                resource_type: 2,
                resource_name: "t".into(),
                configuration_keys: None,
            }],
            ..DescribeConfigsRequest::default()
        },
    );
    all(&mut frames, &epoch_of("t", 0, 1, -1));
    all(&mut frames, &grow("t", 2));
    all(&mut frames, &alter("t", &[("retention.ms", 0, Some("1"))]));
    all(&mut frames, &AlterConfigsRequest::default());
    all(&mut frames, &DescribeTopicPartitionsRequest::default());
    all(&mut frames, &DescribeLogDirsRequest::default());
    all(&mut frames, &DescribeClusterRequest { endpoint_type: 1, ..DescribeClusterRequest::default() });
    all(&mut frames, &ElectLeadersRequest::default());
    all(&mut frames, &AlterPartitionReassignmentsRequest::default());
    all(&mut frames, &ListPartitionReassignmentsRequest::default());
    all(&mut frames, &AlterReplicaLogDirsRequest::default());
    all(&mut frames, &DescribeQuorumRequest::default());
    all(&mut frames, &producers_of("t", vec![0, 1]));
    all(&mut frames, &ListConfigResourcesRequest::default());
    all(&mut frames, &DescribeAclsRequest::default());
    all(&mut frames, &CreateAclsRequest::default());
    all(&mut frames, &DeleteAclsRequest::default());
    all(&mut frames, &ApiVersionsRequest::default());
    all(&mut frames, &DeleteTopicsRequest::default());
    all(&mut frames, &DeleteRecordsRequest::default());
    all(&mut frames, &FindCoordinatorRequest::default());
    all(&mut frames, &InitProducerIdRequest::default());
    all(&mut frames, &JoinGroupRequest::default());
    all(&mut frames, &OffsetCommitRequest::default());
    all(&mut frames, &OffsetFetchRequest::default());
    all(&mut frames, &SyncGroupRequest::default());
    all(&mut frames, &HeartbeatRequest::default());
    all(&mut frames, &LeaveGroupRequest::default());
    all(&mut frames, &DescribeGroupsRequest::default());
    all(&mut frames, &ListGroupsRequest::default());
    all(&mut frames, &DeleteGroupsRequest::default());
    all(&mut frames, &OffsetDeleteRequest::default());
    frames
}

/// A small deterministic generator (xorshift).
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(bound.max(1)).expect("fits")).expect("fits")
    }
}

/// The frame with some bytes of its body changed, cut or added, its length right again.
fn spoilt(draw: &mut Draw, frame: &Bytes) -> Vec<u8> {
    let mut body = frame[4..].to_vec();
    for _ in 0..=draw.below(3) {
        // Key and version stay, so that it reaches its own decoder.
        let at = 4 + draw.below(body.len() - 4);
        match draw.below(4) {
            0 => body[at] = 0xff,
            1 => body[at] = u8::try_from(draw.below(256)).expect("a byte"),
            2 => body.truncate(at.max(5)),
            _ => body.insert(at, u8::try_from(draw.below(256)).expect("a byte")),
        }
    }
    let mut whole = Vec::new();
    whole.put_i32(i32::try_from(body.len()).expect("small"));
    whole.extend(body);
    whole
}

#[tokio::test]
async fn i19_spoilt_frames_of_every_api_hurt_nobody_else() {
    let running = start().await;
    running.fake.topic("t", 2);
    let frames = sound_frames();
    for offer in OFFERED {
        let code = offer.key.code().to_be_bytes();
        assert!(frames.iter().any(|frame| frame[4..6] == code), "{:?}", offer.key);
    }
    let mut other = Client::connect(running.address).await;
    let mut draw = Draw(42);
    for frame in &frames {
        for _ in 0..12 {
            let mut client = Client::connect(running.address).await;
            client.send_bytes(&spoilt(&mut draw, frame)).await;
            // An end of what it sends: whatever the server makes of it, it comes to an end.
            tokio::io::AsyncWriteExt::shutdown(&mut client.stream).await.expect("open");
            let mut answer = Vec::new();
            let ended = client.stream.read_to_end(&mut answer);
            drop(tokio::time::timeout(Duration::from_secs(20), ended).await.expect("ends"));
        }
        other.call(3, &ApiVersionsRequest::default()).await;
    }
    assert_eq!(running.counters.closed_count(Closed::Fault), 0);
    assert!(running.counters.closed_count(Closed::Malformed) > 0);
}

#[tokio::test]
async fn what_is_not_offered_closes_the_connection() {
    let running = start().await;
    for (key, version) in [(0, 2), (1, 19), (24, 0), (3, 99), (999, 0), (-1, 0), (0, -1)] {
        let mut client = Client::connect(running.address).await;
        let mut frame = BytesMut::new();
        frame.put_i32(12);
        frame.put_i16(key);
        frame.put_i16(version);
        frame.put_i32(1);
        frame.put_i16(-1);
        frame.put_bytes(0, 2);
        client.send_bytes(&frame).await;
        client.assert_closed().await;
    }
    assert_eq!(running.counters.closed_count(Closed::Malformed), 7);
}

#[tokio::test]
async fn bytes_left_over_close_the_connection_after_the_answers_before() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    client.send(3, 1, &ApiVersionsRequest::default()).await;
    let mut long = BytesMut::from(&frame(12, 2, &MetadataRequest::default())[..]);
    long.put_u8(0);
    let length = i32::try_from(long.len() - 4).expect("small");
    long[..4].copy_from_slice(&length.to_be_bytes());
    client.send_bytes(&long).await;
    assert_eq!(client.receive::<ApiVersionsRequest>(3).await.0, 1);
    client.assert_closed().await;
}

#[tokio::test]
async fn an_unknown_version_of_api_versions_is_answered_in_the_oldest_form() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    let mut frame = BytesMut::new();
    frame.put_i32(12);
    frame.put_i16(ApiKey::ApiVersions.code());
    frame.put_i16(99);
    frame.put_i32(7);
    frame.put_i16(-1);
    frame.put_bytes(0, 2);
    client.send_bytes(&frame).await;
    let answer = client.next_frame().await.expect("an answer");
    let (correlation, answer) = decode_api_versions_response(4, answer).expect("readable");
    assert_eq!(correlation, 7);
    assert_eq!(answer.error_code, ErrorCode::UnsupportedVersion.code());
    let keys: Vec<i16> = answer.api_keys.iter().map(|api| api.api_key).collect();
    assert_eq!(keys, [ApiKey::ApiVersions.code()]);
    // The connection serves on.
    let all = client.call(2, &ApiVersionsRequest::default()).await;
    assert_eq!(all.api_keys.len(), OFFERED.len());
}

#[tokio::test]
async fn k_28_a_count_of_two_billion_in_a_small_frame_closes_the_connection() {
    let running = start().await;
    for (key, version) in [(3, 8), (19, 2), (20, 1), (32, 1), (2, 1), (9, 1)] {
        let mut client = Client::connect(running.address).await;
        let mut frame = BytesMut::new();
        frame.put_i32(18);
        frame.put_i16(key);
        frame.put_i16(version);
        frame.put_i32(1);
        frame.put_i16(-1);
        frame.put_i32(i32::MAX);
        frame.put_i32(i32::MAX);
        client.send_bytes(&frame).await;
        client.assert_closed().await;
    }
}
