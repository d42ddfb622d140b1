//! The Rust client of Flight against a real node.
//!
//! Lives on: the test's tokio runtime.

mod anew;
mod follow;
mod values;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    ArrayRef, BinaryViewArray, DictionaryArray, Int64Array, LargeStringArray, RecordBatch, StringArray,
    StringViewArray,
};
use mink_client::flight::{FlightClient, FlightErrorKind, RowStream, Start, Writer};
use mink_testkit::node::Node;
use rand::Rng as _;

use crate::setup::{self, Folder, until};

#[path = "../../../frontends/mink-client/examples/orders/orders.rs"]
mod orders;

const DRAINS_WITHIN: Duration = Duration::from_secs(30);
/// Rows that are there, or acks of what was written, come within this.
const COMES_WITHIN: Duration = Duration::from_mins(1);
const ROUNDS: u32 = 3;
/// From the first acks after a start to the kill: anywhere in here.
const ALIVE_MS_MAX: u64 = 400;

/// A node with a database, and a client of it.
async fn started(folder: &Folder, database: &str) -> (Node, FlightClient) {
    let node = setup::node(folder).start_on_fixed_ports().await.unwrap();
    let client = FlightClient::connect(node.flight()).await.unwrap();
    client.sql(&format!("CREATE DATABASE {database}")).await.unwrap();
    (node, client)
}

fn longs(values: impl IntoIterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

fn rows(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).unwrap()
}

/// All values of a column of numbers, by partition and bucket, in their order.
async fn read(mut rows: RowStream, column: &str) -> BTreeMap<(u64, u32), Vec<i64>> {
    let mut found: BTreeMap<(u64, u32), Vec<i64>> = BTreeMap::new();
    while let Some(rows) = rows.next().await {
        let rows = rows.unwrap();
        let values = rows.batch.column_by_name(column).unwrap().as_primitive::<Int64Type>();
        found.entry((rows.partition, rows.bucket)).or_default().extend(values.values());
    }
    found
}

/// Every number from 0 on, each once, and rising within each place.
fn assert_each_once(found: &BTreeMap<(u64, u32), Vec<i64>>, count: i64) {
    for (place, values) in found {
        assert!(values.is_sorted_by(|a, b| a < b), "{place:?} is out of order or has a row twice");
    }
    let mut all: Vec<i64> = found.values().flatten().copied().collect();
    all.sort_unstable();
    assert_eq!(all, (0..count).collect::<Vec<_>>());
}

#[tokio::test]
async fn every_type_comes_back_as_it_was_written() {
    let folder = Folder::new();
    let (mut node, client) = started(&folder, "types").await;
    client.sql(values::CREATE).await.unwrap();
    let schema = client.schema("types.everything").await.unwrap();
    let columns = |count| {
        let column =
            |field: &Arc<arrow_schema::Field>| values::column(field.data_type(), field.is_nullable(), count);
        schema.fields().iter().map(column).collect()
    };
    let written = RecordBatch::try_new(Arc::clone(&schema), columns(200)).unwrap();
    let writer = client.writer("types.everything").open().await.unwrap();
    assert_eq!(writer.write(written.slice(0, 0)).await.unwrap().await, Ok(Vec::new()), "no rows are nothing");
    drop(writer.write(written.slice(0, 3)).await.unwrap());
    drop(writer.write(written.slice(3, 197)).await.unwrap());
    let stored = writer.close().await.unwrap();
    assert_eq!(stored.iter().map(|stored| stored.rows).sum::<u64>(), 200);
    // From memory, and from the store.
    for restarted in [false, true] {
        if restarted {
            node.stop(DRAINS_WITHIN).await.unwrap();
            node.restart().await.unwrap();
        }
        let mut found = client.scan("types.everything").rows();
        let mut at = 0;
        while let Some(rows) = found.next().await {
            let batch = rows.unwrap().batch;
            for (field, column) in schema.fields().iter().zip(batch.columns()) {
                let expected = written.column_by_name(field.name()).unwrap().slice(at, batch.num_rows());
                assert!(values::same(column.as_ref(), expected.as_ref()), "{}: {column:?}", field.name());
            }
            at += batch.num_rows();
        }
        assert_eq!(at, 200);
    }
    node.stop(DRAINS_WITHIN).await.unwrap();
}

