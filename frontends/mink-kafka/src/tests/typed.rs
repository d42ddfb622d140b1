//! Topics that are tables with columns: JSON comes in and goes out, rows are stored.
//!
//! Lives on: tests only.
use super::fake::{APPENDED_AT, Fake, Running, start, start_with};
use super::log;
use super::raw_client::{Client, batch, batch_of, fetch, produce, visible};
use super::topic_ids::fetch_of;
use bytes::Bytes;
use mink_api::{Admin as _, LogSource as _};
use mink_kafka_wire::{ErrorCode, Uuid};
use mink_record::arrow::ArrowBatch;
use mink_record::kafka::{
    BatchBuilder, BatchHeader, Codec, ProducerStamp, RecordRef, TimestampType, batches, records,
};
use mink_types::schema::{ColumnPlace, DataType, Field, Literal, Schema, SchemaChange, SchemaDraft};
use mink_types::{Limits, LogFormat, TableId, TableOptions};
use std::sync::Arc;

pub(super) fn orders(draft: SchemaDraft) -> Arc<Schema> {
    let columns = vec![
        Field::new("id", DataType::BigInt).not_null(),
        Field::new("customer", DataType::String),
        Field::new("amount", DataType::Decimal { precision: 12, scale: 2 }),
    ];
    Arc::new(Schema::create(SchemaDraft { columns, ..draft }).expect("a sound schema"))
}

pub(super) fn rows_in(buckets: u32) -> TableOptions {
    TableOptions { format: LogFormat::Arrow, buckets, ..TableOptions::default() }
}

/// A node with the topic `sales.orders`, a table of one bucket.
pub(super) async fn with_orders() -> (Running, Client, TableId) {
    let running = start().await;
    let schema = orders(SchemaDraft::default());
    let table = running.fake.typed_table("sales.orders", rows_in(1), Some(schema)).expect("created");
    let client = Client::connect(running.address).await;
    (running, client, table)
}

pub(super) const TOPIC: &str = "sales.orders";

/// The records that a fetch gives, and their bytes.
async fn fetched(client: &mut Client, from: i64) -> Bytes {
    let mut answer = client.call(12, &fetch(TOPIC, &[(0, from)])).await;
    let partition = answer.responses.remove(0).partitions.remove(0);
    assert_eq!(partition.error_code, 0);
    partition.records.expect("never null").into_bytes()
}

fn keyed(records: &[(Option<&str>, Option<&str>)], stamp: Option<ProducerStamp>) -> Bytes {
    let mut builder = BatchBuilder::new();
    for (key, value) in records {
        let (key, value) = (key.map(str::as_bytes), value.map(str::as_bytes));
        builder.push(RecordRef { timestamp: 1_000, key, value, headers: &[] }).expect("fits");
    }
    builder.build(Codec::None, stamp).expect("built")
}

