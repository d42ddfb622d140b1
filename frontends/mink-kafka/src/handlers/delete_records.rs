//! DeleteRecords: raises the start of partitions, each judged by itself.
//!
//! Lives on: the service runtime.
//! Invariants: an answer with a low watermark means that no reader of this node sees anything below it; one with an error has -1 there.
use super::Call;
use super::named_once::{Named, named_once};
use crate::{error_code, topic};
use mink_api::DeleteUpTo;
use mink_kafka_wire::ErrorCode;
use mink_kafka_wire::messages::delete_records::{
    DeleteRecordsPartitionResult, DeleteRecordsRequest, DeleteRecordsResponse, DeleteRecordsTopicResult,
};
use mink_types::{BucketId, Offset};
use std::time::Duration;
use tokio::time::timeout;

/// Shortest time given to a request: what is not flushed yet must be, and the log must take the commands.
const TIME_MIN: Duration = Duration::from_secs(1);
/// Partitions that one request may name.
const PARTITIONS_MAX: usize = 10_000;

/// Everything up to the high watermark.
const HIGH_WATERMARK: i64 = -1;
/// The low watermark beside an error.
const UNKNOWN: i64 = -1;

pub(super) async fn delete_records(call: &Call<'_>, request: DeleteRecordsRequest) -> DeleteRecordsResponse {
    let time = Duration::from_millis(u64::try_from(request.timeout_ms).unwrap_or(0)).max(TIME_MIN);
    let state = call.node.admin.state();
    let mut asked: Vec<(BucketId, DeleteUpTo)> = Vec::new();
    // Of a partition that is named twice the last offset counts.
    let named = request.topics.into_iter().map(|topic| (topic.name, topic.partitions));
    let named = named_once(named, |partition| partition.partition_index);
    let mut judged: Vec<Vec<Result<(), ErrorCode>>> = Vec::with_capacity(named.len());
    for (name, partitions) in &named {
        let table = topic::named(&state, &call.node.config.kafka_database, name.as_str());
        let partitions = partitions.iter().map(|Named { partition, .. }| {
            let bucket = table.and_then(|table| topic::bucket(table, partition.partition_index));
            let bucket = bucket.ok_or(ErrorCode::UnknownTopicOrPartition)?;
            let up_to = match (partition.offset, Offset::from_kafka(partition.offset)) {
                (HIGH_WATERMARK, _) => DeleteUpTo::HighWatermark,
                (_, Some(offset)) => DeleteUpTo::Offset(offset),
                (_, None) => return Err(ErrorCode::OffsetOutOfRange),
            };
            if asked.len() >= PARTITIONS_MAX {
                return Err(ErrorCode::PolicyViolation);
            }
            asked.push((bucket, up_to));
            Ok(())
        });
        judged.push(partitions.collect());
    }
    let count = asked.len();
    let mut ends: Vec<Result<Offset, ErrorCode>> =
        match timeout(time, call.node.admin.delete_records(asked)).await {
            Ok(ends) => ends
                .into_iter()
                .map(|end| {
                    end.map_err(|error| {
                        tracing::debug!(%error, "records not deleted");
                        error_code::of_delete_records(&error)
                    })
                })
                .collect(),
            // Some of it may have been done, or still be.
            Err(_elapsed) => vec![Err(ErrorCode::RequestTimedOut); count],
        };
    let mut ends = ends.drain(..);
    let mut topics = Vec::with_capacity(named.len());
    for ((name, partitions), judged) in named.into_iter().zip(judged) {
        let partitions = partitions.iter().zip(judged).map(|(Named { partition, .. }, judged)| {
            let end = judged.and_then(|()| ends.next().unwrap_or(Err(ErrorCode::UnknownServerError)));
            DeleteRecordsPartitionResult {
                partition_index: partition.partition_index,
                low_watermark: end.map_or(UNKNOWN, Offset::kafka),
                error_code: end.err().map_or(ErrorCode::None, |code| code).code(),
            }
        });
        topics.push(DeleteRecordsTopicResult { partitions: partitions.collect(), name });
    }
    DeleteRecordsResponse { topics, ..DeleteRecordsResponse::default() }
}
