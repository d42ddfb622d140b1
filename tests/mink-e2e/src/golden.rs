//! Data directories of every format that was released: they open and give back what was written, or are refused in words.
//!
//! `tests/data/golden/make` records the one of the current format anew.

use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use mink_record::kafka::{BatchBuilder, Codec, HeaderRef, ProducerStamp, RecordRef};
use mink_testkit::http;
use mink_testkit::node::Node;
use mink_testkit::ports::PortBlock;
use mink_testkit::process::Output;
use serde_json::{Value, json};

use crate::setup::{self, Folder};
use crate::wire::{SOON, Wire, batch, values};

const TOPIC: &str = "golden";
/// A whole golden directory, in bytes.
const SIZE_MAX: u64 = 200 << 10;
/// The holder's lease stands in the golden database, and whoever opens a copy waits it out.
const LEASE: &str = "2s";

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/golden/v1")
}

/// Copies what makes a data directory: no side file that SQLite makes anew, no half-written object, and no lock, since a lock file's
/// inode proves that its processes are dead.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (entry, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        if ["lock", "lives", "meta.db-shm", ".mink-tmp"].iter().any(|left_out| name == *left_out) {
            continue;
        }
        if entry.is_dir() {
            copy(&entry, &to.join(name));
        } else {
            fs::copy(&entry, to.join(name)).unwrap();
        }
    }
}

/// A copy of the golden directory, and what was recorded of it.
fn taken_out(folder: &Folder) -> Value {
    copy(&golden().join("data"), &folder.join("data"));
    let recorded = fs::read_to_string(golden().join("recorded.json")).unwrap();
    serde_json::from_str(&recorded).unwrap()
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// The idempotent producer's batch `number`, of two records.
fn stamped(producer: &Value, number: i32) -> Bytes {
    let stamp = ProducerStamp {
        id: self::number(&producer["id"]),
        epoch: i16::try_from(self::number(&producer["epoch"])).unwrap(),
        base_sequence: number * 2,
    };
    let first = usize::try_from(number * 2).unwrap();
    batch(values("exact", first..first + 2), Some(stamp))
}

/// A compressed batch, with keys and headers.
fn packed(values: &[String], codec: Codec) -> Bytes {
    let mut builder = BatchBuilder::new();
    for value in values {
        let headers = [HeaderRef { key: "made-by", value: Some(b"golden") }];
        let record = RecordRef {
            timestamp: 1_700_000_000_000,
            key: Some(b"key"),
            value: Some(value.as_bytes()),
            headers: &headers,
        };
        builder.push(record).unwrap();
    }
    builder.build(codec, None).unwrap()
}

async fn check(node: &Node, recorded: &Value) {
    let mut wire = Wire::connect(node.kafka()).await;
    for (partition, values) in (0..).zip(recorded["partitions"].as_array().unwrap()) {
        let found = wire.read_all(TOPIC, partition).await;
        assert_eq!(&json!(found), values, "partition {partition}");
    }
}

#[tokio::test]
async fn i6_the_directory_of_format_1_gives_back_what_was_written() {
    let folder = Folder::new();
    let recorded = taken_out(&folder);
    let ports = PortBlock::reserve().unwrap();
    let http_at = format!("127.0.0.1:{}", ports.port(1));
    let config = setup::node(&folder).flag("--lease-ttl", LEASE).flag("--http-listen", &http_at);
    // The copy proves nothing about the old process, so its lease is waited out; probes are answered meanwhile.
    let waiting = setup::until("the node says what it waits for", SOON, || async {
        let answer = http::get(&http_at, "/readyz").await.ok()?;
        (answer.status == 503 && answer.body.contains("read lease")).then_some(())
    });
    let (node, ()) = tokio::join!(config.start(), waiting);
    let mut node = node.unwrap();
    check(&node, &recorded).await;
    node.crash_and_restart().await.unwrap();
    check(&node, &recorded).await;

    // The producer of then goes on: its last batch is known, its next one is accepted.
    let producer = &recorded["producer"];
    let last = i32::try_from(number(&producer["last_batch"])).unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    let repeat = wire.produce(TOPIC, 0, &stamped(producer, last)).await;
    assert_eq!(repeat, number(&producer["last_offset"]), "stored once");
    let end = recorded["partitions"][0].as_array().unwrap().len();
    let next = wire.produce(TOPIC, 0, &stamped(producer, last + 1)).await;
    assert_eq!(usize::try_from(next).unwrap(), end);
}

/// Starts a node on the golden directory after `change`; it must end with 1 and say what to do.
async fn refused_after(change: impl FnOnce(&Path)) {
    let folder = Folder::new();
    taken_out(&folder);
    change(&folder.join("data"));
    let config = setup::node(&folder).flag("--lease-ttl", LEASE).allow_line("");
    let mut process = config.launch().unwrap();
    let status = process.wait(SOON).await.unwrap();
    let said = process.text(Output::Stderr).unwrap();
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.to_lowercase().contains("upgrade") && !said.contains("panicked"), "{said}");
}

