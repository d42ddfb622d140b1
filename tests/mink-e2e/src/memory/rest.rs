//! Topics that were written, flushed and let alone: what each leaves in memory.

use std::time::{Duration, Instant};

use bytes::Bytes;
use mink_kafka_wire::Records;
use mink_kafka_wire::messages::create_topics::{CreatableTopic, CreateTopicsRequest};
use mink_kafka_wire::messages::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use mink_record::kafka::ProducerStamp;
use mink_testkit::http;
use mink_testkit::node::Node;

use super::{metric, parts, resident, whole};
use crate::setup::{self, Folder, until};
use crate::wire::{SOON, Wire, batch, values};

/// Most bytes of one topic by the node's own count: what a node is planned by.
const COUNTED_BYTES_MAX: u64 = 2048;
/// Most resident bytes of one topic above the same node with the first topics only. A third of it lies free between small things,
/// where the allocator cannot give it back.
const RESIDENT_BYTES_MAX: u64 = 2 << 10;
/// What may come to that once, however many topics: the long form's many topics drown it, the short form's few do not.
const RESIDENT_ONCE_MAX: u64 = 512 << 10;
/// Topics that are there before the baseline is taken: what the first load of its kind leaves behind is no topic's, such as pages of
/// code and of the database.
const FIRST: usize = 500;
/// The allocator gives pages back every ten seconds.
const GIVEN_BACK_EVERY: Duration = Duration::from_secs(12);
/// Topics in one request, and batches of each.
const AT_ONCE: usize = 500;
const BATCHES: i32 = 10;
/// Buckets let go of their tails when nobody wrote or read them for half a minute.
const REST_WITHIN: Duration = Duration::from_mins(2);

fn name(number: usize) -> String {
    format!("orders-of-shop-{number:05}")
}

async fn create(wire: &mut Wire, numbers: std::ops::Range<usize>) {
    let topics = numbers.map(|number| CreatableTopic {
        name: name(number).into(),
        num_partitions: 1,
        replication_factor: 1,
        ..CreatableTopic::default()
    });
    let request = CreateTopicsRequest {
        topics: topics.collect(),
        timeout_ms: 60_000,
        ..CreateTopicsRequest::default()
    };
    let answer = wire.call(7, &request).await.unwrap();
    assert!(answer.topics.iter().all(|topic| topic.error_code == 0), "{:?}", answer.topics.first());
}

/// One batch into each of these topics; whether all were taken.
async fn produce(wire: &mut Wire, numbers: std::ops::Range<usize>, records: &Bytes) -> bool {
    let topics = numbers.map(|number| TopicProduceData {
        name: name(number).into(),
        partition_data: vec![PartitionProduceData {
            index: 0,
            records: Some(Records::from(records.clone())),
        }],
        ..TopicProduceData::default()
    });
    let request = ProduceRequest {
        acks: -1,
        timeout_ms: 60_000,
        topic_data: topics.collect(),
        ..ProduceRequest::default()
    };
    let answer = wire.call(9, &request).await.unwrap();
    answer.responses.iter().flat_map(|topic| &topic.partition_responses).all(|part| part.error_code == 0)
}

/// Bytes of metadata and of buckets' state by the node's count.
async fn metadata(node: &Node) -> u64 {
    let answer = http::get(node.http(), "/metrics").await.unwrap();
    whole(answer.metric("mink_memory_bytes{part=\"metadata\"}").expect("told"))
}

/// Makes these topics, writes to each, and waits until all of it is flushed and rests.
async fn load(node: &Node, wire: &mut Wire, numbers: std::ops::Range<usize>) {
    let (id, epoch) = wire.init_producer().await;
    let end = numbers.end;
    let chunks: Vec<_> = numbers.step_by(AT_ONCE).map(|from| from..(from + AT_ONCE).min(end)).collect();
    for numbers in &chunks {
        create(wire, numbers.clone()).await;
    }
    for sequence in 0..BATCHES {
        let stamp = ProducerStamp { id, epoch, base_sequence: sequence };
        let records = batch(values("order", 0..1), Some(stamp));
        for numbers in &chunks {
            // Buckets open a moment after their tables are made; a repeat is stored once (I6).
            let mut taken = false;
            for _ in 0..100 {
                taken = produce(wire, numbers.clone(), &records).await;
                if taken {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            assert!(taken, "batch {sequence} of topics {numbers:?}");
        }
    }
    setup::flushed(node.http(), SOON).await;
    until("the buckets rest", REST_WITHIN, || async {
        (metric(node, "mink_log_tail_batches").await == 0).then_some(())
    })
    .await;
}

/// Resident KiB once the allocator gives nothing back any more.
async fn settled(node: &mut Node) -> u64 {
    let (mut least, mut since) = (resident(node), Instant::now());
    while since.elapsed() < GIVEN_BACK_EVERY {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let now = resident(node);
        if now < least {
            (least, since) = (now, Instant::now());
        }
    }
    least
}

#[tokio::test]
async fn i20_a_topic_at_rest_takes_two_kilobytes() {
    let topics = if setup::is_long() { 10_000 } else { 2_000 };
    let folder = Folder::new();
    let config = setup::node(&folder).flag("--memory", "512MiB").flag("--wal-flush-age", "2s");
    let mut node = config.start().await.unwrap();
    let empty = resident(&mut node);
    let mut wire = Wire::connect(node.kafka()).await;
    load(&node, &mut wire, 0..FIRST).await;
    let (before, counted_before) = (settled(&mut node).await, metadata(&node).await);
    load(&node, &mut wire, FIRST..FIRST + topics).await;
    let (rested, counted) = (settled(&mut node).await, metadata(&node).await);
    let each = (rested.saturating_sub(before) << 10) / topics as u64;
    let counted = counted.saturating_sub(counted_before) / topics as u64;
    println!(
        "{topics} topics: {each} bytes each, {counted} counted; resident {empty} KiB empty, {before} with the first {FIRST}, {rested} with all; {}",
        parts(&node).await
    );
    assert!(counted <= COUNTED_BYTES_MAX, "{counted} bytes counted for each of {topics} topics");
    let once = if setup::is_long() { 0 } else { RESIDENT_ONCE_MAX / topics as u64 };
    assert!(each <= RESIDENT_BYTES_MAX + once, "{each} bytes for each of {topics} topics");
    // They are all there.
    for number in [0, topics / 2, FIRST + topics - 1] {
        let read = wire.read_all(&name(number), 0).await;
        assert_eq!(read.len(), usize::try_from(BATCHES).unwrap(), "{}", name(number));
    }
    node.stop(SOON).await.unwrap();
}
