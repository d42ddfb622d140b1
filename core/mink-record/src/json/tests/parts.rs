//! Rows of Kafka's records: a key of key columns, and a value.

use super::*;

fn table() -> Schema {
    let columns = vec![
        Field::new("region", DataType::String),
        Field::new("id", DataType::BigInt),
        Field::new("amount", DataType::Double),
    ];
    let bucket_key = vec!["id".to_owned(), "region".to_owned()];
    Schema::create(SchemaDraft { columns, bucket_key, ..SchemaDraft::default() }).expect("a sound schema")
}

fn push(key: Option<&str>, value: Option<&str>) -> Result<String, JsonError> {
    let table = table();
    let mut rows = RowsBuilder::new(&table);
    // What stands before it must not be looked at.
    rows.push_json(br#"{"id":1,"region":"a"}"#)?;
    let bytes = rows.bytes();
    match rows.push_json_parts(key.map(str::as_bytes), value.map(str::as_bytes)) {
        Ok(()) => Ok(written(&JsonWriter::new(&table), &rows.finish().expect("sound columns"), 1)),
        Err(error) => {
            assert_eq!((rows.len(), rows.bytes()), (1, bytes));
            assert_eq!(rows.finish().expect("sound columns").num_rows(), 1);
            Err(error)
        }
    }
}

#[test]
fn a_row_is_what_its_key_and_its_value_have() {
    let row = r#"{"region":"b","id":7,"amount":0.5}"#;
    for (key, value) in [
        (None, row),
        (Some("{}"), row),
        (Some(r#"{"id":7}"#), r#"{"region":"b","amount":0.5}"#),
        (Some(r#"{"id":7,"region":"b"}"#), r#"{"amount":0.5}"#),
        (Some(r#"{"id":"7","region":"\u0062"}"#), row),
    ] {
        assert_eq!(push(key, Some(value)).as_deref(), Ok(row), "{key:?} {value}");
    }
}

#[test]
fn parts_that_contradict_each_other_are_refused() {
    for (key, value, refusal) in [
        (
            r#"{"id":8}"#,
            r#"{"region":"b","id":7}"#,
            "id: the record's key and its value have different values; send the same, or one",
        ),
        (
            r#"{"id":7,"region":"bb"}"#,
            r#"{"region":"b"}"#,
            "region: the record's key and its value have different values; send the same, or one",
        ),
        (
            r#"{"amount":0.5}"#,
            r#"{"region":"b","id":7}"#,
            "amount: in the record's key: no key column; send it in the record's value",
        ),
        (
            r#"{"id":7,"id":7}"#,
            r#"{"region":"b"}"#,
            "id: in the record's key: named twice; use each name once",
        ),
        (r#"{"id":7}"#, r#"{"region":"b","id":7,"id":7}"#, "id: named twice; use each name once"),
        (
            r#"{"id":null}"#,
            r#"{"region":"b","id":7}"#,
            "id: in the record's key: null, but it is NOT NULL; use a whole number from -9223372036854775808 to 9223372036854775807, or a text with its digits",
        ),
        ("7", r#"{"region":"b","id":7}"#, "in the record's key: no JSON at byte 0: found `7`; use an object"),
        (
            r#"{"id":7}"#,
            r#"{"amount":1}"#,
            "region: missing, but it is NOT NULL and has no default; use a text",
        ),
    ] {
        assert_eq!(refused(push(Some(key), Some(value))), refusal, "{key} {value}");
    }
}

#[test]
fn a_record_without_a_value_deletes_and_is_refused() {
    let error = push(Some(r#"{"id":7}"#), None).expect_err("no row");
    assert_eq!(error.kind(), JsonErrorKind::Tombstone);
}

#[test]
fn a_table_without_a_key_takes_no_keys() {
    let table = one(DataType::Int);
    let mut rows = RowsBuilder::new(&table);
    let error = rows.push_json_parts(Some(b"{}"), Some(b"{}")).expect_err("no key columns");
    assert_eq!(error.to_string(), "the table has no key columns, but the record has a key; send it without");
    rows.push_json_parts(None, Some(b"{}")).expect("a row of nulls");
    assert_eq!(rows.len(), 1);
}

#[test]
fn a_primary_key_is_the_key_whatever_the_buckets_go_by() {
    let columns = vec![Field::new("a", DataType::Int), Field::new("b", DataType::Int)];
    let draft = SchemaDraft {
        columns,
        primary_key: vec!["a".into(), "b".into()],
        bucket_key: vec!["b".into()],
        ..SchemaDraft::default()
    };
    let table = Schema::create(draft).expect("a sound schema");
    let mut rows = RowsBuilder::new(&table);
    rows.push_json_parts(Some(br#"{"a":1,"b":2}"#), Some(b"{}")).expect("both are key columns");
    let key = JsonWriter::for_columns(&table, table.primary_key()).expect("its own columns");
    assert_eq!(written(&key, &rows.finish().expect("sound columns"), 0), r#"{"a":1,"b":2}"#);
}
