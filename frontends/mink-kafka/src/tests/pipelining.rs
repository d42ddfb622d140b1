//! Requests in a row on one connection: their answers' order, and how many may wait.
//!
//! Lives on: tests only.
use super::fake::{Behaviour, config, start, start_with};
use super::raw_client::{Client, batch, fetch, frame, produce};
use bytes::{BufMut, BytesMut};
use mink_kafka_wire::messages::api_versions::ApiVersionsRequest;
use mink_kafka_wire::messages::create_topics::{CreatableTopic, CreateTopicsRequest};
use mink_kafka_wire::messages::fetch::FetchRequest;
use mink_kafka_wire::messages::metadata::{MetadataRequest, MetadataRequestTopic};
use mink_kafka_wire::messages::produce::ProduceRequest;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn k_13_answers_come_in_the_order_of_the_requests_and_acks_0_has_no_slot() {
    let running = start().await;
    let table = running.fake.topic("t", 1);
    running.fake.topic("quiet", 1);
    let mut client = Client::connect(running.address).await;
    let slow = FetchRequest { max_wait_ms: 2_000, ..fetch("quiet", &[(0, 0)]) };
    let begun = Instant::now();
    let mut all = BytesMut::new();
    all.put(frame(12, 1, &slow));
    all.put(frame(9, 2, &produce("t", 0, batch(&["x"]), 0)));
    all.put(frame(9, 3, &MetadataRequest::default()));
    all.put(frame(9, 4, &produce("t", 0, batch(&["y"]), -1)));
    all.put(frame(3, 5, &ApiVersionsRequest::default()));
    client.send_bytes(&all).await;
    assert_eq!(client.receive::<FetchRequest>(12).await.0, 1);
    assert!(begun.elapsed() >= Duration::from_secs(2));
    assert_eq!(client.receive::<MetadataRequest>(9).await.0, 3);
    assert_eq!(client.receive::<ProduceRequest>(9).await.0, 4);
    assert_eq!(client.receive::<ApiVersionsRequest>(3).await.0, 5);
    assert_eq!(running.fake.end(table, 0), (2, 0));
}

#[tokio::test]
async fn what_is_asked_in_order_happens_in_order() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    let create = CreateTopicsRequest {
        topics: vec![CreatableTopic {
            name: "made".into(),
            num_partitions: 3,
            replication_factor: 3,
            ..CreatableTopic::default()
        }],
        ..CreateTopicsRequest::default()
    };
    let describe = MetadataRequest {
        topics: Some(vec![MetadataRequestTopic {
            name: Some("made".into()),
            ..MetadataRequestTopic::default()
        }]),
        allow_auto_topic_creation: false,
        ..MetadataRequest::default()
    };
    client.send(7, 1, &create).await;
    client.send(12, 2, &describe).await;
    let (_, created) = client.receive::<CreateTopicsRequest>(7).await;
    let (_, described) = client.receive::<MetadataRequest>(12).await;
    assert_eq!(created.topics[0].error_code, 0);
    assert_eq!(described.topics[0].partitions.len(), 3);
    assert_eq!(described.topics[0].topic_id, created.topics[0].topic_id);
}

#[tokio::test(start_paused = true)]
async fn i20_a_socket_is_not_read_while_too_many_requests_wait() {
    let mut config = config();
    config.limits.requests_in_flight_max = 3;
    let running = start_with(config).await;
    let table = running.fake.topic("t", 1);
    running.fake.behave(table, 0, Behaviour { hold_durable: true, ..Behaviour::default() });
    let mut client = Client::connect(running.address).await;
    for correlation in 0..10 {
        client.send(9, correlation, &produce("t", 0, batch(&["x"]), -1)).await;
    }
    running.fake.until(|fake| fake.end(table, 0).0 == 3).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(running.fake.end(table, 0).0, 3);
    running.fake.behave(table, 0, Behaviour::default());
    for correlation in 0..10 {
        assert_eq!(client.receive::<ProduceRequest>(9).await.0, correlation);
    }
}

/// K-13, I20: what stands behind a fetch that waits is not read: it would take the memory that the fetch needs to be answered.
#[tokio::test(start_paused = true)]
async fn k_13_i20_fetches_behind_a_fetch_that_waits_take_nothing_from_it() {
    let running = start().await;
    running.fake.topic("quiet", 1);
    running.fake.topic("loud", 1);
    let mut client = Client::connect(running.address).await;
    assert_eq!(client.produce("loud", 0, batch(&["x"])).await.error_code, 0);
    let slow = FetchRequest { max_wait_ms: 1_000, ..fetch("quiet", &[(0, 0)]) };
    client.send(12, 10, &slow).await;
    running.fake.until(|fake| fake.watching.load(Ordering::SeqCst) == 1).await;
    let reads = running.fake.reads.load(Ordering::SeqCst);
    for correlation in 11..20 {
        client.send(12, correlation, &fetch("loud", &[(0, 0)])).await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(running.fake.reads.load(Ordering::SeqCst), reads, "none of them has begun");
    for correlation in 10..20 {
        assert_eq!(client.receive::<FetchRequest>(12).await.0, correlation);
    }
}
