//! Metadata, topics, offsets, configurations, producers, and coordinators.
//!
//! Lives on: tests only.
use super::fake::{Running, config, start, start_with};
use super::raw_client::{Client, batch, batch_of};
use mink_kafka_wire::messages::create_topics::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig, CreatableTopicResult,
    CreateTopicsRequest,
};
use mink_kafka_wire::messages::delete_topics::{DeleteTopicState, DeleteTopicsRequest};
use mink_kafka_wire::messages::describe_configs::{DescribeConfigsRequest, DescribeConfigsResource};
use mink_kafka_wire::messages::find_coordinator::FindCoordinatorRequest;
use mink_kafka_wire::messages::init_producer_id::InitProducerIdRequest;
use mink_kafka_wire::messages::list_offsets::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use mink_kafka_wire::messages::metadata::{
    MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponsePartition,
};
use mink_kafka_wire::{ErrorCode, Uuid};
use mink_record::kafka::{BatchBuilder, Codec, RecordRef};
use mink_types::TableOptions;

fn by_name(name: &str) -> MetadataRequest {
    MetadataRequest {
        topics: Some(vec![MetadataRequestTopic {
            name: Some(name.into()),
            ..MetadataRequestTopic::default()
        }]),
        ..MetadataRequest::default()
    }
}

async fn ask(running: &Running, version: i16, request: &MetadataRequest) -> MetadataResponse {
    Client::connect(running.address).await.call(version, request).await
}

#[tokio::test]
async fn every_version_of_metadata_names_leaders_controller_and_cluster() {
    let running = start().await;
    running.fake.topic("t", 3);
    for version in 0..=13 {
        let response = ask(&running, version, &by_name("t")).await;
        let topic = &response.topics[0];
        assert_eq!((topic.error_code, topic.partitions.len()), (0, 3), "{version}");
        let partition = &topic.partitions[2];
        assert_eq!((partition.partition_index, partition.leader_id), (2, 7));
        assert_eq!((&partition.replica_nodes, &partition.isr_nodes), (&vec![7], &vec![7]));
        assert_eq!(response.brokers[0].node_id, 7);
        assert_eq!(response.brokers[0].port, i32::from(running.address.port()));
        if version >= 1 {
            assert_eq!(response.controller_id, 7);
        }
        if version >= 2 {
            assert_eq!(response.cluster_id.clone().expect("constant"), "07".repeat(16).as_str());
        }
        if version >= 7 {
            assert_eq!(partition.leader_epoch, 1);
        }
        if version >= 8 {
            assert_eq!(topic.topic_authorized_operations, i32::MIN);
        }
        if version >= 10 {
            assert!(!topic.topic_id.is_zero());
        }
    }
}

#[tokio::test]
async fn no_list_means_all_and_an_empty_list_none_except_in_version_0() {
    let running = start().await;
    running.fake.topic("a", 1);
    running.fake.table("sales.orders", TableOptions::default()).expect("created");
    let all = MetadataRequest { topics: None, ..MetadataRequest::default() };
    let none = MetadataRequest::default();
    assert_eq!(ask(&running, 0, &none).await.topics.len(), 2);
    for version in [1, 9, 12] {
        let response = ask(&running, version, &all).await;
        let names: Vec<&str> =
            response.topics.iter().filter_map(|topic| Some(topic.name.as_ref()?.as_str())).collect();
        assert_eq!(names, ["a", "sales.orders"]);
        assert!(ask(&running, version, &none).await.topics.is_empty());
    }
}

#[tokio::test]
async fn i20_a_topic_is_described_once_however_often_it_is_named() {
    let running = start().await;
    running.fake.topic("a", 1);
    let mut request = by_name("a");
    let topics = request.topics.as_mut().expect("named");
    *topics = vec![topics[0].clone(); 1_000];
    assert_eq!(ask(&running, 12, &request).await.topics.len(), 1);
}

