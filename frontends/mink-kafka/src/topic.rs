//! What a topic name, a topic id and a partition number mean in Mink's metadata (FEATURES section 5).
//!
//! Lives on: anywhere (pure).
use crate::node::broker_id;
use mink_api::Broker;
use mink_kafka_wire::{ErrorCode, KafkaString};
use mink_metadata::{State, Table};
use mink_types::{BucketId, BucketIndex, DatabaseName, TableName, TablePath};

/// A refusal for one topic, partition or resource.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Refusal {
    pub(crate) code: ErrorCode,
    pub(crate) why: String,
}

impl Refusal {
    pub(crate) fn new(code: ErrorCode, why: impl Into<String>) -> Refusal {
        Refusal { code, why: why.into() }
    }
}

/// The bucket of a partition number; none if the table has no such.
pub(crate) fn bucket(table: &Table, partition: i32) -> Option<BucketId> {
    let index = u32::try_from(partition).ok().filter(|index| *index < table.buckets)?;
    Some(BucketId::unpartitioned(table.id, BucketIndex(index)))
}

/// The address of a topic that is to be created, if its name is one and no other topic stands in its way.
pub(crate) fn new_topic(
    state: &State,
    database: &DatabaseName,
    name: &KafkaString,
) -> Result<TablePath, Refusal> {
    let invalid = |why: String| Refusal::new(ErrorCode::InvalidTopicException, why);
    let table = TableName::new(name.as_str()).map_err(|error| invalid(error.to_string()))?;
    if state.topic(database, name.as_str()).is_some() {
        return Err(Refusal::new(ErrorCode::TopicAlreadyExists, format!("topic {table} exists already")));
    }
    let key = table.collision_key();
    let other = state.tables_of(database).find(|other| other.path.table.collision_key() == key);
    if let Some(other) = other {
        return Err(invalid(format!(
            "topic {table} collides with topic {}: Kafka takes '.' and '_' for the same; choose another name",
            other.path.table
        )));
    }
    Ok(TablePath { database: database.clone(), table })
}

/// Who leads a bucket, among the brokers that clients are sent to, and at which epoch.
pub(crate) fn leader(state: &State, bucket: &BucketId, brokers: &[Broker]) -> (Option<i32>, i32) {
    let Some(bucket) = state.bucket(bucket) else {
        return (None, 0);
    };
    let node = bucket
        .owner
        .and_then(|owner| state.incarnation(owner))
        .filter(|owner| !owner.fenced)
        .map(mink_metadata::IncarnationState::node)
        .filter(|node| brokers.iter().any(|broker| broker.node == *node));
    (node.map(broker_id), bucket.epoch.leader_epoch())
}
