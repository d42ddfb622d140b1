//! Loads against a server in memory.
//!
//! Lives on: the test's runtime.
use super::*;
use crate::client::Client;
use crate::fake::{self, Fault, PARTITIONS, Shared};
use crate::producer::ProducerConfig;
use mink_kafka_wire::ErrorCode;
use mink_record::kafka::BatchHeader;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const TOPIC: &str = "events";

async fn server(faults: &[Fault]) -> (Client, Shared) {
    let (address, broker) = fake::start().await;
    broker.lock().unwrap().faults.extend(faults.iter().copied());
    (Client::connect(&address).await.unwrap(), broker)
}

fn load(records: u64) -> ProduceLoad {
    ProduceLoad {
        topic: TOPIC.into(),
        values: Values::Random { min: 100, max: 100 },
        keys: Keys::None,
        records,
        warmup: Duration::ZERO,
        duration: None,
        pace: Pace::AsFastAsItGoes,
        seed: 1,
        connections: 2,
        producer: ProducerConfig { linger: Duration::ZERO, ..ProducerConfig::default() },
    }
}

fn reading() -> ConsumeLoad {
    ConsumeLoad {
        topic: TOPIC.into(),
        records: None,
        warmup: Duration::ZERO,
        duration: None,
        connections: 2,
        read_bytes: 1 << 20,
        follow: false,
    }
}

async fn produced(client: &Client, load: &ProduceLoad) -> LoadResult {
    produce(client, load, &Arc::default()).await.unwrap()
}

/// Records of each batch, by partition.
fn batches(broker: &Shared) -> Vec<Vec<i32>> {
    let counts = |log: &Vec<bytes::Bytes>| {
        log.iter().map(|batch| BatchHeader::parse(batch).unwrap().record_count).collect()
    };
    broker.lock().unwrap().logs.values().map(counts).collect()
}

#[tokio::test]
async fn the_load_generator_counts_what_was_acked_and_read() {
    let (client, _broker) = server(&[Fault::LoseAnswer]).await;
    let progress = Arc::default();
    let produced = produce(&client, &load(1001), &progress).await.unwrap();
    assert_eq!((produced.records, produced.bytes, produced.errors), (1001, 100_100, 0));
    assert_eq!(progress.records.load(Ordering::Relaxed), 1001);
    assert_eq!((produced.latency.len(), produced.unsent, produced.late.len()), (1001, 0, 0));
    assert_eq!(produced.series.iter().map(|second| second.records).sum::<u64>(), 1001);
    let read = consume(&client, &reading(), &progress).await.unwrap();
    assert_eq!((read.records, read.bytes), (1001, 100_100));
    assert!(!read.latency.is_empty() && read.end_to_end.is_empty());
}

#[tokio::test]
async fn without_keys_batches_are_full_and_go_to_the_partitions_in_turn() {
    let (client, broker) = server(&[]).await;
    let mut load = load(600);
    load.connections = 1;
    // So long that only a full batch goes.
    load.producer.linger = Duration::from_hours(1);
    load.producer.batch_bytes = 10_000;
    produced(&client, &load).await;
    let batches = batches(&broker);
    assert_eq!(batches.len(), usize::try_from(PARTITIONS).unwrap());
    let full = batches[0][0];
    assert!((85..98).contains(&full), "{batches:?}");
    let all: Vec<i32> = batches.iter().flatten().copied().collect();
    assert_eq!(all.iter().sum::<i32>(), 600);
    assert_eq!(all.iter().filter(|count| **count != full).count(), 1, "all but the last: {batches:?}");
    assert!(batches.iter().all(|counts| (2..=3).contains(&counts.len())), "{batches:?}");
}

#[tokio::test]
async fn a_closed_loop_has_no_more_outstanding_than_its_batches() {
    let mut load = load(1);
    load.producer.batch_bytes = 10_000;
    load.producer.in_flight_max = 1;
    let window = load.config(3).buffer_bytes;
    // Two batches of each partition, with what the producer counts for a record beside its value.
    assert!((60_000..90_000).contains(&window), "{window}");
    assert_eq!(load.config(1 << 20).buffer_bytes, 128 << 20, "of each of the two connections");
    load.values = Values::Random { min: 1 << 20, max: 1 << 20 };
    assert!(load.config(1).buffer_bytes > 1 << 20, "a record larger than a batch still goes");
    load.pace = Pace::Rate { per_second: 1.0, arrivals: Arrivals::Even };
    assert_eq!(load.config(3).buffer_bytes, ProducerConfig::default().buffer_bytes);
}

