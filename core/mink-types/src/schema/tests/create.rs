//! What a CREATE may say, and what ids it gives.
//!
//! Lives on: anywhere (pure).
use super::super::*;
use super::{ids, log_table, orders};

fn draft(columns: Vec<Field>) -> SchemaDraft {
    SchemaDraft { columns, ..SchemaDraft::default() }
}

fn keyed(key: &[&str], partitions: &[&str], buckets: &[&str]) -> Result<Schema, SchemaError> {
    let columns = vec![
        Field::new("a", DataType::Int),
        Field::new("b", DataType::String),
        Field::new("c", DataType::Date),
        Field::new("list", DataType::array(DataType::Int)),
    ];
    let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let (primary_key, partitioned_by, bucket_key) = (owned(key), owned(partitions), owned(buckets));
    Schema::create(SchemaDraft { columns, primary_key, partitioned_by, bucket_key })
}

/// Refused with text that has both words.
fn refused(result: Result<Schema, SchemaError>, column: &str, accepted: &str) {
    let text = result.expect_err("it is refused").to_string();
    assert!(text.contains(column) && text.contains(accepted), "{text}");
}

#[test]
fn ids_are_given_depth_first_from_one() {
    let schema = orders();
    assert_eq!(ids(&schema, ""), [1, 2, 3, 4, 9, 12]);
    assert_eq!(ids(&schema, "items"), [5]);
    assert_eq!(ids(&schema, "items.element"), [6, 7, 8]);
    assert_eq!(ids(&schema, "labels"), [10, 11]);
    assert_eq!((schema.id(), schema.last_field()), (SchemaId::FIRST, FieldId(12)));
}

#[test]
fn ids_and_fixed_names_of_a_draft_are_not_looked_at() {
    let element = Field { id: FieldId(9), ..Field::new("item", DataType::Int) };
    let key = Field { id: FieldId(9), ..Field::new("k", DataType::Int) };
    let map = DataType::Map { key: Box::new(key.clone()), value: Box::new(key) };
    let columns = vec![Field::new("l", DataType::Array(Box::new(element))), Field::new("m", map)];
    let schema = log_table(columns);
    let plain = vec![
        Field::new("l", DataType::array(DataType::Int)),
        Field::new("m", DataType::map(DataType::Int, DataType::Int)),
    ];
    assert_eq!(schema, log_table(plain));
}

#[test]
fn key_columns_are_forced_not_null() {
    let schema = orders();
    let nullable = |name: &str| schema.column(name).expect("it is there").nullable;
    assert!(!nullable("order_id") && !nullable("dt") && nullable("amount"));
    assert_eq!(schema.primary_key(), [FieldId(2), FieldId(1)]);
    let log = keyed(&[], &["c"], &["b"]).expect("a log table has partitions and a bucket key too");
    assert!(!log.column("b").expect("there").nullable && !log.column("c").expect("there").nullable);
}

#[test]
fn a_bucket_key_is_by_default_the_primary_key_without_partitions() {
    assert_eq!(orders().bucket_key(), [FieldId(1)]);
    let schema = keyed(&["c", "b", "a"], &["b"], &[]).expect("right");
    assert_eq!(schema.bucket_key(), [FieldId(3), FieldId(1)]);
    let chosen = keyed(&["c", "b", "a"], &["b"], &["a"]).expect("right");
    assert_eq!(chosen.bucket_key(), [FieldId(1)]);
    let log = keyed(&[], &[], &[]).expect("right");
    assert!(log.bucket_key().is_empty());
}

