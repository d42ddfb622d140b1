//! The names by which requests speak of groups and members, and the partitions that their offsets belong to.
//!
//! Lives on: the service runtime.
//! Invariants: what a coordinator keeps shares no memory with the request it came in (I20).
use super::Call;
use crate::connection::{Answer, Answering, later};
use crate::error_code;
use crate::topic::{self, TopicRef};
use futures::future::BoxFuture;
use mink_group::{GroupError, GroupId, InstanceId, MemberId, TopicKey};
use mink_kafka_wire::{ErrorCode, KafkaString};
use mink_metadata::State;
use mink_types::{BucketIndex, DatabaseName};
use std::sync::Arc;
use std::task::Poll;

/// Groups that one request may name; clients with more ask again for the rest.
pub(super) const GROUPS_PER_REQUEST_MAX: usize = 10_000;

/// What a client without authorisation in its way may do with a group.
pub(super) const GROUP_OPERATIONS: i32 = super::metadata::operations(&[3, 6, 8, 10, 11]);

pub(super) fn group(id: &KafkaString) -> Result<GroupId, GroupError> {
    GroupId::new(id.as_str())
}

pub(super) fn member(id: &KafkaString) -> MemberId {
    MemberId::new(id.as_str())
}

pub(super) fn instance(id: Option<&KafkaString>) -> Option<InstanceId> {
    id.map(|id| InstanceId::new(id.as_str()))
}

pub(super) fn text(text: &KafkaString) -> Arc<str> {
    text.as_str().into()
}

pub(super) fn code_of<T>(result: &Result<T, GroupError>) -> i16 {
    result.as_ref().map_or_else(|error| error_code::of_group(*error), |_| ErrorCode::None).code()
}

/// The partition that is meant; a code that clients of the version understand if there is none.
pub(super) fn partition(
    state: &State,
    database: &DatabaseName,
    topic: &TopicRef,
    partition: i32,
) -> Result<TopicKey, ErrorCode> {
    let table = topic.table(state, database)?;
    let bucket = topic::bucket(table, partition).ok_or(ErrorCode::UnknownTopicOrPartition)?;
    Ok(TopicKey { table: table.id, bucket: bucket.bucket })
}

/// A partition's number as Kafka counts.
pub(super) fn number(bucket: BucketIndex) -> i32 {
    i32::try_from(bucket.0).unwrap_or(i32::MAX)
}

/// The answer of a member that may wait for others, for minutes: the next request of its connection is looked at meanwhile, and
/// the bytes of this one are given back, because the coordinator has what it needs of it. A wait ends with the connection; the member stays
/// in its group then, until its session ends or it comes again.
pub(super) async fn waiting<T: Send + 'static>(
    call: &mut Call<'_>,
    mut coming: BoxFuture<'static, T>,
    ended: T,
    encode: impl FnOnce(T) -> Answer + Send + 'static,
) -> Answering {
    // The coordinator is asked before the next request is looked at: what a client asks in order happens in order.
    if let Poll::Ready(answer) = futures::poll!(&mut coming) {
        return crate::connection::ready(encode(answer));
    }
    drop(call.permit.split(u64::MAX));
    let mut ends = call.ends.clone();
    later(async move {
        let answer = tokio::select! {
            biased;
            answer = coming => answer,
            _ = ends.wait_for(|ends| *ends) => ended,
        };
        encode(answer)
    })
}
