//! A restart in the same directory waits for nobody: ready below a second, after a crash as after a drain; and a drain loses nothing.

use std::time::Duration;

use mink_testkit::dataset;
use mink_testkit::node::Node;
use mink_testkit::process::Output;

use crate::load::{self, Load, Plan};
use crate::setup::{self, Folder};
use crate::wire::{SOON, Wire, batch};

const TOPICS: usize = 20;
const RECORDS_PER_BATCH: usize = 500;
const READY_WITHIN: Duration = Duration::from_secs(1);
/// The quickest of so many: the machine is shared.
const TRIES: usize = 5;

/// All rows of the data set, dealt to the topics in batches; values by topic.
async fn fill(node: &Node) -> Vec<Vec<String>> {
    let mut wire = Wire::connect(node.kafka()).await;
    for topic in 0..TOPICS {
        wire.create_topic(&format!("t{topic}"), 1).await;
    }
    let records = dataset::flights(dataset::ROWS).unwrap();
    let mut written = vec![Vec::new(); TOPICS];
    for (number, rows) in records.chunks(RECORDS_PER_BATCH).enumerate() {
        let topic = number % TOPICS;
        wire.produce(&format!("t{topic}"), 0, &batch(rows.iter().map(|row| &row.value), None)).await;
        let values = rows.iter().map(|row| String::from_utf8(row.value.clone()).unwrap());
        written[topic].extend(values);
    }
    written
}

#[tokio::test]
async fn a_crashed_node_with_100_000_records_is_ready_below_a_second() {
    let folder = Folder::new();
    let mut node = setup::node(&folder).start_on_fixed_ports().await.unwrap();
    let written = fill(&node).await;
    let mut times = Vec::new();
    for _ in 0..TRIES {
        node.crash_and_restart().await.unwrap();
        times.push(node.ready_after());
    }
    println!("ready after {times:?}");
    assert!(times.iter().min().is_some_and(|best| *best < READY_WITHIN), "{times:?}");
    let mut wire = Wire::connect(node.kafka()).await;
    for (topic, values) in written.iter().enumerate() {
        assert!(wire.read_all(&format!("t{topic}"), 0).await == *values, "t{topic}");
    }
}

#[tokio::test]
async fn a_drained_node_leaves_nothing_to_take_over() {
    let folder = Folder::new();
    let mut node = setup::node(&folder).start_on_fixed_ports().await.unwrap();
    let written = fill(&node).await;
    let mut times = Vec::new();
    for _ in 0..TRIES {
        node.stop(SOON).await.unwrap();
        node.restart().await.unwrap();
        times.push(node.ready_after());
        let log = node.process().text(Output::Stderr).unwrap();
        let taken = log.lines().filter(|line| line.contains("taken over"));
        assert!(taken.clone().all(|line| line.contains("objects=0")), "{log}");
    }
    println!("ready after {times:?}");
    assert!(times.iter().min().is_some_and(|best| *best < READY_WITHIN), "{times:?}");
    // All that was acked was committed by the drain: nothing hangs on the old chain, so no WAL object of it is referred to.
    let status = setup::status(node.http()).await;
    assert_eq!(status["wal_untrimmed_objects"], 0, "{status}");
    let mut wire = Wire::connect(node.kafka()).await;
    for (topic, values) in written.iter().enumerate() {
        assert!(wire.read_all(&format!("t{topic}"), 0).await == *values, "t{topic}");
    }
}

/// I1, I6, I7: clients see a node drain and come back; they lose nothing, and are told no error.
#[tokio::test]
async fn a_drain_under_load_loses_nothing() {
    if !load::available().await {
        return;
    }
    let folder = Folder::new();
    let mut node = setup::node(&folder).start_on_fixed_ports().await.unwrap();
    let kafka = node.kafka().to_owned();
    let plan =
        Plan { topic: "exact", partitions: 4, producers: 2, idempotent: true, rate: 1000, count: None };
    let mut exact = Load::start(folder.path(), &kafka, plan).await;
    let plan = Plan { topic: "plain", idempotent: false, ..plan };
    let mut plain = Load::start(folder.path(), &kafka, plan).await;
    for _ in 0..5 {
        exact.progress().await;
        plain.progress().await;
        node.stop(SOON).await.unwrap();
        node.restart().await.unwrap();
    }
    exact.stop().await;
    plain.stop().await;
    for load in [&exact, &plain] {
        let summary = load.verify(false).await;
        // A drain acks all that it ordered, so nobody sends a stored record again.
        let ends = (&summary["duplicates"], &summary["refused"], &summary["not_acked_but_stored"]);
        assert_eq!(ends, (&0.into(), &0.into(), &0.into()), "{summary}");
    }
}

#[tokio::test]
async fn sigint_drains_too() {
    let folder = Folder::new();
    let mut node = setup::node(&folder).start().await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    wire.create_topic("t", 1).await;
    wire.produce("t", 0, &batch(["a"], None)).await;
    node.process().interrupt().unwrap();
    let status = node.process().wait(SOON).await.unwrap();
    assert_eq!(status.code(), Some(0));
}