#[tokio::test]
async fn k_18_a_topic_made_anew_has_another_id_and_the_old_one_is_unknown() {
    let running = start().await;
    let table = running.fake.topic("t", 1);
    let first = ask(&running, 12, &by_name("t")).await.topics[0].topic_id;
    let by_id = |topic_id| MetadataRequest {
        topics: Some(vec![MetadataRequestTopic { topic_id, name: None }]),
        ..MetadataRequest::default()
    };
    let found = ask(&running, 12, &by_id(first)).await;
    assert_eq!(found.topics[0].name.clone().expect("named"), "t");
    mink_api::Admin::drop_table(&*running.fake, table).await.expect("dropped");
    running.fake.topic("t", 1);
    let second = ask(&running, 12, &by_name("t")).await.topics[0].topic_id;
    assert_ne!(first, second);
    let gone = ask(&running, 12, &by_id(first)).await;
    assert_eq!(gone.topics[0].error_code, ErrorCode::UnknownTopicId.code());
    assert_eq!((gone.topics[0].name.clone(), gone.topics[0].topic_id), (None, first));
}

#[tokio::test]
async fn k_19_a_new_name_becomes_a_topic_and_a_bad_one_is_refused_for_good() {
    let running = start().await;
    let made = ask(&running, 9, &by_name("fresh")).await;
    assert_eq!((made.topics[0].error_code, made.topics[0].partitions.len()), (0, 2));
    for bad in ["a/b", "..", "", &"x".repeat(250), "fre sh", "\u{202e}x"] {
        let refused = ask(&running, 9, &by_name(bad)).await;
        assert_eq!(refused.topics[0].error_code, ErrorCode::InvalidTopicException.code(), "{bad:?}");
        assert_eq!(refused.topics[0].name.clone().expect("named"), bad);
    }
    assert_eq!(ask(&running, 9, &by_name("a.b")).await.topics[0].error_code, 0);
    let collides = ask(&running, 9, &by_name("a_b")).await;
    assert_eq!(collides.topics[0].error_code, ErrorCode::InvalidTopicException.code());
}

#[tokio::test]
async fn a_client_or_an_operator_that_wants_no_new_topics_gets_none() {
    let unknown = ErrorCode::UnknownTopicOrPartition.code();
    let running = start().await;
    let mut request = by_name("fresh");
    request.allow_auto_topic_creation = false;
    assert_eq!(ask(&running, 4, &request).await.topics[0].error_code, unknown);
    let mut off = config();
    off.auto_create = false;
    let running = start_with(off).await;
    assert_eq!(ask(&running, 4, &by_name("fresh")).await.topics[0].error_code, unknown);
}

#[tokio::test(start_paused = true)]
async fn k_19_a_topic_without_leaders_yet_is_retried_by_clients() {
    let running = start().await;
    running.fake.opens(false);
    let response = ask(&running, 9, &by_name("slow")).await;
    let topic = &response.topics[0];
    let early = ErrorCode::LeaderNotAvailable;
    assert!(early.retriable());
    let pending = |partition: &MetadataResponsePartition| {
        partition.error_code == early.code() && partition.leader_id == -1
    };
    assert!(topic.error_code == 0 && topic.partitions.iter().all(pending), "{topic:?}");
}

#[tokio::test]
async fn names_of_kafkas_own_topics_are_refused() {
    let running = start().await;
    for name in ["__consumer_offsets", "__transaction_state", "__share_group_state"] {
        let created = create(&running, wanted(name, 1, 1), false).await;
        assert_eq!(created.error_code, ErrorCode::InvalidTopicException.code(), "{created:?}");
        let told = ask(&running, 9, &by_name(name)).await;
        assert_eq!(told.topics[0].error_code, ErrorCode::InvalidTopicException.code(), "{told:?}");
    }
}

async fn create(running: &Running, topic: CreatableTopic, validate_only: bool) -> CreatableTopicResult {
    let request =
        CreateTopicsRequest { topics: vec![topic], validate_only, ..CreateTopicsRequest::default() };
    let mut client = Client::connect(running.address).await;
    client.call(7, &request).await.topics.remove(0)
}

fn wanted(name: &str, num_partitions: i32, replication_factor: i16) -> CreatableTopic {
    CreatableTopic { name: name.into(), num_partitions, replication_factor, ..CreatableTopic::default() }
}

