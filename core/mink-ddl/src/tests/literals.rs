//! Constants, as SQL and as plain text.
//!
//! Lives on: anywhere (pure).
use super::{all_refused, parsed};
use crate::{Statement, literal_of, literal_text};
use mink_types::schema::{DataType, Literal};

/// The default of a column.
fn default_of(column: &str) -> Option<Literal> {
    match parsed(&format!("CREATE TABLE d.t (c {column})")) {
        Statement::CreateTable { mut draft, .. } => draft.columns.remove(0).default,
        other => panic!("{other}"),
    }
}

fn double(value: f64) -> Literal {
    Literal::Double(value.to_bits())
}

#[test]
fn a_default_is_typed_by_its_column() {
    let text = |text: &str| Literal::Text(text.into());
    let cases = [
        ("BOOLEAN DEFAULT TRUE", Literal::Boolean(true)),
        ("BOOLEAN DEFAULT false", Literal::Boolean(false)),
        ("TINYINT DEFAULT -128", Literal::Integer(-128)),
        ("SMALLINT DEFAULT 32767", Literal::Integer(32_767)),
        ("INT DEFAULT + 5", Literal::Integer(5)),
        ("BIGINT DEFAULT -9223372036854775808", Literal::Integer(i64::MIN)),
        ("FLOAT DEFAULT 0.1", double(f64::from(0.1_f32))),
        ("DOUBLE DEFAULT -1.5e300", double(-1.5e300)),
        ("DOUBLE DEFAULT 3", double(3.0)),
        ("DECIMAL(5, 2) DEFAULT 1.5", Literal::Decimal(150)),
        ("DECIMAL(5, 2) DEFAULT -001.500", Literal::Decimal(-150)),
        (
            "DECIMAL(38, 0) DEFAULT 99999999999999999999999999999999999999",
            Literal::Decimal(10_i128.pow(38) - 1),
        ),
        ("DECIMAL(2, 2) DEFAULT 0.05", Literal::Decimal(5)),
        ("CHAR(3) DEFAULT 'äöü'", text("äöü")),
        ("STRING DEFAULT 'it''s\n'", text("it's\n")),
        ("BINARY(2) DEFAULT X'00fF'", Literal::Bytes(vec![0, 255])),
        ("BYTES DEFAULT x''", Literal::Bytes(Vec::new())),
        ("DATE DEFAULT DATE '1970-01-02'", Literal::Integer(1)),
        ("DATE DEFAULT '0001-01-01'", Literal::Integer(-719_162)),
        ("TIME(3) DEFAULT TIME '00:00:01.5'", Literal::Integer(1_500)),
        ("TIME(1) DEFAULT '00:00:01.500'", Literal::Integer(1_500)),
        ("TIMESTAMP(0) DEFAULT TIMESTAMP '1970-01-01 00:01:00'", Literal::Integer(60)),
        ("TIMESTAMP(9) DEFAULT TIMESTAMP '1969-12-31T23:59:59.999999999'", Literal::Integer(-1)),
        ("TIMESTAMP_LTZ(6) DEFAULT TIMESTAMP '1970-01-01 01:00:00+01:00'", Literal::Integer(0)),
        ("TIMESTAMPTZ(3) DEFAULT TIMESTAMPTZ '1970-01-01 00:00Z'", Literal::Integer(0)),
    ];
    for (column, literal) in cases {
        assert_eq!(default_of(column), Some(literal), "{column}");
    }
    assert_eq!(default_of("ARRAY<INT> DEFAULT NULL"), None);
}

