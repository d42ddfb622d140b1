//! Members of a group without a client library: they see every code, and may do what no library does.
//! Lives on: the test's tokio runtime.
//! Owns: one connection.

use std::time::{Duration, Instant};

use bytes::Bytes;
use mink_kafka_wire::messages::find_coordinator::FindCoordinatorRequest;
use mink_kafka_wire::messages::heartbeat::HeartbeatRequest;
use mink_kafka_wire::messages::join_group::{JoinGroupRequest, JoinGroupRequestProtocol};
use mink_kafka_wire::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use mink_kafka_wire::messages::offset_fetch::{OffsetFetchRequest, OffsetFetchRequestTopic};
use mink_kafka_wire::messages::sync_group::{SyncGroupRequest, SyncGroupRequestAssignment};
use mink_kafka_wire::{ErrorCode, KafkaString};

use crate::wire::{SOON, Wire};

const FIND_COORDINATOR: i16 = 2;
const JOIN_GROUP: i16 = 5;
const SYNC_GROUP: i16 = 3;
const HEARTBEAT: i16 = 3;
const OFFSET_COMMIT: i16 = 7;
const OFFSET_FETCH: i16 = 5;
const POLL: Duration = Duration::from_millis(20);
/// Longer than any test stands still.
const SESSION_MS: i32 = 60_000;

/// A member as it knows itself.
#[derive(Debug)]
pub(super) struct RawMember {
    wire: Wire,
    pub(super) group: KafkaString,
    pub(super) id: KafkaString,
    pub(super) generation: i32,
    /// Who is in the generation, if this one leads.
    led: Vec<KafkaString>,
}

/// Whether a coordinator is about to serve.
fn is_early(code: i16) -> bool {
    [ErrorCode::CoordinatorLoadInProgress, ErrorCode::CoordinatorNotAvailable, ErrorCode::NotCoordinator]
        .iter()
        .any(|early| early.code() == code)
}

impl RawMember {
    /// Somebody who is in no generation yet.
    pub(super) async fn new(kafka: &str, group: &str) -> Self {
        let mut wire = Wire::connect(kafka).await;
        let key = KafkaString::from(group);
        let deadline = Instant::now() + SOON;
        loop {
            let request = FindCoordinatorRequest { key: key.clone(), ..FindCoordinatorRequest::default() };
            let answer = wire.call(FIND_COORDINATOR, &request).await.unwrap();
            if answer.error_code == 0 {
                break;
            }
            assert!(is_early(answer.error_code) && Instant::now() < deadline, "{answer:?}");
            tokio::time::sleep(POLL).await;
        }
        Self { wire, group: key, id: KafkaString::default(), generation: -1, led: Vec::new() }
    }

    /// The node has been started anew.
    pub(super) async fn reconnect(&mut self, kafka: &str) {
        self.wire = Wire::connect(kafka).await;
    }

    /// Joins the next generation, with metadata of so many bytes.
    pub(super) async fn join(&mut self, metadata: &Bytes) {
        let deadline = Instant::now() + SOON;
        loop {
            let request = JoinGroupRequest {
                group_id: self.group.clone(),
                session_timeout_ms: SESSION_MS,
                rebalance_timeout_ms: SESSION_MS,
                member_id: self.id.clone(),
                protocol_type: "consumer".into(),
                protocols: vec![JoinGroupRequestProtocol {
                    name: "range".into(),
                    metadata: metadata.clone(),
                }],
                ..JoinGroupRequest::default()
            };
            let answer = self.wire.call(JOIN_GROUP, &request).await.unwrap();
            self.id = answer.member_id;
            if answer.error_code == 0 {
                self.generation = answer.generation_id;
                self.led = answer.members.into_iter().map(|member| member.member_id).collect();
                return;
            }
            let again =
                is_early(answer.error_code) || answer.error_code == ErrorCode::MemberIdRequired.code();
            assert!(again && Instant::now() < deadline, "error code {} to a join", answer.error_code);
        }
    }

    /// Takes its assignment; a leader gives everyone the same bytes. False if the generation is over.
    pub(super) async fn sync(&mut self, assignment: &Bytes) -> bool {
        let give = |member: &KafkaString| SyncGroupRequestAssignment {
            member_id: member.clone(),
            assignment: assignment.clone(),
        };
        let request = SyncGroupRequest {
            group_id: self.group.clone(),
            generation_id: self.generation,
            member_id: self.id.clone(),
            assignments: self.led.iter().map(give).collect(),
            ..SyncGroupRequest::default()
        };
        let answer = self.wire.call(SYNC_GROUP, &request).await.unwrap();
        let over = [ErrorCode::RebalanceInProgress, ErrorCode::IllegalGeneration];
        assert!(
            answer.error_code == 0 || over.iter().any(|over| over.code() == answer.error_code),
            "error code {} to a sync",
            answer.error_code
        );
        answer.error_code == 0
    }

    pub(super) async fn heartbeat(&mut self) -> i16 {
        let request = HeartbeatRequest {
            group_id: self.group.clone(),
            generation_id: self.generation,
            member_id: self.id.clone(),
            ..HeartbeatRequest::default()
        };
        self.wire.call(HEARTBEAT, &request).await.unwrap().error_code
    }

    /// Commits as whoever, in whatever generation; waits for a coordinator.
    pub(super) async fn commit_as(
        &mut self,
        id: &KafkaString,
        generation: i32,
        topic: &str,
        offset: i64,
    ) -> i16 {
        let deadline = Instant::now() + SOON;
        loop {
            let request = OffsetCommitRequest {
                group_id: self.group.clone(),
                generation_id_or_member_epoch: generation,
                member_id: id.clone(),
                topics: vec![OffsetCommitRequestTopic {
                    name: topic.into(),
                    partitions: vec![OffsetCommitRequestPartition {
                        committed_offset: offset,
                        committed_leader_epoch: -1,
                        ..OffsetCommitRequestPartition::default()
                    }],
                    ..OffsetCommitRequestTopic::default()
                }],
                ..OffsetCommitRequest::default()
            };
            let answer = self.wire.call(OFFSET_COMMIT, &request).await.unwrap();
            let code = answer.topics[0].partitions[0].error_code;
            if !is_early(code) || Instant::now() >= deadline {
                return code;
            }
            tokio::time::sleep(POLL).await;
        }
    }

    pub(super) async fn commit(&mut self, generation: i32, topic: &str, offset: i64) -> i16 {
        let id = self.id.clone();
        self.commit_as(&id, generation, topic, offset).await
    }

    /// What is committed of the first partition; -1 if nothing is. Waits for a coordinator.
    pub(super) async fn committed(&mut self, topic: &str) -> i64 {
        let deadline = Instant::now() + SOON;
        loop {
            let wanted = OffsetFetchRequestTopic { name: topic.into(), partition_indexes: vec![0] };
            let request = OffsetFetchRequest {
                group_id: self.group.clone(),
                topics: Some(vec![wanted]),
                ..OffsetFetchRequest::default()
            };
            let answer = self.wire.call(OFFSET_FETCH, &request).await.unwrap();
            if answer.error_code == 0 {
                return answer.topics[0].partitions[0].committed_offset;
            }
            assert!(is_early(answer.error_code) && Instant::now() < deadline, "{answer:?}");
            tokio::time::sleep(POLL).await;
        }
    }
}
