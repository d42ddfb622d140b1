//! Administration of topics that are tables with columns.
//!
//! Lives on: tests only.
use super::alter::{alter, grow, value};
use super::fake::{APPENDED_AT, Running};
use super::log;
use super::raw_client::{Client, batch, fetch, produce};
use super::typed::{TOPIC, orders, rows_in, with_orders};
use mink_api::Admin as _;
use mink_kafka_wire::ErrorCode;
use mink_kafka_wire::messages::alter_configs::{self, AlterConfigsRequest};
use mink_kafka_wire::messages::create_topics::{CreatableTopic, CreateTopicsRequest};
use mink_kafka_wire::messages::delete_records::{
    DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic,
};
use mink_kafka_wire::messages::delete_topics::DeleteTopicsRequest;
use mink_kafka_wire::messages::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use mink_kafka_wire::messages::metadata::{MetadataRequest, MetadataRequestTopic, MetadataResponse};
use mink_types::schema::{DataType, Field, SchemaDraft};
use mink_types::{ArrowCompression, KafkaValueFormat, TableOptions};

const SET: i8 = 0;

async fn metadata(running: &Running, name: Option<&str>) -> MetadataResponse {
    let topics = name.map(|name| {
        vec![MetadataRequestTopic { name: Some(name.into()), ..MetadataRequestTopic::default() }]
    });
    let request = MetadataRequest { topics, ..MetadataRequest::default() };
    Client::connect(running.address).await.call(9, &request).await
}

#[tokio::test]
async fn tables_with_columns_are_topics_unless_they_are_partitioned_or_not_json() {
    let (running, _client, _) = with_orders().await;
    let dated = SchemaDraft {
        columns: vec![Field::new("dt", DataType::Date).not_null(), Field::new("n", DataType::Int)],
        partitioned_by: vec!["dt".into()],
        ..SchemaDraft::default()
    };
    let dated = std::sync::Arc::new(mink_types::schema::Schema::create(dated).expect("a sound schema"));
    running.fake.typed_table("sales.dated", rows_in(1), Some(dated)).expect("created");
    let raw = TableOptions { kafka_value: KafkaValueFormat::Raw, ..rows_in(1) };
    running.fake.typed_table("sales.raw", raw, Some(orders(SchemaDraft::default()))).expect("created");
    let all = metadata(&running, None).await;
    let names: Vec<&str> =
        all.topics.iter().filter_map(|topic| Some(topic.name.as_ref()?.as_str())).collect();
    assert_eq!(names, [TOPIC]);
    let topic = &metadata(&running, Some(TOPIC)).await.topics[0];
    assert_eq!((topic.error_code, topic.partitions.len(), topic.is_internal), (0, 1, false));
    // Nor does asking for one make a topic in its place.
    for name in ["sales.dated", "sales.raw"] {
        let asked = &metadata(&running, Some(name)).await.topics[0];
        assert_eq!(asked.error_code, ErrorCode::InvalidTopicException.code(), "{name}");
    }
}

#[tokio::test]
async fn k_19_a_mistyped_table_becomes_no_topic_on_first_use_and_may_still_become_one() {
    let (running, mut client, _) = with_orders().await;
    let log = log::listen();
    // What collides with a topic is no topic's name for good, but may become a table.
    running.fake.topic("sales_nope", 1);
    for name in ["sales.order", "sales.order", "sales.nope", "sales.nope.2"] {
        let asked = metadata(&running, Some(name)).await.topics.remove(0);
        assert_eq!(asked.error_code, ErrorCode::UnknownTopicOrPartition.code(), "{name}");
        assert!(ErrorCode::UnknownTopicOrPartition.retriable());
    }
    assert_eq!(metadata(&running, None).await.topics.len(), 2);
    let lines = log.lines("not made on first use");
    assert_eq!(lines.len(), 3, "one for each name: {lines:?}");
    assert!(lines[0].starts_with("INFO") && lines[0].contains("create it as a table"), "{lines:?}");
    assert!(lines[0].contains("topic=\"sales.order\" database=sales"), "{lines:?}");
    // Names of no other database, or with no table's name behind it, are judged as ever.
    for (name, code) in [("kafka.nope", 0), ("other.nope", 0), ("nope", 0), ("sales.", 0), ("sales.a b", 17)]
    {
        assert_eq!(metadata(&running, Some(name)).await.topics[0].error_code, code, "{name}");
    }
    // Whoever creates the topic or the table means it.
    let topic = CreatableTopic {
        name: "sales.order".into(),
        num_partitions: 1,
        replication_factor: 1,
        ..CreatableTopic::default()
    };
    let request = CreateTopicsRequest { topics: vec![topic], ..CreateTopicsRequest::default() };
    assert_eq!(client.call(7, &request).await.topics[0].error_code, 0);
    let schema = orders(SchemaDraft::default());
    running.fake.typed_table("sales.nope.2", rows_in(1), Some(schema)).expect("created");
    for name in ["sales.order", "sales.nope.2"] {
        assert_eq!(metadata(&running, Some(name)).await.topics[0].error_code, 0, "{name}");
    }
}

