//! P-17: memory does not grow with every WAL object that is written, flushed and trimmed.

use std::time::Duration;

use super::{large_batch, metric, parts, resident};
use crate::setup::{self, Folder};
use crate::wire::Wire;

/// Rotations of the short form; the long one has 2,000.
const ROTATIONS: usize = 400;
const SETTLED_AT: usize = 100;
const BYTES: usize = 1 << 20;
const TOPIC: &str = "rotated";
/// In percent of what is resident once all parts are full.
const GROWTH_MAX: u64 = 5;

#[tokio::test]
async fn p_17_memory_is_a_function_of_the_bound_only() {
    let rotations = if setup::is_long() { 2_000 } else { ROTATIONS };
    let folder = Folder::new();
    let config = setup::node(&folder).flag("--memory", "128MiB");
    let mut node = config.start().await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    wire.create_topic(TOPIC, 1).await;
    let records = large_batch(BYTES);
    let mut settled = 0;
    for rotation in 0..rotations {
        // Each waits for its ack, so each is an object of its own.
        wire.produce(TOPIC, 0, &records).await;
        if rotation == SETTLED_AT {
            settled = resident(&mut node);
        }
    }
    let objects = metric(&node, "mink_wal_objects_total").await;
    assert!(objects >= rotations as u64, "{objects} objects of {rotations} batches");
    setup::flushed(node.http(), Duration::from_mins(2)).await;
    let end = resident(&mut node);
    println!(
        "{rotations} rotations: {settled} KiB at the 100th, {end} KiB at the end; {}",
        parts(&node).await
    );
    assert!(end <= settled + settled * GROWTH_MAX / 100, "{settled} KiB grew to {end} KiB");
    node.stop(crate::wire::SOON).await.unwrap();
}
