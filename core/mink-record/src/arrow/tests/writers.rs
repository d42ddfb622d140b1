//! Which writers' schemas are taken for a table's, and what becomes of their rows.

use super::*;
use arrow_array::types::Int8Type;
use arrow_array::*;
use arrow_schema::{DataType as ArrowType, Field as ArrowField, SchemaRef, TimeUnit as Unit};
use std::sync::Arc;

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let fields: Vec<_> =
        columns.iter().map(|(name, array)| ArrowField::new(*name, array.data_type().clone(), true)).collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(Arc::new(arrow_schema::Schema::new(fields)), arrays).expect("sound columns")
}

/// The rows that the table has after the batch was written: as rows, and as a message if it can be one.
fn written(schema: &Schema, batch: &RecordBatch, same_layout: bool) -> Vec<Vec<Value>> {
    let intake = Intake::new(schema, &batch.schema()).expect("a schema that is taken");
    assert_eq!(intake.is_same_layout(), same_layout);
    let read = |stored: &Bytes| {
        let stored = ArrowBatch::parse(stored).expect("our own batch");
        rows_of(&stored.decode(schema).expect("our own batch"), schema.columns())
    };
    let rows = read(&intake.encode(batch, PLAIN, None).expect("sound rows"));
    let (metadata, body) = sent(batch);
    match accept_as_sent(&intake, &metadata, &body, ArrowCompression::None) {
        Ok(stored) => {
            assert_eq!(read(&stored), rows);
            let kept = ArrowBatch::parse(&stored).expect("accepted").body() == &body;
            assert_eq!(kept, same_layout);
        }
        Err(error) => {
            assert_eq!(error.kind(), Kind::SchemaMismatch);
            assert!(error.message().contains("dictionary"), "{error}");
        }
    }
    rows
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

#[test]
fn columns_are_found_by_name_in_any_order_and_nullable_ones_may_be_missing() {
    let filled = Field { default: Some(Literal::Integer(9)), ..column("c", DataType::Int) };
    let schema = schema(vec![
        required("a", DataType::Int),
        column("b", DataType::String),
        filled,
        column("d", DataType::Date),
    ]);
    let strings: ArrayRef = Arc::new(StringArray::from(vec![Some("x"), None]));
    let ints: ArrayRef = Arc::new(Int32Array::from(vec![1, 2]));
    let rows = written(&schema, &batch(vec![("b", strings), ("a", ints)]), false);
    assert_eq!(
        rows,
        [
            vec![Value::Integer(1), text("x"), Value::Integer(9), Value::Null],
            vec![Value::Integer(2), Value::Null, Value::Integer(9), Value::Null],
        ]
    );
}

#[test]
fn every_default_fills_its_column() {
    let defaults = [
        (DataType::Boolean, Literal::Boolean(true), Value::Boolean(true)),
        (DataType::TinyInt, Literal::Integer(-1), Value::Integer(-1)),
        (DataType::SmallInt, Literal::Integer(300), Value::Integer(300)),
        (DataType::Int, Literal::Integer(70_000), Value::Integer(70_000)),
        (DataType::BigInt, Literal::Integer(1 << 40), Value::Integer(1 << 40)),
        (DataType::Float, Literal::Double(1.5_f64.to_bits()), Value::Double(1.5_f64.to_bits())),
        (DataType::Double, Literal::Double(0.1_f64.to_bits()), Value::Double(0.1_f64.to_bits())),
        (DataType::Decimal { precision: 5, scale: 2 }, Literal::Decimal(-123), Value::Decimal(-123)),
        (DataType::Char { length: 3 }, Literal::Text("abc".into()), text("abc")),
        (DataType::Bytes, Literal::Bytes(vec![0, 255]), Value::Bytes(vec![0, 255])),
        (DataType::Date, Literal::Integer(19_000), Value::Integer(19_000)),
        (DataType::Time { precision: 0 }, Literal::Integer(5), Value::Integer(5)),
        (DataType::Time { precision: 2 }, Literal::Integer(50), Value::Integer(50)),
        (DataType::Time { precision: 6 }, Literal::Integer(500), Value::Integer(500)),
        (DataType::Time { precision: 9 }, Literal::Integer(501), Value::Integer(501)),
        (DataType::Timestamp { precision: 0 }, Literal::Integer(-5), Value::Integer(-5)),
        (DataType::Timestamp { precision: 3 }, Literal::Integer(55), Value::Integer(55)),
        (DataType::TimestampLtz { precision: 6 }, Literal::Integer(555), Value::Integer(555)),
        (DataType::TimestampLtz { precision: 9 }, Literal::Integer(556), Value::Integer(556)),
    ];
    let mut columns = vec![column("given", DataType::Int)];
    let mut expected = vec![Value::Integer(1)];
    for (at, (data_type, literal, value)) in defaults.into_iter().enumerate() {
        columns.push(Field { default: Some(literal), ..column(&format!("c{at}"), data_type) });
        expected.push(value);
    }
    let schema = schema(columns);
    let rows = written(&schema, &batch(vec![("given", Arc::new(Int32Array::from(vec![1])))]), false);
    assert_eq!(rows, [expected]);
}

#[test]
fn other_forms_of_a_type_are_taken() {
    let schema = schema(vec![
        column("large", DataType::String),
        column("view", DataType::String),
        column("bytes", DataType::Bytes),
        column("byte_view", DataType::Binary { length: 20 }),
        column("list", DataType::Array(Box::new(column("element", DataType::Int)))),
    ]);
    let mut list = builder::LargeListBuilder::new(builder::Int32Builder::new());
    list.append_value([Some(1), None]);
    list.append_null();
    let long = "longer than a view holds by itself";
    let rows = written(
        &schema,
        &batch(vec![
            ("large", Arc::new(LargeStringArray::from(vec![Some("x"), None]))),
            ("view", Arc::new(StringViewArray::from(vec![None, Some(long)]))),
            ("bytes", Arc::new(LargeBinaryArray::from(vec![Some(b"x".as_slice()), None]))),
            ("byte_view", Arc::new(BinaryViewArray::from(vec![None, Some(b"fourteen bytes".as_slice())]))),
            ("list", Arc::new(list.finish())),
        ]),
        false,
    );
    let list = Value::List(vec![Value::Integer(1), Value::Null]);
    assert_eq!(
        rows,
        [
            vec![text("x"), Value::Null, Value::Bytes(b"x".to_vec()), Value::Null, list],
            vec![Value::Null, text(long), Value::Null, Value::Bytes(b"fourteen bytes".to_vec()), Value::Null],
        ]
    );
}

#[test]
fn dictionaries_are_taken_as_rows_and_refused_as_messages() {
    let schema = schema(vec![column("c", DataType::String), column("n", DataType::BigInt)]);
    let texts: DictionaryArray<Int8Type> = vec![Some("a"), None, Some("a")].into_iter().collect();
    let keys = Int8Array::from(vec![Some(1), Some(0), None]);
    let numbers = DictionaryArray::<Int8Type>::new(keys, Arc::new(Int64Array::from(vec![Some(5), None])));
    let rows = written(&schema, &batch(vec![("c", Arc::new(texts)), ("n", Arc::new(numbers))]), false);
    assert_eq!(
        rows,
        [vec![text("a"), Value::Null], vec![Value::Null, Value::Integer(5)], vec![text("a"), Value::Null],]
    );
}

#[test]
fn instants_keep_their_value_whatever_zone_they_are_shown_in() {
    let schema = schema(vec![column("t", DataType::TimestampLtz { precision: 3 })]);
    let zoned = TimestampMillisecondArray::from(vec![1_700_000_000_000]).with_timezone("+02:00");
    let rows = written(&schema, &batch(vec![("t", Arc::new(zoned))]), true);
    assert_eq!(rows, [vec![Value::Integer(1_700_000_000_000)]]);
    let named = Arc::new(arrow_schema::Schema::new(vec![ArrowField::new(
        "t",
        ArrowType::Timestamp(Unit::Millisecond, Some("Europe/Berlin".into())),
        true,
    )]));
    assert!(Intake::new(&schema, &named).expect("an instant").is_same_layout());
}

#[test]
fn fields_of_a_row_are_found_by_name() {
    let row = DataType::Row(vec![
        column("x", DataType::Int),
        column("y", DataType::String),
        column("z", DataType::Int),
    ]);
    let schema = schema(vec![column("r", row)]);
    let fields: arrow_schema::Fields =
        vec![ArrowField::new("y", ArrowType::Utf8, true), ArrowField::new("x", ArrowType::Int32, true)]
            .into();
    let columns: Vec<ArrayRef> =
        vec![Arc::new(StringArray::from(vec!["a", "b"])), Arc::new(Int32Array::from(vec![1, 2]))];
    let nulls = vec![true, false].into();
    let rows = written(
        &schema,
        &batch(vec![("r", Arc::new(StructArray::new(fields, columns, Some(nulls))))]),
        false,
    );
    assert_eq!(rows, [vec![Value::Row(vec![Value::Integer(1), text("a"), Value::Null])], vec![Value::Null]]);
}

#[test]
fn a_map_may_name_its_entries_as_it_likes() {
    let (key, value) = (required("key", DataType::String), column("value", DataType::Int));
    let schema = schema(vec![column("m", DataType::Map { key: Box::new(key), value: Box::new(value) })]);
    let names = builder::MapFieldNames { entry: "key_value".into(), key: "k".into(), value: "v".into() };
    let mut map =
        builder::MapBuilder::new(Some(names), builder::StringBuilder::new(), builder::Int32Builder::new());
    map.keys().append_value("a");
    map.values().append_value(1);
    map.append(true).expect("a pair");
    map.append(false).expect("a null");
    let rows = written(&schema, &batch(vec![("m", Arc::new(map.finish()))]), true);
    assert_eq!(
        rows,
        [vec![Value::List(vec![Value::Row(vec![text("a"), Value::Integer(1)])])], vec![Value::Null]]
    );
}

#[test]
fn a_slice_of_rows_is_written_alone() {
    let mut random = Random(11);
    for _ in 0..50 {
        let schema = random_schema(&mut random);
        let rows = random_rows(&mut random, schema.columns());
        let whole = batch_of(&rows, schema.columns());
        let from = random.below(rows.len());
        let count = 1 + random.below(rows.len() - from);
        let stored = encode(&whole.slice(from, count), &schema, PLAIN, None).expect("sound rows");
        let decoded =
            ArrowBatch::parse(&stored).expect("our own batch").decode(&schema).expect("our own batch");
        assert_eq!(rows_of(&decoded, schema.columns()), rows[from..from + count]);
    }
}

fn refused(table: Vec<Field>, writer: Vec<(&str, ArrowType)>, named: &[&str]) {
    let fields: Vec<_> = writer.into_iter().map(|(name, kind)| ArrowField::new(name, kind, true)).collect();
    let writer: SchemaRef = Arc::new(arrow_schema::Schema::new(fields));
    let error = Intake::new(&schema(table), &writer).expect_err("must be refused");
    assert_eq!(error.kind(), Kind::SchemaMismatch);
    for name in named {
        assert!(error.message().contains(name), "{error} does not name {name}");
    }
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let table = || vec![column("a", DataType::Int), required("b", DataType::String)];
    let (int, text) = (ArrowType::Int32, ArrowType::Utf8);
    refused(
        table(),
        vec![("a", int.clone()), ("b", text.clone()), ("x", int.clone())],
        &["\"x\"", "[\"a\", \"b\"]"],
    );
    refused(table(), vec![("A", int.clone()), ("b", text.clone())], &["\"A\""]);
    refused(table(), vec![("a", int.clone())], &["\"b\"", "NOT NULL"]);
    refused(table(), vec![("b", text.clone()), ("a", int.clone()), ("b", text.clone())], &["\"b\"", "twice"]);
    refused(table(), vec![("a", ArrowType::Int64), ("b", text.clone())], &["\"a\"", "INT", "Int64", "Int32"]);
    refused(table(), vec![("a", ArrowType::Int16), ("b", text.clone())], &["\"a\""]);
    refused(table(), vec![("a", ArrowType::Null), ("b", text.clone())], &["\"a\""]);
    refused(table(), vec![("a", ArrowType::UInt32), ("b", text)], &["\"a\""]);
    let micros = |zone: Option<&str>| ArrowType::Timestamp(Unit::Microsecond, zone.map(Into::into));
    let instant = |precision| vec![column("t", DataType::TimestampLtz { precision })];
    refused(instant(3), vec![("t", micros(Some("UTC")))], &["\"t\""]);
    refused(instant(6), vec![("t", micros(None))], &["\"t\""]);
    let decimal = vec![column("d", DataType::Decimal { precision: 5, scale: 2 })];
    refused(decimal, vec![("d", ArrowType::Decimal128(6, 2))], &["\"d\"", "DECIMAL(5, 2)"]);
    let row = vec![column("r", DataType::Row(vec![column("x", DataType::Int)]))];
    let sent = |name: &str, kind| ArrowType::Struct(vec![ArrowField::new(name, kind, true)].into());
    refused(row.clone(), vec![("r", sent("y", int.clone()))], &["\"r.y\""]);
    refused(row.clone(), vec![("r", sent("x", ArrowType::Int8))], &["\"r.x\""]);
    refused(row, vec![("r", int)], &["\"r\""]);
    let key = ArrowType::Dictionary(
        Box::new(ArrowType::Int8),
        Box::new(ArrowType::Dictionary(Box::new(ArrowType::Int8), Box::new(ArrowType::Utf8))),
    );
    refused(vec![column("s", DataType::String)], vec![("s", key)], &["\"s\""]);
}

#[test]
fn rows_of_another_schema_than_stated_are_refused() {
    let schema = schema(vec![column("a", DataType::Int)]);
    let stated = batch(vec![("a", Arc::new(Int32Array::from(vec![1])))]);
    let intake = Intake::new(&schema, &stated.schema()).expect("the table's own types");
    let other = batch(vec![("a", Arc::new(Int64Array::from(vec![1])))]);
    assert_eq!(kind(intake.encode(&other, PLAIN, None)), Kind::SchemaMismatch);
}

#[test]
fn a_batch_above_the_tables_limit_is_refused() {
    let schema = schema(vec![column("a", DataType::Bytes)]);
    let batch = batch_of(&[vec![Value::Bytes(vec![7; 10_000])]], schema.columns());
    let (metadata, body) = sent(&batch);
    let intake = Intake::new(&schema, &batch.schema()).expect("the table's own schema");
    let within = |batch_bytes_max| {
        let limits = ProducedLimits { batch_bytes_max, inflated_bytes_max: 1 << 20 };
        intake.accept(IpcMessage { metadata: &metadata, body: &body }, limits, PLAIN, None)
    };
    let stored = within(20_000).expect("there is room");
    within(stored.len()).expect("exactly as much room");
    assert_eq!(kind(within(stored.len() - 1)), Kind::TooLarge);
    assert!(message(within(9_000)).contains("9000"));
}
