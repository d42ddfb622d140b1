//! I20: what a node holds in memory is bounded by `--memory`, whatever clients do: under load, at rest, after many rotations.

mod copies;
mod load;
mod rest;
mod rotations;
mod too_large;

use bytes::Bytes;
use mink_testkit::http;
use mink_testkit::node::Node;

use crate::setup;
use crate::wire::batch;

/// What a process holds beside what `--memory` counts: code, stacks, the database's pages, the allocator's slack.
const FIXED_MIB: u64 = 64;

/// Resident memory of a node now, in KiB.
fn resident(node: &mut Node) -> u64 {
    setup::resident_kib(node.process().id()).0
}

/// The sum of a count of the node over all its labels.
async fn metric(node: &Node, name: &str) -> u64 {
    let answer = http::get(node.http(), "/metrics").await.unwrap();
    assert_eq!(answer.status, 200, "{}", answer.body);
    whole(answer.metric_sum(name))
}

/// A count that came as text.
fn whole(count: f64) -> u64 {
    assert!(count >= 0.0, "{count}");
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count, not negative")]
    let count = count as u64;
    count
}

/// What the node says that its parts hold, as text.
async fn parts(node: &Node) -> String {
    let answer = http::get(node.http(), "/metrics").await.unwrap();
    let lines = answer.body.lines().filter(|line| line.starts_with("mink_memory_bytes"));
    lines.map(|line| line.trim_start_matches("mink_memory_bytes")).collect::<Vec<_>>().join(", ")
}

/// A batch of about so many bytes.
fn large_batch(bytes: usize) -> Bytes {
    // Values that differ, so that nothing on the way finds a short form for them.
    let values = (0..bytes / 4096).map(|n| format!("{n:08}").repeat(4096 / 8 - 2));
    batch(values, None)
}
