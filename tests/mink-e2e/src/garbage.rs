//! What nobody needs any more leaves the store within a bounded time, and nothing else does: orphans, dead chains, what readers still read.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mink_testkit::http;

use crate::setup::{self, Folder, until, wal_objects};
use crate::wire::{SOON, Wire, batch, values};

const TOPIC: &str = "t";

/// The folders of chains below `mink/<kind>`.
fn chains(store: &Path, kind: &str) -> BTreeSet<PathBuf> {
    let objects = setup::objects(&store.join("mink").join(kind));
    objects.iter().filter_map(|path| path.parent()).map(Path::to_owned).collect()
}

async fn metric(address: &str, name: &str) -> f64 {
    http::get(address, "/metrics").await.unwrap().metric_sum(name)
}

#[tokio::test]
async fn k_8_orphans_of_a_dead_chain_go_all_of_them_and_its_seal_alone_stays() {
    let folder = Folder::new();
    let store = folder.join("data").join("objects");
    let config = setup::node(&folder).flag("--wal-flush-age", "200ms").flag("--deletion-grace", "1s");
    let mut node = config.start().await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    wire.create_topic(TOPIC, 2).await;
    wire.produce(TOPIC, 0, &batch(values("kept", 0..100), None)).await;
    setup::flushed(node.http(), SOON).await;
    wire.produce(TOPIC, 1, &batch(values("adopted", 0..100), None)).await;
    let [wal, stream] = ["wal", "stream"].map(|kind| chains(&store, kind).first().unwrap().clone());
    node.process().kill9().await.unwrap();
    // What a writer of that life might have left: uploads that were never committed, PUTs that landed behind the seal.
    for number in 1_000..3_500 {
        std::fs::write(stream.join(format!("{number:020}")), b"orphan").unwrap();
    }
    for number in 1_000..1_010 {
        std::fs::write(wal.join(format!("{number:020}")), b"orphan").unwrap();
    }
    node.restart().await.unwrap();
    let alone = |folder: &Path, most: usize| setup::objects(folder).len() <= most;
    until("the orphans are gone", SOON, || async {
        // Of the WAL the seal and what was adopted, of the stream what is referred to.
        (alone(&stream, 1) && alone(&wal, 3)).then_some(())
    })
    .await;
    let mut wire = Wire::connect(node.kafka()).await;
    assert_eq!(wire.read_all(TOPIC, 0).await, values("kept", 0..100));
    assert_eq!(wire.read_all(TOPIC, 1).await, values("adopted", 0..100));
    assert_eq!(wire.delete_topic(TOPIC).await, 0);
    until("the seal alone is left", SOON, || async { (alone(&stream, 0) && alone(&wal, 1)).then_some(()) })
        .await;
    assert!(metric(node.http(), "mink_garbage_swept_total").await >= 2_510.0);
    assert_eq!(setup::objects(&wal).len(), 1, "K-1: a seal is never deleted");
    node.stop(SOON).await.unwrap();
}

#[tokio::test]
async fn i14_lives_and_rounds_of_data_leave_no_more_than_a_seal_each() {
    let folder = Folder::new();
    let store = folder.join("data").join("objects");
    let config = setup::node(&folder).flag("--wal-flush-age", "100ms").flag("--deletion-grace", "300ms");
    let mut node = config.start().await.unwrap();
    let lives = if setup::is_long() { 20 } else { 4 };
    for life in 0..lives {
        let mut wire = Wire::connect(node.kafka()).await;
        for round in 0..5 {
            let topic = format!("t{round}");
            wire.create_topic(&topic, 2).await;
            for _ in 0..3 {
                wire.produce(&topic, 0, &batch(values("r", 0..100), None)).await;
                setup::flushed(node.http(), SOON).await;
                wire.produce(&topic, 1, &batch(values("r", 0..100), None)).await;
            }
            assert_eq!(wire.delete_topic(&topic).await, 0);
        }
        if life + 1 < lives {
            node.crash_and_restart().await.unwrap();
        }
    }
    until("a seal for each dead life, an anchor for the living one, and nothing else", SOON, || async {
        let (wal, stream) = (wal_objects(&store), setup::objects(&store.join("mink").join("stream")));
        (wal.len() <= lives && stream.is_empty()).then_some(())
    })
    .await;
    assert_eq!(wal_objects(&store).len(), lives, "K-1: seals and the anchor stay");
    let temporaries = store.join(".mink-tmp");
    let left: Vec<_> =
        std::fs::read_dir(&temporaries).unwrap().flatten().filter(|entry| entry.path().is_dir()).collect();
    assert_eq!(left.len(), 1, "the living process's own folder: what crashes left was removed at the starts");
    assert_eq!(std::fs::read_dir(left[0].path()).unwrap().count(), 0);
    node.stop(SOON).await.unwrap();
}

/// P-16: a reader goes through a log of many objects while retention and a grace of no time at all take them away beneath it.
#[tokio::test]
async fn p_16_a_reader_never_meets_an_object_that_was_deleted_beneath_it() {
    let folder = Folder::new();
    let config = setup::node(&folder)
        .flag("--memory", "256MiB")
        .flag("--wal-flush-age", "50ms")
        .flag("--deletion-grace", "0s");
    let mut node = config.start().await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    wire.create_topic(TOPIC, 1).await;
    let text = "x".repeat(1_000);
    let address = node.kafka().to_owned();
    let reader = tokio::spawn(async move {
        let mut wire = Wire::connect(&address).await;
        let (mut next, mut end, begun) = (0, i64::MAX, Instant::now());
        while next < end && begun.elapsed() < SOON {
            let found = wire.fetch_open(TOPIC, 0, next).await;
            if found.code == mink_kafka_wire::ErrorCode::OffsetOutOfRange.code() {
                next += 1; // retention was faster: what is kept must still be readable
                continue;
            }
            assert_eq!(found.code, 0, "at {next}: {found:?}");
            for (offset, value) in found.records {
                assert_eq!(offset, next, "nothing is jumped over");
                if value == "end" {
                    end = offset;
                }
                next = offset + 1;
            }
        }
        assert!(next >= end, "the reader came to {next}");
        next
    });
    for round in 0..60 {
        let numbers: Vec<String> = (0..20).map(|number| format!("{round} {number} {text}")).collect();
        wire.produce(TOPIC, 0, &batch(numbers, None)).await;
        setup::flushed(node.http(), SOON).await;
        if round % 5 == 4 {
            let up_to = i64::from(round - 4) * 20;
            crate::retention::forget(&mut wire, TOPIC, 0, up_to).await;
        }
    }
    wire.produce(TOPIC, 0, &batch(["end"], None)).await;
    assert_eq!(reader.await.unwrap(), 1_201);
    until("what went is deleted", Duration::from_secs(30), || async {
        let status = setup::status(node.http()).await;
        (status["pending_deletions"] == 0).then_some(())
    })
    .await;
    node.stop(SOON).await.unwrap();
}
