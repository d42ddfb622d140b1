//! Where partitions and metadata are kept, as administrators ask and try to change it: they stay where they are.
//!
//! Lives on: tests only.
use super::fake::start;
use super::raw_client::Client;
use mink_kafka_wire::ErrorCode;
use mink_kafka_wire::messages::alter_partition_reassignments::{
    AlterPartitionReassignmentsRequest, ReassignablePartition, ReassignableTopic,
};
use mink_kafka_wire::messages::alter_replica_log_dirs::{
    AlterReplicaLogDir, AlterReplicaLogDirTopic, AlterReplicaLogDirsRequest,
};
use mink_kafka_wire::messages::describe_quorum::{DescribeQuorumRequest, PartitionData, TopicData};
use mink_kafka_wire::messages::list_config_resources::ListConfigResourcesRequest;
use mink_kafka_wire::messages::list_partition_reassignments::ListPartitionReassignmentsRequest;

#[tokio::test]
async fn a_partition_may_be_assigned_to_its_leader_and_nowhere_else() {
    let running = start().await;
    running.fake.topic("t", 2);
    let mut client = Client::connect(running.address).await;
    let to = |partition_index, replicas: Option<&[i32]>| ReassignablePartition {
        partition_index,
        replicas: replicas.map(<[i32]>::to_vec),
    };
    let partitions = vec![
        to(0, Some(&[7])),
        to(1, Some(&[8])),
        to(1, Some(&[])),
        to(1, Some(&[7, 8])),
        to(0, None),
        to(2, Some(&[7])),
    ];
    for version in 0..=1 {
        let topics = vec![ReassignableTopic { name: "t".into(), partitions: partitions.clone() }];
        let asked =
            AlterPartitionReassignmentsRequest { topics, ..AlterPartitionReassignmentsRequest::default() };
        let answer = client.call(version, &asked).await;
        let told: Vec<_> =
            answer.responses[0].partitions.iter().map(|partition| partition.error_code).collect();
        let bad = ErrorCode::InvalidReplicaAssignment.code();
        let none = ErrorCode::NoReassignmentInProgress.code();
        let unknown = ErrorCode::UnknownTopicOrPartition.code();
        assert_eq!((answer.error_code, told), (0, vec![0, bad, bad, bad, none, unknown]));
    }
    let under_way = client.call(0, &ListPartitionReassignmentsRequest::default()).await;
    assert_eq!((under_way.error_code, under_way.error_message, under_way.topics), (0, None, vec![]));
}

#[tokio::test]
async fn the_store_is_the_one_directory_a_partition_can_be_moved_to() {
    let running = start().await;
    running.fake.topic("t", 1);
    running.fake.opens(false);
    running.fake.topic("elsewhere", 1);
    let mut client = Client::connect(running.address).await;
    let into = |path: &str, topics: &[&str]| AlterReplicaLogDir {
        path: path.into(),
        topics: topics
            .iter()
            .map(|name| AlterReplicaLogDirTopic { name: (*name).into(), partitions: vec![0, 1] })
            .collect(),
    };
    for version in 1..=2 {
        let dirs = vec![into("memory://", &["t", "elsewhere", "missing"]), into("/tmp", &["t"])];
        let answer = client.call(version, &AlterReplicaLogDirsRequest { dirs }).await;
        let told: Vec<_> = answer
            .results
            .iter()
            .map(|topic| {
                (topic.topic_name.as_str(), topic.partitions.iter().map(|one| one.error_code).collect())
            })
            .collect();
        let unknown = ErrorCode::UnknownTopicOrPartition.code();
        let expected: [(&str, Vec<i16>); 4] = [
            ("t", vec![0, unknown]),
            ("elsewhere", vec![ErrorCode::ReplicaNotAvailable.code(), unknown]),
            ("missing", vec![unknown, unknown]),
            ("t", vec![ErrorCode::LogDirNotFound.code(); 2]),
        ];
        assert_eq!(told, expected);
    }
}

#[tokio::test]
async fn the_command_log_is_described_as_the_metadata_of_the_cluster() {
    let running = start().await;
    running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    let of = |topic: &str, partitions: &[i32]| DescribeQuorumRequest {
        topics: vec![TopicData {
            topic_name: topic.into(),
            partitions: partitions.iter().map(|index| PartitionData { partition_index: *index }).collect(),
        }],
    };
    for version in 0..=2 {
        let answer = client.call(version, &of("__cluster_metadata", &[0])).await;
        let log = &answer.topics[0].partitions[0];
        assert_eq!((answer.error_code, log.error_code, log.leader_id), (0, 0, 7));
        assert!(log.high_watermark > 0, "the topic's creation is in the log");
        let voters: Vec<_> =
            log.current_voters.iter().map(|one| (one.replica_id, one.log_end_offset)).collect();
        assert_eq!((voters, log.observers.len()), (vec![(7, log.high_watermark)], 0));
        assert_eq!(answer.nodes.len(), usize::from(version == 2));
    }
    for other in [of("t", &[0]), of("__cluster_metadata", &[1]), of("__cluster_metadata", &[0, 1])] {
        let answer = client.call(2, &other).await;
        let unknown = ErrorCode::UnknownTopicOrPartition.code();
        assert!(answer.topics[0].partitions.iter().all(|one| one.error_code == unknown));
    }
}

#[tokio::test]
async fn what_has_configurations_is_listed_by_kind() {
    let running = start().await;
    running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    let mut listed = async |version, kinds: &[i8]| {
        let asked = ListConfigResourcesRequest { resource_types: kinds.to_vec() };
        let answer = client.call(version, &asked).await;
        let names = answer
            .config_resources
            .iter()
            .map(|one| (one.resource_name.as_str().to_owned(), one.resource_type));
        (answer.error_code, names.collect::<Vec<_>>())
    };
    let (topic, broker) = (("t".to_owned(), 2), ("7".to_owned(), 4));
    assert_eq!(listed(1, &[]).await, (0, vec![topic.clone(), broker.clone()]));
    assert_eq!(listed(1, &[2]).await, (0, vec![topic]));
    assert_eq!(listed(1, &[4, 8, 16, 32]).await, (0, vec![broker]));
    assert_eq!(listed(1, &[2, 3]).await, (ErrorCode::UnsupportedVersion.code(), vec![]));
    assert_eq!(listed(0, &[]).await, (0, vec![]));
}
