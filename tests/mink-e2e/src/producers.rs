//! Idempotent producers over crashes: what they sent is stored once, what they send next is accepted (I6), and expiry is decided
//! alike by every owner.

use std::time::Duration;

use mink_kafka_wire::ErrorCode;
use mink_record::kafka::ProducerStamp;
use mink_testkit::node::{Node, NodeConfig};

use crate::retention::forget;
use crate::setup::{self, Folder};
use crate::wire::{Answered, SOON, Wire, batch, values};

const TOPIC: &str = "t";
const WRITERS: usize = 3;
const BATCHES: i32 = 5;
const RECORDS: i32 = 2;

/// One idempotent producer, all of whose batches have the same size.
#[derive(Debug, Clone)]
struct Writer {
    name: String,
    id: i64,
    epoch: i16,
}

impl Writer {
    async fn new(wire: &mut Wire, name: &str) -> Self {
        let (id, epoch) = wire.init_producer().await;
        Self { name: name.to_owned(), id, epoch }
    }

    /// Sends batch `number` of this writer, again or for the first time.
    async fn send(&self, wire: &mut Wire, topic: &str, number: i32) -> Answered {
        let base_sequence = number * RECORDS;
        let stamp = ProducerStamp { id: self.id, epoch: self.epoch, base_sequence };
        let first = usize::try_from(base_sequence).unwrap();
        let records = values(&self.name, first..first + usize::try_from(RECORDS).unwrap());
        wire.try_produce(topic, 0, &batch(records, Some(stamp))).await.unwrap()
    }
}

/// How the node dies between the writers' last ack and their next batch.
enum Crash {
    /// Nothing was flushed.
    BeforeFlush,
    /// The stream object with the producers' state is there, its commit is not.
    BetweenObjectAndCommit,
    AfterFlush,
}

async fn writers_go_on_after(crash: Crash) {
    let folder = Folder::new();
    let config = setup::node(&folder);
    let crashing: NodeConfig = match crash {
        Crash::BeforeFlush => config.clone().flag("--wal-flush-age", "1h"),
        Crash::AfterFlush => config.clone().flag("--wal-flush-age", "500ms"),
        Crash::BetweenObjectAndCommit => config
            .clone()
            .flag("--wal-flush-age", "3s")
            .fail_points("commit.before=abort")
            .allow_line("fail point"),
    };
    let mut node = crashing.start().await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    wire.create_topic(TOPIC, 1).await;
    wire.fetch_open(TOPIC, 0, 0).await;
    let mut writers = Vec::new();
    for number in 0..WRITERS {
        writers.push(Writer::new(&mut wire, &format!("w{number}")).await);
    }
    let mut last = Vec::new();
    for number in 0..BATCHES {
        last.clear();
        for writer in &writers {
            let answer = writer.send(&mut wire, TOPIC, number).await;
            assert_eq!(answer.code, 0, "{answer:?}");
            last.push(answer.offset);
        }
    }
    match crash {
        Crash::BeforeFlush => node.process().kill9().await.unwrap(),
        Crash::AfterFlush => {
            setup::flushed(node.http(), SOON).await;
            node.process().kill9().await.unwrap();
        }
        Crash::BetweenObjectAndCommit => {
            let status = node.process().wait(SOON).await.unwrap();
            assert!(!status.success(), "{status}");
        }
    }
    node.restart_as(config).await.unwrap();
    go_on(&node, &writers, &last).await;
    node.crash_and_restart().await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    assert_eq!(wire.read_all(TOPIC, 0).await.len(), WRITERS * 2 * (usize::try_from(BATCHES).unwrap() + 1));
}

/// Each writer repeats its last batch, which is known by its offset, and goes on with the next.
async fn go_on(node: &Node, writers: &[Writer], last: &[i64]) {
    let mut wire = Wire::connect(node.kafka()).await;
    let before = wire.fetch_open(TOPIC, 0, 0).await.high_watermark;
    assert_eq!(before, i64::from(BATCHES * RECORDS) * i64::try_from(WRITERS).unwrap());
    let mut end = before;
    for (writer, last) in writers.iter().zip(last) {
        let repeat = writer.send(&mut wire, TOPIC, BATCHES - 1).await;
        assert_eq!((repeat.code, repeat.offset), (0, *last), "{writer:?}");
        let gap = writer.send(&mut wire, TOPIC, BATCHES + 1).await;
        assert_eq!(gap.code, ErrorCode::OutOfOrderSequenceNumber.code(), "{writer:?}: {gap:?}");
        let next = writer.send(&mut wire, TOPIC, BATCHES).await;
        assert_eq!((next.code, next.offset), (0, end), "{writer:?}");
        end += i64::from(RECORDS);
    }
    assert_eq!(wire.fetch(TOPIC, 0, 0).await.unwrap().high_watermark, end);
}

#[tokio::test]
async fn t_3_writers_go_on_after_a_crash_before_the_flush() {
    writers_go_on_after(Crash::BeforeFlush).await;
}

#[tokio::test]
async fn t_3_writers_go_on_after_a_crash_between_object_and_commit() {
    writers_go_on_after(Crash::BetweenObjectAndCommit).await;
}

#[tokio::test]
async fn t_3_writers_go_on_after_a_crash_after_the_flush() {
    writers_go_on_after(Crash::AfterFlush).await;
}

