//! OffsetFetch: what groups have committed; of one group, or of several from version 8 on.
//!
//! Lives on: the service runtime.
//! Invariants: I20: a group is answered for once per request, and a partition once per group, however often they are named. What is
//! committed for a topic that is gone is told to nobody (K-18).
use super::Call;
use super::group_names::{GROUPS_PER_REQUEST_MAX, code_of, group, number, partition};
use crate::topic::TopicRef;
use mink_group::{CommittedOffset, GroupError, TopicKey};
use mink_kafka_wire::messages::offset_fetch::{
    OffsetFetchRequest, OffsetFetchRequestTopics, OffsetFetchResponse, OffsetFetchResponseGroup,
    OffsetFetchResponsePartition, OffsetFetchResponsePartitions, OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
};
use mink_kafka_wire::{ErrorCode, KafkaString, Uuid};
use std::collections::BTreeSet;

/// First versions that name several groups, name topics by id, and have an error for a group as a whole.
const BATCHED_FROM: i16 = 8;
const BY_ID_FROM: i16 = 10;
const WHOLE_ERROR_FROM: i16 = 2;

/// Offset and leader epoch of a partition without a committed offset.
const NOTHING_COMMITTED: i64 = -1;
const NO_EPOCH: i32 = -1;

pub(super) async fn offset_fetch(call: &Call<'_>, request: OffsetFetchRequest) -> OffsetFetchResponse {
    if call.version >= BATCHED_FROM {
        let mut seen = BTreeSet::new();
        let mut groups = Vec::new();
        for asked in request.groups.into_iter().take(GROUPS_PER_REQUEST_MAX) {
            if seen.insert(asked.group_id.clone()) {
                groups.push(of_group(call, asked.group_id, asked.topics).await);
            }
        }
        return OffsetFetchResponse { groups, ..OffsetFetchResponse::default() };
    }
    let topics = request.topics.map(|topics| {
        let named = topics.into_iter().map(|topic| OffsetFetchRequestTopics {
            name: topic.name,
            topic_id: Uuid::ZERO,
            partition_indexes: topic.partition_indexes,
        });
        named.collect()
    });
    let answer = of_group(call, request.group_id, topics).await;
    OffsetFetchResponse {
        topics: answer.topics.into_iter().map(by_name).collect(),
        error_code: if call.version >= WHOLE_ERROR_FROM { answer.error_code } else { 0 },
        ..OffsetFetchResponse::default()
    }
}

fn by_name(topic: OffsetFetchResponseTopics) -> OffsetFetchResponseTopic {
    let partitions = topic.partitions.into_iter().map(|one| OffsetFetchResponsePartition {
        partition_index: one.partition_index,
        committed_offset: one.committed_offset,
        committed_leader_epoch: one.committed_leader_epoch,
        metadata: one.metadata,
        error_code: one.error_code,
    });
    OffsetFetchResponseTopic { name: topic.name, partitions: partitions.collect() }
}

async fn of_group(
    call: &Call<'_>,
    group_id: KafkaString,
    topics: Option<Vec<OffsetFetchRequestTopics>>,
) -> OffsetFetchResponseGroup {
    let found = match topics {
        None => all(call, &group_id).await,
        Some(topics) => named(call, &group_id, topics).await,
    };
    match found {
        Ok(topics) => OffsetFetchResponseGroup { group_id, topics, ..OffsetFetchResponseGroup::default() },
        Err(error) => OffsetFetchResponseGroup {
            group_id,
            error_code: code_of::<()>(&Err(error)),
            ..OffsetFetchResponseGroup::default()
        },
    }
}

/// All that have an offset and are still there, topic by topic.
async fn all(call: &Call<'_>, id: &KafkaString) -> Result<Vec<OffsetFetchResponseTopics>, GroupError> {
    // What cannot be a group's id has committed nothing.
    let Ok(group) = group(id) else { return Ok(Vec::new()) };
    let found = call.node.groups.offsets(&group, None).await?;
    let state = call.node.admin.state();
    let mut topics: Vec<OffsetFetchResponseTopics> = Vec::new();
    let mut last = None;
    for (key, offset) in found {
        let Some(table) = state.table(key.table) else { continue };
        if last != Some(key.table) {
            last = Some(key.table);
            let (name, topic_id) = if call.version >= BY_ID_FROM {
                (KafkaString::default(), Uuid(table.uuid.0))
            } else {
                (table.topic_name(&call.node.config.kafka_database).into(), Uuid::ZERO)
            };
            topics.push(OffsetFetchResponseTopics { name, topic_id, partitions: Vec::new() });
        }
        if let Some(topic) = topics.last_mut() {
            topic.partitions.push(answer(number(key.bucket), offset.as_ref(), 0));
        }
    }
    Ok(topics)
}

async fn named(
    call: &Call<'_>,
    id: &KafkaString,
    asked: Vec<OffsetFetchRequestTopics>,
) -> Result<Vec<OffsetFetchResponseTopics>, GroupError> {
    let (lines, keys) = resolve(call, asked);
    let found = match group(id) {
        Ok(group) => call.node.groups.offsets(&group, Some(keys)).await,
        Err(_) => Ok(Vec::new()),
    };
    let (found, whole) = match found {
        Ok(found) => (found, 0),
        // Without an error for the whole it stands at every partition.
        Err(error) if call.version < WHOLE_ERROR_FROM => (Vec::new(), code_of::<()>(&Err(error))),
        Err(error) => return Err(error),
    };
    let mut found = found.into_iter().map(|(_, offset)| offset);
    let topics = lines.into_iter().map(|(topic, partitions)| {
        let partitions = partitions.into_iter().map(|(index, meant)| match meant {
            Ok(_) => answer(index, found.next().flatten().as_ref(), whole),
            // What does not exist has no offset, by its name; an id that means nothing is an error.
            Err(ErrorCode::UnknownTopicId) => answer(index, None, ErrorCode::UnknownTopicId.code()),
            Err(_) => answer(index, None, whole),
        });
        let partitions = partitions.collect();
        let (name, topic_id) = topic.into_parts();
        OffsetFetchResponseTopics { name, topic_id, partitions }
    });
    Ok(topics.collect())
}

type Line = (TopicRef, Vec<(i32, Result<TopicKey, ErrorCode>)>);

fn resolve(call: &Call<'_>, asked: Vec<OffsetFetchRequestTopics>) -> (Vec<Line>, Vec<TopicKey>) {
    let state = call.node.admin.state();
    let database = &call.node.config.kafka_database;
    let mut seen = BTreeSet::new();
    let mut keys = Vec::new();
    let mut lines = Vec::with_capacity(asked.len());
    for asked in asked {
        let topic = TopicRef::new(call.version >= BY_ID_FROM, asked.name, asked.topic_id);
        let mut partitions = Vec::new();
        for index in asked.partition_indexes {
            let meant = partition(&state, database, &topic, index);
            if meant.is_ok_and(|key| !seen.insert(key)) {
                continue;
            }
            keys.extend(meant);
            partitions.push((index, meant));
        }
        lines.push((topic, partitions));
    }
    (lines, keys)
}

fn answer(
    partition_index: i32,
    offset: Option<&CommittedOffset>,
    error_code: i16,
) -> OffsetFetchResponsePartitions {
    OffsetFetchResponsePartitions {
        partition_index,
        committed_offset: offset.map_or(NOTHING_COMMITTED, |found| found.offset),
        committed_leader_epoch: offset.map_or(NO_EPOCH, |found| found.leader_epoch),
        metadata: Some(offset.map(|found| (&*found.metadata).into()).unwrap_or_default()),
        error_code,
    }
}
