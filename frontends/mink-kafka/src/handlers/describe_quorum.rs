//! DescribeQuorum: the command log, under the name by which Kafka's tools know a cluster's metadata.
//!
//! Lives on: anywhere (pure).
//! Invariants: what is told of the log's end is what this node has applied, never more.
use super::Call;
use crate::node::broker_id;
use mink_api::Broker;
use mink_kafka_wire::messages::describe_quorum::{
    DescribeQuorumRequest, DescribeQuorumResponse, Listener, Node, PartitionDataResponse, ReplicaState,
    TopicData, TopicDataResponse,
};
use mink_kafka_wire::{ErrorCode, KafkaString};

const METADATA_TOPIC: &str = "__cluster_metadata";
/// First version that names the voters' addresses, and has words for errors.
const NODES_FROM: i16 = 2;
/// Where a broker has got to that is not this one.
const UNKNOWN: i64 = -1;

pub(super) fn describe_quorum(call: &Call<'_>, request: DescribeQuorumRequest) -> DescribeQuorumResponse {
    let is_metadata = matches!(request.topics.as_slice(), [TopicData { topic_name, partitions }]
        if *topic_name == METADATA_TOPIC && partitions.iter().map(|one| one.partition_index).eq([0]));
    if !is_metadata {
        return unknown(call.version, request.topics);
    }
    let end = i64::try_from(call.node.admin.state().witness().index.next().0).unwrap_or(i64::MAX);
    let own = call.node.broker_id();
    let brokers = call.node.admin.brokers();
    let member = |broker: &Broker| {
        let replica_id = broker_id(broker.node);
        let log_end_offset = if replica_id == own { end } else { UNKNOWN };
        ReplicaState { replica_id, log_end_offset, ..ReplicaState::default() }
    };
    // The database keeps the log, and every node reads and writes it: the one that Metadata names as controller stands for it.
    let (leader, others) = match brokers.split_first() {
        Some((leader, others)) => (Some(leader), others),
        None => (None, &[][..]),
    };
    let partition = PartitionDataResponse {
        error_message: None,
        leader_id: leader.map_or(-1, |leader| broker_id(leader.node)),
        high_watermark: end,
        current_voters: leader.iter().map(|leader| member(leader)).collect(),
        observers: others.iter().map(member).collect(),
        ..PartitionDataResponse::default()
    };
    DescribeQuorumResponse {
        error_message: None,
        topics: vec![TopicDataResponse { topic_name: METADATA_TOPIC.into(), partitions: vec![partition] }],
        nodes: leader.iter().filter(|_| call.version >= NODES_FROM).map(|leader| node(leader)).collect(),
        ..DescribeQuorumResponse::default()
    }
}

fn node(broker: &Broker) -> Node {
    let listener = Listener {
        name: "PLAINTEXT".into(),
        host: KafkaString::from(broker.host.as_str()),
        port: broker.port,
    };
    Node { node_id: broker_id(broker.node), listeners: vec![listener] }
}

/// There is no other quorum.
fn unknown(version: i16, topics: Vec<TopicData>) -> DescribeQuorumResponse {
    let topics = topics.into_iter().map(|TopicData { topic_name, partitions }| {
        let partitions = partitions.iter().map(|asked| PartitionDataResponse {
            partition_index: asked.partition_index,
            error_code: ErrorCode::UnknownTopicOrPartition.code(),
            error_message: (version >= NODES_FROM)
                .then(|| format!("ask for partition 0 of {METADATA_TOPIC} alone").as_str().into()),
            ..PartitionDataResponse::default()
        });
        TopicDataResponse { partitions: partitions.collect(), topic_name }
    });
    DescribeQuorumResponse {
        error_message: None,
        topics: topics.collect(),
        ..DescribeQuorumResponse::default()
    }
}
