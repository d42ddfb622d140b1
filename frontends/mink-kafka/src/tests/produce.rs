//! Produce: what is checked, refused, held and acked.
//!
//! Lives on: tests only.
use super::fake::{Behaviour, start};
use super::raw_client::{Client, batch, batch_of, fetch, frame, produce, visible};
use crate::counters::Closed;
use bytes::{BufMut, Bytes, BytesMut};
use mink_api::Admin;
use mink_kafka_wire::messages::api_versions::ApiVersionsRequest;
use mink_kafka_wire::messages::create_topics::{CreatableTopic, CreatableTopicConfig, CreateTopicsRequest};
use mink_kafka_wire::messages::produce::ProduceRequest;
use mink_kafka_wire::{ErrorCode, KafkaString};
use mink_record::kafka::Codec;
use mink_router::AppendError;
use mink_types::{BucketId, BucketIndex};
use std::sync::atomic::Ordering;
use std::time::Duration;

fn codes(response: &mink_kafka_wire::messages::produce::ProduceResponse) -> Vec<i16> {
    let topics = response.responses.iter();
    topics.flat_map(|topic| &topic.partition_responses).map(|partition| partition.error_code).collect()
}

#[tokio::test]
async fn what_is_produced_comes_back_byte_for_byte_with_every_codec() {
    let running = start().await;
    running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    let mut at = 0;
    for codec in [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let sent = batch_of([&b"a"[..], b"b", b"c"].into_iter(), codec);
        let answer = client.produce("t", 0, sent.clone()).await;
        assert_eq!((answer.error_code, answer.base_offset), (0, at), "{codec:?}");
        let fetched = client.call(12, &fetch("t", &[(0, at)])).await;
        let records = fetched.responses[0].partitions[0].records.clone().expect("records");
        let stored = records.into_bytes();
        // Offset and leader epoch are the log's; everything else is as sent.
        assert_eq!(stored[16..], sent[16..]);
        let seen: Vec<i64> = visible(stored, at).into_iter().map(|(offset, _)| offset).collect();
        assert_eq!(seen, [at, at + 1, at + 2]);
        at += 3;
    }
}

#[tokio::test]
async fn every_offered_version_of_produce_and_fetch_round_trips() {
    let running = start().await;
    running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    for version in 3..=9 {
        let response = client.call(version, &produce("t", 0, batch(&["x"]), 1)).await;
        assert_eq!(codes(&response), [0]);
        assert_eq!(response.responses[0].partition_responses[0].base_offset, i64::from(version - 3));
    }
    for version in 4..=12 {
        let response = client.call(version, &fetch("t", &[(0, 0)])).await;
        let partition = &response.responses[0].partitions[0];
        assert_eq!((partition.error_code, partition.high_watermark), (0, 7));
        assert_eq!(partition.last_stable_offset, 7);
        let records = partition.records.clone().expect("records");
        assert_eq!(visible(records.into_bytes(), 0).len(), 7);
    }
}

#[tokio::test]
async fn bad_acks_refuse_every_partition_and_store_nothing() {
    let running = start().await;
    let table = running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    let response = client.call(9, &produce("t", 0, batch(&["x"]), 2)).await;
    assert_eq!(codes(&response), [ErrorCode::InvalidRequiredAcks.code()]);
    assert_eq!(running.fake.end(table, 0), (0, 0));
}

#[tokio::test]
async fn p_24_old_formats_are_refused_and_the_connection_serves_on() {
    let running = start().await;
    let table = running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    for magic in [0, 1] {
        let mut old = BytesMut::new();
        old.put_i64(0);
        old.put_i32(22);
        old.put_u32(0xdead_beef);
        old.put_i8(magic);
        old.put_i8(0);
        old.put_bytes(0xff, 16);
        let response = client.call(3, &produce("t", 0, old.clone().freeze(), -1)).await;
        assert_eq!(codes(&response), [ErrorCode::UnsupportedForMessageFormat.code()]);
    }
    assert_eq!(running.fake.end(table, 0), (0, 0));
    assert_eq!(client.produce("t", 0, batch(&["x"])).await.base_offset, 0);
}

