//! Producing against a server that breaks connections, loses answers and refuses.

use super::*;
use crate::fake::{self, Fault};
use crate::reader::Reader;
use mink_kafka_wire::ErrorCode;
use mink_record::kafka::BatchHeader;

const TOPIC: &str = "events";

/// Every record is a batch, so that a test says what each request meets.
fn one_by_one() -> ProducerConfig {
    ProducerConfig { batch_bytes: 1, linger: Duration::ZERO, ..ProducerConfig::default() }
}

async fn broker(faults: &[Fault]) -> (Client, fake::Shared) {
    let (address, broker) = fake::start().await;
    broker.lock().unwrap().faults = faults.iter().copied().collect();
    (Client::connect(&address).await.unwrap(), broker)
}

/// Sends numbered records to partition 0; what each came to.
async fn send(producer: &Producer, numbers: std::ops::Range<i64>) -> Vec<Result<i64, ClientError>> {
    let mut deliveries = Vec::new();
    for number in numbers {
        let value = number.to_string();
        deliveries.push(producer.send(0, Record::new(Some(b"key"), Some(value.as_bytes()))).await.unwrap());
    }
    futures::future::join_all(deliveries).await
}

/// The values that partition 0 holds, in order; their offsets are dense.
async fn values(client: &Client) -> Vec<i64> {
    let read = Reader::new(client, TOPIC, 0).read(0, Duration::ZERO).await.unwrap();
    for (offset, record) in (0..).zip(&read.records) {
        assert_eq!(record.offset, offset);
    }
    let number = |value: &[u8]| std::str::from_utf8(value).unwrap().parse().unwrap();
    read.records.iter().map(|record| number(record.value.as_deref().unwrap())).collect()
}

/// Sends ten records one by one under these faults: all are stored once, in order, and told their offset.
async fn i6_all_are_stored_once_in_order(faults: &[Fault]) -> fake::Shared {
    let (client, broker) = broker(faults).await;
    let producer = Producer::start(&client, TOPIC, one_by_one()).await.unwrap();
    let ends = send(&producer, 0..10).await;
    producer.close().await.unwrap();
    let values = values(&client).await;
    assert_eq!(values, (0..10).collect::<Vec<_>>(), "{faults:?}");
    for (number, offset) in (0..).zip(ends) {
        assert_eq!(offset, Ok(number), "{faults:?}");
    }
    assert!(broker.lock().unwrap().faults.is_empty(), "every fault has happened");
    broker
}

#[tokio::test]
async fn i6_a_lost_request_is_sent_again() {
    i6_all_are_stored_once_in_order(&[Fault::LoseRequest]).await;
    i6_all_are_stored_once_in_order(&[Fault::Take, Fault::Take, Fault::LoseRequest, Fault::LoseRequest])
        .await;
}

#[tokio::test]
async fn i6_a_lost_answer_stores_nothing_twice_and_the_repeat_has_the_same_bytes() {
    let broker = i6_all_are_stored_once_in_order(&[Fault::Take, Fault::LoseAnswer, Fault::LoseAnswer]).await;
    let broker = broker.lock().unwrap();
    let mut by_sequence = BTreeMap::new();
    for (_, batch) in &broker.attempts {
        let sequence = BatchHeader::parse(batch).unwrap().base_sequence;
        assert_eq!(by_sequence.entry(sequence).or_insert(batch), &batch, "the very same bytes");
    }
    assert!(broker.attempts.len() > by_sequence.len(), "there were repeats");
}

#[tokio::test]
async fn i6_a_refusal_in_the_pipeline_does_not_reorder() {
    use ErrorCode::{CorruptMessage, NotEnoughReplicasAfterAppend, NotLeaderOrFollower, RequestTimedOut};
    for code in [NotLeaderOrFollower, CorruptMessage, RequestTimedOut] {
        i6_all_are_stored_once_in_order(&[Fault::Refuse(code)]).await;
        i6_all_are_stored_once_in_order(&[
            Fault::Take,
            Fault::Refuse(code),
            Fault::Take,
            Fault::Refuse(code),
        ])
        .await;
    }
    for code in [RequestTimedOut, NotEnoughReplicasAfterAppend] {
        i6_all_are_stored_once_in_order(&[Fault::StoreAndRefuse(code), Fault::LoseAnswer]).await;
    }
}

