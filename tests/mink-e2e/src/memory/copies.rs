//! Bytes copied in user space per produced byte, from the socket's buffer to the PUT's body: one copy, into the arena.

use super::{large_batch, metric};
use crate::setup::{self, Folder};
use crate::wire::{SOON, Wire};

const BATCHES: usize = 64;
/// Bytes copied for 1,000 bytes produced.
const COPIED_MAX: u64 = 1050;
const TOPIC: &str = "copied";

#[tokio::test]
async fn a_produced_byte_is_copied_once() {
    for bytes in [128 << 10, 1 << 20] {
        let folder = Folder::new();
        let mut node = setup::node(&folder).start().await.unwrap();
        let mut wire = Wire::connect(node.kafka()).await;
        wire.create_topic(TOPIC, 1).await;
        let records = large_batch(bytes);
        wire.produce(TOPIC, 0, &records).await;
        let before =
            (metric(&node, "mink_copied_bytes_total").await, metric(&node, "mink_append_bytes_total").await);
        for _ in 0..BATCHES {
            let sent = wire.send_produce(TOPIC, &[(0, records.clone())]).await.unwrap();
            assert_eq!(wire.receive_produce(sent, SOON).await.unwrap()[0].code, 0);
        }
        let copied = metric(&node, "mink_copied_bytes_total").await - before.0;
        let produced = metric(&node, "mink_append_bytes_total").await - before.1;
        assert!(produced >= (BATCHES * records.len()) as u64, "{produced}");
        let each = copied * 1000 / produced;
        println!("batches of {bytes} bytes: {copied} bytes copied for {produced} produced, {each} for 1000");
        assert!((1000..=COPIED_MAX).contains(&each), "{each} bytes copied for 1000, batches of {bytes}");
        node.stop(SOON).await.unwrap();
    }
}
