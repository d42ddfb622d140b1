//! Columns of every type, with values that follow from the row's number.
//!
//! Lives on: anywhere (pure).
use std::sync::Arc;

use arrow_array::types::{
    Date32Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{
    Array, ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, ListArray, MapArray, PrimitiveArray,
    StringArray, StructArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Fields, TimeUnit};

/// The table of all types.
pub(super) const CREATE: &str = "CREATE TABLE types.everything (
  yes BOOLEAN, tiny TINYINT, small SMALLINT, whole INT NOT NULL, big BIGINT, real4 FLOAT, real8 DOUBLE,
  price DECIMAL(38, 10), code CHAR(5), word STRING, mark BINARY(4), raw BYTES, day DATE,
  time0 TIME(0), time3 TIME(3), time6 TIME(6), time9 TIME(9),
  stamp0 TIMESTAMP(0), stamp3 TIMESTAMP(3), stamp6 TIMESTAMP(6), stamp9 TIMESTAMP(9),
  instant0 TIMESTAMP_LTZ(0), instant3 TIMESTAMP_LTZ(3), instant6 TIMESTAMP_LTZ(6), instant9 TIMESTAMP_LTZ(9),
  list ARRAY<INT>, named MAP<STRING, BIGINT>, pair ROW<first INT, second ARRAY<STRING>>,
  deep ARRAY<ROW<inner MAP<INT, STRING> NOT NULL>>
)";

/// Every fourth value of a column that may have nulls is one.
fn is_null(nullable: bool, row: usize) -> bool {
    nullable && row % 4 == 3
}

fn number(row: usize) -> i64 {
    i64::try_from(row).expect("tests have few rows")
}

fn primitive<T: ArrowPrimitiveType>(
    nullable: bool,
    rows: usize,
    value: impl Fn(i64) -> T::Native,
) -> PrimitiveArray<T> {
    (0..rows).map(|row| (!is_null(nullable, row)).then(|| value(number(row)))).collect()
}

fn nulls(nullable: bool, rows: usize) -> Option<NullBuffer> {
    nullable.then(|| NullBuffer::from((0..rows).map(|row| !is_null(true, row)).collect::<Vec<bool>>()))
}

/// Elements of each row: none, one, two, and so on.
fn lengths(nullable: bool, rows: usize) -> Vec<usize> {
    (0..rows).map(|row| if is_null(nullable, row) { 0 } else { row % 3 }).collect()
}

fn fields(fields: &Fields, rows: usize) -> Vec<ArrayRef> {
    fields.iter().map(|field| column(field.data_type(), field.is_nullable(), rows)).collect()
}

fn time(data_type: &DataType, nullable: bool, rows: usize) -> ArrayRef {
    match data_type {
        DataType::Time32(TimeUnit::Second) => {
            Arc::new(primitive::<Time32SecondType>(nullable, rows, |n| (n % 86_400) as i32))
        }
        DataType::Time32(_) => {
            Arc::new(primitive::<Time32MillisecondType>(nullable, rows, |n| (n * 1_001 % 86_400_000) as i32))
        }
        DataType::Time64(TimeUnit::Microsecond) => {
            Arc::new(primitive::<Time64MicrosecondType>(nullable, rows, |n| n * 1_000_001))
        }
        _ => Arc::new(primitive::<Time64NanosecondType>(nullable, rows, |n| n * 1_000_000_001)),
    }
}

fn moment(unit: TimeUnit, zone: Option<Arc<str>>, nullable: bool, rows: usize) -> ArrayRef {
    // Before and after 1970.
    let seconds = |n: i64| (n - 20) * 10_000_019;
    match unit {
        TimeUnit::Second => {
            Arc::new(primitive::<TimestampSecondType>(nullable, rows, seconds).with_timezone_opt(zone))
        }
        TimeUnit::Millisecond => Arc::new(
            primitive::<TimestampMillisecondType>(nullable, rows, |n| seconds(n) * 1_000 + n)
                .with_timezone_opt(zone),
        ),
        TimeUnit::Microsecond => Arc::new(
            primitive::<TimestampMicrosecondType>(nullable, rows, |n| seconds(n) * 1_000_000 + n)
                .with_timezone_opt(zone),
        ),
        TimeUnit::Nanosecond => Arc::new(
            primitive::<TimestampNanosecondType>(nullable, rows, |n| seconds(n) * 1_000_000_000 + n)
                .with_timezone_opt(zone),
        ),
    }
}

