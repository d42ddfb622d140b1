//! Retention by age and by size, DeleteRecords: where logs begin then, over restarts too, and that what they forgot leaves the store.

use mink_kafka_wire::ErrorCode;
use mink_kafka_wire::messages::create_topics::{CreatableTopic, CreatableTopicConfig, CreateTopicsRequest};
use mink_kafka_wire::messages::delete_records::{
    DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic,
};
use mink_kafka_wire::messages::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use mink_testkit::http;

use crate::setup::{self, Folder, until};
use crate::wire::{SOON, Wire, batch, values};

const TOPIC: &str = "t";
const EARLIEST: i64 = -2;

async fn create(wire: &mut Wire, topic: &str, partitions: i32, configs: &[(&str, &str)]) {
    let configs = configs
        .iter()
        .map(|(name, value)| CreatableTopicConfig { name: (*name).into(), value: Some((*value).into()) });
    let request = CreateTopicsRequest {
        topics: vec![CreatableTopic {
            name: topic.into(),
            num_partitions: partitions,
            replication_factor: 1,
            configs: configs.collect(),
            ..CreatableTopic::default()
        }],
        timeout_ms: 30_000,
        ..CreateTopicsRequest::default()
    };
    let answer = wire.call(7, &request).await.unwrap();
    assert_eq!(answer.topics[0].error_code, 0, "{answer:?}");
}

/// The first offset that is kept.
async fn earliest(wire: &mut Wire, topic: &str, partition: i32) -> i64 {
    let partition =
        ListOffsetsPartition { partition_index: partition, current_leader_epoch: -1, timestamp: EARLIEST };
    let request = ListOffsetsRequest {
        replica_id: -1,
        topics: vec![ListOffsetsTopic { name: topic.into(), partitions: vec![partition] }],
        ..ListOffsetsRequest::default()
    };
    let answer = wire.call(7, &request).await.unwrap();
    let partition = &answer.topics[0].partitions[0];
    assert_eq!(partition.error_code, 0, "{answer:?}");
    partition.offset
}

/// Error code and low watermark of each partition.
async fn delete_records(wire: &mut Wire, topic: &str, up_to: &[(i32, i64)]) -> Vec<(i16, i64)> {
    let partitions = up_to.iter().map(|(partition_index, offset)| DeleteRecordsPartition {
        partition_index: *partition_index,
        offset: *offset,
    });
    let request = DeleteRecordsRequest {
        topics: vec![DeleteRecordsTopic { name: topic.into(), partitions: partitions.collect() }],
        timeout_ms: 30_000,
    };
    let answer = wire.call(2, &request).await.unwrap();
    let results = answer.topics[0].partitions.iter();
    results.map(|result| (result.error_code, result.low_watermark)).collect()
}

/// Forgets what lies below an offset, which must succeed.
pub(crate) async fn forget(wire: &mut Wire, topic: &str, partition: i32, up_to: i64) {
    assert_eq!(delete_records(wire, topic, &[(partition, up_to)]).await, [(0, up_to)]);
}

async fn metric(address: &str, name: &str) -> f64 {
    http::get(address, "/metrics").await.unwrap().metric_sum(name)
}

/// Bytes of all stream objects.
fn stream_bytes(folder: &Folder) -> u64 {
    let objects = setup::objects(&folder.join("data").join("objects").join("mink").join("stream"));
    objects.iter().map(|path| path.metadata().map_or(0, |file| file.len())).sum()
}