#[tokio::test]
async fn p_20_a_batch_beyond_max_message_bytes_uses_no_offset() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    let created = client
        .call(
            7,
            &CreateTopicsRequest {
                topics: vec![CreatableTopic {
                    name: "small".into(),
                    num_partitions: 1,
                    replication_factor: 1,
                    configs: vec![CreatableTopicConfig {
                        name: "max.message.bytes".into(),
                        value: Some("51200".into()),
                    }],
                    ..CreatableTopic::default()
                }],
                ..CreateTopicsRequest::default()
            },
        )
        .await;
    assert_eq!(created.topics[0].error_code, 0);
    let large = vec![b'x'; 10 << 20];
    let refused = client.produce("small", 0, batch_of([&large[..]].into_iter(), Codec::None)).await;
    assert_eq!(refused.error_code, ErrorCode::MessageTooLarge.code());
    assert_eq!(client.produce("small", 0, batch(&["x"])).await.base_offset, 0);
}

#[tokio::test]
async fn a_damaged_batch_is_corrupt_and_zstd_needs_a_client_that_knows_it() {
    let running = start().await;
    running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    let mut damaged = BytesMut::from(&batch(&["x"])[..]);
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    let answer = client.produce("t", 0, damaged.freeze()).await;
    assert_eq!(answer.error_code, ErrorCode::CorruptMessage.code());
    let zstd = batch_of([&b"x"[..]].into_iter(), Codec::Zstd);
    let response = client.call(6, &produce("t", 0, zstd, -1)).await;
    assert_eq!(codes(&response), [ErrorCode::UnsupportedCompressionType.code()]);
}

