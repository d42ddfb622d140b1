//! Rows of a batch as JSON, in one form alone.
//!
//! Lives on: anywhere (pure).
//! Owns: the names and types of the columns that it writes.
//! Invariants: J1; columns in the schema's order, none left out, no blanks: the same row always gives the same bytes. After an error
//! nothing was written.
use super::moment::{is_time, put_date, put_time, put_timestamp};
use super::number::{put_decimal, put_digits, put_double, put_float, put_whole};
use crate::RecordError;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrowPrimitiveType, RecordBatch};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mink_types::schema::{DataType, Field, FieldId, Schema, TimeUnit};

/// Writes rows of a table, or some columns of them.
#[derive(Clone, Debug)]
pub struct JsonWriter {
    columns: Vec<Column>,
}

#[derive(Clone, Debug)]
struct Column {
    /// Which of a batch.
    place: usize,
    named: Named,
}

/// A column or field with its name as it stands before the value: `"name":`.
#[derive(Clone, Debug)]
struct Named {
    name: Vec<u8>,
    shape: Shape,
}

/// How values of a type are written.
#[derive(Clone, Debug)]
enum Shape {
    Boolean,
    TinyInt,
    SmallInt,
    Int,
    BigInt,
    Float,
    Double,
    Decimal {
        scale: u8,
    },
    Text,
    Bytes,
    Date,
    Time {
        precision: u8,
    },
    Timestamp {
        precision: u8,
        instant: bool,
    },
    Array(Box<Shape>),
    /// An object, by texts.
    Object(Box<Shape>),
    /// An array of pairs: their keys and their values.
    Pairs(Box<[Named; 2]>),
    Row(Vec<Named>),
}

impl JsonWriter {
    /// All columns of batches that have this schema.
    pub fn new(schema: &Schema) -> JsonWriter {
        let columns = schema.columns().iter().enumerate();
        JsonWriter {
            columns: columns.map(|(place, field)| Column { place, named: Named::new(field) }).collect(),
        }
    }

    /// These columns alone, in this order, of batches that have all columns of the schema: a record's key.
    ///
    /// # Errors
    /// `SchemaMismatch` for a column that the schema has not.
    pub fn for_columns(schema: &Schema, columns: &[FieldId]) -> Result<JsonWriter, RecordError> {
        let column = |id: &FieldId| {
            let mut all = schema.columns().iter().enumerate();
            let (place, field) =
                all.find(|(_, field)| field.id == *id).ok_or_else(|| no_column(schema, *id))?;
            Ok(Column { place, named: Named::new(field) })
        };
        Ok(JsonWriter { columns: columns.iter().map(column).collect::<Result<_, _>>()? })
    }

    /// All columns of batches that have these columns of the schema alone, in this order.
    ///
    /// # Errors
    /// `SchemaMismatch` for a column that the schema has not.
    pub fn for_projection(schema: &Schema, columns: &[FieldId]) -> Result<JsonWriter, RecordError> {
        let mut writer = JsonWriter::for_columns(schema, columns)?;
        for (place, column) in writer.columns.iter_mut().enumerate() {
            column.place = place;
        }
        Ok(writer)
    }

    /// Appends a row as one object.
    ///
    /// # Errors
    /// `InvalidRecord` for a row that is not there, or a stored time that is none of a day; `SchemaMismatch` for a batch that has not the
    /// columns that this was made for.
    pub fn write_row(&self, batch: &RecordBatch, row: usize, out: &mut Vec<u8>) -> Result<(), RecordError> {
        if row >= batch.num_rows() {
            return Err(RecordError::invalid(format!("no row {row} in a batch of {}", batch.num_rows())));
        }
        let start = out.len();
        let mut open = b'{';
        for Column { place, named } in &self.columns {
            out.push(open);
            open = b',';
            let written = batch.columns().get(*place).map(|array| named.put(array, row, out));
            if let Some(Ok(())) = written {
                continue;
            }
            out.truncate(start);
            let name = String::from_utf8_lossy(&named.name);
            let name = name.trim_end_matches(':');
            return Err(match written {
                Some(Err(Unwritten::NoTime)) => {
                    RecordError::invalid(format!("column {name}: a stored time is none of a day"))
                }
                _ => {
                    RecordError::mismatch(format!("column {name} is not in the batch, or is of another type"))
                }
            });
        }
        if self.columns.is_empty() {
            out.push(open);
        }
        out.push(b'}');
        Ok(())
    }
}

fn no_column(schema: &Schema, id: FieldId) -> RecordError {
    RecordError::mismatch(format!("schema {} has no column {id}", schema.id()))
}

