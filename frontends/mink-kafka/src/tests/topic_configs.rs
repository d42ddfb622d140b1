//! Topics whose records bear the time of appending, and topics that are compacted.
//!
//! Lives on: tests only.
use super::alter::{alter, value};
use super::fake::{APPENDED_AT, Running, start};
use super::raw_client::{Client, batch, fetch};
use bytes::Bytes;
use mink_kafka_wire::ErrorCode;
use mink_kafka_wire::messages::create_topics::{CreatableTopic, CreatableTopicConfig, CreateTopicsRequest};
use mink_kafka_wire::messages::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use mink_kafka_wire::messages::produce::{
    PartitionProduceData, PartitionProduceResponse, ProduceRequest, TopicProduceData,
};
use mink_record::kafka::{BatchBuilder, BatchHeader, Codec, RecordRef, TimestampType, records};

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

const TIME: i64 = 1_700_000_000_000;

/// A topic `t` of two partitions with these configurations.
async fn with_topic(configs: &[(&str, &str)]) -> (Running, Client) {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    let configs = configs
        .iter()
        .map(|(name, value)| CreatableTopicConfig { name: (*name).into(), value: Some((*value).into()) });
    let topic = CreatableTopic {
        name: "t".into(),
        num_partitions: 2,
        replication_factor: 1,
        configs: configs.collect(),
        ..CreatableTopic::default()
    };
    let request = CreateTopicsRequest { topics: vec![topic], ..CreateTopicsRequest::default() };
    assert_eq!(client.call(7, &request).await.topics[0].error_code, 0);
    (running, client)
}

fn keyed(keys: &[Option<&[u8]>], codec: Codec) -> Bytes {
    let mut builder = BatchBuilder::new();
    for (key, timestamp) in keys.iter().zip(TIME..) {
        let record = RecordRef { timestamp, key: *key, value: Some(b"v"), ..RecordRef::default() };
        builder.push(record).expect("fits");
    }
    builder.build(codec, None).expect("built")
}

async fn stored(client: &mut Client, partition: i32, from: i64) -> (BatchHeader, Bytes) {
    let mut answer = client.call(12, &fetch("t", &[(partition, from)])).await;
    let records = answer.responses.remove(0).partitions.remove(0).records.expect("records");
    let bytes = records.into_bytes();
    (BatchHeader::parse(&bytes).expect("a batch"), bytes)
}

async fn produce_all(client: &mut Client, batches: Vec<(i32, Bytes)>) -> Vec<PartitionProduceResponse> {
    let parts = batches
        .into_iter()
        .map(|(index, records)| PartitionProduceData { index, records: Some(records.into()) });
    let request = ProduceRequest {
        acks: -1,
        timeout_ms: 5_000,
        topic_data: vec![TopicProduceData {
            name: "t".into(),
            partition_data: parts.collect(),
            ..TopicProduceData::default()
        }],
        ..ProduceRequest::default()
    };
    client.call(9, &request).await.responses.remove(0).partition_responses
}

#[tokio::test]
async fn records_bear_the_time_of_appending_and_the_answer_tells_it() {
    let (_running, mut client) = with_topic(&[("message.timestamp.type", "LogAppendTime")]).await;
    assert_eq!(value(&mut client, "t", "message.timestamp.type").await, ("LogAppendTime".into(), 1));
    for (codec, at) in [(Codec::None, 0), (Codec::Zstd, 2)] {
        let sent = keyed(&[Some(b"k"), None], codec);
        let answer = client.produce("t", 0, sent.clone()).await;
        assert_eq!((answer.error_code, answer.base_offset), (0, at));
        assert_eq!(answer.log_append_time_ms, APPENDED_AT.0);
        let (header, bytes) = stored(&mut client, 0, at).await;
        header.verify_checksum(&bytes).expect("the checksum is right");
        assert_eq!(header.attributes.timestamp_type(), TimestampType::LogAppendTime);
        assert_eq!(
            (header.max_timestamp, header.base_timestamp),
            (APPENDED_AT.0, TIME),
            "as Kafka stores it"
        );
        for record in records(&header, bytes, 1 << 20).expect("sound") {
            assert_eq!(record.expect("sound").timestamp, APPENDED_AT.0);
        }
    }
    let asked = |timestamp| ListOffsetsRequest {
        topics: vec![ListOffsetsTopic {
            name: "t".into(),
            partitions: vec![ListOffsetsPartition { timestamp, ..ListOffsetsPartition::default() }],
        }],
        ..ListOffsetsRequest::default()
    };
    for (timestamp, offset, found) in [(TIME + 9, 0, APPENDED_AT.0), (APPENDED_AT.0 + 1, -1, -1)] {
        let answer = client.call(7, &asked(timestamp)).await;
        let partition = &answer.topics[0].partitions[0];
        assert_eq!((partition.offset, partition.timestamp), (offset, found), "{timestamp}");
    }
}

#[tokio::test]
async fn the_kind_of_time_changes_for_what_comes_later_only() {
    let (_running, mut client) = with_topic(&[]).await;
    let plain = client.produce("t", 0, keyed(&[Some(b"k")], Codec::None)).await;
    assert_eq!((plain.error_code, plain.log_append_time_ms), (0, -1));
    let set = alter("t", &[("message.timestamp.type", SET, Some("LogAppendTime"))]);
    assert_eq!(client.call(1, &set).await.responses[0].error_code, 0);
    assert_eq!(
        client.produce("t", 0, keyed(&[Some(b"k")], Codec::None)).await.log_append_time_ms,
        APPENDED_AT.0
    );
    let back = alter("t", &[("message.timestamp.type", DELETE, None)]);
    assert_eq!(client.call(1, &back).await.responses[0].error_code, 0);
    assert_eq!(value(&mut client, "t", "message.timestamp.type").await, ("CreateTime".into(), 5));
    assert_eq!(client.produce("t", 0, keyed(&[Some(b"k")], Codec::None)).await.log_append_time_ms, -1);
    for (from, time) in [(0, TIME), (1, APPENDED_AT.0), (2, TIME)] {
        assert_eq!(stored(&mut client, 0, from).await.0.max_timestamp, time, "{from}");
    }
}

