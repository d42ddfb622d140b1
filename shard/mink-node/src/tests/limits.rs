//! Limits that clients meet without being told: the node counts them.
//!
//! Lives on: the simulation's thread.
use super::suspect::PATIENCE;
use super::{Machine, story};
use bytes::Bytes;
use mink_api::MetricValue;
use mink_record::RecordErrorKind;
use mink_record::kafka::{BatchBuilder, BatchHeader, Codec, ProducerStamp, RecordRef};
use mink_router::Position;
use mink_types::{BucketId, BucketIndex, Offset, TableOptions, Timestamp};
use std::time::Duration;

/// What a batch may inflate to here.
const INFLATED_MAX: u32 = 64 << 10;

/// One record of so many bytes.
fn batch(bytes: usize, codec: Codec, stamp: Option<ProducerStamp>) -> Bytes {
    let (mut batch, value) = (BatchBuilder::new(), vec![0; bytes]);
    let record = RecordRef { timestamp: 1_767_225_600_000, value: Some(&value), ..RecordRef::default() };
    batch.push(record).expect("small");
    batch.build(codec, stamp).expect("small")
}

/// A counter of the node, over all shards.
async fn count(machine: &Machine, name: &str) -> u64 {
    let found = machine.node.admin().metrics().await.into_iter().filter(|metric| metric.name == name);
    let counts: Vec<u64> = found
        .map(|metric| match metric.value {
            MetricValue::Counter(count) => count,
            other => panic!("{name} is no counter: {other:?}"),
        })
        .collect();
    assert!(!counts.is_empty(), "{name} is told");
    counts.iter().sum()
}

#[test]
fn k_29_batches_that_inflate_to_more_than_the_limit_are_counted() {
    const COUNT: &str = "mink_inflated_refused";
    story(|site| async move {
        let mut config = site.config(1);
        config.limits.inflated_bytes_max = INFLATED_MAX;
        let machine = site.start(config).await.expect("starts");
        let table = machine.create_with("t", TableOptions::default()).await;
        assert!(machine.node.admin().wait_open(table, PATIENCE).await);
        let bucket = BucketId::unpartitioned(table, BucketIndex(0));
        let (fits, bomb) = (batch(60_000, Codec::Gzip, None), batch(1 << 20, Codec::Gzip, None));
        let source = machine.node.source();
        machine.append_batch(bucket, bomb.clone()).await;
        assert_eq!(count(&machine, COUNT).await, 0, "produce inflates nothing");
        machine.append_batch(bucket, fits.clone()).await;
        let at = Position::at_or_after(Timestamp(1_000));
        let found = source.locate(bucket, at, None).await.expect("readable");
        assert_eq!(found.offset, Some(Offset(1)), "behind what nobody may inflate");
        assert_eq!(count(&machine, COUNT).await, 1, "one of the two batches that were looked into");
        for (batch, refused, counted) in [(fits, None, 1), (bomb, Some(RecordErrorKind::InflatedTooLarge), 2)]
        {
            let header = BatchHeader::parse(&batch).expect("a batch");
            let looked = source.keyless(header, batch, 1).await.expect("answered");
            assert_eq!(looked.err().map(|error| error.kind()), refused);
            assert_eq!(count(&machine, COUNT).await, counted);
        }
        machine.node.stop().await;
    });
}

#[test]
fn t_9_silent_producers_that_are_forgotten_are_counted() {
    const COUNT: &str = "mink_append_producers_expired";
    story(|site| async move {
        let mut config = site.config(1);
        config.limits.producer_expiry_ms = 10_000;
        let machine = site.start(config).await.expect("starts");
        let table = machine.create_with("t", TableOptions::default()).await;
        assert!(machine.node.admin().wait_open(table, PATIENCE).await);
        let bucket = BucketId::unpartitioned(table, BucketIndex(0));
        let of = |id| batch(10, Codec::None, Some(ProducerStamp { id, epoch: 0, base_sequence: 0 }));
        machine.append_batch(bucket, of(7)).await;
        site.sleep(Duration::from_secs(5)).await;
        machine.append_batch(bucket, of(8)).await;
        assert_eq!(count(&machine, COUNT).await, 0);
        site.sleep(Duration::from_secs(6)).await;
        machine.append(bucket, 1).await;
        assert_eq!(count(&machine, COUNT).await, 1, "8 has written within the last 10 s");
        machine.node.stop().await;
    });
}
