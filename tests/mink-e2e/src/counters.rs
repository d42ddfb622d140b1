//! What a load costs at the store: requests and bytes per GiB, counted by the node, on a store whose PUT takes 50 ms.
//!
//! The in-process store's PUTs cost nothing, so it has no budget of them by default; the node gets the one of a store that bills.
//!
//! The short form asserts what does not depend on how fast the machine is. `MINK_E2E_LONG=1` with `MINK_BIN` naming a release build
//! produces a GiB per case at a steady 170 MiB/s, asserts the figures for 160 MiB/s and more of the cases that get there, and that
//! they cost the same if all do. Below, what is bounded is PUTs a second: there only the other requests are compared.

use std::time::Duration;

use mink_testkit::node::Node;

use crate::bench::{Counters, Produce, Produced, produce, to_f64};
use crate::setup::{self, Folder, flushed};
use crate::wire::SOON;

const STORE: &str = "memory://?put-latency=50ms&get-latency=50ms";
const MIB: u64 = 1 << 20;
/// What the long form asks for, and what counts as fast.
const STEADY_MIB_PER_SECOND: f64 = 170.0;
const FAST_MIB_PER_SECOND: f64 = 160.0;
/// What the cases may differ in, from the cheapest to the dearest.
const SPREAD_MAX: f64 = 1.1;
/// The cases, as partitions and bytes of a batch.
const CASES: [(u32, u64); 4] = [(1, MIB), (64, MIB), (1, 16 << 10), (64, 16 << 10)];
/// PUTs of WAL objects a second, and per GiB, of which the larger bound counts; hedged and repeated ones are among them.
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

/// One load, flushed, at most at `rate` MiB/s if there is one; what it came to and what it cost.
async fn cost(
    folder: &Folder,
    node: &Node,
    topic: &str,
    (partitions, batch_bytes): (u32, u64),
    rate: Option<f64>,
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
        rate: rate.map(|rate| per_second(rate, record_bytes)),
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
    if speed >= FAST_MIB_PER_SECOND {
        assert!(to_f64(cost.requests) <= REQUESTS_PER_GIB * gib + 8.0, "{cost:?}");
    }
    (produced, cost)
}

/// Records a second of so many MiB/s.
fn per_second(mib: f64, record_bytes: u64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate, far below 2^53")]
    let bytes = (mib * to_f64(MIB)) as u64;
    bytes / record_bytes
}

/// Asserts that the cases do not differ in what they cost, but for `beside` of them.
fn are_the_same(what: &str, costs: &[f64], beside: f64) {
    let (least, most) = costs.iter().fold((f64::MAX, 0.0f64), |(a, b), n| (a.min(*n), b.max(*n)));
    assert!(most <= least * SPREAD_MAX + beside, "{what} per GiB: {costs:?}");
}

#[tokio::test]
async fn requests_per_gib_do_not_go_with_batches_or_partitions() {
    let folder = Folder::new();
    let config = setup::node(&folder).storage(STORE).flag("--memory", "2GiB").flag("--wal-flush-age", "3s");
    let config = config.flag("--wal-puts-per-second", &WAL_PUTS_PER_SECOND.to_string());
    // What is counted is the way of a byte until it is committed; compaction has a rate of its own.
    let config = config.flag("--compaction-bytes-per-second", "0");
    let mut node = config.start().await.unwrap();
    let (mut slowest, mut all, mut others) = (f64::MAX, Vec::new(), Vec::new());
    for (n, case) in CASES.into_iter().enumerate() {
        let rate = setup::is_long().then_some(STEADY_MIB_PER_SECOND);
        let (produced, cost) = cost(&folder, &node, &format!("case-{n}"), case, rate).await;
        slowest = slowest.min(produced.mib_per_second());
        all.push(to_f64(cost.requests) / produced.gib());
        others.push(to_f64(cost.requests - cost.wal_puts) / produced.gib());
    }
    if setup::is_long() {
        // A listing, or a snapshot, may fall into any of them.
        are_the_same("requests beside WAL PUTs", &others, 4.0);
        if slowest >= FAST_MIB_PER_SECOND {
            are_the_same("requests", &all, 0.0);
        } else {
            println!("the slowest case came to {slowest:.0} MiB/s: too slow to compare WAL PUTs per GiB");
        }
    }
    node.stop(Duration::from_mins(1)).await.unwrap();
}
