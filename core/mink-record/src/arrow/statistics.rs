//! Nulls and bounds of the scalar columns of a batch, by which readers leave batches out.
//!
//! Lives on: anywhere (pure). Looks at each value once.
//! Invariants: every value of a column that is not null and not NaN lies between its bounds, bounds included; long ones are cut, the lower
//! one down, the upper one up. As in Iceberg, NaN is counted and never a bound, and a bound of zero covers both zeros.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrowPrimitiveType, RecordBatch};
use arrow_schema::{DataType as ArrowType, TimeUnit as Unit};
use mink_types::schema::{FieldId, Literal, Schema};

use crate::RecordError;
use crate::bounded::Bounded;

/// Longest bound of text or bytes.
pub const STATISTICS_VALUE_BYTES_MAX: usize = 32;
/// Field, nulls, NaNs, flags.
const ENTRY_BYTES_MIN: usize = 13;
const HAS_MIN: u8 = 1;
const HAS_MAX: u8 = 2;

/// What a batch says of one of its columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnStatistics {
    pub field: FieldId,
    /// Rows without a value.
    pub nulls: u64,
    /// Rows whose value is NaN, which lies within no bounds; 0 for columns that are not FLOAT or DOUBLE.
    pub nans: u64,
    /// No value is less. None: there is no value, or no bound is known.
    pub min: Option<Literal>,
    /// No value is greater. None: as of `min`.
    pub max: Option<Literal>,
}

/// Of the columns of a batch that has the Arrow schema of `schema`.
pub(super) fn statistics_of(batch: &RecordBatch, schema: &Schema) -> Vec<ColumnStatistics> {
    let scalar =
        schema.columns().iter().zip(batch.columns()).filter(|(column, _)| column.data_type.is_scalar());
    scalar
        .map(|(column, array)| {
            let Bounds { nans, min, max } = bounds(array);
            ColumnStatistics { field: column.id, nulls: array.null_count() as u64, nans, min, max }
        })
        .collect()
}

#[derive(Default)]
struct Bounds {
    nans: u64,
    min: Option<Literal>,
    max: Option<Literal>,
}

fn bounds(array: &dyn Array) -> Bounds {
    match array.data_type() {
        ArrowType::Boolean => {
            let values = array.as_boolean_opt().into_iter().flat_map(|values| values.iter().flatten());
            of(extremes(values), Literal::Boolean)
        }
        ArrowType::Int8 => integers::<Int8Type>(array),
        ArrowType::Int16 => integers::<Int16Type>(array),
        ArrowType::Int32 => integers::<Int32Type>(array),
        ArrowType::Int64 => integers::<Int64Type>(array),
        ArrowType::Date32 => integers::<Date32Type>(array),
        ArrowType::Time32(Unit::Second) => integers::<Time32SecondType>(array),
        ArrowType::Time32(_) => integers::<Time32MillisecondType>(array),
        ArrowType::Time64(Unit::Microsecond) => integers::<Time64MicrosecondType>(array),
        ArrowType::Time64(_) => integers::<Time64NanosecondType>(array),
        ArrowType::Timestamp(Unit::Second, _) => integers::<TimestampSecondType>(array),
        ArrowType::Timestamp(Unit::Millisecond, _) => integers::<TimestampMillisecondType>(array),
        ArrowType::Timestamp(Unit::Microsecond, _) => integers::<TimestampMicrosecondType>(array),
        ArrowType::Timestamp(Unit::Nanosecond, _) => integers::<TimestampNanosecondType>(array),
        ArrowType::Decimal128(..) => of(primitives::<Decimal128Type>(array), Literal::Decimal),
        ArrowType::Float32 => {
            let values = array.as_primitive_opt::<Float32Type>();
            floats(values.into_iter().flat_map(|values| values.iter().flatten()).map(f64::from))
        }
        ArrowType::Float64 => {
            let values = array.as_primitive_opt::<Float64Type>();
            floats(values.into_iter().flat_map(|values| values.iter().flatten()))
        }
        ArrowType::Utf8 => {
            let values = array.as_string_opt::<i32>();
            let found = extremes(values.into_iter().flat_map(|values| values.iter().flatten()));
            let min = found.map(|(min, _)| Literal::Text(text_below(min)));
            let max = found.and_then(|(_, max)| text_above(max)).map(Literal::Text);
            Bounds { nans: 0, min, max }
        }
        ArrowType::Binary => {
            let values = array.as_binary_opt::<i32>();
            let found = extremes(values.into_iter().flat_map(|values| values.iter().flatten()));
            let min = found.map(|(min, _)| Literal::Bytes(bytes_below(min)));
            let max = found.and_then(|(_, max)| bytes_above(max)).map(Literal::Bytes);
            Bounds { nans: 0, min, max }
        }
        _ => Bounds::default(),
    }
}

