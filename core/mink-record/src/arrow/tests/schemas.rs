//! Random schemas and rows: every type, nested to a depth of three, with nulls where they may be.

use super::*;
use mink_types::schema::TimeUnit;

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

    pub(super) fn coin(&mut self) -> bool {
        self.next() & 1 == 0
    }
}

pub(super) fn random_schema(random: &mut Random) -> Schema {
    let count = 1 + random.below(5);
    schema((0..count).map(|at| random_field(random, &format!("c{at}"), 1)).collect())
}

pub(super) fn random_field(random: &mut Random, name: &str, depth: usize) -> Field {
    let data_type = random_type(random, depth);
    Field { nullable: random.below(3) > 0, ..column(name, data_type) }
}

pub(super) fn random_type(random: &mut Random, depth: usize) -> DataType {
    let precision = u8::try_from(random.below(10)).expect("a digit");
    match random.below(if depth < 3 { 20 } else { 17 }) {
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
        9 => DataType::Char { length: 1 + u32::try_from(random.below(6)).expect("short") },
        10 => DataType::String,
        11 => DataType::Binary { length: 1 + u32::try_from(random.below(6)).expect("short") },
        12 => DataType::Bytes,
        13 => DataType::Date,
        14 => DataType::Time { precision },
        15 => DataType::Timestamp { precision },
        16 => DataType::TimestampLtz { precision },
        17 => DataType::Array(Box::new(random_field(random, "element", depth + 1))),
        18 => DataType::Map {
            key: Box::new(Field { nullable: false, ..random_field(random, "key", depth + 1) }),
            value: Box::new(random_field(random, "value", depth + 1)),
        },
        _ => {
            let count = 1 + random.below(3);
            DataType::Row((0..count).map(|at| random_field(random, &format!("f{at}"), depth + 1)).collect())
        }
    }
}

pub(super) fn random_rows(random: &mut Random, columns: &[Field]) -> Vec<Vec<Value>> {
    let count = 1 + random.below(20);
    (0..count).map(|_| columns.iter().map(|column| random_value(random, column)).collect()).collect()
}

fn random_value(random: &mut Random, field: &Field) -> Value {
    if field.nullable && random.below(4) == 0 {
        return Value::Null;
    }
    let bits = random.next();
    match &field.data_type {
        DataType::Boolean => Value::Boolean(random.coin()),
        DataType::TinyInt => Value::Integer(i64::from(bits.to_le_bytes()[0].cast_signed())),
        DataType::SmallInt => Value::Integer(i64::from(bits.to_le_bytes()[0]) * 120 - 9_000),
        DataType::Int => Value::Integer(i64::from(((bits >> 32) as u32).cast_signed())),
        DataType::BigInt => Value::Integer(bits.cast_signed()),
        DataType::Float => {
            let float = [0.0, -0.0, 1.5, -2.25, f32::INFINITY, f32::NAN, f32::MIN_POSITIVE][random.below(7)];
            Value::Double(f64::from(float).to_bits())
        }
        DataType::Double => {
            let double = [0.0, -0.0, 1.5e300, -2.25, f64::NEG_INFINITY, f64::NAN, f64::MAX][random.below(7)];
            Value::Double(double.to_bits())
        }
        DataType::Decimal { precision, .. } => {
            let bound = 10_i128.pow(u32::from(*precision));
            let wide = i128::from(bits.cast_signed()) * i128::from(random.next().cast_signed() >> 2);
            Value::Decimal(wide % bound)
        }
        DataType::Char { length } => Value::Text(random_text(random, *length as usize)),
        DataType::String => Value::Text(random_text(random, 60)),
        DataType::Binary { length } => Value::Bytes(random_bytes(random, *length as usize)),
        DataType::Bytes => Value::Bytes(random_bytes(random, 60)),
        DataType::Date => Value::Integer(i64::from((bits >> 44) as u32) - 500_000),
        DataType::Time { precision } => {
            let day = 86_400 * TimeUnit::of_precision(*precision).per_second();
            Value::Integer(whole(bits.cast_signed().rem_euclid(day), *precision))
        }
        DataType::Timestamp { precision } | DataType::TimestampLtz { precision } => {
            // Of years that nanoseconds reach, so that every precision may follow.
            let reach = 8_000_000_000 * TimeUnit::of_precision(*precision).per_second();
            Value::Integer(whole(bits.cast_signed() % reach, *precision))
        }
        DataType::Array(element) => {
            let count = random.below(4);
            Value::List((0..count).map(|_| random_value(random, element)).collect())
        }
        DataType::Map { key, value } => {
            let count = random.below(4);
            let pair = |random: &mut Random| vec![random_value(random, key), random_value(random, value)];
            let mut pairs: Vec<Value> = (0..count).map(|_| Value::Row(pair(random))).collect();
            // A key stands in a map once.
            let key = |pair: &Value| match pair {
                Value::Row(pair) => pair.first().cloned(),
                _ => None,
            };
            for at in (1..pairs.len()).rev() {
                if pairs[..at].iter().any(|before| key(before) == key(&pairs[at])) {
                    pairs.remove(at);
                }
            }
            Value::List(pairs)
        }
        DataType::Row(fields) => Value::Row(fields.iter().map(|field| random_value(random, field)).collect()),
    }
}

/// Without digits below the precision.
fn whole(value: i64, precision: u8) -> i64 {
    let step = TimeUnit::of_precision(precision).per_second() / 10_i64.pow(u32::from(precision));
    value - value % step
}

fn random_text(random: &mut Random, characters_max: usize) -> String {
    let characters = ['a', 'z', 'é', '\u{7f}', '\u{7ff}', '\u{d7ff}', '\u{ffff}', char::MAX];
    let count = random.below(characters_max + 1);
    let one = random.coin().then(|| characters[random.below(characters.len())]);
    (0..count).map(|_| one.unwrap_or_else(|| characters[random.below(characters.len())])).collect()
}

fn random_bytes(random: &mut Random, bytes_max: usize) -> Vec<u8> {
    let count = random.below(bytes_max + 1);
    let one = random.coin().then_some(0xff);
    (0..count).map(|_| one.unwrap_or_else(|| random.next().to_le_bytes()[0])).collect()
}
