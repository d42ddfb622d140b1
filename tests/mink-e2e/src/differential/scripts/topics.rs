//! CreateTopics, DeleteTopics, CreatePartitions and ElectLeaders.
//! Lives on: the test's tokio runtime.
//! Owns: nothing.

use mink_kafka_wire::messages::create_partitions::{
    CreatePartitionsAssignment, CreatePartitionsRequest, CreatePartitionsTopic,
};
use mink_kafka_wire::messages::create_topics::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig, CreateTopicsRequest,
};
use mink_kafka_wire::messages::delete_topics::{DeleteTopicState, DeleteTopicsRequest};
use mink_kafka_wire::messages::elect_leaders::{ElectLeadersRequest, TopicPartitions};
use mink_kafka_wire::messages::metadata::{MetadataRequest, MetadataRequestTopic};
use mink_kafka_wire::{ErrorCode, KafkaString, Uuid};

use super::{Asker, NOBODY, TIMEOUT_MS};

const IDS_FROM: i16 = 6;
const DEFAULTS_FROM: i16 = 4;

fn topic(name: &KafkaString, num_partitions: i32) -> CreatableTopic {
    CreatableTopic { name: name.clone(), num_partitions, replication_factor: 1, ..CreatableTopic::default() }
}

fn create(topics: Vec<CreatableTopic>) -> CreateTopicsRequest {
    CreateTopicsRequest { topics, timeout_ms: TIMEOUT_MS, validate_only: false }
}

fn with(name: &KafkaString, config: &str, value: Option<&str>) -> CreatableTopic {
    let config = CreatableTopicConfig { name: config.into(), value: value.map(KafkaString::from) };
    CreatableTopic { configs: vec![config], ..topic(name, 1) }
}

fn assigned(name: &KafkaString, assignments: &[(i32, Vec<i32>)]) -> CreatableTopic {
    let assignment = |(partition_index, broker_ids): &(i32, Vec<i32>)| CreatableReplicaAssignment {
        partition_index: *partition_index,
        broker_ids: broker_ids.clone(),
    };
    let assignments = assignments.iter().map(assignment).collect();
    CreatableTopic { num_partitions: -1, replication_factor: -1, assignments, ..topic(name, -1) }
}

/// Of the configurations in an answer only those that were asked for: the others, and what they are, DescribeConfigs compares.
async fn ask(run: &mut Asker, case: &str, request: CreateTopicsRequest) {
    let asked: Vec<_> =
        request.topics.iter().flat_map(|topic| &topic.configs).map(|config| config.name.clone()).collect();
    let mut answer = run.try_ask(run.version, &request).await;
    let topics = answer.as_mut().map(|answer| &mut answer.topics);
    for configs in topics.into_iter().flatten().filter_map(|topic| topic.configs.as_mut()) {
        configs.retain(|config| asked.contains(&config.name));
    }
    run.note(case, answer.as_ref(), false);
}

#[expect(clippy::many_single_char_names, reason = "topics are named by letters")]
pub(super) async fn create_topics(run: &mut Asker) {
    let a = run.name("a");
    ask(run, "a topic", create(vec![topic(&a, 2)])).await;
    ask(run, "the topic again", create(vec![topic(&a, 2)])).await;
    let [b, c, d, e, f, h] = ["b", "c", "d", "e", "f", "h"].map(|name| run.name(name));
    ask(run, "two topics", create(vec![topic(&b, 1), topic(&c, 3)])).await;
    let twice = vec![topic(&d, 1), topic(&d, 2), topic(&e, 1)];
    ask(run, "a topic twice", create(twice)).await;
    let validated = CreateTopicsRequest { validate_only: true, ..create(vec![topic(&f, 2)]) };
    ask(run, "only validated", validated.clone()).await;
    ask(run, "only validated again", validated).await;
    ask(run, "no topics", create(vec![])).await;
    for (case, name) in
        [("a/b", "a/b"), ("no name", ""), ("a dot", "."), ("two dots", ".."), ("a space", "a b")]
    {
        ask(run, &format!("bad name: {case}"), create(vec![topic(&name.into(), 1)])).await;
    }
    ask(
        run,
        "249 letters",
        CreateTopicsRequest { validate_only: true, ..create(vec![topic(&"x".repeat(249).into(), 1)]) },
    )
    .await;
    ask(run, "250 letters", create(vec![topic(&"x".repeat(250).into(), 1)])).await;
    let g = run.name("g");
    for partitions in [0, -1, -2] {
        let request = CreateTopicsRequest { validate_only: true, ..create(vec![topic(&g, partitions)]) };
        ask(run, &format!("{partitions} partitions"), request).await;
    }
    for factor in [0, -1, -2] {
        let topics = vec![CreatableTopic { replication_factor: factor, ..topic(&g, 1) }];
        let request = CreateTopicsRequest { validate_only: true, ..create(topics) };
        ask(run, &format!("factor {factor}"), request).await;
    }
    if run.version >= DEFAULTS_FROM {
        let topics = vec![CreatableTopic { replication_factor: -1, ..topic(&h, -1) }];
        ask(run, "defaults", create(topics)).await;
    }
    let i = run.name("i");
    let dotted = run.name("x.y");
    ask(run, "a name with a dot", create(vec![topic(&dotted, 1)])).await;
    let collides = run.name("x_y");
    ask(run, "a name that collides", create(vec![topic(&collides, 1)])).await;
    assignments(run, &i).await;
    configs(run, &i).await;
    run.damaged(create(vec![])).await;
}

