//! Few bytes that would become many (I20, K-29).

use super::super::message::Message;
use super::*;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, Int32Array, StringArray, StringViewArray};
use arrow_schema::{Field as ArrowField, SchemaRef};
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
