//! ListOffsets: the ends of a partition, and the first record from a time on (K-15).
//!
//! Lives on: the service runtime.
use super::Call;
use crate::node::Node;
use crate::{error_code, topic};
use futures::stream::{self, StreamExt};
use mink_kafka_wire::ErrorCode;
use mink_kafka_wire::messages::list_offsets::{
    ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsRequest, ListOffsetsResponse,
    ListOffsetsTopic, ListOffsetsTopicResponse,
};
use mink_metadata::State;
use mink_router::Position;
use mink_types::{BucketId, Timestamp};
use std::collections::BTreeSet;

/// Partitions of one request that are looked up at once.
const LOOKUPS_AT_ONCE: usize = 16;

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
/// First version that knows [`MAX_TIMESTAMP`].
const MAX_TIMESTAMP_FROM: i16 = 7;

pub(super) async fn list_offsets(call: &Call<'_>, request: ListOffsetsRequest) -> ListOffsetsResponse {
    let state = call.node.admin.state();
    let mut seen = BTreeSet::new();
    let mut topics = Vec::with_capacity(request.topics.len());
    for asked in request.topics {
        topics.push(topic(call, &state, &mut seen, asked).await);
    }
    ListOffsetsResponse { topics, ..ListOffsetsResponse::default() }
}

async fn topic(
    call: &Call<'_>,
    state: &State,
    seen: &mut BTreeSet<BucketId>,
    asked: ListOffsetsTopic,
) -> ListOffsetsTopicResponse {
    let table = state.topic(&call.node.config.kafka_database, asked.name.as_str());
    let lookups: Vec<_> = asked
        .partitions
        .iter()
        .map(|partition| {
            let bucket = table
                .and_then(|table| topic::bucket(table, partition.partition_index))
                .ok_or(ErrorCode::UnknownTopicOrPartition)?;
            // Each search may read from the store: one request does not buy the same search twice.
            if !seen.insert(bucket) {
                return Err(ErrorCode::InvalidRequest);
            }
            Ok((bucket, position(partition.timestamp, call.version)?))
        })
        .zip(&asked.partitions)
        .map(|(judged, partition)| locate(call.node, call.version, judged, partition))
        .collect();
    let partitions = stream::iter(lookups).buffered(LOOKUPS_AT_ONCE).collect().await;
    ListOffsetsTopicResponse { name: asked.name, partitions }
}

/// What a timestamp asks for. Later versions know more negative ones; Kafka refuses those it does not know in this way.
fn position(timestamp: i64, version: i16) -> Result<Position, ErrorCode> {
    match timestamp {
        LATEST => Ok(Position::Latest),
        EARLIEST => Ok(Position::Earliest),
        MAX_TIMESTAMP if version >= MAX_TIMESTAMP_FROM => Ok(Position::MaxTimestamp),
        0.. => Ok(Position::at_or_after(Timestamp(timestamp))),
        _ => Err(ErrorCode::UnsupportedVersion),
    }
}

async fn locate(
    node: &Node,
    version: i16,
    judged: Result<(BucketId, Position), ErrorCode>,
    partition: &ListOffsetsPartition,
) -> ListOffsetsPartitionResponse {
    let leader_epoch = (partition.current_leader_epoch >= 0).then_some(partition.current_leader_epoch);
    let found = match judged {
        Ok((bucket, position)) => node.source.locate(bucket, position, leader_epoch).await.map_err(|error| {
            tracing::debug!(%error, "offset not found");
            error_code::of_locate(&error, version)
        }),
        Err(code) => Err(code),
    };
    let answer = ListOffsetsPartitionResponse {
        partition_index: partition.partition_index,
        ..ListOffsetsPartitionResponse::default()
    };
    match found {
        Ok(found) => ListOffsetsPartitionResponse {
            offset: found.offset.map_or(-1, mink_types::Offset::kafka),
            timestamp: found.timestamp.map_or(-1, |timestamp| timestamp.0),
            leader_epoch: if version >= 4 && found.offset.is_some() {
                found.epoch.leader_epoch()
            } else {
                -1
            },
            ..answer
        },
        Err(code) => ListOffsetsPartitionResponse { error_code: code.code(), ..answer },
    }
}