async fn assignments(run: &mut Asker, i: &KafkaString) {
    let node = run.names.node;
    let cases = [
        ("assigned", assigned(i, &[(0, vec![node]), (1, vec![node])])),
        ("assigned with a hole", assigned(i, &[(0, vec![node]), (2, vec![node])])),
        ("assigned twice", assigned(i, &[(0, vec![node]), (0, vec![node])])),
        ("assigned to nobody", assigned(i, &[(0, vec![])])),
        ("assigned to one twice", assigned(i, &[(0, vec![node, node])])),
        ("assigned and counted", CreatableTopic { num_partitions: 1, ..assigned(i, &[(0, vec![node])]) }),
        ("assigned from 1", assigned(i, &[(1, vec![node])])),
        ("assigned to a stranger", assigned(i, &[(0, vec![node + 1])])),
    ];
    for (case, topic) in cases {
        ask(run, case, CreateTopicsRequest { validate_only: true, ..create(vec![topic]) }).await;
    }
}

async fn configs(run: &mut Asker, i: &KafkaString) {
    let cases = [
        ("retention.ms", Some("12345")),
        ("retention.ms", Some("-2")),
        ("retention.ms", Some("x")),
        ("retention.ms", Some("")),
        ("retention.ms", None),
        ("retention.bytes", Some("99999")),
        ("cleanup.policy", Some("delete")),
        ("cleanup.policy", Some("nothing")),
        ("compression.type", Some("lz4")),
        ("compression.type", Some("rar")),
        ("max.message.bytes", Some("0")),
        ("max.message.bytes", Some("-1")),
        ("segment.bytes", Some("1048576")),
        ("min.insync.replicas", Some("1")),
        ("message.timestamp.type", Some("CreateTime")),
        ("message.timestamp.type", Some("Never")),
        ("no.such.config", Some("1")),
        ("", Some("1")),
    ];
    for (name, value) in cases {
        let request = CreateTopicsRequest { validate_only: true, ..create(vec![with(i, name, value)]) };
        ask(run, &format!("{name} = {}", value.unwrap_or("null")), request).await;
    }
    let mut twice = with(i, "retention.ms", Some("1"));
    twice.configs.push(CreatableTopicConfig { name: "retention.ms".into(), value: Some("2".into()) });
    let request = CreateTopicsRequest { validate_only: true, ..create(vec![twice]) };
    ask(run, "a config twice", request).await;
}

/// Waits until a topic is unknown.
async fn gone(run: &mut Asker, name: &KafkaString) {
    let topics = vec![MetadataRequestTopic { name: Some(name.clone()), ..MetadataRequestTopic::default() }];
    let request = MetadataRequest {
        topics: Some(topics),
        allow_auto_topic_creation: false,
        ..MetadataRequest::default()
    };
    let unknown = ErrorCode::UnknownTopicOrPartition.code();
    run.until(&format!("{name:?} is gone"), 9, &request, |answer| answer.topics[0].error_code == unknown)
        .await;
}

