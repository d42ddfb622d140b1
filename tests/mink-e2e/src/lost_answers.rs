//! P-1, K-3: PUTs that fail, fail late, or succeed without a word are tried again with the same whole bytes; each write is acked
//! once, is stored whole, and the node does not take its own object for another's.

use std::collections::BTreeMap;

use mink_testkit::http;
use mink_testkit::parts::SeaweedFs;
use mink_testkit::skip;

use crate::proxy::{FAULTS, FaultProxy};
use crate::setup::{self, Folder};
use crate::wire::{SOON, Wire, batch};

const BATCHES: usize = 12;
const LETTERS: [&str; 10] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
const TOPIC: &str = "t";

#[tokio::test]
async fn p_1_k_3_each_put_is_stored_whole_and_acked_once() {
    let Some(store) = skip::available("seaweedfs", SeaweedFs::shared().await) else {
        return;
    };
    let proxy = FaultProxy::start(store.endpoint().trim_start_matches("http://")).await;
    let folder = Folder::new();
    let config = setup::node_on_s3(&folder, store, "lost-answers").await;
    let config = config
        .env("AWS_ENDPOINT_URL", &proxy.endpoint())
        .flag("--wal-flush-age", "1h")
        .flag("--wal-puts-per-second", "0");
    let mut node = config.start().await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    wire.create_topic(TOPIC, 1).await;
    wire.fetch_open(TOPIC, 0, 0).await;
    let incarnation = setup::status(node.http()).await["incarnation"].clone();
    proxy.faults_on(true);
    for number in 0..BATCHES {
        let answer = wire.try_produce(TOPIC, 0, &batch(LETTERS, None)).await.unwrap();
        assert_eq!((answer.code, answer.offset), (0, i64::try_from(number * LETTERS.len()).unwrap()));
    }
    let (faults, attempts_max) = proxy.drawn();
    let expected: BTreeMap<_, _> = FAULTS.iter().map(|fault| (*fault, 3)).collect();
    assert_eq!(faults, expected, "each fault was met three times");
    println!("at most {attempts_max} attempts of one PUT");
    assert_eq!(setup::status(node.http()).await["incarnation"], incarnation, "the node stepped down");
    let metrics = http::get(node.http(), "/metrics").await.unwrap();
    assert!(metrics.metric_sum("mink_wal_put_repeats_total") >= 9.0, "{}", metrics.body);
    proxy.faults_on(false);
    // From the store, not from the memory of the process that sent it.
    node.crash_and_restart().await.unwrap();
    let read = Wire::connect(node.kafka()).await.read_all(TOPIC, 0).await;
    assert_eq!(read, LETTERS.repeat(BATCHES));
    node.stop(SOON).await.unwrap();
}
