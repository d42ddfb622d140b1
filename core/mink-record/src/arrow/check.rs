//! What the type of a column asks of its values beyond their Arrow type.
//!
//! Lives on: anywhere (pure). Looks at each value once.
//! Invariants: no error's text has bytes of a value.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Decimal128Type, Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
};
use arrow_array::{Array, ArrowPrimitiveType};
use arrow_buffer::NullBuffer;
use mink_types::schema::{DataType, TimeUnit};

use crate::RecordError;

const SECONDS_PER_DAY: i64 = 86_400;

/// Checks the values of a scalar column, which has the Arrow type of `data_type`. `valid` says which entries count.
pub(super) fn check_values(
    array: &dyn Array,
    data_type: &DataType,
    valid: Option<&NullBuffer>,
    column: &str,
) -> Result<(), RecordError> {
    let refused = |row: usize, what: String| {
        Err(RecordError::invalid(format!("column {column:?}, entry {row}: {what}")))
    };
    match data_type {
        DataType::Char { length } => {
            let most = usize::try_from(*length).unwrap_or(usize::MAX);
            let Some(texts) = array.as_string_opt::<i32>() else { return Err(other_type(column)) };
            // A character has at least one byte.
            let long = first(array.len(), valid, |row| {
                let text = texts.value(row);
                text.len() > most && text.chars().count() > most
            });
            long.map_or(Ok(()), |row| {
                let count = texts.value(row).chars().count();
                refused(row, format!("{count} characters; CHAR({length}) accepts at most {length}"))
            })
        }
        DataType::Binary { length } => {
            let most = usize::try_from(*length).unwrap_or(usize::MAX);
            let Some(values) = array.as_binary_opt::<i32>() else { return Err(other_type(column)) };
            let long = first(array.len(), valid, |row| values.value(row).len() > most);
            long.map_or(Ok(()), |row| {
                let count = values.value(row).len();
                refused(row, format!("{count} bytes; BINARY({length}) accepts at most {length}"))
            })
        }
        DataType::Decimal { precision, scale } => {
            let Some(values) = array.as_primitive_opt::<Decimal128Type>() else {
                return Err(other_type(column));
            };
            let bound = 10_u128.checked_pow(u32::from(*precision)).unwrap_or(u128::MAX);
            let wide = first(array.len(), valid, |row| values.value(row).unsigned_abs() >= bound);
            wide.map_or(Ok(()), |row| {
                refused(row, format!("more digits than DECIMAL({precision}, {scale}) accepts"))
            })
        }
        DataType::Time { precision } => {
            let unit = TimeUnit::of_precision(*precision);
            let day = SECONDS_PER_DAY * unit.per_second();
            let late = match unit {
                TimeUnit::Seconds => outside::<Time32SecondType>(array, valid, day, column),
                TimeUnit::Milliseconds => outside::<Time32MillisecondType>(array, valid, day, column),
                TimeUnit::Microseconds => outside::<Time64MicrosecondType>(array, valid, day, column),
                TimeUnit::Nanoseconds => outside::<Time64NanosecondType>(array, valid, day, column),
            };
            late?.map_or(Ok(()), |row| {
                refused(row, format!("no time of day; TIME({precision}) accepts 0 to {}", day - 1))
            })
        }
        _ => Ok(()),
    }
}

/// The caller has made the array of the column's type.
fn other_type(column: &str) -> RecordError {
    RecordError::mismatch(format!("column {column:?} is not of the table's type"))
}

/// The first entry that counts and is `wrong`.
fn first(rows: usize, valid: Option<&NullBuffer>, wrong: impl Fn(usize) -> bool) -> Option<usize> {
    match valid {
        None => (0..rows).find(|row| wrong(*row)),
        Some(valid) => valid.valid_indices().find(|row| wrong(*row)),
    }
}

/// The first entry that counts and is not from 0 to below `day`.
fn outside<T: ArrowPrimitiveType>(
    array: &dyn Array,
    valid: Option<&NullBuffer>,
    day: i64,
    column: &str,
) -> Result<Option<usize>, RecordError>
where
    T::Native: Into<i64>,
{
    let values = array.as_primitive_opt::<T>().ok_or_else(|| other_type(column))?;
    Ok(first(array.len(), valid, |row| !(0..day).contains(&values.value(row).into())))
}