#[tokio::test]
async fn what_is_older_than_its_topic_keeps_goes_and_nothing_younger() {
    let folder = Folder::new();
    let config = setup::node(&folder).flag("--wal-flush-age", "200ms").flag("--deletion-grace", "500ms");
    let mut node = config.start().await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    create(&mut wire, "short", 2, &[("retention.ms", "4000")]).await;
    create(&mut wire, "long", 1, &[("table.log.ttl", "-1")]).await;
    for topic in ["short", "long"] {
        wire.produce(topic, 0, &batch(values("old", 0..1_000), None)).await;
    }
    setup::flushed(node.http(), SOON).await;
    assert_eq!(earliest(&mut wire, "short", 0).await, 0, "4 s are not over");
    until("the old records are gone", SOON, || async {
        let mut wire = Wire::connect(node.kafka()).await;
        (earliest(&mut wire, "short", 0).await == 1_000).then_some(())
    })
    .await;
    let below = wire.fetch("short", 0, 999).await.unwrap();
    assert_eq!(below.code, ErrorCode::OffsetOutOfRange.code());
    assert_eq!(wire.fetch("short", 0, 1_000).await.unwrap().code, 0);
    // The log goes on where it was, and what is young stays, over a crash too.
    assert_eq!(wire.produce("short", 0, &batch(values("new", 0..10), None)).await, 1_000);
    node.crash_and_restart().await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    let found = wire.fetch_open("short", 0, 1_000).await;
    assert_eq!((found.code, found.high_watermark, found.records.len()), (0, 1_010, 10));
    assert_eq!(earliest(&mut wire, "short", 0).await, 1_000);
    assert_eq!(wire.read_all("long", 0).await, values("old", 0..1_000));
    until("nothing of the short topic is left", SOON, || async {
        let mut wire = Wire::connect(node.kafka()).await;
        (earliest(&mut wire, "short", 0).await == 1_010).then_some(())
    })
    .await;
    assert_eq!(wire.read_all("long", 0).await, values("old", 0..1_000));
    node.stop(SOON).await.unwrap();
}

#[tokio::test]
async fn p_12_a_log_keeps_as_many_bytes_as_its_topic_says_and_no_range_twice() {
    let folder = Folder::new();
    let config = setup::node(&folder)
        .flag("--wal-flush-age", "100ms")
        .flag("--deletion-grace", "300ms")
        // Ranges go as a whole, and compaction would join these to one that is larger than what is to stay.
        .flag("--compaction-bytes-per-second", "0");
    let mut node = config.start().await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    create(&mut wire, TOPIC, 1, &[("retention.bytes", "1000000")]).await;
    let text = "x".repeat(10_000);
    let mut end = 0;
    for round in 0..40 {
        let numbers: Vec<String> = (0..10).map(|number| format!("{round} {number} {text}")).collect();
        assert_eq!(wire.produce(TOPIC, 0, &batch(numbers, None)).await, end);
        end += 10;
        setup::flushed(node.http(), SOON).await;
        // A range goes only if what stays is enough: 100 records of 10 kB.
        let start = earliest(&mut wire, TOPIC, 0).await;
        assert!(start <= (end - 100).max(0), "{} records of {end} are kept", end - start);
    }
    until("the log is as short as it may be", SOON, || async {
        let mut wire = Wire::connect(node.kafka()).await;
        let kept = end - earliest(&mut wire, TOPIC, 0).await;
        (kept <= 110).then_some(())
    })
    .await;
    until("what went is not in the store any more", SOON, || async {
        (stream_bytes(&folder) < 1_300_000).then_some(())
    })
    .await;
    let start = earliest(&mut wire, TOPIC, 0).await;
    let mut next = start;
    while next < end {
        let found = wire.fetch(TOPIC, 0, next).await.unwrap();
        assert_eq!(found.code, 0, "{found:?}");
        for (offset, value) in found.records {
            assert_eq!(offset, next);
            assert!(value.starts_with(&format!("{} {} ", offset / 10, offset % 10)));
            next += 1;
        }
    }
    assert!(metric(node.http(), "mink_retention_bytes_total").await > 2e6);
    node.stop(SOON).await.unwrap();
}

