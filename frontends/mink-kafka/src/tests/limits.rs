//! A limit that is met is counted under its name.
//!
//! Lives on: tests only.
use super::fake::{Behaviour, config, start, start_with};
use super::raw_client::{Client, batch, produce};
use crate::limits_met::Limit;
use mink_kafka_wire::ErrorCode;
use mink_kafka_wire::messages::create_topics::{CreatableTopic, CreateTopicsRequest};
use mink_kafka_wire::messages::offset_commit::{
    OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};

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
