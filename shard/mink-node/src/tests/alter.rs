//! Tables that change under a node that serves them.
//!
//! Lives on: the simulation's thread.
use super::story;
use super::suspect::PATIENCE;
use mink_api::AdminError;
use mink_types::{BucketEpoch, BucketId, BucketIndex, Offset, TableOptions};

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
        admin.alter_table(table, seen.clone(), grown.clone()).await.expect("altered");
        assert!(admin.wait_open(table, PATIENCE).await, "the new buckets have an owner");
        assert_eq!(machine.append(bucket(2), 1).await, Offset(0));
        assert_eq!(machine.append(bucket(0), 1).await, Offset(2), "the old ones go on");
        let late = admin.alter_table(table, seen, grown).await.expect_err("made from what is no more");
        assert!(matches!(late, AdminError::Conflict { .. }), "{late:?}");
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
