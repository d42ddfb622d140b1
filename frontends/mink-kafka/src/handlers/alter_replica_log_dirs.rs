//! AlterReplicaLogDirs: the store is the one directory, so a partition that this node leads is there already.
//!
//! Lives on: anywhere (pure).
use super::Call;
use crate::topic;
use mink_kafka_wire::ErrorCode;
use mink_kafka_wire::messages::alter_replica_log_dirs::{
    AlterReplicaLogDir, AlterReplicaLogDirPartitionResult, AlterReplicaLogDirTopic,
    AlterReplicaLogDirTopicResult, AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse,
};

pub(super) fn alter_replica_log_dirs(
    call: &Call<'_>,
    request: AlterReplicaLogDirsRequest,
) -> AlterReplicaLogDirsResponse {
    let state = call.node.admin.state();
    let own = call.node.admin.identity().incarnation;
    let store = state.incarnation(own).map(|own| own.storage.as_str());
    let judge = |path: &str, topic: &str, partition: i32| -> ErrorCode {
        if store != Some(path) {
            return ErrorCode::LogDirNotFound;
        }
        let table = topic::named(&state, &call.node.config.kafka_database, topic);
        let Some(bucket) = table.and_then(|table| topic::bucket(table, partition)) else {
            return ErrorCode::UnknownTopicOrPartition;
        };
        let is_led = state.bucket(&bucket).is_some_and(|state| state.owner == Some(own));
        if is_led { ErrorCode::None } else { ErrorCode::ReplicaNotAvailable }
    };
    let mut results = Vec::new();
    for AlterReplicaLogDir { path, topics } in request.dirs {
        results.extend(topics.into_iter().map(|AlterReplicaLogDirTopic { name, partitions }| {
            let partitions =
                partitions.into_iter().map(|partition_index| AlterReplicaLogDirPartitionResult {
                    partition_index,
                    error_code: judge(path.as_str(), name.as_str(), partition_index).code(),
                });
            AlterReplicaLogDirTopicResult { partitions: partitions.collect(), topic_name: name }
        }));
    }
    AlterReplicaLogDirsResponse { results, ..AlterReplicaLogDirsResponse::default() }
}
