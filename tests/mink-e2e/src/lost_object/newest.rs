//! P-14: the newest stream objects of all topics are gone or damaged after a clean stop. The node is ready, what lies elsewhere is read,
//! and producers go on, those that were in the middle of a retry, too (decision 0016).

use std::path::{Path, PathBuf};

use mink_kafka_wire::ErrorCode;
use mink_record::kafka::ProducerStamp;
use mink_testkit::http;
use mink_testkit::node::Node;
use mink_testkit::process::Output;

use crate::setup::{self, Folder};
use crate::wire::{Answered, SOON, Wire, batch, values};

const TOPICS: [&str; 3] = ["a", "b", "c"];
const ALARM: &str = "an object is gone or damaged";

/// An idempotent producer with batches of its own size.
#[derive(Debug, Clone, Copy)]
struct Writer {
    id: i64,
    epoch: i16,
    records: usize,
}

impl Writer {
    async fn new(wire: &mut Wire, records: usize) -> Writer {
        let (id, epoch) = wire.init_producer().await;
        Writer { id, epoch, records }
    }

    /// Sends batch `number`, again or for the first time.
    async fn send(&self, wire: &mut Wire, topic: &str, number: usize) -> Answered {
        let first = number * self.records;
        let base_sequence = i32::try_from(first).unwrap();
        let stamp = ProducerStamp { id: self.id, epoch: self.epoch, base_sequence };
        let name = format!("w{}", self.records);
        let batch = batch(values(&name, first..first + self.records), Some(stamp));
        wire.try_produce(topic, 0, &batch).await.unwrap()
    }

    /// The same; it must be taken, and lie there.
    async fn put(&self, wire: &mut Wire, topic: &str, number: usize, offset: i64) {
        let answer = self.send(wire, topic, number).await;
        assert_eq!((answer.code, answer.offset), (0, offset), "{topic}: {self:?} batch {number}");
    }
}

/// What somebody does to an object, of which another one is a valid neighbour.
type Harm = fn(object: &Path, other: &Path);

fn write(object: &Path, bytes: &[u8]) {
    // The store makes its files read-only.
    std::fs::remove_file(object).unwrap();
    std::fs::write(object, bytes).unwrap();
}

/// Writes two rounds with a flush behind each; gives the stream objects of the first and of the second.
async fn fill(node: &Node, stream: &Path, writers: [Writer; 2]) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let mut wire = Wire::connect(node.kafka()).await;
    for topic in TOPICS {
        wire.create_topic(topic, 1).await;
        wire.fetch_open(topic, 0, 0).await;
    }
    let mut rounds = Vec::new();
    for (number, offsets) in [[0, 10], [15, 25]].into_iter().enumerate() {
        for topic in TOPICS {
            for (writer, offset) in writers.iter().zip(offsets) {
                writer.put(&mut wire, topic, number, offset).await;
            }
        }
        setup::flushed(node.http(), SOON).await;
        rounds.push(setup::objects(stream));
    }
    let new = rounds[1].iter().filter(|path| !rounds[0].contains(path)).cloned().collect();
    (rounds.swap_remove(0), new)
}

async fn check_reads(node: &Node, topic: &str, end: i64) {
    let mut wire = Wire::connect(node.kafka()).await;
    let first = wire.fetch_open(topic, 0, 0).await;
    let offsets: Vec<i64> = first.records.iter().map(|(offset, _)| *offset).collect();
    assert_eq!((first.code, first.high_watermark, offsets), (0, end, (0..15).collect()), "{topic}");
    for lost in [15, 24, 29] {
        let fetched = wire.fetch_open(topic, 0, lost).await;
        assert_eq!(fetched.code, ErrorCode::CorruptMessage.code(), "{topic} at {lost}: {fetched:?}");
        assert!(fetched.records.is_empty(), "{topic} at {lost}: {fetched:?}");
    }
    let mut from = 30;
    while from < end {
        let fetched = wire.fetch_open(topic, 0, from).await;
        assert!(fetched.code == 0 && !fetched.records.is_empty(), "{topic} from {from}: {fetched:?}");
        for (offset, _) in fetched.records {
            assert_eq!(offset, from, "{topic}: offsets are dense");
            from += 1;
        }
    }
}

