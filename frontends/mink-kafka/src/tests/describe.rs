//! What administrators look at: the cluster, topics page by page, sizes, elections, and access control that there is none of.
//!
//! Lives on: tests only.
use super::fake::start;
use super::raw_client::{Client, batch};
use mink_kafka_wire::ErrorCode;
use mink_kafka_wire::messages::create_acls::{AclCreation, CreateAclsRequest};
use mink_kafka_wire::messages::delete_acls::{DeleteAclsFilter, DeleteAclsRequest};
use mink_kafka_wire::messages::describe_acls::DescribeAclsRequest;
use mink_kafka_wire::messages::describe_cluster::DescribeClusterRequest;
use mink_kafka_wire::messages::describe_configs::{DescribeConfigsRequest, DescribeConfigsResource};
use mink_kafka_wire::messages::describe_log_dirs::{DescribableLogDirTopic, DescribeLogDirsRequest};
use mink_kafka_wire::messages::describe_topic_partitions::{
    Cursor, DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, TopicRequest,
};
use mink_kafka_wire::messages::elect_leaders::{ElectLeadersRequest, TopicPartitions};

#[tokio::test]
async fn the_cluster_is_described_to_who_asks_for_brokers() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    for version in 0..=2 {
        let asked = DescribeClusterRequest { endpoint_type: 1, ..DescribeClusterRequest::default() };
        let found = client.call(version, &asked).await;
        assert_eq!((found.error_code, found.controller_id, found.brokers.len()), (0, 7, 1));
        assert_eq!(found.cluster_id, "07".repeat(16).as_str());
        assert_eq!(
            (found.brokers[0].broker_id, found.brokers[0].port),
            (7, i32::from(running.address.port()))
        );
        assert_eq!(found.cluster_authorized_operations, i32::MIN);
    }
    let all = DescribeClusterRequest {
        include_cluster_authorized_operations: true,
        endpoint_type: 1,
        ..DescribeClusterRequest::default()
    };
    assert_eq!(client.call(0, &all).await.cluster_authorized_operations, 8096);
    for (endpoint_type, code) in
        [(2, ErrorCode::MismatchedEndpointType), (5, ErrorCode::UnsupportedEndpointType)]
    {
        let refused = client.call(1, &DescribeClusterRequest { endpoint_type, ..all.clone() }).await;
        assert_eq!((refused.error_code, refused.brokers.len()), (code.code(), 0));
    }
}

fn page(topics: &[&str], limit: i32, cursor: Option<(&str, i32)>) -> DescribeTopicPartitionsRequest {
    DescribeTopicPartitionsRequest {
        topics: topics.iter().map(|name| TopicRequest { name: (*name).into() }).collect(),
        response_partition_limit: limit,
        cursor: cursor.map(|(name, partition_index)| Cursor { topic_name: name.into(), partition_index }),
    }
}

/// Name, error and partitions of a topic.
type Seen = (String, i16, Vec<i32>);

/// The topics of a page, and where the next begins.
fn seen(page: &DescribeTopicPartitionsResponse) -> (Vec<Seen>, Option<(String, i32)>) {
    let topics = page.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| partition.partition_index);
        let name = topic.name.clone().expect("named");
        (name.as_str().to_owned(), topic.error_code, partitions.collect())
    });
    let next = page.next_cursor.as_ref();
    (topics.collect(), next.map(|next| (next.topic_name.as_str().to_owned(), next.partition_index)))
}

#[tokio::test]
async fn topics_come_page_by_page_in_the_order_of_their_names() {
    let running = start().await;
    running.fake.topic("b", 3);
    running.fake.topic("a", 2);
    let mut client = Client::connect(running.address).await;
    let at = |name: &str, partition| Some((name.to_owned(), partition));
    let first = seen(&client.call(0, &page(&[], 2, None)).await);
    assert_eq!(first, (vec![("a".into(), 0, vec![0, 1])], at("b", 0)));
    let second = seen(&client.call(0, &page(&[], 2, Some(("b", 0)))).await);
    assert_eq!(second, (vec![("b".into(), 0, vec![0, 1])], at("b", 2)));
    let third = seen(&client.call(0, &page(&[], 2, Some(("b", 2)))).await);
    assert_eq!(third, (vec![("b".into(), 0, vec![2])], None));
    let across = seen(&client.call(0, &page(&[], 4, None)).await);
    assert_eq!(across, (vec![("a".into(), 0, vec![0, 1]), ("b".into(), 0, vec![0, 1])], at("b", 2)));
    let unknown = ErrorCode::UnknownTopicOrPartition.code();
    let invalid = ErrorCode::InvalidTopicException.code();
    let named = seen(&client.call(0, &page(&["z", "b", "x/y", "b"], 2_000, None)).await);
    let all =
        vec![("b".into(), 0, vec![0, 1, 2]), ("x/y".into(), invalid, vec![]), ("z".into(), unknown, vec![])];
    assert_eq!(named, (all, None));
    assert_eq!(seen(&client.call(0, &page(&["b"], 0, None)).await).1, at("b", 1), "one at least");
    assert_eq!(
        seen(&client.call(0, &page(&["b"], 9, Some(("b", 50)))).await),
        (vec![("b".into(), 0, vec![])], None)
    );
    for cursor in [("b", -1), ("a", 0)] {
        let refused = client.call(0, &page(&["b"], 9, Some(cursor))).await;
        assert_eq!(seen(&refused), (vec![("b".into(), ErrorCode::InvalidRequest.code(), vec![])], None));
    }
}

