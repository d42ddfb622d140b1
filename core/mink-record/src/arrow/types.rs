//! What Arrow type each type of a column is stored as.
//!
//! Lives on: anywhere (pure).
//! Invariants: the type of a column alone decides; two columns of one type are stored alike.

use arrow_schema::{
    DataType as ArrowType, Field as ArrowField, FieldRef, Fields, SchemaRef, TimeUnit as Unit,
};
use mink_types::schema::{DataType, Field, Schema, TimeUnit};
use std::sync::Arc;

/// Under this key a field's metadata has its id, as Parquet and Iceberg write it.
pub const FIELD_ID_KEY: &str = "PARQUET:field_id";
/// The zone of every instant.
pub(super) const INSTANT_ZONE: &str = "UTC";
const ENTRIES: &str = "entries";

/// The Arrow schema of a table, with the ids of its fields as metadata.
pub fn arrow_schema(schema: &Schema) -> SchemaRef {
    let fields: Fields = schema.columns().iter().map(arrow_field).collect();
    Arc::new(arrow_schema::Schema::new(fields))
}

/// The Arrow field of a column or nested field.
pub fn arrow_field(field: &Field) -> FieldRef {
    let metadata = [(FIELD_ID_KEY.to_owned(), field.id.to_string())].into_iter().collect();
    let plain = ArrowField::new(&field.name, arrow_type(&field.data_type), field.nullable);
    Arc::new(plain.with_metadata(metadata))
}

/// The type that values of `data_type` are stored as.
pub(super) fn arrow_type(data_type: &DataType) -> ArrowType {
    match data_type {
        DataType::Boolean => ArrowType::Boolean,
        DataType::TinyInt => ArrowType::Int8,
        DataType::SmallInt => ArrowType::Int16,
        DataType::Int => ArrowType::Int32,
        DataType::BigInt => ArrowType::Int64,
        DataType::Float => ArrowType::Float32,
        DataType::Double => ArrowType::Float64,
        DataType::Decimal { precision, scale } => {
            ArrowType::Decimal128(*precision, i8::try_from(*scale).unwrap_or(i8::MAX))
        }
        DataType::Char { .. } | DataType::String => ArrowType::Utf8,
        DataType::Binary { .. } | DataType::Bytes => ArrowType::Binary,
        DataType::Date => ArrowType::Date32,
        DataType::Time { precision } => match unit(*precision) {
            narrow @ (Unit::Second | Unit::Millisecond) => ArrowType::Time32(narrow),
            wide => ArrowType::Time64(wide),
        },
        DataType::Timestamp { precision } => ArrowType::Timestamp(unit(*precision), None),
        DataType::TimestampLtz { precision } => {
            ArrowType::Timestamp(unit(*precision), Some(INSTANT_ZONE.into()))
        }
        DataType::Array(element) => ArrowType::List(arrow_field(element)),
        DataType::Map { key, value } => ArrowType::Map(entries_field(key, value), false),
        DataType::Row(fields) => ArrowType::Struct(fields.iter().map(arrow_field).collect()),
    }
}

/// The field of a map's entries: a pair that is never null.
pub(super) fn entries_field(key: &Field, value: &Field) -> FieldRef {
    let pair = [arrow_field(key), arrow_field(value)].into_iter().collect();
    Arc::new(ArrowField::new(ENTRIES, ArrowType::Struct(pair), false))
}

fn unit(precision: u8) -> Unit {
    match TimeUnit::of_precision(precision) {
        TimeUnit::Seconds => Unit::Second,
        TimeUnit::Milliseconds => Unit::Millisecond,
        TimeUnit::Microseconds => Unit::Microsecond,
        TimeUnit::Nanoseconds => Unit::Nanosecond,
    }
}
