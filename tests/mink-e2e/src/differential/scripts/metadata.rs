//! Metadata, DescribeTopicPartitions, DescribeCluster and DescribeLogDirs.
//! Lives on: the test's tokio runtime.
//! Owns: nothing.

use mink_kafka_wire::messages::describe_cluster::DescribeClusterRequest;
use mink_kafka_wire::messages::describe_log_dirs::{DescribableLogDirTopic, DescribeLogDirsRequest};
use mink_kafka_wire::messages::describe_topic_partitions::{
    Cursor, DescribeTopicPartitionsRequest, TopicRequest,
};
use mink_kafka_wire::messages::metadata::{MetadataRequest, MetadataRequestTopic};
use mink_kafka_wire::{KafkaString, Uuid};

use super::{Asker, NOBODY};

const IDS_FROM: i16 = 12;

fn named(name: &KafkaString) -> MetadataRequestTopic {
    MetadataRequestTopic { name: Some(name.clone()), ..MetadataRequestTopic::default() }
}

fn by_id(topic_id: Uuid) -> MetadataRequestTopic {
    MetadataRequestTopic { topic_id, name: None }
}

/// Creates nothing where the version can say so.
fn of(version: i16, topics: Option<Vec<MetadataRequestTopic>>) -> MetadataRequest {
    MetadataRequest { topics, allow_auto_topic_creation: version < 4, ..MetadataRequest::default() }
}

pub(super) async fn metadata(run: &mut Asker) {
    let version = run.version;
    let a = run.topic("a", 2).await;
    let b = run.topic("b", 1).await;
    run.ask("one topic", of(version, Some(vec![named(&a)]))).await;
    run.ask("two topics", of(version, Some(vec![named(&b), named(&a)]))).await;
    run.ask("a topic twice", of(version, Some(vec![named(&a), named(&a)]))).await;
    run.ask_own("no topics", of(version, Some(vec![]))).await;
    run.ask("bad name", of(version, Some(vec![named(&"a/b".into())]))).await;
    run.ask("no name", of(version, Some(vec![named(&KafkaString::default())]))).await;
    run.ask("a long name", of(version, Some(vec![named(&"x".repeat(250).into())]))).await;
    if version >= 1 {
        run.ask_own("all topics", of(version, None)).await;
    }
    if version >= 4 {
        run.ask("unknown topic", of(version, Some(vec![named(&run.name("unknown")), named(&a)]))).await;
    }
    if (8..11).contains(&version) {
        let include_cluster_authorized_operations = true;
        let request = MetadataRequest { include_cluster_authorized_operations, ..of(version, Some(vec![])) };
        run.ask_own("operations on the cluster", request).await;
    }
    if version >= 8 {
        let request = MetadataRequest {
            include_topic_authorized_operations: true,
            ..of(version, Some(vec![named(&a), named(&run.name("unknown"))]))
        };
        run.ask("operations on topics", request).await;
    }
    if version >= IDS_FROM {
        let id = run.id_of(&a).await;
        run.ask("by id", of(version, Some(vec![by_id(id)]))).await;
        run.ask("unknown id", of(version, Some(vec![by_id(NOBODY), by_id(id)]))).await;
        run.ask("id twice", of(version, Some(vec![by_id(id), by_id(id)]))).await;
        let both = MetadataRequestTopic { topic_id: id, name: Some(a.clone()) };
        run.ask("name and id", of(version, Some(vec![both]))).await;
        run.ask("name and id by name", of(version, Some(vec![named(&b), by_id(id)]))).await;
        run.ask("neither name nor id", of(version, Some(vec![by_id(Uuid::ZERO)]))).await;
    }
    created(run).await;
    run.damaged(of(version, Some(vec![named(&a)]))).await;
}