#[tokio::test]
async fn an_open_loop_counts_from_when_a_record_was_due_and_says_how_late_it_was_itself() {
    let (client, _broker) = server(&[]).await;
    let mut load = load(u64::MAX);
    load.pace = Pace::Rate { per_second: 1000.0, arrivals: Arrivals::Even };
    load.duration = Some(Duration::from_millis(200));
    let result = produced(&client, &load).await;
    assert_eq!((result.records, result.errors, result.unsent), (200, 0, 0), "all that were due");
    assert_eq!(result.late.len(), 200);
    assert!(result.latency.max() >= result.late.min(), "being late is part of the latency");
}

#[tokio::test]
async fn what_is_sent_in_the_warm_up_is_in_no_figure() {
    let (client, broker) = server(&[]).await;
    let mut load = load(u64::MAX);
    load.pace = Pace::Rate { per_second: 1000.0, arrivals: Arrivals::Even };
    (load.warmup, load.duration) = (Duration::from_millis(100), Some(Duration::from_millis(100)));
    let (progress, begun) = (Arc::<Progress>::default(), Instant::now());
    let result = produce(&client, &load, &progress).await.unwrap();
    assert_eq!((result.records, result.latency.len(), result.late.len()), (100, 100, 100));
    assert_eq!(progress.records.load(Ordering::Relaxed), 200);
    assert_eq!(batches(&broker).iter().flatten().sum::<i32>(), 200);
    assert!(result.elapsed + load.warmup <= begun.elapsed(), "counted from its end: {:?}", result.elapsed);
    // It has been told of, so this does not wait.
    progress.warm().await;
}

#[tokio::test]
async fn keys_decide_the_partition_on_every_connection() {
    let (client, broker) = server(&[]).await;
    let keys = Items::of([b"a".as_slice(), b"b", b"c", b"d"]).unwrap();
    let mut load = load(1200);
    (load.keys, load.connections) = (Keys::Given(Arc::new(keys)), 3);
    let result = produced(&client, &load).await;
    assert_eq!((result.records, result.bytes), (1200, 1200 * 101));
    let mut expected = [0; 3];
    for (key, count) in [("a", 300), ("b", 300), ("c", 300), ("d", 300)] {
        expected[usize::try_from(crate::partition_of_key(key.as_bytes(), 3)).unwrap()] += count;
    }
    let found: Vec<i32> = batches(&broker).iter().map(|counts| counts.iter().sum()).collect();
    assert_eq!(found, expected.into_iter().filter(|count| *count > 0).collect::<Vec<_>>());
}

#[tokio::test]
async fn records_that_are_not_acked_are_counted_with_the_first_reason() {
    let (client, _broker) = server(&[Fault::Refuse(ErrorCode::MessageTooLarge)]).await;
    let mut load = load(10);
    load.connections = 1;
    load.producer.idempotent = false;
    let result = produced(&client, &load).await;
    assert!(result.errors > 0 && result.errors + result.records == 10, "{result:?}");
    assert_eq!(result.first_error.unwrap().code(), Some(ErrorCode::MessageTooLarge));
}

#[tokio::test]
async fn a_load_that_follows_tells_how_old_records_are_and_needs_an_end() {
    let (client, _broker) = server(&[]).await;
    produced(&client, &load(50)).await;
    let mut follow = reading();
    follow.follow = true;
    let error = consume(&client, &follow, &Arc::default()).await.expect_err("it would never end");
    assert_eq!(error.kind(), ErrorKind::Misuse);
    follow.records = Some(30);
    let following = tokio::spawn({
        let client = client.clone();
        async move { consume(&client, &follow, &Arc::default()).await }
    });
    // It begins at the end, so what is sent before it has begun is not counted: goes on until it has enough.
    while !following.is_finished() {
        produced(&client, &load(30)).await;
    }
    let result = following.await.unwrap().unwrap();
    assert!(result.records >= 30 && result.end_to_end.len() == result.records, "{}", result.records);
}

/// A server that refuses for a reason that may pass, for as long as any test asks.
fn never() -> Vec<Fault> {
    vec![Fault::Refuse(ErrorCode::NotEnoughReplicas); 100_000]
}

#[tokio::test]
async fn a_load_ends_soon_after_its_time_and_counts_what_got_no_ack() {
    let (client, _broker) = server(&never()).await;
    let mut load = load(u64::MAX);
    load.producer.batch_bytes = 10_000;
    load.duration = Some(Duration::from_millis(100));
    let begun = Instant::now();
    let result = produced(&client, &load).await;
    let took = begun.elapsed();
    assert!(took >= DRAIN_MAX && took < DRAIN_MAX + Duration::from_secs(5), "{took:?}");
    assert!(result.unacked > 0 && result.latency.len() == result.unacked, "{result:?}");
    assert!(result.latency.min() >= 5_000_000, "from when it was offered: {}", result.latency.min());
    assert_eq!((result.records, result.errors, result.elapsed), (0, 0, Duration::from_millis(100)));
    assert!(result.drain >= DRAIN_MAX, "{:?}", result.drain);
    assert_eq!(result.first_error.map(|error| error.kind()), Some(ErrorKind::Timeout));
}

