//! What each type accepts, and the one form in which it is written.

use super::*;

#[test]
fn each_value_has_one_form() {
    let decimal = DataType::Decimal { precision: 12, scale: 2 };
    for (data_type, text, form) in [
        (DataType::Boolean, " true ", "true"),
        (DataType::TinyInt, "-128", "-128"),
        (DataType::Int, "-0", "0"),
        (DataType::BigInt, "9007199254740993", "9007199254740993"),
        (DataType::BigInt, "\"-9223372036854775808\"", "-9223372036854775808"),
        (DataType::Float, "0.1", "0.1"),
        (DataType::Float, "16777217", "16777216.0"),
        (DataType::Double, "1e2", "100.0"),
        (DataType::Double, "1E+300", "1e300"),
        (DataType::Double, "\"NaN\"", "\"NaN\""),
        (DataType::Float, "\"-Infinity\"", "\"-Infinity\""),
        (decimal.clone(), "1.5", "1.50"),
        (decimal.clone(), "\"-0.05\"", "-0.05"),
        (decimal, "1e3", "1000.00"),
        (DataType::Char { length: 2 }, "\"\\u00e9\\uD83D\\uDE00\"", "\"é😀\""),
        (
            DataType::String,
            "\"\\/\\b\\f\\n\\r\\t\\u0000\\u001F\\\"\\\\\"",
            "\"/\\b\\f\\n\\r\\t\\u0000\\u001f\\\"\\\\\"",
        ),
        (DataType::Bytes, "\"AP+\\/\"", "\"AP+/\""),
        (DataType::Binary { length: 1 }, "\"AA==\"", "\"AA==\""),
        (DataType::Date, "\"2026-01-31\"", "\"2026-01-31\""),
        (DataType::Time { precision: 3 }, "\"12:34:56.7\"", "\"12:34:56.700\""),
        (DataType::Time { precision: 0 }, "\"12:34\"", "\"12:34:00\""),
        (DataType::Timestamp { precision: 3 }, "\"2026-01-31 12:34:56.789\"", "\"2026-01-31T12:34:56.789\""),
        (
            DataType::TimestampLtz { precision: 0 },
            "\"2026-01-31T12:34:56+02:00\"",
            "\"2026-01-31T10:34:56Z\"",
        ),
        (DataType::TimestampLtz { precision: 6 }, "1", "\"1970-01-01T00:00:00.001000Z\""),
        (DataType::array(DataType::Int), "[ 1 , null,3 ]", "[1,null,3]"),
        (DataType::array(DataType::array(DataType::Int)), "[[],[1],null]", "[[],[1],null]"),
        (DataType::map(DataType::String, DataType::Int), "{\"b\": 1, \"a\": null}", "{\"b\":1,\"a\":null}"),
        (
            DataType::map(DataType::Int, DataType::Int),
            "[{\"value\":2,\"key\":1},{\"key\":3}]",
            "[{\"key\":1,\"value\":2},{\"key\":3,\"value\":null}]",
        ),
        (
            DataType::Row(vec![Field::new("x", DataType::Int), Field::new("y", DataType::Date)]),
            "{\"y\":null,\"x\":1}",
            "{\"x\":1,\"y\":null}",
        ),
        (DataType::Row(vec![Field::new("x", DataType::Int).not_null()]), "null", "null"),
    ] {
        let found =
            value(data_type.clone(), text).unwrap_or_else(|error| panic!("{data_type} {text}: {error}"));
        assert_eq!(found, form, "{data_type}");
        assert_eq!(value(data_type.clone(), form).as_deref(), Ok(form), "{data_type}");
    }
}

