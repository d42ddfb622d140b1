//! Random schemas and batches: every type, nested to a depth of three, with nulls where they may be.
#![expect(clippy::from_iter_instead_of_collect, reason = "the type stands in front")]

use super::*;
use crate::arrow::arrow_field;
use arrow_array::builder::{BinaryBuilder, StringBuilder};
use arrow_array::*;
use arrow_buffer::{Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType as ArrowType;
use mink_types::schema::TimeUnit;
use std::sync::Arc;

/// A sequence of numbers from a seed (splitmix64).
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).expect("below a usize")
    }
}

pub(super) fn random_schema(random: &mut Random) -> Schema {
    let count = 1 + random.below(5);
    schema((0..count).map(|at| random_field(random, &random_name(at), 1)).collect())
}

/// Names that JSON must escape among them.
fn random_name(at: usize) -> String {
    ["a", "b\"", "c\\", "d é", "e\u{10ffff}"][at].to_owned()
}

fn random_field(random: &mut Random, name: &str, depth: usize) -> Field {
    Field { nullable: random.below(3) > 0, ..Field::new(name, random_type(random, depth)) }
}

fn random_type(random: &mut Random, depth: usize) -> DataType {
    let precision = u8::try_from(random.below(10)).expect("a digit");
    match random.below(if depth < 3 { 22 } else { 17 }) {
        0 => DataType::Boolean,
        1 => DataType::TinyInt,
        2 => DataType::SmallInt,
        3 => DataType::Int,
        4 => DataType::BigInt,
        5 => DataType::Float,
        6 => DataType::Double,
        7 | 8 => {
            let precision = 1 + u8::try_from(random.below(38)).expect("digits");
            let scale = u8::try_from(random.below(usize::from(precision) + 1)).expect("digits");
            DataType::Decimal { precision, scale }
        }
        9 => DataType::Char { length: 12 },
        10 => DataType::String,
        11 => DataType::Binary { length: 9 },
        12 => DataType::Bytes,
        13 => DataType::Date,
        14 => DataType::Time { precision },
        15 => DataType::Timestamp { precision },
        16 => DataType::TimestampLtz { precision },
        17 => DataType::Array(Box::new(random_field(random, "element", depth + 1))),
        18 => map(DataType::String, random_field(random, "value", depth + 1)),
        19 => map(random_type(random, depth + 1), random_field(random, "value", depth + 1)),
        _ => {
            let count = 1 + random.below(3);
            DataType::Row((0..count).map(|at| random_field(random, &random_name(at), depth + 1)).collect())
        }
    }
}

fn map(key: DataType, value: Field) -> DataType {
    DataType::Map { key: Box::new(Field::new("key", key).not_null()), value: Box::new(value) }
}

pub(super) fn random_batch(random: &mut Random, schema: &Schema) -> RecordBatch {
    let rows = 1 + random.below(9);
    let columns =
        schema.columns().iter().map(|column| make_array(random_array(random, column, rows))).collect();
    RecordBatch::try_new(crate::arrow::arrow_schema(schema), columns).expect("columns of the schema")
}

