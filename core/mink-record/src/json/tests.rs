//! What the tests of JSON share: schemas, and rows as texts.

mod bounds;
mod parts;
mod random;
mod records;
mod refused;
mod round_trip;
mod values;

use super::*;
use arrow_array::RecordBatch;
use mink_types::schema::{DataType, Field, Schema, SchemaDraft};

fn schema(columns: Vec<Field>) -> Schema {
    Schema::create(SchemaDraft { columns, ..SchemaDraft::default() }).expect("a sound schema")
}

/// A table of one column `c`.
fn one(data_type: DataType) -> Schema {
    schema(vec![Field::new("c", data_type)])
}

fn rows_of(schema: &Schema, texts: &[&str]) -> Result<RecordBatch, JsonError> {
    let mut rows = RowsBuilder::new(schema);
    for text in texts {
        rows.push_json(text.as_bytes())?;
    }
    assert_eq!(rows.len(), texts.len());
    Ok(rows.finish().expect("sound columns"))
}

/// A row, and what it is written as.
fn again(schema: &Schema, text: &str) -> Result<String, JsonError> {
    Ok(written(&JsonWriter::new(schema), &rows_of(schema, &[text])?, 0))
}

fn written(writer: &JsonWriter, batch: &RecordBatch, row: usize) -> String {
    let mut out = Vec::new();
    writer.write_row(batch, row, &mut out).expect("a row of the batch");
    String::from_utf8(out).expect("JSON is text")
}

/// A value of the column `c`, and what it is written as.
fn value(data_type: DataType, text: &str) -> Result<String, JsonError> {
    let row = again(&one(data_type), &format!("{{\"c\":{text}}}"))?;
    let inner = row.strip_prefix("{\"c\":").and_then(|row| row.strip_suffix('}'));
    Ok(inner.expect("an object with one field").to_owned())
}

fn refused<T: std::fmt::Debug>(result: Result<T, JsonError>) -> String {
    result.expect_err("must be refused").to_string()
}