/// A column of this type.
#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "values need only differ")]
pub(super) fn column(data_type: &DataType, nullable: bool, rows: usize) -> ArrayRef {
    let text = |row: usize| (!is_null(nullable, row)).then(|| format!("ä{}", row % 1_000));
    let bytes = |row: usize| (!is_null(nullable, row)).then(|| number(row).to_le_bytes()[..4].to_vec());
    match data_type {
        DataType::Boolean => Arc::new(
            (0..rows).map(|row| (!is_null(nullable, row)).then_some(row % 2 == 0)).collect::<BooleanArray>(),
        ),
        DataType::Int8 => Arc::new(primitive::<Int8Type>(nullable, rows, |n| n as i8)),
        DataType::Int16 => Arc::new(primitive::<Int16Type>(nullable, rows, |n| (n * 331) as i16)),
        DataType::Int32 => Arc::new(primitive::<Int32Type>(nullable, rows, |n| (n * 40_000_003) as i32)),
        DataType::Int64 => Arc::new(primitive::<Int64Type>(nullable, rows, |n| i64::MIN + n)),
        DataType::Float32 => Arc::new(primitive::<Float32Type>(nullable, rows, |n| n as f32 / 3.0)),
        DataType::Float64 => Arc::new(primitive::<Float64Type>(nullable, rows, |n| n as f64 / 7.0)),
        DataType::Decimal128(precision, scale) => Arc::new(
            primitive::<Decimal128Type>(nullable, rows, |n| i128::from(n - 10) * 10_i128.pow(30))
                .with_precision_and_scale(*precision, *scale)
                .expect("the table's own type"),
        ),
        DataType::Utf8 => Arc::new((0..rows).map(text).collect::<StringArray>()),
        DataType::Binary => Arc::new((0..rows).map(bytes).collect::<BinaryArray>()),
        DataType::Date32 => Arc::new(primitive::<Date32Type>(nullable, rows, |n| (n * 97 - 3_000) as i32)),
        DataType::Time32(_) | DataType::Time64(_) => time(data_type, nullable, rows),
        DataType::Timestamp(unit, zone) => moment(*unit, zone.clone(), nullable, rows),
        DataType::List(field) => {
            let lengths = lengths(nullable, rows);
            let values = column(field.data_type(), field.is_nullable(), lengths.iter().sum());
            let offsets = OffsetBuffer::from_lengths(lengths);
            let list = ListArray::try_new(Arc::clone(field), offsets, values, nulls(nullable, rows));
            Arc::new(list.expect("the lengths are those of the values"))
        }
        DataType::Map(entries, sorted) => {
            let DataType::Struct(pair) = entries.data_type() else { unreachable!("entries are pairs") };
            let lengths = lengths(nullable, rows);
            let pairs = StructArray::new(pair.clone(), fields(pair, lengths.iter().sum()), None);
            let offsets = OffsetBuffer::from_lengths(lengths);
            let map = MapArray::try_new(Arc::clone(entries), offsets, pairs, nulls(nullable, rows), *sorted);
            Arc::new(map.expect("the lengths are those of the pairs"))
        }
        DataType::Struct(children) => {
            Arc::new(StructArray::new(children.clone(), fields(children, rows), nulls(nullable, rows)))
        }
        other => unreachable!("no column has the type {other}"),
    }
}

/// Whether two columns have the same values; what a null hides does not count.
pub(super) fn same(left: &dyn Array, right: &dyn Array) -> bool {
    left.to_data() == right.to_data()
}
