//! T-1: a crash at each point between an append and its ack, and around a flush's commit, takes nothing that was acked.

use std::time::Duration;

use mink_testkit::process::Output;

use crate::setup::{self, Folder};
use crate::wire::{SOON, Wire, batch, values};

const BATCHES: usize = 10;
const RECORDS_PER_BATCH: usize = 100;
const TOPIC: &str = "t";

/// Appends batch after batch until the node dies or all are acked; gives how many batches were acked.
async fn append(wire: &mut Wire) -> usize {
    for number in 0..BATCHES {
        let first = number * RECORDS_PER_BATCH;
        let records = batch(values("id", first..first + RECORDS_PER_BATCH), None);
        match wire.try_produce(TOPIC, 0, &records).await {
            Ok(answer) => {
                let place = (answer.code, answer.offset);
                assert_eq!(place, (0, i64::try_from(first).unwrap()), "batch {number}");
            }
            Err(_) => return number,
        }
    }
    BATCHES
}

/// What a node that starts after the crash reads: all that was acked, and at most the one batch whose ack was under way.
async fn crash_at(point: &str) {
    let folder = Folder::new();
    let config = setup::node(&folder).flag("--wal-flush-age", "300ms");
    let crashing = config.clone().fail_points(point).allow_line("fail point");
    let mut node = crashing.start_on_fixed_ports().await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    wire.create_topic(TOPIC, 1).await;
    let acked = append(&mut wire).await;
    if point.is_empty() {
        node.process().kill9().await.unwrap();
    } else {
        let status = node.process().wait(SOON).await.unwrap();
        assert!(!status.success(), "{point} must end the node");
        let log = node.process().text(Output::Stderr).unwrap();
        assert!(log.contains("fail point"), "the node died of something else:\n{log}");
    }
    let listen = node.kafka().to_owned();
    node.restart_as(config.flag("--kafka-listen", &listen)).await.unwrap();
    let read = Wire::connect(node.kafka()).await.read_all(TOPIC, 0).await;
    println!("{point}: {acked} batches acked, {} records read", read.len());
    assert!(read.len() >= acked * RECORDS_PER_BATCH, "acked records are cut off");
    assert!(read.len() <= (acked + 1) * RECORDS_PER_BATCH);
    assert_eq!(read, values("id", 0..read.len()));
    // And the log goes on where it ended.
    let end = i64::try_from(read.len()).unwrap();
    let next = Wire::connect(node.kafka()).await.produce(TOPIC, 0, &batch(["next"], None)).await;
    assert_eq!(next, end);
    node.stop(SOON).await.unwrap();
}

#[tokio::test]
async fn t_1_a_kill_right_after_the_last_ack() {
    crash_at("").await;
}

#[tokio::test]
async fn t_1_a_crash_before_the_put() {
    crash_at("wal.put.before=abort@4").await;
}

#[tokio::test]
async fn t_1_a_crash_between_the_put_and_the_ack() {
    crash_at("wal.put.after=abort@4").await;
}

#[tokio::test]
async fn t_1_a_crash_between_a_flush_and_its_commit() {
    crash_at("commit.before=abort").await;
}

#[tokio::test]
async fn t_1_crash_after_crash_in_one_directory() {
    let folder = Folder::new();
    let config = setup::node(&folder).flag("--wal-flush-age", "300ms");
    let mut node = config.start_on_fixed_ports().await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    wire.create_topic(TOPIC, 1).await;
    let mut written = Vec::new();
    for life in 0..8 {
        let records = values(&format!("life {life}"), 0..10);
        let offset = wire.produce(TOPIC, 0, &batch(&records, None)).await;
        assert_eq!(offset, i64::try_from(written.len()).unwrap());
        written.extend(records);
        if life % 2 == 1 {
            // Each second crash meets a chain without uncommitted objects.
            setup::flushed(node.http(), Duration::from_secs(20)).await;
        }
        node.crash_and_restart().await.unwrap();
        wire = Wire::connect(node.kafka()).await;
        assert_eq!(wire.read_all(TOPIC, 0).await, written);
    }
}
