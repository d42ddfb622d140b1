//! Produce: batches good and bad, where they may go, and the sequences of idempotent producers.
//! Lives on: the test's tokio runtime.
//! Owns: nothing.

use bytes::Bytes;
use mink_kafka_wire::messages::init_producer_id::InitProducerIdRequest;
use mink_kafka_wire::messages::produce::{PartitionProduceData, ProduceRequest, TopicProduceData};
use mink_kafka_wire::{KafkaString, Records, Uuid};
use mink_record::kafka::{BatchBuilder, Codec, ProducerStamp, RecordRef};

use super::{Asker, NOBODY, TIMEOUT_MS};
use crate::wire::{batch, values};

/// Of a batch: where these fields lie.
const BASE_OFFSET: usize = 7;
const MAGIC: usize = 16;
const CHECKSUM: std::ops::Range<usize> = 17..21;
const ATTRIBUTES: usize = 22;
const LAST_OFFSET_DELTA: usize = 26;
const RECORD_COUNT: usize = 60;
const TIMESTAMP: i64 = 1_700_000_000_000;
const RECORDS_FROM: i16 = 3;
const IDS_FROM: i16 = 13;
const TOO_MANY_BYTES: usize = 2000;

const CASES_MAX: i32 = 24;

type Parts = Vec<(i32, Option<Bytes>)>;

struct Target {
    name: KafkaString,
    id: Uuid,
}

impl Target {
    fn topic(&self, parts: Parts) -> TopicProduceData {
        let part = |(index, records): (i32, Option<Bytes>)| PartitionProduceData {
            index,
            records: records.map(Records::from),
        };
        TopicProduceData {
            name: self.name.clone(),
            topic_id: self.id,
            partition_data: parts.into_iter().map(part).collect(),
        }
    }

    fn request(&self, parts: Parts) -> ProduceRequest {
        request(vec![self.topic(parts)])
    }
}

fn request(topic_data: Vec<TopicProduceData>) -> ProduceRequest {
    ProduceRequest { acks: -1, timeout_ms: TIMEOUT_MS, topic_data, ..ProduceRequest::default() }
}

fn two() -> Bytes {
    batch(["one", "two"], None)
}

fn good(index: i32) -> Parts {
    vec![(index, Some(two()))]
}

async fn target(run: &mut Asker, name: &str, partitions: i32, configs: &[(&str, &str)]) -> Target {
    let mut all = vec![("retention.ms", "-1")];
    all.extend(configs);
    let name = run.topic_with(name, partitions, &all).await;
    let id = run.id_of(&name).await;
    Target { name, id }
}

pub(super) async fn produce(run: &mut Asker) {
    let a = target(run, "a", 2, &[]).await;
    run.ask("two records", a.request(good(0))).await;
    run.ask("two more", a.request(good(0))).await;
    run.ask("acks 1", ProduceRequest { acks: 1, ..a.request(good(1)) }).await;
    run.send(run.version, &ProduceRequest { acks: 0, ..a.request(good(1)) }).await;
    run.ask("after acks 0", a.request(good(1))).await;
    run.ask("acks 2", ProduceRequest { acks: 2, ..a.request(good(0)) }).await;
    run.ask("acks -2", ProduceRequest { acks: -2, ..a.request(good(0)) }).await;
    run.ask("two partitions", a.request(vec![(0, Some(two())), (1, Some(two()))])).await;
    run.ask("one good, one without partition", a.request(vec![(0, Some(two())), (9, Some(two()))])).await;
    run.ask("partition -1", a.request(good(-1))).await;
    run.ask("no topics", request(vec![])).await;
    run.ask("no partitions", a.request(vec![])).await;
    run.ask("a partition twice", a.request(vec![(0, Some(two())), (0, Some(two()))])).await;
    run.ask("a topic twice", request(vec![a.topic(good(0)), a.topic(good(0))])).await;
    let named = |name| Target { name, id: NOBODY };
    run.ask("unknown topic", named(run.name("unknown")).request(good(0))).await;
    run.ask("bad name", Target { name: "a/b".into(), id: Uuid::ZERO }.request(good(0))).await;
    run.ask("no name", named(KafkaString::default()).request(good(0))).await;
    records(run).await;
    codecs(run, &a).await;
    let small = target(run, "small", 1, &[("max.message.bytes", "1000")]).await;
    let large = batch(["x".repeat(TOO_MANY_BYTES)], None);
    run.ask("too large", small.request(vec![(0, Some(large))])).await;
    compacted(run).await;
    append_times(run).await;
    let b = target(run, "b", 3, &[]).await;
    sequences(run, &b).await;
    run.damaged(b.request(good(1))).await;
}

