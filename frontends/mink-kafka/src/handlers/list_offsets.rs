//! ListOffsets: the ends of a partition, and the first record from a time on (K-15).
//!
//! Lives on: the service runtime.
use super::Call;
use super::named_once::{Named, named_once};
use crate::node::Node;
use crate::{error_code, topic};
use futures::stream::{self, StreamExt};
use mink_kafka_wire::messages::list_offsets::{
    ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsRequest, ListOffsetsResponse,
    ListOffsetsTopicResponse,
};
use mink_kafka_wire::{ErrorCode, KafkaString};
use mink_metadata::State;
use mink_router::Position;
use mink_types::{BucketId, Timestamp};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Partitions of one request that are looked up at once.
const LOOKUPS_AT_ONCE: usize = 16;

/// What stands for no epoch.
const NO_EPOCH: i32 = -1;

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;
const LATEST_TIERED: i64 = -5;
const EARLIEST_PENDING_UPLOAD: i64 = -6;

/// First versions that know them.
const MAX_TIMESTAMP_FROM: i16 = 7;
const EARLIEST_LOCAL_FROM: i16 = 8;
const LATEST_TIERED_FROM: i16 = 9;
const EARLIEST_PENDING_UPLOAD_FROM: i16 = 11;

/// First version that says how long the client waits.
const TIMEOUT_FROM: i16 = 10;
/// Longest time that a request's searches take, whatever the client's.
const TIME_MAX: Duration = Duration::from_mins(5);

pub(super) async fn list_offsets(call: &Call<'_>, request: ListOffsetsRequest) -> ListOffsetsResponse {
    let state = call.node.admin.state();
    let time = match u64::try_from(request.timeout_ms) {
        Ok(time) if call.version >= TIMEOUT_FROM && time > 0 => Duration::from_millis(time).min(TIME_MAX),
        _ => TIME_MAX,
    };
    let deadline = Instant::now() + time;
    let mut seen = BTreeSet::new();
    let mut topics = Vec::with_capacity(request.topics.len());
    let asked = request.topics.into_iter().map(|topic| (topic.name, topic.partitions));
    for (name, asked) in named_once(asked, |partition| partition.partition_index) {
        topics.push(topic(call, &state, &mut seen, (name, asked), deadline).await);
    }
    ListOffsetsResponse { topics, ..ListOffsetsResponse::default() }
}

async fn topic(
    call: &Call<'_>,
    state: &State,
    seen: &mut BTreeSet<BucketId>,
    (name, asked): (KafkaString, Vec<Named<ListOffsetsPartition>>),
    deadline: Instant,
) -> ListOffsetsTopicResponse {
    let table = topic::named(state, &call.node.config.kafka_database, name.as_str());
    let lookups: Vec<_> = asked
        .iter()
        .map(|Named { partition, times }| {
            let bucket = table
                .and_then(|table| topic::bucket(table, partition.partition_index))
                .ok_or(ErrorCode::UnknownTopicOrPartition)?;
            // Each search may read from the store: one request does not buy the same search twice, by another name of the topic neither.
            if *times > 1 || !seen.insert(bucket) {
                return Err(ErrorCode::InvalidRequest);
            }
            Ok((bucket, position(partition.timestamp, call.version)?))
        })
        .zip(&asked)
        .map(|(judged, Named { partition, .. })| locate(call.node, call.version, judged, partition, deadline))
        .collect();
    let partitions = stream::iter(lookups).buffered(LOOKUPS_AT_ONCE).collect().await;
    ListOffsetsTopicResponse { name, partitions }
}

/// What is looked for, and whether there is such a thing at all.
#[derive(Clone, Copy)]
enum Sought {
    At(Position),
    /// Something of another tier of storage than the log's own, which there is none of.
    Nothing,
}

/// What a timestamp asks for. Later versions know more negative ones; Kafka refuses those it does not know in this way.
fn position(timestamp: i64, version: i16) -> Result<Sought, ErrorCode> {
    match timestamp {
        LATEST => Ok(Sought::At(Position::Latest)),
        EARLIEST => Ok(Sought::At(Position::Earliest)),
        MAX_TIMESTAMP if version >= MAX_TIMESTAMP_FROM => Ok(Sought::At(Position::MaxTimestamp)),
        // All of a log is in one place.
        EARLIEST_LOCAL if version >= EARLIEST_LOCAL_FROM => Ok(Sought::At(Position::Earliest)),
        LATEST_TIERED if version >= LATEST_TIERED_FROM => Ok(Sought::Nothing),
        EARLIEST_PENDING_UPLOAD if version >= EARLIEST_PENDING_UPLOAD_FROM => Ok(Sought::Nothing),
        0.. => Ok(Sought::At(Position::at_or_after(Timestamp(timestamp)))),
        _ => Err(ErrorCode::UnsupportedVersion),
    }
}

async fn locate(
    node: &Node,
    version: i16,
    judged: Result<(BucketId, Sought), ErrorCode>,
    partition: &ListOffsetsPartition,
    deadline: Instant,
) -> ListOffsetsPartitionResponse {
    // Any other number that is no epoch is an epoch of long ago.
    let believed = partition.current_leader_epoch;
    let leader_epoch = (believed != NO_EPOCH).then_some(believed);
    let found = match judged {
        Ok((bucket, sought)) => {
            let position = match sought {
                Sought::At(position) => position,
                // The node is asked all the same: another may be the leader.
                Sought::Nothing => Position::Earliest,
            };
            match timeout_at(deadline, node.source.locate(bucket, position, leader_epoch)).await {
                Ok(Ok(_)) if matches!(sought, Sought::Nothing) => Ok(None),
                Ok(Ok(found)) => Ok(Some(found)),
                Ok(Err(error)) => {
                    tracing::debug!(%error, "offset not found");
                    Err(error_code::of_locate(&error, version))
                }
                Err(_elapsed) => Err(ErrorCode::RequestTimedOut),
            }
        }
        Err(code) => Err(code),
    };
    let answer = ListOffsetsPartitionResponse {
        partition_index: partition.partition_index,
        ..ListOffsetsPartitionResponse::default()
    };
    match found {
        Ok(None) => answer,
        Ok(Some(found)) => ListOffsetsPartitionResponse {
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
