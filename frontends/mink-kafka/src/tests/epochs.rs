//! Where epochs ended, as clients ask that validate their position.
//!
//! Lives on: tests only.
use super::fake::start;
use super::raw_client::{Client, batch};
use mink_kafka_wire::ErrorCode;
use mink_kafka_wire::messages::offset_for_leader_epoch::{
    OffsetForLeaderEpochRequest, OffsetForLeaderPartition, OffsetForLeaderTopic,
};

pub(super) fn epoch_of(
    topic: &str,
    partition: i32,
    leader_epoch: i32,
    believed: i32,
) -> OffsetForLeaderEpochRequest {
    OffsetForLeaderEpochRequest {
        topics: vec![OffsetForLeaderTopic {
            topic: topic.into(),
            partitions: vec![OffsetForLeaderPartition {
                partition,
                current_leader_epoch: believed,
                leader_epoch,
            }],
        }],
        ..OffsetForLeaderEpochRequest::default()
    }
}

#[tokio::test]
async fn k_17_the_end_of_an_epoch_is_told_and_one_that_has_not_begun_is_not_known() {
    let running = start().await;
    running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    client.produce("t", 0, batch(&["a", "b", "c"])).await;
    // Topic, partition, epoch asked for, epoch believed in: error, epoch, end.
    let cases = [
        ("t", 0, 1, -1, (ErrorCode::None, 1, 3)),
        ("t", 0, 1, 1, (ErrorCode::None, 1, 3)),
        ("t", 0, 0, 1, (ErrorCode::None, 0, 0)),
        ("t", 0, 2, 1, (ErrorCode::None, -1, -1)),
        ("t", 0, -1, 1, (ErrorCode::None, -1, -1)),
        ("t", 0, 1, 0, (ErrorCode::FencedLeaderEpoch, -1, -1)),
        ("t", 0, 1, 2, (ErrorCode::UnknownLeaderEpoch, -1, -1)),
        ("t", 1, 1, -1, (ErrorCode::UnknownTopicOrPartition, -1, -1)),
        ("missing", 0, 1, -1, (ErrorCode::UnknownTopicOrPartition, -1, -1)),
    ];
    for version in 2..=4 {
        for (topic, partition, epoch, believed, (code, found, end)) in cases {
            let answer = client.call(version, &epoch_of(topic, partition, epoch, believed)).await;
            let answer = &answer.topics[0].partitions[0];
            assert_eq!(
                (answer.error_code, answer.leader_epoch, answer.end_offset),
                (code.code(), found, end)
            );
            assert_eq!(answer.partition, partition);
        }
    }
}