/// A batch with a byte changed and the checksum right again.
fn changed(at: usize, value: u8) -> Bytes {
    let mut bytes = two().to_vec();
    bytes[at] = value;
    with_checksum(bytes)
}

fn with_checksum(mut bytes: Vec<u8>) -> Bytes {
    let checksum = crc32c(&bytes[CHECKSUM.end..]);
    bytes[CHECKSUM].copy_from_slice(&checksum.to_be_bytes());
    bytes.into()
}

fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 })
    })
}

/// Each on a partition of its own, so that what one server takes and the other does not moves no other answer.
async fn records(run: &mut Asker) {
    let r = target(run, "r", CASES_MAX, &[]).await;
    let mut partitions = 0..CASES_MAX;
    let mut next = || partitions.next().expect("enough partitions");
    let some = ProduceRequest { transactional_id: Some("t".into()), ..r.request(good(next())) };
    run.ask("transactional id", some).await;
    let mut checksum = two().to_vec();
    checksum[CHECKSUM.start] ^= 1;
    let cut = two().slice(..two().len() - 1);
    let cases: [(&str, Option<Bytes>); 18] = [
        ("null records", None),
        ("empty records", Some(Bytes::new())),
        ("wrong checksum", Some(checksum.into())),
        ("batch cut short", Some(cut)),
        ("five bytes", Some(Bytes::from_static(b"abcde"))),
        ("two batches", Some([two(), two()].concat().into())),
        ("magic 0", Some(changed(MAGIC, 0))),
        ("magic 1", Some(changed(MAGIC, 1))),
        ("magic 3", Some(changed(MAGIC, 3))),
        ("base offset 5", Some(changed(BASE_OFFSET, 5))),
        ("count 3 of 2", Some(changed(RECORD_COUNT, 3))),
        ("last offset delta 5", Some(changed(LAST_OFFSET_DELTA, 5))),
        ("transactional", Some(changed(ATTRIBUTES, 0x10))),
        ("control batch", Some(changed(ATTRIBUTES, 0x20))),
        ("log append time", Some(changed(ATTRIBUTES, 0x08))),
        ("unknown attribute", Some(changed(ATTRIBUTES, 0x80))),
        ("unknown codec", Some(changed(ATTRIBUTES, 0x07))),
        ("no gzip", Some(changed(ATTRIBUTES, 0x01))),
    ];
    for (case, records) in cases {
        // Kafka stays silent on it: that takes its time, so not at every version.
        if records.is_none() && ![RECORDS_FROM, IDS_FROM].contains(&run.version) {
            continue;
        }
        run.ask(case, r.request(vec![(next(), records)])).await;
    }
    let stamped = |timestamp| {
        let mut builder = BatchBuilder::new();
        builder.push(RecordRef { timestamp, key: None, value: Some(b"x"), headers: &[] }).unwrap();
        builder.build(Codec::None, None).unwrap()
    };
    for (case, timestamp) in [
        ("timestamp -1", -1),
        ("timestamp 0", 0),
        ("timestamp -5", -5),
        ("timestamp in 2200", 7_258_118_400_000),
    ] {
        run.ask(case, r.request(vec![(next(), Some(stamped(timestamp)))])).await;
    }
}

fn keyed(keys: &[Option<&[u8]>], codec: Codec, stamp: Option<ProducerStamp>) -> Bytes {
    let mut builder = BatchBuilder::new();
    for (timestamp, key) in (TIMESTAMP..).zip(keys) {
        builder.push(RecordRef { timestamp, key: *key, value: Some(b"v"), headers: &[] }).unwrap();
    }
    builder.build(codec, stamp).unwrap()
}

/// Compacted topics take records with keys alone.
async fn compacted(run: &mut Asker) {
    let k = target(run, "k", 1, &[("cleanup.policy", "compact")]).await;
    let both = target(run, "kd", 1, &[("cleanup.policy", "compact,delete")]).await;
    let key: Option<&[u8]> = Some(b"k");
    let plain = |keys: &[Option<&[u8]>]| vec![(0, Some(keyed(keys, Codec::None, None)))];
    run.ask("compacted: keys", k.request(plain(&[key, key]))).await;
    run.ask("compacted: an empty key", k.request(plain(&[Some(b"")]))).await;
    run.ask("compacted: one has none", k.request(plain(&[key, None, key]))).await;
    run.ask("compacted: five have none", k.request(plain(&[None; 5]))).await;
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let records = keyed(&[key, None], codec, None);
        let case = format!("compacted: one of {} has none", codec.name());
        run.ask(&case, k.request(vec![(0, Some(records))])).await;
        let records = keyed(&[key, key], codec, None);
        run.ask(&format!("compacted: keys, {}", codec.name()), k.request(vec![(0, Some(records))])).await;
    }
    run.ask("compacted and deleted: keys", both.request(plain(&[key]))).await;
    run.ask("compacted and deleted: none", both.request(plain(&[None]))).await;
}

