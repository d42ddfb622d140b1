//! OffsetDelete: a group forgets how far it has read, for good.
//!
//! Lives on: the service runtime.
//! Invariants: a partition that does not exist is refused alone; an offset that is reported deleted is durably so.
use super::Call;
use super::group_names::{code_of, group, partition};
use crate::topic::TopicRef;
use mink_group::{GroupError, TopicKey};
use mink_kafka_wire::messages::offset_delete::{
    OffsetDeleteRequest, OffsetDeleteResponse, OffsetDeleteResponsePartition, OffsetDeleteResponseTopic,
};
use mink_kafka_wire::{ErrorCode, KafkaString};

pub(super) async fn offset_delete(call: &Call<'_>, request: OffsetDeleteRequest) -> OffsetDeleteResponse {
    match delete(call, request).await {
        Ok(topics) => OffsetDeleteResponse { topics, ..OffsetDeleteResponse::default() },
        Err(error) => {
            OffsetDeleteResponse { error_code: code_of::<()>(&Err(error)), ..OffsetDeleteResponse::default() }
        }
    }
}

async fn delete(
    call: &Call<'_>,
    request: OffsetDeleteRequest,
) -> Result<Vec<OffsetDeleteResponseTopic>, GroupError> {
    // What cannot be an id is nobody's.
    let group = group(&request.group_id).map_err(|_| GroupError::GroupIdNotFound)?;
    let (lines, keys) = resolve(call, request);
    let results = call.node.groups.delete_offsets(&group, keys).await?;
    let mut results = results.into_iter();
    let topics = lines.into_iter().map(|(name, partitions)| {
        let partitions = partitions.into_iter().map(|(partition_index, refused)| {
            let error_code = match refused {
                Some(code) => code.code(),
                None => code_of(&results.next().unwrap_or(Err(GroupError::UnknownServerError))),
            };
            OffsetDeleteResponsePartition { partition_index, error_code }
        });
        OffsetDeleteResponseTopic { name, partitions: partitions.collect() }
    });
    Ok(topics.collect())
}

type Line = (KafkaString, Vec<(i32, Option<ErrorCode>)>);

fn resolve(call: &Call<'_>, request: OffsetDeleteRequest) -> (Vec<Line>, Vec<TopicKey>) {
    let state = call.node.admin.state();
    let mut keys = Vec::new();
    let mut lines = Vec::with_capacity(request.topics.len());
    for asked in request.topics {
        let topic = TopicRef::Name(asked.name.clone());
        let mut partitions = Vec::with_capacity(asked.partitions.len());
        for one in asked.partitions {
            let meant = partition(&state, &call.node.config.kafka_database, &topic, one.partition_index);
            partitions.push((one.partition_index, meant.err()));
            keys.extend(meant);
        }
        lines.push((asked.name, partitions));
    }
    (lines, keys)
}
