//! I20: while the store is away, a producer that goes as fast as it can fills what `--memory` allows and no more; its socket stops,
//! its records do not.

use std::time::{Duration, Instant};

use mink_testkit::faults::proxy::FaultProxy;
use mink_testkit::node::{Node, binary};
use mink_testkit::parts::SeaweedFs;
use mink_testkit::process::Launch;
use mink_testkit::skip;

use crate::setup::{self, Folder};
use crate::wire::{SOON, Wire};

const MEMORY_MIB: u64 = 256;
/// What a process may hold beside what `--memory` counts: code, stacks, the database's pages, and what the allocator does not give back.
const FIXED_MIB: u64 = 64;
const TOPIC: &str = "full";
/// Longer than the node may take to write down what it holds when the store is back.
const DONE_WITHIN: Duration = Duration::from_mins(3);

#[tokio::test]
async fn i_20_a_store_that_is_away_stops_sockets_not_records() {
    let Some(store) = skip::available("seaweedfs", SeaweedFs::shared().await) else { return };
    let folder = Folder::new();
    let (config, proxy) = setup::node_on_bad_s3(&folder, store, "memory").await;
    let config = config.flag("--memory", &format!("{MEMORY_MIB}MiB"));
    let config = config.allow_line("not yet created, trying again").allow_line("the store takes no writes");
    let mut node = config.start().await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    wire.create_topic(TOPIC, 4).await;
    let (baseline, _) = setup::resident_kib(node.process().id());
    let incarnation = setup::status(node.http()).await["incarnation"].clone();
    let away = Duration::from_secs(if setup::is_long() { 30 } else { 6 });
    let records = if setup::is_long() { "1500000" } else { "400000" };
    let bench = Launch::new("mink-bench", binary("mink").unwrap())
        .args([
            "bench",
            "produce",
            &format!("kafka.{TOPIC}"),
            "--kafka",
            node.kafka(),
            "--addr",
            &format!("http://{}", node.http()),
        ])
        .args(["--records", records, "--record-bytes", "1KiB", "--connections", "12", "--output", "json"]);
    let mut bench = bench.start().unwrap();
    until_flowing(&node).await;
    outage(&mut node, &proxy, away).await;
    let began = Instant::now();
    let status = bench.wait(DONE_WITHIN).await.unwrap();
    assert!(
        status.success(),
        "{}",
        bench.report(mink_testkit::ErrorKind::Failed, "the load was told errors")
    );
    let (now, most) = setup::resident_kib(node.process().id());
    println!(
        "--memory {MEMORY_MIB}MiB: resident {} MiB at the start, at most {} MiB, {} MiB at the end; the rest of the load took {:?}",
        baseline >> 10,
        most >> 10,
        now >> 10,
        began.elapsed(),
    );
    assert_eq!(setup::status(node.http()).await["incarnation"], incarnation, "the node stepped down");
    assert!(most >> 10 < MEMORY_MIB + FIXED_MIB, "{} MiB", most >> 10);
    node.stop(SOON).await.unwrap();
}

/// Some of the load is in the store.
async fn until_flowing(node: &Node) {
    let before = setup::store_requests(node.http()).await;
    setup::until("the load flows", SOON, || async {
        (setup::store_requests(node.http()).await > before + 10).then_some(())
    })
    .await;
}

/// The store is away for so long, and is back.
async fn outage(node: &mut Node, proxy: &FaultProxy, lasts: Duration) {
    proxy.set_text("any: away").unwrap();
    let began = Instant::now();
    let mut most = 0;
    while began.elapsed() < lasts {
        most = most.max(setup::resident_kib(node.process().id()).0);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    println!("while the store was away: at most {} MiB", most >> 10);
    proxy.set_text("").unwrap();
}
