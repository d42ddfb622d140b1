//! DescribeTopicPartitions: topics in the order of their names, a page at a time.
//!
//! Lives on: anywhere (pure).
//! Invariants: I20: a page has at most [`PARTITIONS_MAX`] partitions, whatever the client asks for.
use super::Call;
use super::metadata::TOPIC_OPERATIONS;
use crate::topic;
use mink_api::Broker;
use mink_kafka_wire::messages::describe_topic_partitions::{
    Cursor, DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic,
};
use mink_kafka_wire::{ErrorCode, KafkaString, Uuid};
use mink_metadata::{State, Table};
use mink_types::TableName;
use std::collections::{BTreeMap, BTreeSet};

/// Partitions of one page, as in Kafka.
const PARTITIONS_MAX: usize = 2_000;

pub(super) fn describe_topic_partitions(
    call: &Call<'_>,
    request: DescribeTopicPartitionsRequest,
) -> DescribeTopicPartitionsResponse {
    let named: BTreeSet<KafkaString> = request.topics.into_iter().map(|topic| topic.name).collect();
    let first = match &request.cursor {
        None => 0,
        Some(cursor) => {
            let listed = named.is_empty() || named.contains(&cursor.topic_name);
            match u32::try_from(cursor.partition_index).ok().filter(|_| listed) {
                Some(first) => first,
                None => return refuse_all(named),
            }
        }
    };
    let from = request.cursor.map(|cursor| cursor.topic_name).unwrap_or_default();
    let limit = usize::try_from(request.response_partition_limit).unwrap_or(0).clamp(1, PARTITIONS_MAX);
    let state = call.node.admin.state();
    let brokers = call.node.admin.brokers();
    let mut page = Page {
        state: &state,
        brokers: &brokers,
        left: limit,
        response: DescribeTopicPartitionsResponse::default(),
    };
    for (name, table) in topics(call, &state, named, &from) {
        if page.left == 0 {
            page.response.next_cursor = Some(Cursor { topic_name: name, partition_index: 0 });
            break;
        }
        let first = if name == from { first } else { 0 };
        page.add(name, table, first);
        if page.response.next_cursor.is_some() {
            break;
        }
    }
    page.response
}

/// The topics from `from` on, by name; a name without a table is answered as one that does not exist.
fn topics<'a>(
    call: &Call<'_>,
    state: &'a State,
    named: BTreeSet<KafkaString>,
    from: &KafkaString,
) -> BTreeMap<KafkaString, Option<&'a Table>> {
    let database = &call.node.config.kafka_database;
    if named.is_empty() {
        let all = topic::all(state).map(|table| (KafkaString::from(table.topic_name(database)), Some(table)));
        return all.filter(|(name, _)| name >= from).collect();
    }
    let asked = named.into_iter().filter(|name| name >= from);
    asked
        .map(|name| {
            let table = topic::named(state, database, name.as_str());
            (name, table)
        })
        .collect()
}

fn refuse_all(named: BTreeSet<KafkaString>) -> DescribeTopicPartitionsResponse {
    let topics = named.into_iter().map(|name| DescribeTopicPartitionsResponseTopic {
        error_code: ErrorCode::InvalidRequest.code(),
        name: Some(name),
        ..DescribeTopicPartitionsResponseTopic::default()
    });
    DescribeTopicPartitionsResponse { topics: topics.collect(), ..DescribeTopicPartitionsResponse::default() }
}

struct Page<'a> {
    state: &'a State,
    brokers: &'a [Broker],
    /// Partitions that still find room.
    left: usize,
    response: DescribeTopicPartitionsResponse,
}

impl Page<'_> {
    fn add(&mut self, name: KafkaString, table: Option<&Table>, first: u32) {
        let Some(table) = table else {
            let code = match TableName::new(name.as_str()) {
                Ok(_) => ErrorCode::UnknownTopicOrPartition,
                Err(_) => ErrorCode::InvalidTopicException,
            };
            self.response.topics.push(DescribeTopicPartitionsResponseTopic {
                error_code: code.code(),
                name: Some(name),
                topic_authorized_operations: TOPIC_OPERATIONS,
                ..DescribeTopicPartitionsResponseTopic::default()
            });
            return;
        };
        let from = usize::try_from(first).unwrap_or(usize::MAX);
        let partitions: Vec<_> = table
            .bucket_ids()
            .skip(from)
            .take(self.left)
            .map(|bucket| {
                let (leader, leader_epoch) = topic::leader(self.state, &bucket, self.brokers);
                let code = leader.map_or(ErrorCode::LeaderNotAvailable, |_| ErrorCode::None);
                let replicas: Vec<i32> = leader.into_iter().collect();
                DescribeTopicPartitionsResponsePartition {
                    error_code: code.code(),
                    partition_index: i32::try_from(bucket.bucket.0).unwrap_or(i32::MAX),
                    leader_id: leader.unwrap_or(-1),
                    leader_epoch,
                    isr_nodes: replicas.clone(),
                    replica_nodes: replicas,
                    eligible_leader_replicas: Some(Vec::new()),
                    last_known_elr: Some(Vec::new()),
                    offline_replicas: Vec::new(),
                }
            })
            .collect();
        self.left -= partitions.len();
        let next = from.saturating_add(partitions.len());
        if u32::try_from(next).is_ok_and(|next| next < table.buckets) {
            let partition_index = i32::try_from(next).unwrap_or(i32::MAX);
            self.response.next_cursor = Some(Cursor { topic_name: name.clone(), partition_index });
        }
        self.response.topics.push(DescribeTopicPartitionsResponseTopic {
            error_code: ErrorCode::None.code(),
            name: Some(name),
            topic_id: Uuid(table.uuid.0),
            is_internal: false,
            partitions,
            topic_authorized_operations: TOPIC_OPERATIONS,
        });
    }
}
