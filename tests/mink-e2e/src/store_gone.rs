//! I7, I19: directories that are removed under a living node. Without its store the node lets writes wait, is not ready and says why,
//! and a drain ends in its time; without its data directory it ends, for its lock keeps nobody out any more.

use std::time::{Duration, Instant};

use mink_testkit::http;
use mink_testkit::process::Output;

use crate::setup::{self, Folder, until};
use crate::wire::{SOON, Wire, batch};

const TOPIC: &str = "t";
/// What a drain may take, and what its end may take on a busy machine.
const DRAIN: Duration = Duration::from_secs(6);
const SLACK: Duration = Duration::from_secs(5);

#[tokio::test]
async fn i_7_without_its_store_a_node_is_not_ready_and_a_drain_ends_in_its_time() {
    let folder = Folder::new();
    let store = folder.join("store");
    let config = setup::node(&folder)
        .storage(&format!("file://{}", store.display()))
        .flag("--drain-timeout", &format!("{}s", DRAIN.as_secs()))
        .allow_line("the store takes no writes")
        .allow_line("not yet created, trying again")
        .allow_line("connections did not end in time")
        .allow_line("fenced, buckets dropped");
    let mut node = config.start().await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    wire.create_topic(TOPIC, 1).await;
    wire.fetch_open(TOPIC, 0, 0).await;
    assert_eq!(wire.produce(TOPIC, 0, &batch(["before"], None)).await, 0);
    std::fs::remove_dir_all(&store).unwrap();
    wire.send_produce(TOPIC, &[(0, batch(["during"], None))]).await.unwrap();
    let answer = until("/readyz tells of the store", SOON, || async {
        let answer = http::get(node.http(), "/readyz").await.unwrap();
        (answer.status == 503).then_some(answer)
    })
    .await;
    assert!(answer.body.contains("no write has become durable"), "{}", answer.body);
    assert!(!wire.stirs_within(Duration::ZERO).await, "a write was answered without the store");
    // Readiness looks by itself, and may be first.
    let mut told =
        || node.process().text(Output::Stderr).unwrap().matches("the store takes no writes").count();
    until("the log tells of it", SOON, || {
        let found = told();
        async move { (found > 0).then_some(()) }
    })
    .await;
    assert_eq!(told(), 1);

    let begun = Instant::now();
    node.process().terminate().unwrap();
    let status = node.process().wait(DRAIN + SLACK).await.unwrap();
    assert_eq!(status.code(), Some(1), "what it ordered is not durable");
    assert!(begun.elapsed() >= DRAIN / 2, "it had its time");
    let log = node.process().text(Output::Stderr).unwrap();
    assert!(log.contains("the drain took longer than its time"), "{log}");
}

#[tokio::test]
async fn i_3_without_its_data_directory_a_node_ends_and_says_why() {
    let folder = Folder::new();
    let config = setup::node(&folder)
        .flag("--lease-ttl", "1s")
        .storage(&format!("file://{}", folder.join("store").display()))
        .metadata(&format!("sqlite://{}", folder.join("meta.db").display()))
        .allow_line("the node ends");
    let mut node = config.start().await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    wire.create_topic(TOPIC, 1).await;
    assert_eq!(wire.produce(TOPIC, 0, &batch(["acked"], None)).await, 0);
    std::fs::remove_dir_all(node.config().data_dir()).unwrap();
    let status = node.process().wait(SOON).await.unwrap();
    assert_eq!(status.code(), Some(1));
    let log = node.process().text(Output::Stderr).unwrap();
    assert!(log.contains("was removed while the node ran") && log.contains("--data-dir"), "{log}");
    // It lived in the store and the database: a new directory has all of it.
    node.restart().await.unwrap();
    assert_eq!(Wire::connect(node.kafka()).await.read_all(TOPIC, 0).await, ["acked"]);
    node.stop(SOON).await.unwrap();
}
