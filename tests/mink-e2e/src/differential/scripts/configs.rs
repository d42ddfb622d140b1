//! DescribeConfigs, AlterConfigs and IncrementalAlterConfigs.
//! Lives on: the test's tokio runtime.
//! Owns: nothing.

use mink_kafka_wire::KafkaString;
use mink_kafka_wire::messages::describe_configs::{DescribeConfigsRequest, DescribeConfigsResource};
use mink_kafka_wire::messages::{alter_configs, incremental_alter_configs};

use super::Asker;

const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const LOGGER: i8 = 8;
const CLIENT_METRICS: i8 = 16;
const GROUP: i8 = 32;

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

/// Broker configurations that can be set while a broker runs, and a name that there is not.
const FLUSH: &str = "log.flush.interval.messages";
const FLUSH_MS: &str = "log.flush.interval.ms";
const UNKNOWN: &str = "no.such";

/// Topic configurations that nothing goes by here.
const SEGMENT_MS: &str = "segment.ms";
const THROTTLED: &str = "leader.replication.throttled.replicas";
const THROTTLED_TOO: &str = "follower.replication.throttled.replicas";
const KEPT: [&str; 8] = [
    SEGMENT_MS,
    "segment.bytes",
    "compression.type",
    "flush.messages",
    "min.cleanable.dirty.ratio",
    "preallocate",
    THROTTLED,
    THROTTLED_TOO,
];

fn describe(resource_type: i8, name: &KafkaString, keys: Option<&[&str]>) -> DescribeConfigsRequest {
    let resource = DescribeConfigsResource {
        resource_type,
        resource_name: name.clone(),
        configuration_keys: keys.map(|keys| keys.iter().map(|key| KafkaString::from(*key)).collect()),
    };
    DescribeConfigsRequest { resources: vec![resource], ..DescribeConfigsRequest::default() }
}

pub(super) async fn describe_configs(run: &mut Asker) {
    let a = run.topic_with("a", 1, &[("retention.ms", "123456")]).await;
    let node: KafkaString = run.names.node.to_string().into();
    let keys = ["retention.ms", "retention.bytes", "max.message.bytes", "cleanup.policy"];
    run.ask("a topic", describe(TOPIC, &a, None)).await;
    run.ask("some of a topic", describe(TOPIC, &a, Some(&keys))).await;
    run.ask("an empty list of names", describe(TOPIC, &a, Some(&[]))).await;
    run.ask("names that there are not", describe(TOPIC, &a, Some(&["zz"]))).await;
    let synonyms = DescribeConfigsRequest { include_synonyms: true, ..describe(TOPIC, &a, Some(&keys)) };
    run.ask("synonyms", synonyms).await;
    if run.version >= 3 {
        let include_documentation = true;
        let request = DescribeConfigsRequest { include_documentation, ..describe(TOPIC, &a, Some(&keys)) };
        run.ask("documentation", request).await;
    }
    run.ask("unknown topic", describe(TOPIC, &run.name("unknown"), None)).await;
    run.ask("bad name", describe(TOPIC, &"a/b".into(), None)).await;
    run.ask("no name", describe(TOPIC, &KafkaString::default(), None)).await;
    let broker = ["log.retention.ms", "num.partitions", "auto.create.topics.enable", "message.max.bytes"];
    run.ask("some of a broker", describe(BROKER, &node, Some(&broker))).await;
    run.ask("another broker", describe(BROKER, &"7777".into(), Some(&broker))).await;
    run.ask("a broker by name", describe(BROKER, &"x".into(), Some(&broker))).await;
    run.ask("all brokers", describe(BROKER, &KafkaString::default(), Some(&broker))).await;
    for (case, kind) in [("group", GROUP), ("client metrics", CLIENT_METRICS), ("type 9", 9), ("type 0", 0)] {
        run.ask(case, describe(kind, &"x".into(), Some(&["zz"]))).await;
    }
    run.ask("logger", describe(LOGGER, &"7777".into(), Some(&["zz"]))).await;
    let mut twice = describe(TOPIC, &a, Some(&["retention.ms"]));
    twice.resources.push(twice.resources[0].clone());
    run.ask("a topic twice", twice).await;
    run.ask("no resources", DescribeConfigsRequest::default()).await;
    run.damaged(DescribeConfigsRequest::default()).await;
}