fn random_array(random: &mut Random, field: &Field, len: usize) -> ArrayData {
    let valid: Vec<bool> = (0..len).map(|_| !field.nullable || random.below(4) > 0).collect();
    let nulls = Some(NullBuffer::from(valid)).filter(|nulls| nulls.null_count() > 0);
    let arrow = arrow_field(field).data_type().clone();
    let plain = match (&field.data_type, &arrow) {
        (DataType::Boolean, _) => {
            BooleanArray::from_iter((0..len).map(|_| Some(random.below(2) == 0))).into_data()
        }
        (DataType::TinyInt, _) => fixed(random, arrow, len, |bits| bits.to_le_bytes()[0]),
        (DataType::SmallInt, _) => fixed(random, arrow, len, |bits| (bits >> 48) as u16),
        (DataType::Int, _) => fixed(random, arrow, len, |bits| (bits >> 32) as u32),
        (DataType::BigInt, _) => fixed(random, arrow, len, |bits| bits >> (bits & 63)),
        (DataType::Float, _) => fixed(random, arrow, len, |bits| match f32::from_bits((bits >> 32) as u32) {
            nan if nan.is_nan() => f32::NAN,
            value => [value, -0.0, f32::INFINITY, 16_777_216.0, 1.5][(bits & 15).min(4) as usize % 5],
        }),
        (DataType::Double, _) => fixed(random, arrow, len, |bits| match f64::from_bits(bits) {
            nan if nan.is_nan() => f64::NAN,
            value => [value, -0.0, f64::NEG_INFINITY, 1e300, 1.5][(bits & 15).min(4) as usize % 5],
        }),
        (DataType::Decimal { precision, .. }, _) => {
            let bound = 10_i128.pow(u32::from(*precision));
            fixed(random, arrow, len, |bits| (i128::from(bits.cast_signed()) << (bits & 63)) % bound)
        }
        (DataType::Date, _) => fixed(random, arrow, len, |bits| (bits >> 32) as u32),
        (DataType::Time { precision }, ArrowType::Time32(_)) => {
            fixed(random, arrow, len, |bits| i32::try_from(units(bits, *precision, true)).expect("of a day"))
        }
        (DataType::Time { precision }, _) => fixed(random, arrow, len, |bits| units(bits, *precision, true)),
        (DataType::Timestamp { precision } | DataType::TimestampLtz { precision }, _) => {
            fixed(random, arrow, len, |bits| units(bits, *precision, false))
        }
        (DataType::Char { .. } | DataType::String, _) => {
            let mut texts = StringBuilder::new();
            for at in 0..len {
                // The place makes keys of a map differ.
                texts.append_value(format!("{}{at}", random_text(random)));
            }
            texts.finish().into_data()
        }
        (DataType::Binary { .. } | DataType::Bytes, _) => {
            let mut values = BinaryBuilder::new();
            for _ in 0..len {
                values.append_value(&random.next().to_le_bytes()[..random.below(9)]);
            }
            values.finish().into_data()
        }
        (DataType::Array(element), _) => {
            let (offsets, total) = random_lists(random, nulls.as_ref(), len, 4);
            let below = random_array(random, element, total);
            ArrayData::builder(arrow)
                .len(len)
                .add_buffer(offsets)
                .add_child_data(below)
                .build()
                .expect("a list")
        }
        (DataType::Map { key, value }, ArrowType::Map(entries, _)) => {
            // Keys of other types could stand twice.
            let most = if key.data_type == DataType::String { 4 } else { 2 };
            let (offsets, total) = random_lists(random, nulls.as_ref(), len, most);
            let pair = vec![random_array(random, key, total), random_array(random, value, total)];
            let pair = ArrayData::builder(entries.data_type().clone()).len(total).child_data(pair).build();
            ArrayData::builder(arrow)
                .len(len)
                .add_buffer(offsets)
                .add_child_data(pair.expect("pairs"))
                .build()
                .expect("a map")
        }
        (DataType::Row(fields), _) => {
            let children = fields.iter().map(|field| random_array(random, field, len)).collect();
            ArrayData::builder(arrow).len(len).child_data(children).build().expect("a row")
        }
        unlike => panic!("no such column: {unlike:?}"),
    };
    plain.into_builder().nulls(nulls).build().expect("as before, with nulls")
}

fn fixed<T: arrow_buffer::ArrowNativeType>(
    random: &mut Random,
    arrow: ArrowType,
    len: usize,
    value: impl Fn(u64) -> T,
) -> ArrayData {
    let values: Vec<T> = (0..len).map(|_| value(random.next())).collect();
    ArrayData::builder(arrow)
        .len(len)
        .add_buffer(Buffer::from_vec(values))
        .build()
        .expect("values of one width")
}

/// Of a precision's digits alone.
fn units(bits: u64, precision: u8, of_day: bool) -> i64 {
    let per_second = TimeUnit::of_precision(precision).per_second();
    let beyond = per_second / 10_i64.pow(u32::from(precision));
    let units = if of_day { bits.cast_signed().rem_euclid(86_400 * per_second) } else { bits.cast_signed() };
    units / beyond * beyond
}

/// Offsets of lists shorter than `most`, and what they have in all; null ones have nothing.
fn random_lists(random: &mut Random, nulls: Option<&NullBuffer>, len: usize, most: usize) -> (Buffer, usize) {
    let mut offsets = vec![0_i32];
    let mut total = 0;
    for at in 0..len {
        total += if nulls.is_some_and(|nulls| nulls.is_null(at)) { 0 } else { random.below(most) };
        offsets.push(i32::try_from(total).expect("few"));
    }
    (Buffer::from_vec(offsets), total)
}

/// Few enough characters for CHAR(12), the place behind them.
fn random_text(random: &mut Random) -> String {
    let characters =
        ['a', '"', '\\', '/', '\n', '\u{1}', '\u{1f}', '\u{7f}', 'é', '\u{d7ff}', '\u{ffff}', char::MAX];
    (0..random.below(9)).map(|_| characters[random.below(characters.len())]).collect()
}

/// Used by the types of `values` only where a test needs one.
pub(super) fn arrow_rows(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns.into_iter().map(|(name, array)| (name, Arc::clone(&array))))
        .expect("columns")
}
