//! T-4, P-10: a topic that is deleted leaves nothing behind that stops a start or shows in its successor of the same name; every ack is
//! of the incarnation that keeps the record.

use std::time::Duration;

use mink_kafka_wire::ErrorCode;
use mink_testkit::node::Node;

use crate::setup::{self, Folder, until};
use crate::wire::{SOON, Wire, batch, values};

const BATCHES: usize = 20;
const TOPIC: &str = "t";
/// Grace, and the turns of whoever deletes.
const GONE_WITHIN: Duration = Duration::from_secs(20);

#[tokio::test]
async fn t_4_the_data_of_a_topic_that_was_deleted_before_a_crash_is_cleared_after_the_start() {
    let folder = Folder::new();
    let store = folder.join("data").join("objects");
    let config = setup::node(&folder).flag("--wal-flush-age", "300ms").flag("--deletion-grace", "1s");
    let mut node = config.start().await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    wire.create_topic(TOPIC, 2).await;
    for partition in 0..2 {
        wire.produce(TOPIC, partition, &batch(values("old", 0..100), None)).await;
    }
    setup::flushed(node.http(), SOON).await;
    // Some of it in stream objects, some in the WAL only.
    wire.produce(TOPIC, 0, &batch(values("tail", 0..100), None)).await;
    let stream = store.join("mink").join("stream");
    assert!(!setup::objects(&stream).is_empty());
    assert_eq!(wire.delete_topic(TOPIC).await, 0);
    node.crash_and_restart().await.unwrap();

    let mut wire = Wire::connect(node.kafka()).await;
    assert_eq!(wire.fetch(TOPIC, 0, 0).await.unwrap().code, ErrorCode::UnknownTopicOrPartition.code());
    wire.create_topic(TOPIC, 2).await;
    assert_eq!(wire.read_all(TOPIC, 0).await, [""; 0]);
    until("no stream object is left", GONE_WITHIN, || async {
        setup::objects(&stream).is_empty().then_some(())
    })
    .await;
    assert_eq!(wire.produce(TOPIC, 1, &batch(["new"], None)).await, 0);
    assert_eq!(wire.read_all(TOPIC, 1).await, ["new"]);
    node.stop(SOON).await.unwrap();
}

/// One batch and what became of it.
#[derive(Debug)]
struct Told {
    value: String,
    /// Its offset, if it was acked.
    offset: Option<i64>,
}

/// Sends batches without waiting for their acks and deletes the topic and makes it anew in the middle, if it is told to. A batch whose
/// topic goes before it is durable is refused, and the connection goes on.
async fn send_round(node: &Node, admin: &mut Wire, name: &str, deletes: bool) -> Vec<Told> {
    let mut wire = Wire::connect(node.kafka()).await;
    let mut sent = Vec::new();
    for number in 0..BATCHES {
        let value = format!("{name} {number}");
        let records = batch([&value], None);
        let request = wire.send_produce(TOPIC, &[(0, records)]).await.unwrap();
        sent.push((value, request));
        if deletes && number == BATCHES / 2 {
            assert_eq!(admin.delete_topic(TOPIC).await, 0);
            admin.create_topic(TOPIC, 1).await;
        }
    }
    let mut told = Vec::new();
    for (value, request) in sent {
        let answers = wire.receive_produce(request, SOON).await.unwrap();
        let offset = (answers[0].code == 0).then_some(answers[0].offset);
        let gone = [ErrorCode::UnknownTopicOrPartition, ErrorCode::NotLeaderOrFollower];
        assert!(
            offset.is_some() || deletes && gone.iter().any(|code| code.code() == answers[0].code),
            "{answers:?}"
        );
        told.push(Told { value, offset });
    }
    told
}

#[tokio::test]
async fn p_10_an_ack_is_of_the_topic_that_keeps_the_record() {
    let folder = Folder::new();
    let config = setup::node(&folder).flag("--kafka-auto-create", "false");
    let mut node = config.start().await.unwrap();
    let rounds = setup::rounds(if setup::is_long() { 50 } else { 16 });
    let mut admin = Wire::connect(node.kafka()).await;
    let (mut acked, mut refused) = (0, 0);
    for round in 0..rounds {
        let (name, deletes) = (format!("round {round}"), round % 2 == 1);
        admin.create_topic(TOPIC, 1).await;
        // Opens it, so that what follows meets a topic that serves.
        admin.fetch_open(TOPIC, 0, 0).await;
        let told = send_round(&node, &mut admin, &name, deletes).await;
        let whole = admin.read_all(TOPIC, 0).await;
        let kept: Vec<_> =
            told.iter().filter_map(|told| told.offset.map(|offset| (offset, &told.value))).collect();
        let read = |offset: i64| whole.get(usize::try_from(offset).unwrap());
        if deletes {
            // Offsets begin at 0 again with the second topic; what the first one acked went with it. Which topic acked a record shows
            // where it is: a record of the second one is there, and one of the first is not.
            let second = kept.iter().rposition(|(offset, value)| *offset == 0 && read(0) == Some(value));
            let (first, second) = kept.split_at(second.unwrap_or(kept.len()));
            assert!(
                second.iter().all(|(offset, value)| read(*offset) == Some(value)),
                "{second:?}: {whole:?}"
            );
            assert!(first.iter().all(|(_, value)| !whole.contains(value)), "{first:?}: {whole:?}");
            assert!(whole.iter().all(|value| told.iter().any(|told| told.value == *value)), "{whole:?}");
        } else {
            assert_eq!(kept.len(), BATCHES, "{told:?}");
            assert!(kept.iter().all(|(offset, value)| read(*offset) == Some(value)), "{kept:?}: {whole:?}");
        }
        acked += kept.len();
        refused += told.len() - kept.len();
        assert_eq!(admin.delete_topic(TOPIC).await, 0);
    }
    println!("{rounds} rounds: {acked} acked, {refused} refused");
    node.stop(SOON).await.unwrap();
}
