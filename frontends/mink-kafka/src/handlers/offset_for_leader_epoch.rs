//! OffsetForLeaderEpoch: where an epoch ended, for clients that validate their position after a change of owner (K-17).
//!
//! Lives on: the service runtime.
use super::Call;
use crate::topic::TopicRef;
use crate::{error_code, topic};
use futures::stream::{self, StreamExt};
use mink_kafka_wire::ErrorCode;
use mink_kafka_wire::messages::offset_for_leader_epoch::{
    EpochEndOffset, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse, OffsetForLeaderPartition,
    OffsetForLeaderTopic, OffsetForLeaderTopicResult,
};
use mink_metadata::State;
use mink_router::EpochEnd;
use mink_types::BucketEpoch;

/// Partitions of one request that are looked up at once.
const LOOKUPS_AT_ONCE: usize = 16;

pub(super) async fn offset_for_leader_epoch(
    call: &Call<'_>,
    request: OffsetForLeaderEpochRequest,
) -> OffsetForLeaderEpochResponse {
    let state = call.node.admin.state();
    let mut topics = Vec::with_capacity(request.topics.len());
    for OffsetForLeaderTopic { topic, partitions } in request.topics {
        let named = TopicRef::Name(topic.clone());
        let lookups = partitions.iter().map(|partition| end(call, &state, &named, partition));
        // Collected first: a stream over a borrowing iterator is not one that may be sent.
        let lookups: Vec<_> = lookups.collect();
        let partitions = stream::iter(lookups).buffered(LOOKUPS_AT_ONCE).collect().await;
        topics.push(OffsetForLeaderTopicResult { topic, partitions });
    }
    OffsetForLeaderEpochResponse { topics, ..OffsetForLeaderEpochResponse::default() }
}

async fn end(
    call: &Call<'_>,
    state: &State,
    named: &TopicRef,
    asked: &OffsetForLeaderPartition,
) -> EpochEndOffset {
    // -1 for what is not known.
    let answer = EpochEndOffset {
        partition: asked.partition,
        leader_epoch: -1,
        end_offset: -1,
        ..EpochEndOffset::default()
    };
    match look_up(call, state, named, asked).await {
        Ok(Some(EpochEnd { epoch, end })) => {
            EpochEndOffset { leader_epoch: epoch.leader_epoch(), end_offset: end.kafka(), ..answer }
        }
        Ok(None) => answer,
        Err(code) => EpochEndOffset { error_code: code.code(), ..answer },
    }
}

async fn look_up(
    call: &Call<'_>,
    state: &State,
    named: &TopicRef,
    asked: &OffsetForLeaderPartition,
) -> Result<Option<EpochEnd>, ErrorCode> {
    let table = named.table(state, &call.node.config.kafka_database)?;
    let bucket = topic::bucket(table, asked.partition).ok_or(ErrorCode::UnknownTopicOrPartition)?;
    let believed = (asked.current_leader_epoch >= 0).then_some(asked.current_leader_epoch);
    // No epoch is below 0: nobody has written in it.
    let epoch = u32::try_from(asked.leader_epoch).map_or(BucketEpoch::MAX, BucketEpoch);
    call.node.source.epoch_end(bucket, epoch, believed).await.map_err(|error| {
        tracing::debug!(%error, "the end of an epoch is not known");
        error_code::of_read(&error)
    })
}
