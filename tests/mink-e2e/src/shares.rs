//! Who gets how much, and what it costs: many producers of many partitions, and readers near and far from the end of a log.
//! Lives on: the test's tokio runtime.
//! Owns: nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mink_kafka_wire::Records;
use mink_kafka_wire::messages::fetch::{FetchPartition, FetchRequest, FetchTopic};

use crate::setup::{Folder, is_long, node, store_requests};
use crate::wire::{SOON, Wire, batch};

const TOPIC: &str = "shares";
const FETCH: i16 = 12;

/// Issue "Kafka, complete": 100 partitions, 100 producers: the least served has 0.8 of what the best served has.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_producers_of_a_hundred_partitions_get_like_shares() {
    const PRODUCERS: usize = 100;
    const IN_FLIGHT: usize = 5;
    const WARM_UP: Duration = Duration::from_secs(1);
    let folder = Folder::new();
    let mut node = node(&folder).start().await.unwrap();
    Wire::connect(node.kafka()).await.create_topic(TOPIC, i32::try_from(PRODUCERS).unwrap()).await;
    let lasts = if is_long() { Duration::from_secs(30) } else { Duration::from_secs(4) };
    let sent_batch = batch(std::iter::repeat_n(vec![b'x'; 1_000], 16), None);
    let acked: Arc<[AtomicU64; PRODUCERS]> = Arc::new(std::array::from_fn(|_| AtomicU64::new(0)));
    let begins = Instant::now() + WARM_UP;
    let producers: Vec<_> = (0..PRODUCERS)
        .map(|number| {
            let (kafka, sent_batch, acked) =
                (node.kafka().to_owned(), sent_batch.clone(), Arc::clone(&acked));
            tokio::spawn(async move {
                let mut wire = Wire::connect(&kafka).await;
                let partition = i32::try_from(number).unwrap();
                wire.produce(TOPIC, partition, &sent_batch).await;
                let mut flight = std::collections::VecDeque::new();
                while Instant::now() < begins + lasts {
                    while flight.len() < IN_FLIGHT {
                        flight.push_back(
                            wire.send_produce(TOPIC, &[(partition, sent_batch.clone())]).await.unwrap(),
                        );
                    }
                    let first = flight.pop_front().expect("filled above");
                    let answers = wire.receive_produce(first, SOON).await.unwrap();
                    assert_eq!(answers[0].code, 0, "{answers:?}");
                    if Instant::now() >= begins {
                        acked[number].fetch_add(1, Ordering::Relaxed);
                    }
                }
                while let Some(sent) = flight.pop_front() {
                    wire.receive_produce(sent, SOON).await.unwrap();
                }
            })
        })
        .collect();
    for producer in producers {
        producer.await.unwrap();
    }
    let shares: Vec<u64> = acked.iter().map(|count| count.load(Ordering::Relaxed)).collect();
    let (least, most) = (*shares.iter().min().unwrap(), *shares.iter().max().unwrap());
    eprintln!(
        "batches of 16 KB in {lasts:?}: {least} to {most} a partition, {} in all",
        shares.iter().sum::<u64>()
    );
    assert!(least > 0 && least * 10 >= most * 8, "{shares:?}");
    node.stop(SOON).await.unwrap();
}

/// P-26: what a fetch costs does not grow with how far behind its reader is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn p_26_a_fetch_costs_the_same_at_the_start_and_at_the_end_of_a_long_log() {
    const WRITERS: usize = 20;
    const IN_FLIGHT: usize = 50;
    const FETCHED: usize = 1 << 20;
    const ROUNDS: usize = 15;
    let folder = Folder::new();
    let mut node = node(&folder).start().await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    wire.create_topic(TOPIC, 1).await;
    let count = if is_long() { 1_000_000 } else { 20_000 };
    // A batch of one record each.
    let sent_batch = batch([vec![b'x'; 200]], None);
    wire.produce(TOPIC, 0, &sent_batch).await;
    let writers: Vec<_> = (0..WRITERS)
        .map(|_| {
            let (kafka, sent_batch) = (node.kafka().to_owned(), sent_batch.clone());
            tokio::spawn(async move {
                let mut wire = Wire::connect(&kafka).await;
                for _ in 0..count / WRITERS / IN_FLIGHT {
                    let mut flight = Vec::with_capacity(IN_FLIGHT);
                    for _ in 0..IN_FLIGHT {
                        flight.push(wire.send_produce(TOPIC, &[(0, sent_batch.clone())]).await.unwrap());
                    }
                    for sent in flight {
                        let answers = wire.receive_produce(sent, SOON).await.unwrap();
                        assert_eq!(answers[0].code, 0, "{answers:?}");
                    }
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    // Nothing is to be read out of the memory of the process that wrote it. One that ends flushes first.
    node.stop(SOON).await.unwrap();
    node.restart().await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    let end = wire.fetch_open(TOPIC, 0, i64::try_from(count).unwrap()).await.high_watermark;
    assert!(end > i64::try_from(count).unwrap());
    let near = end - i64::try_from(FETCHED / 200).unwrap() - 1;
    let mut best = [Duration::MAX; 2];
    let mut requests = [0; 2];
    for round in 0..ROUNDS {
        for (at, offset) in [0, near].into_iter().enumerate() {
            let before = store_requests(node.http()).await;
            let began = Instant::now();
            let bytes = fetch(&mut wire, offset, FETCHED).await;
            best[at] = best[at].min(began.elapsed());
            assert!(bytes > FETCHED / 2, "{bytes} bytes from {offset} on");
            if round == 0 {
                requests[at] = store_requests(node.http()).await - before;
            }
        }
    }
    eprintln!(
        "{count} batches: {best:?} at the start and near the end, {requests:?} requests to the store the first time"
    );
    let ratio = best[0].max(best[1]).as_secs_f64() / best[0].min(best[1]).as_secs_f64();
    assert!(ratio <= 1.5, "{best:?}");
    assert!(requests[0].abs_diff(requests[1]) <= 4, "{requests:?}");
    node.stop(SOON).await.unwrap();
}

/// How many bytes of batches a fetch of so many at most gives.
async fn fetch(wire: &mut Wire, offset: i64, bytes_max: usize) -> usize {
    let bytes_max = i32::try_from(bytes_max).unwrap();
    let request = FetchRequest {
        max_wait_ms: 0,
        min_bytes: 1,
        max_bytes: bytes_max,
        session_epoch: -1,
        topics: vec![FetchTopic {
            topic: TOPIC.into(),
            partitions: vec![FetchPartition {
                partition: 0,
                current_leader_epoch: -1,
                fetch_offset: offset,
                last_fetched_epoch: -1,
                partition_max_bytes: bytes_max,
                ..FetchPartition::default()
            }],
            ..FetchTopic::default()
        }],
        ..FetchRequest::default()
    };
    let answer = wire.call(FETCH, &request).await.unwrap();
    let part = answer.responses.into_iter().flat_map(|topic| topic.partitions).next().unwrap();
    assert_eq!(part.error_code, 0, "{part:?}");
    part.records.map(Records::into_bytes).unwrap_or_default().len()
}