#[tokio::test]
async fn a_request_may_name_a_partition_once() {
    let running = start().await;
    let table = running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    let mut request = produce("t", 0, batch(&["x"]), -1);
    let again = produce("kafka.t", 0, batch(&["y"]), -1);
    request.topic_data.extend(again.topic_data);
    let response = client.call(9, &request).await;
    assert_eq!(codes(&response), [0, ErrorCode::InvalidRequest.code()]);
    assert_eq!(running.fake.end(table, 0), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn i7_only_a_batch_that_found_no_room_times_out() {
    let running = start().await;
    let table = running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    let full = Behaviour { no_room: true, ..Behaviour::default() };
    running.fake.behave(table, 0, full);
    let answer = client.produce("t", 0, batch(&["x"])).await;
    assert_eq!(answer.error_code, ErrorCode::RequestTimedOut.code());
    running.fake.behave(table, 0, Behaviour::default());
    assert_eq!(running.fake.end(table, 0), (0, 0), "the append was not handed over later");
    // Handed over and not ordered: no time-out, however long it takes.
    let held = Behaviour { hold_order: true, ..Behaviour::default() };
    running.fake.behave(table, 0, held);
    client.send(9, 1, &produce("t", 0, batch(&["y"]), -1)).await;
    running.fake.until(|fake| fake.end(table, 0).1 == 1).await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    running.fake.behave(table, 0, Behaviour::default());
    let (_, response) = client.receive::<ProduceRequest>(9).await;
    assert_eq!(codes(&response), [0]);
}

#[tokio::test]
async fn i7_an_append_that_is_lost_after_it_was_ordered_closes_the_connection_after_earlier_answers() {
    let running = start().await;
    let table = running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    let undurable = Behaviour { hold_durable: true, ..Behaviour::default() };
    running.fake.behave(table, 0, undurable);
    client.send(3, 1, &ApiVersionsRequest::default()).await;
    client.send(9, 2, &produce("t", 0, batch(&["x"]), -1)).await;
    running.fake.until(|fake| fake.end(table, 0).0 == 1).await;
    running.fake.lose(table, 0);
    assert_eq!(client.receive::<ApiVersionsRequest>(3).await.0, 1);
    client.assert_closed().await;
    assert_eq!(running.counters.closed_count(Closed::Lost), 1);
}

#[tokio::test]
async fn i7_an_append_that_is_lost_before_it_was_ordered_closes_the_connection() {
    let running = start().await;
    let table = running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    let held = Behaviour { hold_order: true, ..Behaviour::default() };
    running.fake.behave(table, 0, held);
    client.send(9, 2, &produce("t", 0, batch(&["x"]), -1)).await;
    running.fake.until(|fake| fake.end(table, 0).1 == 1).await;
    running.fake.lose(table, 0);
    client.assert_closed().await;
}

#[tokio::test]
async fn i7_batches_whose_topic_is_deleted_before_they_are_durable_are_refused_and_the_connection_stays() {
    let running = start().await;
    let (gone, other) = (running.fake.topic("t", 1), running.fake.topic("other", 1));
    let mut client = Client::connect(running.address).await;
    let undurable = Behaviour { hold_durable: true, ..Behaviour::default() };
    running.fake.behave(gone, 0, undurable);
    for correlation in 1..=2 {
        client.send(9, correlation, &produce("t", 0, batch(&["x"]), -1)).await;
    }
    client.send(9, 3, &produce("other", 0, batch(&["y"]), -1)).await;
    running.fake.until(|fake| (fake.end(gone, 0).0, fake.end(other, 0).0) == (2, 1)).await;
    running.fake.drop_table(gone).await.expect("there");
    let again = running.fake.topic("t", 1);
    for correlation in 1..=2 {
        let (found, response) = client.receive::<ProduceRequest>(9).await;
        assert_eq!((found, codes(&response)), (correlation, vec![ErrorCode::UnknownTopicOrPartition.code()]));
    }
    let (found, response) = client.receive::<ProduceRequest>(9).await;
    assert_eq!((found, codes(&response)), (3, vec![0]));
    // The retry gets into the new topic of that name.
    assert_eq!(client.produce("t", 0, batch(&["x"])).await.base_offset, 0);
    assert_eq!(running.fake.end(again, 0), (1, 0));
    assert_eq!(running.counters.closed_count(Closed::Lost), 0);
}

#[tokio::test]
async fn i7_a_batch_whose_topic_is_deleted_before_it_is_ordered_is_refused_and_the_connection_stays() {
    let running = start().await;
    let table = running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    running.fake.behave(table, 0, Behaviour { hold_order: true, ..Behaviour::default() });
    client.send(9, 1, &produce("t", 0, batch(&["x"]), -1)).await;
    running.fake.until(|fake| fake.end(table, 0).1 == 1).await;
    running.fake.drop_table(table).await.expect("there");
    let (_, response) = client.receive::<ProduceRequest>(9).await;
    assert_eq!(codes(&response), [ErrorCode::UnknownTopicOrPartition.code()]);
    assert_eq!(client.call(2, &ApiVersionsRequest::default()).await.error_code, 0);
}

#[tokio::test]
async fn an_ack_waits_for_durability_and_the_next_batch_does_not() {
    let running = start().await;
    let table = running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    let undurable = Behaviour { hold_durable: true, ..Behaviour::default() };
    running.fake.behave(table, 0, undurable);
    for correlation in 0..5 {
        client.send(9, correlation, &produce("t", 0, batch(&["x"]), 1)).await;
    }
    running.fake.until(|fake| fake.end(table, 0).0 == 5).await;
    let mut byte = [0];
    assert_eq!(
        client.stream.try_read(&mut byte).map_err(|error| error.kind()),
        Err(std::io::ErrorKind::WouldBlock),
        "nothing is acked before it is durable"
    );
    running.fake.behave(table, 0, Behaviour::default());
    for correlation in 0..5 {
        let (answered, response) = client.receive::<ProduceRequest>(9).await;
        assert_eq!(answered, correlation);
        assert_eq!(response.responses[0].partition_responses[0].base_offset, i64::from(correlation));
    }
}

#[tokio::test]
async fn what_was_sent_behind_a_curable_refusal_fails_too_and_a_retry_is_taken() {
    let running = start().await;
    let table = running.fake.topic("t", 2);
    let bucket = BucketId::unpartitioned(table, BucketIndex(0));
    let mut client = Client::connect(running.address).await;
    // The first batch is being ordered while the others arrive behind it.
    let held = Behaviour { hold_order: true, ..Behaviour::default() };
    running.fake.behave(table, 0, held);
    let mut pipelined = BytesMut::new();
    for correlation in 0..4 {
        pipelined.put(frame(9, correlation, &produce("t", 0, batch(&["x"]), -1)));
    }
    pipelined.put(frame(9, 4, &produce("t", 1, batch(&["other"]), -1)));
    client.send_bytes(&pipelined).await;
    running.fake.until(|fake| fake.end(table, 0).1 == 1).await;
    // It is refused, and at once the bucket would take everything.
    let refuse = Behaviour { refuse: Some(AppendError::Opening { bucket }), ..Behaviour::default() };
    running.fake.behave(table, 0, refuse);
    running.fake.behave(table, 0, Behaviour::default());
    for correlation in 0..4 {
        let (answered, response) = client.receive::<ProduceRequest>(9).await;
        assert_eq!(answered, correlation);
        assert_eq!(codes(&response), [ErrorCode::NotLeaderOrFollower.code()]);
    }
    let (_, response) = client.receive::<ProduceRequest>(9).await;
    assert_eq!(codes(&response), [0], "another partition is not concerned");
    assert_eq!(running.fake.end(table, 0), (0, 0));
    // The client has seen all of it: what it sends now is a retry.
    for at in 0..3 {
        assert_eq!(client.produce("t", 0, batch(&["x"])).await.base_offset, at);
    }
}

#[tokio::test]
async fn a_batch_that_can_never_be_accepted_fails_alone() {
    let running = start().await;
    let table = running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    let mut pipelined = BytesMut::new();
    pipelined.put(frame(9, 0, &produce("t", 0, Bytes::from_static(b"no batch"), -1)));
    pipelined.put(frame(9, 1, &produce("t", 0, batch(&["x"]), -1)));
    client.send_bytes(&pipelined).await;
    let (_, first) = client.receive::<ProduceRequest>(9).await;
    let (_, second) = client.receive::<ProduceRequest>(9).await;
    assert_eq!(codes(&first), [ErrorCode::InvalidRecord.code()]);
    assert_eq!(codes(&second), [0]);
    assert_eq!(running.fake.end(table, 0), (1, 0));
}

#[tokio::test]
async fn without_acks_a_success_is_silent_and_a_failure_closes() {
    let running = start().await;
    let table = running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    client.send(9, 1, &produce("t", 0, batch(&["x"]), 0)).await;
    client.send(3, 2, &ApiVersionsRequest::default()).await;
    assert_eq!(client.receive::<ApiVersionsRequest>(3).await.0, 2);
    assert_eq!(running.fake.end(table, 0), (1, 0));
    client.send(9, 3, &produce("missing", 0, batch(&["x"]), 0)).await;
    client.assert_closed().await;
    assert_eq!(running.counters.closed_count(Closed::Unacknowledged), 1);
}

#[tokio::test]
async fn t_7_a_topic_that_was_dropped_takes_nothing_and_its_successor_is_another() {
    let running = start().await;
    let table = running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    assert_eq!(client.produce("t", 0, batch(&["x"])).await.error_code, 0);
    running.fake.drop_table(table).await.expect("dropped");
    let refused = client.produce("t", 0, batch(&["x"])).await;
    assert_eq!(refused.error_code, ErrorCode::UnknownTopicOrPartition.code());
    let table = running.fake.topic("t", 1);
    assert_eq!(running.fake.end(table, 0), (0, 0));
    assert_eq!(client.produce("t", 0, batch(&["new"])).await.base_offset, 0);
}

#[tokio::test]
async fn transactions_are_refused_in_words() {
    let running = start().await;
    running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    let request = ProduceRequest {
        transactional_id: Some(KafkaString::from("tx")),
        ..produce("t", 0, batch(&["x"]), -1)
    };
    let response = client.call(9, &request).await;
    let answer = &response.responses[0].partition_responses[0];
    assert_eq!(answer.error_code, ErrorCode::InvalidRequest.code());
    let why = answer.error_message.clone().expect("words");
    assert!(why.as_str().contains("transactions"));
}

#[tokio::test]
async fn i20_the_bytes_of_a_request_are_given_back() {
    let config = super::fake::config();
    let permits = config.request_permits.clone();
    let running = super::fake::start_with(config).await;
    let table = running.fake.topic("t", 1);
    let undurable = Behaviour { hold_durable: true, ..Behaviour::default() };
    running.fake.behave(table, 0, undurable);
    let mut client = Client::connect(running.address).await;
    let value = vec![0; 500_000];
    client.send(9, 0, &produce("t", 0, batch_of([&value[..]].into_iter(), Codec::None), -1)).await;
    running.fake.until(|fake| fake.end(table, 0).0 == 1).await;
    assert!(permits.free_bytes() <= permits.total_bytes() - 500_000, "held until it is durable");
    running.fake.behave(table, 0, Behaviour::default());
    assert_eq!(codes(&client.receive::<ProduceRequest>(9).await.1), [0]);
    running.fake.until(|_| permits.free_bytes() == permits.total_bytes()).await;
    assert_eq!(running.fake.reads.load(Ordering::SeqCst), 0);
}
