//! Rows as plain values, and arrays of them: what the format is compared with.
#![expect(clippy::from_iter_instead_of_collect, reason = "the type stands in front")]

use super::super::types::{arrow_type, entries_field};
use super::*;
use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Float32Type, Float64Type, Int64Type};
use arrow_array::*;
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::DataType as ArrowType;
use std::sync::Arc;

/// A value of any type.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Null,
    Boolean(bool),
    /// Whole numbers, dates, times.
    Integer(i64),
    /// The bits of a DOUBLE; a FLOAT is widened.
    Double(u64),
    Decimal(i128),
    Text(String),
    Bytes(Vec<u8>),
    /// Elements, or for a MAP pairs.
    List(Vec<Value>),
    Row(Vec<Value>),
}

/// Rows to columns with the table's Arrow schema.
pub(super) fn batch_of(rows: &[Vec<Value>], columns: &[Field]) -> RecordBatch {
    let fields: arrow_schema::Fields = columns.iter().map(arrow_field).collect();
    let arrays = (0..columns.len())
        .map(|at| array_of(&rows.iter().map(|row| row[at].clone()).collect::<Vec<_>>(), &columns[at]))
        .collect();
    let schema = Arc::new(arrow_schema::Schema::new(fields));
    RecordBatch::try_new(schema, arrays).expect("columns of the schema")
}

pub(super) fn array_of(values: &[Value], field: &Field) -> ArrayRef {
    let nulls = NullBuffer::from_iter(values.iter().map(|value| *value != Value::Null));
    let nulls = Some(nulls).filter(|nulls| nulls.null_count() > 0);
    let wanted = arrow_type(&field.data_type);
    match &field.data_type {
        DataType::Boolean => Arc::new(BooleanArray::from_iter(values.iter().map(|value| match value {
            Value::Boolean(value) => Some(*value),
            _ => None,
        }))),
        DataType::Float => Arc::new(Float32Array::from_iter(values.iter().map(double).map(|value| {
            #[expect(clippy::cast_possible_truncation, reason = "it was widened")]
            value.map(|value| value as f32)
        }))),
        DataType::Double => Arc::new(Float64Array::from_iter(values.iter().map(double))),
        DataType::Decimal { .. } => {
            let decimals = values.iter().map(|value| match value {
                Value::Decimal(value) => Some(*value),
                _ => None,
            });
            Arc::new(PrimitiveArray::<Decimal128Type>::from_iter(decimals).with_data_type(wanted))
        }
        DataType::Char { .. } | DataType::String => {
            Arc::new(StringArray::from_iter(values.iter().map(|value| match value {
                Value::Text(text) => Some(text.clone()),
                _ => None,
            })))
        }
        DataType::Binary { .. } | DataType::Bytes => {
            Arc::new(BinaryArray::from_iter(values.iter().map(|value| match value {
                Value::Bytes(bytes) => Some(bytes.clone()),
                _ => None,
            })))
        }
        DataType::Array(element) => {
            let (offsets, below) = flat(values);
            let below = array_of(&below, element);
            Arc::new(ListArray::new(arrow_field(element), offsets, below, nulls))
        }
        DataType::Map { key, value } => {
            let (offsets, pairs) = flat(values);
            let entries = entries_field(key, value);
            let columns =
                vec![array_of(&below(&pairs, 0, key), key), array_of(&below(&pairs, 1, value), value)];
            let ArrowType::Struct(fields) = entries.data_type().clone() else {
                unreachable!("entries are pairs")
            };
            let pairs = StructArray::new(fields, columns, None);
            Arc::new(MapArray::new(entries, offsets, pairs, nulls, false))
        }
        DataType::Row(fields) => {
            let columns = fields.iter().enumerate();
            let columns = columns.map(|(at, field)| array_of(&below(values, at, field), field)).collect();
            Arc::new(StructArray::new(fields.iter().map(arrow_field).collect(), columns, nulls))
        }
        _ => integers(values, &wanted),
    }
}

fn double(value: &Value) -> Option<f64> {
    match value {
        Value::Double(bits) => Some(f64::from_bits(*bits)),
        _ => None,
    }
}

fn integers(values: &[Value], wanted: &ArrowType) -> ArrayRef {
    let wide: ArrayRef = Arc::new(Int64Array::from_iter(values.iter().map(|value| match value {
        Value::Integer(value) => Some(*value),
        _ => None,
    })));
    match wanted {
        ArrowType::Date32 | ArrowType::Time32(_) => {
            let narrow = arrow_cast::cast(&wide, &ArrowType::Int32).expect("integers");
            conform::retyped(&narrow, wanted).expect("the same layout")
        }
        ArrowType::Time64(_) | ArrowType::Timestamp(..) => {
            conform::retyped(&wide, wanted).expect("the same layout")
        }
        _ => arrow_cast::cast(&wide, wanted).expect("integers"),
    }
}

