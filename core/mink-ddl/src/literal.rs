//! Constants of scalar types as plain text, without SQL's quotes: what partitions are named by and what a command line takes.
//!
//! Lives on: anywhere (pure).
//! Invariants: what is read fits its type (`DataType::check_literal`), and prints to a text that reads as the same constant.
use crate::error::{LiteralError, shown};
use crate::lexer::number_length;
use crate::moment::{
    date_text, read_date, read_instant, read_time, read_timestamp, time_text, timestamp_text,
};
use mink_types::schema::{DataType, Literal, TimeUnit};
use std::fmt::Write as _;

/// The constant of this type that a text means: `5`, `1.50`, `true`, `text as it is`, `00ff` (bytes), `2026-01-31`, `10:00:00.5`,
/// `2026-01-31 10:00:00`, and with `Z` or an offset behind it for TIMESTAMP_LTZ.
///
/// ```
/// use mink_types::schema::{DataType, Literal};
/// let price = DataType::Decimal { precision: 5, scale: 2 };
/// assert_eq!(mink_ddl::literal_of(&price, "1.5"), Ok(Literal::Decimal(150)));
/// assert_eq!(mink_ddl::literal_text(&price, &Literal::Decimal(150)), "1.50");
/// assert!(mink_ddl::literal_of(&price, "1.505").is_err());
/// ```
pub fn literal_of(data_type: &DataType, text: &str) -> Result<Literal, LiteralError> {
    let literal = match data_type {
        DataType::Boolean => boolean(text),
        DataType::TinyInt | DataType::SmallInt | DataType::Int | DataType::BigInt => {
            text.parse().ok().map(Literal::Integer)
        }
        DataType::Float => {
            float(text).and_then(|_| text.parse::<f32>().ok()).map(|value| double(value.into()))
        }
        DataType::Double => float(text).map(double),
        DataType::Decimal { scale, .. } => decimal(text, *scale),
        DataType::Char { .. } | DataType::String => Some(Literal::Text(text.to_owned())),
        DataType::Binary { .. } | DataType::Bytes => bytes(text).map(Literal::Bytes),
        DataType::Date => read_date(text).map(Literal::Integer),
        DataType::Time { precision } => read_time(text, unit(*precision)).map(Literal::Integer),
        DataType::Timestamp { precision } => read_timestamp(text, unit(*precision)).map(Literal::Integer),
        DataType::TimestampLtz { precision } => read_instant(text, unit(*precision)).map(Literal::Integer),
        DataType::Array(_) | DataType::Map { .. } | DataType::Row(_) => None,
    };
    literal.filter(|literal| data_type.check_literal(literal).is_ok()).ok_or_else(|| refused(data_type, text))
}

/// The text of a constant: what [`literal_of`] reads as the same. One that is not of this type is printed by what it is.
pub fn literal_text(data_type: &DataType, literal: &Literal) -> String {
    match (data_type, literal) {
        (_, Literal::Boolean(value)) => value.to_string(),
        (DataType::Date, Literal::Integer(days)) if i32::try_from(*days).is_ok() => date_text(*days),
        (DataType::Time { precision }, Literal::Integer(units)) if *units >= 0 => {
            time_text(*units, unit(*precision))
        }
        (DataType::Timestamp { precision }, Literal::Integer(units)) => {
            timestamp_text(*units, unit(*precision))
        }
        (DataType::TimestampLtz { precision }, Literal::Integer(units)) => {
            timestamp_text(*units, unit(*precision)) + "Z"
        }
        (_, Literal::Integer(value)) => value.to_string(),
        (DataType::Float, Literal::Double(bits)) => format!("{:?}", narrowed(f64::from_bits(*bits))),
        (_, Literal::Double(bits)) => format!("{:?}", f64::from_bits(*bits)),
        (DataType::Decimal { scale, .. }, Literal::Decimal(unscaled)) => decimal_text(*unscaled, *scale),
        (_, Literal::Decimal(unscaled)) => unscaled.to_string(),
        (_, Literal::Text(text)) => text.clone(),
        (_, Literal::Bytes(bytes)) => hex(bytes),
    }
}

