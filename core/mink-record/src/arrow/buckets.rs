//! Which bucket and partition each row belongs to (FEATURES section 2).
//!
//! Lives on: anywhere (pure). Looks once at each value of the key.
//! Invariants: a row's bucket follows from its bucket key and the number of buckets alone, on every node and in every client. For one column
//! of a type that Iceberg's `bucket` transform has, it is that transform's (Iceberg spec, appendix B: 32-bit murmur3, x86, seed 0).

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, RecordBatch, UInt32Array};
use arrow_schema::{DataType as ArrowType, TimeUnit as Unit};
use arrow_select::take::take_record_batch;
use mink_types::schema::{FieldId, Literal, Schema};

use crate::RecordError;

/// Chooses the bucket of each row of a table.
#[derive(Clone, Debug)]
pub struct Buckets {
    /// Where the columns of the bucket key lie among the table's.
    columns: Vec<usize>,
    buckets: u32,
}

impl Buckets {
    /// For a table of `buckets` buckets; none if its rows may go to any.
    pub fn new(schema: &Schema, buckets: u32) -> Option<Buckets> {
        let columns = places(schema, schema.bucket_key());
        (!columns.is_empty() && buckets > 0).then_some(Buckets { columns, buckets })
    }

    /// The bucket of each row of `rows`, which have the table's columns in their order.
    ///
    /// # Errors
    /// `SchemaMismatch` for rows without the columns of the key.
    pub fn of(&self, rows: &RecordBatch) -> Result<Vec<u32>, RecordError> {
        let arrays = self.columns.iter().map(|at| rows.columns().get(*at));
        let arrays: Vec<&ArrayRef> = arrays
            .collect::<Option<_>>()
            .ok_or_else(|| RecordError::mismatch("the rows lack a column of the bucket key"))?;
        let mut bytes = Vec::new();
        let mut found = Vec::with_capacity(rows.num_rows());
        for row in 0..rows.num_rows() {
            bytes.clear();
            match arrays.as_slice() {
                [only] if has_transform(only.data_type()) => put_value(only, row, &mut bytes)?,
                // Each value is told from its neighbour by its length.
                several => {
                    for array in several {
                        let at = bytes.len();
                        bytes.extend_from_slice(&[0; 4]);
                        put_value(array, row, &mut bytes)?;
                        let length = u32::try_from(bytes.len() - at - 4).unwrap_or(u32::MAX).to_le_bytes();
                        for (place, byte) in bytes.iter_mut().skip(at).zip(length) {
                            *place = byte;
                        }
                    }
                }
            }
            found.push((murmur3(&bytes) & (u32::MAX >> 1)) % self.buckets);
        }
        Ok(found)
    }
}

/// The values of the columns that a table is partitioned by, of one row.
///
/// # Errors
/// `SchemaMismatch` for rows without such a column; `InvalidRecord` for a null, which no partition has.
pub fn partition_values(
    schema: &Schema,
    rows: &RecordBatch,
    row: usize,
) -> Result<Vec<Literal>, RecordError> {
    let values = places(schema, schema.partitioned_by()).into_iter().map(|at| {
        let array = rows.columns().get(at);
        let array = array.ok_or_else(|| RecordError::mismatch("the rows lack a partition column"))?;
        literal_at(array, row).ok_or_else(|| {
            RecordError::invalid(format!(
                "a row has no value in the partition column {:?}",
                rows.schema().field(at).name()
            ))
        })
    });
    values.collect()
}

/// The rows at these places, in this order.
///
/// # Errors
/// `SchemaMismatch` for a place beyond the last row.
pub fn rows_at(rows: &RecordBatch, places: Vec<u32>) -> Result<RecordBatch, RecordError> {
    if places.iter().any(|place| usize::try_from(*place).map_or(true, |place| place >= rows.num_rows())) {
        return Err(RecordError::mismatch("a row that is not there is asked for"));
    }
    take_record_batch(rows, &UInt32Array::from(places))
        .map_err(|_| RecordError::mismatch("rows can't be taken out of their batch"))
}

fn places(schema: &Schema, ids: &[FieldId]) -> Vec<usize> {
    ids.iter().filter_map(|id| schema.columns().iter().position(|column| column.id == *id)).collect()
}

