//! Topics that change: configurations, and more partitions.
//!
//! Lives on: tests only.
use super::fake::{Running, start};
use super::raw_client::{Client, batch};
use mink_api::Admin as _;
use mink_kafka_wire::ErrorCode;
use mink_kafka_wire::messages::alter_configs::{self, AlterConfigsRequest};
use mink_kafka_wire::messages::create_partitions::{
    CreatePartitionsAssignment, CreatePartitionsRequest, CreatePartitionsTopic,
};
use mink_kafka_wire::messages::describe_configs::{DescribeConfigsRequest, DescribeConfigsResource};
use mink_kafka_wire::messages::incremental_alter_configs::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};
use mink_metadata::ConfigScope;
use mink_types::NodeId;
use std::sync::atomic::Ordering;

/// Changes of one topic: name, operation by Kafka's number, value.
pub(super) fn alter(topic: &str, changes: &[(&str, i8, Option<&str>)]) -> IncrementalAlterConfigsRequest {
    let configs = changes.iter().map(|(name, config_operation, value)| AlterableConfig {
        name: (*name).into(),
        config_operation: *config_operation,
        value: value.map(Into::into),
    });
    IncrementalAlterConfigsRequest {
        resources: vec![AlterConfigsResource {
            resource_type: 2,
            resource_name: topic.into(),
            configs: configs.collect(),
        }],
        validate_only: false,
    }
}

pub(super) fn grow(topic: &str, count: i32) -> CreatePartitionsRequest {
    CreatePartitionsRequest {
        topics: vec![CreatePartitionsTopic { name: topic.into(), count, assignments: None }],
        timeout_ms: 1_000,
        validate_only: false,
    }
}

pub(super) async fn value(client: &mut Client, topic: &str, name: &str) -> (String, i8) {
    let asked = DescribeConfigsRequest {
        resources: vec![DescribeConfigsResource {
            resource_type: 2,
            resource_name: topic.into(),
            configuration_keys: Some(vec![name.into()]),
        }],
        ..DescribeConfigsRequest::default()
    };
    let config = client.call(4, &asked).await.results.remove(0).configs.remove(0);
    (config.value.expect("set").as_str().to_owned(), config.config_source)
}

async fn with_topic() -> (Running, Client) {
    let running = start().await;
    running.fake.topic("t", 2);
    let client = Client::connect(running.address).await;
    (running, client)
}

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

#[tokio::test]
async fn a_configuration_is_set_described_used_and_deleted() {
    let (running, mut client) = with_topic().await;
    for version in 0..=1 {
        let changes = [("retention.ms", SET, Some("1234")), ("max.message.bytes", SET, Some("80"))];
        let answer = client.call(version, &alter("t", &changes)).await;
        assert_eq!(answer.responses[0].error_code, 0);
        assert_eq!(value(&mut client, "t", "retention.ms").await, ("1234".into(), 1));
        let large = client.produce("t", 0, batch(&["a value of more than that"])).await;
        assert_eq!(large.error_code, ErrorCode::MessageTooLarge.code());
        let back = [("retention.ms", DELETE, None), ("max.message.bytes", DELETE, Some("7"))];
        assert_eq!(client.call(version, &alter("t", &back)).await.responses[0].error_code, 0);
        assert_eq!(value(&mut client, "t", "retention.ms").await, ("604800000".into(), 5));
        assert_eq!(client.produce("t", 0, batch(&["a value of more than that"])).await.error_code, 0);
    }
    let before = running.fake.alterations.load(Ordering::SeqCst);
    let check = IncrementalAlterConfigsRequest {
        validate_only: true,
        ..alter("t", &[("retention.ms", SET, Some("9"))])
    };
    assert_eq!(client.call(1, &check).await.responses[0].error_code, 0);
    // What changes nothing writes nothing to the log.
    let same = [
        ("retention.ms", SET, Some("604800000")),
        ("segment.bytes", DELETE, None),
        ("message.downconversion.enable", SET, Some("true")),
        ("no.such", DELETE, None),
    ];
    assert_eq!(client.call(1, &alter("t", &same)).await.responses[0].error_code, 0);
    assert_eq!(running.fake.alterations.load(Ordering::SeqCst), before);
}

