//! Configurations of brokers that are set while they run.
//!
//! Lives on: tests only.
use super::fake::start;
use super::raw_client::Client;
use mink_kafka_wire::messages::alter_configs::{self, AlterConfigsRequest};
use mink_kafka_wire::messages::describe_configs::{
    DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResourceResult, DescribeConfigsResult,
};
use mink_kafka_wire::messages::incremental_alter_configs::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};
use mink_kafka_wire::{ErrorCode, KafkaString};
use mink_metadata::{BROKER_CONFIG_VALUE_BYTES_MAX, BROKER_CONFIGS_MAX};
use std::sync::atomic::Ordering;

const BROKER: i8 = 4;
/// The node of these tests, and the name that means all of them.
const NODE: &str = "7";
const ALL: &str = "";

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;

const FLUSH: &str = "log.flush.interval.messages";

/// Changes of a broker: name, operation by Kafka's number, value.
fn change(broker: &str, changes: &[(&str, i8, Option<&str>)]) -> IncrementalAlterConfigsRequest {
    let configs = changes.iter().map(|(name, config_operation, value)| AlterableConfig {
        name: (*name).into(),
        config_operation: *config_operation,
        value: value.map(Into::into),
    });
    IncrementalAlterConfigsRequest {
        resources: vec![AlterConfigsResource {
            resource_type: BROKER,
            resource_name: broker.into(),
            configs: configs.collect(),
        }],
        validate_only: false,
    }
}

async fn changed(client: &mut Client, broker: &str, changes: &[(&str, i8, Option<&str>)]) -> i16 {
    client.call(1, &change(broker, changes)).await.responses.remove(0).error_code
}

async fn described(client: &mut Client, broker: &str, include_synonyms: bool) -> DescribeConfigsResult {
    let asked = DescribeConfigsRequest {
        resources: vec![DescribeConfigsResource {
            resource_type: BROKER,
            resource_name: broker.into(),
            configuration_keys: None,
        }],
        include_synonyms,
        ..DescribeConfigsRequest::default()
    };
    client.call(4, &asked).await.results.remove(0)
}

/// Value, source and the sources of all values of a configuration.
fn sources(config: &DescribeConfigsResourceResult) -> (Option<&str>, i8, Vec<i8>) {
    let synonyms = config.synonyms.iter().map(|synonym| synonym.source).collect();
    (config.value.as_ref().map(KafkaString::as_str), config.config_source, synonyms)
}

async fn flush(client: &mut Client, broker: &str) -> Option<DescribeConfigsResourceResult> {
    let configs = described(client, broker, true).await.configs;
    configs.into_iter().find(|config| config.name == FLUSH)
}

#[tokio::test]
async fn a_value_of_the_node_hides_that_of_all_nodes_which_hides_the_default() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    let default = Some("9223372036854775807");
    let before = flush(&mut client, NODE).await.expect("described");
    assert_eq!((sources(&before), before.read_only), ((default, 5, vec![5]), false));
    assert_eq!(flush(&mut client, ALL).await, None, "of all nodes only what was set is described");
    for (broker, value) in [(ALL, "9"), (NODE, "8")] {
        assert_eq!(changed(&mut client, broker, &[(FLUSH, SET, Some(value))]).await, 0);
    }
    let of_node = flush(&mut client, NODE).await.expect("described");
    assert_eq!(sources(&of_node), (Some("8"), 2, vec![2, 3, 5]));
    let of_all = flush(&mut client, ALL).await.expect("described");
    assert_eq!(sources(&of_all), (Some("9"), 3, vec![3]));
    let plain = described(&mut client, NODE, false).await.configs;
    assert!(plain.iter().all(|config| config.synonyms.is_empty()), "they were not asked for");
    // Deleted twice: the second time there is nothing to do.
    let alterations = running.fake.alterations.load(Ordering::SeqCst);
    for _ in 0..2 {
        assert_eq!(changed(&mut client, NODE, &[(FLUSH, DELETE, None)]).await, 0);
        let of_node = flush(&mut client, NODE).await.expect("described");
        assert_eq!(sources(&of_node), (Some("9"), 3, vec![3, 5]));
    }
    assert_eq!(running.fake.alterations.load(Ordering::SeqCst), alterations + 1);
}