pub(super) async fn delete_topics(run: &mut Asker) {
    let version = run.version;
    let of = |names: &[&KafkaString]| {
        let state = |name: &&KafkaString| DeleteTopicState {
            name: Some((*name).clone()),
            ..DeleteTopicState::default()
        };
        DeleteTopicsRequest {
            topics: if version >= IDS_FROM { names.iter().map(state).collect() } else { vec![] },
            topic_names: if version < IDS_FROM {
                names.iter().map(|name| (*name).clone()).collect()
            } else {
                vec![]
            },
            timeout_ms: TIMEOUT_MS,
        }
    };
    let [a, b, c] = [run.topic("a", 1).await, run.topic("b", 1).await, run.topic("c", 1).await];
    run.ask("a topic", of(&[&a])).await;
    gone(run, &a).await;
    run.ask("a topic again", of(&[&a])).await;
    run.ask("one good, one unknown", of(&[&b, &run.name("unknown")])).await;
    run.ask("a topic twice", of(&[&c, &c])).await;
    run.ask("bad name", of(&[&"a/b".into()])).await;
    run.ask("no name", of(&[&KafkaString::default()])).await;
    run.ask("no topics", of(&[])).await;
    if version >= IDS_FROM {
        let d = run.topic("d", 1).await;
        let id = run.id_of(&d).await;
        let by = |states: Vec<(Option<KafkaString>, Uuid)>| DeleteTopicsRequest {
            topics: states.into_iter().map(|(name, topic_id)| DeleteTopicState { name, topic_id }).collect(),
            timeout_ms: TIMEOUT_MS,
            ..DeleteTopicsRequest::default()
        };
        run.ask("unknown id", by(vec![(None, NOBODY)])).await;
        run.ask("unknown id twice", by(vec![(None, NOBODY), (None, NOBODY)])).await;
        run.ask("neither name nor id", by(vec![(None, Uuid::ZERO)])).await;
        run.ask("name and id", by(vec![(Some(d.clone()), id)])).await;
        run.ask("name and id of one", by(vec![(Some(d.clone()), Uuid::ZERO), (None, id)])).await;
        run.ask("by id", by(vec![(None, id)])).await;
    }
    run.damaged(of(&[])).await;
}

pub(super) async fn create_partitions(run: &mut Asker) {
    let node = run.names.node;
    let a = run.topic("a", 2).await;
    let topic = |name: &KafkaString, count, brokers: Option<&[&[i32]]>| CreatePartitionsTopic {
        name: name.clone(),
        count,
        assignments: brokers.map(|brokers| {
            brokers.iter().map(|ids| CreatePartitionsAssignment { broker_ids: ids.to_vec() }).collect()
        }),
    };
    let of = |topics| CreatePartitionsRequest { topics, timeout_ms: TIMEOUT_MS, validate_only: false };
    for count in [2, 1, 0, -1] {
        run.ask(&format!("{count} partitions"), of(vec![topic(&a, count, None)])).await;
    }
    let validated = |topics| CreatePartitionsRequest { validate_only: true, ..of(topics) };
    run.ask("only validated", validated(vec![topic(&a, 5, None)])).await;
    run.ask("unknown topic", of(vec![topic(&run.name("unknown"), 3, None)])).await;
    run.ask("bad name", of(vec![topic(&"a/b".into(), 3, None)])).await;
    run.ask("no topics", of(vec![])).await;
    run.ask("a topic twice", of(vec![topic(&a, 3, None), topic(&a, 4, None)])).await;
    run.ask("20 million", validated(vec![topic(&a, 20_000_000, None)])).await;
    let assigned: [(&str, i32, &[&[i32]]); 6] = [
        ("assigned", 4, &[&[node], &[node]]),
        ("assigned: too few", 4, &[&[node]]),
        ("assigned: too many", 3, &[&[node], &[node]]),
        ("assigned to nobody", 3, &[&[]]),
        ("assigned to a stranger", 3, &[&[node + 1]]),
        ("assigned: an empty list", 3, &[]),
    ];
    for (case, count, brokers) in assigned {
        run.ask(case, validated(vec![topic(&a, count, Some(brokers))])).await;
    }
    run.ask("3 partitions", of(vec![topic(&a, 3, None)])).await;
    run.served(&a, 3).await;
    run.ask("3 partitions again", of(vec![topic(&a, 3, None)])).await;
    run.damaged(of(vec![])).await;
}

pub(super) async fn elect_leaders(run: &mut Asker) {
    let a = run.topic("a", 2).await;
    let topic = |topic: &KafkaString, partitions: &[i32]| TopicPartitions {
        topic: topic.clone(),
        partitions: partitions.to_vec(),
    };
    let of = |topics| ElectLeadersRequest {
        topic_partitions: Some(topics),
        timeout_ms: TIMEOUT_MS,
        ..ElectLeadersRequest::default()
    };
    run.ask("preferred", of(vec![topic(&a, &[0, 1])])).await;
    run.ask("no such partition", of(vec![topic(&a, &[0, 9])])).await;
    run.ask("unknown topic", of(vec![topic(&run.name("unknown"), &[0])])).await;
    run.ask("no topics", of(vec![])).await;
    if run.version >= 1 {
        for election_type in [1, 5] {
            let request = ElectLeadersRequest { election_type, ..of(vec![topic(&a, &[0])]) };
            run.ask(&format!("type {election_type}"), request).await;
        }
    }
    run.damaged(of(vec![])).await;
}
