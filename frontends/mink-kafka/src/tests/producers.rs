//! DescribeProducers: what a partition knows of idempotent producers.
//!
//! Lives on: tests only.
use super::fake::{Behaviour, start};
use super::raw_client::{Client, batch};
use bytes::Bytes;
use mink_kafka_wire::ErrorCode;
use mink_kafka_wire::messages::describe_producers::{
    DescribeProducersRequest, PartitionResponse, TopicRequest,
};
use mink_record::kafka::{BatchBuilder, Codec, ProducerStamp, RecordRef};
use mink_router::ReadError;
use mink_types::{BucketId, BucketIndex};

/// More than are asked of a bucket at once.
const MANY: i64 = 2_500;
/// Mentions of a partition with so many that no answer holds.
const MENTIONS: usize = 14;

fn of_producer(id: i64, base_sequence: i32) -> Bytes {
    let mut builder = BatchBuilder::new();
    for value in [b"a", b"b"] {
        let record = RecordRef { timestamp: 1_000, value: Some(value), ..RecordRef::default() };
        builder.push(record).expect("fits");
    }
    builder.build(Codec::None, Some(ProducerStamp { id, epoch: 3, base_sequence })).expect("built")
}

pub(super) fn producers_of(topic: &str, partition_indexes: Vec<i32>) -> DescribeProducersRequest {
    DescribeProducersRequest { topics: vec![TopicRequest { name: topic.into(), partition_indexes }] }
}

async fn described(client: &mut Client, topic: &str, partitions: Vec<i32>) -> Vec<PartitionResponse> {
    client.call(0, &producers_of(topic, partitions)).await.topics.remove(0).partitions
}

#[tokio::test]
async fn producers_are_told_of_with_their_last_sequence_and_no_transaction() {
    let running = start().await;
    running.fake.topic("t", 2);
    let mut client = Client::connect(running.address).await;
    client.produce("t", 0, batch(&["of nobody"])).await;
    for (id, base_sequence) in [(9, 0), (4, 0), (9, 2)] {
        client.produce("t", 0, of_producer(id, base_sequence)).await;
    }
    let answer = described(&mut client, "t", vec![0, 1]).await;
    let told = answer[0].active_producers.iter().map(|p| (p.producer_id, p.producer_epoch, p.last_sequence));
    assert_eq!(told.collect::<Vec<_>>(), [(4, 3, 1), (9, 3, 3)]);
    let none = answer[0]
        .active_producers
        .iter()
        .all(|producer| producer.coordinator_epoch == -1 && producer.current_txn_start_offset == -1);
    assert!(none, "there are no transactions");
    assert!(answer[1].active_producers.is_empty() && answer[1].error_code == 0);
}

#[tokio::test]
async fn what_is_not_there_or_elsewhere_is_refused_by_partition() {
    let running = start().await;
    let table = running.fake.topic("t", 2);
    let bucket = BucketId::unpartitioned(table, BucketIndex(1));
    let behaviour = Behaviour { refuse_reads: Some(ReadError::NotOwner { bucket }), ..Behaviour::default() };
    running.fake.behave(table, 1, behaviour);
    let mut client = Client::connect(running.address).await;
    for (topic, partition, code) in [
        ("t", 0, ErrorCode::None),
        ("t", 1, ErrorCode::NotLeaderOrFollower),
        ("t", 2, ErrorCode::UnknownTopicOrPartition),
        ("t", -1, ErrorCode::UnknownTopicOrPartition),
        ("missing", 0, ErrorCode::UnknownTopicOrPartition),
        ("a/b", 0, ErrorCode::InvalidTopicException),
    ] {
        let answer = described(&mut client, topic, vec![partition]).await;
        assert_eq!(answer[0].error_code, code.code(), "{topic} {partition}");
        assert_eq!(answer[0].error_message.is_some(), code != ErrorCode::None);
    }
}

#[tokio::test]
async fn i20_an_answer_holds_a_bounded_number_of_producers_and_all_of_a_partition() {
    let running = start().await;
    running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    for id in 0..MANY {
        client.produce("t", 0, of_producer(id, 0)).await;
    }
    let answer = described(&mut client, "t", vec![0; MENTIONS]).await;
    let ids = answer[0].active_producers.iter().map(|producer| producer.producer_id);
    assert!(ids.eq(0..MANY), "page by page, each once");
    let (told, refused): (Vec<_>, Vec<_>) = answer.iter().partition(|partition| partition.error_code == 0);
    assert_eq!((told.len(), refused.len()), (12, 2));
    let code = ErrorCode::InvalidRequest.code();
    assert!(refused.iter().all(|partition| partition.error_code == code));
    assert!(refused.iter().all(|partition| partition.active_producers.is_empty()));
}