fn of<T>(found: Option<(T, T)>, literal: impl Fn(T) -> Literal) -> Bounds {
    let (min, max) = found.unzip();
    Bounds { nans: 0, min: min.map(&literal), max: max.map(&literal) }
}

fn extremes<T: Ord + Copy>(mut values: impl Iterator<Item = T>) -> Option<(T, T)> {
    let first = values.next()?;
    Some(values.fold((first, first), |(min, max), value| (min.min(value), max.max(value))))
}

fn primitives<T: ArrowPrimitiveType>(array: &dyn Array) -> Option<(T::Native, T::Native)>
where
    T::Native: Ord,
{
    let values = array.as_primitive_opt::<T>()?;
    match values.null_count() {
        0 => extremes(values.values().iter().copied()),
        _ => extremes(values.iter().flatten()),
    }
}

fn integers<T: ArrowPrimitiveType>(array: &dyn Array) -> Bounds
where
    T::Native: Ord + Into<i64>,
{
    of(primitives::<T>(array), |value| Literal::Integer(value.into()))
}

fn floats(values: impl Iterator<Item = f64>) -> Bounds {
    let (mut nans, mut found) = (0, None);
    for value in values {
        if value.is_nan() {
            nans += 1;
            continue;
        }
        let (min, max) = found.unwrap_or((value, value));
        found = Some((if value < min { value } else { min }, if value > max { value } else { max }));
    }
    let (min, max) = found.unzip();
    // Zeros are equal, so either may have been found.
    let min = min.map(|min: f64| if min == 0.0 { -0.0 } else { min });
    let max = max.map(|max: f64| if max == 0.0 { 0.0 } else { max });
    Bounds {
        nans,
        min: min.map(|min: f64| Literal::Double(min.to_bits())),
        max: max.map(|max: f64| Literal::Double(max.to_bits())),
    }
}

fn text_below(text: &str) -> String {
    text.get(..text.floor_char_boundary(STATISTICS_VALUE_BYTES_MAX)).unwrap_or_default().to_owned()
}

/// None if no short text is above.
fn text_above(text: &str) -> Option<String> {
    let mut cut = text_below(text);
    if cut.len() == text.len() {
        return Some(cut);
    }
    // The last character that has a successor makes way for it, unless that is too long.
    while let Some(last) = cut.pop() {
        let next = (last..=char::MAX).nth(1);
        if let Some(next) = next.filter(|next| cut.len() + next.len_utf8() <= STATISTICS_VALUE_BYTES_MAX) {
            cut.push(next);
            return Some(cut);
        }
    }
    None
}

fn bytes_below(bytes: &[u8]) -> Vec<u8> {
    bytes.get(..STATISTICS_VALUE_BYTES_MAX).unwrap_or(bytes).to_vec()
}

/// None if no short value is above.
fn bytes_above(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut cut = bytes_below(bytes);
    if cut.len() == bytes.len() {
        return Some(cut);
    }
    while let Some(last) = cut.pop() {
        if let Some(next) = last.checked_add(1) {
            cut.push(next);
            return Some(cut);
        }
    }
    None
}