#[tokio::test]
async fn p_22_a_record_without_a_key_is_refused_on_a_compacted_topic_and_its_batch_with_it() {
    for policy in ["compact", "compact,delete"] {
        let (running, mut client) = with_topic(&[("cleanup.policy", policy)]).await;
        let table = running.fake.table_named("t");
        for codec in [Codec::None, Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
            let refused = client.produce("t", 0, keyed(&[Some(b"k"), None, Some(b""), None], codec)).await;
            assert_eq!(refused.error_code, ErrorCode::InvalidRecord.code());
            assert_eq!((refused.base_offset, refused.log_append_time_ms), (-1, -1));
            let text = "Compacted topic cannot accept message without key in topic partition t-0";
            let named: Vec<(i32, String)> = refused
                .record_errors
                .iter()
                .map(|error| {
                    let message = error.batch_index_error_message.clone().expect("words");
                    (error.batch_index, message.as_str().to_owned())
                })
                .collect();
            assert_eq!(named, [(1, text.to_owned()), (3, text.to_owned())]);
            let expected = format!(
                "One or more records have been rejected due to 2 record errors in total, and only showing the first three errors at most: [RecordError(batchIndex=1, message='{text}'), RecordError(batchIndex=3, message='{text}')]"
            );
            assert_eq!(refused.error_message.expect("words"), *expected);
        }
        assert_eq!(running.fake.end(table, 0), (0, 0), "nothing of them is stored");
        for codec in [Codec::None, Codec::Gzip] {
            assert_eq!(client.produce("t", 0, keyed(&[Some(b"k"), Some(b"")], codec)).await.error_code, 0);
        }
        assert_eq!(running.fake.end(table, 0), (4, 0));
    }
}

#[tokio::test]
async fn i19_what_cannot_be_opened_is_refused_on_a_compacted_topic() {
    let (running, mut client) = with_topic(&[("cleanup.policy", "compact")]).await;
    let value = vec![0; 2 << 20];
    let mut bomb = BatchBuilder::new();
    bomb.push(RecordRef { timestamp: TIME, key: Some(b"k"), value: Some(&value), ..RecordRef::default() })
        .expect("fits");
    let bomb = bomb.build(Codec::Gzip, None).expect("built");
    let answer = client.produce("t", 0, bomb).await;
    assert_eq!(answer.error_code, ErrorCode::MessageTooLarge.code(), "more than the cap");
    let broken = super::raw_client::damaged_records(&keyed(&[Some(b"k")], Codec::Gzip));
    let answer = client.produce("t", 0, broken.clone()).await;
    assert_eq!(answer.error_code, ErrorCode::InvalidRecord.code());
    assert!(answer.record_errors.is_empty(), "{answer:?}");
    assert_eq!(running.fake.end(running.fake.table_named("t"), 0), (0, 0));
    let back = alter("t", &[("cleanup.policy", SET, Some("delete"))]);
    assert_eq!(client.call(1, &back).await.responses[0].error_code, 0);
    assert_eq!(client.produce("t", 0, broken).await.error_code, 0, "nothing is opened elsewhere");
}

#[tokio::test]
async fn i20_one_answer_names_a_thousand_records_at_most() {
    let (_running, mut client) = with_topic(&[("cleanup.policy", "compact")]).await;
    let many = keyed(&vec![None; 700], Codec::Zstd);
    let answers = produce_all(&mut client, vec![(0, many.clone()), (1, many)]).await;
    let listed: Vec<usize> = answers.iter().map(|answer| answer.record_errors.len()).collect();
    assert_eq!(listed, [700, 300]);
    for answer in answers {
        assert_eq!(answer.error_code, ErrorCode::InvalidRecord.code());
        assert!(answer.error_message.expect("words").as_str().contains("due to 700 record errors in total"));
    }
}

#[tokio::test]
async fn policies_are_added_and_taken_away_as_kafka_does() {
    for (start, operation, change, shown) in [
        ("delete", APPEND, "compact", "delete,compact"),
        ("compact", APPEND, "delete", "compact,delete"),
        ("delete", APPEND, "compact,delete", "delete,compact"),
        ("delete", SUBTRACT, "delete", ""),
        ("compact,delete", SUBTRACT, "delete", "compact"),
        ("compact,delete", SUBTRACT, " compact", "compact,delete"),
        ("", APPEND, "compact", "compact"),
        ("compact", SET, "", ""),
        ("compact", DELETE, "", "delete"),
    ] {
        let (_running, mut client) = with_topic(&[("cleanup.policy", start)]).await;
        let changes = [("cleanup.policy", operation, Some(change))];
        assert_eq!(client.call(1, &alter("t", &changes)).await.responses[0].error_code, 0);
        assert_eq!(value(&mut client, "t", "cleanup.policy").await.0, shown, "{start} {operation} {change}");
        let refused = client.produce("t", 0, batch(&["no key"])).await.error_code;
        let expected = if shown.contains("compact") { ErrorCode::InvalidRecord } else { ErrorCode::None };
        assert_eq!(refused, expected.code(), "{shown}");
    }
}
