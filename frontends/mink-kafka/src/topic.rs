//! What a topic name, a topic id and a partition number mean in Mink's metadata (FEATURES section 5).
//!
//! Lives on: anywhere (pure).
use crate::node::broker_id;
use mink_api::Broker;
use mink_kafka_wire::{ErrorCode, KafkaString, Uuid};
use mink_metadata::{State, Table};
use mink_types::{
    BucketId, BucketIndex, DatabaseName, KafkaValueFormat, LogFormat, TableName, TableOptions, TablePath,
    TableUuid, TimestampType,
};

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

/// A topic as a request names it: by id where the version has ids, by name before. An id means the table it was given to and
/// never one that was created anew under the name (K-26).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum TopicRef {
    Name(KafkaString),
    Id(Uuid),
}

impl TopicRef {
    pub(crate) fn new(by_id: bool, name: KafkaString, id: Uuid) -> TopicRef {
        if by_id { TopicRef::Id(id) } else { TopicRef::Name(name) }
    }

    /// The table that is meant; a refusal that clients of the version understand if there is none.
    pub(crate) fn table<'a>(
        &self,
        state: &'a State,
        database: &DatabaseName,
    ) -> Result<&'a Table, ErrorCode> {
        match self {
            TopicRef::Name(name) => named(state, database, name.as_str()),
            TopicRef::Id(id) => by_id(state, *id),
        }
        .ok_or(self.unknown())
    }

    /// The code for a topic that does not exist.
    pub(crate) fn unknown(&self) -> ErrorCode {
        match self {
            TopicRef::Name(_) => ErrorCode::UnknownTopicOrPartition,
            TopicRef::Id(_) => ErrorCode::UnknownTopicId,
        }
    }

    /// Bytes of its name.
    pub(crate) fn name_bytes(&self) -> usize {
        match self {
            TopicRef::Name(name) => name.len(),
            TopicRef::Id(_) => 0,
        }
    }

    /// Name and id as an answer repeats them: one of them is empty.
    pub(crate) fn into_parts(self) -> (KafkaString, Uuid) {
        match self {
            TopicRef::Name(name) => (name, Uuid::ZERO),
            TopicRef::Id(id) => (KafkaString::default(), id),
        }
    }

    /// The same, sharing no memory with the request.
    pub(crate) fn detached(&self) -> TopicRef {
        match self {
            TopicRef::Name(name) => TopicRef::Name(name.detached()),
            TopicRef::Id(id) => TopicRef::Id(*id),
        }
    }
}

impl From<&str> for TopicRef {
    fn from(name: &str) -> TopicRef {
        TopicRef::Name(name.into())
    }
}

/// The topic of this name. Internal tables are topics to nobody, nor are partitioned ones, and those whose values are not JSON are none
/// yet.
pub(crate) fn named<'a>(state: &'a State, database: &DatabaseName, name: &str) -> Option<&'a Table> {
    state.topic(database, name).filter(|table| is_topic(table))
}

/// The topic of this id.
pub(crate) fn by_id(state: &State, id: Uuid) -> Option<&Table> {
    state.table_by_uuid(&TableUuid(id.0)).filter(|table| is_topic(table))
}

/// All topics.
pub(crate) fn all(state: &State) -> impl Iterator<Item = &Table> {
    state.tables().filter(|table| is_topic(table))
}

fn is_topic(table: &Table) -> bool {
    let is_read = match table.options.format {
        LogFormat::Kafka => true,
        LogFormat::Arrow => table.options.kafka_value == KafkaValueFormat::Json && !table.is_partitioned(),
    };
    is_read && !table.path.database.is_internal()
}

/// Whether its records are rows.
pub(crate) fn has_rows(options: &TableOptions) -> bool {
    options.format == LogFormat::Arrow
}

/// Which time its records bear: rows have that of their append.
pub(crate) fn timestamps(options: &TableOptions) -> TimestampType {
    if has_rows(options) { TimestampType::LogAppendTime } else { options.timestamps }
}

/// The bucket of a partition number; none if the table has no such.
pub(crate) fn bucket(table: &Table, partition: i32) -> Option<BucketId> {
    let index = u32::try_from(partition).ok().filter(|index| *index < table.buckets)?;
    Some(BucketId::unpartitioned(table.id, BucketIndex(index)))
}

/// What Kafka calls its own topics: a client that meets one takes it for what it is there.
const NAMES_OF_KAFKA: [&str; 3] = ["__consumer_offsets", "__transaction_state", "__share_group_state"];

/// The address of a topic that is to be created, if its name is one and no other topic stands in its way.
pub(crate) fn new_topic(
    state: &State,
    database: &DatabaseName,
    name: &KafkaString,
) -> Result<TablePath, Refusal> {
    let invalid = |why: String| Refusal::new(ErrorCode::InvalidTopicException, why);
    let table = TableName::new(name.as_str()).map_err(|error| invalid(error.to_string()))?;
    if TablePath::parse(name.as_str()).is_ok_and(|path| path.database.is_internal()) {
        return Err(invalid(format!("topic {table} would go by the name of an internal table")));
    }
    if NAMES_OF_KAFKA.contains(&name.as_str()) {
        return Err(invalid(format!(
            "topic {table} is one of Kafka's own, which there are none of; choose another name"
        )));
    }
    if named(state, database, name.as_str()).is_some() {
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

/// The table that a name means where the text before its first dot is another database than Kafka's: a topic that has not been made
/// yet, or a table's name mistyped. None if there is such a table, whatever it is.
pub(crate) fn table_to_come(state: &State, database: &DatabaseName, name: &str) -> Option<TablePath> {
    let path = TablePath::parse(name).ok()?;
    let other = path.database != *database && !path.database.is_internal();
    let is_to_come = other && state.database(&path.database).is_some() && state.table_at(&path).is_none();
    is_to_come.then_some(path)
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