#[tokio::test]
async fn topics_are_created_checked_and_refused_as_kafka_does() {
    let running = start().await;
    let checked = create(&running, wanted("t", 3, 3), true).await;
    assert_eq!((checked.error_code, checked.num_partitions), (0, 3));
    assert!(checked.topic_id.is_zero(), "nothing was created");
    let made = create(&running, wanted("t", 3, 3), false).await;
    assert_eq!((made.error_code, made.num_partitions, made.replication_factor), (0, 3, 1));
    assert!(!made.topic_id.is_zero() && made.configs.is_some_and(|configs| configs.len() > 10));
    let refusals = [
        (wanted("t", 3, 1), ErrorCode::TopicAlreadyExists),
        (wanted("zero", 0, 1), ErrorCode::InvalidPartitions),
        (wanted("many", 10_001, 1), ErrorCode::InvalidPartitions),
        (wanted("factor", 1, 0), ErrorCode::InvalidReplicationFactor),
        (wanted("factor", 1, 17), ErrorCode::InvalidReplicationFactor),
        (wanted("a/b", 1, 1), ErrorCode::InvalidTopicException),
    ];
    for (topic, code) in refusals {
        let refused = create(&running, topic, false).await;
        assert_eq!(refused.error_code, code.code(), "{refused:?}");
        assert!(!refused.error_message.expect("words").is_empty());
    }
    let default = create(&running, wanted("default", -1, -1), false).await;
    assert_eq!(default.num_partitions, 2);
}

#[tokio::test]
async fn topic_configs_are_taken_or_refused_by_name() {
    let running = start().await;
    let with = |name: &str, config: &str, value: Option<&str>| CreatableTopic {
        configs: vec![CreatableTopicConfig { name: config.into(), value: value.map(Into::into) }],
        ..wanted(name, 1, 1)
    };
    for (config, value) in [
        ("cleanup.policy", Some("compacted")),
        ("message.timestamp.type", Some("AppendTime")),
        ("no.such", Some("1")),
        ("bucket.num", Some("3")),
        ("retention.ms", None),
    ] {
        let refused = create(&running, with("t", config, value), false).await;
        assert_eq!(refused.error_code, ErrorCode::InvalidConfig.code(), "{config}");
        assert!(refused.error_message.expect("words").as_str().contains(config));
    }
    let made = create(&running, with("t", "retention.ms", Some("1234")), false).await;
    assert_eq!(made.error_code, 0);
    let mut client = Client::connect(running.address).await;
    for version in 1..=4 {
        let described = client
            .call(
                version,
                &DescribeConfigsRequest {
                    resources: vec![DescribeConfigsResource {
                        resource_type: 2,
                        resource_name: "t".into(),
                        configuration_keys: Some(vec!["retention.ms".into(), "cleanup.policy".into()]),
                    }],
                    ..DescribeConfigsRequest::default()
                },
            )
            .await;
        let configs = &described.results[0].configs;
        assert_eq!(configs.len(), 2);
        assert_eq!(configs[0].value.clone().expect("set"), "delete");
        assert_eq!(configs[1].value.clone().expect("set"), "1234");
        assert_eq!((configs[0].config_source, configs[1].config_source), (5, 1));
    }
}

#[tokio::test]
async fn a_manual_assignment_counts_and_must_be_dense() {
    let running = start().await;
    let assigned = |name: &str, indexes: &[i32], brokers: &[i32]| CreatableTopic {
        assignments: indexes
            .iter()
            .map(|index| CreatableReplicaAssignment { partition_index: *index, broker_ids: brokers.to_vec() })
            .collect(),
        ..wanted(name, -1, -1)
    };
    let made = create(&running, assigned("t", &[2, 0, 1], &[1, 7, 3]), false).await;
    assert_eq!((made.error_code, made.num_partitions), (0, 3), "the node is 7; the others do not matter");
    for (indexes, brokers) in [(&[0, 2][..], &[7][..]), (&[0, 0], &[7]), (&[-1, 0], &[7]), (&[0, 1], &[8, 9])]
    {
        let refused = create(&running, assigned("u", indexes, brokers), false).await;
        assert_eq!(refused.error_code, ErrorCode::InvalidReplicaAssignment.code());
    }
}

