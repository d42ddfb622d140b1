//! A limit that is met is counted under its name.
//!
//! Lives on: tests only.
use super::fake::{Behaviour, config, start, start_with};
use super::raw_client::{Client, batch, batch_of, fetch, produce};
use crate::limits_met::Limit;
use mink_api::MetricValue;
use mink_kafka_wire::ErrorCode;
use mink_kafka_wire::messages::create_topics::{CreatableTopic, CreatableTopicConfig, CreateTopicsRequest};
use mink_kafka_wire::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use mink_record::kafka::Codec;

#[tokio::test]
async fn i20_names_and_partitions_that_are_refused_are_counted() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    for (name, partitions, limit, code) in [
        ("a".repeat(250), 1, Limit::Names, ErrorCode::InvalidTopicException),
        ("t".into(), 10_001, Limit::Buckets, ErrorCode::InvalidPartitions),
    ] {
        let topic = CreatableTopic {
            name: name.as_str().into(),
            num_partitions: partitions,
            replication_factor: 1,
            ..CreatableTopic::default()
        };
        let request = CreateTopicsRequest { topics: vec![topic], ..CreateTopicsRequest::default() };
        assert_eq!(running.counters.limits().count(limit), 0);
        assert_eq!(client.call(7, &request).await.topics[0].error_code, code.code());
        assert_eq!(running.counters.limits().count(limit), 1);
    }
}

#[tokio::test]
async fn i20_a_socket_that_is_not_read_because_too_many_requests_wait_is_counted() {
    let mut config = config();
    config.limits.requests_in_flight_max = 2;
    let running = start_with(config).await;
    let table = running.fake.topic("t", 1);
    running.fake.behave(table, 0, Behaviour { hold_durable: true, ..Behaviour::default() });
    let mut client = Client::connect(running.address).await;
    client.send(9, 1, &produce("t", 0, batch(&["one"]), -1)).await;
    running.fake.until(|fake| fake.end(table, 0).0 == 1).await;
    assert_eq!(running.counters.limits().count(Limit::RequestsInFlight), 0, "one place is left");
    client.send(9, 2, &produce("t", 0, batch(&["two"]), -1)).await;
    running.fake.until(|_| running.counters.limits().count(Limit::RequestsInFlight) == 1).await;
}

#[tokio::test]
async fn i20_what_a_coordinator_refuses_for_its_size_is_counted() {
    let running = start().await;
    running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    let request = OffsetCommitRequest {
        group_id: "g".into(),
        generation_id_or_member_epoch: -1,
        topics: vec![OffsetCommitRequestTopic {
            name: "t".into(),
            partitions: vec![OffsetCommitRequestPartition {
                committed_offset: 0,
                committed_metadata: Some("m".repeat(5_000).as_str().into()),
                ..OffsetCommitRequestPartition::default()
            }],
            ..OffsetCommitRequestTopic::default()
        }],
        ..OffsetCommitRequest::default()
    };
    let answer = client.call(8, &request).await;
    let code = answer.topics[0].partitions[0].error_code;
    assert_eq!(code, ErrorCode::OffsetMetadataTooLarge.code());
    assert_eq!(running.counters.limits().count(Limit::OffsetMetadata), 1);
}

#[tokio::test]
async fn i20_an_answer_to_a_fetch_keeps_within_its_limit_whatever_was_asked_for() {
    let mut config = config();
    config.limits.fetch_bytes_max = 250_000;
    let running = start_with(config).await;
    running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    let value = vec![b'x'; 100_000];
    for _ in 0..4 {
        let batch = batch_of([&value[..]].into_iter(), Codec::None);
        assert_eq!(client.produce("t", 0, batch).await.error_code, 0);
    }
    let answer = client.call(12, &fetch("t", &[(0, 0)])).await;
    let records = answer.responses[0].partitions[0].records.clone().expect("found").into_bytes();
    assert!(
        (200_000..=250_000).contains(&records.len()),
        "{} bytes, and 50 MiB were asked for",
        records.len()
    );
    let metrics = running.counters.metrics();
    let counted = metrics.into_iter().find(|metric| metric.name == "mink_kafka_fetched_bytes");
    assert_eq!(counted.expect("told").value, MetricValue::Counter(records.len() as u64));
}

#[tokio::test]
async fn i20_no_topic_may_allow_larger_batches_than_the_node() {
    let mut config = config();
    config.limits.batch_bytes_max = 2 << 20;
    let running = start_with(config).await;
    let mut client = Client::connect(running.address).await;
    for (bytes, code) in [(2_097_153, ErrorCode::InvalidConfig), (2_097_152, ErrorCode::None)] {
        let configs = vec![CreatableTopicConfig {
            name: "max.message.bytes".into(),
            value: Some(bytes.to_string().as_str().into()),
        }];
        let topic = CreatableTopic {
            name: "t".into(),
            num_partitions: 1,
            replication_factor: 1,
            configs,
            ..CreatableTopic::default()
        };
        let request = CreateTopicsRequest { topics: vec![topic], ..CreateTopicsRequest::default() };
        assert_eq!(client.call(7, &request).await.topics[0].error_code, code.code(), "{bytes}");
    }
    let large = vec![b'x'; (2 << 20) + 1];
    let refused = client.produce("t", 0, batch_of([&large[..]].into_iter(), Codec::None)).await;
    assert_eq!(refused.error_code, ErrorCode::MessageTooLarge.code());
    let metrics = running.counters.metrics();
    let counted = metrics.into_iter().find(|metric| metric.name == "mink_kafka_partition_errors");
    assert_eq!(counted.expect("told").value, MetricValue::Counter(1));
}
