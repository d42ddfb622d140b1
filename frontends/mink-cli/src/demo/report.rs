//! What the demo prints at its end.
//!
//! Lives on: anywhere (pure).
use super::Outcome;
use super::node::Ready;
use crate::{histogram, numbers};

/// What it cost: time, requests, bytes.
pub(super) fn lines(outcome: &Outcome) -> Vec<String> {
    let work = &outcome.work;
    let requests = |op: &str| numbers::count(work.requests_of(op));
    let restarts: Vec<String> = outcome.restarts.iter().map(|took| numbers::time(*took)).collect();
    let mut lines = vec![
        String::new(),
        format!(
            "records   {}, {} of keys and values; produced in {}, read back in {}",
            numbers::count(outcome.records),
            numbers::bytes(outcome.value_bytes),
            numbers::time(outcome.feed.took),
            numbers::time(outcome.checked.took)
        ),
        format!("kill -9   2 times; from start to ready: {}", restarts.join(", ")),
        format!(
            "store     {} PUT ({}), {} GET ({}), {} LIST, {} DELETE; over all three lives of the node",
            requests("put"),
            numbers::bytes(work.bytes_of("put")),
            requests("get"),
            numbers::bytes(work.bytes_of("get")),
            requests("list"),
            requests("delete")
        ),
        format!("acks      {}", histogram::percentiles(&outcome.feed.latency)),
        "          each bar counts records acked within that time; the slowest waited for the restart".into(),
    ];
    lines.extend(histogram::bars(&outcome.feed.latency));
    lines
}

/// How to look around in a node that was left running.
pub(super) fn how_to_reach(ready: &Ready, topic: &str) -> Vec<String> {
    vec![
        String::new(),
        "The node is running. In another terminal:".into(),
        format!("  kcat -C -b {} -t {topic} -o beginning -c 5", ready.kafka),
        format!("  mink read kafka.{topic} --addr {} -n 5", ready.flight),
        format!(
            "  mink read {} --addr {} --columns carrier,arr_delay -n 5",
            super::typed::TABLE,
            ready.flight
        ),
        format!("  mink sql --addr {}", ready.flight),
        format!("  mink table describe kafka.{topic} --addr {}", ready.flight),
        "Ctrl-C ends it and removes its data.".into(),
    ]
}
