//! Topics whose records bear the time of appending keep those times over kill -9 and a replay, and a compacted topic refuses records
//! without a key, as a real client sees it.

use std::time::Duration;

use mink_testkit::{client, skip};

use crate::setup::{self, Folder};
use crate::wire::SOON;

const WITHIN: Duration = Duration::from_mins(2);
const CLIENT: &str = "append_time";
const COUNT: &str = "200";

#[tokio::test]
async fn p_22_append_times_survive_kill_9_and_compacted_topics_refuse_records_without_a_key() {
    if skip::available(CLIENT, client::install(CLIENT).await).is_none() {
        return;
    }
    let folder = Folder::new();
    let config = setup::node(&folder).allow_line("nothing of a compacted table is superseded yet");
    let mut node = config.start_on_fixed_ports().await.unwrap();
    let kafka = node.kafka().to_owned();
    let asked = ["--bootstrap", &kafka, "--topic", "t", "--count", COUNT];
    let run = async |operation: &str| {
        let mut args = vec![operation];
        args.extend(asked);
        client::run(CLIENT, &args, WITHIN).await.unwrap()["times"].clone()
    };
    let acked = run("write").await;
    let times: Vec<i64> = serde_json::from_value(acked.clone()).unwrap();
    assert_eq!(times.len().to_string(), COUNT);
    assert!(times.is_sorted(), "times never go back within a partition: {times:?}");
    assert_eq!(run("read").await, acked, "from the tail");
    // Nothing is flushed yet: the successor replays the chain.
    node.crash_and_restart().await.unwrap();
    assert_eq!(run("read").await, acked, "after the replay");
    let keyless = ["keyless", "--bootstrap", &kafka, "--topic", "compacted"];
    client::run(CLIENT, &keyless, WITHIN).await.unwrap();
    node.stop(SOON).await.unwrap();
}
