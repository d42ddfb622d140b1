//! Large batches from many connections, readers that do not take what they ask for, readers far behind: the bound holds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::{FIXED_MIB, large_batch, parts, resident};
use crate::setup::{self, Folder};
use crate::wire::{SOON, Wire};

const MEMORY_MIB: u64 = 256;
const PARTITIONS: i32 = 8;
const PRODUCERS: usize = 24;
const PIPELINED: usize = 4;
const SLOW_READERS: usize = 16;
const CATCH_UP_READERS: usize = 4;
const BYTES: usize = 1 << 20;
const TOPIC: &str = "loaded";

/// Produces until told to stop; every batch must be taken.
async fn producer(kafka: String, partition: i32, stop: Arc<AtomicBool>, acked: Arc<AtomicU64>) {
    let mut wire = Wire::connect(&kafka).await;
    let records = large_batch(BYTES);
    while !stop.load(Ordering::Relaxed) {
        let mut waiting = Vec::new();
        for _ in 0..PIPELINED {
            waiting.push(wire.send_produce(TOPIC, &[(partition, records.clone())]).await.unwrap());
        }
        for sent in waiting {
            let answers = wire.receive_produce(sent, SOON * 2).await.unwrap();
            assert_eq!(answers[0].code, 0, "{answers:?}");
            acked.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Asks for as much as there is and takes nothing, until its connection ends; then again.
async fn slow_reader(kafka: String, partition: i32, stop: Arc<AtomicBool>) {
    while !stop.load(Ordering::Relaxed) {
        let mut wire = Wire::connect(&kafka).await;
        for _ in 0..4 {
            if wire.send_fetch(TOPIC, partition, 0, Duration::from_secs(1)).await.is_err() {
                break;
            }
        }
        for _ in 0..50 {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

/// Reads from the start to the end, again and again.
async fn catch_up_reader(kafka: String, partition: i32, stop: Arc<AtomicBool>, read: Arc<AtomicU64>) {
    let mut wire = Wire::connect(&kafka).await;
    let mut from = 0;
    while !stop.load(Ordering::Relaxed) {
        let fetched = wire.fetch_open(TOPIC, partition, from).await;
        assert_eq!(fetched.code, 0, "{fetched:?}");
        read.fetch_add(fetched.records.len() as u64, Ordering::Relaxed);
        from = fetched.records.last().map_or(0, |(offset, _)| offset + 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i20_the_bound_holds_under_load() {
    let lasts = Duration::from_secs(if setup::is_long() { 120 } else { 20 });
    let folder = Folder::new();
    let config = setup::node(&folder).flag("--memory", &format!("{MEMORY_MIB}MiB")).flag("--shards", "2");
    let config = config.allow_line("write_deadline");
    let mut node = config.start().await.unwrap();
    Wire::connect(node.kafka()).await.create_topic(TOPIC, PARTITIONS).await;
    Wire::connect(node.kafka()).await.produce(TOPIC, 0, &large_batch(BYTES)).await;
    let before = resident(&mut node);
    let stop = Arc::new(AtomicBool::new(false));
    let (acked, read) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut clients = JoinSet::new();
    let partition = |n: usize| i32::try_from(n).unwrap() % PARTITIONS;
    for n in 0..PRODUCERS {
        let (kafka, stop) = (node.kafka().to_owned(), Arc::clone(&stop));
        clients.spawn(producer(kafka, partition(n), stop, Arc::clone(&acked)));
    }
    for n in 0..SLOW_READERS {
        clients.spawn(slow_reader(node.kafka().to_owned(), partition(n), Arc::clone(&stop)));
    }
    for n in 0..CATCH_UP_READERS {
        let (kafka, stop) = (node.kafka().to_owned(), Arc::clone(&stop));
        clients.spawn(catch_up_reader(kafka, partition(n), stop, Arc::clone(&read)));
    }
    let (began, mut most, mut held) = (Instant::now(), 0, String::new());
    while began.elapsed() < lasts {
        let now = resident(&mut node);
        if now > most + most / 50 {
            held = parts(&node).await;
        }
        most = most.max(now);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    stop.store(true, Ordering::Relaxed);
    while let Some(ended) = clients.join_next().await {
        ended.unwrap();
    }
    let (acked, read) = (acked.load(Ordering::Relaxed), read.load(Ordering::Relaxed));
    println!(
        "--memory {MEMORY_MIB}MiB: {} MiB before, at most {} MiB, {} MiB after; {acked} batches of 1 MiB acked, {read} records read; at the most: {held}; after: {}",
        before >> 10,
        most >> 10,
        resident(&mut node) >> 10,
        parts(&node).await
    );
    assert!(acked > 0 && read > 0);
    assert!(most >> 10 <= MEMORY_MIB + FIXED_MIB, "{} MiB", most >> 10);
    node.stop(SOON).await.unwrap();
}
