//! InitProducerId: fresh ids, bumped epochs, and transactional ids (Kafka is not asked for those: they are not supported).
//! DescribeProducers: what partitions know of idempotent producers.
//! Lives on: the test's tokio runtime.
//! Owns: nothing.

use mink_kafka_wire::KafkaString;
use mink_kafka_wire::messages::describe_producers::{DescribeProducersRequest, TopicRequest};
use mink_kafka_wire::messages::init_producer_id::InitProducerIdRequest;
use mink_record::kafka::ProducerStamp;

use super::{Asker, TIMEOUT_MS, fill, produce_request};
use crate::wire::{batch, values};

const BUMPS_FROM: i16 = 3;

fn of() -> InitProducerIdRequest {
    InitProducerIdRequest {
        transactional_id: None,
        transaction_timeout_ms: TIMEOUT_MS,
        ..InitProducerIdRequest::default()
    }
}

/// A Kafka that has just begun has no ids yet.
async fn ids(run: &mut Asker) {
    run.until("there are ids", 4, &of(), |answer| answer.error_code == 0).await;
}

pub(super) async fn init_producer_id(run: &mut Asker) {
    ids(run).await;
    let id = run.ask("an id", of()).await.map_or(-1, |answer| answer.producer_id);
    run.ask("another id", of()).await;
    run.ask("time-out 0", InitProducerIdRequest { transaction_timeout_ms: 0, ..of() }).await;
    run.ask("time-out -1", InitProducerIdRequest { transaction_timeout_ms: -1, ..of() }).await;
    run.ask("an empty transactional id", InitProducerIdRequest { transactional_id: Some("".into()), ..of() })
        .await;
    if run.version >= BUMPS_FROM {
        for (case, producer_id, producer_epoch) in [
            ("bump", id, 0),
            ("bump of an unknown id", id + 900_000, 7),
            ("an id without epoch", id, -1),
            ("an epoch without id", -1, 3),
            ("epoch at its end", id, i16::MAX),
            ("epoch -5", id, -5),
        ] {
            run.ask(case, InitProducerIdRequest { producer_id, producer_epoch, ..of() }).await;
        }
    }
    run.damaged(of()).await;
}

fn described(topics: &[(&KafkaString, &[i32])]) -> DescribeProducersRequest {
    let topic = |(name, partitions): &(&KafkaString, &[i32])| TopicRequest {
        name: (*name).clone(),
        partition_indexes: partitions.to_vec(),
    };
    DescribeProducersRequest { topics: topics.iter().map(topic).collect() }
}

/// Two records of a producer.
async fn produced(run: &mut Asker, topic: &KafkaString, id: i64, epoch: i16, base_sequence: i32) {
    let records = batch(values("of a producer", 0..2), Some(ProducerStamp { id, epoch, base_sequence }));
    let answer = run.quiet(9, &produce_request(topic, 0, records)).await;
    assert_eq!(answer.responses[0].partition_responses[0].error_code, 0, "{answer:?}");
}

pub(super) async fn describe_producers(run: &mut Asker) {
    let a = run.topic("a", 2).await;
    fill(run, &a, 0, 3).await;
    ids(run).await;
    let one = run.quiet(4, &of()).await.producer_id;
    let other = run.quiet(4, &of()).await.producer_id;
    run.ask("a partition without producers", described(&[(&a, &[0])])).await;
    produced(run, &a, one, 0, 0).await;
    run.ask("a producer", described(&[(&a, &[0])])).await;
    produced(run, &a, one, 0, 2).await;
    produced(run, &a, other, 3, 0).await;
    run.ask("two producers", described(&[(&a, &[0, 1])])).await;
    produced(run, &a, one, 1, 0).await;
    run.ask("a higher epoch", described(&[(&a, &[0])])).await;
    run.ask("a partition twice", described(&[(&a, &[1, 1])])).await;
    run.ask("a topic twice", described(&[(&a, &[1]), (&a, &[1])])).await;
    run.ask("unknown partitions", described(&[(&a, &[1, 2, -1])])).await;
    run.ask("unknown topic", described(&[(&run.name("unknown"), &[0])])).await;
    run.ask("bad name", described(&[(&"a/b".into(), &[0, 1])])).await;
    run.ask("no name", described(&[(&KafkaString::default(), &[0])])).await;
    run.ask("no partitions", described(&[(&a, &[])])).await;
    run.ask("no topics", described(&[])).await;
    run.damaged(described(&[(&a, &[1])])).await;
}
