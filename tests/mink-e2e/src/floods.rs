//! I20: floods of connections, of frames that do not come, of requests whose answers nobody takes, of large fetches and of batches that
//! inflate a thousandfold: memory stays within `--memory`, and a client that behaves is served meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use mink_kafka_wire::messages::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use mink_kafka_wire::messages::metadata::MetadataRequest;
use mink_record::kafka::{BatchBuilder, Codec, RecordRef};
use mink_testkit::node::Node;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::setup::{self, Folder};
use crate::wire::{SOON, Wire, batch};

const MEMORY_MIB: u64 = 256;
/// What a process holds beside what `--memory` counts (see `memory`).
const FIXED_MIB: u64 = 64;
/// In which a produce and a fetch of the client that behaves are answered, whatever the flood.
const SERVED_WITHIN: Duration = Duration::from_secs(15);
const TOPIC: &str = "flooded";
/// What is there to be fetched.
const BACKLOG_BATCHES: usize = 24;

/// How long one flood lasts, and how many connections it has.
fn lasts() -> Duration {
    Duration::from_secs(if setup::is_long() { 60 } else { 4 })
}

fn many() -> usize {
    if setup::is_long() { 1_000 } else { 100 }
}

async fn start(folder: &Folder) -> (Node, Wire) {
    let config = setup::node(folder)
        .flag("--memory", &format!("{MEMORY_MIB}MiB"))
        .allow_line("kafka connection closed")
        .allow_line("too many kafka connections");
    let node = config.start().await.unwrap();
    let mut good = Wire::connect(node.kafka()).await;
    good.create_topic(TOPIC, 2).await;
    good.produce(TOPIC, 1, &batch(["first"], None)).await;
    (node, good)
}

/// Produces and fetches until the flood is over. The longest that one round took.
async fn behave(good: &mut Wire, flooding: &AtomicBool) -> Duration {
    let mut slowest = Duration::ZERO;
    let (ends, mut rounds) = (Instant::now() + lasts(), 0);
    while Instant::now() < ends || rounds == 0 {
        let began = Instant::now();
        let offset = good.produce(TOPIC, 1, &batch([format!("round {rounds}")], None)).await;
        let fetched = good.fetch(TOPIC, 1, offset).await.unwrap();
        assert_eq!(fetched.records.first().map(|(at, _)| *at), Some(offset), "{fetched:?}");
        slowest = slowest.max(began.elapsed());
        rounds += 1;
    }
    flooding.store(false, Ordering::Relaxed);
    println!("{rounds} rounds, the slowest took {slowest:?}");
    slowest
}

/// Runs a flood of so many tasks beside the client that behaves, and looks at both.
async fn flood<F, T>(node: &mut Node, good: &mut Wire, tasks: usize, attack: F)
where
    F: Fn(String, usize, Arc<AtomicBool>) -> T,
    T: Future<Output = ()> + Send + 'static,
{
    let flooding = Arc::new(AtomicBool::new(true));
    let mut attackers = JoinSet::new();
    for n in 0..tasks {
        attackers.spawn(attack(node.kafka().to_owned(), n, Arc::clone(&flooding)));
    }
    let slowest = behave(good, &flooding).await;
    while let Some(ended) = attackers.join_next().await {
        ended.unwrap();
    }
    let (_, most) = setup::resident_kib(node.process().id());
    println!("at most {} MiB resident", most >> 10);
    assert!(slowest <= SERVED_WITHIN, "{slowest:?}");
    assert!(most >> 10 <= MEMORY_MIB + FIXED_MIB, "{} MiB", most >> 10);
}