#[tokio::test]
async fn i6_every_pair_of_faults_is_survived() {
    let faults = [
        Fault::Take,
        Fault::LoseRequest,
        Fault::LoseAnswer,
        Fault::Refuse(ErrorCode::NotLeaderOrFollower),
        Fault::StoreAndRefuse(ErrorCode::RequestTimedOut),
    ];
    for first in faults {
        for second in faults {
            i6_all_are_stored_once_in_order(&[first, second, first]).await;
        }
    }
}

#[tokio::test]
async fn i6_sequences_wrap_without_a_gap() {
    let (client, broker) = broker(&[Fault::Take, Fault::LoseAnswer]).await;
    let producer = Producer::start_at(&client, TOPIC, one_by_one(), i32::MAX - 2).await.unwrap();
    let ends = send(&producer, 0..6).await;
    assert_eq!(ends, (0..6).map(Ok).collect::<Vec<_>>());
    assert_eq!(values(&client).await, [0, 1, 2, 3, 4, 5]);
    let sequences: std::collections::BTreeSet<i32> = broker.lock().unwrap().logs[&0]
        .iter()
        .map(|batch| BatchHeader::parse(batch).unwrap().base_sequence)
        .collect();
    assert_eq!(sequences, [0, 1, 2, i32::MAX - 2, i32::MAX - 1, i32::MAX].into());
}