#[tokio::test]
async fn records_are_deleted_up_to_an_offset_or_all_of_them_committed_or_not() {
    let folder = Folder::new();
    // Nothing is flushed by age: what is beyond the committed end must be flushed for the request, once.
    let config = setup::node(&folder)
        .flag("--wal-flush-age", "1h")
        .flag("--deletion-grace", "500ms")
        // The last object of a log is kept for as long as it tells of producers (I6).
        .flag("--producer-expiry", "15s");
    let mut node = config.start().await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    create(&mut wire, TOPIC, 3, &[]).await;
    let (producer, epoch) = wire.init_producer().await;
    for partition in 0..3 {
        wire.produce(TOPIC, partition, &batch(values("r", 0..100), None)).await;
    }
    let flushes = metric(node.http(), "mink_wal_flushes_total").await;
    let unknown = ErrorCode::UnknownTopicOrPartition.code();
    let outside = ErrorCode::OffsetOutOfRange.code();
    assert_eq!(
        delete_records(&mut wire, TOPIC, &[(0, 40), (1, -1), (2, 101), (3, 0)]).await,
        [(0, 40), (0, 100), (outside, -1), (unknown, -1)]
    );
    assert_eq!(delete_records(&mut wire, TOPIC, &[(2, -7)]).await, [(outside, -1)]);
    assert_eq!(delete_records(&mut wire, TOPIC, &[(2, 0)]).await, [(0, 0)]);
    assert!(
        (metric(node.http(), "mink_wal_flushes_total").await - flushes - 1.0).abs() < 0.1,
        "one flush for all"
    );
    assert_eq!(delete_records(&mut wire, "missing", &[(0, -1)]).await, [(unknown, -1)]);
    // When the answer is there, every reader sees it.
    assert_eq!(wire.fetch(TOPIC, 0, 39).await.unwrap().code, outside);
    assert_eq!(wire.fetch(TOPIC, 0, 40).await.unwrap().records.len(), 60);
    let starts = [40, 100, 0];
    for (partition, start) in (0..).zip(starts) {
        assert_eq!(earliest(&mut wire, TOPIC, partition).await, start);
    }
    // Below the start is no error and changes nothing, as with Kafka.
    assert_eq!(delete_records(&mut wire, TOPIC, &[(0, 10), (1, 0)]).await, [(0, 40), (0, 100)]);
    // A second request does not flush what is committed.
    let stamp = |base_sequence| mink_record::kafka::ProducerStamp { id: producer, epoch, base_sequence };
    assert_eq!(wire.produce(TOPIC, 0, &batch(["a"], Some(stamp(0)))).await, 100);
    assert_eq!(delete_records(&mut wire, TOPIC, &[(0, 60)]).await, [(0, 60)]);
    assert_eq!(wire.fetch(TOPIC, 0, 60).await.unwrap().records.len(), 41);
    node.crash_and_restart().await.unwrap();

    let mut wire = Wire::connect(node.kafka()).await;
    for (partition, start) in (0..).zip([60, 100, 0]) {
        let below = wire.fetch_open(TOPIC, partition, start - 1).await;
        assert_eq!(below.code, outside, "partition {partition}");
        assert_eq!(earliest(&mut wire, TOPIC, partition).await, start);
    }
    assert_eq!(wire.fetch_open(TOPIC, 0, 60).await.records.len(), 41);
    // I6: the producer is known although most of its neighbours are forgotten.
    assert_eq!(wire.produce(TOPIC, 0, &batch(["a"], Some(stamp(0)))).await, 100);
    assert_eq!(wire.produce(TOPIC, 1, &batch(["b"], None)).await, 100, "the log goes on");
    let all: Vec<(i32, i64)> = (0..3).map(|partition| (partition, -1)).collect();
    assert_eq!(delete_records(&mut wire, TOPIC, &all).await, [(0, 101), (0, 101), (0, 100)]);
    until("all that was deleted has left the store", SOON, || async {
        (stream_bytes(&folder) == 0).then_some(())
    })
    .await;
    node.stop(SOON).await.unwrap();
}