#[tokio::test]
async fn i19_a_change_that_cannot_be_made_changes_nothing_of_its_topic() {
    let (running, mut client) = with_topic().await;
    let config = ErrorCode::InvalidConfig;
    let request = ErrorCode::InvalidRequest;
    let cases = [
        ("t", ("no.such", SET, Some("1")), config),
        ("t", ("retention.bytes", SET, Some("x")), config),
        ("t", ("retention.bytes", SET, None), request),
        ("t", ("retention.bytes", APPEND, Some("1")), config),
        ("t", ("retention.bytes", 9, Some("1")), request),
        ("t", ("retention.bytes", -1, Some("1")), request),
        ("t", ("retention.ms", SET, Some("2")), request),
        ("t", ("bucket.num", SET, Some("9")), config),
        ("t", ("cleanup.policy", SET, Some("compacted")), config),
        ("t", ("cleanup.policy", APPEND, Some("")), config),
        ("t", ("cleanup.policy", APPEND, Some("compact,rar")), config),
        ("t", ("message.timestamp.type", SET, Some("logappendtime")), config),
        ("t", ("message.timestamp.type", APPEND, Some("LogAppendTime")), config),
        ("missing", ("retention.bytes", SET, Some("1")), ErrorCode::UnknownTopicOrPartition),
        ("", ("retention.bytes", SET, Some("1")), request),
    ];
    for (topic, change, code) in cases {
        let answer = client.call(1, &alter(topic, &[("retention.ms", SET, Some("1")), change])).await;
        assert_eq!(answer.responses[0].error_code, code.code(), "{change:?}");
        assert!(!answer.responses[0].error_message.clone().expect("words").is_empty());
    }
    let append = [("cleanup.policy", APPEND, Some("delete"))];
    assert_eq!(client.call(1, &alter("t", &append)).await.responses[0].error_code, 0);
    let subtract = [("cleanup.policy", SUBTRACT, Some("compact"))];
    assert_eq!(client.call(1, &alter("t", &subtract)).await.responses[0].error_code, 0);
    assert_eq!(running.fake.alterations.load(Ordering::SeqCst), 0);
    for name in ["a/b", "..", &"x".repeat(250)] {
        let bad = client.call(1, &alter(name, &[("retention.ms", SET, Some("1"))])).await;
        assert_eq!(bad.responses[0].error_code, ErrorCode::InvalidTopicException.code(), "{name}");
    }
    for (kind, name) in [(4, "7"), (4, ""), (9, "x"), (32, "g")] {
        let mut other = alter("t", &[("num.partitions", SET, Some("1"))]);
        other.resources[0].resource_type = kind;
        other.resources[0].resource_name = name.into();
        assert_eq!(client.call(1, &other).await.responses[0].error_code, request.code(), "{kind} {name:?}");
    }
    let mut twice = alter("t", &[("retention.ms", SET, Some("1"))]);
    twice.resources.push(twice.resources[0].clone());
    let answer = client.call(1, &twice).await;
    assert!(answer.responses.iter().all(|response| response.error_code == request.code()));
    assert_eq!(answer.responses.len(), 2);
}

#[tokio::test]
async fn alter_configs_puts_what_it_does_not_name_back_to_its_default() {
    let (_running, mut client) = with_topic().await;
    client.call(1, &alter("t", &[("retention.bytes", SET, Some("77"))])).await;
    let whole = |configs: &[(&str, Option<&str>)]| AlterConfigsRequest {
        resources: vec![alter_configs::AlterConfigsResource {
            resource_type: 2,
            resource_name: "t".into(),
            configs: configs
                .iter()
                .map(|(name, value)| alter_configs::AlterableConfig {
                    name: (*name).into(),
                    value: value.map(Into::into),
                })
                .collect(),
        }],
        validate_only: false,
    };
    for version in 0..=2 {
        let answer = client.call(version, &whole(&[("retention.ms", Some("5"))])).await;
        assert_eq!(answer.responses[0].error_code, 0);
        assert_eq!(value(&mut client, "t", "retention.ms").await.0, "5");
        assert_eq!(value(&mut client, "t", "retention.bytes").await.0, "-1");
        assert_eq!(client.call(version, &whole(&[])).await.responses[0].error_code, 0);
        assert_eq!(value(&mut client, "t", "retention.ms").await, ("604800000".into(), 5));
        let bad = client.call(version, &whole(&[("no.such", Some("1"))])).await;
        assert_eq!(bad.responses[0].error_code, ErrorCode::InvalidConfig.code());
        let none = client.call(version, &whole(&[("retention.ms", None)])).await;
        assert_eq!(none.responses[0].error_code, ErrorCode::InvalidRequest.code());
    }
}

