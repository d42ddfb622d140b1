//! What the collector must leave alone: uploads without a commit, and everything while the database does not speak.
//!
//! Lives on: the simulation's thread.
use super::suspect::{PATIENCE, fenced};
use super::{GRACE, Machine, Site, story};
use crate::{NodeConfig, NodeEnd};
use mink_sql::{Coins, CommandLog, FaultyLog, LogCall};
use mink_types::{BucketId, BucketIndex, ObjectKey, Offset, TableOptions};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A database that takes none of `calls` while `stalled` says so.
fn stalling(site: &Site, stalled: &Arc<AtomicBool>, calls: &'static [LogCall]) -> Arc<dyn CommandLog> {
    let stalled = Arc::clone(stalled);
    let draw = move |call| {
        let stalls = stalled.load(Ordering::Relaxed) && calls.contains(&call);
        if stalls { Coins::RequestLost } else { Coins::Well }
    };
    Arc::new(FaultyLog::new(Arc::clone(&site.log), draw))
}

/// A bucket of a new table that the machine serves.
async fn served(site: &Site, machine: &Machine, name: &str, buckets: u32) -> BucketId {
    let table = machine.create_with(name, TableOptions { buckets, ..TableOptions::default() }).await;
    let mut found = None;
    site.until(PATIENCE, async || {
        let status = machine.node.admin().status().await;
        found = status.buckets.iter().map(|served| served.bucket).find(|bucket| bucket.table == table);
        found.is_some()
    })
    .await;
    found.expect("found")
}

/// Appends ten records and waits until they are uploaded though not committed: the new objects.
async fn uploaded(site: &Site, machine: &Machine, bucket: BucketId) -> BTreeSet<ObjectKey> {
    let before = site.stream_objects().await;
    assert_eq!(machine.append(bucket, 10).await, Offset(0));
    let mut new = BTreeSet::new();
    site.until(PATIENCE, async || {
        new = site.stream_objects().await.difference(&before).cloned().collect();
        !new.is_empty()
    })
    .await;
    assert_eq!(machine.end(bucket), Offset(0), "no commit has come through");
    new
}

fn referenced(site: &Site, machine: &Machine) -> BTreeSet<ObjectKey> {
    machine.state().objects().map(|(id, _)| ObjectKey::object(&site.cluster, *id)).collect()
}

#[test]
fn p_16_what_was_uploaded_long_before_its_commit_is_still_there_then() {
    story(|site| async move {
        let stalled = Arc::new(AtomicBool::new(false));
        let log = stalling(&site, &stalled, &[LogCall::Append]);
        let node = site.start(NodeConfig { log, ..site.config(1) }).await.expect("starts");
        let gone = served(&site, &node, "gone", 1).await;
        node.append(gone, 5).await;
        site.until(PATIENCE, async || node.end(gone) == Offset(5)).await;
        let dropped = site.stream_objects().await;
        node.node.admin().drop_table(gone.table).await.expect("dropped");
        let bucket = served(&site, &node, "t", 1).await;
        stalled.store(true, Ordering::Relaxed);
        let new = uploaded(&site, &node, bucket).await;
        site.sleep(GRACE * 5).await;
        let left = site.stream_objects().await;
        assert!(dropped.is_disjoint(&left), "the collector has been at work: {left:?}");
        assert!(
            new.is_subset(&left) && referenced(&site, &node).is_disjoint(&new),
            "uploaded, not committed"
        );
        stalled.store(false, Ordering::Relaxed);
        site.until(PATIENCE, async || node.end(bucket) == Offset(10)).await;
        site.sleep(GRACE * 5).await;
        assert_eq!(referenced(&site, &node), new);
        assert_eq!((site.stream_objects().await, node.records(bucket).await), (new, 10));
        node.node.stop().await;
    });
}