async fn a_harmed_newest_object_costs_its_own_offsets_only(harm: Harm) {
    let folder = Folder::new();
    let stream = folder.join("data").join("objects").join("mink").join("stream");
    let config = setup::node(&folder).flag("--wal-flush-age", "300ms");
    let mut node = config.start().await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    let writers = [Writer::new(&mut wire, 10).await, Writer::new(&mut wire, 5).await];
    let (older, newest) = fill(&node, &stream, writers).await;
    node.stop(SOON).await.unwrap();
    for object in &newest {
        harm(object, &older[0]);
    }

    let whole = node.config().clone();
    let config = whole.clone().allow_line(ALARM).allow_line("a part of the log is lost with an object");
    node.restart_as(config.allow_line("acknowledged data cannot be read")).await.unwrap();
    setup::ready(node.http(), SOON).await;
    let log = node.process().text(Output::Stderr).unwrap();
    let alarms: Vec<&str> =
        log.lines().filter(|line| line.contains("ERROR") && line.contains(ALARM)).collect();
    assert_eq!(alarms.len(), newest.len(), "one for each object: {alarms:?}");
    for object in &newest {
        let name = object.file_name().unwrap().to_str().unwrap();
        assert!(alarms.iter().any(|line| line.contains(name)), "no alarm that names {name}: {alarms:?}");
    }
    let named = setup::status(node.http()).await["lost"].to_string();
    let metrics = http::get(node.http(), "/metrics").await.unwrap();
    let damaged = metrics.metric_sum("mink_objects_damaged");
    let expected = f64::from(u32::try_from(newest.len()).unwrap());
    assert!((damaged - expected).abs() < 0.1, "{damaged} of {expected}");
    for topic in TOPICS {
        assert!(named.contains(&format!("{topic}: offsets 15..")), "{topic}: {named}");
        check_reads(&node, topic, 30).await;
    }

    let mut wire = Wire::connect(node.kafka()).await;
    let [long, short] = writers;
    let new = Writer::new(&mut wire, 3).await;
    for topic in TOPICS {
        short.put(&mut wire, topic, 0, 10).await; // a repeat of what can be read
        long.put(&mut wire, topic, 2, 30).await; // a producer that goes on behind a batch which is lost
        short.put(&mut wire, topic, 1, 40).await; // a retry of one that is lost
        short.put(&mut wire, topic, 2, 45).await;
        new.put(&mut wire, topic, 0, 50).await;
        long.put(&mut wire, topic, 2, 30).await;
        let gap = long.send(&mut wire, topic, 4).await;
        assert_eq!(gap.code, ErrorCode::OutOfOrderSequenceNumber.code(), "{topic}: {gap:?}");
        check_reads(&node, topic, 53).await;
    }

    // What is written now tells of all producers again: the next start misses nothing, and nor does one after a crash.
    setup::flushed(node.http(), SOON).await;
    node.stop(SOON).await.unwrap();
    let config = whole.allow_line("acknowledged data cannot be read");
    for number in [3, 4] {
        node.restart_as(config.clone()).await.unwrap();
        setup::ready(node.http(), SOON).await;
        let mut wire = Wire::connect(node.kafka()).await;
        for topic in TOPICS {
            let end = wire.fetch_open(topic, 0, 0).await.high_watermark;
            short.put(&mut wire, topic, 2, 45).await;
            new.put(&mut wire, topic, 0, 50).await;
            long.put(&mut wire, topic, number, end).await;
            check_reads(&node, topic, end + 10).await;
        }
        node.process().kill9().await.unwrap();
    }
}

#[tokio::test]
async fn p_14_newest_objects_that_are_gone() {
    a_harmed_newest_object_costs_its_own_offsets_only(|object, _| std::fs::remove_file(object).unwrap())
        .await;
}

#[tokio::test]
async fn p_14_newest_objects_that_are_cut_in_two() {
    a_harmed_newest_object_costs_its_own_offsets_only(|object, _| {
        let bytes = std::fs::read(object).unwrap();
        write(object, &bytes[..bytes.len() / 2]);
    })
    .await;
}

#[tokio::test]
async fn p_14_newest_objects_full_of_zeros() {
    a_harmed_newest_object_costs_its_own_offsets_only(|object, _| {
        let length = std::fs::read(object).unwrap().len();
        write(object, &vec![0; length]);
    })
    .await;
}

#[tokio::test]
async fn p_14_newest_objects_replaced_by_another_one() {
    a_harmed_newest_object_costs_its_own_offsets_only(|object, other| {
        write(object, &std::fs::read(other).unwrap());
    })
    .await;
}
