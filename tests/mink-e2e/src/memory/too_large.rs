//! T-8: a request that needs more memory than there is ends at once and holds nothing, while others go on.

use super::{large_batch, resident};
use crate::setup::{self, Folder};
use crate::wire::{SOON, Wire, batch, is_closed};

/// Beyond half of the requests' part of 128 MiB.
const TOO_LARGE: usize = 16 << 20;
const CONNECTIONS: usize = 12;
/// What so many frames would take is far above it.
const GROWTH_MAX_KIB: u64 = 24 << 10;
const TOPIC: &str = "t8";

#[tokio::test]
async fn t_8_a_request_beyond_the_memory_is_refused_at_once() {
    let folder = Folder::new();
    let config = setup::node(&folder).flag("--memory", "128MiB").allow_line("kafka connection closed");
    let mut node = config.start().await.unwrap();
    let mut other = Wire::connect(node.kafka()).await;
    other.create_topic(TOPIC, 1).await;
    other.produce(TOPIC, 0, &large_batch(1 << 20)).await;
    let before = resident(&mut node);
    let records = large_batch(TOO_LARGE);
    for _ in 0..CONNECTIONS {
        let mut wire = Wire::connect(node.kafka()).await;
        let ended = match wire.send_produce(TOPIC, &[(0, records.clone())]).await {
            Ok(sent) => wire.receive_produce(sent, SOON).await.expect_err("not answered"),
            Err(error) => error,
        };
        assert!(is_closed(&ended), "{ended}");
        assert_eq!(other.try_produce(TOPIC, 0, &batch(["small"], None)).await.unwrap().code, 0);
    }
    let after = resident(&mut node);
    println!("{CONNECTIONS} frames of 16 MiB: {before} KiB before, {after} KiB after");
    assert!(after <= before + GROWTH_MAX_KIB, "{before} KiB grew to {after} KiB");
    node.stop(SOON).await.unwrap();
}
