//! Batches of Kafka's records and batches of rows, made of each other.

use super::*;
use crate::arrow::{ArrowBatch, Buckets, EncodeOptions, Mapping, encode};
use crate::kafka::{
    BatchBuilder, BatchHeader, Codec, ProducerStamp, RecordRef, TimestampType, batches, records,
    set_append_time, set_offset_and_epoch,
};
use crate::{RecordError, RecordErrorKind};
use bytes::Bytes;
use mink_types::ArrowCompression;
use mink_types::schema::{ColumnPlace, Literal, SchemaChange};

const MIB: usize = 1 << 20;
const ZSTD: EncodeOptions = EncodeOptions { compression: ArrowCompression::Zstd };
const INTAKE: RecordsIntake = RecordsIntake {
    room_bytes: 8 * MIB,
    batch_bytes_max: MIB,
    options: ZSTD,
    sent_to: SentTo { bucket: 0, buckets: 1 },
    refused_max: 3,
};
const TIME: i64 = 1_790_000_000_000;

fn orders(bucket_key: &[&str]) -> Schema {
    let columns = vec![
        Field::new("id", DataType::BigInt).not_null(),
        Field::new("customer", DataType::String),
        Field::new("amount", DataType::Decimal { precision: 12, scale: 2 }),
    ];
    let bucket_key = bucket_key.iter().map(|name| (*name).to_owned()).collect();
    Schema::create(SchemaDraft { columns, bucket_key, ..SchemaDraft::default() }).expect("a sound schema")
}

fn sent(
    records: &[(Option<&str>, Option<&str>)],
    codec: Codec,
    stamp: Option<ProducerStamp>,
) -> (BatchHeader, Bytes) {
    let mut builder = BatchBuilder::new();
    for (key, value) in records {
        let (key, value) = (key.map(str::as_bytes), value.map(str::as_bytes));
        builder.push(RecordRef { timestamp: 5, key, value, headers: &[] }).expect("fits");
    }
    let batch = builder.build(codec, stamp).expect("a batch");
    (BatchHeader::parse(&batch).expect("a batch"), batch)
}

fn values<'a>(values: &[&'a str]) -> Vec<(Option<&'a str>, Option<&'a str>)> {
    values.iter().map(|value| (None, Some(*value))).collect()
}

fn taken(
    schema: &Schema,
    records: &[(Option<&str>, Option<&str>)],
    intake: RecordsIntake,
) -> Result<Result<Bytes, RefusedRecords>, RecordError> {
    let (header, batch) = sent(records, Codec::None, None);
    rows_of_records(&header, batch, schema, intake)
}

fn stored_rows(schema: &Schema, stored: &Bytes) -> RecordBatch {
    ArrowBatch::parse(stored).expect("a batch of rows").decode(schema).expect("sound")
}

/// Offset, key and value of each record of these batches, which are whole and right.
fn told(sent: &[Bytes]) -> Vec<(i64, Option<String>, String)> {
    let mut found = Vec::new();
    for piece in sent {
        for batch in batches(piece.clone()) {
            let (header, batch) = batch.expect("whole");
            header.verify_checksum(&batch).expect("the checksum is right");
            assert_eq!(header.attributes.timestamp_type(), TimestampType::LogAppendTime);
            assert_eq!(i64::from(header.record_count), i64::from(header.last_offset_delta) + 1);
            assert_eq!((header.partition_leader_epoch, header.producer_id), (6, -1));
            for record in records(&header, batch, MIB).expect("plain") {
                let record = record.expect("sound");
                assert_eq!(record.timestamp, TIME);
                let text = |bytes: Bytes| String::from_utf8(bytes.to_vec()).expect("JSON is text");
                found.push((record.offset, record.key.map(text), text(record.value.expect("never null"))));
            }
        }
    }
    found
}

