//! CSV into rows: a line of names, then a record per row. A field is its column's value as docs/json.md writes it, without JSON's quotes.
//!
//! Lives on: the reading thread.
//! Invariants: an error names the line and the column; rows before it are handed on. No field becomes more of a row than its own value.
mod text;

use super::FileForm;
use super::input::{Bytes, begin_text};
use super::portion::{Collector, Sink, Stop};
use super::target::Target;
use mink_types::schema::DataType;
use serde::de::IgnoredAny;
use text::{Field, Record, Records};

/// Reads all records below the line of names.
pub(super) fn read(bytes: Bytes, target: &Target, sink: &Sink) -> Result<(), Stop> {
    let mut rows = Collector::new(target);
    let ended = read_records(bytes, target, &mut rows, sink);
    if !matches!(ended, Err(Stop::Nobody)) {
        rows.flush(sink)?;
    }
    ended
}

fn read_records(
    mut bytes: Bytes,
    target: &Target,
    rows: &mut Collector<'_>,
    sink: &Sink,
) -> Result<(), Stop> {
    begin_text(&mut bytes, FileForm::Csv)?;
    let (mut records, mut record) = (Records::new(bytes), Record::default());
    if !records.next(&mut record)? {
        return Ok(());
    }
    let columns = columns(&record, target)?;
    let mut object = Vec::new();
    loop {
        if records.may_wait() {
            rows.flush(sink)?;
        }
        if !records.next(&mut record)? {
            return Ok(());
        }
        let (found, named) = (record.len(), columns.len());
        // In a file of one column a blank line is a null.
        if record.is_blank() && named > 1 {
            continue;
        }
        if found != named {
            let line = record.line;
            return Err(format!("line {line}: {found} fields, where the line of names has {named}").into());
        }
        put_object(&record, &columns, &mut object).map_err(|what| format!("line {}: {what}", record.line))?;
        rows.push(record.line, &object, sink)?;
    }
}

/// What a field of a record becomes; none: it is passed over.
type Columns = Vec<Option<Column>>;

/// A column that a field goes to.
#[derive(Debug)]
struct Column {
    name: String,
    /// Its name as it stands before a value: `"name":`.
    key: Vec<u8>,
    shape: Shape,
}

/// How a value of a type stands in a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shape {
    /// As it is.
    Text,
    /// Without blanks around it, as a number if it is one.
    Number,
    /// `true` or `false`, in whatever case.
    Boolean,
    /// Without blanks around it, as a text.
    Moment,
    /// JSON.
    Nested,
}

impl Shape {
    fn of(data_type: &DataType) -> Shape {
        match data_type {
            DataType::Boolean => Shape::Boolean,
            DataType::TinyInt
            | DataType::SmallInt
            | DataType::Int
            | DataType::BigInt
            | DataType::Float
            | DataType::Double
            | DataType::Decimal { .. }
            // Milliseconds are a number.
            | DataType::TimestampLtz { .. } => Shape::Number,
            DataType::Char { .. } | DataType::String | DataType::Binary { .. } | DataType::Bytes => Shape::Text,
            DataType::Date | DataType::Time { .. } | DataType::Timestamp { .. } => Shape::Moment,
            DataType::Array(_) | DataType::Map { .. } | DataType::Row(_) => Shape::Nested,
        }
    }
}

/// The columns that the line of names tells of.
fn columns(names: &Record, target: &Target) -> Result<Columns, Stop> {
    let mut texts = Vec::with_capacity(names.len());
    for field in names.fields() {
        texts.push(std::str::from_utf8(field.text).map_err(|_| "line 1: a name is not UTF-8".to_owned())?);
    }
    let places = target.places(texts.iter().copied());
    let places = places.map_err(|what| format!("line 1: {what}{}", other_separator(&texts)))?;
    let column = |place: Option<usize>| -> Option<Column> {
        let column = target.schema.columns().get(place?)?;
        let mut key = Vec::new();
        put_text(&column.name, &mut key);
        key.push(b':');
        Some(Column { name: column.name.clone(), key, shape: Shape::of(&column.data_type) })
    };
    Ok(places.into_iter().map(column).collect())
}

/// How a file becomes CSV whose names stand between other signs than commas.
fn other_separator(names: &[&str]) -> &'static str {
    match names {
        [all] if all.contains(';') => {
            "; its fields stand between semicolons: `mlr --icsv --ifs ';' --ocsv cat FILE` (Miller) writes commas"
        }
        [all] if all.contains('\t') => {
            "; its fields stand between tabs: `mlr --itsv --ocsv cat FILE` (Miller) writes commas"
        }
        _ => "",
    }
}