fn put_byte(path: &Path, at: usize, byte: u8) {
    let mut bytes = fs::read(path).unwrap();
    assert_ne!(bytes[at], byte);
    bytes[at] = byte;
    replace(path, &bytes);
}

/// Objects are read-only, so one is made anew.
fn replace(path: &Path, bytes: &[u8]) {
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

#[tokio::test]
async fn a_store_of_a_newer_format_is_refused() {
    refused_after(|data| {
        let path = data.join("objects/mink/identity");
        let text = fs::read_to_string(&path).unwrap();
        replace(&path, text.replace("mink-identity 1", "mink-identity 2").as_bytes());
    })
    .await;
}

/// A node that cannot read what a newer one acked must not take it for damaged, and commit it as lost (I1).
#[tokio::test]
async fn i1_a_wal_object_of_a_newer_format_is_refused() {
    refused_after(|data| {
        let last = setup::wal_objects(&data.join("objects")).pop().unwrap();
        put_byte(&last, 8, 2);
    })
    .await;
}

#[test]
fn the_golden_directory_is_small() {
    let size: u64 = setup::objects(&golden()).iter().map(|file| file.metadata().unwrap().len()).sum();
    assert!(size > 0 && size < SIZE_MAX, "{size} bytes");
}

/// Records `$MINK_GOLDEN_RECORD` anew: one life that was drained, and one that was killed with a part of its data flushed and a part
/// in the WAL alone.
#[tokio::test]
#[ignore = "writes the golden directory: tests/data/golden/make"]
async fn record() {
    let target = PathBuf::from(std::env::var_os("MINK_GOLDEN_RECORD").expect("a directory to write"));
    assert!(!target.exists(), "{} is there already", target.display());
    let folder = Folder::new();
    let config = setup::node(&folder).flag("--lease-ttl", LEASE);
    let mut node = config.clone().start().await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    wire.create_topic(TOPIC, 2).await;
    wire.fetch_open(TOPIC, 0, 0).await;
    wire.fetch_open(TOPIC, 1, 0).await;
    let (id, epoch) = wire.init_producer().await;
    let mut producer = json!({ "id": id, "epoch": epoch });
    wire.produce(TOPIC, 0, &stamped(&producer, 0)).await;
    wire.produce(TOPIC, 1, &batch(values("plain", 0..3), None)).await;
    wire.produce(TOPIC, 0, &packed(&values("lz4", 0..3), Codec::Lz4)).await;
    node.stop(SOON).await.unwrap();

    node.restart_as(config.flag("--wal-flush-age", "3s")).await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    wire.produce(TOPIC, 0, &stamped(&producer, 1)).await;
    wire.produce(TOPIC, 1, &packed(&values("zstd", 0..3), Codec::Zstd)).await;
    setup::flushed(node.http(), SOON).await;
    wire.produce(TOPIC, 0, &packed(&values("gzip", 0..2), Codec::Gzip)).await;
    let last = wire.produce(TOPIC, 0, &stamped(&producer, 2)).await;
    wire.produce(TOPIC, 1, &batch(values("tail", 0..3), None)).await;
    let partitions = [wire.read_all(TOPIC, 0).await, wire.read_all(TOPIC, 1).await];
    node.process().kill9().await.unwrap();

    producer["last_batch"] = json!(2);
    producer["last_offset"] = json!(last);
    copy(node.config().data_dir(), &target.join("data"));
    let recorded = json!({ "topic": TOPIC, "partitions": partitions, "producer": producer });
    fs::write(target.join("recorded.json"), format!("{recorded:#}\n")).unwrap();
    println!("recorded {} files", setup::objects(&target).len());
}
