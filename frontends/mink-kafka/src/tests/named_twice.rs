//! What is named twice in one request, API by API, as Kafka answers it.
//!
//! Lives on: tests only.
use super::fake::start;
use super::raw_client::{Client, batch, fetch};
use mink_kafka_wire::messages::api_versions::ApiVersionsRequest;
use mink_kafka_wire::messages::create_topics::{
    CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest,
};
use mink_kafka_wire::messages::delete_records::{
    DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic,
};
use mink_kafka_wire::messages::delete_topics::{DeleteTopicState, DeleteTopicsRequest};
use mink_kafka_wire::messages::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use mink_kafka_wire::messages::metadata::{MetadataRequest, MetadataRequestTopic};
use mink_kafka_wire::{ErrorCode, Uuid};

const INVALID: ErrorCode = ErrorCode::InvalidRequest;

#[tokio::test]
async fn a_topic_to_be_created_twice_is_refused_once_and_the_others_are_created() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    let topic = |name: &str, num_partitions| CreatableTopic {
        name: name.into(),
        num_partitions,
        replication_factor: 1,
        ..CreatableTopic::default()
    };
    let topics = vec![topic("d", 1), topic("d", 2), topic("e", 1)];
    let answer = client.call(7, &CreateTopicsRequest { topics, ..CreateTopicsRequest::default() }).await;
    let told: Vec<_> = answer.topics.iter().map(|topic| (topic.name.as_str(), topic.error_code)).collect();
    assert_eq!(told, [("d", INVALID.code()), ("e", 0)]);
}

#[tokio::test]
async fn a_topic_to_be_deleted_twice_stays_whether_it_is_named_by_name_or_by_id() {
    let running = start().await;
    running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    let by_name = || DeleteTopicState { name: Some("t".into()), topic_id: Uuid::ZERO };
    let unknown = || DeleteTopicState { name: None, topic_id: Uuid([1; 16]) };
    let of = |topics| DeleteTopicsRequest { topics, ..DeleteTopicsRequest::default() };
    let nothing = client.call(6, &of(vec![unknown(), unknown()])).await.responses;
    assert_eq!((nothing.len(), nothing[0].error_code), (1, INVALID.code()));
    let refused = client.call(6, &of(vec![by_name(), by_name()])).await.responses;
    assert_eq!((refused.len(), refused[0].error_code), (1, INVALID.code()));
    assert!(refused[0].topic_id.is_zero(), "as from Kafka");
    let described = MetadataRequest {
        topics: Some(vec![MetadataRequestTopic {
            name: Some("t".into()),
            ..MetadataRequestTopic::default()
        }]),
        ..MetadataRequest::default()
    };
    let id = client.call(12, &described).await.topics[0].topic_id;
    let by_id = DeleteTopicState { name: None, topic_id: id };
    let refused = client.call(6, &of(vec![by_name(), by_id])).await.responses;
    assert_eq!((refused.len(), refused[0].error_code, refused[0].topic_id), (1, INVALID.code(), id));
    let deleted = client.call(6, &of(vec![by_name()])).await.responses;
    assert_eq!(deleted[0].error_code, 0, "it was still there");
}

#[tokio::test]
async fn an_offset_that_is_asked_for_twice_is_refused_once_and_topics_come_together() {
    let running = start().await;
    running.fake.topic("t", 2);
    let mut client = Client::connect(running.address).await;
    let topic = |partitions: &[i32]| ListOffsetsTopic {
        name: "t".into(),
        partitions: partitions
            .iter()
            .map(|index| ListOffsetsPartition {
                partition_index: *index,
                timestamp: -1,
                ..ListOffsetsPartition::default()
            })
            .collect(),
    };
    let of = |topics| ListOffsetsRequest { replica_id: -1, topics, ..ListOffsetsRequest::default() };
    let answer = client.call(7, &of(vec![topic(&[0]), topic(&[1, 0])])).await;
    assert_eq!(answer.topics.len(), 1);
    let told: Vec<_> = answer.topics[0]
        .partitions
        .iter()
        .map(|partition| (partition.partition_index, partition.error_code))
        .collect();
    assert_eq!(told, [(0, INVALID.code()), (1, 0)]);
}

#[tokio::test]
async fn of_records_deleted_twice_the_last_offset_counts() {
    let running = start().await;
    running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    client.produce("t", 0, batch(&["a", "b", "c"])).await;
    let partition = |offset| DeleteRecordsPartition { partition_index: 0, offset };
    let topics = vec![DeleteRecordsTopic { name: "t".into(), partitions: vec![partition(99), partition(2)] }];
    let answer = client.call(2, &DeleteRecordsRequest { topics, timeout_ms: 1_000 }).await;
    let told = &answer.topics[0].partitions;
    assert_eq!((told.len(), told[0].error_code, told[0].low_watermark), (1, 0, 2));
}

#[tokio::test]
async fn a_partition_fetched_twice_is_answered_once_from_the_last_offset() {
    let running = start().await;
    running.fake.topic("t", 2);
    let mut client = Client::connect(running.address).await;
    client.produce("t", 0, batch(&["a"])).await;
    client.produce("t", 0, batch(&["b"])).await;
    let answer = client.call(12, &fetch("t", &[(0, 0), (1, 0), (0, 1)])).await;
    let told = &answer.responses[0].partitions;
    let indexes: Vec<_> = told.iter().map(|partition| partition.partition_index).collect();
    assert_eq!(indexes, [0, 1]);
    let records = told[0].records.clone().expect("records").into_bytes();
    assert_eq!(super::raw_client::visible(records, 1), [(1, "b".to_owned())]);
}

#[tokio::test]
async fn an_assignment_that_names_a_broker_twice_or_unevenly_is_refused() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    for brokers in [vec![vec![7, 7]], vec![vec![7], vec![7, 8]]] {
        let assignments = (0..)
            .zip(brokers)
            .map(|(partition_index, broker_ids)| CreatableReplicaAssignment { partition_index, broker_ids });
        let topic = CreatableTopic {
            name: "t".into(),
            num_partitions: -1,
            replication_factor: -1,
            assignments: assignments.collect(),
            ..CreatableTopic::default()
        };
        let request = CreateTopicsRequest { topics: vec![topic], ..CreateTopicsRequest::default() };
        let answer = client.call(7, &request).await;
        assert_eq!(answer.topics[0].error_code, ErrorCode::InvalidReplicaAssignment.code());
    }
}

#[tokio::test]
async fn a_client_whose_software_has_no_proper_name_is_refused_from_version_3_on() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    let named = |name: &str, version: &str| ApiVersionsRequest {
        client_software_name: name.into(),
        client_software_version: version.into(),
        ..ApiVersionsRequest::default()
    };
    for (name, version) in [("", "1"), ("a", ""), ("-a", "1"), ("a b", "1"), ("a", "1."), ("\u{e9}", "1")] {
        let refused = client.call(4, &named(name, version)).await;
        assert_eq!((refused.error_code, refused.api_keys.len()), (INVALID.code(), 0), "{name:?} {version:?}");
        assert_eq!(client.call(2, &named(name, version)).await.error_code, 0, "no names before 3");
    }
    for (name, version) in [("apache-kafka-java", "4.4.0"), ("librdkafka", "v2.0-rc1"), ("x", "1")] {
        assert_eq!(client.call(4, &named(name, version)).await.error_code, 0, "{name} {version}");
    }
}
