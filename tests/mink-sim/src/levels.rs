//! The gauges of a node against the bounds it was configured with.
//!
//! Lives on: the simulation's thread.
//! Invariants checked: I20.
use crate::machine::{Serving, Site};
use mink_api::{Metric, MetricValue};
use std::sync::Arc;

/// What one batch may add to a bound that is looked at before a batch is taken.
const ONE_MORE: u64 = 256 << 10;

/// What a shard's arena may hold beside the budget: it takes memory by the MiB, and one piece is being filled while another one goes.
const ARENA: u64 = 2 << 20;

/// Asks a node for its levels and compares them.
pub(crate) async fn check(site: Site, serving: Serving) {
    let admin = Arc::clone(&serving.admin);
    let Some(metrics) = serving.call(async move { admin.metrics().await }).await else { return };
    let plan = &site.plan;
    // What is not flushed stays in memory: it is bounded by the WAL. Beyond that a shard keeps no more than its share, so the worst is
    // that one has all that is not flushed, and the others are full of what is.
    let unflushed = level(&metrics, "mink_wal_untrimmed_bytes") + level(&metrics, "mink_wal_waiting_bytes");
    let shards = plan.shards as u64;
    let share = plan.tail_bytes / shards.max(1);
    let log = share.max(ARENA) * shards.saturating_sub(1) + share.max(unflushed + ARENA);
    let most = |metric: &Metric| match (metric.name, part(metric)) {
        ("mink_wal_untrimmed_objects", _) => Some(plan.wal.untrimmed_objects_max as u64),
        ("mink_wal_untrimmed_bytes", _) => Some(plan.wal.untrimmed_bytes_max),
        ("mink_wal_in_flight", _) => Some(plan.wal.puts_in_flight_max as u64),
        ("mink_wal_waiting_bytes", _) => Some(plan.wal.waiting_bytes_max + ONE_MORE),
        ("mink_memory_bytes", "log") => Some(log),
        ("mink_memory_bytes", "footers") => Some(plan.footer_cache_bytes as u64 + ONE_MORE),
        ("mink_memory_bytes", "blocks") => Some(plan.block_cache_bytes as u64 + ONE_MORE),
        _ => None,
    };
    for metric in &metrics {
        let (Some(most), MetricValue::Gauge(level)) = (most(metric), &metric.value) else { continue };
        #[expect(clippy::cast_precision_loss, reason = "bounds lie far below 2^53")]
        let most = most as f64;
        if *level > most {
            let (name, part) = (metric.name, part(metric));
            site.history.violated(format!("I20: {name} {part} is {level}, its bound is {most}"));
        }
    }
}

fn part(metric: &Metric) -> &str {
    metric.labels.iter().find(|(name, _)| *name == "part").map_or("", |(_, value)| value.as_str())
}

/// A gauge in whole bytes; 0 if it is not shown.
fn level(metrics: &[Metric], name: &str) -> u64 {
    let found = metrics.iter().find(|metric| metric.name == name).map(|metric| &metric.value);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "levels are small and not negative"
    )]
    match found {
        Some(MetricValue::Gauge(level)) => *level as u64,
        _ => 0,
    }
}
