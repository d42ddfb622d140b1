//! Topic configurations that are kept for those who set them, and that nothing goes by.
//!
//! Lives on: tests only.
use super::alter::{alter, value};
use super::fake::start;
use super::raw_client::Client;
use mink_kafka_wire::messages::create_topics::{
    CreatableTopic, CreatableTopicConfig, CreatableTopicResult, CreateTopicsRequest,
};
use mink_kafka_wire::messages::describe_configs::{
    DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResourceResult,
};
use mink_kafka_wire::{ErrorCode, KafkaString};

const TOPIC: i8 = 2;
const BROKER: i8 = 4;

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

async fn create(client: &mut Client, name: &str, configs: &[(&str, &str)]) -> CreatableTopicResult {
    let configs = configs
        .iter()
        .map(|(name, value)| CreatableTopicConfig { name: (*name).into(), value: Some((*value).into()) });
    let topic = CreatableTopic {
        name: name.into(),
        num_partitions: 1,
        replication_factor: 1,
        configs: configs.collect(),
        ..CreatableTopic::default()
    };
    let request = CreateTopicsRequest { topics: vec![topic], ..CreateTopicsRequest::default() };
    client.call(7, &request).await.topics.remove(0)
}

async fn described(
    client: &mut Client,
    version: i16,
    (resource_type, name): (i8, &str),
    included: bool,
) -> Vec<DescribeConfigsResourceResult> {
    let asked = DescribeConfigsRequest {
        resources: vec![DescribeConfigsResource {
            resource_type,
            resource_name: name.into(),
            configuration_keys: None,
        }],
        include_synonyms: included,
        include_documentation: included && version >= 3,
    };
    client.call(version, &asked).await.results.remove(0).configs
}

/// Value and synonyms of a configuration, each with its source.
async fn with_synonyms(client: &mut Client, name: &str) -> (String, i8, Vec<(String, i8)>) {
    let configs = described(client, 4, (TOPIC, "t"), true).await;
    let config = configs.into_iter().find(|config| config.name == name).expect("described");
    assert!(!config.read_only && !config.is_sensitive);
    let text = |text: Option<KafkaString>| text.expect("told").as_str().to_owned();
    let synonyms = config.synonyms.into_iter().map(|one| (text(one.value), one.source));
    (text(config.value), config.config_source, synonyms.collect())
}

#[tokio::test]
async fn what_nothing_goes_by_is_set_described_and_deleted() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    let made = create(&mut client, "t", &[("segment.ms", " 5000 "), ("compression.type", "zstd")]).await;
    assert_eq!(made.error_code, 0, "{made:?}");
    let told = made.configs.expect("told").into_iter().find(|config| config.name == "segment.ms");
    let told = told.expect("among them");
    assert_eq!((told.value, told.config_source, told.read_only), (Some("5000".into()), 1, false));
    assert_eq!(value(&mut client, "t", "compression.type").await, ("zstd".into(), 1));
    assert_eq!(value(&mut client, "t", "flush.ms").await, ("9223372036854775807".into(), 5));
    for (operation, text, shown, source) in
        [(SET, Some("100"), "100", 1), (DELETE, None, "604800000", 5), (SET, Some("7"), "7", 1)]
    {
        let answer = client.call(1, &alter("t", &[("segment.ms", operation, text)])).await;
        assert_eq!(answer.responses[0].error_code, 0);
        assert_eq!(value(&mut client, "t", "segment.ms").await, (shown.into(), source));
        assert_eq!(value(&mut client, "t", "compression.type").await.0, "zstd", "untouched");
    }
    for (name, text) in [("segment.bytes", "100"), ("remote.storage.enable", "true"), ("preallocate", "yes")]
    {
        let refused =
            client.call(1, &alter("t", &[("flush.ms", SET, Some("1")), (name, SET, Some(text))])).await;
        assert_eq!(refused.responses[0].error_code, ErrorCode::InvalidConfig.code(), "{name}");
        assert_eq!(value(&mut client, "t", "flush.ms").await.1, 5, "changed as a whole or not at all");
    }
}

#[tokio::test]
async fn lists_are_added_to_and_taken_from() {
    const LIST: &str = "leader.replication.throttled.replicas";
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    create(&mut client, "t", &[]).await;
    for (operation, text, shown) in [
        (APPEND, "0:1,1:2", "0:1,1:2"),
        (APPEND, "1:2,2:3", "0:1,1:2,2:3"),
        (SUBTRACT, "1:2,9:9", "0:1,2:3"),
        (SUBTRACT, "0:1,2:3", ""),
    ] {
        let answer = client.call(1, &alter("t", &[(LIST, operation, Some(text))])).await;
        assert_eq!(answer.responses[0].error_code, 0, "{text}");
        assert_eq!(value(&mut client, "t", LIST).await, (shown.into(), 1));
    }
    let bad = client.call(1, &alter("t", &[(LIST, APPEND, Some("*,0:1"))])).await;
    assert_eq!(bad.responses[0].error_code, ErrorCode::InvalidConfig.code());
}

#[tokio::test]
async fn records_cannot_have_to_stay_longer_than_they_may() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    let lags = [("min.compaction.lag.ms", "10"), ("max.compaction.lag.ms", "5")];
    assert_eq!(create(&mut client, "t", &lags).await.error_code, ErrorCode::InvalidConfig.code());
    assert_eq!(create(&mut client, "t", &lags[..1]).await.error_code, 0);
    let answer = client.call(1, &alter("t", &[("max.compaction.lag.ms", SET, Some("5"))])).await;
    assert_eq!(answer.responses[0].error_code, ErrorCode::InvalidConfig.code());
}

#[tokio::test]
async fn a_topics_own_value_hides_that_of_its_broker_which_hides_the_default() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    create(&mut client, "t", &[]).await;
    let synonyms =
        |all: &[(&str, i8)]| all.iter().map(|(value, source)| ((*value).to_owned(), *source)).collect();
    let of = |all: &[(&str, i8)]| (all[0].0.to_owned(), all[0].1, synonyms(all));
    let default = ("1073741824", 5);
    assert_eq!(with_synonyms(&mut client, "segment.bytes").await, of(&[default]));
    let mut broker = alter("", &[("log.segment.bytes", SET, Some("2000000"))]);
    broker.resources[0].resource_type = BROKER;
    assert_eq!(client.call(1, &broker).await.responses[0].error_code, 0);
    assert_eq!(with_synonyms(&mut client, "segment.bytes").await, of(&[("2000000", 3), default]));
    client.call(1, &alter("t", &[("segment.bytes", SET, Some("3000000"))])).await;
    let all = of(&[("3000000", 1), ("2000000", 3), default]);
    assert_eq!(with_synonyms(&mut client, "segment.bytes").await, all);
    // Where no broker's configuration has a default there is none to tell.
    assert_eq!(with_synonyms(&mut client, "segment.ms").await, ("604800000".into(), 5, Vec::new()));
}

#[tokio::test]
async fn configurations_are_documented_if_that_is_asked_for() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    create(&mut client, "t", &[]).await;
    for resource in [(TOPIC, "t"), (BROKER, "7")] {
        for version in 1..=4 {
            let configs = described(&mut client, version, resource, true).await;
            assert!(configs.len() > 30);
            for config in configs {
                let line = config.documentation.map(|line| line.as_str().len());
                assert_eq!(line.is_some_and(|length| length > 10), version >= 3, "{}", config.name.as_str());
            }
        }
        let configs = described(&mut client, 4, resource, false).await;
        assert!(configs.iter().all(|config| config.documentation.is_none() && config.synonyms.is_empty()));
    }
}
