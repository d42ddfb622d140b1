//! Numbers between their digits and the values that columns hold, exactly.
//!
//! Lives on: anywhere (pure).
//! Invariants: a DECIMAL never goes through a float; no number of digits and no exponent makes it allocate.
use super::text::number_length;
use std::io::Write as _;

/// Most digits that 128 bits hold whatever they are.
const DIGITS_MAX: usize = 38;

/// A whole number in digits alone; none for one with a point, an exponent, or that 64 bits do not hold.
pub(super) fn whole(number: &str) -> Option<i64> {
    // `parse` takes a plus too, which is no number here.
    number.parse().ok().filter(|_| !number.starts_with('+'))
}

/// A whole number in a text: as it would stand without the quotes.
pub(super) fn whole_in_text(text: &str) -> Option<i64> {
    if is_number(text) { whole(text) } else { None }
}

/// Whether a text is a number of JSON from end to end.
pub(super) fn is_number(text: &str) -> bool {
    !text.is_empty() && number_length(text.as_bytes()) == text.len()
}

/// The unscaled value at `scale` of a number of JSON; none if it has digits beyond the scale or more of them than `precision`.
pub(super) fn decimal(number: &str, precision: u8, scale: u8) -> Option<i128> {
    let (negative, unsigned) = match number.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, number),
    };
    let (digits, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    // The value is `significant` (without zeros at its end) times ten to the power of `power`.
    let (mut significant, mut count, mut zeros) = (0_u128, 0_usize, 0_usize);
    let (mut power, mut behind) = (0_i64, false);
    for byte in digits.bytes() {
        let b'0'..=b'9' = byte else {
            // The point: there is one at most, for it is a number.
            behind = true;
            continue;
        };
        let digit = byte - b'0';
        power -= i64::from(behind);
        if digit == 0 {
            zeros += usize::from(count > 0);
            continue;
        }
        count += zeros + 1;
        if count > DIGITS_MAX {
            return None;
        }
        significant = significant * 10_u128.pow(u32::try_from(zeros).ok()? + 1) + u128::from(digit);
        zeros = 0;
    }
    if significant == 0 {
        return Some(0);
    }
    // An exponent that 64 bits do not hold is far out of range, to whichever side.
    let exponent: i64 = exponent.parse().ok()?;
    let shift =
        power.checked_add(i64::try_from(zeros).ok()?)?.checked_add(exponent)?.checked_add(scale.into())?;
    let shift = usize::try_from(shift).ok()?;
    if count.checked_add(shift)? > usize::from(precision).min(DIGITS_MAX) {
        return None;
    }
    let unscaled = i128::try_from(significant.checked_mul(10_u128.pow(u32::try_from(shift).ok()?))?).ok()?;
    Some(if negative { -unscaled } else { unscaled })
}

/// Appends a number; writing to memory does not fail.
macro_rules! put {
    ($out:expr, $($format:tt)*) => {{
        let written = write!($out, $($format)*);
        debug_assert!(written.is_ok(), "memory takes what is written");
    }};
}

/// Digits of the largest number of 64 bits.
const U64_DIGITS_MAX: usize = 20;

/// Appends `value` with at least `width` digits.
pub(super) fn put_digits(out: &mut Vec<u8>, value: u64, width: usize) {
    let mut digits = [b'0'; U64_DIGITS_MAX];
    let (mut rest, mut used) = (value, 0);
    for digit in digits.iter_mut().rev() {
        if rest == 0 && used >= width.max(1) {
            break;
        }
        *digit = b'0' + u8::try_from(rest % 10).unwrap_or_default();
        rest /= 10;
        used += 1;
    }
    out.extend_from_slice(digits.get(digits.len() - used..).unwrap_or_default());
}

pub(super) fn put_whole(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    put_digits(out, value.unsigned_abs(), 1);
}

/// With all digits of its scale.
pub(super) fn put_decimal(out: &mut Vec<u8>, unscaled: i128, scale: u8) {
    let scale = usize::from(scale);
    if unscaled < 0 {
        out.push(b'-');
    }
    // At least one digit stands before the point.
    let before = out.len();
    match u64::try_from(unscaled.unsigned_abs()) {
        Ok(short) if scale < U64_DIGITS_MAX => put_digits(out, short, scale + 1),
        _ => put!(out, "{:0>width$}", unscaled.unsigned_abs(), width = scale + 1),
    }
    if scale > 0 {
        let point = out.len().saturating_sub(scale).max(before);
        out.insert(point, b'.');
    }
}

