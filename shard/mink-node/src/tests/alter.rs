//! Tables that change under a node that serves them.
//!
//! Lives on: the simulation's thread.
use super::story;
use super::suspect::PATIENCE;
use mink_api::AdminError;
use mink_metadata::{ConfigScope, FEATURE_LEVEL_CONFIGS};
use mink_types::{BucketEpoch, BucketId, BucketIndex, CleanupPolicy, NodeId, Offset, TableOptions};
use std::collections::BTreeMap;

#[test]
fn added_buckets_open_take_records_and_are_there_after_a_restart() {
    story(|site| async move {
        let mut machine = site.start(site.config(1)).await.expect("starts");
        let seen = TableOptions::default();
        let table = machine.create_with("t", seen.clone()).await;
        let bucket = |index| BucketId::unpartitioned(table, BucketIndex(index));
        let admin = machine.node.admin();
        assert!(admin.wait_open(table, PATIENCE).await);
        machine.append(bucket(0), 2).await;
        let grown = TableOptions { buckets: 3, batch_bytes_max: 2 << 20, ..seen.clone() };
        admin.alter_table(table, seen.clone(), grown.clone(), None).await.expect("altered");
        assert!(admin.wait_open(table, PATIENCE).await, "the new buckets have an owner");
        assert_eq!(machine.append(bucket(2), 1).await, Offset(0));
        assert_eq!(machine.append(bucket(0), 1).await, Offset(2), "the old ones go on");
        let late = admin.alter_table(table, seen, grown, None).await.expect_err("made from what is no more");
        assert!(matches!(late, AdminError::Conflict { .. }), "{late:?}");
        assert_eq!(late.to_string(), "table kafka.t was changed meanwhile; try again in a moment");
        machine.node.stop().await;
        machine = site.start(site.config(1)).await.expect("starts again");
        assert!(machine.node.admin().wait_open(table, PATIENCE).await);
        let read = [
            machine.records(bucket(0)).await,
            machine.records(bucket(1)).await,
            machine.records(bucket(2)).await,
        ];
        assert_eq!(read, [3, 0, 1]);
        machine.node.stop().await;
    });
}

#[test]
fn k_17_a_reader_learns_where_an_earlier_owners_epoch_ended_after_a_restart() {
    story(|site| async move {
        let mut machine = site.start(site.config(1)).await.expect("starts");
        let table = machine.create_with("t", TableOptions::default()).await;
        let bucket = BucketId::unpartitioned(table, BucketIndex(0));
        for life in 1..=3_u64 {
            assert!(machine.node.admin().wait_open(table, PATIENCE).await);
            machine.append(bucket, 2).await;
            let source = machine.node.source();
            let mut ends = Vec::new();
            for epoch in 0..=4 {
                let end = source.epoch_end(bucket, BucketEpoch(epoch), None).await.expect("known");
                ends.push(end.map(|end| (end.epoch.0, end.end.0)));
            }
            let own = machine.state().bucket(&bucket).expect("there").epoch;
            assert_eq!(u64::from(own.0), life, "each life is an epoch");
            let expected = (0..=4_u32).map(|epoch| match u64::from(epoch) {
                0 => Some((0, 0)),
                epoch if epoch <= life => Some((u32::try_from(epoch).expect("small"), epoch * 2)),
                _ => None,
            });
            assert_eq!(ends, expected.collect::<Vec<_>>());
            machine.node.stop().await;
            machine = site.start(site.config(1)).await.expect("starts again");
        }
        machine.node.stop().await;
    });
}

#[test]
fn what_was_set_for_brokers_is_there_after_a_restart_and_lost_by_no_other_change() {
    story(|site| async move {
        let mut machine = site.start(site.config(1)).await.expect("starts");
        let own = ConfigScope::Node(machine.node.admin().identity().node);
        let configs = |value: &str| BTreeMap::from([("log.roll.ms".to_owned(), value.to_owned())]);
        let admin = machine.node.admin();
        for (scope, value) in [(own, "1"), (ConfigScope::Cluster, "2")] {
            admin.alter_broker_configs(scope, BTreeMap::new(), configs(value)).await.expect("set");
            assert_eq!(machine.state().broker_configs(scope), &configs(value), "known when it is answered");
        }
        let late = admin.alter_broker_configs(own, BTreeMap::new(), configs("3")).await;
        assert!(matches!(late, Err(AdminError::Conflict { .. })), "made from what is no more: {late:?}");
        let nobody = ConfigScope::Node(NodeId(77));
        let unknown = admin.alter_broker_configs(nobody, BTreeMap::new(), configs("3")).await;
        assert!(matches!(unknown, Err(AdminError::Invalid { .. })), "{unknown:?}");
        for _ in 0..2 {
            machine.node.stop().await;
            machine = site.start(site.config(1)).await.expect("starts again");
            let state = machine.state();
            assert_eq!(state.broker_configs(own), &configs("1"));
            assert_eq!(state.broker_configs(ConfigScope::Cluster), &configs("2"));
        }
        let admin = machine.node.admin();
        admin.alter_broker_configs(own, configs("1"), BTreeMap::new()).await.expect("deleted");
        assert!(machine.state().broker_configs(own).is_empty());
        machine.node.stop().await;
    });
}

