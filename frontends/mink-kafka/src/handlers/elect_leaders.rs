//! ElectLeaders: there is nothing to elect; the store replicates, and each partition has the one leader it can have.
//!
//! Lives on: anywhere (pure).
use super::Call;
use crate::topic::{self, Refusal};
use mink_kafka_wire::ErrorCode;
use mink_kafka_wire::messages::elect_leaders::{
    ElectLeadersRequest, ElectLeadersResponse, PartitionResult, ReplicaElectionResult, TopicPartitions,
};
use mink_metadata::Table;

/// Kinds of election by Kafka's numbers: the preferred replica, or any that is left.
const KINDS: [i8; 2] = [0, 1];

pub(super) fn elect_leaders(call: &Call<'_>, request: ElectLeadersRequest) -> ElectLeadersResponse {
    let state = call.node.admin.state();
    let database = &call.node.config.kafka_database;
    let Some(asked) = request.topic_partitions else {
        // Every topic, none of whose partitions needs it.
        let all = topic::all(&state).map(|table| ReplicaElectionResult {
            topic: table.topic_name(database).into(),
            partition_result: Vec::new(),
        });
        return ElectLeadersResponse {
            replica_election_results: all.collect(),
            ..ElectLeadersResponse::default()
        };
    };
    let brokers = call.node.admin.brokers();
    let known = KINDS.contains(&request.election_type);
    let judge = |table: Option<&Table>, partition: i32| -> Refusal {
        if !known {
            let why = format!("election type {} is not known", request.election_type);
            return Refusal::new(ErrorCode::InvalidRequest, why);
        }
        let Some(bucket) = table.and_then(|table| topic::bucket(table, partition)) else {
            return Refusal::new(ErrorCode::UnknownTopicOrPartition, "there is no such partition");
        };
        if topic::leader(&state, &bucket, &brokers).0.is_some() {
            return Refusal::new(ErrorCode::ElectionNotNeeded, "the partition has its leader");
        }
        let why = "the partition is being taken over; its leader comes by itself";
        Refusal::new(ErrorCode::PreferredLeaderNotAvailable, why)
    };
    let results = asked.into_iter().map(|TopicPartitions { topic, partitions }| {
        let table = topic::named(&state, database, topic.as_str());
        let partition_result = partitions.into_iter().map(|partition_id| {
            let Refusal { code, why } = judge(table, partition_id);
            PartitionResult { partition_id, error_code: code.code(), error_message: Some(why.into()) }
        });
        ReplicaElectionResult { partition_result: partition_result.collect(), topic }
    });
    ElectLeadersResponse {
        error_code: if known { ErrorCode::None } else { ErrorCode::InvalidRequest }.code(),
        replica_election_results: results.collect(),
        ..ElectLeadersResponse::default()
    }
}