#[tokio::test]
async fn other_forms_of_a_type_are_taken_in_any_order_of_columns_and_defaults_fill_in() {
    let folder = Folder::new();
    let (mut node, client) = started(&folder, "forms").await;
    let create = "CREATE TABLE forms.words (id BIGINT NOT NULL, word STRING, raw BYTES, kind STRING DEFAULT 'plain') WITH ('bucket.num' = '3', 'bucket.key' = 'word')";
    client.sql(create).await.unwrap();
    let words = ["one", "two", "three", "two", "one", "six"];
    let dictionary: DictionaryArray<Int32Type> = words.into_iter().collect();
    let forms: [ArrayRef; 4] = [
        Arc::new(StringArray::from_iter_values(words)),
        Arc::new(LargeStringArray::from_iter_values(words)),
        Arc::new(StringViewArray::from_iter_values(words)),
        Arc::new(dictionary),
    ];
    let writer = client.writer("forms.words").idempotent().open().await.unwrap();
    for (form, word) in (0..).zip(forms) {
        let raw = Arc::new(BinaryViewArray::from_iter_values(words.map(str::as_bytes))) as ArrayRef;
        let id = longs(6 * form..6 * form + 6);
        drop(writer.write(rows(vec![("word", word), ("raw", raw), ("id", id)])).await.unwrap());
    }
    writer.close().await.unwrap();
    let (mut found, mut places) = (BTreeMap::new(), BTreeMap::new());
    let mut scan = client.scan("forms.words").rows();
    while let Some(rows) = scan.next().await {
        let rows = rows.unwrap();
        let text = |name| rows.batch.column_by_name(name).unwrap().as_string::<i32>();
        let ids = rows.batch.column_by_name("id").unwrap().as_primitive::<Int64Type>();
        for (at, id) in ids.values().iter().enumerate() {
            assert_eq!(text("kind").value(at), "plain");
            let word = text("word").value(at).to_owned();
            assert_eq!(
                *places.entry(word.clone()).or_insert(rows.bucket),
                rows.bucket,
                "one word, one bucket"
            );
            found.insert(*id, word);
        }
    }
    let expected: BTreeMap<i64, String> = (0..24).zip(words.map(str::to_owned).into_iter().cycle()).collect();
    assert_eq!(found, expected);
    node.stop(DRAINS_WITHIN).await.unwrap();
}

/// The server refuses rows of another bucket than the one that a call names: that it takes them shows that both hash alike.
#[tokio::test]
async fn rows_go_to_the_partition_and_bucket_of_their_values_and_partitions_are_made() {
    let folder = Folder::new();
    let (mut node, client) = started(&folder, "places").await;
    let create = "CREATE TABLE places.orders (id BIGINT NOT NULL, region STRING NOT NULL, day DATE NOT NULL, n BIGINT) PARTITIONED BY (region, day) WITH ('bucket.num' = '4', 'bucket.key' = 'id')";
    client.sql(create).await.unwrap();
    let regions = ["eu", "us", "it's \"far\""];
    let batch = |from: i64, to: i64| {
        let region = (from..to).map(|n| regions[usize::try_from(n % 3).unwrap()]);
        let day = (from..to).map(|n| i32::try_from(20_000 + n % 2).unwrap());
        rows(vec![
            ("n", longs(from..to)),
            ("id", longs((from..to).map(|n| n * n))),
            ("region", Arc::new(StringArray::from_iter_values(region))),
            ("day", Arc::new(arrow_array::Date32Array::from_iter_values(day))),
        ])
    };
    let writer = client.writer("places.orders").idempotent().open().await.unwrap();
    let receipts = [writer.write(batch(0, 500)).await.unwrap(), writer.write(batch(500, 700)).await.unwrap()];
    for (receipt, rows) in receipts.into_iter().zip([500, 200]) {
        let placed = receipt.await.unwrap();
        assert_eq!(placed.iter().map(|placed| placed.rows).sum::<u64>(), rows);
    }
    let name = writer.id().unwrap();
    writer.close().await.unwrap();
    let shown = client.sql("SHOW PARTITIONS places.orders").await.unwrap();
    assert_eq!(shown.len(), 6, "{shown:?}");
    let found = read(client.scan("places.orders").rows(), "n").await;
    assert_eq!(found.len(), 24);
    assert_each_once(&found, 700);
    let far =
        client.scan("places.orders").partition("region", regions[2]).partition("day", "2024-10-04").rows();
    let far: Vec<i64> = read(far, "n").await.into_values().flatten().collect();
    assert!(!far.is_empty() && far.iter().all(|n| n % 6 == 2), "{far:?}");
    // Another process reads the same source again and goes on.
    let again = client.writer("places.orders").replay(name).open().await.unwrap();
    for (from, to) in [(0, 350), (350, 700), (700, 900)] {
        drop(again.write(batch(from, to)).await.unwrap());
    }
    again.close().await.unwrap();
    assert_each_once(&read(client.scan("places.orders").rows(), "n").await, 900);
    node.stop(DRAINS_WITHIN).await.unwrap();
}

