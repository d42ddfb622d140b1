//! A start after a crash is ready within a second, however much is committed, at a store whose GET takes 50 ms.
//!
//! The short form commits 128 MiB; `MINK_E2E_LONG=1` commits 10 GiB (`MINK_BIN` should name a release build then).

use std::ops::RangeInclusive;
use std::time::Duration;

use mink_testkit::node::{NodeConfig, binary};
use mink_testkit::process::{Launch, Output};

use crate::bench::{Counters, Produce, produce};
use crate::setup::{self, Folder, flushed, status, until};
use crate::wire::SOON;

const MIB: u64 = 1 << 20;
const PARTITIONS: u32 = 16;
const READY_WITHIN: Duration = Duration::from_secs(1);
/// The short form shares two cores with other tests, and its build is not for speed.
const READY_WITHIN_SHORT: Duration = Duration::from_secs(3);

fn committed_bytes() -> u64 {
    if setup::is_long() { 10_240 * MIB } else { 128 * MIB }
}

const RECORD_BYTES: u64 = 16 << 10;
/// What is left in the WAL: just below where a flush would begin.
const UNTRIMMED_BYTES: u64 = 63 * MIB;

/// WAL objects of the long kind.
const LONG_OBJECTS: u64 = 8;
/// Longest batch of the topic that is left in the WAL: one that fills a long object, and its framing.
const BATCH_BYTES_MAX: u64 = 8 * MIB;

/// What is committed before the crash.
fn load(topic: &str, bytes: u64) -> Produce<'_> {
    Produce {
        topic,
        partitions: PARTITIONS,
        connections: 2,
        in_flight: 5,
        record_bytes: RECORD_BYTES,
        // Eight records and their framing.
        batch_bytes: 132 << 10,
        records: bytes / RECORD_BYTES,
        rate: None,
    }
}

/// Batch after batch, so that each becomes a WAL object: nothing else is in flight when it comes.
fn one_by_one(topic: &str, bytes: u64) -> Produce<'_> {
    Produce { partitions: 1, connections: 1, in_flight: 1, ..load(topic, bytes) }
}

/// A topic that takes such batches.
async fn create_topic(folder: &Folder, http: &str, topic: &str) {
    let mut create = Launch::new("mink-table", binary("mink").unwrap())
        .log_dir(folder.join("logs"))
        .args(["table", "create", &format!("kafka.{topic}"), "--partitions", "1"])
        .args([
            "--option",
            &format!("max.message.bytes={BATCH_BYTES_MAX}"),
            "--addr",
            &format!("http://{http}"),
        ])
        .start()
        .unwrap();
    let status = create.wait(SOON).await.unwrap();
    assert!(status.success(), "{}", create.text(Output::Stderr).unwrap());
}

/// Records of all topics, by the node's high watermarks.
async fn records(http: &str) -> u64 {
    let status = status(http).await;
    let buckets = status["buckets"].as_array().unwrap();
    buckets.iter().map(|bucket| bucket["high_watermark"].as_u64().unwrap()).sum()
}

/// Commits, leaves about 64 MiB of WAL untrimmed as so many objects, crashes, and starts.
async fn starts_fast(left_behind: Produce<'_>, objects: RangeInclusive<u64>) {
    let folder = Folder::new();
    let store = |name: &str, query: &str| format!("file://{}{query}", folder.join(name).display());
    let config = |storage: &str, wal: &str| -> NodeConfig {
        setup::node(&folder).flag("--memory", "1GiB").storage(storage).flag("--wal-storage", wal)
    };
    let mut node =
        config(&store("objects", ""), &store("wal", "")).flag("--wal-flush-age", "2s").start().await.unwrap();
    produce(&folder, node.kafka(), node.http(), load("committed", committed_bytes())).await;
    flushed(node.http(), Duration::from_mins(2)).await;
    node.stop(SOON).await.unwrap();

    // A store of stream objects that does not get on: what is written now stays in the WAL.
    let stuck =
        config(&store("objects", "?put-latency=60s"), &store("wal", "")).flag("--wal-flush-age", "60s");
    node.restart_as(stuck).await.unwrap();
    create_topic(&folder, node.http(), left_behind.topic).await;
    produce(&folder, node.kafka(), node.http(), left_behind).await;
    let before = status(node.http()).await;
    let left = before["wal_untrimmed_objects"].as_u64().unwrap();
    assert!(objects.contains(&left), "{left} objects instead of {objects:?}");
    node.process().kill9().await.unwrap();

    let far = "?get-latency=50ms&put-latency=50ms";
    node.restart_as(config(&store("objects", far), &store("wal", far))).await.unwrap();
    let after = Counters::of(node.http()).await;
    println!(
        "{} MiB committed, {left} WAL objects: ready after {:?}, {} GET, {} LIST, {} PUT",
        committed_bytes() / MIB,
        node.ready_after(),
        after.gets,
        after.lists,
        after.puts
    );
    let bound = if setup::is_long() { READY_WITHIN } else { READY_WITHIN_SHORT };
    assert!(node.ready_after() < bound, "{:?}", node.ready_after());
    assert_eq!(records(node.http()).await, committed_bytes() / RECORD_BYTES + left_behind.records);
    until("all buckets are open", SOON, || async {
        let status = status(node.http()).await;
        (status["not_ready"].as_array().is_some_and(Vec::is_empty)).then_some(())
    })
    .await;
    node.stop(Duration::from_mins(1)).await.unwrap();
}

#[tokio::test]
async fn with_few_long_wal_objects() {
    let record_bytes = UNTRIMMED_BYTES / LONG_OBJECTS;
    let left = Produce {
        record_bytes,
        batch_bytes: BATCH_BYTES_MAX,
        records: LONG_OBJECTS,
        ..one_by_one("left", 0)
    };
    starts_fast(left, LONG_OBJECTS..=LONG_OBJECTS).await;
}

#[tokio::test]
async fn with_many_short_wal_objects() {
    starts_fast(one_by_one("left", UNTRIMMED_BYTES), 400..=512).await;
}
