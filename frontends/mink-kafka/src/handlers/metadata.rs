//! Metadata: brokers, topics, leaders; and topics made on first use, but for those whose names are tables' of a database that is not
//! Kafka's: such a table is created with its columns, and a mistyped name becomes no topic beside it.
//!
//! Lives on: the service runtime.
//! Invariants: K-19 (a name that may become a topic is never refused for good), K-17 (the leader epoch is the bucket's epoch); a
//! table is described once per answer, however often a request names it (I20).
use super::Call;
use crate::node::broker_id;
use crate::{error_code, topic};
use mink_api::{AdminError, Broker};
use mink_kafka_wire::messages::metadata::{
    MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponseBroker,
    MetadataResponsePartition, MetadataResponseTopic,
};
use mink_kafka_wire::{ErrorCode, KafkaString, Uuid};
use mink_metadata::{State, Table};
use mink_types::{TableId, TableOptions, TablePath};
use std::collections::BTreeSet;
use std::time::Duration;

/// Topics that one request may create; clients ask again for the rest.
const CREATED_MAX: usize = 100;

/// How long a request waits for the leaders of the topics it created.
const OPEN_WAIT: Duration = Duration::from_secs(1);

/// From this version on a request without names, and not without the list, asks for no topic.
const NULL_IS_ALL_FROM: i16 = 1;

/// What a client without authorisation in its way may do: bits by Kafka's numbers of operations.
pub(super) const CLUSTER_OPERATIONS: i32 = operations(&[5, 7, 8, 9, 10, 11, 12]);
pub(super) const TOPIC_OPERATIONS: i32 = operations(&[3, 4, 5, 6, 7, 8, 10, 11]);

pub(super) const fn operations(numbers: &[u32]) -> i32 {
    match numbers {
        [] => 0,
        [first, rest @ ..] => (1 << *first) | operations(rest),
    }
}

/// One topic of the answer.
enum Line {
    Table(TableId),
    Error { name: Option<KafkaString>, id: Uuid, code: ErrorCode },
}

pub(super) async fn metadata(call: &Call<'_>, request: MetadataRequest) -> MetadataResponse {
    let node = call.node;
    let all = match &request.topics {
        None => true,
        Some(topics) => topics.is_empty() && call.version < NULL_IS_ALL_FROM,
    };
    let lines = if all {
        let state = node.admin.state();
        topic::all(&state).map(|table| Line::Table(table.id)).collect()
    } else {
        let create = node.config.auto_create && request.allow_auto_topic_creation;
        named(call, request.topics.unwrap_or_default(), create).await
    };
    // Taken after the topics were made.
    let state = node.admin.state();
    let brokers = node.admin.brokers();
    let topic_operations =
        if request.include_topic_authorized_operations { TOPIC_OPERATIONS } else { i32::MIN };
    let mut described = BTreeSet::new();
    let mut topics = Vec::with_capacity(lines.len());
    for line in lines {
        match line {
            Line::Error { name, id, code } => topics.push(error(call.version, name, id, code)),
            // Dropped in between: clients ask again.
            Line::Table(id) => {
                if let Some(table) = state.table(id).filter(|_| described.insert(id)) {
                    topics.push(describe(call, &state, table, &brokers, topic_operations));
                }
            }
        }
    }
    MetadataResponse {
        brokers: brokers.iter().map(broker).collect(),
        cluster_id: Some(state.cluster().to_string().into()),
        // Any node administers; the first is one that all nodes name alike.
        controller_id: brokers.first().map_or(-1, |first| broker_id(first.node)),
        topics,
        cluster_authorized_operations: if request.include_cluster_authorized_operations {
            CLUSTER_OPERATIONS
        } else {
            i32::MIN
        },
        ..MetadataResponse::default()
    }
}

/// The topics that a request names, made if need be.
async fn named(call: &Call<'_>, asked: Vec<MetadataRequestTopic>, create: bool) -> Vec<Line> {
    let mut lines = Vec::with_capacity(asked.len());
    let mut created = Vec::new();
    for topic in asked {
        let id = topic.topic_id;
        lines.push(match topic.name {
            _ if !id.is_zero() => by_id(&call.node.admin.state(), id),
            Some(name) => by_name(call, name, create, &mut created).await,
            None => Line::Error { name: None, id, code: ErrorCode::UnknownTopicId },
        });
    }
    let deadline = tokio::time::Instant::now() + OPEN_WAIT;
    for table in created {
        let left = deadline.saturating_duration_since(tokio::time::Instant::now());
        if !call.node.admin.wait_open(table, left).await {
            tracing::debug!(%table, "a topic made on first use has no leaders yet");
        }
    }
    lines
}

