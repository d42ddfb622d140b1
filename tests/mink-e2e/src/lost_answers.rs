//! P-1, K-3: PUTs that fail, fail late, or succeed without a word are tried again with the same whole bytes; each write is acked
//! once, is stored whole, and the node does not take its own object for another's.

use mink_testkit::http;
use mink_testkit::parts::SeaweedFs;
use mink_testkit::skip;

use crate::setup::{self, Folder};
use crate::wire::{SOON, Wire, batch};

const BATCHES: usize = 12;
const LETTERS: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
const TOPIC: &str = "t";

/// The first PUT of each WAL object meets one of the four combinations after another.
const PLAN: &str = "
    put key=*/wal/* attempt=1 turn=1/4: lost
    put key=*/wal/* attempt=1 turn=2/4: undone lost
    put key=*/wal/* attempt=1 turn=3/4: 500
    put key=*/wal/* attempt=1 turn=4/4: undone 500";

#[tokio::test]
async fn p_1_k_3_each_put_is_stored_whole_and_acked_once() {
    let Some(store) = skip::available("seaweedfs", SeaweedFs::shared().await) else {
        return;
    };
    let folder = Folder::new();
    let (config, proxy) = setup::node_on_bad_s3(&folder, store, "lost-answers").await;
    let config = config.flag("--wal-flush-age", "1h").flag("--wal-puts-per-second", "0");
    let mut node = config.start().await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    wire.create_topic(TOPIC, 1).await;
    wire.fetch_open(TOPIC, 0, 0).await;
    let incarnation = setup::status(node.http()).await["incarnation"].clone();
    proxy.set_text(PLAN).unwrap();
    for number in 0..BATCHES {
        let answer = wire.try_produce(TOPIC, 0, &batch(LETTERS, None)).await.unwrap();
        assert_eq!((answer.code, answer.offset), (0, i64::try_from(number * LETTERS.len()).unwrap()));
    }
    let tally = proxy.tally();
    assert!(tally.rules.iter().all(|line| line.taken == 3), "each fault was met three times: {tally:?}");
    println!("at most {} attempts of one PUT", tally.attempts_max);
    assert_eq!(setup::status(node.http()).await["incarnation"], incarnation, "the node stepped down");
    let metrics = http::get(node.http(), "/metrics").await.unwrap();
    assert!(metrics.metric_sum("mink_wal_put_repeats_total") >= 9.0, "{}", metrics.body);
    proxy.set_text("").unwrap();
    // From the store, not from the memory of the process that sent it.
    node.crash_and_restart().await.unwrap();
    let read = Wire::connect(node.kafka()).await.read_all(TOPIC, 0).await;
    assert_eq!(read, LETTERS.repeat(BATCHES));
    node.stop(SOON).await.unwrap();
}
