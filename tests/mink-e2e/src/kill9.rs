//! I1, I2, I6: kill -9 at random points under load loses nothing that was acked, leaves no gap, and stores nothing twice.

use std::time::Duration;

use mink_testkit::node::NodeConfig;
use mink_testkit::parts::SeaweedFs;
use mink_testkit::skip;
use rand::Rng as _;

use crate::flight;
use crate::load::{self, Load, Plan};
use crate::setup::{self, Folder};

const ROUNDS: u32 = 20;
/// From the first acks after a restart to the kill: anywhere in here.
const ALIVE_MS_MAX: u64 = 1_000;

async fn kills_lose_nothing(config: NodeConfig, folder: &Folder) {
    let rounds = setup::rounds(ROUNDS);
    // Flushes, trims and takeovers of adopted objects all happen within the rounds.
    let config = config.flag("--wal-flush-age", "700ms").flag("--deletion-grace", "1s");
    let mut node = config.start_on_fixed_ports().await.unwrap();
    let kafka = node.kafka().to_owned();
    let plan = Plan { topic: "exact", partitions: 4, producers: 2, idempotent: true, rate: 400, count: None };
    let mut exact = Load::start(folder.path(), &kafka, plan).await;
    let plan = Plan { topic: "plain", idempotent: false, ..plan };
    let mut plain = Load::start(folder.path(), &kafka, plan).await;
    // A table with columns beside the topics, in the same WAL.
    let mut rows = flight::Writer::start(folder.path(), node.flight());
    for round in 1..=rounds {
        exact.progress().await;
        plain.progress().await;
        rows.progress().await;
        let alive = Duration::from_millis(rand::rng().random_range(0..ALIVE_MS_MAX));
        // Not a wait for anything: the kill comes at a random moment.
        tokio::time::sleep(alive).await;
        println!("round {round}: kill {alive:?} after the first acks");
        node.crash_and_restart().await.unwrap();
        if round == rounds / 2 {
            exact.verify(true).await;
            plain.verify(true).await;
        }
    }
    exact.stop().await;
    plain.stop().await;
    rows.stop().await;
    let summary = exact.verify(false).await;
    assert_eq!((&summary["duplicates"], &summary["refused"]), (&0.into(), &0.into()));
    plain.verify(false).await;
    rows.verify(&node).await;
}

#[tokio::test]
async fn p_7_kill_9_on_a_file_store_loses_nothing_acked() {
    if !(load::available().await && flight::available().await) {
        return;
    }
    let folder = Folder::new();
    kills_lose_nothing(setup::node(&folder), &folder).await;
}

#[tokio::test]
async fn p_7_kill_9_on_s3_loses_nothing_acked() {
    let Some(store) = skip::available("seaweedfs", SeaweedFs::shared().await) else {
        return;
    };
    if !(load::available().await && flight::available().await) {
        return;
    }
    let folder = Folder::new();
    kills_lose_nothing(setup::node_on_s3(&folder, store, "kill9").await, &folder).await;
}
