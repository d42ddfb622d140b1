//! Which constants a type has.
//!
//! Lives on: anywhere (pure).
use super::{DataType, Literal, TimeUnit};

const SECONDS_PER_DAY: i64 = 24 * 60 * 60;
/// 0001-01-01 and 9999-12-31, in days since 1970-01-01: what SQL can write.
const DAY_FIRST: i64 = -719_162;
const DAY_LAST: i64 = 2_932_896;

impl DataType {
    /// Whether a constant is one of this type; else what is accepted. Nested types have no constants; dates and times are of the
    /// years 1 to 9999 and have no more digits behind the second than their type; floats are finite.
    pub fn check_literal(&self, literal: &Literal) -> Result<(), String> {
        if self.has(literal) { Ok(()) } else { Err(self.accepted()) }
    }

    fn has(&self, literal: &Literal) -> bool {
        match (self, literal) {
            (DataType::Boolean, Literal::Boolean(_))
            | (DataType::BigInt, Literal::Integer(_))
            | (DataType::String, Literal::Text(_))
            | (DataType::Bytes, Literal::Bytes(_)) => true,
            (DataType::TinyInt, Literal::Integer(value)) => i8::try_from(*value).is_ok(),
            (DataType::SmallInt, Literal::Integer(value)) => i16::try_from(*value).is_ok(),
            (DataType::Int, Literal::Integer(value)) => i32::try_from(*value).is_ok(),
            (DataType::Float, Literal::Double(bits)) => {
                let value = f64::from_bits(*bits);
                value.is_finite() && narrowed(value).to_bits() == *bits
            }
            (DataType::Double, Literal::Double(bits)) => f64::from_bits(*bits).is_finite(),
            (DataType::Decimal { precision, .. }, Literal::Decimal(unscaled)) => {
                // 10^38 fits in 128 bits; more digits no type has.
                let bound = 10_u128.checked_pow((*precision).into());
                bound.is_some_and(|bound| unscaled.unsigned_abs() < bound)
            }
            (DataType::Char { length }, Literal::Text(text)) => {
                text.chars().count() <= usize::try_from(*length).unwrap_or(usize::MAX)
            }
            (DataType::Binary { length }, Literal::Bytes(bytes)) => {
                bytes.len() <= usize::try_from(*length).unwrap_or(usize::MAX)
            }
            (DataType::Date, Literal::Integer(days)) => (DAY_FIRST..=DAY_LAST).contains(days),
            (DataType::Time { precision }, Literal::Integer(value)) => {
                let day = SECONDS_PER_DAY * TimeUnit::of_precision(*precision).per_second();
                (0..day).contains(value) && has_digits(*value, *precision)
            }
            (
                DataType::Timestamp { precision } | DataType::TimestampLtz { precision },
                Literal::Integer(value),
            ) => {
                let seconds = value.div_euclid(TimeUnit::of_precision(*precision).per_second());
                (DAY_FIRST..=DAY_LAST).contains(&seconds.div_euclid(SECONDS_PER_DAY))
                    && has_digits(*value, *precision)
            }
            _ => false,
        }
    }

    fn accepted(&self) -> String {
        match self {
            DataType::Boolean => "true or false".to_owned(),
            DataType::TinyInt | DataType::SmallInt | DataType::Int | DataType::BigInt => {
                format!("a whole number in the range of {self}")
            }
            DataType::Float | DataType::Double => format!("a finite number that {self} holds exactly"),
            DataType::Decimal { .. } => format!("a number with the digits of {self}"),
            DataType::Char { length } => format!("text of at most {length} characters"),
            DataType::String => "text".to_owned(),
            DataType::Binary { length } => format!("at most {length} bytes"),
            DataType::Bytes => "bytes".to_owned(),
            DataType::Date => "a date from 0001-01-01 to 9999-12-31".to_owned(),
            DataType::Time { precision } => {
                format!("a time of day with at most {precision} digits behind the second")
            }
            DataType::Timestamp { precision } | DataType::TimestampLtz { precision } => format!(
                "a time in the years 1 to 9999 with at most {precision} digits behind the second, in 64 bits"
            ),
            DataType::Array(_) | DataType::Map { .. } | DataType::Row(_) => {
                "none; nested types have no constants".to_owned()
            }
        }
    }
}

/// As a FLOAT holds it.
#[expect(clippy::cast_possible_truncation, reason = "whether it comes back the same is what is asked")]
fn narrowed(value: f64) -> f64 {
    f64::from(value as f32)
}

/// Whether a value in the unit of a precision has no digits beyond that precision.
fn has_digits(value: i64, precision: u8) -> bool {
    let unit_digits = match TimeUnit::of_precision(precision) {
        TimeUnit::Seconds => 0,
        TimeUnit::Milliseconds => 3,
        TimeUnit::Microseconds => 6,
        TimeUnit::Nanoseconds => 9,
    };
    let beyond = u32::from(u8::saturating_sub(unit_digits, precision));
    value % 10_i64.pow(beyond) == 0
}