#[tokio::test]
async fn sizes_are_told_of_what_this_node_leads_and_of_nothing_twice() {
    let running = start().await;
    running.fake.topic("t", 2);
    running.fake.opens(false);
    running.fake.topic("elsewhere", 1);
    let mut client = Client::connect(running.address).await;
    client.produce("t", 0, batch(&["x"])).await;
    let topic = |name: &str, partitions: &[i32]| DescribableLogDirTopic {
        topic: name.into(),
        partitions: partitions.to_vec(),
    };
    let some = DescribeLogDirsRequest {
        topics: Some(vec![
            topic("t", &[1, 9, 1]),
            topic("t", &[1]),
            topic("missing", &[0]),
            topic("elsewhere", &[0]),
        ]),
    };
    for version in 1..=5 {
        for (request, expected) in [(&some, vec![1]), (&DescribeLogDirsRequest { topics: None }, vec![0, 1])]
        {
            let answer = client.call(version, request).await;
            let dir = &answer.results[0];
            assert_eq!((answer.error_code, dir.error_code, dir.log_dir.as_str()), (0, 0, "memory://"));
            let names: Vec<&str> = dir.topics.iter().map(|topic| topic.name.as_str()).collect();
            let partitions: Vec<i32> = dir
                .topics
                .iter()
                .flat_map(|topic| &topic.partitions)
                .map(|part| part.partition_index)
                .collect();
            assert_eq!((names, partitions), (vec!["t"], expected), "version {version}");
        }
    }
}

#[tokio::test]
async fn nothing_needs_to_be_elected() {
    let running = start().await;
    running.fake.topic("t", 1);
    running.fake.opens(false);
    running.fake.topic("opening", 1);
    let mut client = Client::connect(running.address).await;
    let asked = |election_type| ElectLeadersRequest {
        election_type,
        topic_partitions: Some(vec![
            TopicPartitions { topic: "t".into(), partitions: vec![0, 9] },
            TopicPartitions { topic: "opening".into(), partitions: vec![0] },
            TopicPartitions { topic: "missing".into(), partitions: vec![0] },
        ]),
        timeout_ms: 1_000,
    };
    for version in 0..=2 {
        let answer = client.call(version, &asked(0)).await;
        let results = answer.replica_election_results.iter().flat_map(|topic| &topic.partition_result);
        let codes: Vec<i16> = results.map(|partition| partition.error_code).collect();
        let unknown = ErrorCode::UnknownTopicOrPartition.code();
        let there = ErrorCode::ElectionNotNeeded.code();
        let coming = ErrorCode::PreferredLeaderNotAvailable.code();
        assert_eq!((answer.error_code, codes), (0, vec![there, unknown, coming, unknown]));
    }
    let unknown = client.call(2, &asked(5)).await;
    assert_eq!(unknown.error_code, ErrorCode::InvalidRequest.code());
    let all = ElectLeadersRequest { topic_partitions: None, ..asked(0) };
    let answer = client.call(2, &all).await;
    assert!(answer.replica_election_results.iter().all(|topic| topic.partition_result.is_empty()));
    assert_eq!(answer.replica_election_results.len(), 2);
}

#[tokio::test]
async fn without_authorisation_access_control_is_refused_for_good() {
    let running = start().await;
    let mut client = Client::connect(running.address).await;
    let disabled = ErrorCode::SecurityDisabled.code();
    for version in 1..=3 {
        let described = client.call(version, &DescribeAclsRequest::default()).await;
        assert_eq!((described.error_code, described.resources.len()), (disabled, 0));
        let creations = vec![AclCreation { resource_pattern_type: 3, ..AclCreation::default() }; 2];
        let created = client.call(version, &CreateAclsRequest { creations }).await;
        assert_eq!(created.results.iter().map(|result| result.error_code).collect::<Vec<_>>(), [disabled; 2]);
        let filters = vec![DeleteAclsFilter { pattern_type_filter: 3, ..DeleteAclsFilter::default() }];
        let deleted = client.call(version, &DeleteAclsRequest { filters }).await;
        assert_eq!(
            deleted.filter_results.iter().map(|result| result.error_code).collect::<Vec<_>>(),
            [disabled]
        );
    }
}

#[tokio::test]
async fn configurations_are_described_whole_when_none_is_named_and_bad_names_are_told_apart() {
    let running = start().await;
    running.fake.topic("t", 1);
    let mut client = Client::connect(running.address).await;
    let asked = |name: &str, keys| DescribeConfigsRequest {
        resources: vec![DescribeConfigsResource {
            resource_type: 2,
            resource_name: name.into(),
            configuration_keys: keys,
        }],
        ..DescribeConfigsRequest::default()
    };
    let all = client.call(4, &asked("t", None)).await.results.remove(0).configs;
    let empty = client.call(4, &asked("t", Some(vec![]))).await.results.remove(0).configs;
    assert!(all.len() > 20 && all == empty);
    assert!(all.windows(2).all(|pair| pair[0].name.as_str() < pair[1].name.as_str()), "each name once");
    for (name, code) in [
        ("missing", ErrorCode::UnknownTopicOrPartition),
        ("a/b", ErrorCode::InvalidTopicException),
        ("", ErrorCode::InvalidTopicException),
    ] {
        assert_eq!(client.call(4, &asked(name, None)).await.results[0].error_code, code.code(), "{name:?}");
    }
}