/// I6, as Kafka keeps it: the records of a producer's last batches are deleted, all of its log's, and a new owner still knows them.
#[tokio::test]
async fn i6_a_batch_whose_records_are_deleted_is_not_stored_again_after_a_restart() {
    let folder = Folder::new();
    let config = setup::node(&folder).flag("--wal-flush-age", "200ms").flag("--deletion-grace", "200ms");
    let mut node = config.start().await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    wire.create_topic(TOPIC, 1).await;
    wire.fetch_open(TOPIC, 0, 0).await;
    let writer = Writer::new(&mut wire, "w").await;
    for number in 0..BATCHES {
        assert_eq!(writer.send(&mut wire, TOPIC, number).await.code, 0);
    }
    setup::flushed(node.http(), SOON).await;
    let end = i64::from(BATCHES * RECORDS);
    forget(&mut wire, TOPIC, 0, end).await;
    for restart in 0..2 {
        node.crash_and_restart().await.unwrap();
        wire = Wire::connect(node.kafka()).await;
        wire.fetch_open(TOPIC, 0, end).await;
        for number in 0..BATCHES {
            let repeat = writer.send(&mut wire, TOPIC, number).await;
            let first = i64::from(number * RECORDS);
            assert_eq!((repeat.code, repeat.offset), (0, first), "batch {number}, restart {restart}");
        }
    }
    let gap = writer.send(&mut wire, TOPIC, BATCHES + 1).await;
    assert_eq!(gap.code, ErrorCode::OutOfOrderSequenceNumber.code(), "{gap:?}");
    // Another's batch comes, in the WAL alone, and is deleted: both are known to the next owner.
    let other = Writer::new(&mut wire, "other").await;
    assert_eq!(other.send(&mut wire, TOPIC, 0).await.offset, end);
    node.crash_and_restart().await.unwrap();
    wire = Wire::connect(node.kafka()).await;
    wire.fetch_open(TOPIC, 0, end).await;
    forget(&mut wire, TOPIC, 0, end + i64::from(RECORDS)).await;
    node.crash_and_restart().await.unwrap();
    wire = Wire::connect(node.kafka()).await;
    wire.fetch_open(TOPIC, 0, end + i64::from(RECORDS)).await;
    assert_eq!(other.send(&mut wire, TOPIC, 0).await.offset, end);
    assert_eq!(writer.send(&mut wire, TOPIC, BATCHES - 1).await.offset, end - i64::from(RECORDS));
    let next = writer.send(&mut wire, TOPIC, BATCHES).await;
    assert_eq!((next.code, next.offset), (0, end + i64::from(RECORDS)));
    let found = wire.fetch(TOPIC, 0, next.offset).await.unwrap();
    assert_eq!((found.code, found.records.len()), (0, usize::try_from(RECORDS).unwrap()));
    node.stop(SOON).await.unwrap();
}

/// T-9: expiry is a fold over the log's commit times, so the same owner and the next one give a writer the same answer, and the writer
/// can go on from each.
#[tokio::test]
async fn t_9_expiry_is_decided_once() {
    let folder = Folder::new();
    let config = setup::node(&folder).flag("--producer-expiry", "2s");
    let mut node = config.start().await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    let topics = ["same-owner", "next-owner"];
    let (mut writers, mut others) = (Vec::new(), Vec::new());
    for topic in topics {
        wire.create_topic(topic, 1).await;
        wire.fetch_open(topic, 0, 0).await;
        let writer = Writer::new(&mut wire, topic).await;
        for number in 0..BATCHES {
            assert_eq!(writer.send(&mut wire, topic, number).await.code, 0);
        }
        writers.push(writer);
        others.push(Writer::new(&mut wire, "other").await);
    }
    // The log's time stood still while it was idle, so the writer is still known: its next batch is the next.
    let idle = Duration::from_millis(2_100);
    // The idle time is what the case is about.
    tokio::time::sleep(idle).await;
    let ask = async |wire: &mut Wire, at: usize, number| writers[at].send(wire, topics[at], number).await;
    let same = ask(&mut wire, 0, BATCHES).await;
    node.crash_and_restart().await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    wire.fetch_open(topics[1], 0, 0).await;
    assert_eq!(ask(&mut wire, 1, BATCHES).await, same);
    assert_eq!((same.code, same.offset), (0, i64::from(BATCHES * RECORDS)));
    // Another's batch moves the time past the expiry: the writer is forgotten, and taken as one without state on a partition that
    // had data. A number that a known writer could not send shows it.
    tokio::time::sleep(idle).await;
    for (other, topic) in others.iter().zip(topics) {
        assert_eq!(other.send(&mut wire, topic, 0).await.code, 0);
    }
    let same = ask(&mut wire, 0, BATCHES + 2).await;
    node.crash_and_restart().await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    wire.fetch_open(topics[1], 0, 0).await;
    assert_eq!(ask(&mut wire, 1, BATCHES + 2).await, same);
    assert_eq!((same.code, same.offset), (0, i64::from((BATCHES + 2) * RECORDS)));
    // And is known again: a repeat is a repeat, a gap is a gap, for either owner.
    for at in 0..topics.len() {
        assert_eq!(ask(&mut wire, at, BATCHES + 2).await, same);
        let gap = ask(&mut wire, at, BATCHES + 4).await;
        assert_eq!(gap.code, ErrorCode::OutOfOrderSequenceNumber.code(), "{gap:?}");
    }
}
