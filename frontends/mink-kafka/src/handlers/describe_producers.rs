//! DescribeProducers: the idempotent producers that a partition remembers, for those who look after a cluster.
//!
//! Lives on: the service runtime.
//! Invariants: I20: an answer holds a bounded number of producers, whose memory is taken before they are asked for.
use super::{Call, encode};
use crate::connection::{Answer, Answering, ready};
use crate::error_code;
use crate::topic::{self, Refusal};
use mink_kafka_wire::ErrorCode;
use mink_kafka_wire::messages::describe_producers::{
    DescribeProducersRequest, DescribeProducersResponse, PartitionResponse, ProducerState, TopicRequest,
    TopicResponse,
};
use mink_metadata::State;
use mink_types::{BucketId, ProducerId, TableName};

/// Producers of one answer: more than one partition can have.
const PRODUCERS_MAX: usize = 32_000;
/// Producers asked for at once.
const PAGE: usize = 1_000;
/// What a producer takes in memory, decoded and encoded, in bytes.
const PRODUCER_BYTES: u64 = 96;

/// Without transactions there is neither.
const NO_COORDINATOR: i32 = -1;
const NO_TRANSACTION: i64 = -1;

pub(super) async fn describe_producers(call: &Call<'_>, request: DescribeProducersRequest) -> Answering {
    let bytes = PRODUCERS_MAX as u64 * PRODUCER_BYTES;
    let mut ends = call.ends.clone();
    let memory = tokio::select! {
        biased;
        memory = call.answers.take(bytes) => memory,
        _ = ends.wait_for(|ends| *ends) => return ready(Answer::Nothing),
    };
    let (response, producers) = describe(call, request).await;
    let used = producers as u64 * PRODUCER_BYTES;
    ready(match encode(call.version, call.correlation, &response) {
        Answer::Send { frame, .. } => Answer::Send { frame, memory: Some(memory.keep(used)) },
        other => other,
    })
}

/// The answer, and how many producers are in it.
async fn describe(call: &Call<'_>, request: DescribeProducersRequest) -> (DescribeProducersResponse, usize) {
    let state = call.node.admin.state();
    let mut room = Room { left: PRODUCERS_MAX, is_over: false };
    let mut topics = Vec::with_capacity(request.topics.len());
    for TopicRequest { name, partition_indexes } in request.topics {
        let mut partitions = Vec::with_capacity(partition_indexes.len());
        for partition_index in partition_indexes {
            let found = match bucket(call, &state, name.as_str(), partition_index) {
                Ok(bucket) => producers(call, bucket, &mut room).await,
                Err(refusal) => Err(refusal),
            };
            partitions.push(match found {
                Ok(active_producers) => {
                    PartitionResponse { partition_index, active_producers, ..PartitionResponse::default() }
                }
                Err(Refusal { code, why }) => PartitionResponse {
                    partition_index,
                    error_code: code.code(),
                    error_message: Some(why.into()),
                    ..PartitionResponse::default()
                },
            });
        }
        topics.push(TopicResponse { name, partitions });
    }
    let response = DescribeProducersResponse { topics, ..DescribeProducersResponse::default() };
    (response, PRODUCERS_MAX - room.left)
}

/// What an answer may still hold.
struct Room {
    left: usize,
    /// A partition found no room: none behind it is asked, or a request that names it often would be answered by work alone.
    is_over: bool,
}

fn bucket(call: &Call<'_>, state: &State, name: &str, partition: i32) -> Result<BucketId, Refusal> {
    let unknown = |why: &str| Refusal::new(ErrorCode::UnknownTopicOrPartition, why);
    let Some(table) = topic::named(state, &call.node.config.kafka_database, name) else {
        return Err(match TableName::new(name) {
            Ok(_) => unknown("there is no such topic"),
            Err(error) => Refusal::new(ErrorCode::InvalidTopicException, error.to_string()),
        });
    };
    topic::bucket(table, partition).ok_or_else(|| unknown("the topic has no such partition"))
}

async fn producers(
    call: &Call<'_>,
    bucket: BucketId,
    room: &mut Room,
) -> Result<Vec<ProducerState>, Refusal> {
    let full = || {
        let why = format!("an answer holds {PRODUCERS_MAX} producers; ask for fewer partitions at once");
        Refusal::new(ErrorCode::InvalidRequest, why)
    };
    let mut found = Vec::new();
    let mut from = ProducerId(0);
    loop {
        if room.is_over {
            return Err(full());
        }
        let page = call.node.source.producers(bucket, from, PAGE).await;
        let page = page.map_err(|error| Refusal::new(error_code::of_read(&error), error.to_string()))?;
        if found.len() + page.len() > room.left {
            room.is_over = true;
            continue;
        }
        let is_last = page.len() < PAGE;
        let last = page.last().map(|last| last.producer);
        found.extend(page.into_iter().map(state_of));
        match last.and_then(|last| last.0.checked_add(1)) {
            Some(next) if !is_last => from = ProducerId(next),
            _ => break,
        }
    }
    room.left -= found.len();
    Ok(found)
}

fn state_of(state: mink_router::ProducerState) -> ProducerState {
    ProducerState {
        producer_id: state.producer.0,
        producer_epoch: state.epoch.0.into(),
        last_sequence: state.last_sequence.0,
        last_timestamp: state.last_commit_time.0,
        coordinator_epoch: NO_COORDINATOR,
        current_txn_start_offset: NO_TRANSACTION,
    }
}
