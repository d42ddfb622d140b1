//! AlterPartitionReassignments: a partition stays with its leader, which is its one replica; anything else is refused.
//!
//! Lives on: anywhere (pure).
use super::Call;
use crate::topic::{self, Refusal};
use mink_kafka_wire::ErrorCode;
use mink_kafka_wire::messages::alter_partition_reassignments::{
    AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse, ReassignablePartition,
    ReassignablePartitionResponse, ReassignableTopic, ReassignableTopicResponse,
};
use mink_metadata::Table;

pub(super) fn alter_partition_reassignments(
    call: &Call<'_>,
    request: AlterPartitionReassignmentsRequest,
) -> AlterPartitionReassignmentsResponse {
    let state = call.node.admin.state();
    let brokers = call.node.admin.brokers();
    let judge = |table: Option<&Table>, asked: &ReassignablePartition| -> Result<(), Refusal> {
        let Some(bucket) = table.and_then(|table| topic::bucket(table, asked.partition_index)) else {
            return Err(Refusal::new(ErrorCode::UnknownTopicOrPartition, "there is no such partition"));
        };
        let Some(replicas) = &asked.replicas else {
            let why = "there is no reassignment to cancel";
            return Err(Refusal::new(ErrorCode::NoReassignmentInProgress, why));
        };
        match topic::leader(&state, &bucket, &brokers).0 {
            Some(leader) if *replicas == [leader] => Ok(()),
            _ => {
                let why = "the store replicates: the leader is the one replica, and is not chosen by hand";
                Err(Refusal::new(ErrorCode::InvalidReplicaAssignment, why))
            }
        }
    };
    let responses = request.topics.into_iter().map(|ReassignableTopic { name, partitions }| {
        let table = topic::named(&state, &call.node.config.kafka_database, name.as_str());
        let partitions = partitions.iter().map(|asked| {
            let (code, why) = match judge(table, asked) {
                Ok(()) => (ErrorCode::None, None),
                Err(Refusal { code, why }) => (code, Some(why.into())),
            };
            ReassignablePartitionResponse {
                partition_index: asked.partition_index,
                error_code: code.code(),
                error_message: why,
            }
        });
        ReassignableTopicResponse { partitions: partitions.collect(), name }
    });
    AlterPartitionReassignmentsResponse {
        allow_replication_factor_change: request.allow_replication_factor_change,
        responses: responses.collect(),
        error_message: None,
        ..AlterPartitionReassignmentsResponse::default()
    }
}
