//! DescribeConfigs: the values that hold, under the names that Kafka's clients look for.
//!
//! Lives on: anywhere (pure).
//! Invariants: a resource is described once per answer, however often a request names it (I20); nothing secret is among them.
use super::Call;
use crate::node::Node;
use crate::topic::{self, Refusal};
use mink_kafka_wire::messages::describe_configs::{
    DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResourceResult, DescribeConfigsResponse,
    DescribeConfigsResult, DescribeConfigsSynonym,
};
use mink_kafka_wire::{ErrorCode, KafkaString};
use mink_types::{Limits, TableName, TableOptions};
use std::collections::BTreeSet;

const TOPIC: i8 = 2;
const BROKER: i8 = 4;

/// Where a value comes from, by Kafka's numbers.
const SET_FOR_TOPIC: i8 = 1;
const SET_AT_START: i8 = 4;
const DEFAULT: i8 = 5;

/// Kinds of values, by Kafka's numbers.
const BOOLEAN: i8 = 1;
const STRING: i8 = 2;
const INT: i8 = 3;
const LONG: i8 = 5;
const DOUBLE: i8 = 6;
const LIST: i8 = 7;

/// A value that holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Config {
    pub(super) name: &'static str,
    pub(super) value: String,
    pub(super) source: i8,
    pub(super) read_only: bool,
    kind: i8,
}

/// What a topic's configuration is made of.
pub(super) struct Topic<'a> {
    pub(super) options: &'a TableOptions,
    pub(super) limits: &'a Limits,
}

/// Kafka's topic configurations that have one value in Mink, with the value by which Kafka says so.
const FIXED: [(&str, &str, i8); 25] = [
    ("cleanup.policy", "delete", LIST),
    ("compression.type", "producer", STRING),
    ("delete.retention.ms", "86400000", LONG),
    ("file.delete.delay.ms", "60000", LONG),
    // Each acked record is durable.
    ("flush.messages", "1", LONG),
    ("flush.ms", "0", LONG),
    ("follower.replication.throttled.replicas", "", LIST),
    ("index.interval.bytes", "4096", INT),
    ("leader.replication.throttled.replicas", "", LIST),
    ("local.retention.bytes", "-2", LONG),
    ("local.retention.ms", "-2", LONG),
    ("max.compaction.lag.ms", "9223372036854775807", LONG),
    ("message.timestamp.after.max.ms", "9223372036854775807", LONG),
    ("message.timestamp.before.max.ms", "9223372036854775807", LONG),
    ("message.timestamp.type", "CreateTime", STRING),
    ("min.cleanable.dirty.ratio", "0.5", DOUBLE),
    ("min.compaction.lag.ms", "0", LONG),
    ("min.insync.replicas", "1", INT),
    ("preallocate", "false", BOOLEAN),
    ("remote.storage.enable", "false", BOOLEAN),
    ("segment.bytes", "1073741824", INT),
    ("segment.index.bytes", "10485760", INT),
    ("segment.jitter.ms", "0", LONG),
    ("segment.ms", "604800000", LONG),
    ("unclean.leader.election.enable", "false", BOOLEAN),
];

/// The configuration of a topic, by name.
pub(super) fn topic_configs(topic: &Topic<'_>) -> Vec<Config> {
    let default = TableOptions::default();
    let options = topic.options;
    let set = |name, value: String, default: String, kind| Config {
        name,
        source: if value == default { DEFAULT } else { SET_FOR_TOPIC },
        value,
        read_only: false,
        kind,
    };
    let mut configs: Vec<Config> = FIXED.iter().map(|fixed| fixed_config(fixed, DEFAULT)).collect();
    configs.extend([
        set(
            "max.message.bytes",
            options.batch_bytes_max.to_string(),
            default.batch_bytes_max.to_string(),
            INT,
        ),
        set("retention.bytes", bound(options.retention_bytes), bound(default.retention_bytes), LONG),
        set("retention.ms", bound(options.log_ttl_ms), bound(default.log_ttl_ms), LONG),
    ]);
    debug_assert!(
        options.batch_bytes_max <= topic.limits.batch_bytes_max.max(default.batch_bytes_max),
        "options are checked against the limits when they are set"
    );
    configs.sort_unstable_by_key(|config| config.name);
    configs
}

