//! Topics named by their ids: Produce and Fetch from version 13 on.
//!
//! Lives on: tests only.
use super::fake::{Behaviour, Fake, start};
use super::raw_client::{Client, batch, fetch, produce, visible};
use mink_api::Admin as _;
use mink_kafka_wire::messages::fetch::FetchRequest;
use mink_kafka_wire::messages::produce::ProduceRequest;
use mink_kafka_wire::{ErrorCode, Uuid};
use mink_router::{AppendError, ReadError};
use mink_types::{BucketId, BucketIndex, TableId};

fn id_of(fake: &Fake, table: TableId) -> Uuid {
    Uuid(fake.state().table(table).expect("there").uuid.0)
}

fn produce_to(id: Uuid, partition: i32, values: &[&str]) -> ProduceRequest {
    let mut request = produce("", partition, batch(values), -1);
    request.topic_data[0].topic_id = id;
    request
}

pub(super) fn fetch_of(id: Uuid, partitions: &[(i32, i64)]) -> FetchRequest {
    let mut request = fetch("", partitions);
    request.topics[0].topic_id = id;
    request
}

#[tokio::test]
async fn records_go_by_the_id_of_their_topic_and_come_back_by_it() {
    let running = start().await;
    let table = running.fake.topic("t", 1);
    let id = id_of(&running.fake, table);
    let mut client = Client::connect(running.address).await;
    let answer = client.call(13, &produce_to(id, 0, &["a", "b"])).await;
    let topic = &answer.responses[0];
    assert_eq!((topic.topic_id, topic.partition_responses[0].error_code), (id, 0));
    for version in 13..=18 {
        let answer = client.call(version, &fetch_of(id, &[(0, 0)])).await;
        assert_eq!(answer.responses[0].topic_id, id);
        let records = answer.responses[0].partitions[0].records.clone().expect("never null");
        assert_eq!(visible(records.into_bytes(), 0).len(), 2, "version {version}");
    }
}

#[tokio::test]
async fn k_18_k_26_an_id_never_means_the_topic_that_was_created_anew_under_the_name() {
    let running = start().await;
    let old = running.fake.topic("t", 1);
    let id = id_of(&running.fake, old);
    let mut client = Client::connect(running.address).await;
    client.call(13, &produce_to(id, 0, &["a"])).await;
    running.fake.drop_table(old).await.expect("dropped");
    let new = running.fake.topic("t", 1);
    for id in [id, Uuid([1; 16]), Uuid::ZERO] {
        let written = client.call(13, &produce_to(id, 0, &["b"])).await;
        let read = client.call(13, &fetch_of(id, &[(0, 0)])).await;
        let unknown = (id, ErrorCode::UnknownTopicId.code());
        let topic = &written.responses[0];
        assert_eq!((topic.topic_id, topic.partition_responses[0].error_code), unknown);
        let topic = &read.responses[0];
        assert_eq!((topic.topic_id, topic.partitions[0].error_code), unknown);
    }
    assert_eq!(running.fake.end(new, 0).0, 0, "nothing was written to it");
    let id = id_of(&running.fake, new);
    let missing = client.call(13, &produce_to(id, 1, &["b"])).await;
    let code = missing.responses[0].partition_responses[0].error_code;
    assert_eq!(code, ErrorCode::UnknownTopicOrPartition.code(), "the topic is known, the partition is not");
}

#[tokio::test]
async fn i7_what_is_pipelined_behind_a_curable_refusal_fails_too_when_topics_go_by_id() {
    let running = start().await;
    let table = running.fake.topic("t", 2);
    let id = id_of(&running.fake, table);
    let mut client = Client::connect(running.address).await;
    let bucket = BucketId::unpartitioned(table, BucketIndex(0));
    let hold = Behaviour { hold_order: true, ..Behaviour::default() };
    running.fake.behave(table, 0, hold);
    for correlation in 1..=2 {
        client.send(13, correlation, &produce_to(id, 0, &["x"])).await;
    }
    client.send(13, 3, &produce_to(id, 1, &["y"])).await;
    running.fake.until(|fake| fake.end(table, 0).1 == 1).await;
    let refuse = Behaviour { refuse: Some(AppendError::NotOwner { bucket }), ..Behaviour::default() };
    running.fake.behave(table, 0, refuse);
    let mut codes = Vec::new();
    for _ in 0..3 {
        let (_, answer) = client.receive::<ProduceRequest>(13).await;
        codes.push(answer.responses[0].partition_responses[0].error_code);
    }
    let refused = ErrorCode::NotLeaderOrFollower.code();
    assert_eq!(codes, [refused, refused, 0]);
    assert_eq!(running.fake.end(table, 0), (0, 0));
}

#[tokio::test]
async fn who_comes_to_the_wrong_node_is_told_the_leader_and_its_address() {
    let running = start().await;
    let table = running.fake.topic("t", 1);
    let id = id_of(&running.fake, table);
    let mut client = Client::connect(running.address).await;
    let bucket = BucketId::unpartitioned(table, BucketIndex(0));
    running.fake.behave(
        table,
        0,
        Behaviour {
            refuse: Some(AppendError::Draining),
            refuse_reads: Some(ReadError::NotOwner { bucket }),
            ..Behaviour::default()
        },
    );
    let port = i32::from(running.address.port());
    for version in 9..=13 {
        let request =
            if version >= 13 { produce_to(id, 0, &["x"]) } else { produce("t", 0, batch(&["x"]), -1) };
        let answer = client.call(version, &request).await;
        let partition = &answer.responses[0].partition_responses[0];
        assert_eq!(partition.error_code, ErrorCode::NotLeaderOrFollower.code());
        let told = (partition.current_leader.leader_id, partition.current_leader.leader_epoch);
        let ports: Vec<i32> = answer.node_endpoints.iter().map(|endpoint| endpoint.port).collect();
        let expected = if version >= 10 { ((7, 1), vec![port]) } else { ((-1, -1), vec![]) };
        assert_eq!((told, ports), expected, "version {version}");
    }
    for version in 15..=18 {
        let answer = client.call(version, &fetch_of(id, &[(0, 0)])).await;
        let partition = &answer.responses[0].partitions[0];
        assert_eq!(partition.error_code, ErrorCode::NotLeaderOrFollower.code());
        let told = (partition.current_leader.leader_id, partition.current_leader.leader_epoch);
        let nodes: Vec<i32> = answer.node_endpoints.iter().map(|endpoint| endpoint.node_id).collect();
        let expected = if version >= 16 { ((7, 1), vec![7]) } else { ((-1, -1), vec![]) };
        assert_eq!((told, nodes), expected, "version {version}");
    }
}