#[tokio::test]
async fn a_topic_gets_more_partitions_and_keeps_its_records() {
    let (_running, mut client) = with_topic().await;
    client.produce("t", 1, batch(&["old"])).await;
    for (version, count) in (0..=3).zip(3..) {
        let unknown = client.produce("t", count - 1, batch(&["x"])).await;
        assert_eq!(unknown.error_code, ErrorCode::UnknownTopicOrPartition.code());
        let check = CreatePartitionsRequest { validate_only: true, ..grow("t", count) };
        assert_eq!(client.call(version, &check).await.results[0].error_code, 0);
        let grown = client.call(version, &grow("t", count)).await;
        assert_eq!((grown.results[0].error_code, grown.results[0].name.as_str()), (0, "t"));
        assert_eq!(client.produce("t", count - 1, batch(&["x"])).await.error_code, 0);
    }
    assert_eq!(client.produce("t", 1, batch(&["new"])).await.base_offset, 1);
}

#[tokio::test]
async fn partitions_never_become_fewer_and_assignments_are_checked() {
    let (running, mut client) = with_topic().await;
    let many = i32::try_from(mink_types::Limits::default().buckets_per_table_max).expect("small") + 1;
    for count in [2, 1, 0, -1, i32::MIN, many] {
        let refused = client.call(3, &grow("t", count)).await;
        assert_eq!(refused.results[0].error_code, ErrorCode::InvalidPartitions.code(), "{count}");
        assert!(refused.results[0].error_message.is_some());
    }
    let unknown = client.call(3, &grow("missing", 3)).await;
    assert_eq!(unknown.results[0].error_code, ErrorCode::UnknownTopicOrPartition.code());
    let assigned = |brokers: &[&[i32]]| {
        let mut request = grow("t", 4);
        let assignments = brokers.iter().map(|ids| CreatePartitionsAssignment { broker_ids: ids.to_vec() });
        request.topics[0].assignments = Some(assignments.collect());
        request
    };
    for brokers in [&[&[7][..]][..], &[&[7], &[]], &[], &[&[7], &[8]]] {
        let refused = client.call(3, &assigned(brokers)).await;
        assert_eq!(refused.results[0].error_code, ErrorCode::InvalidReplicaAssignment.code());
    }
    let mut twice = grow("t", 3);
    twice.topics.push(twice.topics[0].clone());
    let refused = client.call(3, &twice).await;
    let codes: Vec<i16> = refused.results.iter().map(|result| result.error_code).collect();
    assert_eq!(codes, [ErrorCode::InvalidRequest.code()], "as Kafka: named once in the answer");
    assert_eq!(running.fake.alterations.load(Ordering::SeqCst), 0);
    assert_eq!(client.call(3, &assigned(&[&[7], &[1, 7, 3]])).await.results[0].error_code, 0);
}

#[tokio::test]
async fn i19_changes_of_many_clients_at_once_are_all_made() {
    let (running, _first) = with_topic().await;
    let clients = (0..16_usize).map(|client| {
        let address = running.address;
        tokio::spawn(async move {
            let mut connection = Client::connect(address).await;
            for round in 0..10 {
                let value = (client * 100 + round + 1).to_string();
                let mut change = alter("t", &[("retention.ms", SET, Some(value.as_str()))]);
                assert_eq!(connection.call(1, &change).await.responses[0].error_code, 0, "{value}");
                let own = format!("own.{client}");
                change = alter("7", &[(own.as_str(), SET, Some(value.as_str()))]);
                change.resources[0].resource_type = 4;
                assert_eq!(connection.call(1, &change).await.responses[0].error_code, 0, "{own} {value}");
            }
        })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.expect("every change was made");
    }
    let configs = running.fake.state().broker_configs(ConfigScope::Node(NodeId(7))).clone();
    let own = configs.iter().filter(|(name, _)| name.starts_with("own."));
    assert_eq!(own.map(|(_, value)| value.as_str()).filter(|value| value.ends_with("10")).count(), 16);
}
