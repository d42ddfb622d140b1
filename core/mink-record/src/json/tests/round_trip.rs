//! What is written reads back as the same rows, and is written the same once more.

use super::random::{Random, arrow_rows, random_batch, random_schema};
use super::*;
use arrow_array::{Array, Time32MillisecondArray, Time32SecondArray};
use mink_types::schema::FieldId;
use proptest::prelude::*;
use std::sync::Arc;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn rows_of_every_type_read_back_as_they_were_written(seed: u64) {
        let mut random = Random(seed);
        let schema = random_schema(&mut random);
        let batch = random_batch(&mut random, &schema);
        let writer = JsonWriter::new(&schema);
        let mut rows = RowsBuilder::new(&schema);
        let mut texts = Vec::new();
        for row in 0..batch.num_rows() {
            let text = written(&writer, &batch, row);
            prop_assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok(), "{}", text);
            rows.push_json(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"));
            texts.push(text);
        }
        let read = rows.finish().expect("sound columns");
        prop_assert_eq!(&read, &batch);
        for (row, text) in texts.iter().enumerate() {
            prop_assert_eq!(&written(&writer, &read, row), text);
        }
        prop_assert!(rows.is_empty() && rows.bytes() == 0, "a finished builder begins anew");
    }

    #[test]
    fn a_refused_row_leaves_no_trace(seed: u64, cuts: Vec<prop::sample::Index>) {
        let mut random = Random(seed);
        let schema = random_schema(&mut random);
        let batch = random_batch(&mut random, &schema);
        let writer = JsonWriter::new(&schema);
        let mut rows = RowsBuilder::new(&schema);
        for row in 0..batch.num_rows() {
            let text = written(&writer, &batch, row).into_bytes();
            for cut in &cuts {
                let (len, bytes) = (rows.len(), rows.bytes());
                // A piece of an object is none.
                prop_assert!(rows.push_json(&text[..cut.index(text.len())]).is_err());
                prop_assert_eq!((rows.len(), rows.bytes()), (len, bytes));
            }
            rows.push_json(&text).expect("what was written");
        }
        prop_assert_eq!(rows.finish().expect("sound columns"), batch);
    }

    #[test]
    fn what_is_accepted_is_json_and_is_the_same_row_once_it_is_written(
        seed: u64,
        at: prop::sample::Index,
        with in prop_oneof![any::<u8>(), prop::sample::select(b"0123456789-+.eE,:[]{}\"\\ nullT".to_vec())],
    ) {
        let mut random = Random(seed);
        let schema = random_schema(&mut random);
        let batch = random_batch(&mut random, &schema);
        let writer = JsonWriter::new(&schema);
        let mut text = written(&writer, &batch, 0).into_bytes();
        let at = at.index(text.len());
        text[at] = with;
        let mut rows = RowsBuilder::new(&schema);
        if rows.push_json(&text).is_ok() {
            // serde_json refuses numbers beyond DOUBLE, which a DECIMAL may have: their text is looked at alone.
            let whole = serde_json::from_slice::<&serde_json::value::RawValue>(&text);
            prop_assert!(whole.is_ok(), "{}", String::from_utf8_lossy(&text));
            let read = rows.finish().expect("sound columns");
            rows.push_json(written(&writer, &read, 0).as_bytes()).expect("what was written");
            prop_assert_eq!(rows.finish().expect("sound columns"), read);
        }
    }

    #[test]
    fn a_projection_is_written_as_its_columns_are(seed: u64) {
        let mut random = Random(seed);
        let schema = random_schema(&mut random);
        let batch = random_batch(&mut random, &schema);
        let ids: Vec<FieldId> = schema.columns().iter().rev().map(|column| column.id).collect();
        let places: Vec<usize> = (0..ids.len()).rev().collect();
        let projected = batch.project(&places).expect("columns that there are");
        let of_all = JsonWriter::for_columns(&schema, &ids).expect("columns that there are");
        let of_some = JsonWriter::for_projection(&schema, &ids).expect("columns that there are");
        for row in 0..batch.num_rows() {
            prop_assert_eq!(written(&of_all, &batch, row), written(&of_some, &projected, row));
        }
    }
}

#[test]
fn a_batch_of_other_columns_is_refused_and_nothing_is_written() {
    let schema =
        schema(vec![Field::new("a", DataType::Int), Field::new("t", DataType::Time { precision: 0 })]);
    let writer = JsonWriter::new(&schema);
    let batch = rows_of(&schema, &[r#"{"a":1}"#]).expect("a row");
    let mut out = b"before".to_vec();
    let error = writer.write_row(&batch, 1, &mut out).expect_err("no such row");
    assert_eq!(error.message(), "no row 1 in a batch of 1");
    let column = |array: Arc<dyn Array>| arrow_rows(vec![("a", Arc::clone(batch.column(0))), ("t", array)]);
    let other = column(Arc::new(Time32MillisecondArray::from(vec![5])));
    let error = writer.write_row(&other, 0, &mut out).expect_err("another unit");
    assert_eq!(error.message(), "column \"t\" is not in the batch, or is of another type");
    let late = column(Arc::new(Time32SecondArray::from(vec![86_400])));
    let error = writer.write_row(&late, 0, &mut out).expect_err("no time of day");
    assert_eq!(error.message(), "column \"t\": a stored time is none of a day");
    assert_eq!(out, b"before");
    assert!(JsonWriter::for_columns(&schema, &[FieldId(9)]).is_err());
    let none = JsonWriter::for_columns(&schema, &[]).expect("no column is none that is not there");
    assert_eq!(written(&none, &batch, 0), "{}");
}
