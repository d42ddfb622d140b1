//! A batch of Arrow is a batch like any other to whoever looks at headers alone.

use super::*;
use crate::kafka::*;

fn stored() -> Bytes {
    let schema = schema(vec![column("n", DataType::Int)]);
    let rows = [vec![Value::Integer(1)], vec![Value::Null], vec![Value::Integer(3)]];
    encode(&batch_of(&rows, schema.columns()), &schema, PLAIN, None).expect("sound rows")
}

fn kafka() -> Bytes {
    let mut builder = BatchBuilder::new();
    builder.push(RecordRef::default()).expect("room");
    builder.build(Codec::None, None).expect("a record")
}

#[test]
fn i2_a_batch_takes_as_many_offsets_as_it_has_rows() {
    let header = BatchHeader::parse(&stored()).expect("our own batch");
    assert_eq!(header.format, BatchFormat::Arrow);
    assert_eq!((header.record_count, header.last_offset_delta), (3, 2));
    assert!(!header.is_idempotent());
    assert_eq!(BatchHeader::parse(&kafka()).expect("our own batch").format, BatchFormat::Kafka);
}

#[test]
fn offset_epoch_and_time_are_set_as_in_any_batch() {
    let mut batch = stored().to_vec();
    set_offset_and_epoch(&mut batch, 40, 7).expect("a header");
    set_append_time(&mut batch, 1_700_000_000_000).expect("a header");
    let batch = Bytes::from(batch);
    let parsed = ArrowBatch::parse(&batch).expect("our own batch");
    parsed.verify_checksum().expect("it was corrected");
    let header = *parsed.header();
    assert_eq!((header.base_offset, header.last_offset(), header.partition_leader_epoch), (40, 42, 7));
    assert_eq!(header.attributes.timestamp_type(), TimestampType::LogAppendTime);
    let first = Some(RecordTime { offset: 40, timestamp: 1_700_000_000_000 });
    assert_eq!(first_at_or_after(&header, batch.clone(), 1_700_000_000_000, 0).expect("no record"), first);
    assert_eq!(first_at_or_after(&header, batch.clone(), 1_700_000_000_001, 0).expect("no record"), None);
    assert_eq!(max_timestamp_record(&header, batch, 0).expect("no record"), first);
}

#[test]
fn a_kafka_client_can_not_produce_one_and_its_records_are_not_read() {
    let batch = stored();
    let limits = kafka_limits();
    assert_eq!(kind(check_produced(&batch, limits)), Kind::InvalidRecord);
    let header = BatchHeader::parse(&batch).expect("our own batch");
    assert_eq!(kind(records(&header, batch.clone(), 1 << 20)), Kind::InvalidRecord);
    assert_eq!(kind(keyless(&header, batch, 1 << 20, 1)), Kind::InvalidRecord);
}

fn kafka_limits() -> ProducedLimits {
    ProducedLimits { batch_bytes_max: 1 << 20, inflated_bytes_max: 1 << 20 }
}

#[test]
fn kafkas_records_are_no_batch_of_arrow() {
    assert_eq!(kind(ArrowBatch::parse(&kafka())), Kind::InvalidRecord);
}

#[test]
fn a_run_may_hold_both() {
    let run = [kafka(), stored(), kafka()].concat();
    let formats: Vec<_> = batches(Bytes::from(run)).map(|batch| batch.expect("sound").0.format).collect();
    assert_eq!(formats, [BatchFormat::Kafka, BatchFormat::Arrow, BatchFormat::Kafka]);
}

#[test]
fn a_codec_of_kafkas_is_refused() {
    let mut batch = stored().to_vec();
    batch[22] |= 4;
    assert_eq!(kind(BatchHeader::parse(&batch)), Kind::InvalidRecord);
}
