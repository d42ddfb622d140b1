//! What the type of a column asks of its values beyond their Arrow type. The node asks the same, but does not know a file's rows.
//!
//! Lives on: anywhere (pure). Looks at each value once.
use super::Misfit;
use super::scalar::value;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Decimal128Type, Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType};
use arrow_buffer::NullBuffer;
use mink_types::schema::{DataType, TimeUnit};

const SECONDS_PER_DAY: i64 = 86_400;

/// Checks a scalar column, which is stored as `data_type` is. `valid` says which entries count.
pub(super) fn check(
    array: &ArrayRef,
    data_type: &DataType,
    valid: Option<&NullBuffer>,
    path: &str,
) -> Result<(), Misfit> {
    let first = |wrong: &dyn Fn(usize) -> bool| {
        (0..array.len()).find(|row| valid.is_none_or(|valid| valid.is_valid(*row)) && wrong(*row))
    };
    let wrong = match data_type {
        DataType::Char { length } => {
            let most = usize::try_from(*length).unwrap_or(usize::MAX);
            let texts = array.as_string_opt::<i32>().ok_or_else(|| other(path))?;
            // A character has at least one byte.
            first(&|row| texts.value(row).len() > most && texts.value(row).chars().count() > most)
        }
        DataType::Binary { length } => {
            let most = usize::try_from(*length).unwrap_or(usize::MAX);
            let values = array.as_binary_opt::<i32>().ok_or_else(|| other(path))?;
            first(&|row| values.value(row).len() > most)
        }
        DataType::Decimal { precision, .. } => {
            let values = array.as_primitive_opt::<Decimal128Type>().ok_or_else(|| other(path))?;
            let bound = 10_u128.checked_pow(u32::from(*precision)).unwrap_or(u128::MAX);
            first(&|row| values.value(row).unsigned_abs() >= bound)
        }
        DataType::Time { precision } => {
            let unit = TimeUnit::of_precision(*precision);
            let day = SECONDS_PER_DAY * unit.per_second();
            let finest = finest(unit, *precision);
            let units = match unit {
                TimeUnit::Seconds => units::<Time32SecondType>(array),
                TimeUnit::Milliseconds => units::<Time32MillisecondType>(array),
                TimeUnit::Microseconds => units::<Time64MicrosecondType>(array),
                TimeUnit::Nanoseconds => units::<Time64NanosecondType>(array),
            };
            let units = units.ok_or_else(|| other(path))?;
            first(&|row| !(0..day).contains(&units(row)) || units(row) % finest != 0)
        }
        DataType::Timestamp { precision } | DataType::TimestampLtz { precision } => {
            let unit = TimeUnit::of_precision(*precision);
            let finest = finest(unit, *precision);
            if finest == 1 {
                return Ok(());
            }
            let units = match unit {
                TimeUnit::Seconds => units::<TimestampSecondType>(array),
                TimeUnit::Milliseconds => units::<TimestampMillisecondType>(array),
                TimeUnit::Microseconds => units::<TimestampMicrosecondType>(array),
                TimeUnit::Nanoseconds => units::<TimestampNanosecondType>(array),
            };
            let units = units.ok_or_else(|| other(path))?;
            first(&|row| units(row) % finest != 0)
        }
        _ => None,
    };
    wrong.map_or(Ok(()), |row| {
        let what = format!("found {}, which is no value of {data_type}", value(array.as_ref(), row));
        Err(Misfit::new(row, path, what))
    })
}

/// Units of the last digit that the precision has.
fn finest(unit: TimeUnit, precision: u8) -> i64 {
    unit.per_second() / 10_i64.checked_pow(u32::from(precision)).unwrap_or(i64::MAX).min(unit.per_second())
}

/// The numbers of a column of times.
fn units<T: ArrowPrimitiveType>(array: &ArrayRef) -> Option<Box<dyn Fn(usize) -> i64 + '_>>
where
    T::Native: Into<i64>,
{
    let values = array.as_primitive_opt::<T>()?;
    Some(Box::new(|row| values.value(row).into()))
}

/// The conversion has made the column of its type.
fn other(path: &str) -> Misfit {
    Misfit::new(0, path, "it is not stored as its type says")
}