#[tokio::test]
async fn alter_configs_of_a_broker_takes_back_what_it_does_not_name() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    let whole = |configs: &[(&str, &str)], validate_only| AlterConfigsRequest {
        resources: vec![alter_configs::AlterConfigsResource {
            resource_type: BROKER,
            resource_name: NODE.into(),
            configs: configs
                .iter()
                .map(|(name, value)| alter_configs::AlterableConfig {
                    name: (*name).into(),
                    value: Some((*value).into()),
                })
                .collect(),
        }],
        validate_only,
    };
    for (configs, validate_only, set) in [
        (&[(FLUSH, "1234")][..], false, &[(FLUSH, "1234")][..]),
        (&[("log.roll.ms", "5")], true, &[(FLUSH, "1234")]),
        (&[("log.roll.ms", "5")], false, &[("log.roll.ms", "5")]),
        (&[], false, &[]),
    ] {
        for version in 0..=2 {
            let answer = client.call(version, &whole(configs, validate_only)).await;
            assert_eq!(answer.responses[0].error_code, 0);
            let all = described(&mut client, NODE, false).await.configs;
            let dynamic: Vec<_> = all.iter().filter(|config| config.config_source == 2).collect();
            let dynamic: Vec<_> =
                dynamic.iter().map(|c| (c.name.as_str(), c.value.as_ref().expect("set").as_str())).collect();
            assert_eq!(dynamic, set);
        }
    }
}

#[tokio::test]
async fn i19_a_refused_change_of_a_broker_changes_nothing() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    let (invalid, config) = (ErrorCode::InvalidRequest.code(), ErrorCode::InvalidConfig.code());
    let good = (FLUSH, SET, Some("5"));
    for (bad, code) in [
        ((FLUSH, SET, Some("6")), invalid),
        (("log.roll.ms", SET, Some("0")), invalid),
        (("log.roll.ms", SET, None), invalid),
        (("log.roll.ms", APPEND, Some("1")), config),
        (("log.roll.ms", 9, Some("1")), invalid),
        (("log.retention.ms", SET, Some("1000")), invalid),
        (("max.connections", SET, Some("1000")), invalid),
        (("num.partitions", SET, Some("5")), invalid),
        (("listener.name.x.ssl.keystore.location", SET, Some("/")), invalid),
    ] {
        for broker in [NODE, ALL] {
            assert_eq!(changed(&mut client, broker, &[good, bad]).await, code, "{bad:?}");
        }
    }
    for broker in ["8", "-1", "x", "7 "] {
        assert_eq!(changed(&mut client, broker, &[good]).await, invalid, "{broker:?}");
        assert_eq!(described(&mut client, broker, false).await.error_code, invalid, "{broker:?}");
    }
    assert_eq!(running.fake.alterations.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_name_that_nobody_knows_is_kept_and_its_value_is_not_told() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    for broker in [NODE, ALL] {
        assert_eq!(changed(&mut client, broker, &[("plugin.password", SET, Some("secret"))]).await, 0);
    }
    for (broker, sources) in [(NODE, &[2, 3][..]), (ALL, &[3])] {
        let configs = described(&mut client, broker, true).await.configs;
        let found = configs.iter().find(|config| config.name == "plugin.password").expect("described");
        assert!(found.is_sensitive && found.read_only && found.value.is_none() && found.config_type == 0);
        let synonyms = found.synonyms.iter().map(|synonym| (synonym.source, synonym.value.is_none()));
        assert!(synonyms.eq(sources.iter().map(|source| (*source, true))));
    }
}

#[tokio::test]
async fn i20_what_is_kept_for_a_broker_is_bounded() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    let names: Vec<String> = (0..=BROKER_CONFIGS_MAX).map(|at| format!("plugin.{at}")).collect();
    let all: Vec<_> = names.iter().map(|name| (name.as_str(), SET, Some("1"))).collect();
    let long = "x".repeat(BROKER_CONFIG_VALUE_BYTES_MAX + 1);
    let over = ErrorCode::PolicyViolation.code();
    assert_eq!(changed(&mut client, NODE, &all).await, over);
    assert_eq!(changed(&mut client, NODE, &[("plugin.0", SET, Some(&long))]).await, over);
    assert_eq!(changed(&mut client, NODE, &all[1..]).await, 0);
}