/// Topics whose records bear the time of appending.
async fn append_times(run: &mut Asker) {
    let t = target(run, "at", 2, &[("message.timestamp.type", "LogAppendTime")]).await;
    run.ask("append time: two records", t.request(good(0))).await;
    let records = keyed(&[Some(b"k"), None], Codec::Zstd, None);
    run.ask("append time: zstd", t.request(vec![(0, Some(records))])).await;
    run.ask("append time: set by the client", t.request(vec![(0, Some(changed(ATTRIBUTES, 0x08)))])).await;
    let init = InitProducerIdRequest { transactional_id: None, ..InitProducerIdRequest::default() };
    run.until("there are ids", 4, &init, |answer| answer.error_code == 0).await;
    let id = run.quiet(4, &init).await.producer_id;
    let stamp = ProducerStamp { id, epoch: 0, base_sequence: 0 };
    for case in ["append time: of a producer", "append time: the same again"] {
        let records = keyed(&[None], Codec::None, Some(stamp));
        run.ask(case, t.request(vec![(1, Some(records))])).await;
    }
}

async fn codecs(run: &mut Asker, a: &Target) {
    for codec in [Codec::Gzip, Codec::Snappy, Codec::Lz4, Codec::Zstd] {
        let mut builder = BatchBuilder::new();
        for (timestamp, value) in (TIMESTAMP..).zip(values("value", 0..20)) {
            let value = Some(value.as_bytes());
            builder.push(RecordRef { timestamp, key: Some(b"k"), value, headers: &[] }).unwrap();
        }
        let records = builder.build(codec, None).unwrap();
        run.ask(&format!("codec {}", codec.name()), a.request(vec![(0, Some(records))])).await;
    }
}

async fn sequences(run: &mut Asker, b: &Target) {
    let init = InitProducerIdRequest { transactional_id: None, ..InitProducerIdRequest::default() };
    // A Kafka that has just begun has no ids yet.
    run.until("there are ids", 4, &init, |answer| answer.error_code == 0).await;
    let id = run.quiet(4, &init).await.producer_id;
    let early = batch(["one", "two"], Some(ProducerStamp { id, epoch: 0, base_sequence: 3 }));
    run.ask("first of a producer is 3", b.request(vec![(2, Some(early))])).await;
    let steps: [(&str, i64, i16, i32); 18] = [
        ("sequence 0", id, 0, 0),
        ("sequence 0 again", id, 0, 0),
        ("sequence 4 after 0", id, 0, 4),
        ("sequence 2", id, 0, 2),
        ("sequence 1 within", id, 0, 1),
        ("sequence 4", id, 0, 4),
        ("sequence 6", id, 0, 6),
        ("sequence 8", id, 0, 8),
        ("sequence 10", id, 0, 10),
        ("sequence 2 of the last five", id, 0, 2),
        ("sequence 0 of long ago", id, 0, 0),
        ("epoch 1, sequence 12", id, 1, 12),
        ("epoch 1, sequence 0", id, 1, 0),
        ("epoch 0 after 1", id, 0, 12),
        ("epoch -1", id, -1, 2),
        ("sequence -1", id, 1, -1),
        ("unknown producer, sequence 0", id + 900_000, 0, 0),
        ("unknown producer, sequence 7", id + 900_001, 0, 7),
    ];
    for (case, id, epoch, base_sequence) in steps {
        let records = batch(["one", "two"], Some(ProducerStamp { id, epoch, base_sequence }));
        run.ask(case, b.request(vec![(0, Some(records))])).await;
    }
    let stamp = ProducerStamp { id, epoch: 1, base_sequence: 2 };
    let next = ProducerStamp { base_sequence: 4, ..stamp };
    let both = [batch(["a", "b"], Some(stamp)), batch(["c", "d"], Some(next))].concat();
    run.ask("two batches of a producer", b.request(vec![(0, Some(both.into()))])).await;
    run.ask("sequence 2 on the other partition", b.request(vec![(1, Some(batch(["a"], Some(stamp))))])).await;
    window(run, id).await;
    bumps(run, id).await;
    pipelined(run, id).await;
}