#[tokio::test]
async fn i7_a_batch_refused_for_good_fails_alone() {
    let (client, broker) = broker(&[Fault::Take, Fault::Refuse(ErrorCode::MessageTooLarge)]).await;
    let producer = Producer::start(&client, TOPIC, one_by_one()).await.unwrap();
    let mut ends = send(&producer, 0..10).await;
    let refused = ends.remove(1).expect_err("refused");
    assert_eq!(refused.code(), Some(ErrorCode::MessageTooLarge));
    assert!(ends.iter().all(Result::is_ok), "{ends:?}");
    assert_eq!(values(&client).await, [0, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(producer.flush().await.expect_err("told once").code(), Some(ErrorCode::MessageTooLarge));
    producer.close().await.unwrap();
    assert_eq!(broker.lock().unwrap().logs.len(), 1);
}

#[tokio::test]
async fn i6_lost_answers_beside_a_refusal_for_good_store_nothing_twice() {
    let refused = Fault::Refuse(ErrorCode::InvalidRecord);
    for faults in [
        [Fault::Take, refused, Fault::LoseAnswer],
        [refused, Fault::LoseRequest, Fault::LoseAnswer],
        [Fault::LoseAnswer, refused, Fault::LoseAnswer],
    ] {
        let (client, _broker) = broker(&faults).await;
        let producer = Producer::start(&client, TOPIC, one_by_one()).await.unwrap();
        let ends = send(&producer, 0..10).await;
        let values = values(&client).await;
        assert!(values.is_sorted_by(|a, b| a < b), "{faults:?} {values:?}");
        for (number, end) in (0..).zip(&ends) {
            let told_unknown = end.as_ref().is_err_and(|error| error.kind() == ErrorKind::Timeout);
            assert!(end.is_ok() == values.contains(&number) || told_unknown, "{faults:?} {number} {end:?}");
        }
        assert_eq!(ends.iter().filter(|end| end.is_ok()).count(), 9, "{faults:?} {ends:?}");
    }
}

#[tokio::test]
async fn i7_giving_up_says_whether_the_record_may_be_stored() {
    let config = ProducerConfig { delivery_timeout: Duration::ZERO, ..one_by_one() };
    let (client, _broker) = broker(&[Fault::LoseAnswer]).await;
    let producer = Producer::start(&client, TOPIC, config.clone()).await.unwrap();
    let error = send(&producer, 0..1).await.remove(0).expect_err("given up");
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.to_string().contains("may have been stored"), "{error}");

    let (client, _broker) = broker(&[Fault::Refuse(ErrorCode::NotLeaderOrFollower)]).await;
    let producer = Producer::start(&client, TOPIC, config).await.unwrap();
    let error = send(&producer, 0..1).await.remove(0).expect_err("given up");
    assert_eq!(error.code(), Some(ErrorCode::NotLeaderOrFollower));
    assert!(error.to_string().contains("was not stored"), "{error}");
}

#[tokio::test]
async fn without_idempotence_a_lost_answer_may_store_twice_but_loses_nothing() {
    let (client, _broker) = broker(&[Fault::LoseAnswer]).await;
    let config = ProducerConfig { idempotent: false, in_flight_max: 1, ..one_by_one() };
    let producer = Producer::start(&client, TOPIC, config).await.unwrap();
    assert!(send(&producer, 0..3).await.iter().all(Result::is_ok));
    assert_eq!(values(&client).await, [0, 0, 1, 2]);
}

#[tokio::test]
async fn records_gather_into_batches_and_a_flush_ends_lingering() {
    let (client, broker) = broker(&[]).await;
    let config =
        ProducerConfig { linger: Duration::from_hours(1), codec: Codec::Zstd, ..ProducerConfig::default() };
    let producer = Producer::start(&client, TOPIC, config).await.unwrap();
    let headers = [HeaderRef { key: "a", value: Some(b"1") }, HeaderRef { key: "a", value: None }];
    for number in 0..100 {
        let value = number.to_string();
        let record = Record {
            timestamp: Some(number),
            headers: &headers,
            ..Record::new(None, Some(value.as_bytes()))
        };
        drop(producer.send(i32::try_from(number % 3).unwrap(), record).await.unwrap());
    }
    assert_eq!(broker.lock().unwrap().end(0), 0, "all linger");
    producer.flush().await.unwrap();
    let (batches, ends) = {
        let broker = broker.lock().unwrap();
        let batches: Vec<usize> = broker.logs.values().map(Vec::len).collect();
        (batches, (0..3).map(|partition| broker.end(partition)).collect::<Vec<_>>())
    };
    assert_eq!((batches, ends), (vec![1, 1, 1], vec![34, 33, 33]));
    let read = Reader::new(&client, TOPIC, 1).read(10, Duration::ZERO).await.unwrap();
    let first = &read.records[0];
    assert_eq!((first.offset, first.timestamp, first.value.as_deref()), (10, 31, Some(&b"31"[..])));
    assert_eq!(first.headers, [("a".into(), Some("1".into())), ("a".into(), None)]);
    assert_eq!(read.next, 33);
}

#[tokio::test]
async fn i20_what_is_gathered_is_bounded() {
    let (client, _broker) = broker(&[]).await;
    let linger = Duration::from_hours(1);
    let config = ProducerConfig { linger, buffer_bytes: 100, ..ProducerConfig::default() };
    let producer = Producer::start(&client, TOPIC, config).await.unwrap();
    let value = [0; 50];
    let first = producer.send(0, Record::new(None, Some(&value))).await.unwrap();
    let mut second = std::pin::pin!(producer.send(0, Record::new(None, Some(&value))));
    assert!(futures::poll!(second.as_mut()).is_pending(), "there is no room");
    let (flushed, second) = futures::join!(producer.flush(), second);
    flushed.unwrap();
    assert_eq!(first.await, Ok(0));
    producer.flush().await.unwrap();
    assert_eq!(second.unwrap().await, Ok(1));
    let large = producer.send(0, Record::new(None, Some(&[0; 100]))).await;
    assert_eq!(large.expect_err("larger than the buffer").kind(), ErrorKind::Misuse);
}

#[tokio::test]
async fn misuse_is_told_at_once() {
    let (client, _broker) = broker(&[]).await;
    for in_flight_max in [0, 6] {
        let config = ProducerConfig { in_flight_max, ..ProducerConfig::default() };
        assert_eq!(
            Producer::start(&client, TOPIC, config).await.expect_err("refused").kind(),
            ErrorKind::Misuse
        );
    }
    let producer = Producer::start(&client, TOPIC, ProducerConfig::default()).await.unwrap();
    let record = Record::new(None, None);
    assert_eq!(producer.send(3, record).await.expect_err("no such partition").kind(), ErrorKind::Misuse);
    producer.close().await.unwrap();
    assert_eq!(producer.send(0, record).await.expect_err("closed").kind(), ErrorKind::Misuse);
}

#[tokio::test]
async fn a_topic_that_is_not_there_is_found_missing_without_a_wait() {
    let (client, _broker) = broker(&[]).await;
    assert_eq!(client.find_topic("missing").await.unwrap(), None);
    assert_eq!(client.find_topic(TOPIC).await.unwrap().unwrap().partitions.len(), 3);
}
