//! I20: floods of connections, of frames that do not come, of requests whose answers nobody takes, of large fetches and of batches that
//! inflate a thousandfold: memory stays within `--memory`, and a client that behaves is served meanwhile.
//!
//! Some seconds and a hundred connections for each; with `MINK_E2E_LONG=1` a minute and a thousand.

mod attacks;
mod bomb;
mod watch;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use mink_kafka_wire::messages::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use mink_kafka_wire::messages::metadata::MetadataRequest;
use mink_kafka_wire::{ErrorCode, encode_request};
use mink_record::kafka::{BatchBuilder, Codec, RecordRef};
use tokio::task::JoinSet;

use crate::setup::{self, Folder};
use crate::wire::{SOON, Wire, batch};
use attacks::{ask_and_read, come_and_go, come_anew, drip, hold, hold_narrow, large_fetch};
use watch::{FIXED_MIB, Flooded, MEMORY_MIB, TOPIC, start};

/// What is there to be fetched.
const BACKLOG_BATCHES: usize = 24;

const TIMESTAMP: i64 = 1_700_000_000_000;

/// How many connections a flood has.
fn many() -> usize {
    if setup::is_long() { 1_000 } else { 100 }
}

/// The beginning of a Produce that says it has so many bytes.
fn begin(declared: i32, sent: usize) -> Bytes {
    let mut bytes = declared.to_be_bytes().to_vec();
    bytes.extend_from_slice(&[0, 0, 0, 9]);
    bytes.resize(8 + sent, 0);
    bytes.into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i20_k_30_frames_that_do_not_come_keep_nobody_waiting() {
    let folder = Folder::new();
    let mut flooded = start(&folder).await;
    // Small and large frames, of which almost nothing, a beginning, or much comes.
    let declared = |n: usize| if n.is_multiple_of(2) { 2 << 20 } else { 20 << 20 };
    for (name, sent) in [("10 bytes of a frame", 10), ("10 KB", 10_000), ("200 KB", 200_000)] {
        let attack = |kafka, n, flooding| hold(kafka, begin(declared(n), sent), flooding);
        flooded.flood(name, many(), attack).await;
    }
    flooded.node.stop(SOON).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i20_frames_that_come_a_byte_at_a_time_keep_nobody_waiting() {
    let folder = Folder::new();
    let mut flooded = start(&folder).await;
    let attack = |kafka, n, flooding| {
        let at_once = [0, 100, 20_000, 100_000][n % 4];
        drip(kafka, begin(1 << 20, 1 << 20), at_once, flooding)
    };
    flooded.flood("a byte at a time", many(), attack).await;
    flooded.node.stop(SOON).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i20_a_flood_of_connections_and_of_pipelined_requests_keeps_nobody_waiting() {
    let folder = Folder::new();
    let mut flooded = start(&folder).await;
    flooded.flood("connections", 8, |kafka, _, flooding| come_and_go(kafka, flooding)).await;
    let all = MetadataRequest { topics: None, ..MetadataRequest::default() };
    let requests = Bytes::from(encode_request(9, 1, None, &all).unwrap().to_bytes().repeat(20_000));
    flooded.flood("pipelines", many(), |kafka, _, flooding| hold(kafka, requests.clone(), flooding)).await;
    flooded.node.stop(SOON).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i20_many_large_fetches_stay_within_the_memory_taken_or_not() {
    let folder = Folder::new();
    let mut flooded = start(&folder).await;
    let large = batch((0..256).map(|n| format!("{n:08}").repeat(510)), None);
    for _ in 0..BACKLOG_BATCHES {
        flooded.good.produce(TOPIC, 0, &large).await;
    }
    let fetch = large_fetch(TOPIC);
    let four = Bytes::from(fetch.repeat(4));
    let not_taken = |kafka, _, flooding| hold(kafka, four.clone(), flooding);
    flooded.flood("fetches that nobody takes", many(), not_taken).await;
    let taken = |kafka, _, flooding| ask_and_read(kafka, fetch.clone(), flooding);
    flooded.flood("fetches that are taken", many(), taken).await;
    flooded.node.stop(SOON).await.unwrap();
}

/// Fetches in a row are small, and but for the last their answers are with the system: what others ask for must wait for none of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i20_fetches_in_a_row_that_nobody_takes_keep_no_new_client_waiting() {
    /// Four requests of a new client.
    const NEW_WITHIN: Duration = Duration::from_secs(2);
    let folder = Folder::new();
    let mut flooded = start(&folder).await;
    let large = batch((0..256).map(|n| format!("{n:08}").repeat(510)), None);
    for _ in 0..BACKLOG_BATCHES {
        flooded.good.produce(TOPIC, 0, &large).await;
    }
    let four = Bytes::from(large_fetch(TOPIC).repeat(4));
    let slowest = Arc::new(Mutex::new(Duration::ZERO));
    let attack = |kafka, n, flooding| {
        let (four, slowest) = (four.clone(), Arc::clone(&slowest));
        async move {
            if n > 0 {
                return hold_narrow(kafka, four, flooding).await;
            }
            let took = come_anew(kafka, TOPIC, flooding).await;
            *slowest.lock().unwrap() = took;
        }
    };
    flooded.flood("fetches in a row", many(), attack).await;
    let slowest = *slowest.lock().unwrap();
    println!("new clients: slowest {slowest:.1?}");
    assert!(slowest > Duration::ZERO && slowest <= NEW_WITHIN, "{slowest:?}");
    flooded.node.stop(SOON).await.unwrap();
}

/// A batch of some KiB whose one record inflates to so many bytes.
fn bomb(codec: Codec, bytes: usize) -> Bytes {
    let value = vec![0; bytes];
    let mut builder = BatchBuilder::new();
    let record = RecordRef { timestamp: TIMESTAMP, key: None, value: Some(&value), headers: &[] };
    builder.push(record).unwrap();
    builder.build(codec, None).unwrap()
}

/// A search by time is what inflates.
fn search_by_time(topic: &str) -> ListOffsetsRequest {
    let partition =
        ListOffsetsPartition { timestamp: TIMESTAMP, current_leader_epoch: -1, ..Default::default() };
    ListOffsetsRequest {
        replica_id: -1,
        topics: vec![ListOffsetsTopic { name: topic.into(), partitions: vec![partition] }],
        ..ListOffsetsRequest::default()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i20_k_29_batches_that_inflate_a_thousandfold_stay_within_the_memory() {
    let folder = Folder::new();
    let mut flooded = start(&folder).await;
    for codec in [Codec::Gzip, Codec::Zstd, Codec::Lz4] {
        // Beyond what one batch may inflate to, and below it.
        for bytes in [100 << 20, 15 << 20] {
            flooded.good.produce(TOPIC, 0, &bomb(codec, bytes)).await;
        }
    }
    let search = search_by_time(TOPIC);
    let search = encode_request(7, 1, None, &search).unwrap().to_bytes();
    let attack = |kafka, _, flooding| ask_and_read(kafka, search.clone(), flooding);
    flooded.flood("bombs", many() / 5, attack).await;
    flooded.node.stop(SOON).await.unwrap();
}

/// Compressed a thousandfold and more, one and a hundred at once: refused, or stored and never opened as a whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k_29_a_batch_of_1_mib_that_inflates_to_4_gib_takes_no_memory() {
    const PARALLEL: usize = 100;
    const GROWTH_MIB: u64 = 64;
    let folder = Folder::new();
    let Flooded { mut node, mut good } = start(&folder).await;
    let bomb = bomb::batch_of_4_gib(TIMESTAMP);
    assert!(((1 << 20) - 1_000..1 << 20).contains(&bomb.len()), "{}", bomb.len());
    good.create_topic("bombs", 4).await;
    good.create_topic_with("keyed", 1, &[("cleanup.policy", "compact")]).await;
    good.produce("keyed", 0, &keyed(TIMESTAMP)).await;
    let id = node.process().id();
    let (before, _) = setup::resident_kib(id);
    // A topic that is not opened takes it as it is, and searches by time look into it.
    good.produce("bombs", 0, &bomb).await;
    let search = search_by_time("bombs");
    good.call(7, &search).await.unwrap();
    // A topic that must know its keys refuses it.
    let refused = good.try_produce("keyed", 0, &bomb).await.unwrap();
    let codes = [ErrorCode::MessageTooLarge, ErrorCode::CorruptMessage, ErrorCode::InvalidRecord];
    assert!(codes.iter().any(|code| code.code() == refused.code), "{refused:?}");
    let (_, most) = setup::resident_kib(id);
    println!("one: {} MiB before, at most {} MiB", before >> 10, most >> 10);
    assert!(most <= before + (GROWTH_MIB << 10), "{} MiB more", (most - before) >> 10);
    let mut many = JoinSet::new();
    for _ in 0..PARALLEL {
        let (kafka, bomb, search) = (node.kafka().to_owned(), bomb.clone(), search.clone());
        many.spawn(async move {
            let mut wire = Wire::connect(&kafka).await;
            let refused = wire.try_produce("keyed", 0, &bomb).await.unwrap();
            assert_ne!(refused.code, 0);
            wire.call(7, &search).await.unwrap();
        });
    }
    many.join_all().await;
    let (_, most) = setup::resident_kib(id);
    println!("a hundred: at most {} MiB", most >> 10);
    assert!(most >> 10 <= MEMORY_MIB + FIXED_MIB, "{} MiB", most >> 10);
    good.produce(TOPIC, 1, &batch(["served"], None)).await;
    node.stop(SOON).await.unwrap();
}

/// A batch of one record with a key.
fn keyed(timestamp: i64) -> Bytes {
    let mut builder = BatchBuilder::new();
    let record = RecordRef { timestamp, key: Some(b"k"), value: Some(b"v"), headers: &[] };
    builder.push(record).unwrap();
    builder.build(Codec::None, None).unwrap()
}