/// The bytes of a batch's statistics.
pub(super) fn write_statistics(all: &[ColumnStatistics]) -> Vec<u8> {
    // A schema has fewer columns than that.
    let count = u16::try_from(all.len()).unwrap_or_default();
    let mut out = count.to_le_bytes().to_vec();
    for column in all.iter().take(usize::from(count)) {
        out.extend_from_slice(&column.field.0.to_le_bytes());
        // Rows of a batch are far fewer.
        out.extend_from_slice(&u32::try_from(column.nulls).unwrap_or(u32::MAX).to_le_bytes());
        out.extend_from_slice(&u32::try_from(column.nans).unwrap_or(u32::MAX).to_le_bytes());
        let has_min = if column.min.is_some() { HAS_MIN } else { 0 };
        let has_max = if column.max.is_some() { HAS_MAX } else { 0 };
        out.push(has_min | has_max);
        for literal in [&column.min, &column.max].into_iter().flatten() {
            write_literal(&mut out, literal);
        }
    }
    out
}

fn write_literal(out: &mut Vec<u8>, literal: &Literal) {
    let mut short = |kind: u8, bytes: &[u8]| {
        // Bounds are cut to far less.
        out.extend_from_slice(&[kind, u8::try_from(bytes.len()).unwrap_or_default()]);
        out.extend_from_slice(bytes);
    };
    match literal {
        Literal::Text(text) => short(5, text.as_bytes()),
        Literal::Bytes(bytes) => short(6, bytes),
        Literal::Boolean(value) => out.extend_from_slice(&[1, u8::from(*value)]),
        Literal::Integer(value) => {
            out.push(2);
            out.extend_from_slice(&value.to_le_bytes());
        }
        Literal::Double(bits) => {
            out.push(3);
            out.extend_from_slice(&bits.to_le_bytes());
        }
        Literal::Decimal(value) => {
            out.push(4);
            out.extend_from_slice(&value.to_le_bytes());
        }
    }
}

/// The statistics that `bytes` hold, all of them.
pub(super) fn read_statistics(bytes: &[u8]) -> Result<Vec<ColumnStatistics>, RecordError> {
    let unsound = || RecordError::invalid("the statistics of a batch of Arrow are not sound");
    let mut at = Bounded::new(bytes);
    let count = usize::from(u16::from_le_bytes(at.array().ok_or_else(unsound)?));
    let mut all = Vec::with_capacity(count.min(at.rest().len() / ENTRY_BYTES_MIN));
    for _ in 0..count {
        all.push(read_column(&mut at).ok_or_else(unsound)?);
    }
    if at.rest().is_empty() { Ok(all) } else { Err(unsound()) }
}

fn read_column(at: &mut Bounded<'_>) -> Option<ColumnStatistics> {
    let mut number = || at.array().map(u32::from_le_bytes);
    let (field, nulls, nans) = (FieldId(number()?), number()?.into(), number()?.into());
    let flags = at.u8()?;
    if flags & !(HAS_MIN | HAS_MAX) != 0 {
        return None;
    }
    let min = if flags & HAS_MIN == 0 { None } else { Some(read_literal(at)?) };
    let max = if flags & HAS_MAX == 0 { None } else { Some(read_literal(at)?) };
    Some(ColumnStatistics { field, nulls, nans, min, max })
}

fn read_literal(at: &mut Bounded<'_>) -> Option<Literal> {
    Some(match at.u8()? {
        1 => Literal::Boolean(match at.u8()? {
            0 => false,
            1 => true,
            _ => return None,
        }),
        2 => Literal::Integer(i64::from_le_bytes(at.array()?)),
        3 => Literal::Double(u64::from_le_bytes(at.array()?)),
        4 => Literal::Decimal(i128::from_le_bytes(at.array()?)),
        5 => Literal::Text(std::str::from_utf8(short(at)?).ok()?.to_owned()),
        6 => Literal::Bytes(short(at)?.to_vec()),
        _ => return None,
    })
}

fn short<'a>(at: &mut Bounded<'a>) -> Option<&'a [u8]> {
    let length = usize::from(at.u8()?);
    at.take(length).filter(|_| length <= STATISTICS_VALUE_BYTES_MAX)
}
