//! Which constants a type has, at their edges.
//!
//! Lives on: anywhere (pure).
use super::super::*;

const SECONDS_PER_DAY: i64 = 86_400;

fn has(data_type: &DataType, literal: &Literal) -> bool {
    data_type.check_literal(literal).is_ok()
}

/// The last value that fits and the first that does not.
fn edge(data_type: &DataType, last: i64, beyond: i64) {
    assert!(has(data_type, &Literal::Integer(last)), "{data_type} {last}");
    assert!(!has(data_type, &Literal::Integer(beyond)), "{data_type} {beyond}");
}

#[test]
fn whole_numbers_and_times_have_a_range() {
    edge(&DataType::TinyInt, -128, -129);
    edge(&DataType::SmallInt, 32_767, 32_768);
    edge(&DataType::Int, i32::MIN.into(), i64::from(i32::MIN) - 1);
    assert!(has(&DataType::BigInt, &Literal::Integer(i64::MIN)));
    edge(&DataType::Date, 2_932_896, 2_932_897);
    edge(&DataType::Date, -719_162, -719_163);
    edge(&DataType::Time { precision: 0 }, SECONDS_PER_DAY - 1, SECONDS_PER_DAY);
    edge(&DataType::Time { precision: 9 }, 0, -1);
    edge(&DataType::Timestamp { precision: 0 }, 253_402_300_799, 253_402_300_800);
    edge(&DataType::TimestampLtz { precision: 3 }, -62_135_596_800_000, -62_135_596_800_001);
    assert!(has(&DataType::Timestamp { precision: 9 }, &Literal::Integer(i64::MAX)));
}

#[test]
fn times_have_no_digits_beyond_their_precision() {
    // Counted in ms, us and ns.
    edge(&DataType::Time { precision: 1 }, 100, 110);
    edge(&DataType::Timestamp { precision: 5 }, -10, -11);
    edge(&DataType::TimestampLtz { precision: 7 }, 100, 101);
    edge(&DataType::TimestampLtz { precision: 7 }, 100, i64::MAX);
}

#[test]
fn floats_are_finite_and_exact() {
    let bits = |value: f64| Literal::Double(value.to_bits());
    assert!(has(&DataType::Float, &bits(0.5)) && has(&DataType::Float, &bits(-0.0)));
    assert!(!has(&DataType::Float, &bits(0.1)) && has(&DataType::Double, &bits(0.1)));
    assert!(!has(&DataType::Float, &bits(1e300)));
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(!has(&DataType::Double, &bits(value)) && !has(&DataType::Float, &bits(value)));
    }
}

#[test]
fn decimals_have_the_digits_of_their_type() {
    let two = DataType::Decimal { precision: 2, scale: 1 };
    assert!(has(&two, &Literal::Decimal(-99)) && !has(&two, &Literal::Decimal(100)));
    let most = DataType::Decimal { precision: 38, scale: 0 };
    let bound = 10_i128.pow(38);
    assert!(has(&most, &Literal::Decimal(bound - 1)) && !has(&most, &Literal::Decimal(-bound)));
    assert!(!has(&most, &Literal::Decimal(i128::MIN)));
}

#[test]
fn text_counts_characters_and_bytes_count_bytes() {
    let text = |text: &str| Literal::Text(text.to_owned());
    let two = DataType::Char { length: 2 };
    assert!(has(&two, &text("äö")) && !has(&two, &text("abc")));
    let bytes = DataType::Binary { length: 2 };
    assert!(has(&bytes, &Literal::Bytes(vec![0, 1])) && !has(&bytes, &Literal::Bytes(vec![0; 3])));
    assert!(!has(&DataType::Bytes, &text("a")) && !has(&DataType::String, &Literal::Bytes(Vec::new())));
    assert!(
        has(&DataType::Boolean, &Literal::Boolean(true)) && !has(&DataType::Boolean, &Literal::Integer(1))
    );
}

#[test]
fn a_constant_is_widened_with_its_type() {
    let ms = DataType::Timestamp { precision: 3 };
    let ns = DataType::Timestamp { precision: 9 };
    assert_eq!(ms.widen_literal(&ns, &Literal::Integer(-5)), Some(Literal::Integer(-5_000_000)));
    // The year 2300: there are not that many nanoseconds.
    assert_eq!(ms.widen_literal(&ns, &Literal::Integer(10_413_792_000_000)), None);
    let (tenths, thousandths) = (DataType::Time { precision: 1 }, DataType::Time { precision: 3 });
    assert_eq!(tenths.widen_literal(&thousandths, &Literal::Integer(100)), Some(Literal::Integer(100)));
    let whole = Literal::Integer(7);
    assert_eq!(DataType::TinyInt.widen_literal(&DataType::BigInt, &whole), Some(whole));
}
