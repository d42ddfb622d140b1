//! OffsetFetch: no group has committed anything, so every partition has the offset -1, as Kafka answers for an unknown group.
//!
//! Lives on: anywhere (pure).
use super::Call;
use mink_kafka_wire::KafkaString;
use mink_kafka_wire::messages::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchResponse, OffsetFetchResponseGroup,
    OffsetFetchResponsePartition, OffsetFetchResponsePartitions, OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
};

/// Offset and leader epoch of a partition without a committed offset.
const NOTHING_COMMITTED: i64 = -1;
const NO_EPOCH: i32 = -1;

pub(super) fn offset_fetch(call: &Call<'_>, request: OffsetFetchRequest) -> OffsetFetchResponse {
    if call.version >= 8 {
        return OffsetFetchResponse {
            groups: request.groups.into_iter().map(group).collect(),
            ..OffsetFetchResponse::default()
        };
    }
    // No topics at all means all that have a committed offset: none.
    let topics = request.topics.unwrap_or_default().into_iter();
    OffsetFetchResponse {
        topics: topics
            .map(|topic| OffsetFetchResponseTopic {
                name: topic.name,
                partitions: topic
                    .partition_indexes
                    .into_iter()
                    .map(|partition_index| OffsetFetchResponsePartition {
                        partition_index,
                        committed_offset: NOTHING_COMMITTED,
                        committed_leader_epoch: NO_EPOCH,
                        metadata: Some(KafkaString::default()),
                        ..OffsetFetchResponsePartition::default()
                    })
                    .collect(),
            })
            .collect(),
        ..OffsetFetchResponse::default()
    }
}

fn group(group: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup {
    let topics = group.topics.unwrap_or_default().into_iter();
    OffsetFetchResponseGroup {
        group_id: group.group_id,
        topics: topics
            .map(|topic| OffsetFetchResponseTopics {
                name: topic.name,
                topic_id: topic.topic_id,
                partitions: topic
                    .partition_indexes
                    .into_iter()
                    .map(|partition_index| OffsetFetchResponsePartitions {
                        partition_index,
                        committed_offset: NOTHING_COMMITTED,
                        committed_leader_epoch: NO_EPOCH,
                        metadata: Some(KafkaString::default()),
                        ..OffsetFetchResponsePartitions::default()
                    })
                    .collect(),
            })
            .collect(),
        ..OffsetFetchResponseGroup::default()
    }
}
