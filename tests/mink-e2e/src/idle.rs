//! After the last write a node comes to rest: all is flushed and deleted, then it asks nothing of the store and writes no row.

use std::time::{Duration, Instant};

use mink_testkit::node::NodeConfig;
use mink_testkit::parts::SeaweedFs;
use mink_testkit::skip;

use crate::setup::{self, Folder, status, store_requests};
use crate::wire::{SOON, Wire, batch, values};

/// So long after the last write all work is done: two minutes, or with the short times of the short form, ten seconds.
fn rests_after() -> Duration {
    if setup::is_long() { Duration::from_mins(2) } else { Duration::from_secs(10) }
}

/// How long the node is then watched.
fn watched_for() -> Duration {
    if setup::is_long() { Duration::from_mins(10) } else { Duration::from_secs(20) }
}

const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What moves when the node does something.
async fn activity(http: &str) -> (u64, u64) {
    (store_requests(http).await, status(http).await["metadata_index"].as_u64().unwrap())
}

async fn comes_to_rest(config: NodeConfig) {
    let config = if setup::is_long() {
        config
    } else {
        config.flag("--wal-flush-age", "2s").flag("--deletion-grace", "2s")
    };
    let mut node = config.start().await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    for topic in ["a", "b"] {
        wire.create_topic(topic, 3).await;
    }
    // A crash in between leaves a dead chain to be swept.
    for life in 0..2 {
        let mut wire = Wire::connect(node.kafka()).await;
        for number in 0..20 {
            for topic in ["a", "b"] {
                wire.produce(topic, number % 3, &batch(values("r", 0..100), None)).await;
            }
        }
        if life == 0 {
            node.crash_and_restart().await.unwrap();
        }
    }
    let last_write = Instant::now();
    let http = node.http().to_owned();
    let (mut seen, mut worked_until) = (activity(&http).await, last_write);
    while last_write.elapsed() < rests_after() {
        tokio::time::sleep(LOOK_EVERY).await;
        let now = activity(&http).await;
        if now != seen {
            (seen, worked_until) = (now, Instant::now());
        }
    }
    println!("worked until {:?} after the last write", worked_until.duration_since(last_write));
    let status = status(&http).await;
    assert_eq!(
        (&status["wal_untrimmed_bytes"], &status["pending_deletions"]),
        (&0.into(), &0.into()),
        "{status}"
    );
    while last_write.elapsed() < rests_after() + watched_for() {
        tokio::time::sleep(LOOK_EVERY).await;
        let now = activity(&http).await;
        assert_eq!(now, seen, "an idle node did something {:?} after the last write", last_write.elapsed());
    }
    node.stop(SOON).await.unwrap();
}

#[tokio::test]
async fn an_idle_node_on_a_file_store_asks_nothing() {
    let folder = Folder::new();
    comes_to_rest(setup::node(&folder)).await;
}

#[tokio::test]
async fn an_idle_node_on_s3_asks_nothing() {
    let Some(store) = skip::available("seaweedfs", SeaweedFs::shared().await) else {
        return;
    };
    let folder = Folder::new();
    comes_to_rest(setup::node_on_s3(&folder, store, "idle").await).await;
}
