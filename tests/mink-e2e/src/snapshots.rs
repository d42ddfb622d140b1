//! T-17: snapshots of the metadata come with the start and by rows of the log; no delay that could be drawn as "never" comes first.

use std::time::Duration;

use crate::setup::{self, Folder, until};
use crate::wire::{SOON, Wire};

const ROWS: usize = 5;
/// An idle node that has nothing to wait for.
const AT_ONCE: Duration = Duration::from_secs(10);

#[tokio::test]
async fn t_17_snapshots_come_with_the_start_and_by_rows() {
    let folder = Folder::new();
    let meta = folder.join("data").join("objects").join("mink").join("meta");
    let mut node = setup::node(&folder).flag("--snapshot-rows", &ROWS.to_string()).start().await.unwrap();
    until("a snapshot after the start", AT_ONCE, || async {
        (!setup::objects(&meta).is_empty()).then_some(())
    })
    .await;
    let mut wire = Wire::connect(node.kafka()).await;
    for round in 0..2 {
        let before = setup::objects(&meta);
        for number in 0..=ROWS {
            wire.create_topic(&format!("t{round}{number}"), 1).await;
        }
        until("another snapshot", AT_ONCE, || async {
            setup::objects(&meta).iter().any(|object| !before.contains(object)).then_some(())
        })
        .await;
    }
    node.crash_and_restart().await.unwrap();
    node.stop(SOON).await.unwrap();
}
