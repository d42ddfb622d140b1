//! What a topic's configuration is: what was set for it, what was set for all topics of a broker, and defaults.
//!
//! Lives on: anywhere (pure).
//! Invariants: the value described is the first of its synonyms; what rules something here is never taken from a broker's configuration,
//! by which nothing goes.
use super::describe_broker::{self, Set};
use super::describe_configs::{BOOLEAN, DEFAULT, DOUBLE, INT, LIST, LONG, STRING, bound};
use crate::topic;
use mink_kafka_wire::KafkaString;
use mink_kafka_wire::messages::describe_configs::{DescribeConfigsResourceResult, DescribeConfigsSynonym};
use mink_types::{Kept, KeptKind, Limits, TableOptions};

/// Where a value comes from, by Kafka's number.
const SET_FOR_TOPIC: i8 = 1;

/// What a topic's configuration is made of.
pub(super) struct Topic<'a> {
    pub(super) options: &'a TableOptions,
    pub(super) limits: &'a Limits,
    pub(super) brokers: Set<'a>,
}

/// Topic configurations that hold for all topics of a broker if they are set there, and by which name.
const OF_BROKER: [(&str, &str); 25] = [
    ("compression.gzip.level", "compression.gzip.level"),
    ("compression.lz4.level", "compression.lz4.level"),
    ("compression.type", "compression.type"),
    ("compression.zstd.level", "compression.zstd.level"),
    ("delete.retention.ms", "log.cleaner.delete.retention.ms"),
    ("file.delete.delay.ms", "log.segment.delete.delay.ms"),
    ("flush.messages", "log.flush.interval.messages"),
    ("flush.ms", "log.flush.interval.ms"),
    ("index.interval.bytes", "log.index.interval.bytes"),
    ("local.retention.bytes", "log.local.retention.bytes"),
    ("local.retention.ms", "log.local.retention.ms"),
    ("max.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"),
    ("message.timestamp.after.max.ms", "log.message.timestamp.after.max.ms"),
    ("message.timestamp.before.max.ms", "log.message.timestamp.before.max.ms"),
    ("min.cleanable.dirty.ratio", "log.cleaner.min.cleanable.ratio"),
    ("min.compaction.lag.ms", "log.cleaner.min.compaction.lag.ms"),
    ("min.insync.replicas", "min.insync.replicas"),
    ("preallocate", "log.preallocate"),
    ("remote.copy.lag.bytes", "log.remote.copy.lag.bytes"),
    ("remote.copy.lag.ms", "log.remote.copy.lag.ms"),
    ("segment.bytes", "log.segment.bytes"),
    ("segment.index.bytes", "log.index.size.max.bytes"),
    ("segment.jitter.ms", "log.roll.jitter.ms"),
    ("segment.ms", "log.roll.ms"),
    ("unclean.leader.election.enable", "unclean.leader.election.enable"),
];

/// A configuration that rules something here.
struct Ruling {
    name: &'static str,
    value: String,
    default: String,
    kind: i8,
    /// The broker's configuration by which Kafka names the default, if it does.
    of_broker: Option<&'static str>,
}

/// The configuration of a topic, by name.
pub(super) fn topic_configs(topic: &Topic<'_>) -> Vec<DescribeConfigsResourceResult> {
    debug_assert!(
        topic.options.batch_bytes_max
            <= topic.limits.batch_bytes_max.max(TableOptions::default().batch_bytes_max),
        "options are checked against the limits when they are set"
    );
    let ruling = ruling(topic.options).into_iter().map(described);
    let kept = Kept::ALL.iter().map(|kept| kept_described(kept, topic));
    let mut configs: Vec<DescribeConfigsResourceResult> = ruling.chain(kept).collect();
    configs.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    configs
}

fn ruling(options: &TableOptions) -> [Ruling; 5] {
    let default = TableOptions::default();
    [
        Ruling {
            name: "cleanup.policy",
            value: options.cleanup.as_str().into(),
            default: default.cleanup.as_str().into(),
            kind: LIST,
            of_broker: Some("log.cleanup.policy"),
        },
        Ruling {
            name: "max.message.bytes",
            value: options.batch_bytes_max.to_string(),
            default: default.batch_bytes_max.to_string(),
            kind: INT,
            of_broker: Some("message.max.bytes"),
        },
        Ruling {
            name: "message.timestamp.type",
            value: topic::timestamps(options).as_str().into(),
            default: default.timestamps.as_str().into(),
            kind: STRING,
            of_broker: Some("log.message.timestamp.type"),
        },
        Ruling {
            name: "retention.bytes",
            value: bound(options.retention_bytes),
            default: bound(default.retention_bytes),
            kind: LONG,
            of_broker: Some("log.retention.bytes"),
        },
        Ruling {
            name: "retention.ms",
            value: bound(options.log_ttl_ms),
            default: bound(default.log_ttl_ms),
            kind: LONG,
            of_broker: None,
        },
    ]
}

fn described(config: Ruling) -> DescribeConfigsResourceResult {
    let Ruling { name, value, default, kind, of_broker } = config;
    let is_set = value != default;
    let own = is_set.then(|| synonym(name, &value, SET_FOR_TOPIC));
    let of_broker = of_broker.map(|of_broker| synonym(of_broker, &default, DEFAULT));
    let source = if is_set { SET_FOR_TOPIC } else { DEFAULT };
    result(name, value.into(), source, kind, own.into_iter().chain(of_broker).collect())
}

fn kept_described(kept: &Kept, topic: &Topic<'_>) -> DescribeConfigsResourceResult {
    let own = topic.options.kept.get(kept.name).map(|value| synonym(kept.name, value, SET_FOR_TOPIC));
    let of_broker = OF_BROKER.iter().find(|(name, _)| *name == kept.name);
    let of_broker = of_broker.map(|(_, name)| describe_broker::synonyms(&topic.brokers, name));
    let synonyms: Vec<_> = own.into_iter().chain(of_broker.into_iter().flatten()).collect();
    let (value, source) = match synonyms.first() {
        Some(DescribeConfigsSynonym { value: Some(value), source, .. }) => (value.clone(), *source),
        _ => (kept.default.into(), DEFAULT),
    };
    let kind = match kept.kind {
        KeptKind::Boolean | KeptKind::False => BOOLEAN,
        KeptKind::Int(..) => INT,
        KeptKind::Long(..) => LONG,
        KeptKind::Ratio => DOUBLE,
        KeptKind::OneOf(_) => STRING,
        KeptKind::Replicas => LIST,
    };
    result(kept.name, value, source, kind, synonyms)
}

fn synonym(name: &'static str, value: &str, source: i8) -> DescribeConfigsSynonym {
    DescribeConfigsSynonym { name: name.into(), value: Some(value.into()), source }
}

fn result(
    name: &'static str,
    value: KafkaString,
    config_source: i8,
    config_type: i8,
    synonyms: Vec<DescribeConfigsSynonym>,
) -> DescribeConfigsResourceResult {
    DescribeConfigsResourceResult {
        name: name.into(),
        value: Some(value),
        read_only: false,
        config_source,
        is_sensitive: false,
        synonyms,
        config_type,
        documentation: None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::broker_configs::known;
    use super::*;

    #[test]
    fn each_default_is_that_of_the_brokers_configuration() {
        for (name, of_broker) in OF_BROKER {
            let kept = Kept::named(name).expect(name);
            let known = known(of_broker).expect(of_broker);
            assert!(known.default.is_none_or(|default| default == kept.default), "{name}");
        }
    }
}
