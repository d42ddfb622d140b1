//! Columns that nobody wrote: the default of a column in every row.
//!
//! Lives on: anywhere (pure).
//! Invariants: the array has the type that `arrow_field` gives the column.

use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, PrimitiveArray, StringArray, new_null_array,
};
use arrow_buffer::{BooleanBuffer, ScalarBuffer};
use arrow_schema::{DataType as ArrowType, TimeUnit as Unit};
use mink_types::schema::{DataType, Field, Literal};
use std::sync::Arc;

use super::types::arrow_type;
use crate::RecordError;

/// The default of `field` in `rows` rows, or nulls if it has none.
pub(super) fn default_column(field: &Field, rows: usize) -> Result<ArrayRef, RecordError> {
    let data_type = arrow_type(&field.data_type);
    let column = match &field.default {
        None if field.nullable => Some(new_null_array(&data_type, rows)),
        None => {
            return Err(RecordError::mismatch(format!(
                "column {:?} is NOT NULL and has no default; send a value for it",
                field.name
            )));
        }
        Some(literal) => constant(literal, &data_type, rows),
    };
    column.ok_or_else(|| {
        RecordError::invalid(format!("the default of column {:?} is not of its type", field.name))
    })
}

/// What the column that [`default_column`] makes takes.
pub(super) fn default_bytes(field: &Field, rows: usize) -> usize {
    let text = match &field.default {
        Some(Literal::Text(text)) => text.len(),
        Some(Literal::Bytes(bytes)) => bytes.len(),
        _ => 0,
    };
    (row_bytes(&arrow_type(&field.data_type)) + text).saturating_mul(rows)
}

/// What a null of this type takes, or a value without its text; at least one byte.
pub(super) fn row_bytes(data_type: &ArrowType) -> usize {
    match data_type {
        ArrowType::Utf8 | ArrowType::Binary | ArrowType::List(_) | ArrowType::Map(..) => 4,
        ArrowType::Struct(fields) => fields.iter().map(|field| row_bytes(field.data_type())).sum(),
        other => other.primitive_width().unwrap_or(1),
    }
}

/// A constant of a column's type, as an array of one row; none if it is not of the type.
pub fn literal_array(data_type: &DataType, literal: &Literal) -> Option<ArrayRef> {
    constant(literal, &arrow_type(data_type), 1)
}

/// None if the literal is not of the type.
fn constant(literal: &Literal, data_type: &ArrowType, rows: usize) -> Option<ArrayRef> {
    Some(match (literal, data_type) {
        (Literal::Boolean(value), ArrowType::Boolean) => {
            let values = if *value { BooleanBuffer::new_set(rows) } else { BooleanBuffer::new_unset(rows) };
            Arc::new(BooleanArray::new(values, None))
        }
        (Literal::Integer(value), _) => integers(*value, data_type, rows)?,
        (Literal::Double(bits), ArrowType::Float64) => {
            repeated::<Float64Type>(f64::from_bits(*bits), data_type, rows)
        }
        #[expect(clippy::cast_possible_truncation, reason = "a FLOAT that was widened comes back as it was")]
        (Literal::Double(bits), ArrowType::Float32) => {
            repeated::<Float32Type>(f64::from_bits(*bits) as f32, data_type, rows)
        }
        (Literal::Decimal(value), ArrowType::Decimal128(..)) => {
            repeated::<Decimal128Type>(*value, data_type, rows)
        }
        (Literal::Text(value), ArrowType::Utf8) => {
            Arc::new(StringArray::from_iter_values(std::iter::repeat_n(value, rows)))
        }
        (Literal::Bytes(value), ArrowType::Binary) => {
            Arc::new(BinaryArray::from_iter_values(std::iter::repeat_n(value, rows)))
        }
        _ => return None,
    })
}

fn integers(value: i64, data_type: &ArrowType, rows: usize) -> Option<ArrayRef> {
    let narrow = || i32::try_from(value).ok();
    Some(match data_type {
        ArrowType::Int8 => repeated::<Int8Type>(i8::try_from(value).ok()?, data_type, rows),
        ArrowType::Int16 => repeated::<Int16Type>(i16::try_from(value).ok()?, data_type, rows),
        ArrowType::Int32 => repeated::<Int32Type>(narrow()?, data_type, rows),
        ArrowType::Int64 => repeated::<Int64Type>(value, data_type, rows),
        ArrowType::Date32 => repeated::<Date32Type>(narrow()?, data_type, rows),
        ArrowType::Time32(Unit::Second) => repeated::<Time32SecondType>(narrow()?, data_type, rows),
        ArrowType::Time32(_) => repeated::<Time32MillisecondType>(narrow()?, data_type, rows),
        ArrowType::Time64(Unit::Microsecond) => repeated::<Time64MicrosecondType>(value, data_type, rows),
        ArrowType::Time64(_) => repeated::<Time64NanosecondType>(value, data_type, rows),
        ArrowType::Timestamp(Unit::Second, _) => repeated::<TimestampSecondType>(value, data_type, rows),
        ArrowType::Timestamp(Unit::Millisecond, _) => {
            repeated::<TimestampMillisecondType>(value, data_type, rows)
        }
        ArrowType::Timestamp(Unit::Microsecond, _) => {
            repeated::<TimestampMicrosecondType>(value, data_type, rows)
        }
        ArrowType::Timestamp(Unit::Nanosecond, _) => {
            repeated::<TimestampNanosecondType>(value, data_type, rows)
        }
        _ => return None,
    })
}

/// `data_type` is one that `T` can have.
fn repeated<T: ArrowPrimitiveType>(value: T::Native, data_type: &ArrowType, rows: usize) -> ArrayRef {
    let values = PrimitiveArray::<T>::new(ScalarBuffer::from(vec![value; rows]), None);
    let column = values.with_data_type(data_type.clone());
    debug_assert_eq!(column.len(), rows);
    Arc::new(column)
}
