//! What the type of a column asks of its values beyond their Arrow type.
//!
//! Lives on: anywhere (pure). Looks at each value once; at the keys of a large map as often as sorting them takes.
//! Invariants: no error's text has bytes of a value.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Decimal128Type, Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrowPrimitiveType};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_ord::ord::make_comparator;
use arrow_schema::SortOptions;
use mink_types::schema::{DataType, TimeUnit};
use std::cmp::Ordering;

use crate::RecordError;

const SECONDS_PER_DAY: i64 = 86_400;

/// Maps with so many entries at most are looked through pair by pair; larger ones are sorted.
const PAIRED_MAX: usize = 8;

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
            let late = time(array, unit, valid, |value| !(0..day).contains(&value), column)?;
            if let Some(row) = late {
                let what = format!("no time of day; TIME({precision}) accepts 0 to {}", day - 1);
                return refused(row, what);
            }
            let step = step(unit, *precision);
            let fine = time(array, unit, valid, |value| value % step != 0, column)?;
            fine.map_or(Ok(()), |row| refused(row, too_fine(data_type, step)))
        }
        DataType::Timestamp { precision } | DataType::TimestampLtz { precision } => {
            let unit = TimeUnit::of_precision(*precision);
            let step = step(unit, *precision);
            if step == 1 {
                return Ok(());
            }
            let fine = timestamp(array, unit, valid, |value| value % step != 0, column)?;
            fine.map_or(Ok(()), |row| refused(row, too_fine(data_type, step)))
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

/// How many units the last digit of a precision stands for.
fn step(unit: TimeUnit, precision: u8) -> i64 {
    (unit.per_second() / 10_i64.pow(u32::from(precision.min(9)))).max(1)
}

fn too_fine(data_type: &DataType, step: i64) -> String {
    format!("more digits of a second than {data_type} has; it accepts whole multiples of {step} of its unit")
}

/// The first time of day that counts and is `wrong`.
fn time(
    array: &dyn Array,
    unit: TimeUnit,
    valid: Option<&NullBuffer>,
    wrong: impl Fn(i64) -> bool,
    column: &str,
) -> Result<Option<usize>, RecordError> {
    match unit {
        TimeUnit::Seconds => first_of::<Time32SecondType>(array, valid, wrong, column),
        TimeUnit::Milliseconds => first_of::<Time32MillisecondType>(array, valid, wrong, column),
        TimeUnit::Microseconds => first_of::<Time64MicrosecondType>(array, valid, wrong, column),
        TimeUnit::Nanoseconds => first_of::<Time64NanosecondType>(array, valid, wrong, column),
    }
}

/// The first timestamp that counts and is `wrong`.
fn timestamp(
    array: &dyn Array,
    unit: TimeUnit,
    valid: Option<&NullBuffer>,
    wrong: impl Fn(i64) -> bool,
    column: &str,
) -> Result<Option<usize>, RecordError> {
    match unit {
        TimeUnit::Seconds => first_of::<TimestampSecondType>(array, valid, wrong, column),
        TimeUnit::Milliseconds => first_of::<TimestampMillisecondType>(array, valid, wrong, column),
        TimeUnit::Microseconds => first_of::<TimestampMicrosecondType>(array, valid, wrong, column),
        TimeUnit::Nanoseconds => first_of::<TimestampNanosecondType>(array, valid, wrong, column),
    }
}

fn first_of<T: ArrowPrimitiveType>(
    array: &dyn Array,
    valid: Option<&NullBuffer>,
    wrong: impl Fn(i64) -> bool,
    column: &str,
) -> Result<Option<usize>, RecordError>
where
    T::Native: Into<i64>,
{
    let values = array.as_primitive_opt::<T>().ok_or_else(|| other_type(column))?;
    Ok(first(array.len(), valid, |row| wrong(values.value(row).into())))
}

/// Checks that no map that counts has a key twice. Keys are told apart as they sort: a NaN is equal to itself, and 0.0 is not -0.0.
pub(super) fn check_keys(
    keys: &dyn Array,
    offsets: &OffsetBuffer<i32>,
    valid: Option<&NullBuffer>,
    column: &str,
) -> Result<(), RecordError> {
    let order = make_comparator(keys, keys, SortOptions::default()).map_err(|_| other_type(column))?;
    let same = |a: usize, b: usize| order(a, b) == Ordering::Equal;
    let mut sorted: Vec<usize> = Vec::new();
    let twice = offsets.windows(2).enumerate().find_map(|(row, ends)| {
        let &[from, to] = ends else { return None };
        let places = usize::try_from(from).unwrap_or(0)..usize::try_from(to).unwrap_or(0);
        if places.len() < 2 || valid.is_some_and(|valid| valid.is_null(row)) {
            return None;
        }
        let is_twice = if places.len() <= PAIRED_MAX {
            places.clone().any(|a| (places.start..a).any(|b| same(a, b)))
        } else {
            sorted.clear();
            sorted.extend(places);
            sorted.sort_unstable_by(|a, b| order(*a, *b));
            sorted.windows(2).any(|pair| matches!(pair, &[a, b] if same(a, b)))
        };
        is_twice.then_some(row)
    });
    twice.map_or(Ok(()), |row| {
        Err(RecordError::invalid(format!(
            "column {column:?}, entry {row}: a key stands in it twice; use each key once"
        )))
    })
}