/// Steps of one producer on a partition of its own: case, epoch, first sequence, records.
async fn steps(run: &mut Asker, (target, index): (&Target, i32), id: i64, steps: &[(&str, i16, i32, usize)]) {
    for (case, epoch, base_sequence, records) in steps {
        let stamp = ProducerStamp { id, epoch: *epoch, base_sequence: *base_sequence };
        let records = batch(values("v", 0..*records), Some(stamp));
        run.ask(case, target.request(vec![(index, Some(records))])).await;
    }
}

/// What is remembered of a producer, and what its sequences do at their end.
async fn window(run: &mut Asker, id: i64) {
    let w = target(run, "w", 2, &[]).await;
    let of_five = [
        ("window: 0", 0, 0, 3),
        ("window: 3", 0, 3, 1),
        ("window: 4", 0, 4, 2),
        ("window: 6", 0, 6, 1),
        ("window: 7", 0, 7, 1),
        ("window: oldest of five again", 0, 0, 3),
        ("window: oldest with fewer records", 0, 0, 2),
        ("window: oldest with more records", 0, 0, 4),
        ("window: two in one", 0, 3, 3),
        ("window: newest again", 0, 7, 1),
        ("window: from within the newest but one", 0, 5, 1),
        ("window: overlaps the next", 0, 7, 2),
        ("window: one too far", 0, 9, 1),
        ("window: sixth", 0, 8, 1),
        ("window: oldest is forgotten", 0, 0, 3),
        ("window: second is the oldest", 0, 3, 1),
        ("window: still the next", 0, 9, 1),
    ];
    steps(run, (&w, 0), id, &of_five).await;
    // Where there is data already a producer may begin anywhere.
    run.ask("wrap: data", w.request(vec![(1, Some(two()))])).await;
    let end = i32::MAX;
    let around = [
        ("wrap: near the end", 0, end - 3, 3),
        ("wrap: across the end", 0, end, 4),
        ("wrap: across the end again", 0, end, 4),
        ("wrap: a gap behind the end", 0, 4, 1),
        ("wrap: 0 was used", 0, 0, 1),
        ("wrap: behind the end", 0, 3, 1),
        ("wrap: before the end again", 0, end - 3, 3),
    ];
    steps(run, (&w, 1), id, &around).await;
}

/// Epochs as clients raise them by themselves (KIP-360), and as InitProducerId answers.
async fn bumps(run: &mut Asker, id: i64) {
    let e = target(run, "e", 2, &[]).await;
    let raised = [
        ("bump: epoch 3, 0", 3, 0, 1),
        ("bump: epoch 3, 1", 3, 1, 1),
        ("bump: epoch 4 goes on", 4, 2, 1),
        ("bump: epoch 4 begins", 4, 0, 1),
        ("bump: epoch 4 again", 4, 0, 1),
        ("bump: epoch 3 repeats", 3, 1, 1),
        ("bump: epoch 3 goes on", 3, 2, 1),
        ("bump: epoch 9 leaps", 9, 0, 1),
        ("bump: last epoch", i16::MAX, 0, 1),
        ("bump: behind the last epoch", 0, 0, 1),
    ];
    steps(run, (&e, 0), id, &raised).await;
    let init = InitProducerIdRequest {
        transactional_id: None,
        producer_id: id,
        producer_epoch: i16::MAX,
        ..InitProducerIdRequest::default()
    };
    let anew = run.quiet(4, &init).await;
    assert_eq!((anew.error_code, anew.producer_epoch, anew.producer_id == id), (0, 0, false), "{anew:?}");
    steps(run, (&e, 1), anew.producer_id, &[("bump: a new id begins", 0, 0, 1)]).await;
    steps(run, (&e, 1), id, &[("bump: the old id still may", i16::MAX, 0, 1)]).await;
}

/// Batches sent behind one that is refused, before its answer is there.
async fn pipelined(run: &mut Asker, id: i64) {
    let p = target(run, "p", 1, &[]).await;
    let stamped = |base_sequence| batch(["v"], Some(ProducerStamp { id, epoch: 0, base_sequence }));
    let first = stamped(0);
    let mut broken = stamped(1).to_vec();
    broken[CHECKSUM.start] ^= 1;
    let sent = [
        ("pipelined: first", first.clone()),
        ("pipelined: broken", broken.into()),
        ("pipelined: behind the broken one", stamped(2)),
        ("pipelined: a repeat", first),
        ("pipelined: the broken one, whole", stamped(1)),
        ("pipelined: its successor", stamped(2)),
    ];
    for (_, records) in &sent {
        let request = p.request(vec![(0, Some(records.clone()))]);
        run.send(run.version, &request).await;
    }
    for (case, _) in &sent {
        let answer = run.receive_answer::<ProduceRequest>().await;
        run.note(case, answer.as_ref(), false);
    }
}