/// What the topic's own configurations are now.
async fn settled(run: &mut Asker, topic: &KafkaString, name: &str, value: Option<&str>) {
    const TOPIC_SOURCE: i8 = 1;
    let request = describe(TOPIC, topic, Some(&[name]));
    run.until(&format!("{name} is {value:?}"), 4, &request, |answer| {
        let own = answer.results[0].configs.iter().find(|config| config.config_source == TOPIC_SOURCE);
        own.and_then(|config| config.value.as_ref()).map(KafkaString::as_str) == value
    })
    .await;
}

type Entry<'a> = (&'a str, Option<&'a str>);

fn alter(
    kind: i8,
    name: &KafkaString,
    configs: &[(&str, Option<&str>)],
) -> alter_configs::AlterConfigsRequest {
    let config = |(name, value): &(&str, Option<&str>)| alter_configs::AlterableConfig {
        name: (*name).into(),
        value: value.map(KafkaString::from),
    };
    let resource = alter_configs::AlterConfigsResource {
        resource_type: kind,
        resource_name: name.clone(),
        configs: configs.iter().map(config).collect(),
    };
    alter_configs::AlterConfigsRequest { resources: vec![resource], validate_only: false }
}

pub(super) async fn alter_configs(run: &mut Asker) {
    let a = run.topic_with("a", 1, &[("retention.bytes", "77777")]).await;
    let node: KafkaString = run.names.node.to_string().into();
    run.ask("retention", alter(TOPIC, &a, &[("retention.ms", Some("123456"))])).await;
    settled(run, &a, "retention.ms", Some("123456")).await;
    settled(run, &a, "retention.bytes", None).await;
    let validated = alter_configs::AlterConfigsRequest {
        validate_only: true,
        ..alter(TOPIC, &a, &[("retention.ms", Some("5"))])
    };
    run.ask("only validated", validated).await;
    run.ask("kept", alter(TOPIC, &a, &[(SEGMENT_MS, Some("1234")), ("compression.type", Some("lz4"))])).await;
    kept_described(run, "kept: after that", &a, SEGMENT_MS, Some("1234")).await;
    let cases: [(&str, &[Entry<'_>]); 5] = [
        ("unknown config", &[("no.such", Some("1"))]),
        ("null", &[("retention.ms", None)]),
        ("bad value", &[("retention.ms", Some("x"))]),
        ("one good, one bad", &[("retention.ms", Some("7")), ("no.such", Some("1"))]),
        ("a config twice", &[("retention.ms", Some("7")), ("retention.ms", Some("8"))]),
    ];
    for (case, configs) in cases {
        run.ask(case, alter(TOPIC, &a, configs)).await;
    }
    let one = [("retention.ms", Some("1000"))];
    run.ask("unknown topic", alter(TOPIC, &run.name("unknown"), &one)).await;
    run.ask("bad name", alter(TOPIC, &"a/b".into(), &one)).await;
    run.ask("no name", alter(TOPIC, &KafkaString::default(), &one)).await;
    run.ask("nothing", alter(TOPIC, &a, &[])).await;
    settled(run, &a, "retention.ms", None).await;
    run.ask("a broker", alter(BROKER, &node, &[("num.partitions", Some("5"))])).await;
    run.ask("another broker", alter(BROKER, &"7777".into(), &[("log.retention.ms", Some("5000"))])).await;
    run.ask("a broker by name", alter(BROKER, &"x".into(), &one)).await;
    for (case, configs) in [
        ("a broker's unknown config", &[(UNKNOWN, Some("1"))][..]),
        ("a broker's null", &[(FLUSH, None)]),
        ("a broker's bad value", &[(FLUSH, Some("0"))]),
        ("a broker's config twice", &[(FLUSH, Some("1")), (FLUSH, Some("2"))]),
    ] {
        let request = alter(BROKER, &node, configs);
        run.ask(case, alter_configs::AlterConfigsRequest { validate_only: true, ..request }).await;
    }
    run.ask("a broker, set", alter(BROKER, &node, &[(FLUSH, Some("1234"))])).await;
    broker_described(run, "a broker that was set", &node, FLUSH, Some("1234")).await;
    run.ask("a broker, set otherwise", alter(BROKER, &node, &[(FLUSH_MS, Some("5678"))])).await;
    broker_described(run, "a broker that was set otherwise", &node, FLUSH_MS, Some("5678")).await;
    run.ask("a broker, nothing set", alter(BROKER, &node, &[])).await;
    broker_described(run, "a broker of which nothing is set", &node, FLUSH_MS, None).await;
    run.ask("type 9", alter(9, &"x".into(), &one)).await;
    let mut twice = alter(TOPIC, &a, &one);
    twice.resources.push(twice.resources[0].clone());
    // Kafka stays silent on it: that takes its time, so not at every version.
    if run.version == 2 {
        run.ask("a topic twice", twice).await;
    }
    let none = alter_configs::AlterConfigsRequest::default;
    run.ask("no resources", none()).await;
    run.damaged(none()).await;
}

/// What a topic's configurations that nothing here goes by are now, once `name` has its value.
async fn kept_described(run: &mut Asker, case: &str, topic: &KafkaString, name: &str, value: Option<&str>) {
    settled(run, topic, name, value).await;
    for include_synonyms in [false, true] {
        let request = DescribeConfigsRequest { include_synonyms, ..describe(TOPIC, topic, Some(&KEPT)) };
        let answer = run.quiet(4, &request).await;
        let synonyms = if include_synonyms { ", with synonyms" } else { "" };
        run.note(&format!("{case}{synonyms}"), Some(&answer), false);
    }
}

async fn kept_changed(run: &mut Asker, a: &KafkaString) {
    let set = [
        (SEGMENT_MS, SET, Some(" 1234 ")),
        ("compression.type", SET, Some("gzip")),
        ("min.cleanable.dirty.ratio", SET, Some("1")),
        ("preallocate", SET, Some("TRUE")),
        (THROTTLED, SET, Some("0:1,1:1")),
    ];
    run.ask("kept: set", change(TOPIC, a, &set)).await;
    kept_described(run, "kept: after that", a, SEGMENT_MS, Some("1234")).await;
    let cases: [(&str, &[Operation<'_>]); 9] = [
        ("append", &[(THROTTLED, APPEND, Some("2:2"))]),
        ("append what cannot be", &[(THROTTLED, APPEND, Some("*"))]),
        ("append to a number", &[(SEGMENT_MS, APPEND, Some("2"))]),
        ("too small", &[(SEGMENT_MS, SET, Some("0"))]),
        ("too large", &[("segment.bytes", SET, Some("2147483648"))]),
        ("small segments", &[("segment.bytes", SET, Some("100"))]),
        ("a codec that is none", &[("compression.type", SET, Some("GZIP"))]),
        ("tiers", &[("remote.storage.enable", SET, Some("true"))]),
        ("lags", &[("min.compaction.lag.ms", SET, Some("9")), ("max.compaction.lag.ms", SET, Some("5"))]),
    ];
    for (case, operations) in cases {
        let request = incremental_alter_configs::IncrementalAlterConfigsRequest {
            validate_only: true,
            ..change(TOPIC, a, operations)
        };
        run.ask(&format!("kept: {case}"), request).await;
    }
    let changed = [
        (SEGMENT_MS, DELETE, None),
        ("preallocate", DELETE, None),
        (THROTTLED, SUBTRACT, Some("0:1")),
        (THROTTLED_TOO, APPEND, Some("3:1")),
    ];
    run.ask("kept: changed", change(TOPIC, a, &changed)).await;
    kept_described(run, "kept: after the change", a, THROTTLED_TOO, Some("3:1")).await;
}

type Operation<'a> = (&'a str, i8, Option<&'a str>);

fn change(
    kind: i8,
    name: &KafkaString,
    operations: &[Operation<'_>],
) -> incremental_alter_configs::IncrementalAlterConfigsRequest {
    let config =
        |(name, config_operation, value): &Operation<'_>| incremental_alter_configs::AlterableConfig {
            name: (*name).into(),
            config_operation: *config_operation,
            value: value.map(KafkaString::from),
        };
    let resource = incremental_alter_configs::AlterConfigsResource {
        resource_type: kind,
        resource_name: name.clone(),
        configs: operations.iter().map(config).collect(),
    };
    incremental_alter_configs::IncrementalAlterConfigsRequest {
        resources: vec![resource],
        validate_only: false,
    }
}

/// Waits until `name` is set to `value` for a node or for all, and writes down how it is described.
async fn broker_described(
    run: &mut Asker,
    case: &str,
    broker: &KafkaString,
    name: &str,
    value: Option<&str>,
) {
    const SET_WHILE_IT_RAN: std::ops::RangeInclusive<i8> = 2..=3;
    let request = describe(BROKER, broker, Some(&[FLUSH, FLUSH_MS, UNKNOWN]));
    run.until(case, 4, &request, |answer| {
        let config = answer.results[0].configs.iter().find(|config| config.name == name);
        let set = config.filter(|config| SET_WHILE_IT_RAN.contains(&config.config_source));
        // The value of a name that nobody knows is not told.
        match set {
            Some(set) => value.is_some() && set.value.as_ref().is_none_or(|set| Some(set.as_str()) == value),
            None => value.is_none(),
        }
    })
    .await;
    for include_synonyms in [false, true] {
        let answer = run.quiet(4, &DescribeConfigsRequest { include_synonyms, ..request.clone() }).await;
        let synonyms = if include_synonyms { ", with synonyms" } else { "" };
        run.note(&format!("{case}{synonyms}"), Some(&answer), false);
    }
}

async fn brokers_changed(run: &mut Asker, node: &KafkaString) {
    let all = KafkaString::default();
    let cases: [(&str, &[Operation<'_>]); 12] = [
        ("bad value", &[(FLUSH, SET, Some("0"))]),
        ("no number", &[(FLUSH, SET, Some("x"))]),
        ("null", &[(FLUSH, SET, None)]),
        ("unknown config", &[(UNKNOWN, SET, Some("1"))]),
        ("unknown config deleted", &[(UNKNOWN, DELETE, None)]),
        ("unknown config appended to", &[(UNKNOWN, APPEND, Some("1"))]),
        ("set at start", &[("num.partitions", SET, Some("5"))]),
        ("set at start, deleted", &[("num.partitions", DELETE, None)]),
        ("append to a number", &[(FLUSH, APPEND, Some("1"))]),
        ("operation 9", &[(FLUSH, 9, Some("1"))]),
        ("a config twice", &[(FLUSH, SET, Some("1")), (FLUSH, SET, Some("2"))]),
        ("retention", &[("log.retention.ms", SET, Some("5000"))]),
    ];
    for (whose, broker) in [("a broker's", node), ("all brokers'", &all)] {
        for (case, operations) in cases {
            let request = incremental_alter_configs::IncrementalAlterConfigsRequest {
                validate_only: true,
                ..change(BROKER, broker, operations)
            };
            run.ask(&format!("{whose} {case}"), request).await;
        }
    }
    run.ask("all brokers, set", change(BROKER, &all, &[(FLUSH, SET, Some("9"))])).await;
    broker_described(run, "all brokers that were set", &all, FLUSH, Some("9")).await;
    broker_described(run, "a broker as all", node, FLUSH, Some("9")).await;
    let set = [(FLUSH, SET, Some("8")), (UNKNOWN, SET, Some("secret"))];
    run.ask("a broker, set", change(BROKER, node, &set)).await;
    broker_described(run, "a broker that was set", node, UNKNOWN, Some("secret")).await;
    let deleted = [(FLUSH, DELETE, None), (UNKNOWN, DELETE, None)];
    run.ask("a broker, deleted", change(BROKER, node, &deleted)).await;
    broker_described(run, "a broker as all again", node, UNKNOWN, None).await;
    run.ask("all brokers, deleted", change(BROKER, &all, &deleted)).await;
    broker_described(run, "a broker of which nothing is set", node, FLUSH, None).await;
}

pub(super) async fn incremental_alter_configs(run: &mut Asker) {
    let a = run.topic_with("a", 1, &[("retention.bytes", "77777")]).await;
    let node: KafkaString = run.names.node.to_string().into();
    run.ask("set", change(TOPIC, &a, &[("retention.ms", SET, Some("123456"))])).await;
    settled(run, &a, "retention.ms", Some("123456")).await;
    settled(run, &a, "retention.bytes", Some("77777")).await;
    run.ask("delete", change(TOPIC, &a, &[("retention.bytes", DELETE, None)])).await;
    settled(run, &a, "retention.bytes", None).await;
    let cases: [(&str, &[Operation<'_>]); 13] = [
        ("delete again", &[("retention.bytes", DELETE, None)]),
        ("delete with a value", &[("retention.bytes", DELETE, Some("5"))]),
        ("unknown config", &[("no.such", SET, Some("1"))]),
        ("unknown config deleted", &[("no.such", DELETE, None)]),
        ("bad value", &[("retention.ms", SET, Some("x"))]),
        ("set null", &[("retention.ms", SET, None)]),
        ("append to a number", &[("retention.ms", APPEND, Some("1"))]),
        ("append what is there", &[("cleanup.policy", APPEND, Some("delete"))]),
        ("append compact", &[("cleanup.policy", APPEND, Some("compact"))]),
        ("subtract delete", &[("cleanup.policy", SUBTRACT, Some("delete"))]),
        ("operation 9", &[("retention.ms", 9, Some("1"))]),
        ("a config twice", &[("retention.ms", SET, Some("1")), ("retention.ms", SET, Some("2"))]),
        ("nothing", &[]),
    ];
    for (case, operations) in cases {
        let request = incremental_alter_configs::IncrementalAlterConfigsRequest {
            validate_only: true,
            ..change(TOPIC, &a, operations)
        };
        run.ask(case, request).await;
    }
    let one = [("retention.ms", SET, Some("1000"))];
    kept_changed(run, &a).await;
    run.ask("unknown topic", change(TOPIC, &run.name("unknown"), &one)).await;
    run.ask("bad name", change(TOPIC, &"a/b".into(), &one)).await;
    run.ask("no name", change(TOPIC, &KafkaString::default(), &one)).await;
    run.ask("a broker", change(BROKER, &node, &[("num.partitions", SET, Some("5"))])).await;
    run.ask("another broker", change(BROKER, &"7777".into(), &[("log.retention.ms", SET, Some("5000"))]))
        .await;
    run.ask("a broker by name", change(BROKER, &"x".into(), &one)).await;
    brokers_changed(run, &node).await;
    run.ask("type 9", change(9, &"x".into(), &one)).await;
    let mut twice = change(TOPIC, &a, &one);
    twice.resources.push(twice.resources[0].clone());
    run.ask("a topic twice", twice).await;
    let none = incremental_alter_configs::IncrementalAlterConfigsRequest::default;
    run.ask("no resources", none()).await;
    run.damaged(none()).await;
}