#[test]
fn i2_a_row_for_each_record_and_a_record_for_each_row_with_every_codec() {
    let schema = orders(&["customer"]);
    let rows = [
        (None, r#"{"amount":7, "id":1, "customer":"Ada"}"#),
        (Some(r#"{"customer":"Bob"}"#), r#"{"id":2}"#),
        (Some(r#"{"customer":"Grä"}"#), r#"{"id":3,"customer":"Gr\u00e4","amount":"0.5"}"#),
    ];
    let written = [
        (Some(r#"{"customer":"Ada"}"#), r#"{"id":1,"customer":"Ada","amount":7.00}"#),
        (Some(r#"{"customer":"Bob"}"#), r#"{"id":2,"customer":"Bob","amount":null}"#),
        (Some(r#"{"customer":"Grä"}"#), r#"{"id":3,"customer":"Grä","amount":0.50}"#),
    ];
    let rows: Vec<_> = rows.iter().map(|(key, value)| (*key, Some(*value))).collect();
    for codec in Codec::ALL {
        let (header, batch) = sent(&rows, codec, None);
        let stored = rows_of_records(&header, batch, &schema, INTAKE).expect("fits").expect("sound rows");
        let found = stored_rows(&schema, &stored);
        let writer = RecordsWriter::new(&schema).expect("sound");
        let place = RowsPlace { base_offset: 40, leader_epoch: 6, append_time: TIME };
        let room = RecordsRoom { bytes: MIB, first_anyway: false };
        let sent = writer.write(&found, place, room).expect("sound rows");
        assert_eq!((sent.rows, sent.batches.len()), (3, 1), "{codec}");
        let wanted: Vec<_> = (40..)
            .zip(written)
            .map(|(offset, (key, value))| (offset, key.map(str::to_owned), value.to_owned()))
            .collect();
        assert_eq!(told(&sent.batches), wanted, "{codec}");
        // What was written is taken again, and is the same.
        let again: Vec<_> = written.iter().map(|(key, value)| (*key, Some(*value))).collect();
        let (header, batch) = self::sent(&again, Codec::Zstd, None);
        assert_eq!(rows_of_records(&header, batch, &schema, INTAKE), Ok(Ok(stored)), "{codec}");
    }
}

#[test]
fn i6_a_batch_keeps_its_producers_sequence_and_its_number_of_records() {
    let stamp = ProducerStamp { id: 9, epoch: 2, base_sequence: i32::MAX - 1 };
    let rows = values(&[r#"{"id":1}"#, r#"{"id":2}"#, r#"{"id":3}"#]);
    let (header, batch) = sent(&rows, Codec::Lz4, Some(stamp));
    let stored = rows_of_records(&header, batch, &orders(&[]), INTAKE).expect("fits").expect("sound");
    let header = BatchHeader::parse(&stored).expect("a batch");
    assert_eq!((header.producer_id, header.producer_epoch), (stamp.id, stamp.epoch));
    assert_eq!((header.base_sequence, header.record_count), (stamp.base_sequence, 3));
    let unstamped = taken(&orders(&[]), &rows, INTAKE).expect("fits").expect("sound");
    assert!(!BatchHeader::parse(&unstamped).expect("a batch").is_idempotent());
}

#[test]
fn i19_each_refused_record_is_named_with_its_field_and_nothing_is_taken() {
    let rows = [
        (None, Some(r#"{"id":1}"#)),
        (None, Some(r#"{"id":1,"amount":1.505}"#)),
        (None, None),
        (Some("{}"), Some(r#"{"id":1}"#)),
        (None, Some("")),
        (None, Some(r#"{"amount":1}"#)),
    ];
    let refused = taken(&orders(&[]), &rows, INTAKE).expect("fits").expect_err("not sound");
    assert_eq!(refused.count, 5);
    let places: Vec<u32> = refused.first.iter().map(|(place, _)| *place).collect();
    assert_eq!(places, [1, 2, 3], "at most three are listed");
    let texts: Vec<&str> = refused.first.iter().map(|(_, text)| text.as_str()).collect();
    assert!(texts[0].starts_with("amount: found `1.505`; use a number"), "{texts:?}");
    assert!(texts[1].starts_with("a record without a value deletes"), "{texts:?}");
    assert!(texts[2].starts_with("the table has no key columns"), "{texts:?}");
    let later = taken(&orders(&[]), &rows[4..], INTAKE).expect("fits").expect_err("not sound");
    assert_eq!(later.count, 2);
    assert!(later.first[1].1.starts_with("id: missing, but it is NOT NULL"), "{later:?}");
    // Records that cannot be opened refuse the batch.
    let (header, batch) = sent(&values(&[r#"{"id":1}"#]), Codec::Gzip, None);
    let mut broken = batch.to_vec();
    broken[70..].fill(0xff);
    let error = rows_of_records(&header, broken.into(), &orders(&[]), INTAKE).expect_err("no gzip");
    assert_eq!(error.kind(), RecordErrorKind::InvalidRecord);
}

#[test]
fn i20_what_a_batch_takes_is_bounded_whatever_its_bytes_make_of_it() {
    let schema = orders(&[]);
    let kind = |rows: &[(Option<&str>, Option<&str>)], codec, intake| {
        let (header, batch) = sent(rows, codec, None);
        rows_of_records(&header, batch, &schema, intake).expect_err("too large").kind()
    };
    let small = RecordsIntake { room_bytes: 64 << 10, ..INTAKE };
    let blanks = format!("{}{}", r#"{"id":1}"#, " ".repeat(40 << 10));
    assert_eq!(kind(&values(&[&blanks]), Codec::Zstd, small), RecordErrorKind::InflatedTooLarge);
    let many = vec![(None, Some(r#"{"id":1}"#)); 1_000];
    assert_eq!(kind(&many, Codec::None, small), RecordErrorKind::TooLarge, "28 bytes a row");
    let long = format!(r#"{{"id":1,"customer":"{}"}}"#, "x".repeat(20 << 10));
    assert_eq!(kind(&values(&[&long]), Codec::None, small), RecordErrorKind::TooLarge, "one row alone");
    let least = RecordsIntake { batch_bytes_max: 100, ..INTAKE };
    assert_eq!(kind(&values(&[r#"{"id":1}"#]), Codec::None, least), RecordErrorKind::TooLarge);
}

#[test]
fn rows_of_a_bucket_key_go_where_it_says_or_are_refused() {
    let schema = orders(&["customer"]);
    let rows: Vec<String> =
        (0..40).map(|id| format!(r#"{{"id":{id},"customer":"customer {id}"}}"#)).collect();
    let texts: Vec<&str> = rows.iter().map(String::as_str).collect();
    let all = taken(&schema, &values(&texts), INTAKE).expect("fits").expect("one bucket takes all");
    let buckets = Buckets::new(&schema, 4).expect("a key").of(&stored_rows(&schema, &all)).expect("the key");
    for bucket in 0..4 {
        let intake = RecordsIntake { sent_to: SentTo { bucket, buckets: 4 }, ..INTAKE };
        let own: Vec<&str> =
            texts.iter().zip(&buckets).filter(|(_, own)| **own == bucket).map(|(text, _)| *text).collect();
        assert!(!own.is_empty(), "forty rows meet every bucket of four");
        taken(&schema, &values(&own), intake).expect("fits").expect("its own rows");
        let refused = taken(&schema, &values(&texts), intake).expect("fits").expect_err("of other buckets");
        assert_eq!(refused.count as usize, texts.len() - own.len());
        let (place, why) = &refused.first[0];
        let belongs = buckets[*place as usize];
        assert_eq!(
            why,
            &format!(
                "`customer`: by this bucket key the row belongs to partition {belongs}, but it was sent to {bucket}; send it there"
            )
        );
    }
}

#[test]
fn i20_records_keep_within_their_room_and_go_on_where_it_ended() {
    let schema = orders(&[]);
    let mut builder = RowsBuilder::new(&schema);
    for id in 0..3_000 {
        let row = format!(r#"{{"id":{id},"customer":"{}"}}"#, "x".repeat(id % 700));
        builder.push_json(row.as_bytes()).expect("a row");
    }
    let rows = builder.finish().expect("sound");
    let writer = RecordsWriter::new(&schema).expect("sound");
    let place = RowsPlace { base_offset: 1_000, leader_epoch: 6, append_time: TIME };
    let whole = RecordsRoom { bytes: 64 * MIB, first_anyway: false };
    let all = writer.write(&rows, place, whole).expect("sound");
    assert_eq!(all.rows, 3_000);
    assert!(all.batches.len() > 1, "more than one batch's bytes");
    let wanted = told(&all.batches);
    assert_eq!(
        wanted.iter().map(|(offset, ..)| *offset).collect::<Vec<_>>(),
        (1_000..4_000).collect::<Vec<_>>()
    );
    let (mut found, mut skip) = (Vec::new(), 0);
    while skip < 3_000 {
        let room = RecordsRoom { bytes: 50_000, first_anyway: false };
        let base_offset = place.base_offset + i64::try_from(skip).expect("few");
        let part = writer.write(&rows.slice(skip, 3_000 - skip), RowsPlace { base_offset, ..place }, room);
        let part = part.expect("sound");
        assert!(part.rows > 0 && part.bytes() <= room.bytes, "{} bytes", part.bytes());
        found.extend(told(&part.batches));
        skip += part.rows;
    }
    assert_eq!(found, wanted, "the same row is always the same record");
    let none = RecordsRoom { bytes: 10, first_anyway: false };
    assert_eq!(writer.write(&rows, place, none).expect("sound"), WrittenRecords::default());
    let first = writer.write(&rows, place, RecordsRoom { first_anyway: true, ..none }).expect("sound");
    assert_eq!(told(&first.batches), wanted[..1]);
}

#[test]
fn rows_of_an_older_schema_are_written_as_the_newest_has_them_however_long_its_defaults() {
    let schema = orders(&[]);
    let mut builder = RowsBuilder::new(&schema);
    for id in 0..2_000 {
        builder.push_json(format!(r#"{{"id":{id},"amount":1}}"#).as_bytes()).expect("a row");
    }
    let mut stored = encode(&builder.finish().expect("sound"), &schema, ZSTD, None).expect("fits").to_vec();
    set_offset_and_epoch(&mut stored, 500, 6).expect("a batch");
    set_append_time(&mut stored, TIME).expect("a batch");
    let stored = ArrowBatch::parse(&stored.into()).expect("a batch");
    let long = "ä".repeat(500);
    let column = Field { default: Some(Literal::Text(long.clone())), ..Field::new("note", DataType::String) };
    let add = SchemaChange::AddColumn { parent: Vec::new(), column, place: ColumnPlace::First };
    let drop = SchemaChange::DropColumn { path: vec!["customer".into()] };
    let newest = schema.alter(&[add, drop]).expect("follows");
    let mapping = Mapping::new(&schema, &newest, None).expect("follows");
    let writer = RecordsWriter::new(&newest).expect("sound");
    let (mut from, mut found) = (700, Vec::new());
    loop {
        let room = RecordsRoom { bytes: 300_000, first_anyway: true };
        let part = writer.write_stored(&stored, &schema, &mapping, from, room).expect("sound");
        assert!(part.bytes() <= room.bytes && part.rows > 0);
        found.extend(told(&part.batches));
        from += i64::try_from(part.rows).expect("few");
        if part.is_whole {
            break;
        }
    }
    let wanted: Vec<_> = (200..2_000)
        .map(|id| (500 + id, None, format!(r#"{{"note":"{long}","id":{id},"amount":1.00}}"#)))
        .collect();
    assert_eq!(found, wanted);
    let behind =
        writer.write_stored(&stored, &schema, &mapping, 2_500, RecordsRoom { bytes: 9, first_anyway: true });
    assert_eq!(
        behind.expect("nothing to read"),
        WrittenRecords { is_whole: true, ..WrittenRecords::default() }
    );
}

#[test]
fn what_a_batch_of_rows_inflates_to_is_known_before_it_is_decoded() {
    let schema = orders(&[]);
    let mut builder = RowsBuilder::new(&schema);
    (0..10_000).for_each(|_| builder.push_json(br#"{"id":1,"customer":"the same"}"#).expect("a row"));
    let rows = builder.finish().expect("sound");
    for (compression, least_bytes) in [(ArrowCompression::None, 0), (ArrowCompression::Zstd, 10)] {
        let mut stored = encode(&rows, &schema, EncodeOptions { compression }, None).expect("fits").to_vec();
        set_offset_and_epoch(&mut stored, 7, 1).expect("a batch");
        set_append_time(&mut stored, TIME).expect("a batch");
        let parsed = ArrowBatch::parse(&stored.clone().into()).expect("a batch");
        let inflated = parsed.inflated_bytes(&schema).expect("sound");
        // Id, decimal, offset and text of each row.
        assert!((10_000 * 36..10_000 * 40).contains(&inflated), "{inflated} bytes, {compression:?}");
        assert!(inflated >= stored.len() * least_bytes, "{} bytes stored", stored.len());
    }
}
