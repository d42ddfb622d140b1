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
        // Offset, error, low watermark.
        let cases = [
            (0, low, 0, low),
            (0, 1, 0, low),
            (0, 6, ErrorCode::OffsetOutOfRange.code(), -1),
            (0, -2, ErrorCode::OffsetOutOfRange.code(), -1),
            (1, -1, 0, 0),
            (3, 0, ErrorCode::UnknownTopicOrPartition.code(), -1),
            (-1, 0, ErrorCode::UnknownTopicOrPartition.code(), -1),
        ];
        let topic = |name: &str| DeleteRecordsTopic {
            name: name.into(),
            partitions: cases
                .map(|(partition_index, offset, ..)| DeleteRecordsPartition { partition_index, offset })
                .to_vec(),
        };
        let request = DeleteRecordsRequest { topics: vec![topic("missing"), topic("t")], timeout_ms: 1_000 };
        let response = client.call(version, &request).await;
        let results = |at: usize| -> Vec<(i32, i16, i64)> {
            let partitions = response.topics[at].partitions.iter();
            partitions.map(|part| (part.partition_index, part.error_code, part.low_watermark)).collect()
        };
        assert_eq!(response.topics[0].name, "missing");
        let unknown = ErrorCode::UnknownTopicOrPartition.code();
        assert!(results(0).iter().all(|(_, code, low)| (*code, *low) == (unknown, -1)), "{response:?}");
        assert_eq!(
            results(1),
            cases.map(|(partition, _, code, low)| (partition, code, low)),
            "version {version}"
        );
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