/// Holds a connection that has sent these bytes until the flood is over or the server closes it; then again.
async fn hold(kafka: String, bytes: Vec<u8>, flooding: Arc<AtomicBool>) {
    while flooding.load(Ordering::Relaxed) {
        let Ok(mut stream) = TcpStream::connect(&kafka).await else { continue };
        // The server may have had enough before all is sent.
        drop(tokio::time::timeout(Duration::from_secs(1), stream.write_all(&bytes)).await);
        while flooding.load(Ordering::Relaxed) {
            let closed = tokio::time::timeout(Duration::from_millis(100), stream.peek(&mut [0])).await;
            if matches!(closed, Ok(Ok(0) | Err(_))) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// The beginning of a Produce that says it has so many bytes.
fn begin(declared: i32, sent: usize) -> Vec<u8> {
    let mut bytes = declared.to_be_bytes().to_vec();
    bytes.extend_from_slice(&[0, 0, 0, 9]);
    bytes.resize(8 + sent, 0);
    bytes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i20_k_30_frames_that_do_not_come_keep_nobody_waiting() {
    let folder = Folder::new();
    let (mut node, mut good) = start(&folder).await;
    flood(&mut node, &mut good, many() * 2, |kafka, n, flooding| {
        // Small and large frames, of which almost nothing or a beginning comes.
        let declared = if n % 2 == 0 { 2 << 20 } else { 20 << 20 };
        hold(kafka, begin(declared, if n % 4 < 2 { 10 } else { 10_000 }), flooding)
    })
    .await;
    node.stop(SOON).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i20_a_flood_of_connections_and_of_pipelined_requests_keeps_nobody_waiting() {
    let folder = Folder::new();
    let (mut node, mut good) = start(&folder).await;
    flood(&mut node, &mut good, 8, |kafka, _, flooding| async move {
        while flooding.load(Ordering::Relaxed) {
            drop(TcpStream::connect(&kafka).await);
            tokio::task::yield_now().await;
        }
    })
    .await;
    let frame =
        mink_kafka_wire::encode_request(9, 1, None, &MetadataRequest { topics: None, ..Default::default() });
    let requests = frame.unwrap().to_bytes().repeat(20_000);
    flood(&mut node, &mut good, many() / 5, |kafka, _, flooding| hold(kafka, requests.clone(), flooding))
        .await;
    node.stop(SOON).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i20_many_large_fetches_that_nobody_takes_stay_within_the_memory() {
    let folder = Folder::new();
    let (mut node, mut good) = start(&folder).await;
    let large = batch((0..256).map(|n| format!("{n:08}").repeat(510)), None);
    for _ in 0..BACKLOG_BATCHES {
        good.produce(TOPIC, 0, &large).await;
    }
    flood(&mut node, &mut good, many(), |kafka, _, flooding| async move {
        while flooding.load(Ordering::Relaxed) {
            let mut wire = Wire::connect(&kafka).await;
            for _ in 0..4 {
                if wire.send_fetch(TOPIC, 0, 0, Duration::from_secs(1)).await.is_err() {
                    break;
                }
            }
            for _ in 0..40 {
                if flooding.load(Ordering::Relaxed) {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    })
    .await;
    node.stop(SOON).await.unwrap();
}

/// A batch of some KiB whose one record inflates to so many bytes.
fn bomb(codec: Codec, bytes: usize) -> Bytes {
    let value = vec![0; bytes];
    let mut builder = BatchBuilder::new();
    let record = RecordRef { timestamp: 1_700_000_000_000, key: None, value: Some(&value), headers: &[] };
    builder.push(record).unwrap();
    builder.build(codec, None).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i20_k_29_batches_that_inflate_a_thousandfold_stay_within_the_memory() {
    let folder = Folder::new();
    let (mut node, mut good) = start(&folder).await;
    for codec in [Codec::Gzip, Codec::Zstd, Codec::Lz4] {
        // Beyond what one batch may inflate to, and below it.
        for bytes in [100 << 20, 15 << 20] {
            good.produce(TOPIC, 0, &bomb(codec, bytes)).await;
        }
    }
    flood(&mut node, &mut good, many() / 5, |kafka, _, flooding| async move {
        // A search by time is what inflates.
        let request = ListOffsetsRequest {
            replica_id: -1,
            topics: vec![ListOffsetsTopic {
                name: TOPIC.into(),
                partitions: vec![ListOffsetsPartition {
                    timestamp: 1_700_000_000_000,
                    current_leader_epoch: -1,
                    ..Default::default()
                }],
            }],
            ..Default::default()
        };
        while flooding.load(Ordering::Relaxed) {
            let mut wire = Wire::connect(&kafka).await;
            while flooding.load(Ordering::Relaxed) && wire.call(7, &request).await.is_ok() {}
        }
    })
    .await;
    node.stop(SOON).await.unwrap();
}
