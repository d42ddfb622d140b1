//! K-5, K-7, K-9, K-10: an offset is given once, whoever asks at the same time; a repeat of any of a producer's last five batches gets
//! its first answer; a log that never held a record begins with a producer's first batch.

use std::collections::BTreeSet;

use mink_kafka_wire::ErrorCode;
use mink_record::kafka::ProducerStamp;
use mink_testkit::node::Node;

use crate::setup::{self, Folder};
use crate::wire::{SOON, Wire, batch, values};

const TOPIC: &str = "t";
const CONNECTIONS: usize = 4;
const BATCHES: usize = 250;

#[tokio::test]
async fn k_5_an_offset_is_given_once_over_all_connections() {
    let folder = Folder::new();
    let mut node = setup::node(&folder).start().await.unwrap();
    let mut admin = Wire::connect(node.kafka()).await;
    admin.create_topic(TOPIC, 1).await;
    admin.fetch_open(TOPIC, 0, 0).await;
    let mut tasks = tokio::task::JoinSet::new();
    for connection in 0..CONNECTIONS {
        let kafka = node.kafka().to_owned();
        tasks.spawn(async move {
            let mut wire = Wire::connect(&kafka).await;
            let mut given = Vec::new();
            for number in 0..BATCHES {
                let value = format!("{connection} {number}");
                given.push((wire.produce(TOPIC, 0, &batch([&value], None)).await, value));
            }
            given
        });
    }
    let mut all: Vec<_> = tasks.join_all().await.into_iter().flatten().collect();
    all.sort();
    let offsets: BTreeSet<i64> = all.iter().map(|(offset, _)| *offset).collect();
    let end = i64::try_from(CONNECTIONS * BATCHES).unwrap();
    assert_eq!(offsets, (0..end).collect());
    let values: Vec<_> = all.into_iter().map(|(_, value)| value).collect();
    assert_eq!(admin.read_all(TOPIC, 0).await, values, "each offset holds what its producer was told");
    node.stop(SOON).await.unwrap();
}

/// Sends the batch with this sequence number; the values tell it apart.
async fn send(wire: &mut Wire, (id, epoch): (i64, i16), first: usize, len: usize) -> (i16, i64) {
    let stamp = ProducerStamp { id, epoch, base_sequence: i32::try_from(first).unwrap() };
    let records = values("r", first..first + len);
    let answer = wire.try_produce(TOPIC, 0, &batch(records, Some(stamp))).await.unwrap();
    (answer.code, answer.offset)
}

/// A node with an empty topic, a connection to it, and a producer's identity.
async fn with_topic(folder: &Folder) -> (Node, Wire, (i64, i16)) {
    let node = setup::node(folder).start().await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    wire.create_topic(TOPIC, 1).await;
    wire.fetch_open(TOPIC, 0, 0).await;
    let producer = wire.init_producer().await;
    (node, wire, producer)
}

#[tokio::test]
async fn k_9_k_7_a_repeat_of_the_last_five_gets_its_first_answer_over_a_restart_too() {
    let folder = Folder::new();
    let (mut node, mut wire, producer) = with_topic(&folder).await;
    for number in 0..5 {
        assert_eq!(send(&mut wire, producer, number, 1).await, (0, i64::try_from(number).unwrap()));
    }
    for restarted in [false, true] {
        if restarted {
            node.crash_and_restart().await.unwrap();
            wire = Wire::connect(node.kafka()).await;
            wire.fetch_open(TOPIC, 0, 0).await;
        }
        for number in [3, 0, 4, 2, 1, 0] {
            assert_eq!(send(&mut wire, producer, number, 1).await, (0, i64::try_from(number).unwrap()));
        }
        assert_eq!(wire.read_all(TOPIC, 0).await, values("r", 0..5), "stored once");
    }
    node.stop(SOON).await.unwrap();
}

#[tokio::test]
async fn p_27_a_batch_whose_answer_was_lost_is_told_its_offset_while_known_and_refused_for_good_after() {
    let folder = Folder::new();
    let (mut node, mut wire, producer) = with_topic(&folder).await;
    for number in 0..5 {
        assert_eq!(send(&mut wire, producer, number, 1).await, (0, i64::try_from(number).unwrap()));
    }
    // Five in flight; the first of their answers never reaches the client.
    let one = |number: usize| {
        let stamp = ProducerStamp {
            id: producer.0,
            epoch: producer.1,
            base_sequence: i32::try_from(number).unwrap(),
        };
        batch(values("r", number..number + 1), Some(stamp))
    };
    let mut sent = Vec::new();
    for number in 5..10 {
        sent.push(wire.send_produce(TOPIC, &[(0, one(number))]).await.unwrap());
    }
    let mut answers = Vec::new();
    for sent in sent {
        answers.push(wire.receive_produce(sent, SOON).await.unwrap()[0]);
    }
    assert!(answers.iter().all(|answer| answer.code == 0), "{answers:?}");
    let mut again = Wire::connect(node.kafka()).await;
    assert_eq!(send(&mut again, producer, 5, 1).await, (0, 5), "known: the offset that it has");
    // One more is acked: now it is older than what is remembered.
    assert_eq!(send(&mut again, producer, 10, 1).await, (0, 10));
    let (code, _) = send(&mut again, producer, 5, 1).await;
    let code = ErrorCode::from_code(code).expect("a code of Kafka's");
    assert!(code != ErrorCode::None && !code.retriable(), "{code:?}: a client would try for ever");
    assert_eq!(send(&mut again, producer, 11, 1).await, (0, 11), "the others go on");
    assert_eq!(again.read_all(TOPIC, 0).await, values("r", 0..12), "each stored once");
    node.stop(SOON).await.unwrap();
}

#[tokio::test]
async fn k_10_a_log_that_never_held_a_record_begins_with_a_first_batch() {
    let folder = Folder::new();
    let (mut node, mut wire, producer) = with_topic(&folder).await;
    assert_eq!(send(&mut wire, producer, 17, 3).await.0, ErrorCode::OutOfOrderSequenceNumber.code());
    assert_eq!(wire.read_all(TOPIC, 0).await, [""; 0]);
    assert_eq!(send(&mut wire, producer, 0, 17).await, (0, 0));
    assert_eq!(send(&mut wire, producer, 17, 3).await, (0, 17));
    assert_eq!(wire.read_all(TOPIC, 0).await, values("r", 0..20));
    node.stop(SOON).await.unwrap();
}
