//! What both servers are asked: one script per API, run at every version.
//! Lives on: the test's tokio runtime.
//! Owns: nothing.

mod configs;
mod connections;
mod fetch;
mod group_admin;
mod group_offsets;
mod groups;
mod metadata;
mod offsets;
mod placement;
mod produce;
mod producers;
mod sessions;
mod topics;

use bytes::Bytes;
use mink_kafka_wire::messages::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use mink_kafka_wire::{ApiKey, KafkaString, Records, Uuid, offer};

use super::asker::Asker;
use crate::wire::{batch, values};

/// An id that no topic has.
pub(super) const NOBODY: Uuid = Uuid([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xaa]);
const TIMEOUT_MS: i32 = 20_000;

const GROUPS: [ApiKey; 11] = [
    ApiKey::OffsetCommit,
    ApiKey::OffsetFetch,
    ApiKey::FindCoordinator,
    ApiKey::JoinGroup,
    ApiKey::Heartbeat,
    ApiKey::LeaveGroup,
    ApiKey::SyncGroup,
    ApiKey::DescribeGroups,
    ApiKey::ListGroups,
    ApiKey::DeleteGroups,
    ApiKey::OffsetDelete,
];

/// Runs the script of the asker's API.
pub(super) async fn run(run: &mut Asker) {
    if GROUPS.contains(&run.api) {
        group_admin::coordinators(run).await;
    }
    match run.api {
        ApiKey::Produce => produce::produce(run).await,
        ApiKey::Fetch => {
            fetch::fetch(run).await;
            sessions::sessions(run).await;
        }
        ApiKey::ListOffsets => offsets::list_offsets(run).await,
        ApiKey::OffsetForLeaderEpoch => offsets::offset_for_leader_epoch(run).await,
        ApiKey::DeleteRecords => offsets::delete_records(run).await,
        ApiKey::Metadata => metadata::metadata(run).await,
        ApiKey::DescribeTopicPartitions => metadata::describe_topic_partitions(run).await,
        ApiKey::DescribeCluster => metadata::describe_cluster(run).await,
        ApiKey::DescribeLogDirs => metadata::describe_log_dirs(run).await,
        ApiKey::CreateTopics => topics::create_topics(run).await,
        ApiKey::DeleteTopics => topics::delete_topics(run).await,
        ApiKey::CreatePartitions => topics::create_partitions(run).await,
        ApiKey::ElectLeaders => topics::elect_leaders(run).await,
        ApiKey::DescribeConfigs => configs::describe_configs(run).await,
        ApiKey::AlterConfigs => configs::alter_configs(run).await,
        ApiKey::IncrementalAlterConfigs => configs::incremental_alter_configs(run).await,
        ApiKey::ApiVersions => connections::api_versions(run).await,
        ApiKey::DescribeAcls => connections::describe_acls(run).await,
        ApiKey::CreateAcls => connections::create_acls(run).await,
        ApiKey::DeleteAcls => connections::delete_acls(run).await,
        ApiKey::InitProducerId => producers::init_producer_id(run).await,
        ApiKey::DescribeProducers => producers::describe_producers(run).await,
        ApiKey::FindCoordinator => group_admin::find_coordinator(run).await,
        ApiKey::DescribeGroups => group_admin::describe_groups(run).await,
        ApiKey::ListGroups => group_admin::list_groups(run).await,
        ApiKey::DeleteGroups => group_admin::delete_groups(run).await,
        ApiKey::OffsetCommit => group_offsets::offset_commit(run).await,
        ApiKey::OffsetFetch => group_offsets::offset_fetch(run).await,
        ApiKey::OffsetDelete => group_offsets::offset_delete(run).await,
        ApiKey::JoinGroup => groups::join_group(run).await,
        ApiKey::SyncGroup => groups::sync_group(run).await,
        ApiKey::Heartbeat => groups::heartbeat(run).await,
        ApiKey::LeaveGroup => groups::leave_group(run).await,
        ApiKey::AlterPartitionReassignments => placement::alter_partition_reassignments(run).await,
        ApiKey::ListPartitionReassignments => placement::list_partition_reassignments(run).await,
        ApiKey::AlterReplicaLogDirs => placement::alter_replica_log_dirs(run).await,
        ApiKey::ListConfigResources => placement::list_config_resources(run).await,
        // Whose quorum it is differs too much to be compared: Kafka's is one of controllers, each with a log.
        ApiKey::DescribeQuorum => placement::describe_quorum(run).await,
        other => panic!("{} is offered and has no script", other.name()),
    }
    versions(run).await;
}

/// Versions that are not offered: one below, one far above, a negative one.
async fn versions(run: &mut Asker) {
    let offer = offer(run.api).expect("offered");
    if run.version != offer.decoded.max || run.api == ApiKey::ApiVersions {
        return;
    }
    for version in [offer.decoded.min - 1, 99, -5] {
        let answer = run.ask_header(version).await;
        run.note(&format!("version {version}"), answer.map(|frame| frame.len()).as_ref(), false);
    }
}

/// Puts `records` records, whose values are numbers, into a partition.
async fn fill(run: &mut Asker, topic: &KafkaString, partition: i32, records: usize) {
    let records = batch(values("value", 0..records), None);
    let answer = run.quiet(9, &produce_request(topic, partition, records)).await;
    assert_eq!(answer.responses[0].partition_responses[0].error_code, 0, "{answer:?}");
}

fn produce_request(topic: &KafkaString, index: i32, records: Bytes) -> ProduceRequest {
    let partition_data = vec![PartitionProduceData { index, records: Some(Records::from(records)) }];
    ProduceRequest {
        acks: -1,
        timeout_ms: TIMEOUT_MS,
        topic_data: vec![TopicProduceData {
            name: topic.clone(),
            partition_data,
            ..TopicProduceData::default()
        }],
        ..ProduceRequest::default()
    }
}