#[test]
fn what_nothing_goes_by_is_kept_over_a_restart_and_taken_without_being_kept_by_an_older_log() {
    story(|site| async move {
        let mut seen = TableOptions::default();
        seen.kept.set("segment.ms".into(), "5".into());
        let mut machine = site.start(site.config(1)).await.expect("starts");
        let table = machine.create_with("t", seen.clone()).await;
        let mut altered = seen.clone();
        altered.kept.set("flush.ms".into(), "7".into());
        machine.node.admin().alter_table(table, seen, altered.clone(), None).await.expect("altered");
        machine.node.stop().await;
        machine = site.start(site.config(1)).await.expect("starts again");
        assert_eq!(machine.state().table(table).expect("there").options, altered);
        machine.node.stop().await;
    });
    story(|site| async move {
        let mut options = TableOptions::default();
        options.kept.set("segment.ms".into(), "5".into());
        site.stillborn_of(2, FEATURE_LEVEL_CONFIGS - 1).await;
        let machine = site.start(site.config(1)).await.expect("starts");
        assert!(machine.state().feature_level() < FEATURE_LEVEL_CONFIGS, "an older node is there");
        let table = machine.create_with("t", options.clone()).await;
        let plain = TableOptions::default();
        assert_eq!(machine.state().table(table).expect("there").options, plain);
        machine.node.admin().alter_table(table, plain.clone(), options, None).await.expect("taken");
        assert_eq!(machine.state().table(table).expect("there").options, plain);
        machine.node.stop().await;
    });
}

#[test]
fn p_15_what_retention_goes_by_takes_effect_at_once_on_a_table_that_nobody_writes_to() {
    story(|site| async move {
        let machine = site.start(site.config(1)).await.expect("starts");
        let plain = TableOptions { buckets: 2, log_ttl_ms: None, ..TableOptions::default() };
        let by_age = TableOptions { log_ttl_ms: Some(1_000), ..plain.clone() };
        let by_size = TableOptions { retention_bytes: Some(0), ..plain.clone() };
        let compact =
            |options: &TableOptions| TableOptions { cleanup: CleanupPolicy::Compact, ..options.clone() };
        let both = TableOptions { cleanup: CleanupPolicy::CompactDelete, ..by_age.clone() };
        let pairs = [
            (plain.clone(), by_age.clone()),
            (plain.clone(), by_size.clone()),
            (compact(&by_age), by_age.clone()),
            (compact(&by_size), by_size),
            (compact(&by_age), both),
        ];
        let admin = machine.node.admin();
        let mut tables = Vec::new();
        for (place, (before, _)) in pairs.iter().enumerate() {
            let table = machine.create_with(&format!("t{place}"), before.clone()).await;
            assert!(admin.wait_open(table, PATIENCE).await);
            tables.push(table);
        }
        let buckets = |table| (0..2).map(move |index| BucketId::unpartitioned(table, BucketIndex(index)));
        let all: Vec<BucketId> = tables.iter().copied().flat_map(buckets).collect();
        for bucket in &all {
            machine.append(*bucket, 5).await;
        }
        site.until(PATIENCE, async || all.iter().all(|bucket| machine.end(*bucket) == Offset(5))).await;
        site.sleep(PATIENCE).await;
        let starts = |table| {
            let state = machine.state();
            buckets(table).map(|bucket| state.bucket(&bucket).expect("there").start.0).collect::<Vec<_>>()
        };
        for (table, (before, after)) in tables.iter().zip(pairs) {
            assert_eq!(starts(*table), [0, 0], "kept by {before:?}");
            admin.alter_table(*table, before, after, None).await.expect("altered");
            site.until(PATIENCE, async || starts(*table) == [5, 5]).await;
        }
        machine.node.stop().await;
    });
}