#[tokio::test]
async fn clients_that_want_no_new_topics_are_told_of_in_no_line() {
    let (running, mut client, _) = with_orders().await;
    let log = log::listen();
    let topics =
        vec![MetadataRequestTopic { name: Some("sales.nope".into()), ..MetadataRequestTopic::default() }];
    let request = MetadataRequest {
        topics: Some(topics),
        allow_auto_topic_creation: false,
        ..MetadataRequest::default()
    };
    let asked = client.call(9, &request).await.topics.remove(0);
    assert_eq!(asked.error_code, ErrorCode::UnknownTopicOrPartition.code());
    assert!(log.lines("sales.nope").is_empty());
    drop(running);
}

#[tokio::test]
async fn configurations_say_and_keep_what_rows_have() {
    let (running, mut client, table) = with_orders().await;
    let time = "message.timestamp.type";
    assert_eq!(value(&mut client, TOPIC, time).await, ("LogAppendTime".into(), 1));
    for (name, told) in [
        (time, "CreateTime"),
        ("cleanup.policy", "compact"),
        ("kafka.value.format", "raw"),
        ("bucket.num", "7"),
    ] {
        let answer = client.call(1, &alter(TOPIC, &[(name, SET, Some(told))])).await;
        let answer = &answer.responses[0];
        assert_eq!(answer.error_code, ErrorCode::InvalidConfig.code(), "{name}");
        assert!(answer.error_message.as_ref().expect("words").as_str().contains(name), "{answer:?}");
    }
    let lz4 = [("table.log.arrow.compression", SET, Some("lz4")), (time, SET, Some("LogAppendTime"))];
    assert_eq!(client.call(1, &alter(TOPIC, &lz4)).await.responses[0].error_code, 0);
    // What is not described cannot be sent back, and stays.
    let whole = AlterConfigsRequest {
        resources: vec![alter_configs::AlterConfigsResource {
            resource_type: 2,
            resource_name: TOPIC.into(),
            configs: vec![alter_configs::AlterableConfig {
                name: "retention.ms".into(),
                value: Some("5".into()),
            }],
        }],
        validate_only: false,
    };
    assert_eq!(client.call(1, &whole).await.responses[0].error_code, 0);
    let options = running.fake.state().table(table).expect("there").options.clone();
    assert_eq!((options.arrow_compression, options.log_ttl_ms), (ArrowCompression::Lz4, Some(5)));
    assert_eq!(value(&mut client, TOPIC, time).await, ("LogAppendTime".into(), 1));
}

#[tokio::test]
async fn k_15_offsets_are_found_by_the_time_of_append_and_records_are_deleted() {
    let (_running, mut client, _) = with_orders().await;
    client.produce(TOPIC, 0, batch(&[r#"{"id":1}"#, r#"{"id":2}"#])).await;
    for (timestamp, offset, time) in [
        (-2, 0, -1),
        (-1, 2, -1),
        (5, 0, APPENDED_AT.0),
        (APPENDED_AT.0, 0, APPENDED_AT.0),
        (APPENDED_AT.0 + 1, -1, -1),
        (-3, 0, APPENDED_AT.0),
    ] {
        let asked = ListOffsetsPartition { timestamp, ..ListOffsetsPartition::default() };
        let request = ListOffsetsRequest {
            topics: vec![ListOffsetsTopic { name: TOPIC.into(), partitions: vec![asked] }],
            ..ListOffsetsRequest::default()
        };
        let answer = client.call(7, &request).await;
        let found = &answer.topics[0].partitions[0];
        assert_eq!((found.error_code, found.offset, found.timestamp), (0, offset, time), "{timestamp}");
    }
    let delete = DeleteRecordsRequest {
        topics: vec![DeleteRecordsTopic {
            name: TOPIC.into(),
            partitions: vec![DeleteRecordsPartition { partition_index: 0, offset: 1 }],
        }],
        timeout_ms: 1_000,
    };
    let deleted = client.call(2, &delete).await;
    assert_eq!(deleted.topics[0].partitions[0].low_watermark, 1);
    let gone = client.call(12, &fetch(TOPIC, &[(0, 0)])).await;
    assert_eq!(gone.responses[0].partitions[0].error_code, ErrorCode::OffsetOutOfRange.code());
}

#[tokio::test]
async fn a_table_grows_is_not_made_twice_and_is_dropped_as_a_topic() {
    let (running, mut client, table) = with_orders().await;
    let create = CreateTopicsRequest {
        topics: vec![CreatableTopic {
            name: TOPIC.into(),
            num_partitions: 1,
            replication_factor: 1,
            ..CreatableTopic::default()
        }],
        ..CreateTopicsRequest::default()
    };
    let made = client.call(7, &create).await;
    assert_eq!(made.topics[0].error_code, ErrorCode::TopicAlreadyExists.code());
    assert_eq!(client.call(3, &grow(TOPIC, 3)).await.results[0].error_code, 0);
    let answer = client.produce(TOPIC, 2, batch(&[r#"{"id":1}"#])).await;
    assert_eq!((answer.error_code, answer.base_offset), (0, 0), "rows without a key go anywhere");
    let delete =
        DeleteTopicsRequest { topic_names: vec![TOPIC.into()], timeout_ms: 1_000, ..Default::default() };
    assert_eq!(client.call(5, &delete).await.responses[0].error_code, 0);
    assert!(running.fake.state().table(table).is_none());
    let gone = client.call(9, &produce(TOPIC, 0, batch(&[r#"{"id":1}"#]), -1)).await;
    let code = gone.responses[0].partition_responses[0].error_code;
    assert_eq!(code, ErrorCode::UnknownTopicOrPartition.code());
}