/// Topics that come into being by being asked for: the first answer is about something that is not there yet.
async fn created(run: &mut Asker) {
    let version = run.version;
    let new = run.name("new");
    let request = MetadataRequest {
        allow_auto_topic_creation: true,
        ..of(version, Some(vec![named(&new), named(&"c/d".into())]))
    };
    run.ask("created on first use", request.clone()).await;
    run.served(&new, 1).await;
    let id = run.id_of(&new).await;
    run.names.topic("new", id);
    run.ask("after it was created", request).await;
}

pub(super) async fn describe_topic_partitions(run: &mut Asker) {
    let a = run.topic("a", 3).await;
    let b = run.topic("b", 2).await;
    let unknown = run.name("unknown");
    let of = |names: &[&KafkaString], response_partition_limit, cursor| DescribeTopicPartitionsRequest {
        topics: names.iter().map(|name| TopicRequest { name: (*name).clone() }).collect(),
        response_partition_limit,
        cursor,
    };
    let from =
        |topic: &KafkaString, partition_index| Some(Cursor { topic_name: topic.clone(), partition_index });
    run.ask("one topic", of(&[&a], 2000, None)).await;
    run.ask("two topics", of(&[&b, &a], 2000, None)).await;
    run.ask("a topic twice", of(&[&a, &a], 2000, None)).await;
    run.ask("unknown topic", of(&[&unknown, &a], 2000, None)).await;
    run.ask("bad name", of(&[&"a/b".into()], 2000, None)).await;
    for limit in [1, 2, 3, 4, 0, -1] {
        run.ask(&format!("limit {limit}"), of(&[&a, &b], limit, None)).await;
    }
    run.ask("cursor", of(&[&a, &b], 2000, from(&a, 1))).await;
    run.ask("cursor with a limit", of(&[&a, &b], 1, from(&a, 2))).await;
    run.ask("cursor on the second", of(&[&a, &b], 2000, from(&b, 0))).await;
    run.ask("cursor beyond", of(&[&a, &b], 2000, from(&a, 50))).await;
    run.ask("cursor at -1", of(&[&a], 2000, from(&a, -1))).await;
    run.ask("cursor on another", of(&[&b], 2000, from(&a, 0))).await;
    run.ask_own("all topics", of(&[], 2000, None)).await;
    run.damaged(of(&[&a], 2000, None)).await;
}

pub(super) async fn describe_cluster(run: &mut Asker) {
    let of = DescribeClusterRequest::default;
    run.ask("the cluster", of()).await;
    let operations = DescribeClusterRequest { include_cluster_authorized_operations: true, ..of() };
    run.ask("operations", operations).await;
    if run.version >= 1 {
        run.ask("controllers", DescribeClusterRequest { endpoint_type: 2, ..of() }).await;
        run.ask("endpoints of type 5", DescribeClusterRequest { endpoint_type: 5, ..of() }).await;
    }
    if run.version >= 2 {
        run.ask("fenced brokers", DescribeClusterRequest { include_fenced_brokers: true, ..of() }).await;
    }
    run.damaged(of()).await;
}

pub(super) async fn describe_log_dirs(run: &mut Asker) {
    let a = run.topic("a", 2).await;
    let topic = |name: &KafkaString, partitions: &[i32]| DescribableLogDirTopic {
        topic: name.clone(),
        partitions: partitions.to_vec(),
    };
    let of = |topics| DescribeLogDirsRequest { topics };
    run.ask("two partitions", of(Some(vec![topic(&a, &[0, 1])]))).await;
    run.ask("no such partition", of(Some(vec![topic(&a, &[0, 9, -1])]))).await;
    run.ask("unknown topic", of(Some(vec![topic(&run.name("unknown"), &[0])]))).await;
    run.ask("no topics", of(Some(vec![]))).await;
    run.ask("no partitions", of(Some(vec![topic(&a, &[])]))).await;
    run.ask("a partition twice", of(Some(vec![topic(&a, &[0, 0])]))).await;
    run.ask_own("all topics", of(None)).await;
    run.damaged(of(Some(vec![topic(&a, &[0])]))).await;
}