#[tokio::test]
async fn what_was_due_and_not_offered_counts_from_when_it_was_due() {
    let (client, _broker) = server(&never()).await;
    let mut load = load(u64::MAX);
    load.pace = Pace::Rate { per_second: 1000.0, arrivals: Arrivals::Even };
    load.duration = Some(Duration::from_secs(1));
    load.connections = 1;
    // Room for ten records.
    load.producer.buffer_bytes = 10 * (100 + 32);
    let result = produced(&client, &load).await;
    assert!((980..=995).contains(&result.unsent), "{}", result.unsent);
    assert_eq!((result.unacked, result.latency.len()), (result.unsent + 10, result.unacked));
    let (min, max) = (result.latency.min(), result.latency.max());
    assert!(min >= 4_990_000 && max - min > 900_000, "{min} to {max}");
}

#[tokio::test]
async fn a_rate_beyond_what_can_be_offered_ends_in_time_too() {
    let (client, _broker) = server(&[]).await;
    let mut load = load(u64::MAX);
    load.pace = Pace::Rate { per_second: 1e9, arrivals: Arrivals::Even };
    load.values = Values::Random { min: 1, max: 1 };
    load.duration = Some(Duration::from_millis(100));
    let begun = Instant::now();
    let result = produced(&client, &load).await;
    assert!(begun.elapsed() < DRAIN_MAX + Duration::from_secs(5), "{:?}", begun.elapsed());
    let due = result.records + result.unsent;
    assert!(result.records > 0 && (99_000_000..=100_001_000).contains(&due), "{due}");
}

#[tokio::test]
async fn of_a_number_of_records_no_more_are_missed() {
    let (client, _broker) = server(&never()).await;
    let mut load = load(500);
    load.pace = Pace::Rate { per_second: 1000.0, arrivals: Arrivals::Even };
    load.duration = Some(Duration::from_secs(1));
    load.producer.buffer_bytes = 10 * (100 + 32);
    let result = produced(&client, &load).await;
    assert_eq!((result.unsent, result.unacked), (480, 500));
}

#[tokio::test]
async fn a_load_that_is_stopped_tells_what_it_did() {
    let (client, _broker) = server(&[]).await;
    let (load, progress) = (load(u64::MAX), Arc::<Progress>::default());
    let (load, shared) = (&load, &progress);
    let stop = async {
        while progress.records.load(Ordering::Relaxed) == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        progress.stop();
    };
    let (result, ()) = tokio::join!(produce(&client, load, shared), stop);
    let result = result.unwrap();
    assert!(result.records > 0 && result.records_in_time <= result.records, "{result:?}");
    assert_eq!((result.unacked, result.errors, result.connections), (0, 0, 2));
    assert!(result.drain < DRAIN_MAX && !result.elapsed.is_zero(), "{:?}", result.drain);
    let progress = Arc::<Progress>::default();
    progress.stop();
    let unbegun = produce(&client, load, &progress).await.unwrap();
    assert!(unbegun.connections <= 2 && (unbegun.records, unbegun.unacked) == (0, 0), "{unbegun:?}");
    let read = consume(&client, &reading(), &progress).await.unwrap();
    assert_eq!((read.records, read.first_error), (0, None), "it was stopped before it began");
}

#[tokio::test]
async fn a_read_that_fails_ends_the_load_and_leaves_what_was_read() {
    let (client, broker) = server(&[]).await;
    let mut load = load(3000);
    load.producer.batch_bytes = 10_000;
    produced(&client, &load).await;
    for log in broker.lock().unwrap().logs.values_mut() {
        let last = log.last_mut().expect("each has some");
        let mut damaged = last.to_vec();
        *damaged.last_mut().expect("it has bytes") ^= 1;
        *last = damaged.into();
    }
    let mut reading = reading();
    reading.connections = 100_000_000;
    let result = consume(&client, &reading, &Arc::default()).await.unwrap();
    assert_eq!(result.first_error.map(|error| error.kind()), Some(ErrorKind::Protocol));
    assert_eq!(result.connections, 3, "one for each partition is all that can be used");
}

#[test]
fn partitions_and_records_are_dealt_out_and_every_connection_has_some() {
    assert_eq!(produce::dealt(&[0, 1, 2, 3, 4], 1, 2), [1, 3]);
    assert_eq!(produce::dealt(&[0, 1], 2, 5), [0]);
    assert_eq!(produce::dealt(&[0, 1], 3, 5), [1]);
    let shares: Vec<u64> = (0..3).map(|index| produce::share_of(10, index, 3)).collect();
    assert_eq!(shares, [4, 3, 3]);
}
