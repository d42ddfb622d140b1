//! Few bytes that would become many (I20, K-29).

use super::super::message::Message;
use super::*;
use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Int8Array, Int32Array, ListArray, StringArray, StringViewArray,
    StructArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{Field as ArrowField, SchemaRef};
use mink_types::schema::{ColumnPlace, SchemaChange};
use std::sync::Arc;

const ZSTD: EncodeOptions = EncodeOptions { compression: ArrowCompression::Zstd };

fn one_column(array: ArrayRef) -> RecordBatch {
    let field = ArrowField::new("c", array.data_type().clone(), true);
    RecordBatch::try_new(Arc::new(arrow_schema::Schema::new(vec![field])), vec![array]).expect("one column")
}

#[test]
fn k_29_the_sum_of_what_buffers_inflate_to_is_capped() {
    let schema = schema(vec![column("a", DataType::Bytes), column("b", DataType::Bytes)]);
    let rows = [vec![Value::Bytes(vec![0; 100_000]), Value::Bytes(vec![0; 100_000])]];
    let batch = batch_of(&rows, schema.columns());
    let stored = encode(&batch, &schema, ZSTD, None).expect("sound rows");
    let stored = ArrowBatch::parse(&stored).expect("our own batch");
    assert!(stored.body().len() < 1_000);
    let intake = Intake::new(&schema, &batch.schema()).expect("the table's own schema");
    let message = IpcMessage { metadata: stored.metadata(), body: stored.body() };
    let within = |inflated_bytes_max| {
        let limits = ProducedLimits { batch_bytes_max: 1 << 20, inflated_bytes_max };
        intake.accept(message, limits, ZSTD, None)
    };
    // Two buffers of values; the offsets are too short to be compressed.
    within(200_000).expect("exactly so many");
    assert_eq!(kind(within(199_999)), Kind::InflatedTooLarge);
    assert_eq!(kind(within(0)), Kind::InflatedTooLarge);
}

#[test]
fn k_29_the_size_that_a_buffer_states_is_not_believed() {
    for compression in [ArrowCompression::Lz4, ArrowCompression::Zstd] {
        let schema = schema(vec![column("a", DataType::Bytes)]);
        let batch = batch_of(&[vec![Value::Bytes(vec![0; 10_000])]], schema.columns());
        let stored = encode(&batch, &schema, EncodeOptions { compression }, None).expect("sound rows");
        let stored = ArrowBatch::parse(&stored).expect("our own batch");
        let values = stored.message(&schema).expect("our own message").buffers[2];
        let intake = Intake::new(&schema, &batch.schema()).expect("the table's own schema");
        let with = |stated: i64| {
            let mut body = stored.body().to_vec();
            body[values.offset..values.offset + 8].copy_from_slice(&stated.to_le_bytes());
            accept_as_sent(&intake, stored.metadata(), &Bytes::from(body), compression)
        };
        with(10_000).expect("the truth");
        for (stated, expected) in [
            (9_999, Kind::InvalidRecord),
            (10_001, Kind::InvalidRecord),
            (0, Kind::InvalidRecord),
            (-1, Kind::InvalidRecord),
            (-2, Kind::InvalidRecord),
            (i64::MIN, Kind::InvalidRecord),
            (i64::MAX, Kind::InflatedTooLarge),
            (1 << 40, Kind::InflatedTooLarge),
        ] {
            assert_eq!(kind(with(stated)), expected, "{compression:?} {stated}");
        }
    }
}

#[test]
fn i20_values_that_many_rows_share_are_counted_for_each() {
    let schema = schema(vec![column("c", DataType::String)]);
    let long = "x".repeat(100_000);
    let keys = Int32Array::from(vec![0; 2_000]);
    let dictionary =
        DictionaryArray::<Int32Type>::new(keys, Arc::new(StringArray::from(vec![long.as_str()])));
    let refused = encode(&one_column(Arc::new(dictionary)), &schema, ZSTD, None);
    assert_eq!(kind(refused), Kind::InflatedTooLarge);

    let one = StringViewArray::from(vec![long.as_str()]);
    let view = one.views().first().copied().expect("one row");
    let views = StringViewArray::new(vec![view; 100].into(), one.data_buffers().to_vec(), None);
    let batch = one_column(Arc::new(views));
    let intake = Intake::new(&schema, &batch.schema()).expect("another form of text");
    let (metadata, body) = sent(&batch);
    assert!(body.len() < 110_000);
    let refused = accept_as_sent(&intake, &metadata, &body, ArrowCompression::Zstd);
    assert_eq!(kind(refused), Kind::InflatedTooLarge);
}