/// The record as the JSON object that it stands for.
fn put_object(record: &Record, columns: &Columns, object: &mut Vec<u8>) -> Result<(), String> {
    object.clear();
    let mut open = b'{';
    for (field, column) in record.fields().zip(columns) {
        let Some(column) = column else { continue };
        object.push(open);
        open = b',';
        object.extend_from_slice(&column.key);
        let name = &column.name;
        let text = std::str::from_utf8(field.text).map_err(|_| format!("{name}: not UTF-8"))?;
        if is_null(field) {
            object.extend_from_slice(b"null");
        } else {
            put_value(text, column.shape, object);
        }
    }
    if open == b'{' {
        object.push(open);
    }
    object.push(b'}');
    Ok(())
}

/// Nothing at all is null; an empty text has its quotes.
fn is_null(field: Field<'_>) -> bool {
    field.text.is_empty() && !field.is_quoted
}

/// A value as JSON: what it seems to be, or else a text, which is refused where none may stand.
fn put_value(text: &str, shape: Shape, object: &mut Vec<u8>) {
    let trimmed = text.trim_ascii();
    match shape {
        Shape::Number if is_number(trimmed) => object.extend_from_slice(trimmed.as_bytes()),
        Shape::Boolean if trimmed.eq_ignore_ascii_case("true") => object.extend_from_slice(b"true"),
        Shape::Boolean if trimmed.eq_ignore_ascii_case("false") => object.extend_from_slice(b"false"),
        Shape::Nested if serde_json::from_str::<IgnoredAny>(trimmed).is_ok() => {
            object.extend_from_slice(trimmed.as_bytes());
        }
        Shape::Text => put_text(text, object),
        Shape::Number | Shape::Boolean | Shape::Moment | Shape::Nested => put_text(trimmed, object),
    }
}

/// Whether the text is one number of JSON.
fn is_number(text: &str) -> bool {
    text.starts_with(|first: char| first == '-' || first.is_ascii_digit())
        && serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok()
}

fn put_text(text: &str, object: &mut Vec<u8>) {
    // Bytes in memory take whatever is written.
    drop(serde_json::to_writer(object, text));
}

#[cfg(test)]
mod tests {
    use super::super::input::tests::bytes;
    use super::super::target::tests::target;
    use super::*;
    use mink_record::json::JsonWriter;

    /// What was read, as JSON, and how it ended.
    fn read_all(text: &str, target: &Target) -> (Vec<String>, Result<(), String>) {
        let (sink, mut receiver) = Sink::collecting(64);
        let ended = read(bytes(text.as_bytes()), target, &sink).map_err(|stop| match stop {
            Stop::Wrong(what) => what,
            Stop::Nobody => panic!("a test listens"),
        });
        drop(sink);
        let mut found = Vec::new();
        while let Ok(portion) = receiver.try_recv() {
            let rows = portion.expect("rows").rows;
            for row in 0..rows.num_rows() {
                let mut text = Vec::new();
                JsonWriter::new(&target.schema).write_row(&rows, row, &mut text).expect("a row");
                found.push(String::from_utf8(text).expect("text"));
            }
        }
        (found, ended)
    }

    fn one(columns: &str, field: &str) -> Result<String, String> {
        let (found, ended) =
            read_all(&format!("c,other\n{field},1\n"), &target(&format!("c {columns}, other INT")));
        ended.map(|()| found.concat())
    }