/// Whether Iceberg's transform is defined for it.
fn has_transform(data_type: &ArrowType) -> bool {
    !matches!(data_type, ArrowType::Boolean | ArrowType::Float32 | ArrowType::Float64)
}

fn at<T: ArrowPrimitiveType>(array: &dyn Array, row: usize) -> Option<T::Native> {
    array.as_primitive_opt::<T>().filter(|array| row < array.len()).map(|array| array.value(row))
}

/// The value of a scalar column in one row; none for null.
pub fn literal_at(array: &dyn Array, row: usize) -> Option<Literal> {
    if row >= array.len() || array.is_null(row) {
        return None;
    }
    Some(match array.data_type() {
        ArrowType::Boolean => Literal::Boolean(array.as_boolean_opt()?.value(row)),
        ArrowType::Float32 => Literal::Double(normal(at::<Float32Type>(array, row)?.into()).to_bits()),
        ArrowType::Float64 => Literal::Double(normal(at::<Float64Type>(array, row)?).to_bits()),
        ArrowType::Decimal128(..) => Literal::Decimal(at::<Decimal128Type>(array, row)?),
        ArrowType::Utf8 => Literal::Text(array.as_string_opt::<i32>()?.value(row).to_owned()),
        ArrowType::Binary => Literal::Bytes(array.as_binary_opt::<i32>()?.value(row).to_vec()),
        _ => Literal::Integer(integer_at(array, row)?),
    })
}

/// One zero and one NaN: what is equal is one value.
fn normal(value: f64) -> f64 {
    if value == 0.0 {
        0.0
    } else if value.is_nan() {
        f64::NAN
    } else {
        value
    }
}

fn integer_at(array: &dyn Array, row: usize) -> Option<i64> {
    Some(match array.data_type() {
        ArrowType::Int8 => at::<Int8Type>(array, row)?.into(),
        ArrowType::Int16 => at::<Int16Type>(array, row)?.into(),
        ArrowType::Int32 => at::<Int32Type>(array, row)?.into(),
        ArrowType::Int64 => at::<Int64Type>(array, row)?,
        ArrowType::Date32 => at::<Date32Type>(array, row)?.into(),
        ArrowType::Time32(Unit::Second) => at::<Time32SecondType>(array, row)?.into(),
        ArrowType::Time32(_) => at::<Time32MillisecondType>(array, row)?.into(),
        ArrowType::Time64(Unit::Microsecond) => at::<Time64MicrosecondType>(array, row)?,
        ArrowType::Time64(_) => at::<Time64NanosecondType>(array, row)?,
        ArrowType::Timestamp(Unit::Second, _) => at::<TimestampSecondType>(array, row)?,
        ArrowType::Timestamp(Unit::Millisecond, _) => at::<TimestampMillisecondType>(array, row)?,
        ArrowType::Timestamp(Unit::Microsecond, _) => at::<TimestampMicrosecondType>(array, row)?,
        ArrowType::Timestamp(Unit::Nanosecond, _) => at::<TimestampNanosecondType>(array, row)?,
        _ => return None,
    })
}

/// Iceberg hashes times and instants as microseconds.
fn micros(value: i64, unit: Unit) -> i64 {
    match unit {
        Unit::Second => value.saturating_mul(1_000_000),
        Unit::Millisecond => value.saturating_mul(1_000),
        Unit::Microsecond => value,
        Unit::Nanosecond => value.div_euclid(1_000),
    }
}

/// The bytes of a value that are hashed. The columns of a key are never null.
fn put_value(array: &dyn Array, row: usize, bytes: &mut Vec<u8>) -> Result<(), RecordError> {
    let unsound = || RecordError::invalid("a column of the bucket key has no value in a row");
    match (literal_at(array, row).ok_or_else(unsound)?, array.data_type()) {
        (Literal::Boolean(value), _) => bytes.push(value.into()),
        (
            Literal::Integer(value),
            ArrowType::Time32(unit) | ArrowType::Time64(unit) | ArrowType::Timestamp(unit, _),
        ) => {
            bytes.extend_from_slice(&micros(value, *unit).to_le_bytes());
        }
        (Literal::Integer(value), _) => bytes.extend_from_slice(&value.to_le_bytes()),
        (Literal::Double(bits), _) => bytes.extend_from_slice(&bits.to_le_bytes()),
        (Literal::Decimal(value), _) => bytes.extend_from_slice(shortest(&value.to_be_bytes())),
        (Literal::Text(text), _) => bytes.extend_from_slice(text.as_bytes()),
        (Literal::Bytes(value), _) => bytes.extend_from_slice(&value),
    }
    Ok(())
}

