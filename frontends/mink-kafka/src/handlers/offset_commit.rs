//! OffsetCommit: refused until there are groups, so that nobody believes a position is kept.
//!
//! Lives on: anywhere (pure).
use crate::error_code::NO_GROUPS;
use mink_kafka_wire::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitResponse, OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};

pub(super) fn offset_commit(request: OffsetCommitRequest) -> OffsetCommitResponse {
    let topics = request.topics.into_iter().map(|topic| OffsetCommitResponseTopic {
        name: topic.name,
        topic_id: topic.topic_id,
        partitions: topic
            .partitions
            .iter()
            .map(|partition| OffsetCommitResponsePartition {
                partition_index: partition.partition_index,
                error_code: NO_GROUPS.code(),
            })
            .collect(),
    });
    OffsetCommitResponse { topics: topics.collect(), ..OffsetCommitResponse::default() }
}