/// The fewest digits that read as the same number; what is no number is a text.
pub(super) fn put_double(out: &mut Vec<u8>, value: f64) {
    if value.is_finite() {
        put!(out, "{value:?}");
    } else {
        put_not_finite(out, value);
    }
}

/// As [`put_double`], with the digits that 32 bits need.
pub(super) fn put_float(out: &mut Vec<u8>, value: f32) {
    if value.is_finite() {
        put!(out, "{value:?}");
    } else {
        put_not_finite(out, value.into());
    }
}

const NAN: &str = "NaN";
const INFINITY: &str = "Infinity";
const MINUS_INFINITY: &str = "-Infinity";

fn put_not_finite(out: &mut Vec<u8>, value: f64) {
    let text = match value {
        f64::INFINITY => INFINITY,
        f64::NEG_INFINITY => MINUS_INFINITY,
        _ => NAN,
    };
    put!(out, "\"{text}\"");
}

/// What the texts of a float's values mean.
pub(super) fn not_finite(text: &str) -> Option<f64> {
    match text {
        NAN => Some(f64::NAN),
        INFINITY => Some(f64::INFINITY),
        MINUS_INFINITY => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_decimal_is_exact_or_refused() {
        for (text, precision, scale, unscaled) in [
            ("1.5", 5, 2, Some(150)),
            ("-1.50000000000000000000000000000000000000000000000000", 5, 2, Some(-150)),
            ("1.505", 5, 2, None),
            ("999.99", 5, 2, Some(99_999)),
            ("1000", 5, 2, None),
            ("1e2", 5, 2, Some(10_000)),
            ("1e3", 5, 2, None),
            ("12345e-2", 5, 2, Some(12_345)),
            ("12345e-3", 5, 2, None),
            ("12340E-3", 5, 2, Some(1_234)),
            ("0.1", 1, 1, Some(1)),
            ("0e999999999999999999999999999", 1, 0, Some(0)),
            ("1e999999999999999999999999999", 38, 0, None),
            ("1e9223372036854775807", 38, 0, None),
            ("1e-9223372036854775808", 38, 0, None),
            ("0.000", 1, 0, Some(0)),
            ("-0", 1, 0, Some(0)),
            ("99999999999999999999999999999999999999", 38, 0, Some(10_i128.pow(38) - 1)),
            ("-99999999999999999999999999999999999999", 38, 38, None),
            ("0.99999999999999999999999999999999999999", 38, 38, Some(10_i128.pow(38) - 1)),
            ("100000000000000000000000000000000000000", 38, 0, None),
            ("10000000000000000000000000000000000000000000000e-10", 38, 0, Some(10_i128.pow(36))),
        ] {
            assert_eq!(decimal(text, precision, scale), unscaled, "{text} in DECIMAL({precision}, {scale})");
        }
    }

    #[test]
    fn whole_numbers_have_digits_alone() {
        assert_eq!(whole("9223372036854775807"), Some(i64::MAX));
        assert_eq!(whole("-9223372036854775808"), Some(i64::MIN));
        for bad in ["9223372036854775808", "5.0", "1e3", "", "+1"] {
            assert_eq!(whole(bad), None, "{bad:?}");
        }
        for bad in ["007", " 7", "7 ", "", "-"] {
            assert_eq!(whole_in_text(bad), None, "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_put_reads_as_the_same(value: i64, wide: i128, double: f64, float: f32, scale in 0..=38_u8) {
            let mut out = Vec::new();
            put_whole(&mut out, value);
            prop_assert_eq!(whole(std::str::from_utf8(&out).expect("digits")), Some(value));
            let unscaled = wide % 10_i128.pow(38);
            out.clear();
            put_decimal(&mut out, unscaled, scale);
            let text = std::str::from_utf8(&out).expect("digits");
            prop_assert!(is_number(text), "{}", text);
            prop_assert_eq!(decimal(text, 38, scale), Some(unscaled));
            out.clear();
            put_double(&mut out, double);
            let text = std::str::from_utf8(&out).expect("digits");
            prop_assert!(is_number(text) || !double.is_finite());
            prop_assert_eq!(text.parse::<f64>().ok().filter(|_| double.is_finite()).map(f64::to_bits), Some(double).filter(|double| double.is_finite()).map(f64::to_bits));
            out.clear();
            put_float(&mut out, float);
            let text = std::str::from_utf8(&out).expect("digits");
            prop_assert!(is_number(text) || !float.is_finite());
            prop_assert_eq!(text.parse::<f32>().ok().filter(|_| float.is_finite()).map(f32::to_bits), Some(float).filter(|float| float.is_finite()).map(f32::to_bits));
        }
    }
}