fn fixed_config((name, value, kind): &(&'static str, &str, i8), source: i8) -> Config {
    Config { name, value: (*value).to_owned(), source, read_only: true, kind: *kind }
}

/// A bound as Kafka writes it: -1 for none.
fn bound(bound: Option<u64>) -> String {
    bound.map_or_else(|| "-1".to_owned(), |bound| bound.to_string())
}

/// The configuration of this node, by name, as Kafka's brokers name it.
fn broker_configs(node: &Node) -> Vec<Config> {
    let config = &node.config;
    let limits = &config.limits;
    let topic = TableOptions::default();
    let id = node.broker_id().to_string();
    let address = node
        .broker()
        .map(|broker| format!("PLAINTEXT://{}:{}", broker.host, broker.port))
        .unwrap_or_default();
    let at_start =
        |name, value: String, kind| Config { name, value, source: SET_AT_START, read_only: true, kind };
    let mut configs = vec![
        at_start("advertised.listeners", address.clone(), STRING),
        at_start("auto.create.topics.enable", config.auto_create.to_string(), BOOLEAN),
        at_start("broker.id", id.clone(), INT),
        at_start("connections.max.idle.ms", limits.idle_deadline_ms.to_string(), LONG),
        at_start("fetch.max.bytes", limits.fetch_bytes_max.to_string(), INT),
        at_start("listeners", address, STRING),
        at_start("log.retention.bytes", bound(topic.retention_bytes), LONG),
        at_start("log.retention.ms", bound(topic.log_ttl_ms), LONG),
        at_start("max.connections", limits.connections_max.to_string(), INT),
        at_start("max.connections.per.ip", limits.connections_per_address_max.to_string(), INT),
        at_start("message.max.bytes", topic.batch_bytes_max.to_string(), INT),
        at_start("node.id", id, INT),
        at_start("num.partitions", config.default_partitions.to_string(), INT),
        at_start("producer.id.expiration.ms", limits.producer_expiry_ms.to_string(), INT),
        at_start("socket.request.max.bytes", limits.frame_bytes_max.to_string(), INT),
    ];
    configs.extend(BROKER_FIXED.iter().map(|fixed| fixed_config(fixed, DEFAULT)));
    configs.sort_unstable_by_key(|config| config.name);
    configs
}

/// Broker configurations that have one value in Mink.
const BROKER_FIXED: [(&str, &str, i8); 9] = [
    ("compression.type", "producer", STRING),
    ("default.replication.factor", "1", INT),
    ("delete.topic.enable", "true", BOOLEAN),
    ("log.cleanup.policy", "delete", LIST),
    ("log.message.timestamp.type", "CreateTime", STRING),
    ("log.segment.bytes", "1073741824", INT),
    ("min.insync.replicas", "1", INT),
    ("offsets.topic.replication.factor", "1", INT),
    ("unclean.leader.election.enable", "false", BOOLEAN),
];

pub(super) fn describe_configs(call: &Call<'_>, request: DescribeConfigsRequest) -> DescribeConfigsResponse {
    let mut described = BTreeSet::new();
    let mut results = Vec::new();
    for resource in request.resources {
        if !described.insert((resource.resource_type, resource.resource_name.clone())) {
            continue;
        }
        results.push(match configs(call.node, &resource) {
            Ok(configs) => describe(resource, configs, request.include_synonyms),
            Err(refusal) => DescribeConfigsResult {
                error_code: refusal.code.code(),
                error_message: Some(refusal.why.into()),
                resource_type: resource.resource_type,
                resource_name: resource.resource_name,
                configs: Vec::new(),
            },
        });
    }
    DescribeConfigsResponse { results, ..DescribeConfigsResponse::default() }
}

fn configs(node: &Node, resource: &DescribeConfigsResource) -> Result<Vec<Config>, Refusal> {
    let name = resource.resource_name.as_str();
    match resource.resource_type {
        TOPIC => {
            let state = node.admin.state();
            let Some(table) = topic::named(&state, &node.config.kafka_database, name) else {
                return Err(match TableName::new(name) {
                    Ok(_) => Refusal::new(ErrorCode::UnknownTopicOrPartition, "there is no such topic"),
                    Err(error) => Refusal::new(ErrorCode::InvalidTopicException, error.to_string()),
                });
            };
            Ok(topic_configs(&Topic { options: &table.options, limits: &node.config.limits }))
        }
        // An empty name means the defaults of all brokers, of which none is set dynamically.
        BROKER if name.is_empty() => Ok(Vec::new()),
        BROKER if name == node.broker_id().to_string() => Ok(broker_configs(node)),
        BROKER => Err(Refusal::new(
            ErrorCode::InvalidRequest,
            format!("this is node {}; ask the node {name:?} itself for its configuration", node.broker_id()),
        )),
        other => Err(Refusal::new(
            ErrorCode::InvalidRequest,
            format!("resource type {other} has no configuration here; use 2 (topic) or 4 (broker)"),
        )),
    }
}

fn describe(
    resource: DescribeConfigsResource,
    configs: Vec<Config>,
    include_synonyms: bool,
) -> DescribeConfigsResult {
    // An empty list means all, too.
    let keys = resource.configuration_keys.filter(|keys| !keys.is_empty());
    let wanted: Option<BTreeSet<KafkaString>> = keys.map(|keys| keys.into_iter().collect());
    let configs = configs
        .into_iter()
        .filter(|config| wanted.as_ref().is_none_or(|wanted| wanted.contains(config.name)))
        .map(|config| result(config, include_synonyms));
    DescribeConfigsResult {
        error_code: ErrorCode::None.code(),
        error_message: None,
        resource_type: resource.resource_type,
        resource_name: resource.resource_name,
        configs: configs.collect(),
    }
}

fn result(config: Config, include_synonyms: bool) -> DescribeConfigsResourceResult {
    let name = KafkaString::from_static(config.name);
    let value = KafkaString::from(config.value);
    let synonym =
        DescribeConfigsSynonym { name: name.clone(), value: Some(value.clone()), source: config.source };
    DescribeConfigsResourceResult {
        name,
        value: Some(value),
        read_only: config.read_only,
        config_source: config.source,
        is_sensitive: false,
        synonyms: if include_synonyms { vec![synonym] } else { Vec::new() },
        config_type: config.kind,
        documentation: None,
    }
}
