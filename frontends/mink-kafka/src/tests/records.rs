//! Records that clients delete.
//!
//! Lives on: tests only.
use super::admin::offset_at;
use super::fake::start;
use super::raw_client::{Client, batch};
use mink_kafka_wire::ErrorCode;
use mink_kafka_wire::messages::delete_records::{
    DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic,
};

#[tokio::test]
async fn records_are_deleted_partition_by_partition_and_the_start_moves() {
    let running = start().await;
    running.fake.topic("t", 3);
    let mut client = Client::connect(running.address).await;
    for _ in 0..5 {
        client.produce("t", 0, batch(&["x"])).await;
    }
    for (version, low) in (0..).zip([2, 3, 4]) {
        // Partition, offset, error, low watermark; one after the other, as a partition is named once in a request.
        let unknown = ErrorCode::UnknownTopicOrPartition.code();
        let cases = [
            (0, low, 0, low),
            (0, 1, 0, low),
            (0, 6, ErrorCode::OffsetOutOfRange.code(), -1),
            (0, -2, ErrorCode::OffsetOutOfRange.code(), -1),
            (1, -1, 0, 0),
            (3, 0, unknown, -1),
            (-1, 0, unknown, -1),
        ];
        for (partition_index, offset, code, low) in cases {
            let topic = |name: &str| DeleteRecordsTopic {
                name: name.into(),
                partitions: vec![DeleteRecordsPartition { partition_index, offset }],
            };
            let request =
                DeleteRecordsRequest { topics: vec![topic("missing"), topic("t")], timeout_ms: 1_000 };
            let response = client.call(version, &request).await;
            let told: Vec<_> =
                response.topics.iter().map(|topic| (topic.name.as_str(), &topic.partitions[0])).collect();
            let told: Vec<_> =
                told.iter().map(|(name, part)| (*name, part.error_code, part.low_watermark)).collect();
            assert_eq!(
                told,
                [("missing", unknown, -1), ("t", code, low)],
                "version {version}, offset {offset}"
            );
        }
        assert_eq!(offset_at(&mut client, 7, -2).await, (0, low, -1), "the earliest offset has moved");
    }
    let everything = DeleteRecordsRequest {
        topics: vec![DeleteRecordsTopic {
            name: "t".into(),
            partitions: vec![DeleteRecordsPartition { partition_index: 0, offset: -1 }],
        }],
        timeout_ms: -5,
    };
    let response = client.call(2, &everything).await;
    assert_eq!(response.topics[0].partitions[0].low_watermark, 5);
}
