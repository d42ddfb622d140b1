//! What a load costs at the store: requests and bytes per GiB, counted by the node, on a store whose PUT takes 50 ms.
//!
//! The short form asserts what does not depend on how fast the machine is. `MINK_E2E_LONG=1` with `MINK_BIN` naming a release build
//! produces a GiB per case, at a steady 200 MiB/s, and asserts the figures for 160 MiB/s and more.

use std::time::Duration;

use mink_testkit::node::Node;

use crate::bench::{Counters, Produce, Produced, produce, to_f64};
use crate::setup::{self, Folder, flushed};
use crate::wire::SOON;

const STORE: &str = "memory://?put-latency=50ms&get-latency=50ms";
const MIB: u64 = 1 << 20;
/// PUTs of WAL objects a second, and per GiB, of which the larger bound counts.
const WAL_PUTS_PER_SECOND: f64 = 20.0;
const WAL_PUTS_PER_GIB: f64 = 128.0;
/// Requests per GiB of every kind, at 160 MiB/s or more.
const REQUESTS_PER_GIB: f64 = 220.0;
/// Of these the ones that are no WAL PUT, at any rate: stream objects, deletions, a snapshot.
const OTHERS_PER_GIB: f64 = 92.0;
/// Bytes that PUTs send per byte produced: once as WAL, once as stream object, and their headers and indexes.
const BYTES_WRITTEN_MAX: f64 = 2.05;

/// Bytes of a case.
fn load_bytes() -> u64 {
    if setup::is_long() { 1024 * MIB } else { 320 * MIB }
}

/// One load, flushed; what it came to and what it cost.
async fn cost(
    folder: &Folder,
    node: &Node,
    topic: &str,
    partitions: u32,
    batch_bytes: u64,
) -> (Produced, Counters) {
    let long = batch_bytes >= MIB;
    let record_bytes = if long { 64 << 10 } else { 1 << 10 };
    let before = Counters::of(node.http()).await;
    let load = Produce {
        topic,
        partitions,
        // A connection has five batches of a partition in flight: what bounds a load of short ones is their acks.
        connections: if long { 4 } else { 192 },
        in_flight: 5,
        record_bytes,
        // Below the largest batch that a node takes, by its framing.
        batch_bytes: if long { batch_bytes - (4 << 10) } else { batch_bytes },
        records: load_bytes() / record_bytes,
        rate: setup::is_long().then_some(200 * MIB / record_bytes),
    };
    let produced = produce(folder, node.kafka(), node.http(), load).await;
    flushed(node.http(), SOON).await;
    let cost = Counters::of(node.http()).await.since(before);
    let (gib, speed) = (produced.gib(), produced.mib_per_second());
    let per_gib = |count| to_f64(count) / gib;
    let written = to_f64(cost.put_bytes) / to_f64(produced.bytes);
    println!(
        "{partitions} partitions, batches of {} KiB: {speed:.0} MiB/s; per GiB {:.0} requests: {:.0} WAL PUT, {:.0} other \
         PUT, {:.0} DELETE, {:.0} GET, {:.0} LIST; {written:.3} bytes written per byte",
        batch_bytes >> 10,
        per_gib(cost.requests),
        per_gib(cost.wal_puts),
        per_gib(cost.puts - cost.wal_puts),
        per_gib(cost.deletes),
        per_gib(cost.gets),
        per_gib(cost.lists),
    );
    // The last object of a load is not full, and its first one is cut at once.
    let wal_most = (WAL_PUTS_PER_SECOND * (produced.seconds + 0.5)).max(WAL_PUTS_PER_GIB * gib) + 2.0;
    assert!(to_f64(cost.wal_puts) <= wal_most, "{cost:?} in {:.2} s, {gib:.2} GiB", produced.seconds);
    // One bulk deletion per flush.
    assert!(cost.deletes <= cost.flushes, "{cost:?}");
    let others = to_f64(cost.requests - cost.wal_puts);
    // A load that is short has a last flush, and may see a snapshot, like a long one.
    assert!(others <= OTHERS_PER_GIB * gib + 8.0, "{cost:?}");
    assert!(written <= BYTES_WRITTEN_MAX, "{cost:?} of {} bytes", produced.bytes);
    if speed >= 160.0 {
        assert!(to_f64(cost.requests) <= REQUESTS_PER_GIB * gib + 8.0, "{cost:?}");
    }
    (produced, cost)
}

#[tokio::test]
async fn requests_per_gib_do_not_go_with_batches_or_partitions() {
    let folder = Folder::new();
    let config = setup::node(&folder).storage(STORE).flag("--memory", "2GiB").flag("--wal-flush-age", "3s");
    // What is counted is the way of a byte until it is committed; compaction has a rate of its own.
    let config = config.flag("--compaction-bytes-per-second", "0");
    let mut node = config.start().await.unwrap();
    let mut costs = Vec::new();
    for (topic, partitions, batch_bytes) in
        [("a", 1, MIB), ("b", 64, MIB), ("c", 1, 16 << 10), ("d", 64, 16 << 10)]
    {
        let (produced, cost) = cost(&folder, &node, topic, partitions, batch_bytes).await;
        costs.push(to_f64(cost.requests) / produced.gib());
    }
    if setup::is_long() {
        let (least, most) = costs.iter().fold((f64::MAX, 0.0f64), |(a, b), n| (a.min(*n), b.max(*n)));
        assert!(most <= least * 1.1, "{costs:?} requests per GiB");
    }
    node.stop(Duration::from_mins(1)).await.unwrap();
}