#[test]
fn keys_that_are_no_keys_are_refused() {
    refused(keyed(&["z"], &[], &[]), "column z", "use a, b, c, list");
    refused(keyed(&["a", "a"], &[], &[]), "PRIMARY KEY: column a", "each column once");
    refused(keyed(&["list"], &[], &[]), "PRIMARY KEY: column list", "scalar");
    refused(keyed(&[], &["list"], &[]), "PARTITIONED BY: column list", "scalar");
    refused(keyed(&[], &[], &["list"]), "bucket.key: column list", "scalar");
    refused(keyed(&["a"], &["b"], &[]), "PARTITIONED BY: column b", "columns of the primary key");
    refused(keyed(&["a"], &[], &["b"]), "bucket.key: column b", "columns of the primary key");
    refused(keyed(&["a", "b"], &["b"], &["b"]), "bucket.key: column b", "not partitioned by");
    refused(keyed(&[], &["b"], &["b"]), "bucket.key: column b", "not partitioned by");
    refused(keyed(&["a"], &["a"], &[]), "PRIMARY KEY: column a", "one more column");
}

#[test]
fn a_key_has_a_bounded_number_of_columns() {
    let of = |count: usize| {
        let columns: Vec<Field> = (0..count).map(|n| Field::new(format!("c{n}"), DataType::Int)).collect();
        let primary_key = columns.iter().map(|column| column.name.clone()).collect();
        Schema::create(SchemaDraft { columns, primary_key, ..SchemaDraft::default() })
    };
    assert!(of(KEY_COLUMNS_MAX).is_ok());
    assert_eq!(of(KEY_COLUMNS_MAX + 1), Err(SchemaError::KeyColumns { used_by: KeyUse::PrimaryKey }));
}

#[test]
fn a_table_and_a_row_have_columns() {
    assert_eq!(Schema::create(draft(Vec::new())), Err(SchemaError::NoColumns));
    let empty = vec![Field::new("r", DataType::Row(Vec::new()))];
    refused(Schema::create(draft(empty)), "column r", "at least one field");
}

#[test]
fn names_are_bounded_without_control_characters_and_unique_by_case() {
    let named = |name: &str| Schema::create(draft(vec![Field::new(name, DataType::Int)]));
    for good in ["a", "ä b.c\"'", "select", &"x".repeat(COLUMN_NAME_BYTES_MAX)] {
        assert!(named(good).is_ok(), "{good}");
    }
    for bad in ["", "a\nb", "a\0", "\u{85}", &"x".repeat(COLUMN_NAME_BYTES_MAX + 1)] {
        refused(named(bad), "this is no name", "1 to 255 bytes");
    }
    // What is shown of a bad name can neither flood nor forge a log.
    let text = named(&format!("a\n\u{1b}[2J{}", "x".repeat(1 << 20))).expect_err("bad").to_string();
    assert!(text.len() < 400 && !text.contains(char::is_control), "{text}");
    let two = |one: &str, other: &str| {
        Schema::create(draft(vec![Field::new(one, DataType::Int), Field::new(other, DataType::Int)]))
    };
    refused(two("a", "a"), "column a", "unique");
    assert!(two("a", "A").is_ok());
    let fields = vec![Field::new("x", DataType::Int), Field::new("x", DataType::Int)];
    let nested = vec![Field::new("r", DataType::array(DataType::Row(fields)))];
    refused(Schema::create(draft(nested)), "column r.element.x", "unique");
}

#[test]
fn types_have_bounds() {
    let good = [
        DataType::Decimal { precision: 38, scale: 38 },
        DataType::Decimal { precision: 1, scale: 0 },
        DataType::Char { length: LENGTH_MAX },
        DataType::Binary { length: 1 },
        DataType::Time { precision: 9 },
        DataType::Timestamp { precision: 0 },
    ];
    for data_type in good {
        log_table(vec![Field::new("c", data_type)]);
    }
    let bad = [
        (DataType::Decimal { precision: 0, scale: 0 }, "p from 1 to 38"),
        (DataType::Decimal { precision: 39, scale: 0 }, "p from 1 to 38"),
        (DataType::Decimal { precision: 2, scale: 3 }, "s from 0 to p"),
        (DataType::Char { length: 0 }, "from 1 to 2147483647"),
        (DataType::Binary { length: LENGTH_MAX + 1 }, "from 1 to 2147483647"),
        (DataType::Time { precision: 10 }, "from 0 to 9"),
        (DataType::Timestamp { precision: 10 }, "from 0 to 9"),
        (DataType::TimestampLtz { precision: 255 }, "from 0 to 9"),
    ];
    for (data_type, accepted) in bad {
        let text = data_type.to_string();
        let nested = DataType::map(DataType::Int, data_type);
        let result = Schema::create(draft(vec![Field::new("c", nested)]));
        refused(result.clone(), "column c.value", accepted);
        refused(result, &text, accepted);
    }
}