/// Why a value was not written.
#[derive(Clone, Copy, Debug)]
enum Unwritten {
    /// The array is not of the column's type.
    OtherType,
    NoTime,
}

impl Named {
    fn new(field: &Field) -> Named {
        let mut name = Vec::new();
        put_text(&mut name, &field.name);
        name.push(b':');
        Named { name, shape: Shape::new(&field.data_type) }
    }

    fn put(&self, array: &dyn Array, row: usize, out: &mut Vec<u8>) -> Result<(), Unwritten> {
        out.extend_from_slice(&self.name);
        self.shape.put(array, row, out)
    }
}

impl Shape {
    fn new(data_type: &DataType) -> Shape {
        match data_type {
            DataType::Boolean => Shape::Boolean,
            DataType::TinyInt => Shape::TinyInt,
            DataType::SmallInt => Shape::SmallInt,
            DataType::Int => Shape::Int,
            DataType::BigInt => Shape::BigInt,
            DataType::Float => Shape::Float,
            DataType::Double => Shape::Double,
            DataType::Decimal { scale, .. } => Shape::Decimal { scale: *scale },
            DataType::Char { .. } | DataType::String => Shape::Text,
            DataType::Binary { .. } | DataType::Bytes => Shape::Bytes,
            DataType::Date => Shape::Date,
            DataType::Time { precision } => Shape::Time { precision: *precision },
            DataType::Timestamp { precision } => Shape::Timestamp { precision: *precision, instant: false },
            DataType::TimestampLtz { precision } => Shape::Timestamp { precision: *precision, instant: true },
            DataType::Array(element) => Shape::Array(Box::new(Shape::new(&element.data_type))),
            DataType::Map { key, value } => match key.data_type {
                DataType::Char { .. } | DataType::String => {
                    Shape::Object(Box::new(Shape::new(&value.data_type)))
                }
                _ => Shape::Pairs(Box::new([Named::new(key), Named::new(value)])),
            },
            DataType::Row(fields) => Shape::Row(fields.iter().map(Named::new).collect()),
        }
    }

    fn put(&self, array: &dyn Array, row: usize, out: &mut Vec<u8>) -> Result<(), Unwritten> {
        if array.is_null(row) {
            out.extend_from_slice(b"null");
            return Ok(());
        }
        match self {
            Shape::Boolean => {
                let value = array.as_boolean_opt().ok_or(Unwritten::OtherType)?.value(row);
                out.extend_from_slice(if value { b"true" } else { b"false" });
            }
            Shape::TinyInt => put_whole(out, value::<Int8Type>(array, row)?.into()),
            Shape::SmallInt => put_whole(out, value::<Int16Type>(array, row)?.into()),
            Shape::Int => put_whole(out, value::<Int32Type>(array, row)?.into()),
            Shape::BigInt => put_whole(out, value::<Int64Type>(array, row)?),
            Shape::Float => put_float(out, value::<Float32Type>(array, row)?),
            Shape::Double => put_double(out, value::<Float64Type>(array, row)?),
            Shape::Decimal { scale } => {
                let values = array.as_primitive_opt::<Decimal128Type>();
                let values = values.filter(|values| i16::from(values.scale()) == i16::from(*scale));
                put_decimal(out, values.ok_or(Unwritten::OtherType)?.value(row), *scale);
            }
            Shape::Text => {
                put_text(out, array.as_string_opt::<i32>().ok_or(Unwritten::OtherType)?.value(row));
            }
            Shape::Bytes => {
                put_base64(out, array.as_binary_opt::<i32>().ok_or(Unwritten::OtherType)?.value(row))?;
            }
            Shape::Date => {
                out.push(b'"');
                put_date(out, value::<Date32Type>(array, row)?.into());
                out.push(b'"');
            }
            Shape::Time { precision } => {
                let units = time(array, row, *precision)?;
                if !is_time(units, *precision) {
                    return Err(Unwritten::NoTime);
                }
                out.push(b'"');
                put_time(out, units, *precision);
                out.push(b'"');
            }
            Shape::Timestamp { precision, instant } => {
                out.push(b'"');
                put_timestamp(out, timestamp(array, row, *precision)?, *precision);
                out.extend_from_slice(if *instant { b"Z\"" } else { b"\"" });
            }
            _ => return self.put_nested(array, row, out),
        }
        Ok(())
    }