#[test]
fn a_default_that_does_not_fit_its_column_is_refused_with_what_does() {
    all_refused(&[
        (
            "CREATE TABLE d.t (c BOOLEAN DEFAULT 1)",
            37,
            "the number \"1\" is no BOOLEAN; accepted: true or false",
        ),
        ("CREATE TABLE d.t (c TINYINT DEFAULT 128)", 37, "from -128 to 127"),
        ("CREATE TABLE d.t (c SMALLINT DEFAULT -32769)", 38, "from -32768 to 32767"),
        ("CREATE TABLE d.t (c INT DEFAULT 2147483648)", 33, "from -2147483648 to 2147483647"),
        ("CREATE TABLE d.t (c BIGINT DEFAULT 9223372036854775808)", 36, "from -9223372036854775808"),
        ("CREATE TABLE d.t (c INT DEFAULT '5')", 33, "the text \"5\" is no INT"),
        ("CREATE TABLE d.t (c INT DEFAULT 5.0)", 33, "a whole number"),
        ("CREATE TABLE d.t (c INT DEFAULT now())", 33, "a value: a number"),
        ("CREATE TABLE d.t (c INT DEFAULT)", 32, "a value: a number"),
        ("CREATE TABLE d.t (c FLOAT DEFAULT 1e39)", 35, "a finite number"),
        ("CREATE TABLE d.t (c DOUBLE DEFAULT 1e309)", 36, "a finite number"),
        ("CREATE TABLE d.t (c DOUBLE DEFAULT 'NaN')", 36, "the text \"NaN\" is no DOUBLE"),
        (
            "CREATE TABLE d.t (c DECIMAL(5, 2) DEFAULT 1000)",
            43,
            "at most 3 digits before the point and 2 behind it",
        ),
        ("CREATE TABLE d.t (c DECIMAL(5, 2) DEFAULT 1.505)", 43, "at most 3 digits"),
        ("CREATE TABLE d.t (c DECIMAL(5, 2) DEFAULT 1e2)", 43, "at most 3 digits"),
        ("CREATE TABLE d.t (c CHAR(2) DEFAULT 'abc')", 37, "at most 2 characters"),
        ("CREATE TABLE d.t (c STRING DEFAULT 5)", 36, "text in single quotes"),
        ("CREATE TABLE d.t (c STRING DEFAULT DATE '2026-01-01')", 36, "the date \"2026-01-01\" is no STRING"),
        ("CREATE TABLE d.t (c BINARY(1) DEFAULT X'0000')", 39, "at most 1 bytes"),
        ("CREATE TABLE d.t (c BYTES DEFAULT X'0')", 35, "two hexadecimal digits"),
        ("CREATE TABLE d.t (c BYTES DEFAULT 'ff')", 35, "as X'00ff'"),
        ("CREATE TABLE d.t (c DATE DEFAULT DATE '2026-02-29')", 34, "\"2026-02-29\" is no DATE"),
        ("CREATE TABLE d.t (c DATE DEFAULT DATE '0000-12-31')", 34, "from 0001-01-01 to 9999-12-31"),
        ("CREATE TABLE d.t (c DATE DEFAULT TIMESTAMP '2026-01-01')", 34, "as DATE '...'"),
        ("CREATE TABLE d.t (c TIME DEFAULT TIME '10:00:00.5')", 34, "accepted: hh:mm:ss"),
        ("CREATE TABLE d.t (c TIME(1) DEFAULT TIME '10:00:00.55')", 37, "at most 1 digits behind the second"),
        (
            "CREATE TABLE d.t (c TIMESTAMP DEFAULT TIMESTAMP '2026-01-01 10:00:00Z')",
            39,
            "without a time zone",
        ),
        (
            "CREATE TABLE d.t (c TIMESTAMP(9) DEFAULT TIMESTAMP '2300-01-01')",
            42,
            "from 1677-09-21 to 2262-04-11",
        ),
        ("CREATE TABLE d.t (c TIMESTAMP_LTZ DEFAULT TIMESTAMP '2026-01-01 10:00:00')", 43, "Z or an offset"),
        ("CREATE TABLE d.t (c TIMESTAMP DEFAULT TIMESTAMP 5)", 49, "its text in single quotes"),
        ("CREATE TABLE d.t (c ARRAY<INT> DEFAULT 5)", 40, "a nested type has no constants"),
    ]);
}