#[test]
fn depth_and_count_are_bounded() {
    let deep = |depth: usize| {
        let nested = (1..depth).fold(DataType::Int, |inner, _| DataType::array(inner));
        Schema::create(draft(vec![Field::new("c", nested)]))
    };
    assert!(deep(SCHEMA_DEPTH_MAX).is_ok());
    refused(deep(SCHEMA_DEPTH_MAX + 1), "nested too deeply", "at most 32");
    assert!(deep(1_000).is_err());
    let wide = |count: usize| {
        let fields = (0..count).map(|n| Field::new(n.to_string(), DataType::Int)).collect();
        Schema::create(draft(vec![Field::new("c", DataType::Row(fields))]))
    };
    assert!(wide(SCHEMA_FIELDS_MAX - 1).is_ok());
    assert_eq!(wide(SCHEMA_FIELDS_MAX), Err(SchemaError::Fields));
}

#[test]
fn comments_and_all_text_are_bounded() {
    let commented = |comment: String| {
        let column = Field { comment: Some(comment), ..Field::new("c", DataType::Int) };
        Schema::create(draft(vec![column]))
    };
    assert!(commented("two\n\tlines".to_owned()).is_ok());
    assert!(commented("x".repeat(COMMENT_BYTES_MAX)).is_ok());
    refused(commented("x".repeat(COMMENT_BYTES_MAX + 1)), "column c", "at most 1024 bytes");
    refused(commented("\u{1b}[2J".to_owned()), "column c", "control characters");
    let element = Field { comment: Some("x".to_owned()), ..Field::new("element", DataType::Int) };
    let list = Field::new("l", DataType::Array(Box::new(element)));
    refused(Schema::create(draft(vec![list])), "column l.element", "field of a ROW");
    let long = |n: usize| Field {
        comment: Some("x".repeat(COMMENT_BYTES_MAX)),
        ..Field::new(format!("c{n:03}"), DataType::Int)
    };
    let count = SCHEMA_TEXT_BYTES_MAX / (COMMENT_BYTES_MAX + 4);
    assert!(Schema::create(draft((0..count).map(long).collect())).is_ok());
    assert_eq!(Schema::create(draft((0..=count).map(long).collect())), Err(SchemaError::Text));
}

#[test]
fn defaults_fit_their_column() {
    let of = |data_type: DataType, default: Literal| {
        let column = Field { default: Some(default), ..Field::new("c", data_type) };
        Schema::create(draft(vec![column]))
    };
    assert!(of(DataType::TinyInt, Literal::Integer(127)).is_ok());
    refused(of(DataType::TinyInt, Literal::Integer(128)), "column c: its default", "range of TINYINT");
    refused(of(DataType::TinyInt, Literal::Text("1".to_owned())), "column c", "range of TINYINT");
    refused(of(DataType::array(DataType::Int), Literal::Integer(1)), "column c", "no constants");
    let text = |bytes| of(DataType::String, Literal::Text("x".repeat(bytes)));
    assert!(text(DEFAULT_BYTES_MAX).is_ok());
    refused(text(DEFAULT_BYTES_MAX + 1), "column c", "at most 1024 bytes");
    let inner = Field { default: Some(Literal::Integer(1)), ..Field::new("x", DataType::Int) };
    let row = Field::new("r", DataType::Row(vec![inner]));
    refused(Schema::create(draft(vec![row])), "column r.x", "columns only");
}