    /// As [`Shape::put`], of values that have others in them.
    fn put_nested(&self, array: &dyn Array, row: usize, out: &mut Vec<u8>) -> Result<(), Unwritten> {
        let mut comma = false;
        let mut separate = |out: &mut Vec<u8>| {
            if std::mem::replace(&mut comma, true) {
                out.push(b',');
            }
        };
        match self {
            Shape::Array(element) => {
                let list = array.as_list_opt::<i32>().ok_or(Unwritten::OtherType)?;
                out.push(b'[');
                for at in range(list.value_offsets(), row) {
                    separate(out);
                    element.put(list.values(), at, out)?;
                }
                out.push(b']');
            }
            Shape::Object(shape) => {
                let map = array.as_map_opt().ok_or(Unwritten::OtherType)?;
                let keys = map.keys().as_string_opt::<i32>().ok_or(Unwritten::OtherType)?;
                out.push(b'{');
                for at in range(map.value_offsets(), row) {
                    separate(out);
                    put_text(out, keys.value(at));
                    out.push(b':');
                    shape.put(map.values(), at, out)?;
                }
                out.push(b'}');
            }
            Shape::Pairs(pair) => {
                let [key, value] = pair.as_ref();
                let map = array.as_map_opt().ok_or(Unwritten::OtherType)?;
                out.push(b'[');
                for at in range(map.value_offsets(), row) {
                    separate(out);
                    out.push(b'{');
                    key.put(map.keys(), at, out)?;
                    out.push(b',');
                    value.put(map.values(), at, out)?;
                    out.push(b'}');
                }
                out.push(b']');
            }
            Shape::Row(fields) => {
                let row_array = array.as_struct_opt().filter(|array| array.num_columns() == fields.len());
                out.push(b'{');
                for (field, column) in fields.iter().zip(row_array.ok_or(Unwritten::OtherType)?.columns()) {
                    separate(out);
                    field.put(column, row, out)?;
                }
                out.push(b'}');
            }
            _ => return Err(Unwritten::OtherType),
        }
        Ok(())
    }
}

fn value<T: ArrowPrimitiveType>(array: &dyn Array, row: usize) -> Result<T::Native, Unwritten> {
    Ok(array.as_primitive_opt::<T>().ok_or(Unwritten::OtherType)?.value(row))
}

fn time(array: &dyn Array, row: usize, precision: u8) -> Result<i64, Unwritten> {
    match TimeUnit::of_precision(precision) {
        TimeUnit::Seconds => value::<Time32SecondType>(array, row).map(i64::from),
        TimeUnit::Milliseconds => value::<Time32MillisecondType>(array, row).map(i64::from),
        TimeUnit::Microseconds => value::<Time64MicrosecondType>(array, row),
        TimeUnit::Nanoseconds => value::<Time64NanosecondType>(array, row),
    }
}

fn timestamp(array: &dyn Array, row: usize, precision: u8) -> Result<i64, Unwritten> {
    match TimeUnit::of_precision(precision) {
        TimeUnit::Seconds => value::<TimestampSecondType>(array, row),
        TimeUnit::Milliseconds => value::<TimestampMillisecondType>(array, row),
        TimeUnit::Microseconds => value::<TimestampMicrosecondType>(array, row),
        TimeUnit::Nanoseconds => value::<TimestampNanosecondType>(array, row),
    }
}

fn range(offsets: &[i32], row: usize) -> std::ops::Range<usize> {
    let offset =
        |at: usize| offsets.get(at).and_then(|offset| usize::try_from(*offset).ok()).unwrap_or_default();
    offset(row)..offset(row + 1)
}

/// In quotes, with the escapes that JSON demands and no others.
fn put_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    loop {
        let plain = super::text::plain_length(rest);
        let (before, behind) = rest.split_at(plain.min(rest.len()));
        out.extend_from_slice(before);
        let Some((special, behind)) = behind.split_first() else { break };
        match special {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *special]),
            0x8 => out.extend_from_slice(b"\\b"),
            0xc => out.extend_from_slice(b"\\f"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            control => {
                out.extend_from_slice(b"\\u00");
                put_digits(out, u64::from(control >> 4), 1);
                out.push(*b"0123456789abcdef".get(usize::from(control & 15)).unwrap_or(&b'0'));
            }
        }
        rest = behind;
    }
    out.push(b'"');
}

fn put_base64(out: &mut Vec<u8>, bytes: &[u8]) -> Result<(), Unwritten> {
    out.push(b'"');
    let start = out.len();
    out.resize(start + bytes.len().div_ceil(3) * 4, 0);
    // The room is what the encoding of so many bytes takes.
    let room = out.get_mut(start..).unwrap_or_default();
    STANDARD.encode_slice(bytes, room).map_err(|_| Unwritten::OtherType)?;
    out.push(b'"');
    Ok(())
}