#[test]
fn i20_columns_that_were_left_out_are_counted_before_they_are_made() {
    let filled = Field { default: Some(Literal::Text("d".repeat(1_000))), ..column("d", DataType::String) };
    let schema = schema(vec![column("b", DataType::Boolean), filled]);
    let rows = vec![vec![Value::Boolean(true)]; 200_000];
    let batch = batch_of(&rows, schema.columns().get(..1).expect("two columns"));
    assert_eq!(kind(encode(&batch, &schema, ZSTD, None)), Kind::InflatedTooLarge);
    let fewer = encode(&batch.slice(0, 1_000), &schema, ZSTD, None).expect("a megabyte");
    let decoded = ArrowBatch::parse(&fewer).expect("our own batch").decode(&schema).expect("our own batch");
    assert_eq!(rows_of(&decoded.slice(999, 1), schema.columns())[0][1], Value::Text("d".repeat(1_000)));
}

#[test]
fn more_rows_than_a_batch_may_have_are_refused() {
    let schema = schema(vec![column("b", DataType::Boolean)]);
    let array: ArrayRef = Arc::new(arrow_array::BooleanArray::from(vec![true; ARROW_ROWS_MAX + 1]));
    let batch =
        RecordBatch::try_new(SchemaRef::clone(&arrow_schema(&schema)), vec![array]).expect("one column");
    assert_eq!(kind(encode(&batch, &schema, ZSTD, None)), Kind::TooLarge);
    let most = encode(&batch.slice(0, ARROW_ROWS_MAX), &schema, ZSTD, None).expect("as many as there may be");
    let most = ArrowBatch::parse(&most).expect("our own batch");
    assert_eq!(most.decode(&schema).expect("our own batch").num_rows(), ARROW_ROWS_MAX);
    let (metadata, body) = sent(&batch);
    let intake = Intake::new(&schema, &batch.schema()).expect("the table's own schema");
    // What a message may have is more: whoever receives it makes several batches of it.
    assert_eq!(kind(accept_as_sent(&intake, &metadata, &body, ArrowCompression::Zstd)), Kind::TooLarge);
    assert!(Message::read(&metadata, layout::Counts::default(), body.len()).is_err());
}

/// Few rows of an old schema, and a column that was added with a long default.
#[test]
fn i20_defaults_are_counted_before_they_are_made_and_rows_come_in_parts() {
    let old = schema(vec![column("n", DataType::TinyInt)]);
    let long = Field { default: Some(Literal::Text("x".repeat(1_000))), ..column("t", DataType::String) };
    let add = SchemaChange::AddColumn { parent: Vec::new(), column: long, place: ColumnPlace::Last };
    let new = old.alter(&[add]).expect("a sound change");
    let mapping = Mapping::new(&old, &new, None).expect("the next schema");
    let rows = batch_of(&vec![vec![Value::Integer(1)]; 200_000], old.columns());
    assert_eq!(kind(mapping.map(&rows)), Kind::InflatedTooLarge);
    let first = mapping.map_first(&rows).expect("half of them fit");
    assert_eq!(first.num_rows(), 100_000);
    // A column that is not wanted costs nothing.
    let other = Mapping::new(&old, &new, Some(&[FieldId(1)])).expect("an old column");
    assert_eq!(other.map_first(&rows).expect("all of them").num_rows(), 200_000);
}

/// Lists of many small rows, and a field that was added to them; or that was widened.
#[test]
fn i20_what_is_added_within_lists_is_counted_for_the_rows_that_are_mapped() {
    let row = DataType::Row(vec![column("a", DataType::TinyInt)]);
    let old = schema(vec![column("l", DataType::Array(Box::new(column("element", row))))]);
    let path = |path: &[&str]| path.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let decimal = column("b", DataType::Decimal { precision: 38, scale: 0 });
    let add = SchemaChange::AddColumn {
        parent: path(&["l", "element"]),
        column: decimal,
        place: ColumnPlace::Last,
    };
    let widen = SchemaChange::ChangeType { path: path(&["l", "element", "a"]), data_type: DataType::BigInt };
    let DataType::Array(element) = &old.columns()[0].data_type else { panic!("it is a list") };
    let DataType::Row(fields) = &element.data_type else { panic!("of rows") };
    let lists = |lengths: &[usize]| {
        let values: ArrayRef = Arc::new(Int8Array::from(vec![1; lengths.iter().sum()]));
        let rows = StructArray::from(vec![(arrow_field(&fields[0]), values)]);
        let offsets = OffsetBuffer::from_lengths(lengths.iter().copied());
        let list = ListArray::new(arrow_field(element), offsets, Arc::new(rows), None);
        RecordBatch::try_new(arrow_schema(&old), vec![Arc::new(list)]).expect("one column")
    };
    let many_added: usize = 10 << 20;
    for (change, many) in [(add, many_added), (widen, 2 * many_added)] {
        let new = old.alter(&[change]).expect("a sound change");
        let mapping = Mapping::new(&old, &new, None).expect("the next schema");
        assert_eq!(kind(mapping.map_first(&lists(&[many]))), Kind::InflatedTooLarge);
        let first = mapping.map_first(&lists(&[many / 2, many / 2, 1])).expect("one fits");
        assert_eq!(first.num_rows(), 1);
    }
}
