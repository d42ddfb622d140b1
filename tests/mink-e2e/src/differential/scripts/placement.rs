//! Where replicas lie and what is configured: reassignments, log folders, the quorum, the resources that have configurations.
//! Lives on: the test's tokio runtime.
//! Owns: nothing.

use mink_kafka_wire::KafkaString;
use mink_kafka_wire::messages::alter_partition_reassignments::{
    AlterPartitionReassignmentsRequest, ReassignablePartition, ReassignableTopic,
};
use mink_kafka_wire::messages::alter_replica_log_dirs::{
    AlterReplicaLogDir, AlterReplicaLogDirTopic, AlterReplicaLogDirsRequest,
};
use mink_kafka_wire::messages::describe_quorum::{DescribeQuorumRequest, PartitionData, TopicData};
use mink_kafka_wire::messages::list_config_resources::ListConfigResourcesRequest;
use mink_kafka_wire::messages::list_partition_reassignments::{
    ListPartitionReassignmentsRequest, ListPartitionReassignmentsTopics,
};

use super::{Asker, TIMEOUT_MS};

pub(super) async fn alter_partition_reassignments(run: &mut Asker) {
    let a = run.topic("a", 1).await;
    let of = |name: &KafkaString, partition_index, replicas| {
        let partitions = vec![ReassignablePartition { partition_index, replicas }];
        AlterPartitionReassignmentsRequest {
            timeout_ms: TIMEOUT_MS,
            topics: vec![ReassignableTopic { name: name.clone(), partitions }],
            ..AlterPartitionReassignmentsRequest::default()
        }
    };
    run.ask("nothing to cancel", of(&a, 0, None)).await;
    run.ask("no such partition", of(&a, 9, None)).await;
    run.ask("unknown topic", of(&run.name("unknown"), 0, None)).await;
    run.ask("to nobody", of(&a, 0, Some(vec![]))).await;
    run.ask("to a broker that is not there", of(&a, 0, Some(vec![7777]))).await;
    run.ask("no topics", AlterPartitionReassignmentsRequest { timeout_ms: TIMEOUT_MS, ..Default::default() })
        .await;
}

pub(super) async fn list_partition_reassignments(run: &mut Asker) {
    let a = run.topic("a", 1).await;
    let topic = |name: &KafkaString| ListPartitionReassignmentsTopics {
        name: name.clone(),
        partition_indexes: vec![0, 9],
    };
    let of = |topics| ListPartitionReassignmentsRequest { timeout_ms: TIMEOUT_MS, topics };
    run.ask("all", of(None)).await;
    run.ask("a topic", of(Some(vec![topic(&a)]))).await;
    run.ask("unknown topic", of(Some(vec![topic(&run.name("unknown"))]))).await;
    run.damaged(of(None)).await;
}

pub(super) async fn alter_replica_log_dirs(run: &mut Asker) {
    let a = run.topic("a", 1).await;
    let of = |path: &str, name: &KafkaString, partition: i32| {
        let topics = vec![AlterReplicaLogDirTopic { name: name.clone(), partitions: vec![partition] }];
        AlterReplicaLogDirsRequest { dirs: vec![AlterReplicaLogDir { path: path.into(), topics }] }
    };
    run.ask("no such folder", of("/no/such/folder", &a, 0)).await;
    run.ask("unknown topic", of("/no/such/folder", &run.name("unknown"), 0)).await;
    run.ask("nothing", AlterReplicaLogDirsRequest { dirs: vec![] }).await;
}

/// The log itself has other ends and voters' times in each run, so only what is not there is compared.
pub(super) async fn describe_quorum(run: &mut Asker) {
    let of = |topics: &[(&str, i32)]| {
        let topics = topics.iter().map(|(name, partition_index)| TopicData {
            topic_name: (*name).into(),
            partitions: vec![PartitionData { partition_index: *partition_index }],
        });
        DescribeQuorumRequest { topics: topics.collect() }
    };
    run.ask("another topic", of(&[("no-such-topic", 0)])).await;
    run.ask("another partition", of(&[("__cluster_metadata", 7)])).await;
    run.ask("the log and another topic", of(&[("__cluster_metadata", 0), ("no-such-topic", 0)])).await;
    run.ask("nothing", of(&[])).await;
}

pub(super) async fn list_config_resources(run: &mut Asker) {
    let topic = run.topic("a", 1).await;
    assert!(!topic.is_empty());
    // Version 0 lists client metrics, and names no types.
    for types in if run.version == 0 { vec![vec![]] } else { vec![vec![2], vec![4], vec![16], vec![99]] } {
        let case = format!("types {types:?}");
        let own_only = types == [2];
        let request = ListConfigResourcesRequest { resource_types: types };
        if own_only {
            run.ask_own(&case, request).await
        } else {
            run.ask(&case, request).await
        };
    }
}
