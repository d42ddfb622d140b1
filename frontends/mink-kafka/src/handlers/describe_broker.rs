//! What a broker's configuration is: what the node was started with, what was set while it ran, and Kafka's defaults.
//!
//! Lives on: anywhere (pure).
//! Invariants: a value that was set is described whatever this version knows of its name; one of an unknown name might be a secret, and is
//! not told, as in Kafka.
use super::broker_config_names::{KNOWN, Known};
use super::broker_configs::known;
use super::describe_configs::{BOOLEAN, DEFAULT, INT, LIST, LONG, SET_AT_START, STRING, bound};
use crate::node::Node;
use mink_kafka_wire::KafkaString;
use mink_kafka_wire::messages::describe_configs::{DescribeConfigsResourceResult, DescribeConfigsSynonym};
use mink_metadata::{ConfigScope, State};
use mink_types::TableOptions;
use std::collections::{BTreeMap, BTreeSet};

/// Where a value comes from, by Kafka's numbers.
const SET_FOR_NODE: i8 = 2;
const SET_FOR_ALL: i8 = 3;

/// The kind of a value that nobody knows, by Kafka's numbers.
const UNKNOWN: i8 = 0;

/// What was set for a node and for all nodes, by name.
pub(super) struct Set<'a> {
    node: &'a BTreeMap<String, String>,
    all: &'a BTreeMap<String, String>,
}

impl Set<'_> {
    /// The values of a name and where they come from, the one that holds first.
    fn values(&self, name: &str) -> Vec<(&str, i8)> {
        let of_node = self.node.get(name).map(|value| (value.as_str(), SET_FOR_NODE));
        let of_all = self.all.get(name).map(|value| (value.as_str(), SET_FOR_ALL));
        of_node.into_iter().chain(of_all).collect()
    }

    fn names(&self) -> BTreeSet<&str> {
        self.node.keys().chain(self.all.keys()).map(String::as_str).collect()
    }
}

/// What was set for this node and for all.
pub(super) fn set<'a>(state: &'a State, node: &Node) -> Set<'a> {
    let scope = ConfigScope::Node(node.admin.identity().node);
    Set { node: state.broker_configs(scope), all: state.broker_configs(ConfigScope::Cluster) }
}

/// The values of a configuration that is kept without an effect, and where they come from, the one that holds first.
pub(super) fn synonyms(set: &Set<'_>, name: &str) -> Vec<DescribeConfigsSynonym> {
    known(name).map_or_else(Vec::new, |known| described(known, set.values(known.name)).synonyms)
}

/// The configuration of this node, by name.
pub(super) fn of_node(node: &Node) -> Vec<DescribeConfigsResourceResult> {
    let state = node.admin.state();
    let set = set(&state, node);
    let mut configs = at_start(node);
    configs.extend(KNOWN.iter().map(|known| described(known, set.values(known.name))));
    let described: BTreeSet<_> = configs.iter().map(|config| config.name.clone()).collect();
    let others = set.names().into_iter().filter(|name| !described.contains(*name));
    configs.extend(others.map(|name| unknown(name, &set.values(name))));
    configs.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    configs
}

/// What was set for all nodes, by name; no defaults are among them.
pub(super) fn of_all(node: &Node) -> Vec<DescribeConfigsResourceResult> {
    let state = node.admin.state();
    let set = state.broker_configs(ConfigScope::Cluster).iter();
    let configs = set.map(|(name, value)| {
        let values = vec![(value.as_str(), SET_FOR_ALL)];
        match known(name) {
            Some(known) => result(name, known.kind, values),
            None => unknown(name, &values),
        }
    });
    configs.collect()
}

/// Configurations without a default, and the one whose value holds then.
const FALLBACKS: [(&str, &str, &str); 3] = [
    ("log.flush.interval.ms", "log.flush.scheduler.interval.ms", "9223372036854775807"),
    ("log.roll.jitter.ms", "log.roll.jitter.hours", "0"),
    ("log.roll.ms", "log.roll.hours", "168"),
];

