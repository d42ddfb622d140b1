//! Types as SQL text.
//!
//! Lives on: anywhere (pure).
use super::super::*;

#[test]
fn types_are_shown_as_sql_writes_them() {
    let row = DataType::Row(vec![
        Field::new("a", DataType::Int).not_null(),
        Field::new("b", DataType::String),
        Field { comment: Some("it's".to_owned()), ..Field::new("c", DataType::Date) },
    ]);
    let Field { data_type: some, .. } = Field::new("x", DataType::array(DataType::BigInt));
    let never = DataType::Array(Box::new(Field::new("element", some.clone()).not_null()));
    for (data_type, text) in [
        (DataType::Boolean, "BOOLEAN"),
        (DataType::TinyInt, "TINYINT"),
        (DataType::SmallInt, "SMALLINT"),
        (DataType::Float, "FLOAT"),
        (DataType::Double, "DOUBLE"),
        (DataType::Decimal { precision: 12, scale: 2 }, "DECIMAL(12, 2)"),
        (DataType::Char { length: 3 }, "CHAR(3)"),
        (DataType::Binary { length: 4 }, "BINARY(4)"),
        (DataType::Bytes, "BYTES"),
        (DataType::Time { precision: 0 }, "TIME(0)"),
        (DataType::Timestamp { precision: 6 }, "TIMESTAMP(6)"),
        (DataType::TimestampLtz { precision: 3 }, "TIMESTAMP_LTZ(3)"),
        (some, "ARRAY<BIGINT>"),
        (never, "ARRAY<ARRAY<BIGINT> NOT NULL>"),
        (DataType::map(DataType::String, DataType::Int), "MAP<STRING, INT>"),
        (row, "ROW<a INT NOT NULL, b STRING, c DATE COMMENT 'it''s'>"),
    ] {
        assert_eq!(data_type.to_string(), text);
    }
}

#[test]
fn names_that_are_no_identifiers_are_quoted() {
    for (name, text) in [
        ("_a9", "_a9"),
        ("9a", "\"9a\""),
        ("a b", "\"a b\""),
        ("a\"b", "\"a\"\"b\""),
        ("ä", "\"ä\""),
        ("a.b", "\"a.b\""),
        ("", "\"\""),
    ] {
        let row = DataType::Row(vec![Field::new(name, DataType::Int)]);
        assert_eq!(row.to_string(), format!("ROW<{text} INT>"));
    }
}