    #[test]
    fn columns_are_found_by_their_names_in_any_order() {
        let (found, ended) = read_all("b,a\nx,1\n\n,\n", &target("a INT, b STRING, c INT DEFAULT 7"));
        assert_eq!(ended, Ok(()));
        assert_eq!(found, [r#"{"a":1,"b":"x","c":7}"#, r#"{"a":null,"b":null,"c":7}"#]);
    }

    #[test]
    fn nothing_is_null_and_an_empty_text_has_quotes() {
        let (found, ended) = read_all("a\n\"\"\n\nx\n", &target("a STRING"));
        assert_eq!(ended, Ok(()));
        assert_eq!(found, [r#"{"a":""}"#, r#"{"a":null}"#, r#"{"a":"x"}"#]);
    }

    #[test]
    fn every_type_has_a_field() {
        for (columns, field, value) in [
            ("BOOLEAN", "True", "true"),
            ("BOOLEAN", " FALSE ", "false"),
            ("TINYINT", "-128", "-128"),
            ("BIGINT", " 9223372036854775807", "9223372036854775807"),
            (
                "DECIMAL(38, 10)",
                "1234567890123456789012345678.0123456789",
                "1234567890123456789012345678.0123456789",
            ),
            ("DOUBLE", "1e300", "1e300"),
            ("FLOAT", "NaN", "\"NaN\""),
            ("DOUBLE", "-Infinity", "\"-Infinity\""),
            ("STRING", "\" a,\"\"b\"\"\n\"", "\" a,\\\"b\\\"\\n\""),
            ("STRING", "null", "\"null\""),
            ("STRING", " 7 ", "\" 7 \""),
            ("BYTES", "AP8=", "\"AP8=\""),
            ("DATE", "2026-01-31", "\"2026-01-31\""),
            ("TIME(3)", "12:34:56.789", "\"12:34:56.789\""),
            ("TIMESTAMP(0)", "2026-01-31 12:34:56", "\"2026-01-31T12:34:56\""),
            ("TIMESTAMP_LTZ(0)", "2026-01-31 12:34:56+01:00", "\"2026-01-31T11:34:56Z\""),
            ("TIMESTAMP_LTZ(3)", "1700000000123", "\"2023-11-14T22:13:20.123Z\""),
            ("ARRAY<INT>", "\"[1,null]\"", "[1,null]"),
            ("MAP<STRING, INT>", "\"{\"\"a\"\":1}\"", "{\"a\":1}"),
            ("ROW<a INT, b STRING>", "\"{\"\"b\"\":\"\"x\"\"}\"", "{\"a\":null,\"b\":\"x\"}"),
        ] {
            assert_eq!(
                one(columns, field),
                Ok(format!("{{\"c\":{value},\"other\":1}}")),
                "{columns} {field}"
            );
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_with_line_and_column() {
        for (columns, field) in [
            ("INT", "1.0"),
            ("INT", "x"),
            ("INT", "007"),
            ("INT", "\"\""),
            ("BOOLEAN", "1"),
            ("DATE", "31.1.2026"),
            ("DECIMAL(3, 1)", "1.55"),
            ("ARRAY<INT>", "[1"),
            ("ARRAY<INT>", "\"1,\"\"c\"\":[1]\""),
            ("INT", "\"1,\"\"other\"\":2\""),
            ("CHAR(1)", "ab"),
            ("BYTES", "%"),
        ] {
            let what = one(columns, field).expect_err(field);
            assert!(what.starts_with("line 2: c"), "{what}");
        }
    }

    #[test]
    fn a_record_with_other_fields_than_names_is_refused_and_rows_before_it_are_there() {
        let (found, ended) = read_all("a,b\n1,2\n3\n", &target("a INT, b INT"));
        assert_eq!(found, [r#"{"a":1,"b":2}"#]);
        assert_eq!(ended, Err("line 3: 1 fields, where the line of names has 2".into()));
    }

    #[test]
    fn names_that_are_no_columns_are_refused_unless_columns_are_chosen() {
        let table = target("a INT, b INT");
        let (_, ended) = read_all("a,x\n1,2\n", &table);
        assert!(ended.expect_err("x is no column").starts_with("line 1: the file has a column \"x\""));
        let chosen = Target { is_chosen: true, ..target("b INT") };
        let (found, ended) = read_all("a,b,x\n1,2,\"[\"\n", &chosen);
        assert_eq!((found, ended), (vec![r#"{"b":2}"#.to_owned()], Ok(())));
    }

    #[test]
    fn names_between_other_signs_than_commas_are_told_with_what_makes_commas() {
        let words = |text| read_all(text, &target("a INT, b INT")).1.expect_err("no names");
        assert!(words("a;b\n1;2\n").contains("`mlr --icsv --ifs ';' --ocsv cat FILE`"));
        assert!(words("a\tb\n1\t2\n").contains("`mlr --itsv --ocsv cat FILE`"));
        assert!(!words("x\n").contains("mlr"));
        // A column may be called so.
        assert_eq!(read_all("a;b\n1\n", &target("\"a;b\" INT")).1, Ok(()));
    }

    #[test]
    fn a_day_that_there_is_not_is_told_as_that() {
        assert_eq!(one("DATE", "2026-02-31"), Err("line 2: c: there is no day 2026-02-31".into()));
    }

    #[test]
    fn a_file_of_nothing_or_names_alone_has_no_rows() {
        for text in ["", "a\n", "\u{feff}a"] {
            assert_eq!(read_all(text, &target("a INT")), (Vec::new(), Ok(())), "{text:?}");
        }
    }
}
