//! Tables with columns as topics of Kafka's clients.

use std::time::Duration;

use mink_kafka_wire::ErrorCode;
use mink_kafka_wire::messages::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use mink_record::kafka::{BatchBuilder, Codec, ProducerStamp, RecordRef};
use mink_testkit::node::{Node, NodeConfig};
use mink_testkit::{client, skip};

use crate::setup::{self, Folder};
use crate::wire::{Wire, batch};

const RUN_WITHIN: Duration = Duration::from_mins(3);
/// First version that names single records.
const PRODUCE: i16 = 8;
/// More than a node of [`setup::node`] lets one batch inflate to.
const GROWN_BYTES: usize = 60 << 20;
/// What such a node may hold in all: its `--memory`, and what a process has beside that.
const RESIDENT_KIB_MAX: u64 = (512 + 64) << 10;
const TOPIC: &str = "typed.orders";

async fn available() -> bool {
    skip::available("clients-python", client::install("flight").await).is_some()
}

/// Runs a case of `tests/clients/flight.py`.
async fn case(name: &str, node: &Node, more: &[&str]) {
    let (flight, kafka) = (node.flight(), node.kafka());
    let args = [&[name, "--flight", flight, "--kafka", kafka][..], more].concat();
    let summary = client::run("flight", &args, RUN_WITHIN).await.unwrap();
    println!("{summary}");
    assert_eq!(summary["case"], name, "{summary}");
}

/// I2: kcat and confluent-kafka write JSON that pyarrow reads as rows, and read as JSON what pyarrow has written; a record that does not fit is
/// refused by its field's name, older schemas are read as the newest, and a group reads all once.
#[tokio::test]
async fn json_and_arrow_are_the_same_rows_to_every_client() {
    if !available().await {
        return;
    }
    let folder = Folder::new();
    // Some of it is read from objects, and of several schemas.
    let mut node = setup::node(&folder).flag("--wal-flush-age", "300ms").start().await.unwrap();
    case("topics", &node, &[]).await;
    node.stop(RUN_WITHIN).await.unwrap();
}

/// The places of the records that are refused in one batch, and why.
async fn refused(wire: &mut Wire, batch: bytes::Bytes) -> Vec<(i32, String)> {
    let request = ProduceRequest {
        acks: -1,
        timeout_ms: 30_000,
        topic_data: vec![TopicProduceData {
            name: TOPIC.into(),
            partition_data: vec![PartitionProduceData { index: 0, records: Some(batch.into()) }],
            ..TopicProduceData::default()
        }],
        ..ProduceRequest::default()
    };
    let mut answer = wire.call(PRODUCE, &request).await.unwrap();
    let partition = answer.responses.remove(0).partition_responses.remove(0);
    assert_eq!(partition.error_code, ErrorCode::InvalidRecord.code(), "{partition:?}");
    let told = partition.record_errors.into_iter().map(|error| {
        let why = error.batch_index_error_message.expect("words");
        (error.batch_index, why.as_str().to_owned())
    });
    told.collect()
}

/// I19, I20: a few KiB of records that inflate to more than may be held are refused, and so are rows that take more than their text does; side by side they
/// cost no more than one.
#[tokio::test]
async fn records_that_grow_beyond_all_bounds_are_too_large_and_harm_nobody() {
    if !available().await {
        return;
    }
    let folder = Folder::new();
    let mut node = setup::node(&folder).start().await.unwrap();
    case("topics_table", &node, &["--database", "typed"]).await;
    let blanks = format!(r#"{{"id":1{}}}"#, " ".repeat(GROWN_BYTES));
    let nulls = format!(r#"{{"id":1,"tags":[{}null]}}"#, "null,".repeat(GROWN_BYTES / 5));
    let mut senders = Vec::new();
    for codec in [Codec::Zstd, Codec::Gzip, Codec::Lz4] {
        for value in [&blanks, &nulls] {
            let mut builder = BatchBuilder::new();
            let record = RecordRef { value: Some(value.as_bytes()), ..RecordRef::default() };
            builder.push(record).unwrap();
            let bomb = builder.build(codec, None).unwrap();
            assert!(bomb.len() < 1 << 20, "{} bytes with {codec}", bomb.len());
            for _ in 0..4 {
                let (kafka, bomb) = (node.kafka().to_owned(), bomb.clone());
                senders.push(tokio::spawn(async move {
                    let mut wire = Wire::connect(&kafka).await;
                    for _ in 0..3 {
                        let answer = wire.try_produce(TOPIC, 0, &bomb).await.unwrap();
                        assert_eq!(answer.code, ErrorCode::MessageTooLarge.code());
                    }
                }));
            }
        }
    }
    for sender in senders {
        sender.await.unwrap();
    }
    let mut wire = Wire::connect(node.kafka()).await;
    assert_eq!(wire.produce(TOPIC, 0, &batch([r#"{"id":1}"#], None)).await, 0, "nothing was stored");
    let (_, most) = setup::resident_kib(node.process().id());
    println!("at most {} MiB were resident", most >> 10);
    assert!(most < RESIDENT_KIB_MAX, "{} MiB were resident", most >> 10);
    node.stop(RUN_WITHIN).await.unwrap();
}

/// I6: a batch of JSON that is sent again is told as the same, before and after a kill -9; a refused one leaves no hole in what is stored.
#[tokio::test]
async fn an_idempotent_producer_of_json_leaves_no_duplicate_over_a_crash() {
    if !available().await {
        return;
    }
    let folder = Folder::new();
    let config: NodeConfig = setup::node(&folder);
    let mut node = config.start_on_fixed_ports().await.unwrap();
    case("topics_table", &node, &["--database", "typed"]).await;
    let mut wire = Wire::connect(node.kafka()).await;
    let (id, epoch) = wire.init_producer().await;
    let rows = |from: i32| {
        let rows = (from..from + 3).map(|id| format!(r#"{{"id":{id},"amount":1.5}}"#));
        batch(rows, Some(ProducerStamp { id, epoch, base_sequence: from }))
    };
    for (turn, from) in (0..5).map(|batch| batch * 3).enumerate() {
        let offset = i64::from(from);
        assert_eq!(wire.produce(TOPIC, 0, &rows(from)).await, offset, "turn {turn}");
        assert_eq!(wire.produce(TOPIC, 0, &rows(from)).await, offset, "turn {turn}, again");
    }
    let stamp = ProducerStamp { id, epoch, base_sequence: 15 };
    let bad = batch([r#"{"id":15}"#, r#"{"id":16,"amount":1.505}"#], Some(stamp));
    let told = refused(&mut wire, bad).await;
    assert!(told.len() == 1 && told[0].0 == 1 && told[0].1.starts_with("amount: found `1.505`"), "{told:?}");
    node.crash_and_restart().await.unwrap();
    let mut wire = Wire::connect(node.kafka()).await;
    assert_eq!(wire.produce(TOPIC, 0, &rows(12)).await, 12, "the last before the crash");
    assert_eq!(wire.produce(TOPIC, 0, &rows(15)).await, 15, "the sequence of what was refused is free");
    let found = wire.read_all(TOPIC, 0).await;
    let wanted: Vec<String> = (0..18)
        .map(|id| format!(r#"{{"id":{id},"customer":null,"amount":1.50,"at":null,"tags":null}}"#))
        .collect();
    assert_eq!(found, wanted);
    node.stop(RUN_WITHIN).await.unwrap();
}
