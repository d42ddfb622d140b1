//! CreateTopics: a topic becomes a table of the Kafka database.
//!
//! Lives on: the service runtime.
//! Invariants: I19 (a refused topic changes nothing and says what would be accepted).
use super::describe_topic::{self, Topic};
use super::{Call, TOPICS_PER_REQUEST_MAX, describe_broker};
use crate::limits_met::Limit;
use crate::node::broker_id;
use crate::topic::Refusal;
use crate::{error_code, topic};
use mink_kafka_wire::messages::create_topics::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig, CreatableTopicConfigs,
    CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse,
};
use mink_kafka_wire::{ErrorCode, KafkaString, Uuid};
use mink_types::{Limits, TableId, TableOptions, TablePath};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How long an answer waits for leaders at most, whatever the client's time.
const OPEN_WAIT_MAX: Duration = Duration::from_secs(5);

/// Shortest time given to the metadata: a client that asks for 0 ms still wants its topic.
const TIME_MIN: Duration = Duration::from_secs(1);

/// What clients are told: the store replicates, each partition has one leader.
const REPLICATION_FACTOR: i16 = 1;

/// Largest replication factor that a client may ask for.
const REPLICATION_FACTOR_MAX: i32 = 16;

/// The value by which a client asks for the default.
const DEFAULT: i32 = -1;

pub(super) async fn create_topics(call: &Call<'_>, request: CreateTopicsRequest) -> CreateTopicsResponse {
    let time = Duration::from_millis(u64::try_from(request.timeout_ms).unwrap_or(0)).max(TIME_MIN);
    let deadline = Instant::now() + time;
    let mut named: BTreeMap<KafkaString, usize> = BTreeMap::new();
    for topic in &request.topics {
        *named.entry(topic.name.clone()).or_default() += 1;
    }
    let mut topics = Vec::with_capacity(request.topics.len());
    let mut created = Vec::new();
    for (at, topic) in request.topics.into_iter().enumerate() {
        // Who is named twice is answered once.
        let Some(times) = named.remove(&topic.name) else { continue };
        let made = if times > 1 {
            Err(Refusal::new(ErrorCode::InvalidRequest, "the request names this topic twice"))
        } else if at >= TOPICS_PER_REQUEST_MAX {
            Err(Refusal::new(
                ErrorCode::PolicyViolation,
                format!("one request creates at most {TOPICS_PER_REQUEST_MAX} topics; send several"),
            ))
        } else {
            create(call, &topic, request.validate_only, deadline).await
        };
        topics.push(match made {
            Ok((table, options)) => {
                created.extend(table);
                success(call, topic.name, table, &options)
            }
            Err(refusal) => failure(topic.name, refusal),
        });
    }
    let open_until = deadline.min(Instant::now() + OPEN_WAIT_MAX);
    for table in created {
        let left = open_until.saturating_duration_since(Instant::now());
        if !call.node.admin.wait_open(table, left).await {
            tracing::debug!(%table, "a created topic has no leaders yet");
        }
    }
    CreateTopicsResponse { topics, ..CreateTopicsResponse::default() }
}

async fn create(
    call: &Call<'_>,
    topic: &CreatableTopic,
    validate_only: bool,
    deadline: Instant,
) -> Result<(Option<TableId>, TableOptions), Refusal> {
    let node = call.node;
    let met = |refusal: &Refusal| match refusal.code {
        ErrorCode::InvalidTopicException => node.counters.limits().note(Limit::Names),
        ErrorCode::InvalidPartitions => node.counters.limits().note(Limit::Buckets),
        _ => {}
    };
    let path = topic::new_topic(&node.admin.state(), &node.config.kafka_database, &topic.name);
    let path = path.inspect_err(met)?;
    let mut options = options(&topic.configs, &node.config.limits)?;
    let partitions = partitions(topic, node.config.default_partitions, &node.config.limits);
    options.buckets = partitions.inspect_err(met)?;
    let mut assignments = topic.assignments.iter().map(|assignment| assignment.broker_ids.as_slice());
    if assignments.any(|brokers| !names_a_broker(call, brokers)) {
        return Err(Refusal::new(
            ErrorCode::InvalidReplicaAssignment,
            "an assigned partition names no broker of this cluster",
        ));
    }
    if validate_only {
        return Ok((None, options));
    }
    let table = make(call, path, options.clone(), deadline).await?;
    Ok((Some(table), options))
}

async fn make(
    call: &Call<'_>,
    path: TablePath,
    options: TableOptions,
    deadline: Instant,
) -> Result<TableId, Refusal> {
    match timeout_at(deadline, call.node.admin.create_table(path, options, None)).await {
        Ok(Ok(table)) => Ok(table),
        Ok(Err(error)) => {
            call.node.counters.limits().note_admin(&error);
            Err(Refusal::new(error_code::of_admin(&error), error.to_string()))
        }
        Err(_elapsed) => Err(Refusal::new(
            ErrorCode::RequestTimedOut,
            "the topic was not created within the request's time; it may still be",
        )),
    }
}

