//! P-11: a node that is paused again and again loses no acked write, tells no wrong offset, and leaves no client stuck.

use std::time::Duration;

use crate::load::{self, Load, Plan};
use crate::setup::{self, Folder};

const PAUSES: u32 = 4;
const PAUSED: Duration = Duration::from_secs(1);
const CLIENTS_END_WITHIN: Duration = Duration::from_mins(1);

#[tokio::test]
async fn p_11_four_producers_and_a_node_that_pauses() {
    if !load::available().await {
        return;
    }
    let folder = Folder::new();
    let config = setup::often_stopped(setup::node(&folder));
    let mut node = config.start_on_fixed_ports().await.unwrap();
    let kafka = node.kafka().to_owned();
    let plan =
        Plan { topic: "paused", partitions: 2, producers: 4, idempotent: true, rate: 100, count: Some(1000) };
    let mut load = Load::start(folder.path(), &kafka, plan).await;
    for _ in 0..PAUSES {
        load.progress().await;
        node.process().pause().unwrap();
        // The pause itself is what the test is about.
        tokio::time::sleep(PAUSED).await;
        node.process().resume().unwrap();
        tokio::time::sleep(PAUSED).await;
    }
    load.finish(CLIENTS_END_WITHIN).await;
    let summary = load.verify(false).await;
    assert_eq!((&summary["acked"], &summary["stored"]), (&4000.into(), &4000.into()));
}