#[tokio::test]
async fn this_node_describes_itself_and_no_other() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    let broker = |name: &str| DescribeConfigsRequest {
        resources: vec![DescribeConfigsResource {
            resource_type: 4,
            resource_name: name.into(),
            configuration_keys: None,
        }],
        ..DescribeConfigsRequest::default()
    };
    let own = client.call(4, &broker("7")).await;
    let value = |name: &str| {
        let found = own.results[0].configs.iter().find(|config| config.name == name);
        found.and_then(|config| config.value.clone()).expect("there")
    };
    assert_eq!(value("num.partitions"), "2");
    assert_eq!(value("auto.create.topics.enable"), "true");
    assert_eq!(value("socket.request.max.bytes"), "104857600");
    let other = client.call(4, &broker("8")).await;
    assert_eq!(other.results[0].error_code, ErrorCode::InvalidRequest.code());
}

#[tokio::test]
async fn topics_are_deleted_by_name_and_by_id() {
    let running = start().await;
    running.fake.topic("a", 1);
    running.fake.topic("b", 1);
    let id = ask(&running, 12, &by_name("b")).await.topics[0].topic_id;
    let mut client = Client::connect(running.address).await;
    let names = DeleteTopicsRequest {
        topic_names: vec!["a".into(), "missing".into()],
        ..DeleteTopicsRequest::default()
    };
    let deleted = client.call(5, &names).await;
    let codes: Vec<i16> = deleted.responses.iter().map(|topic| topic.error_code).collect();
    assert_eq!(codes, [0, ErrorCode::UnknownTopicOrPartition.code()]);
    let ids = DeleteTopicsRequest {
        topics: vec![
            DeleteTopicState { name: None, topic_id: id },
            DeleteTopicState { name: None, topic_id: Uuid([1; 16]) },
            DeleteTopicState { name: None, topic_id: Uuid::ZERO },
        ],
        ..DeleteTopicsRequest::default()
    };
    let deleted = client.call(6, &ids).await;
    let codes: Vec<i16> = deleted.responses.iter().map(|topic| topic.error_code).collect();
    assert_eq!(codes, [0, ErrorCode::UnknownTopicId.code(), ErrorCode::InvalidRequest.code()]);
    assert_eq!(deleted.responses[0].name.clone().expect("named"), "b");
    let all = MetadataRequest { topics: None, ..MetadataRequest::default() };
    assert!(ask(&running, 12, &all).await.topics.is_empty());
}

pub(super) async fn offset_at(client: &mut Client, version: i16, timestamp: i64) -> (i16, i64, i64) {
    let request = ListOffsetsRequest {
        replica_id: -1,
        topics: vec![ListOffsetsTopic {
            name: "t".into(),
            partitions: vec![ListOffsetsPartition { timestamp, ..ListOffsetsPartition::default() }],
        }],
        ..ListOffsetsRequest::default()
    };
    let response = client.call(version, &request).await;
    let partition = &response.topics[0].partitions[0];
    (partition.error_code, partition.offset, partition.timestamp)
}

#[tokio::test]
async fn k_15_offsets_are_found_by_the_time_of_their_record() {
    let running = start().await;
    running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    let mut builder = BatchBuilder::new();
    for timestamp in [2, 4, 6, 8] {
        builder.push(RecordRef { timestamp, value: Some(b"x"), ..RecordRef::default() }).expect("fits");
    }
    client.produce("t", 0, builder.build(Codec::None, None).expect("built")).await;
    for version in 1..=11 {
        let expected = [0, 0, 1, 1, 2, 2, 3, 3];
        for (timestamp, offset) in (1..).zip(expected) {
            let time = (offset + 1) * 2;
            assert_eq!(offset_at(&mut client, version, timestamp).await, (0, offset, time));
        }
        assert_eq!(offset_at(&mut client, version, 9).await, (0, -1, -1));
        assert_eq!(offset_at(&mut client, version, -1).await, (0, 4, -1));
        assert_eq!(offset_at(&mut client, version, -2).await, (0, 0, -1));
    }
    for version in 7..=11 {
        assert_eq!(offset_at(&mut client, version, -3).await, (0, 3, 8));
    }
    for version in 8..=11 {
        assert_eq!(offset_at(&mut client, version, -4).await, (0, 0, -1), "all is local");
    }
    for version in 9..=11 {
        assert_eq!(offset_at(&mut client, version, -5).await, (0, -1, -1), "nothing is tiered");
    }
    assert_eq!(offset_at(&mut client, 11, -6).await, (0, -1, -1), "nothing waits for it");
    let unsupported = (ErrorCode::UnsupportedVersion.code(), -1, -1);
    assert_eq!(offset_at(&mut client, 6, -3).await, unsupported);
    for (version, timestamp) in [(7, -4), (8, -5), (10, -6), (11, -7), (11, i64::MIN)] {
        assert_eq!(offset_at(&mut client, version, timestamp).await, unsupported, "{version} {timestamp}");
    }
}