fn options(configs: &[CreatableTopicConfig], limits: &Limits) -> Result<TableOptions, Refusal> {
    let invalid = |why: String| Refusal::new(ErrorCode::InvalidConfig, why);
    let mut options = TableOptions::default();
    for config in configs {
        let Some(value) = &config.value else {
            return Err(invalid(format!(
                "config {:?} has no value; leave it out for the default",
                config.name
            )));
        };
        if config.name == "bucket.num" {
            return Err(invalid("bucket.num is the number of partitions; set that instead".into()));
        }
        options
            .set(config.name.as_str(), value.as_str(), limits)
            .map_err(|error| invalid(error.to_string()))?;
    }
    options.check().map_err(|error| invalid(error.to_string()))?;
    Ok(options)
}

fn partitions(topic: &CreatableTopic, default: u32, limits: &Limits) -> Result<u32, Refusal> {
    if !topic.assignments.is_empty() {
        return assigned(topic);
    }
    // What replication factor is asked for does not matter, the store replicates; but one that no cluster has is not meant.
    let factor = i32::from(topic.replication_factor);
    if factor != DEFAULT && !(1..=REPLICATION_FACTOR_MAX).contains(&factor) {
        return Err(Refusal::new(
            ErrorCode::InvalidReplicationFactor,
            format!(
                "replication factor {factor} is not accepted; use 1 to {REPLICATION_FACTOR_MAX}, or -1 for the default"
            ),
        ));
    }
    if topic.num_partitions == DEFAULT {
        return Ok(default);
    }
    let max = limits.buckets_per_table_max;
    u32::try_from(topic.num_partitions).ok().filter(|count| (1..=max).contains(count)).ok_or_else(|| {
        Refusal::new(
            ErrorCode::InvalidPartitions,
            format!(
                "{} partitions are not accepted; use 1 to {max}, or -1 for the default",
                topic.num_partitions
            ),
        )
    })
}

/// The number of partitions of a manual assignment; which brokers it names does not matter.
fn assigned(topic: &CreatableTopic) -> Result<u32, Refusal> {
    if topic.num_partitions != DEFAULT || i32::from(topic.replication_factor) != DEFAULT {
        return Err(Refusal::new(
            ErrorCode::InvalidRequest,
            "with assignments, partitions and replication factor must be -1",
        ));
    }
    let invalid = |why: &str| Refusal::new(ErrorCode::InvalidReplicaAssignment, why);
    let mut indexes: Vec<i32> = topic
        .assignments
        .iter()
        .map(|assignment: &CreatableReplicaAssignment| assignment.partition_index)
        .collect();
    indexes.sort_unstable();
    if !indexes.iter().zip(0..).all(|(index, at)| *index == at) {
        return Err(invalid("assigned partitions must be 0, 1, 2 and so on"));
    }
    if topic.assignments.iter().any(|assignment| assignment.broker_ids.is_empty()) {
        return Err(invalid("an assigned partition names no broker"));
    }
    let brokers = |assignment: &CreatableReplicaAssignment| assignment.broker_ids.len();
    if topic.assignments.iter().any(|assignment| has_twice(&assignment.broker_ids)) {
        return Err(invalid("an assigned partition names a broker twice"));
    }
    if topic
        .assignments
        .iter()
        .any(|assignment| Some(brokers(assignment)) != topic.assignments.first().map(brokers))
    {
        return Err(invalid("assigned partitions name the same number of brokers each"));
    }
    u32::try_from(indexes.len()).map_err(|_| invalid("too many partitions are assigned"))
}

/// Whether one of the brokers is of this cluster. Which one does not matter, nor whether the others are: the store replicates.
pub(super) fn names_a_broker(call: &Call<'_>, brokers: &[i32]) -> bool {
    call.node.admin.brokers().iter().any(|broker| brokers.contains(&broker_id(broker.node)))
}

/// Whether a partition would lie twice with one broker.
pub(super) fn has_twice(brokers: &[i32]) -> bool {
    let mut seen = BTreeSet::new();
    !brokers.iter().all(|broker| seen.insert(broker))
}

fn success(
    call: &Call<'_>,
    name: KafkaString,
    table: Option<TableId>,
    options: &TableOptions,
) -> CreatableTopicResult {
    let state = call.node.admin.state();
    let made = table.and_then(|table| state.table(table));
    let uuid = made.map_or(Uuid::ZERO, |table| Uuid(table.uuid.0));
    let configs = describe_topic::topic_configs(&Topic {
        // What an older log does not keep is not shown.
        options: made.map_or(options, |table| &table.options),
        limits: &call.node.config.limits,
        brokers: describe_broker::set(&state, call.node),
    });
    CreatableTopicResult {
        name,
        topic_id: uuid,
        error_code: ErrorCode::None.code(),
        error_message: None,
        num_partitions: i32::try_from(options.buckets).unwrap_or(i32::MAX),
        replication_factor: REPLICATION_FACTOR,
        configs: Some(
            configs
                .into_iter()
                .map(|config| CreatableTopicConfigs {
                    name: config.name,
                    value: config.value,
                    read_only: config.read_only,
                    config_source: config.config_source,
                    is_sensitive: false,
                })
                .collect(),
        ),
        ..CreatableTopicResult::default()
    }
}

fn failure(name: KafkaString, refusal: Refusal) -> CreatableTopicResult {
    CreatableTopicResult {
        name,
        error_code: refusal.code.code(),
        error_message: Some(refusal.why.into()),
        ..CreatableTopicResult::default()
    }
}
