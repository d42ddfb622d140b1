//! OffsetCommit: how far a group has read, answered when it is durable.
//!
//! Lives on: the service runtime.
//! Invariants: I18; a partition that does not exist is refused alone; K-18: an offset belongs to the table that the topic means now, by
//! its id. What is asked behind a commit sees it, unless the log is slow: then signs of life pass it.
use super::group_names::{code_of, group, instance, member, partition};
use super::{Call, encode};
use crate::connection::{Answering, later, ready};
use crate::topic::TopicRef;
use futures::FutureExt;
use mink_group::{CommitRequest, GroupError, OffsetToCommit};
use mink_kafka_wire::ErrorCode;
use mink_kafka_wire::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitResponse, OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};
use std::sync::Arc;
use std::time::Duration;

/// First version that names topics by id, and the last that says how long offsets are to be kept.
const BY_ID_FROM: i16 = 10;
const RETENTION_UNTIL: i16 = 4;

/// How long what is behind a commit on its connection waits for it to be durable: well below the shortest session.
const TURN_MAX: Duration = Duration::from_secs(2);

pub(super) async fn offset_commit(call: &mut Call<'_>, request: OffsetCommitRequest) -> Answering {
    let (version, correlation) = (call.version, call.correlation);
    let (lines, offsets) = resolve(call, &request);
    let encoded = move |answer| encode(version, correlation, &response(lines, answer));
    if offsets.is_empty() {
        return ready(encoded(Ok(Vec::new())));
    }
    let commit = match group(&request.group_id) {
        Ok(group) => CommitRequest {
            group,
            member: member(&request.member_id),
            instance: instance(request.group_instance_id.as_ref()),
            generation: request.generation_id_or_member_epoch,
            offsets,
            retention_ms: u64::try_from(request.retention_time_ms)
                .ok()
                .filter(|_| version <= RETENTION_UNTIL),
        },
        Err(error) => return ready(encoded(Err(error))),
    };
    let node = Arc::clone(call.node);
    let mut committing = async move {
        let answer = node.groups.commit(commit).await;
        let each = answer.iter().flatten().filter_map(|result| result.as_ref().err());
        each.chain(answer.as_ref().err()).for_each(|error| node.counters.limits().note_group(*error));
        answer
    }
    .boxed();
    match tokio::time::timeout(TURN_MAX, &mut committing).await {
        Ok(answer) => ready(encoded(answer)),
        Err(_elapsed) => later(async move { encoded(committing.await) }),
    }
}

/// One topic of the request: for each partition its number, and why it is not committed if it is not.
struct Line {
    topic: TopicRef,
    partitions: Vec<(i32, Option<ErrorCode>)>,
}

fn resolve(call: &Call<'_>, request: &OffsetCommitRequest) -> (Vec<Line>, Vec<OffsetToCommit>) {
    let state = call.node.admin.state();
    let database = &call.node.config.kafka_database;
    let mut offsets = Vec::new();
    let mut lines = Vec::with_capacity(request.topics.len());
    for asked in &request.topics {
        let topic = TopicRef::new(call.version >= BY_ID_FROM, asked.name.clone(), asked.topic_id);
        let mut partitions = Vec::with_capacity(asked.partitions.len());
        for one in &asked.partitions {
            let meant = partition(&state, database, &topic, one.partition_index);
            partitions.push((one.partition_index, meant.err()));
            if let Ok(topic) = meant {
                let metadata = one.committed_metadata.as_ref().map_or("", |text| text.as_str()).into();
                offsets.push(OffsetToCommit {
                    topic,
                    offset: one.committed_offset,
                    leader_epoch: one.committed_leader_epoch,
                    metadata,
                });
            }
        }
        lines.push(Line { topic, partitions });
    }
    (lines, offsets)
}

fn response(
    lines: Vec<Line>,
    answer: Result<Vec<Result<(), GroupError>>, GroupError>,
) -> OffsetCommitResponse {
    let whole = answer.as_ref().err().copied();
    let mut results = answer.unwrap_or_default().into_iter();
    // One result for each partition that was meant; a coordinator that gives fewer has not stored the rest.
    let mut next =
        || whole.map_or_else(|| results.next().unwrap_or(Err(GroupError::UnknownServerError)), Err);
    let mut topics = Vec::with_capacity(lines.len());
    for line in lines {
        let mut partitions = Vec::with_capacity(line.partitions.len());
        for (partition_index, refused) in line.partitions {
            let error_code = refused.map_or_else(|| code_of(&next()), ErrorCode::code);
            partitions.push(OffsetCommitResponsePartition { partition_index, error_code });
        }
        let (name, topic_id) = line.topic.into_parts();
        topics.push(OffsetCommitResponseTopic { name, topic_id, partitions });
    }
    OffsetCommitResponse { topics, ..OffsetCommitResponse::default() }
}