#[test]
fn plain_text_is_read_and_printed_without_quotes() {
    let cases = [
        (DataType::Boolean, "TRUE", "true"),
        (DataType::Int, "+0005", "5"),
        (DataType::Float, "0.1", "0.1"),
        (DataType::Double, "-1e300", "-1e300"),
        (DataType::Decimal { precision: 5, scale: 2 }, "-.5", ""),
        (DataType::Decimal { precision: 5, scale: 2 }, "-0.5", "-0.50"),
        (DataType::Decimal { precision: 5, scale: 0 }, "12", "12"),
        (DataType::String, " 'as it is' ", " 'as it is' "),
        (DataType::String, "", ""),
        (DataType::Bytes, "00FF", "00ff"),
        (DataType::Date, "2026-01-31", "2026-01-31"),
        (DataType::Time { precision: 9 }, "10:00", "10:00:00"),
        (DataType::Timestamp { precision: 3 }, "2026-01-31T10:00:00.120", "2026-01-31 10:00:00.12"),
        (DataType::TimestampLtz { precision: 0 }, "2026-01-31 10:00:00-02:00", "2026-01-31 12:00:00Z"),
        (DataType::Array(Box::new(mink_types::schema::Field::new("element", DataType::Int))), "5", ""),
    ];
    for (data_type, text, printed) in cases {
        match literal_of(&data_type, text) {
            Ok(literal) => {
                assert_eq!(literal_text(&data_type, &literal), printed, "{data_type}");
                assert_eq!(literal_of(&data_type, printed), Ok(literal), "{data_type}");
            }
            Err(error) => assert!(printed.is_empty(), "{data_type}: {error}"),
        }
    }
}

#[test]
fn numbers_as_other_languages_write_them_are_refused() {
    let decimal = DataType::Decimal { precision: 38, scale: 10 };
    for text in [
        "", " 1", "1 ", "0x10", "1_000", "inf", "NaN", "-", "+-1", ".5", "1.", "1,5", "\u{661}", "--1", "1e",
        "e1", "1.e5",
    ] {
        for data_type in [DataType::BigInt, DataType::Float, DataType::Double, decimal.clone()] {
            assert!(literal_of(&data_type, text).is_err(), "{data_type} {text:?}");
        }
    }
    for text in ["1", "tru", "t", "yes", ""] {
        assert!(literal_of(&DataType::Boolean, text).is_err(), "{text:?}");
    }
    for text in ["0", "0g", "0x00", " 00", "ää"] {
        assert!(literal_of(&DataType::Bytes, text).is_err(), "{text:?}");
    }
}

#[test]
fn a_number_of_a_million_digits_is_refused_and_not_a_load() {
    let digits = "9".repeat(1_000_000);
    for data_type in [DataType::BigInt, DataType::Double, DataType::Decimal { precision: 38, scale: 2 }] {
        let error = literal_of(&data_type, &digits).expect_err("no type has so many");
        assert!(error.message.len() < 200, "{error}");
    }
    let zeros = format!("{}5.{}", "0".repeat(500_000), "0".repeat(500_000));
    assert_eq!(literal_of(&DataType::Decimal { precision: 3, scale: 1 }, &zeros), Ok(Literal::Decimal(50)));
}

#[test]
fn a_constant_that_is_not_of_the_type_prints_all_the_same() {
    assert_eq!(literal_text(&DataType::Date, &Literal::Integer(i64::MAX)), i64::MAX.to_string());
    assert_eq!(
        literal_text(&DataType::Time { precision: 0 }, &Literal::Integer(i64::MIN)),
        i64::MIN.to_string()
    );
    assert_eq!(literal_text(&DataType::Int, &Literal::Text("x".into())), "x");
    assert_eq!(literal_text(&DataType::Double, &double(f64::NAN)), "NaN");
    assert_eq!(
        literal_text(&DataType::Decimal { precision: 38, scale: 38 }, &Literal::Decimal(i128::MIN)),
        "-1.70141183460469231731687303715884105728"
    );
}