#[test]
fn p_16_the_commit_of_a_node_that_was_given_up_meanwhile_fails_and_what_it_uploaded_is_gone() {
    story(|site| async move {
        let stalled = Arc::new(AtomicBool::new(false));
        let log = stalling(&site, &stalled, &[LogCall::Append]);
        let mut uploader = site.start(NodeConfig { log, ..site.config(1) }).await.expect("starts");
        let taker = site.start(site.config(2)).await.expect("starts");
        let bucket = served(&site, &uploader, "t", 2).await;
        stalled.store(true, Ordering::Relaxed);
        let new = uploaded(&site, &uploader, bucket).await;
        uploader.process.pause();
        fenced(&site, &taker, uploader.id()).await;
        site.until(PATIENCE, async || taker.node.admin().status().await.buckets.len() == 2).await;
        assert_eq!(taker.records(bucket).await, 10, "from the WAL, whatever was uploaded");
        site.until(GRACE * 5, async || site.stream_objects().await.is_disjoint(&new)).await;
        // Its owner comes back, and with it the commit that it was about to make.
        stalled.store(false, Ordering::Relaxed);
        uploader.process.resume();
        let end = uploader.node.ended().await;
        assert!(matches!(end, NodeEnd::Fenced { .. }), "{end}");
        site.sleep(GRACE * 5).await;
        assert!(referenced(&site, &taker).is_disjoint(&new));
        assert_eq!(taker.records(bucket).await, 10);
        taker.node.stop().await;
        uploader.node.stop().await;
    });
}

#[test]
fn p_15_a_rebuilt_node_that_cannot_reach_the_database_deletes_nothing() {
    const WRITES: &[LogCall] = &[LogCall::Append, LogCall::Beat, LogCall::Write];
    const ALL: &[LogCall] = &[LogCall::Append, LogCall::Beat, LogCall::Write, LogCall::Read];
    story(|site| async move {
        let first = site.start(site.config(1)).await.expect("starts");
        let bucket = served(&site, &first, "t", 1).await;
        for round in 0..10 {
            assert_eq!(first.append(bucket, 100).await, Offset(round * 100));
        }
        site.until(PATIENCE, async || first.end(bucket) == Offset(1_000)).await;
        first.process.kill();
        let before = site.stream_objects().await;
        let service = site.world.runtime().service();
        for calls in [WRITES, ALL] {
            let away = Arc::new(AtomicBool::new(true));
            let config = NodeConfig { log: stalling(&site, &away, calls), ..site.config(1) };
            let rebuilt = site.wiped();
            let started = service.timeout(GRACE * 5, rebuilt.start(config)).await;
            assert!(
                !matches!(started, Ok(Ok(_))),
                "it takes nothing over that the database does not give it"
            );
            assert_eq!(site.stream_objects().await, before);
        }
        let wiped = site.wiped();
        let rebuilt = wiped.start(site.config(1)).await.expect("starts");
        site.sleep(GRACE * 5).await;
        assert_eq!((rebuilt.records(bucket).await, site.stream_objects().await), (1_000, before));
        rebuilt.node.stop().await;
    });
}

#[test]
fn p_15_retention_drops_nothing_that_the_database_has_not_heard_of() {
    story(|site| async move {
        let away = Arc::new(AtomicBool::new(false));
        let log = stalling(&site, &away, &[LogCall::Append, LogCall::Beat, LogCall::Write, LogCall::Read]);
        let node = site.start(NodeConfig { log, ..site.config(1) }).await.expect("starts");
        let options = TableOptions { log_ttl_ms: Some(60_000), ..TableOptions::default() };
        let table = node.create_with("short", options).await;
        assert!(node.node.admin().wait_open(table, PATIENCE).await);
        let bucket = BucketId::unpartitioned(table, BucketIndex(0));
        for round in 0..2 {
            node.append(bucket, 10).await;
            site.until(PATIENCE, async || node.end(bucket) == Offset(round * 10 + 10)).await;
        }
        let before = site.stream_objects().await;
        assert_eq!(before.len(), 2);
        away.store(true, Ordering::Relaxed);
        site.sleep(Duration::from_hours(1)).await;
        assert_eq!(site.stream_objects().await, before, "an hour beyond their time");
        away.store(false, Ordering::Relaxed);
        site.until(PATIENCE, async || node.state().bucket(&bucket).expect("there").start == Offset(20)).await;
        // The last one tells of the log's producers.
        site.until(GRACE * 5, async || site.stream_objects().await.len() == 1).await;
        node.node.stop().await;
    });
}