#[test]
fn what_does_not_fit_is_refused_with_what_would() {
    let whole = "c: found `5.0`; use a whole number from -2147483648 to 2147483647";
    let char3 = "a text of at most 3 characters";
    for (data_type, text, refusal) in [
        (DataType::Int, "5.0", whole),
        (DataType::Int, "\"5\"", "c: found the text `5`; use a whole number from -2147483648 to 2147483647"),
        (DataType::TinyInt, "128", "c: found `128`; use a whole number from -128 to 127"),
        (DataType::SmallInt, "1e2", "c: found `1e2`; use a whole number from -32768 to 32767"),
        (DataType::Boolean, "\"true\"", "c: found the text `true`; use true or false"),
        (
            DataType::Float,
            "1e39",
            "c: found `1e39`; use a number in its range, \"NaN\", \"Infinity\" or \"-Infinity\"",
        ),
        (
            DataType::Double,
            "\"1\"",
            "c: found the text `1`; use a number in its range, \"NaN\", \"Infinity\" or \"-Infinity\"",
        ),
        (
            DataType::Decimal { precision: 5, scale: 2 },
            "1.505",
            "c: found `1.505`; use a number with at most 3 digits before the point and 2 behind it, or a text with one",
        ),
        (DataType::Char { length: 3 }, "\"abcd\"", &format!("c: found the text `abcd`; use {char3}")),
        (DataType::Char { length: 3 }, "[1]", &format!("c: found an array; use {char3}")),
        (
            DataType::Binary { length: 1 },
            "\"AAA=\"",
            "c: found the text `AAA=`; use a text in base64 with its padding, of at most 1 bytes",
        ),
        (DataType::Bytes, "\"AAA\"", "c: found the text `AAA`; use a text in base64 with its padding"),
        (DataType::Date, "\"2026-02-30\"", "c: found the text `2026-02-30`; use a text as \"2026-01-31\""),
        (DataType::Date, "5", "c: found `5`; use a text as \"2026-01-31\""),
        (
            DataType::Time { precision: 1 },
            "\"12:00:00.25\"",
            "c: found the text `12:00:00.25`; use a text as \"12:34:56\", with at most 1 digits behind the second",
        ),
        (
            DataType::Timestamp { precision: 0 },
            "1",
            "c: found `1`; use a text as \"2026-01-31T12:34:56\", without a time zone",
        ),
        (
            DataType::TimestampLtz { precision: 0 },
            "1500",
            "c: found `1500`; use a text as \"2026-01-31T12:34:56Z\", with Z or an offset as +02:00, or milliseconds since 1970",
        ),
        (DataType::array(DataType::Int), "{}", "c: found an object; use an array"),
        (
            DataType::array(DataType::Int),
            "[1,\"x\"]",
            "c[1]: found the text `x`; use a whole number from -2147483648 to 2147483647",
        ),
        (
            DataType::map(DataType::Int, DataType::Int),
            "{}",
            "c: found an object; use an array of {\"key\": .., \"value\": ..}",
        ),
        (
            DataType::map(DataType::Int, DataType::Int),
            "[5]",
            "c[0]: found `5`; use {\"key\": .., \"value\": ..}",
        ),
        (
            DataType::map(DataType::Boolean, DataType::Int),
            "[{\"value\":1}]",
            "c[0].key: missing, but it is NOT NULL and has no default; use true or false",
        ),
        (
            DataType::map(DataType::Boolean, DataType::Int),
            "[{\"key\":null}]",
            "c[0].key: null, but it is NOT NULL; use true or false",
        ),
        (
            DataType::map(DataType::Char { length: 3 }, DataType::Int),
            "{\"a\":1,\"abcd\":1}",
            &format!("c[1].key: found the text `abcd`; use {char3}"),
        ),
        (
            DataType::map(DataType::String, DataType::Boolean),
            "{\"a\":1}",
            "c[0].value: found `1`; use true or false",
        ),
    ] {
        assert_eq!(refused(value(data_type.clone(), text)), refusal, "{data_type} {text}");
    }
}

#[test]
fn a_key_twice_is_refused_however_many_there_are() {
    let twice = "c: a key stands in it twice; use each key once";
    for count in [2, 8, 9, 100] {
        let by_text = |last: usize| {
            let entries: Vec<String> =
                (1..count).chain([last]).map(|key| format!("\"k{key}\":{key}")).collect();
            value(DataType::map(DataType::String, DataType::Int), &format!("{{{}}}", entries.join(",")))
        };
        let by_row = |last: usize| {
            let key = DataType::Row(vec![
                Field::new("d", DataType::Double),
                Field::new("a", DataType::array(DataType::Int)),
            ]);
            let entry = |key| format!("{{\"key\":{{\"d\":{key}.5,\"a\":[{key},null]}}}}");
            let entries: Vec<String> = (1..count).chain([last]).map(entry).collect();
            value(DataType::map(key, DataType::Int), &format!("[{}]", entries.join(",")))
        };
        assert_eq!(refused(by_text(1)), twice);
        assert_eq!(refused(by_row(1)), twice);
        assert!(by_text(count).is_ok() && by_row(count).is_ok());
    }
}