fn described(known: &Known, mut values: Vec<(&str, i8)>) -> DescribeConfigsResourceResult {
    values.extend(known.default.map(|default| (default, DEFAULT)));
    let is_set = !values.is_empty();
    let mut described = result(known.name, known.kind, values);
    // As Kafka does, which tells of it only where it does not hold.
    let fallback = FALLBACKS.iter().find(|(name, ..)| *name == known.name && is_set);
    described.synonyms.extend(fallback.map(|(_, name, value)| DescribeConfigsSynonym {
        name: (*name).into(),
        value: Some((*value).into()),
        source: DEFAULT,
    }));
    described
}

/// A configuration with its values, the one that holds first; without any it has none, by default.
fn result(name: &str, kind: i8, values: Vec<(&str, i8)>) -> DescribeConfigsResourceResult {
    let (value, source) = values.first().map_or((None, DEFAULT), |(value, source)| (Some(*value), *source));
    let synonym = |(value, source): (&str, i8)| DescribeConfigsSynonym {
        name: name.into(),
        value: Some(value.into()),
        source,
    };
    DescribeConfigsResourceResult {
        name: name.into(),
        value: value.map(KafkaString::from),
        read_only: false,
        config_source: source,
        is_sensitive: false,
        synonyms: values.into_iter().map(synonym).collect(),
        config_type: kind,
        documentation: None,
    }
}

fn unknown(name: &str, values: &[(&str, i8)]) -> DescribeConfigsResourceResult {
    let synonym =
        |(_, source): &(&str, i8)| DescribeConfigsSynonym { name: name.into(), value: None, source: *source };
    DescribeConfigsResourceResult {
        name: name.into(),
        value: None,
        read_only: true,
        config_source: values.first().map_or(DEFAULT, |(_, source)| *source),
        is_sensitive: true,
        synonyms: values.iter().map(synonym).collect(),
        config_type: UNKNOWN,
        documentation: None,
    }
}

/// What does not change while a node runs, under Kafka's names.
fn at_start(node: &Node) -> Vec<DescribeConfigsResourceResult> {
    let config = &node.config;
    let limits = &config.limits;
    let topic = TableOptions::default();
    let id = node.broker_id().to_string();
    let address = node
        .broker()
        .map(|broker| format!("PLAINTEXT://{}:{}", broker.host, broker.port))
        .unwrap_or_default();
    let set = [
        ("advertised.listeners", address.clone(), STRING),
        ("auto.create.topics.enable", config.auto_create.to_string(), BOOLEAN),
        ("broker.id", id.clone(), INT),
        ("connections.max.idle.ms", limits.idle_deadline_ms.to_string(), LONG),
        ("fetch.max.bytes", limits.fetch_bytes_max.to_string(), INT),
        ("listeners", address, LIST),
        ("log.retention.bytes", bound(topic.retention_bytes), LONG),
        ("log.retention.ms", bound(topic.log_ttl_ms), LONG),
        ("max.connections", limits.connections_max.to_string(), INT),
        ("max.connections.per.ip", limits.connections_per_address_max.to_string(), INT),
        ("message.max.bytes", topic.batch_bytes_max.to_string(), INT),
        ("node.id", id, INT),
        ("num.partitions", config.default_partitions.to_string(), INT),
        ("producer.id.expiration.ms", limits.producer_expiry_ms.to_string(), INT),
        ("socket.request.max.bytes", limits.frame_bytes_max.to_string(), INT),
    ];
    let set = set.into_iter().map(|(name, value, kind)| fixed(name, &value, kind, SET_AT_START));
    let fixed_ones = FIXED.iter().map(|(name, value, kind)| fixed(name, value, *kind, DEFAULT));
    set.chain(fixed_ones).collect()
}

/// Configurations that have one value in Mink.
const FIXED: [(&str, &str, i8); 5] = [
    ("default.replication.factor", "1", INT),
    ("delete.topic.enable", "true", BOOLEAN),
    ("log.cleanup.policy", "delete", LIST),
    ("log.message.timestamp.type", "CreateTime", STRING),
    ("offsets.topic.replication.factor", "1", INT),
];

fn fixed(name: &str, value: &str, kind: i8, source: i8) -> DescribeConfigsResourceResult {
    DescribeConfigsResourceResult { read_only: true, ..result(name, kind, vec![(value, source)]) }
}
