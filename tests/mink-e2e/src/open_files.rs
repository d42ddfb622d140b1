//! I20: when the process has no files left to open for connections, the one that was idle for the longest goes; the node serves on, its
//! store and its metrics too, and says so once.

use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use mink_kafka_wire::messages::api_versions::ApiVersionsRequest;
use mink_testkit::http;
use mink_testkit::node::binary;
use mink_testkit::process::Output;

use crate::setup::{self, Folder};
use crate::wire::{SOON, Wire, batch};

const TOPIC: &str = "t";
/// Files that the node may have open, and connections that come.
const FILES: usize = 256;
const CONNECTIONS: usize = 400;

#[tokio::test]
async fn i20_when_files_run_out_the_longest_idle_connection_goes_and_the_node_serves_on() {
    let folder = Folder::new();
    let script = folder.join("few-files");
    let mink = binary("mink").unwrap();
    let text = format!("#!/bin/sh\nulimit -n {FILES}\nexec '{}' \"$@\"\n", mink.display());
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let config = setup::node(&folder)
        .program(&script)
        .flag("--connections-per-second", "100000")
        .flag("--connections-per-address-per-second", "100000")
        .allow_line("kafka connection closed")
        .allow_line("too many kafka connections")
        .allow_line("limit of open files");
    let mut node = config.start().await.unwrap();
    let mut good = Wire::connect(node.kafka()).await;
    good.create_topic(TOPIC, 1).await;
    good.produce(TOPIC, 0, &batch(["first"], None)).await;
    let mut idle = Vec::new();
    for _ in 0..FILES / 4 {
        let mut wire = Wire::connect(node.kafka()).await;
        wire.call(3, &ApiVersionsRequest::default()).await.unwrap();
        idle.push(wire);
    }
    // They come again and again, until the first of the idle ones has gone.
    let deadline = Instant::now() + Duration::from_mins(1);
    while !idle[0].stirs_within(Duration::from_millis(1)).await {
        assert!(Instant::now() < deadline, "the longest idle connection stays");
        let mut others = Vec::new();
        for _ in 0..CONNECTIONS {
            others.push(Wire::connect(node.kafka()).await);
        }
        let offset = good.produce(TOPIC, 0, &batch(["more"], None)).await;
        assert_eq!(good.fetch(TOPIC, 0, offset).await.unwrap().records.len(), 1);
    }
    let metrics = http::get(node.http(), "/metrics").await.unwrap();
    let made_room = metrics.metric("mink_kafka_connections_closed_total{reason=\"made_room\"}");
    assert!(made_room.is_some_and(|count| count >= 1.0), "{}", metrics.body);
    setup::until("a new connection is served", SOON, || async {
        let mut new = Wire::connect(node.kafka()).await;
        new.call(3, &ApiVersionsRequest::default()).await.ok()
    })
    .await;
    good.produce(TOPIC, 0, &batch(["last"], None)).await;
    node.stop(SOON).await.unwrap();
    let log = node.process().text(Output::Stderr).unwrap();
    assert_eq!(log.matches("limit of open files").count(), 1, "{log}");
}