/// How a constant of this type is written as plain text.
pub(crate) fn accepted(data_type: &DataType) -> String {
    match data_type {
        DataType::Boolean => "true or false".to_owned(),
        DataType::TinyInt => "a whole number from -128 to 127".to_owned(),
        DataType::SmallInt => "a whole number from -32768 to 32767".to_owned(),
        DataType::Int => format!("a whole number from {} to {}", i32::MIN, i32::MAX),
        DataType::BigInt => format!("a whole number from {} to {}", i64::MIN, i64::MAX),
        DataType::Float | DataType::Double => "a finite number, as 1.5 or -2e10".to_owned(),
        DataType::Decimal { precision, scale } => {
            let before = precision.saturating_sub(*scale);
            format!("a number with at most {before} digits before the point and {scale} behind it")
        }
        DataType::Char { length } => format!("text of at most {length} characters"),
        DataType::String => "text".to_owned(),
        DataType::Binary { length } => format!("at most {length} bytes, two hexadecimal digits each"),
        DataType::Bytes => "bytes, two hexadecimal digits each".to_owned(),
        DataType::Date => "YYYY-MM-DD from 0001-01-01 to 9999-12-31".to_owned(),
        DataType::Time { precision } => format!("hh:mm:ss{}", fraction(*precision)),
        DataType::Timestamp { precision } => {
            format!("YYYY-MM-DD hh:mm:ss{}, without a time zone{}", fraction(*precision), years(*precision))
        }
        DataType::TimestampLtz { precision } => {
            let (fraction, years) = (fraction(*precision), years(*precision));
            format!("YYYY-MM-DD hh:mm:ss{fraction} and Z or an offset as +02:00{years}")
        }
        DataType::Array(_) | DataType::Map { .. } | DataType::Row(_) => {
            "NULL alone, for a nested type has no constants".to_owned()
        }
    }
}

fn fraction(precision: u8) -> String {
    if precision == 0 { String::new() } else { format!(" with at most {precision} digits behind the second") }
}

fn years(precision: u8) -> &'static str {
    match unit(precision) {
        TimeUnit::Nanoseconds => ", from 1677-09-21 to 2262-04-11",
        _ => ", from year 0001 to 9999",
    }
}

fn refused(data_type: &DataType, text: &str) -> LiteralError {
    let name =
        if data_type.is_scalar() { data_type.to_string() } else { "constant of a nested type".to_owned() };
    LiteralError { message: format!("{} is no {name}; accepted: {}", shown(text), accepted(data_type)) }
}

fn unit(precision: u8) -> TimeUnit {
    TimeUnit::of_precision(precision)
}

fn boolean(text: &str) -> Option<Literal> {
    let is = |word: &str| text.eq_ignore_ascii_case(word);
    if is("true") || is("false") { Some(Literal::Boolean(is("true"))) } else { None }
}

/// A number as SQL writes one. Rust would read "inf" and ".5" too.
fn float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let digits = unsigned.starts_with(|first: char| first.is_ascii_digit());
    if !digits || number_length(unsigned) != unsigned.len() {
        return None;
    }
    text.parse().ok()
}

fn double(value: f64) -> Literal {
    Literal::Double(value.to_bits())
}

/// The FLOAT that was widened to this.
#[expect(clippy::cast_possible_truncation, reason = "it was widened from 32 bits, so they hold it")]
fn narrowed(value: f64) -> f32 {
    value as f32
}

/// A number without an exponent, at the column's scale. Zeros beyond the scale lose nothing and are accepted.
fn decimal(text: &str, scale: u8) -> Option<Literal> {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    let (whole, fraction) = (whole.trim_start_matches('0'), fraction.trim_end_matches('0'));
    let scale = usize::from(scale);
    if fraction.len() > scale {
        return None;
    }
    // What is longer than 128 bits hold does not parse.
    let unscaled: i128 = format!("0{whole}{fraction:0<scale$}").parse().ok()?;
    Some(Literal::Decimal(if negative { -unscaled } else { unscaled }))
}

fn decimal_text(unscaled: i128, scale: u8) -> String {
    let scale = usize::from(scale);
    // At least one digit stands before the point.
    let digits = format!("{:0>width$}", unscaled.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let sign = if unscaled < 0 { "-" } else { "" };
    let point = if scale == 0 { "" } else { "." };
    format!("{sign}{whole}{point}{fraction}")
}

/// Bytes from hexadecimal digits.
pub(crate) fn bytes(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    };
    text.as_bytes().chunks(2).map(pair).collect()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a text does not fail.
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}