/// Two's complement, big-endian, without bytes that only repeat the sign.
fn shortest(mut bytes: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = bytes {
        let sign_stays = rest
            .first()
            .is_some_and(|next| (*first == 0 && *next < 0x80) || (*first == 0xff && *next >= 0x80));
        if !sign_stays {
            break;
        }
        bytes = rest;
    }
    bytes
}

/// MurmurHash3, x86, 32 bits, seed 0 (Austin Appleby, public domain).
fn murmur3(bytes: &[u8]) -> u32 {
    const C1: u32 = 0xcc9e_2d51;
    const C2: u32 = 0x1b87_3593;
    let mix = |block: u32| block.wrapping_mul(C1).rotate_left(15).wrapping_mul(C2);
    let mut hash = 0_u32;
    let (blocks, tail) = bytes.as_chunks::<4>();
    for block in blocks {
        hash = (hash ^ mix(u32::from_le_bytes(*block)))
            .rotate_left(13)
            .wrapping_mul(5)
            .wrapping_add(0xe654_6b64);
    }
    if !tail.is_empty() {
        let last = tail.iter().rev().fold(0_u32, |last, byte| last << 8 | u32::from(*byte));
        hash ^= mix(last);
    }
    hash ^= u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    hash = (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{BinaryArray, Date32Array, Decimal128Array, Int32Array, Int64Array, StringArray};
    use arrow_array::{Time64MicrosecondArray, TimestampMicrosecondArray};
    use mink_types::schema::{DataType, Field, SchemaDraft};
    use std::sync::Arc;

    fn hash(array: &dyn Array) -> i32 {
        let mut bytes = Vec::new();
        put_value(array, 0, &mut bytes).expect("a value");
        murmur3(&bytes).cast_signed()
    }

    /// The values of the Iceberg specification, appendix B.
    #[test]
    fn hashes_are_those_of_icebergs_specification() {
        assert_eq!(hash(&Int32Array::from(vec![34])), 2_017_239_379);
        assert_eq!(hash(&Int64Array::from(vec![34])), 2_017_239_379);
        let decimal = Decimal128Array::from(vec![1420]).with_precision_and_scale(9, 2).expect("fits");
        assert_eq!(hash(&decimal), -500_754_589);
        assert_eq!(hash(&Date32Array::from(vec![17_486])), -653_330_422);
        assert_eq!(hash(&Time64MicrosecondArray::from(vec![81_068_000_000])), -662_762_989);
        assert_eq!(hash(&TimestampMicrosecondArray::from(vec![1_510_871_468_000_000])), -2_047_944_441);
        assert_eq!(hash(&StringArray::from(vec!["iceberg"])), 1_210_000_089);
        assert_eq!(hash(&BinaryArray::from(vec![&[0, 1, 2, 3][..]])), -188_683_207);
    }

    #[test]
    fn a_decimal_is_hashed_without_bytes_that_repeat_its_sign() {
        for (value, bytes) in [
            (0_i128, &[0][..]),
            (127, &[127]),
            (128, &[0, 128]),
            (-1, &[255]),
            (-128, &[128]),
            (-129, &[255, 127]),
        ] {
            assert_eq!(shortest(&value.to_be_bytes()), bytes, "{value}");
        }
    }

    #[test]
    fn keys_of_several_columns_spread_and_tell_neighbours_apart() {
        let columns = ["a", "b"].map(|name| Field::new(name, DataType::String).not_null()).to_vec();
        let draft =
            SchemaDraft { columns, bucket_key: vec!["a".into(), "b".into()], ..SchemaDraft::default() };
        let schema = Schema::create(draft).expect("sound");
        let buckets = Buckets::new(&schema, 1 << 16).expect("a key");
        let column = |values: Vec<&str>| Arc::new(StringArray::from(values)) as ArrayRef;
        let rows = RecordBatch::try_from_iter([
            ("a", column(vec!["x", "xy", "x"])),
            ("b", column(vec!["yz", "z", "yz"])),
        ]);
        let found = buckets.of(&rows.expect("sound")).expect("sound");
        assert_eq!(found.first(), found.last());
        assert_ne!(found.first(), found.get(1));
    }
}
