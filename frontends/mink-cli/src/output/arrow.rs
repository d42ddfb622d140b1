//! Rows of JSON values as an Arrow IPC stream: whole numbers, numbers and booleans where a column has nothing else, all other values as text.
//!
//! Lives on: the command's task.
//! Owns: the types of the columns, which the first batch decides.
use crate::failure::Failure;
use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use serde_json::Value;
use std::io::Write;
use std::sync::Arc;

/// A stream that is being written.
pub(super) struct Batches<W: Write>(State<W>);

enum State<W: Write> {
    Waiting(Option<W>),
    Begun { writer: StreamWriter<W>, schema: SchemaRef },
}

impl<W: Write> Batches<W> {
    pub(super) fn new(out: W) -> Batches<W> {
        Batches(State::Waiting(Some(out)))
    }

    /// Writes rows as one batch. Those of the first decide what the columns are; without rows they are text.
    pub(super) fn write(&mut self, names: &[String], rows: &[Vec<Value>]) -> Result<(), Failure> {
        if let State::Waiting(out) = &mut self.0
            && let Some(out) = out.take()
        {
            let field = |(at, name): (usize, &String)| Field::new(name, data_type(rows, at), true);
            let schema = Arc::new(Schema::new(names.iter().enumerate().map(field).collect::<Vec<_>>()));
            let writer = StreamWriter::try_new(out, &schema).map_err(failure)?;
            self.0 = State::Begun { writer, schema };
        }
        match &mut self.0 {
            State::Begun { writer, schema } if !rows.is_empty() => {
                let fields = schema.fields().iter().enumerate();
                let columns: Result<Vec<ArrayRef>, Failure> =
                    fields.map(|(at, field)| column(rows, at, field)).collect();
                let batch = RecordBatch::try_new(Arc::clone(schema), columns?).map_err(failure)?;
                writer.write(&batch).map_err(failure)
            }
            State::Begun { .. } => Ok(()),
            State::Waiting(_) => Err(Failure::failed("the stream could not be begun")),
        }
    }

    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        match &mut self.0 {
            State::Begun { writer, .. } => writer.flush().map_err(failure),
            State::Waiting(_) => Ok(()),
        }
    }

    pub(super) fn finish(self) -> Result<(), Failure> {
        match self.0 {
            State::Begun { mut writer, .. } => {
                writer.finish().map_err(failure)?;
                writer.flush().map_err(failure)
            }
            State::Waiting(_) => Ok(()),
        }
    }
}

fn failure(error: ArrowError) -> Failure {
    match error {
        ArrowError::IoError(_, error) => error.into(),
        error => Failure::failed(format!("cannot write results: {error}")),
    }
}

/// What all values of a column are.
fn data_type(rows: &[Vec<Value>], at: usize) -> DataType {
    let of_one = |value: &Value| match value {
        Value::Bool(_) => DataType::Boolean,
        Value::Number(number) if number.is_i64() => DataType::Int64,
        Value::Number(number) if number.is_f64() => DataType::Float64,
        _ => DataType::Utf8,
    };
    let types = rows.iter().filter_map(|row| row.get(at)).filter(|value| !value.is_null()).map(of_one);
    let joined = types.reduce(|one, other| match (&one, &other) {
        _ if one == other => one,
        (DataType::Int64 | DataType::Float64, DataType::Int64 | DataType::Float64) => DataType::Float64,
        _ => DataType::Utf8,
    });
    joined.unwrap_or(DataType::Utf8)
}

/// The values of a column; one that is not of its type ends the output.
fn column(rows: &[Vec<Value>], at: usize, field: &Field) -> Result<ArrayRef, Failure> {
    let values = || rows.iter().map(|row| row.get(at).filter(|value| !value.is_null()));
    let unfit = |value: &Value| {
        Failure::failed(format!(
            "column {}: {value} comes after values of type {}; use --output json or csv",
            field.name(),
            field.data_type()
        ))
    };
    Ok(match field.data_type() {
        DataType::Int64 => Arc::new(Int64Array::from(all(values(), Value::as_i64, unfit)?)),
        DataType::Float64 => Arc::new(Float64Array::from(all(values(), Value::as_f64, unfit)?)),
        DataType::Boolean => Arc::new(BooleanArray::from(all(values(), Value::as_bool, unfit)?)),
        _ => Arc::new(values().map(|value| value.map(super::text)).collect::<StringArray>()),
    })
}

/// All values as what `read` makes of them; null stays null.
fn all<'a, T>(
    values: impl Iterator<Item = Option<&'a Value>>,
    read: impl Fn(&Value) -> Option<T>,
    unfit: impl Fn(&Value) -> Failure,
) -> Result<Vec<Option<T>>, Failure> {
    values.map(|value| value.map(|value| read(value).ok_or_else(|| unfit(value))).transpose()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_ipc::reader::StreamReader;
    use serde_json::json;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn read(bytes: &[u8]) -> Vec<RecordBatch> {
        StreamReader::try_new(bytes, None).expect("a stream").map(|batch| batch.expect("a batch")).collect()
    }

    #[test]
    fn columns_have_the_type_that_all_their_values_have() {
        let rows = [
            vec![json!(1), json!(1), json!(true), json!("a"), json!(null)],
            vec![json!(null), json!(1.5), json!(false), json!({"b": 2}), json!(null)],
        ];
        let mut bytes = Vec::new();
        let mut batches = Batches::new(&mut bytes);
        batches.write(&names(&["i", "n", "b", "t", "z"]), &rows).unwrap();
        batches.finish().unwrap();
        let [batch] = &read(&bytes)[..] else { panic!("one batch") };
        let types: Vec<DataType> =
            batch.schema().fields().iter().map(|field| field.data_type().clone()).collect();
        let expected =
            [DataType::Int64, DataType::Float64, DataType::Boolean, DataType::Utf8, DataType::Utf8];
        assert_eq!(types, expected);
        let text = batch.column(3).as_any().downcast_ref::<StringArray>().expect("text");
        assert_eq!((text.value(0), text.value(1)), ("a", "{\"b\":2}"));
        assert_eq!((batch.column(0).null_count(), batch.column(4).null_count()), (1, 2));
    }

    #[test]
    fn no_rows_are_a_stream_with_its_names() {
        let mut bytes = Vec::new();
        let mut batches = Batches::new(&mut bytes);
        batches.write(&names(&["a"]), &[]).unwrap();
        batches.finish().unwrap();
        let stream = StreamReader::try_new(&bytes[..], None).unwrap();
        assert_eq!((stream.schema().field(0).name().as_str(), stream.count()), ("a", 0));
    }

    #[test]
    fn a_later_value_of_another_type_is_refused_and_not_bent() {
        let mut bytes = Vec::new();
        let mut batches = Batches::new(&mut bytes);
        batches.write(&names(&["a"]), &[vec![json!(1)]]).unwrap();
        let refused = batches.write(&names(&["a"]), &[vec![json!("x")]]);
        assert!(
            matches!(refused, Err(Failure::Failed(words)) if words.contains("column a") && words.contains("json"))
        );
    }
}
