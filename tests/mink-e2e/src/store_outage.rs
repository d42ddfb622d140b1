//! I7: while the store does not answer, writes wait and get no error; when it answers again they are acked, once and in order.

use std::time::Duration;

use mink_testkit::parts::SeaweedFs;
use mink_testkit::skip;

use crate::setup::{self, Folder};
use crate::wire::{SOON, Wire, batch, values};

/// Longer than any store of this machine takes.
const STALLED_AFTER: Duration = Duration::from_secs(3);
const TOPIC: &str = "t";

#[tokio::test]
async fn i_7_writes_wait_for_a_store_that_does_not_answer() {
    let Some(store) = skip::available("seaweedfs", SeaweedFs::shared().await) else { return };
    let folder = Folder::new();
    let (config, proxy) = setup::node_on_bad_s3(&folder, store, "outage").await;
    let config = config.allow_line("not yet created, trying again").allow_line("the store takes no writes");
    let mut node = config.start().await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    wire.create_topic(TOPIC, 1).await;
    wire.produce(TOPIC, 0, &batch(values("before", 0..5), None)).await;
    proxy.set_text("any: undone silent").unwrap();
    let mut waiting = Vec::new();
    for number in 0..4 {
        let records = batch(values("during", number * 5..number * 5 + 5), None);
        waiting.push(wire.send_produce(TOPIC, &[(0, records)]).await.unwrap());
    }
    assert!(!wire.stirs_within(STALLED_AFTER).await, "a write was answered without the store");
    // What is acked is read all the same.
    let read = Wire::connect(node.kafka()).await.fetch(TOPIC, 0, 0).await.unwrap();
    assert_eq!((read.code, read.high_watermark), (0, 5));
    proxy.set_text("").unwrap();
    for (number, sent) in waiting.into_iter().enumerate() {
        let answers = wire.receive_produce(sent, SOON).await.unwrap();
        assert_eq!((answers[0].code, answers[0].offset), (0, i64::try_from(5 + number * 5).unwrap()));
    }
    node.crash_and_restart().await.unwrap();
    let read = Wire::connect(node.kafka()).await.read_all(TOPIC, 0).await;
    assert_eq!(read, [values("before", 0..5), values("during", 0..20)].concat());
}