/// Writes numbers until it is told to stop; how many.
async fn write_on(writer: Writer, acked: Arc<AtomicU64>, stop: Arc<AtomicBool>) -> i64 {
    let (mut next, mut receipts) = (0_i64, VecDeque::new());
    while !stop.load(Ordering::Relaxed) {
        let to = next + 1 + next % 40;
        let batch = rows(vec![("id", longs((next..to).map(|n| n % 101))), ("n", longs(next..to))]);
        receipts.push_back(writer.write(batch).await.unwrap());
        next = to;
        if receipts.len() > 20 {
            let placed = receipts.pop_front().expect("there are some").await.unwrap();
            acked.fetch_add(placed.iter().map(|placed| placed.rows).sum(), Ordering::Relaxed);
        }
    }
    writer.close().await.unwrap();
    next
}

/// I1, I2, I6: neither the writer nor the tail knows of the kills.
#[tokio::test]
async fn a_writer_and_a_tail_go_on_over_kill_9_of_the_node_without_a_hole_or_a_row_twice() {
    let folder = Folder::new();
    let (mut node, client) = started(&folder, "killed").await;
    let create = "CREATE TABLE killed.rows (id BIGINT NOT NULL, n BIGINT) WITH ('bucket.num' = '3', 'bucket.key' = 'id')";
    client.sql(create).await.unwrap();
    let tail = client.scan("killed.rows").from(Start::Latest).follow();
    let ended = Arc::new(AtomicU64::new(u64::MAX));
    let following = tokio::spawn(follow(tail, Arc::clone(&ended)));
    let writer =
        client.writer("killed.rows").idempotent().batch_bytes(4 << 10).linger(Duration::from_millis(2));
    let writer = writer.unacked_bytes(64 << 10).open().await.unwrap();
    let (acked, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let writing = tokio::spawn(write_on(writer, Arc::clone(&acked), Arc::clone(&stop)));
    let progress = async || {
        let before = acked.load(Ordering::Relaxed);
        let more = || async { (acked.load(Ordering::Relaxed) > before + 500).then_some(()) };
        until("rows are acked", COMES_WITHIN, more).await;
    };
    for round in 1..=setup::rounds(ROUNDS) {
        progress().await;
        let alive = Duration::from_millis(rand::rng().random_range(0..ALIVE_MS_MAX));
        println!("round {round}: kill {alive:?} after the first acks");
        // Not a wait for anything: the kill comes at a random moment.
        tokio::time::sleep(alive).await;
        node.crash_and_restart().await.unwrap();
    }
    progress().await;
    stop.store(true, Ordering::Relaxed);
    let count = tokio::time::timeout(COMES_WITHIN, writing).await.expect("it ends").unwrap();
    println!("{count} rows");
    ended.store(u64::try_from(count).unwrap(), Ordering::Relaxed);
    let stored = read(client.scan("killed.rows").rows(), "n").await;
    assert_each_once(&stored, count);
    // The tail has no end of its own: one more row lets it look whether it has all.
    let last = client.writer("killed.rows").open().await.unwrap();
    last.write(rows(vec![("id", longs([0])), ("n", longs([count]))])).await.unwrap().await.unwrap();
    let followed = tokio::time::timeout(COMES_WITHIN, following).await.expect("all rows come").unwrap();
    assert_each_once(&followed, count + 1);
    node.stop(DRAINS_WITHIN).await.unwrap();
}

/// Reads a tail until it has more rows than those.
async fn follow(mut tail: RowStream, count: Arc<AtomicU64>) -> BTreeMap<(u64, u32), Vec<i64>> {
    let (mut found, mut rows): (BTreeMap<(u64, u32), Vec<i64>>, u64) = (BTreeMap::new(), 0);
    while rows <= count.load(Ordering::Relaxed) {
        let next = tail.next().await.expect("a tail has no end").unwrap();
        rows += next.batch.num_rows() as u64;
        let values = next.batch.column_by_name("n").unwrap().as_primitive::<Int64Type>();
        found.entry((next.partition, next.bucket)).or_default().extend(values.values());
    }
    found
}

#[tokio::test]
async fn a_table_is_altered_while_it_is_written_and_both_kinds_of_rows_are_read() {
    let folder = Folder::new();
    let (mut node, client) = started(&folder, "altered").await;
    client.sql("CREATE TABLE altered.rows (n BIGINT)").await.unwrap();
    let writer = client.writer("altered.rows").idempotent().batch_bytes(1).open().await.unwrap();
    for n in 0..50 {
        drop(writer.write(rows(vec![("n", longs([n]))])).await.unwrap());
        if n == 25 {
            client.sql("ALTER TABLE altered.rows ADD COLUMN note STRING FIRST").await.unwrap();
        }
    }
    let note = Arc::new(StringArray::from_iter_values(["new"; 50])) as ArrayRef;
    drop(writer.write(rows(vec![("n", longs(50..100)), ("note", note)])).await.unwrap());
    writer.flush().await.unwrap();
    let refused = writer.write(rows(vec![("gone", longs([1]))])).await.unwrap().await;
    assert_eq!(refused.map_err(|error| error.kind()), Err(FlightErrorKind::Refused));
    let mut scan = client.scan("altered.rows").rows();
    let (mut numbers, mut notes) = (Vec::new(), 0);
    while let Some(rows) = scan.next().await {
        let batch = rows.unwrap().batch;
        assert_eq!(batch.schema().field(0).name(), "note");
        notes += batch.num_rows() - batch.column(0).null_count();
        numbers.extend_from_slice(batch.column(1).as_primitive::<Int64Type>().values());
    }
    assert_eq!(numbers, (0..100).collect::<Vec<_>>());
    assert_eq!(notes, 50);
    node.stop(DRAINS_WITHIN).await.unwrap();
}

#[tokio::test]
async fn t_7_rows_for_a_table_that_was_dropped_do_not_go_to_its_successor() {
    let folder = Folder::new();
    let (mut node, client) = started(&folder, "dropped").await;
    for idempotent in [false, true] {
        client.sql("CREATE TABLE dropped.rows (n BIGINT)").await.unwrap();
        let builder = client.writer("dropped.rows").batch_bytes(1);
        let writer = if idempotent { builder.idempotent() } else { builder }.open().await.unwrap();
        writer.write(rows(vec![("n", longs([0]))])).await.unwrap().await.unwrap();
        client.sql("DROP TABLE dropped.rows").await.unwrap();
        client.sql("CREATE TABLE dropped.rows (n BIGINT)").await.unwrap();
        let other = client.writer("dropped.rows").open().await.unwrap();
        other.write(rows(vec![("n", longs([1_000]))])).await.unwrap().await.unwrap();
        for n in 1..3 {
            let refused = writer.write(rows(vec![("n", longs([n]))])).await.unwrap().await;
            let error = refused.expect_err("its table is gone");
            assert_eq!(error.kind(), FlightErrorKind::NotFound, "{error}");
            assert!(error.message().contains("dropped"), "{error}");
        }
        let found = read(client.scan("dropped.rows").rows(), "n").await;
        assert_eq!(found.into_values().flatten().collect::<Vec<_>>(), [1_000]);
        client.sql("DROP TABLE dropped.rows").await.unwrap();
    }
    node.stop(DRAINS_WITHIN).await.unwrap();
}

#[tokio::test]
async fn a_partition_value_that_is_too_long_is_refused_at_once() {
    let folder = Folder::new();
    let (mut node, client) = started(&folder, "long").await;
    let create = "CREATE TABLE long.rows (n BIGINT, place STRING NOT NULL) PARTITIONED BY (place)";
    client.sql(create).await.unwrap();
    let writer = client.writer("long.rows").open().await.unwrap();
    let place = Arc::new(StringArray::from_iter_values(["x".repeat(1_025)])) as ArrayRef;
    let refused = writer.write(rows(vec![("n", longs([1])), ("place", place)])).await.unwrap().await;
    let error = refused.expect_err("no partition has such a name");
    assert_eq!(error.kind(), FlightErrorKind::Refused, "{error}");
    assert!(error.message().contains("its values may have 1024 bytes"), "{error}");
    node.stop(DRAINS_WITHIN).await.unwrap();
}

#[tokio::test]
async fn the_clients_example_runs() {
    let folder = Folder::new();
    let mut node = setup::node(&folder).start().await.unwrap();
    let said = orders::run(node.flight()).await.unwrap();
    assert_eq!(said[1..], ["10 orders below 30 are of the us", "110 rows were followed", "10 rows were new"]);
    node.stop(DRAINS_WITHIN).await.unwrap();
}