fn by_id(state: &State, id: Uuid) -> Line {
    match topic::by_id(state, id) {
        Some(table) => Line::Table(table.id),
        None => Line::Error { name: None, id, code: ErrorCode::UnknownTopicId },
    }
}

async fn by_name(call: &Call<'_>, name: KafkaString, create: bool, created: &mut Vec<TableId>) -> Line {
    let database = &call.node.config.kafka_database;
    let state = call.node.admin.state();
    if let Some(table) = topic::named(&state, database, name.as_str()) {
        return Line::Table(table.id);
    }
    if let Some(table) = topic::table_to_come(&state, database, name.as_str()) {
        if create {
            tell_of_table(call, &table);
        }
        // Clients ask again, and have it once the table is there (K-19).
        let code = ErrorCode::UnknownTopicOrPartition;
        return Line::Error { name: Some(name), id: Uuid::ZERO, code };
    }
    let code = match topic::new_topic(&state, database, &name) {
        Err(refusal) => refusal.code,
        Ok(_) if !create => ErrorCode::UnknownTopicOrPartition,
        Ok(_) if created.len() >= CREATED_MAX => ErrorCode::LeaderNotAvailable,
        Ok(path) => {
            let options =
                TableOptions { buckets: call.node.config.default_partitions, ..TableOptions::default() };
            match call.node.admin.create_table(path, options, None).await {
                Ok(table) => {
                    created.push(table);
                    return Line::Table(table);
                }
                Err(error) => {
                    // Another client may have been faster.
                    let state = call.node.admin.state();
                    if let (AdminError::Exists { .. }, Some(table)) =
                        (&error, topic::named(&state, database, name.as_str()))
                    {
                        return Line::Table(table.id);
                    }
                    if let Some(held_back) = call.node.counters.may_tell_of_topic(name.as_str()) {
                        tracing::info!(topic = ?name, %error, held_back, "a topic could not be made on first use");
                    }
                    call.node.counters.limits().note_admin(&error);
                    error_code::of_auto_create(&error)
                }
            }
        }
    };
    Line::Error { name: Some(name), id: Uuid::ZERO, code }
}

/// Says what to do about a topic that is not made on first use: a client tells no more than that it does not exist.
fn tell_of_table(call: &Call<'_>, table: &TablePath) {
    let topic = table.to_string();
    if let Some(held_back) = call.node.counters.may_tell_of_topic(&topic) {
        tracing::info!(
            topic, database = %table.database, held_back,
            "a client asked for a topic that is not made on first use; create it as a table, or mend its name"
        );
    }
}

fn error(version: i16, name: Option<KafkaString>, topic_id: Uuid, code: ErrorCode) -> MetadataResponseTopic {
    MetadataResponseTopic {
        error_code: code.code(),
        // Versions below 12 have no null name.
        name: if version < 12 { Some(name.unwrap_or_default()) } else { name },
        topic_id,
        ..MetadataResponseTopic::default()
    }
}

fn describe(
    call: &Call<'_>,
    state: &State,
    table: &Table,
    brokers: &[Broker],
    topic_authorized_operations: i32,
) -> MetadataResponseTopic {
    MetadataResponseTopic {
        error_code: ErrorCode::None.code(),
        name: Some(table.topic_name(&call.node.config.kafka_database).into()),
        topic_id: Uuid(table.uuid.0),
        is_internal: false,
        partitions: table
            .bucket_ids()
            .map(|bucket| {
                let partition_index = i32::try_from(bucket.bucket.0).unwrap_or(i32::MAX);
                let (leader, leader_epoch) = topic::leader(state, &bucket, brokers);
                let code = match leader {
                    Some(_) => ErrorCode::None,
                    None => ErrorCode::LeaderNotAvailable,
                };
                // The store replicates; to clients the leader is the only replica.
                let replicas: Vec<i32> = leader.into_iter().collect();
                MetadataResponsePartition {
                    error_code: code.code(),
                    partition_index,
                    leader_id: leader.unwrap_or(-1),
                    leader_epoch,
                    isr_nodes: replicas.clone(),
                    replica_nodes: replicas,
                    offline_replicas: Vec::new(),
                }
            })
            .collect(),
        topic_authorized_operations,
    }
}

fn broker(broker: &Broker) -> MetadataResponseBroker {
    MetadataResponseBroker {
        node_id: broker_id(broker.node),
        host: broker.host.as_str().into(),
        port: i32::from(broker.port),
        rack: None,
    }
}