fn flat(values: &[Value]) -> (OffsetBuffer<i32>, Vec<Value>) {
    let lists = values.iter().map(|value| match value {
        Value::List(values) => values.clone(),
        _ => Vec::new(),
    });
    let lists: Vec<_> = lists.collect();
    (OffsetBuffer::from_lengths(lists.iter().map(Vec::len)), lists.concat())
}

/// The field `at` of each row; where the row is null, what any array may hold there.
fn below(rows: &[Value], at: usize, field: &Field) -> Vec<Value> {
    let missing = || if field.nullable { Value::Null } else { zero(&field.data_type) };
    rows.iter()
        .map(|row| match row {
            Value::Row(fields) => fields[at].clone(),
            _ => missing(),
        })
        .collect()
}

fn zero(data_type: &DataType) -> Value {
    match data_type {
        DataType::Boolean => Value::Boolean(false),
        DataType::Float | DataType::Double => Value::Double(0),
        DataType::Decimal { .. } => Value::Decimal(0),
        DataType::Char { .. } | DataType::String => Value::Text(String::new()),
        DataType::Binary { .. } | DataType::Bytes => Value::Bytes(Vec::new()),
        DataType::Array(_) | DataType::Map { .. } => Value::List(Vec::new()),
        DataType::Row(fields) => Value::Row(
            fields
                .iter()
                .map(|field| if field.nullable { Value::Null } else { zero(&field.data_type) })
                .collect(),
        ),
        _ => Value::Integer(0),
    }
}

/// Columns to rows.
pub(super) fn rows_of(batch: &RecordBatch, columns: &[Field]) -> Vec<Vec<Value>> {
    let columns: Vec<Vec<Value>> = columns
        .iter()
        .zip(batch.columns())
        .map(|(column, array)| values_of(array, &column.data_type))
        .collect();
    (0..batch.num_rows()).map(|row| columns.iter().map(|column| column[row].clone()).collect()).collect()
}

fn values_of(array: &ArrayRef, data_type: &DataType) -> Vec<Value> {
    (0..array.len())
        .map(|row| if array.is_null(row) { Value::Null } else { value_at(array, row, data_type) })
        .collect()
}

fn value_at(array: &ArrayRef, row: usize, data_type: &DataType) -> Value {
    match data_type {
        DataType::Boolean => Value::Boolean(array.as_boolean().value(row)),
        DataType::Float => Value::Double(f64::from(array.as_primitive::<Float32Type>().value(row)).to_bits()),
        DataType::Double => Value::Double(array.as_primitive::<Float64Type>().value(row).to_bits()),
        DataType::Decimal { .. } => Value::Decimal(array.as_primitive::<Decimal128Type>().value(row)),
        DataType::Char { .. } | DataType::String => {
            Value::Text(array.as_string::<i32>().value(row).to_owned())
        }
        DataType::Binary { .. } | DataType::Bytes => {
            Value::Bytes(array.as_binary::<i32>().value(row).to_vec())
        }
        DataType::Array(element) => {
            Value::List(values_of(&array.as_list::<i32>().value(row), &element.data_type))
        }
        DataType::Map { key, value } => {
            let pairs = array.as_map().value(row);
            let keys = values_of(pairs.column(0), &key.data_type);
            let values = values_of(pairs.column(1), &value.data_type);
            Value::List(
                keys.into_iter().zip(values).map(|(key, value)| Value::Row(vec![key, value])).collect(),
            )
        }
        DataType::Row(fields) => {
            let columns = fields.iter().zip(array.as_struct().columns());
            let at = |(field, column): (&Field, &ArrayRef)| {
                if column.is_null(row) { Value::Null } else { value_at(column, row, &field.data_type) }
            };
            Value::Row(columns.map(at).collect())
        }
        _ => {
            let one = array.slice(row, 1);
            let wide = match one.data_type() {
                ArrowType::Date32 | ArrowType::Time32(_) => {
                    conform::retyped(&one, &ArrowType::Int32).expect("the same layout")
                }
                ArrowType::Time64(_) | ArrowType::Timestamp(..) => {
                    conform::retyped(&one, &ArrowType::Int64).expect("the same layout")
                }
                _ => one,
            };
            let wide = arrow_cast::cast(&wide, &ArrowType::Int64).expect("integers");
            Value::Integer(wide.as_primitive::<Int64Type>().value(0))
        }
    }
}