#[tokio::test]
async fn producer_ids_are_new_each_time_and_transactions_are_refused() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    let mut ids = std::collections::BTreeSet::new();
    for version in 0..=5 {
        let request = InitProducerIdRequest { transactional_id: None, ..InitProducerIdRequest::default() };
        let given = client.call(version, &request).await;
        assert_eq!((given.error_code, given.producer_epoch), (0, 0));
        assert!(ids.insert(given.producer_id));
    }
    let again = InitProducerIdRequest {
        transactional_id: None,
        producer_id: 5,
        producer_epoch: 3,
        ..InitProducerIdRequest::default()
    };
    let given = client.call(4, &again).await;
    assert_eq!((given.error_code, given.producer_epoch), (0, 0));
    assert!(ids.insert(given.producer_id), "as Kafka: nobody vouches for the old id");
    let half = InitProducerIdRequest { producer_epoch: -1, ..again };
    assert_eq!(client.call(4, &half).await.error_code, ErrorCode::InvalidRequest.code());
    let transactional =
        InitProducerIdRequest { transactional_id: Some("tx".into()), ..InitProducerIdRequest::default() };
    assert_eq!(client.call(4, &transactional).await.error_code, ErrorCode::InvalidRequest.code());
}

#[tokio::test]
async fn a_coordinator_is_found_for_groups_and_refused_for_transactions() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    let port = i32::from(running.address.port());
    for version in 0..=3 {
        let request = FindCoordinatorRequest { key: "g".into(), ..FindCoordinatorRequest::default() };
        let found = client.call(version, &request).await;
        assert_eq!((found.error_code, found.node_id, found.port), (0, 7, port));
    }
    let batched = FindCoordinatorRequest {
        coordinator_keys: vec!["g".into(), "h".into()],
        ..FindCoordinatorRequest::default()
    };
    for version in 4..=6 {
        let found = client.call(version, &batched).await;
        assert_eq!(found.coordinators.len(), 2);
        assert_eq!((found.coordinators[1].node_id, found.coordinators[1].port), (7, port));
    }
    let share = FindCoordinatorRequest { key_type: 2, ..batched.clone() };
    let refused = client.call(6, &share).await;
    assert_eq!(refused.coordinators[0].error_code, ErrorCode::InvalidRequest.code());
    let transaction = FindCoordinatorRequest { key_type: 1, ..batched };
    let refused = client.call(4, &transaction).await;
    assert_eq!(refused.coordinators[0].error_code, ErrorCode::InvalidRequest.code());
    let why = refused.coordinators[0].error_message.clone().expect("words");
    assert!(why.as_str().contains("transactions"));
}

#[tokio::test]
async fn a_table_of_another_database_is_a_topic_by_its_address() {
    let running = start().await;
    running.fake.table("sales.orders", TableOptions::default()).expect("created");
    let mut client = Client::connect(running.address).await;
    let one = batch_of([&b"x"[..]].into_iter(), Codec::None);
    assert_eq!(client.produce("sales.orders", 0, one).await.error_code, 0);
    let unknown = client.produce("orders", 0, batch(&["x"])).await;
    assert_eq!(unknown.error_code, ErrorCode::UnknownTopicOrPartition.code());
}