#[tokio::test]
async fn i2_json_becomes_rows_and_rows_become_the_same_json_at_the_same_offsets() {
    let (running, mut client, table) = with_orders().await;
    let sent = [r#"{"amount":1.5,"id":1}"#, r#"{"id":2,"customer":"Ada"}"#];
    let given = [r#"{"id":1,"customer":null,"amount":1.50}"#, r#"{"id":2,"customer":"Ada","amount":null}"#];
    for (turn, codec) in (0..).zip(Codec::ALL) {
        let at = turn * 2;
        let batch = batch_of(sent.iter().map(|value| value.as_bytes()), codec);
        let answer = client.produce(TOPIC, 0, batch).await;
        assert_eq!((answer.error_code, answer.base_offset), (0, at), "{codec}");
        assert_eq!(answer.log_append_time_ms, APPENDED_AT.0, "rows have the time of their append");
        let bytes = fetched(&mut client, at).await;
        let wanted: Vec<_> = (at..).zip(given.map(str::to_owned)).collect();
        assert_eq!(visible(bytes.clone(), at), wanted, "{codec}");
        let header = BatchHeader::parse(&bytes).expect("a batch");
        header.verify_checksum(&bytes).expect("right");
        assert_eq!((header.base_offset, header.last_offset_delta, header.record_count), (at, 1, 2));
        assert_eq!((header.partition_leader_epoch, header.max_timestamp), (1, APPENDED_AT.0));
        assert_eq!(header.attributes.timestamp_type(), TimestampType::LogAppendTime);
        assert_eq!(visible(bytes, at).len(), 2);
        // From within a stored batch no record before the place is given.
        assert_eq!(visible(fetched(&mut client, at + 1).await, 0), wanted[1..]);
    }
    let schema =
        running.fake.state().table(table).and_then(|table| table.schema().cloned()).expect("columns");
    for stored in running.fake.stored(table, 0) {
        let stored = ArrowBatch::parse(&stored).expect("a batch of rows");
        stored.verify_checksum().expect("right");
        assert_eq!(stored.decode(&schema).expect("sound").num_rows(), 2);
    }
    let free = running.fake.inflating.free_bytes();
    assert_eq!(free, running.fake.inflating.total_bytes(), "all memory is given back");
}

#[tokio::test]
async fn every_version_writes_and_reads_rows_by_name_and_by_id() {
    let (running, mut client, table) = with_orders().await;
    let id = Uuid(running.fake.state().table(table).expect("there").uuid.0);
    let mut count = 0;
    for version in 3..=13 {
        let mut request = produce(TOPIC, 0, batch(&[r#"{"id":1}"#]), -1);
        request.topic_data[0].topic_id = id;
        let answer = client.call(version, &request).await;
        let partition = &answer.responses[0].partition_responses[0];
        assert_eq!((partition.error_code, partition.base_offset), (0, count), "version {version}");
        count += 1;
    }
    for version in 4..=18 {
        let request = if version < 13 { fetch(TOPIC, &[(0, 0)]) } else { fetch_of(id, &[(0, 0)]) };
        let answer = client.call(version, &request).await;
        let partition = &answer.responses[0].partitions[0];
        assert_eq!((partition.error_code, partition.high_watermark), (0, count), "version {version}");
        let records = partition.records.clone().expect("never null").into_bytes();
        assert_eq!(visible(records, 0).len(), 11, "version {version}");
    }
}

#[tokio::test]
async fn i19_a_bad_record_is_named_with_its_field_and_its_batch_leaves_no_trace() {
    let (running, mut client, table) = with_orders().await;
    let bad = keyed(
        &[
            (None, Some(r#"{"id":1}"#)),
            (None, Some(r#"{"id":1,"amount":"a lot"}"#)),
            (None, None),
            (None, Some("not JSON")),
            (Some("{}"), Some(r#"{"id":1}"#)),
        ],
        None,
    );
    let answer = client.produce(TOPIC, 0, bad).await;
    assert_eq!((answer.error_code, answer.base_offset), (ErrorCode::InvalidRecord.code(), -1));
    let told: Vec<(i32, String)> = answer
        .record_errors
        .iter()
        .map(|error| {
            let text = error.batch_index_error_message.as_ref().expect("words");
            (error.batch_index, text.as_str().chars().take(16).collect())
        })
        .collect();
    let begins =
        [(1, "amount: found th"), (2, "a record without"), (3, "no JSON at byte "), (4, "the table has no")];
    assert_eq!(told, begins.map(|(place, text)| (place, text.to_owned())));
    let why = answer.error_message.expect("words");
    assert!(why.as_str().contains("due to 4 record errors in total"), "{why:?}");
    assert!(why.as_str().contains("message='amount: found"), "{why:?}");
    assert_eq!(running.fake.end(table, 0), (0, 0));
    assert_eq!(client.produce(TOPIC, 0, batch(&[r#"{"id":1}"#])).await.base_offset, 0);
    // Without an answer the connection ends, as for any batch that is refused.
    let mut other = Client::connect(running.address).await;
    other.send(9, 1, &produce(TOPIC, 0, batch(&["[]"]), 0)).await;
    other.assert_closed().await;
    assert_eq!(running.fake.end(table, 0), (1, 0));
}

#[tokio::test]
async fn refused_records_are_told_in_the_log_once_for_their_table_and_kind() {
    let (running, mut client, _) = with_orders().await;
    let log = log::listen();
    let wrong = batch(&[r#"{"id":1,"amount":"a lot"}"#, r#"{"id":2,"amount":[]}"#]);
    for _ in 0..3 {
        let refused = client.produce(TOPIC, 0, wrong.clone()).await;
        assert_eq!(refused.error_code, ErrorCode::InvalidRecord.code());
    }
    let nowhere = client.produce(TOPIC, 9, wrong.clone()).await;
    assert_eq!(nowhere.error_code, ErrorCode::UnknownTopicOrPartition.code());
    running.fake.topic("plain", 1);
    assert_ne!(client.produce("plain", 9, wrong).await.error_code, 0);
    let lines = log.lines("records were refused");
    assert_eq!(lines.len(), 2, "one for each kind, and none for what has no columns: {lines:?}");
    for part in
        ["INFO", "table=sales.orders", "INVALID_RECORD", "due to 2 record errors", "message='amount: "]
    {
        assert!(lines[0].contains(part), "{part}: {lines:?}");
    }
    assert!(lines[1].contains("partition=9") && lines[1].contains("UNKNOWN_TOPIC"), "{lines:?}");
}

#[tokio::test]
async fn i6_a_batch_is_stored_with_its_producers_sequence() {
    let (running, mut client, table) = with_orders().await;
    let stamp = ProducerStamp { id: 77, epoch: 3, base_sequence: 5 };
    let rows = [(None, Some(r#"{"id":1}"#)), (None, Some(r#"{"id":2}"#))];
    assert_eq!(client.produce(TOPIC, 0, keyed(&rows, Some(stamp))).await.error_code, 0);
    let stored = running.fake.stored(table, 0);
    let header = BatchHeader::parse(&stored[0]).expect("a batch");
    assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (77, 3, 5));
    assert_eq!(header.record_count, 2, "a repeat is told by sequence and count");
}

#[tokio::test]
async fn key_columns_come_as_key_and_go_as_key() {
    let running = start().await;
    let schema = orders(SchemaDraft { bucket_key: vec!["customer".into()], ..SchemaDraft::default() });
    running.fake.typed_table(TOPIC, rows_in(1), Some(schema)).expect("created");
    let mut client = Client::connect(running.address).await;
    let rows =
        [(Some(r#"{"customer":"Ada"}"#), Some(r#"{"id":1}"#)), (None, Some(r#"{"id":2,"customer":"Bob"}"#))];
    assert_eq!(client.produce(TOPIC, 0, keyed(&rows, None)).await.error_code, 0);
    let differ = [(Some(r#"{"customer":"Ada"}"#), Some(r#"{"id":3,"customer":"Eve"}"#))];
    let refused = client.produce(TOPIC, 0, keyed(&differ, None)).await;
    assert_eq!(refused.error_code, ErrorCode::InvalidRecord.code());
    let sent = fetched(&mut client, 0).await;
    let mut keys = Vec::new();
    for found in batches(sent) {
        let (header, batch) = found.expect("whole");
        for record in records(&header, batch, 1 << 20).expect("sound") {
            keys.push(record.expect("sound").key.expect("a key"));
        }
    }
    assert_eq!(keys, [&br#"{"customer":"Ada"}"#[..], br#"{"customer":"Bob"}"#]);
}

#[tokio::test]
async fn rows_of_an_older_schema_are_read_as_the_newest_has_them() {
    let (running, mut client, table) = with_orders().await;
    client.produce(TOPIC, 0, batch(&[r#"{"id":1,"customer":"Ada","amount":2}"#])).await;
    let default = Field { default: Some(Literal::Integer(42)), ..Field::new("count", DataType::Int) };
    let changes = [
        add(Field::new("note", DataType::String)),
        add(default),
        SchemaChange::DropColumn { path: vec!["amount".into()] },
        SchemaChange::RenameColumn { path: vec!["customer".into()], name: "who".into() },
    ];
    alter(&running.fake, table, &changes).await;
    let row = r#"{"id":2,"who":"Bob","note":"new","count":1}"#;
    assert_eq!(client.produce(TOPIC, 0, batch(&[row])).await.error_code, 0);
    let old = r#"{"id":1,"who":"Ada","note":null,"count":42}"#;
    let wanted = [(0, old.to_owned()), (1, row.to_owned())];
    assert_eq!(visible(fetched(&mut client, 0).await, 0), wanted);
    let refused = client.produce(TOPIC, 0, batch(&[r#"{"id":3,"amount":1}"#])).await;
    let text = refused.record_errors[0].batch_index_error_message.clone().expect("words");
    assert!(text.as_str().starts_with("there is no field `amount`"), "{text:?}");
}

fn add(column: Field) -> SchemaChange {
    SchemaChange::AddColumn { parent: Vec::new(), column, place: ColumnPlace::Last }
}

async fn alter(fake: &Fake, table: TableId, changes: &[SchemaChange]) {
    let state = fake.state();
    let table = state.table(table).expect("there");
    let current = table.schema().expect("columns");
    let next = Arc::new(current.alter(changes).expect("follows"));
    let options = table.options.clone();
    let altered = fake.alter_table(table.id, options.clone(), options, Some((current.id(), next))).await;
    altered.expect("altered");
}

#[tokio::test]
async fn i20_records_keep_within_what_is_asked_for_and_go_on_within_a_stored_batch() {
    let (_running, mut client, _) = with_orders().await;
    let long = "x".repeat(1_000);
    let rows: Vec<String> = (0..300).map(|id| format!(r#"{{"id":{id},"customer":"{long}"}}"#)).collect();
    let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
    for part in rows.chunks(100) {
        let sent = batch_of(part.iter().map(|row| row.as_bytes()), Codec::Zstd);
        assert_eq!(client.produce(TOPIC, 0, sent).await.error_code, 0);
    }
    for (partition_max, answer_max) in [(40_000, 50 << 20), (50 << 20, 40_000), (1, 50 << 20), (0, 0)] {
        let most = if partition_max.min(answer_max) < 2 { 1 } else { 39 };
        let (mut at, mut asked) = (0, 0);
        while at < 300 && asked < 20 {
            let mut request = fetch(TOPIC, &[(0, at)]);
            request.max_bytes = answer_max;
            request.topics[0].partitions[0].partition_max_bytes = partition_max;
            let mut answer = client.call(12, &request).await;
            let records = answer.responses.remove(0).partitions.remove(0).records.expect("never null");
            let found = visible(records.into_bytes(), 0);
            assert!((1..=most).contains(&found.len()), "{} records of {partition_max}", found.len());
            assert_eq!(found[0].0, at, "it goes on where it ended");
            at += i64::try_from(found.len()).expect("few");
            asked += 1;
        }
        assert!(at == 300 || most == 1, "{at} records in {asked} answers");
    }
}

#[tokio::test]
async fn rows_and_records_go_side_by_side_in_one_request_and_one_answer() {
    let (running, mut client, table) = with_orders().await;
    let plain = running.fake.topic("plain", 1);
    let long = format!(r#"{{"id":1,"customer":"{}"}}"#, "x".repeat(5_000));
    let mut request = produce("plain", 0, batch(&["not JSON"]), -1);
    request.topic_data.extend(produce(TOPIC, 0, batch(&[long.as_str(); 20]), -1).topic_data);
    request.topic_data.extend(produce("sales.none", 0, batch(&["{}"]), -1).topic_data);
    let answer = client.call(9, &request).await;
    let codes: Vec<i16> =
        answer.responses.iter().map(|topic| topic.partition_responses[0].error_code).collect();
    assert_eq!(codes, [0, 0, ErrorCode::UnknownTopicOrPartition.code()]);
    assert_eq!((running.fake.end(plain, 0), running.fake.end(table, 0)), ((1, 0), (20, 0)));
    // Rows find the room that records leave.
    let counts = |max_bytes, first: &str, second: &str| {
        let mut request = fetch(first, &[(0, 0)]);
        request.topics.extend(fetch(second, &[(0, 0)]).topics);
        request.max_bytes = max_bytes;
        request
    };
    for (max_bytes, first, wanted) in
        [(50 << 20, "plain", [1, 20]), (30_000, "plain", [1, 5]), (30_000, TOPIC, [5, 1])]
    {
        let second = if first == TOPIC { "plain" } else { TOPIC };
        let answer = client.call(12, &counts(max_bytes, first, second)).await;
        let found: Vec<usize> = answer
            .responses
            .into_iter()
            .map(|mut topic| {
                visible(topic.partitions.remove(0).records.expect("never null").into_bytes(), 0).len()
            })
            .collect();
        assert_eq!(found, wanted, "{first} within {max_bytes} bytes");
    }
}

#[tokio::test]
async fn i20_work_waits_for_memory_within_the_requests_time_and_writes_nothing_without() {
    let (running, mut client, table) = with_orders().await;
    let good = batch(&[r#"{"id":1}"#]);
    assert_eq!(client.produce(TOPIC, 0, good.clone()).await.error_code, 0);
    let all = running.fake.inflating(u64::from(Limits::default().inflated_bytes_max)).await;
    let mut request = produce(TOPIC, 0, good.clone(), -1);
    request.timeout_ms = 20;
    let answer = client.call(9, &request).await;
    let partition = &answer.responses[0].partition_responses[0];
    assert_eq!(partition.error_code, ErrorCode::RequestTimedOut.code());
    assert_eq!(running.fake.end(table, 0), (1, 0));
    // A fetch waits until there is some, and goes when its client does.
    let mut leaver = Client::connect(running.address).await;
    leaver.send(12, 1, &fetch(TOPIC, &[(0, 0)])).await;
    client.send(12, 2, &fetch(TOPIC, &[(0, 0)])).await;
    running.fake.until(|fake| fake.inflating.is_short()).await;
    drop(leaver);
    drop(all);
    let (_, answer) = client.receive::<mink_kafka_wire::messages::fetch::FetchRequest>(12).await;
    assert_eq!(
        answer.responses[0].partitions[0].records.as_ref().map_or(0, |records| records.len().min(1)),
        1
    );
    running.fake.until(|fake| fake.inflating.free_bytes() == fake.inflating.total_bytes()).await;
}

#[tokio::test]
async fn i20_a_batch_that_needs_more_than_there_is_is_too_large_and_not_stored() {
    let mut config = super::fake::config();
    config.limits.inflated_bytes_max = 1 << 20;
    let running = start_with(config).await;
    let schema = orders(SchemaDraft::default());
    let table = running.fake.typed_table(TOPIC, rows_in(1), Some(schema)).expect("created");
    let mut client = Client::connect(running.address).await;
    let blanks = format!(r#"{{"id":1{}}}"#, " ".repeat(600 << 10));
    let bomb = batch_of([blanks.as_bytes()].into_iter(), Codec::Zstd);
    assert!(bomb.len() < 1_000);
    assert_eq!(client.produce(TOPIC, 0, bomb).await.error_code, ErrorCode::MessageTooLarge.code());
    // A few bytes of text, and many of columns.
    let many = vec![r#"{"id":1}"#; 20_000];
    assert_eq!(client.produce(TOPIC, 0, batch(&many)).await.error_code, ErrorCode::MessageTooLarge.code());
    assert_eq!(client.produce(TOPIC, 0, batch(&many[..9_000])).await.error_code, 0);
    assert_eq!(running.fake.end(table, 0), (9_000, 0));
}
