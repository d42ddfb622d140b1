//! CREATE TABLE: columns, types, keys, options.
//!
//! Lives on: anywhere (pure).
use super::{all_refused, parsed, path};
use crate::Statement;
use mink_types::schema::{DataType, Field, Literal, Schema, SchemaDraft};

/// Draft and options of a table.
fn made(text: &str) -> (SchemaDraft, Vec<(String, String)>) {
    match parsed(text) {
        Statement::CreateTable { draft, options, .. } => (draft, options),
        other => panic!("{other}"),
    }
}

/// The type of a table's only column.
fn type_of(text: &str) -> DataType {
    let (mut draft, _) = made(&format!("CREATE TABLE d.t (c {text})"));
    assert_eq!(draft.columns.len(), 1);
    draft.columns.remove(0).data_type
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

#[test]
fn the_example_of_the_manual_becomes_a_schema() {
    let text = "CREATE TABLE sales.orders (
          order_id BIGINT NOT NULL, customer STRING, amount DECIMAL(12,2), ts TIMESTAMP_LTZ(3), dt STRING NOT NULL,
          PRIMARY KEY (dt, order_id)
        ) PARTITIONED BY (dt)
        WITH ('bucket.num' = '4', 'table.datalake.enabled' = 'true', 'table.datalake.freshness' = '10s');";
    let Statement::CreateTable { path: found, if_not_exists, draft, options } = parsed(text) else {
        panic!("{text}")
    };
    assert_eq!((found, if_not_exists), (path("sales.orders"), false));
    assert_eq!(draft.columns.len(), 5);
    assert_eq!(draft.columns[2], Field::new("amount", DataType::Decimal { precision: 12, scale: 2 }));
    assert_eq!(draft.primary_key, ["dt", "order_id"]);
    assert_eq!(draft.partitioned_by, ["dt"]);
    assert_eq!(draft.bucket_key, [""; 0]);
    let expected =
        [("bucket.num", "4"), ("table.datalake.enabled", "true"), ("table.datalake.freshness", "10s")];
    assert_eq!(options, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let schema = Schema::create(draft).expect("a schema");
    assert_eq!(schema.bucket_key(), [schema.column("order_id").expect("a column").id]);
}

#[test]
fn every_type_is_read_under_its_name_and_its_synonyms() {
    let time = |precision| DataType::Time { precision };
    let timestamp = |precision| DataType::Timestamp { precision };
    let instant = |precision| DataType::TimestampLtz { precision };
    let cases = [
        ("BOOLEAN", DataType::Boolean),
        ("bool", DataType::Boolean),
        ("TINYINT", DataType::TinyInt),
        ("SMALLINT", DataType::SmallInt),
        ("INT", DataType::Int),
        ("Integer", DataType::Int),
        ("BIGINT", DataType::BigInt),
        ("FLOAT", DataType::Float),
        ("REAL", DataType::Float),
        ("DOUBLE", DataType::Double),
        ("double precision", DataType::Double),
        ("DECIMAL(38, 38)", DataType::Decimal { precision: 38, scale: 38 }),
        ("NUMERIC(5)", DataType::Decimal { precision: 5, scale: 0 }),
        ("CHAR(7)", DataType::Char { length: 7 }),
        ("VARCHAR(2147483647)", DataType::Char { length: 2_147_483_647 }),
        ("STRING", DataType::String),
        ("VARCHAR", DataType::String),
        ("TEXT", DataType::String),
        ("BINARY(1)", DataType::Binary { length: 1 }),
        ("VARBINARY(9)", DataType::Binary { length: 9 }),
        ("BYTES", DataType::Bytes),
        ("VARBINARY", DataType::Bytes),
        ("DATE", DataType::Date),
        ("TIME", time(0)),
        ("TIME(9)", time(9)),
        ("TIMESTAMP", timestamp(6)),
        ("TIMESTAMP(3) WITHOUT TIME ZONE", timestamp(3)),
        ("TIMESTAMP_LTZ", instant(6)),
        ("TIMESTAMPTZ(0)", instant(0)),
        ("TIMESTAMP WITH TIME ZONE", instant(6)),
        ("TIMESTAMP(9) WITH LOCAL TIME ZONE", instant(9)),
    ];
    for (text, expected) in cases {
        assert_eq!(type_of(text), expected, "{text}");
    }
}

#[test]
fn nested_types_nest_with_nulls_and_comments() {
    let element = Box::new(Field::new("element", DataType::Int).not_null());
    assert_eq!(type_of("ARRAY<INT NOT NULL>"), DataType::Array(element));
    let key = Box::new(Field::new("key", DataType::String).not_null());
    let value = Box::new(Field::new("value", type_of("ARRAY<ARRAY<DATE>>")));
    assert_eq!(
        type_of("MAP<STRING, ARRAY<ARRAY<DATE>>>"),
        DataType::Map { key: key.clone(), value: value.clone() }
    );
    assert_eq!(type_of("MAP<STRING NOT NULL, ARRAY<ARRAY<DATE>> NULL>"), DataType::Map { key, value });
    let comment = Some("it's".to_owned());
    let fields = vec![
        Field { comment, ..Field::new("column", DataType::Int).not_null() },
        Field::new("odd name", type_of("ROW<x INT>")),
    ];
    for text in [
        "ROW<column INT NOT NULL COMMENT 'it''s', \"odd name\" ROW<x INT>>",
        "ROW(column INT NOT NULL COMMENT 'it''s', `odd name` ROW(x INT))",
    ] {
        assert_eq!(type_of(text), DataType::Row(fields.clone()), "{text}");
    }
}

#[test]
fn what_a_column_has_behind_its_type_stands_in_any_order() {
    let expected = Field {
        nullable: false,
        default: Some(Literal::Text("a'b".into())),
        comment: Some(String::new()),
        ..Field::new("c", DataType::String)
    };
    for text in ["c STRING NOT NULL DEFAULT 'a''b' COMMENT ''", "c STRING COMMENT '' DEFAULT 'a''b' NOT NULL"]
    {
        let (draft, _) = made(&format!("CREATE TABLE d.t ({text})"));
        assert_eq!(draft.columns, std::slice::from_ref(&expected), "{text}");
    }
    let (draft, _) = made("CREATE TABLE d.t (c INT NULL DEFAULT NULL)");
    assert_eq!(draft.columns, [Field::new("c", DataType::Int)]);
}

#[test]
fn the_primary_key_stands_on_a_column_or_by_itself() {
    for text in [
        "CREATE TABLE d.t (id INT PRIMARY KEY, b INT)",
        "CREATE TABLE d.t (id INT PRIMARY KEY NOT ENFORCED, b INT)",
        "CREATE TABLE d.t (id INT, b INT, PRIMARY KEY (id))",
        "CREATE TABLE d.t (PRIMARY KEY (id) NOT ENFORCED, id INT, b INT)",
        "CREATE TABLE d.t (id INT, CONSTRAINT pk PRIMARY KEY (id) NOT ENFORCED, b INT)",
    ] {
        let (draft, _) = made(text);
        let columns = vec![Field::new("id", DataType::Int), Field::new("b", DataType::Int)];
        let primary_key = strings(&["id"]);
        assert_eq!(draft, SchemaDraft { columns, primary_key, ..SchemaDraft::default() }, "{text}");
    }
    let (draft, _) = made("CREATE TABLE d.t (id INT PRIMARY KEY NOT NULL)");
    assert!(!draft.columns[0].nullable);
}

#[test]
fn words_of_sql_are_names_of_columns_where_nothing_else_can_stand() {
    let words = [
        "key",
        "value",
        "type",
        "date",
        "timestamp",
        "comment",
        "default",
        "first",
        "after",
        "row",
        "select",
        "with",
    ];
    let columns = words.map(|word| format!("{word} INT")).join(", ");
    let (draft, _) = made(&format!("CREATE TABLE d.t ({columns}, PRIMARY KEY (key, type), \"primary\" INT)"));
    let names: Vec<&str> = draft.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(names, [words.as_slice(), &["primary"]].concat());
}

#[test]
fn options_keep_their_order_and_the_bucket_key_is_taken_out() {
    let (draft, options) = made(
        "CREATE TABLE d.t (a INT, b INT) WITH ('z' = '1', 'bucket.key' = ' a , b', 'y' = '') PARTITIONED BY (b)",
    );
    assert_eq!(draft.bucket_key, ["a", "b"]);
    assert_eq!(draft.partitioned_by, ["b"]);
    let expected = [("z", "1"), ("y", "")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(options, expected);
    let (draft, _) = made("CREATE TABLE d.t (a INT) WITH ('bucket.key' = '\"a,\"\"b\" ,`c`,d e')");
    assert_eq!(draft.bucket_key, ["a,\"b", "c", "d e"]);
}

#[test]
fn columns_and_keys_that_are_wrong_are_refused_where_they_stand() {
    all_refused(&[
        ("CREATE TABLE d.t", 17, "'('"),
        ("CREATE TABLE d.t ()", 19, "the name of a column"),
        ("CREATE TABLE d.t (a INT", 24, "',' or ')'"),
        ("CREATE TABLE d.t (a INT,)", 25, "the name of a column"),
        ("CREATE TABLE d.t (a)", 20, "a type: BOOLEAN"),
        ("CREATE TABLE d.t (\"\" INT)", 19, "1 to 255 bytes"),
        ("CREATE TABLE d.t (\"a\tb\" INT)", 19, "without control characters"),
        ("CREATE TABLE d.t (if INT)", 19, "double quotes only"),
        ("CREATE TABLE d.t (a INT NOT)", 28, "NULL"),
        ("CREATE TABLE d.t (a INT NOT NULL NULL)", 34, "once"),
        ("CREATE TABLE d.t (a INT DEFAULT 1 DEFAULT 2)", 35, "DEFAULT once"),
        ("CREATE TABLE d.t (a INT COMMENT 'a' COMMENT 'b')", 37, "COMMENT once"),
        ("CREATE TABLE d.t (a INT COMMENT b)", 33, "the comment in single quotes"),
        ("CREATE TABLE d.t (a INT NOT NULL DEFAULT NULL)", 42, "NOT NULL has no DEFAULT NULL"),
        ("CREATE TABLE d.t (a INT UNIQUE)", 25, "',' or ')'"),
        ("CREATE TABLE d.t (a INT PRIMARY KEY, b INT PRIMARY KEY)", 38, "one PRIMARY KEY"),
        ("CREATE TABLE d.t (a INT PRIMARY KEY, PRIMARY KEY (a))", 38, "one PRIMARY KEY"),
        ("CREATE TABLE d.t (a INT PRIMARY KEY PRIMARY KEY)", 37, "PRIMARY KEY once"),
        ("CREATE TABLE d.t (PRIMARY KEY ())", 32, "the name of a column"),
        ("CREATE TABLE d.t (CONSTRAINT x UNIQUE (a))", 32, "PRIMARY KEY"),
        ("CREATE TABLE d.t (a INT) COMMENT 'x'", 26, "PARTITIONED BY, WITH or the end"),
        ("CREATE TABLE d.t (a INT) PARTITIONED BY (a) PARTITIONED BY (a)", 45, "WITH or the end"),
        ("CREATE TABLE d.t (a INT) PARTITIONED BY (day(a))", 45, "',' or ')'"),
    ]);
}

#[test]
fn types_that_are_wrong_are_refused_where_they_stand() {
    all_refused(&[
        ("CREATE TABLE d.t (a INTT)", 21, "found \"INTT\"; accepted: a type"),
        ("CREATE TABLE d.t (a UUID)", 21, "not there yet"),
        ("CREATE TABLE d.t (a VARIANT)", 21, "not there yet"),
        ("CREATE TABLE d.t (a DECIMAL)", 28, "(precision, scale)"),
        ("CREATE TABLE d.t (a DECIMAL(0, 0))", 29, "from 1 to 38"),
        ("CREATE TABLE d.t (a DECIMAL(39, 0))", 29, "from 1 to 38"),
        ("CREATE TABLE d.t (a DECIMAL(5, 6))", 32, "from 0 to 5"),
        ("CREATE TABLE d.t (a DECIMAL(5.1))", 29, "from 1 to 38"),
        ("CREATE TABLE d.t (a DECIMAL(99999999999999999999))", 29, "from 1 to 38"),
        ("CREATE TABLE d.t (a CHAR)", 25, "(length)"),
        ("CREATE TABLE d.t (a BINARY(0))", 28, "from 1 to 2147483647"),
        ("CREATE TABLE d.t (a CHAR(2147483648))", 26, "from 1 to 2147483647"),
        ("CREATE TABLE d.t (a TIMESTAMP(10))", 31, "from 0 to 9"),
        ("CREATE TABLE d.t (a TIMESTAMP WITH ZONE)", 36, "TIME"),
        ("CREATE TABLE d.t (a ARRAY)", 26, "'<'"),
        ("CREATE TABLE d.t (a ARRAY<INT)", 30, "'>'"),
        ("CREATE TABLE d.t (a MAP<INT>)", 28, "','"),
        ("CREATE TABLE d.t (a MAP<INT NULL, INT>)", 29, "never null"),
        ("CREATE TABLE d.t (a ROW<>)", 25, "the name of a column"),
        ("CREATE TABLE d.t (a ROW<b>)", 26, "a type: BOOLEAN"),
        ("CREATE TABLE d.t (a ROW<b INT)", 30, "',' or '>'"),
        ("CREATE TABLE d.t (a ROW<b INT DEFAULT 5>)", 31, "',' or '>'"),
    ]);
}

#[test]
fn options_that_are_wrong_are_refused_where_they_stand() {
    all_refused(&[
        ("CREATE TABLE d.t (a INT) WITH ()", 32, "the name of an option in single quotes"),
        ("CREATE TABLE d.t (a INT) WITH (a = 'b')", 32, "the name of an option in single quotes"),
        ("CREATE TABLE d.t (a INT) WITH ('a' 'b')", 36, "'='"),
        ("CREATE TABLE d.t (a INT) WITH ('a' = 4)", 38, "the value of the option in single quotes"),
        ("CREATE TABLE d.t (a INT) WITH ('a' = '4', 'a' = '5')", 43, "twice"),
        ("CREATE TABLE d.t (a INT) WITH ('bucket.key' = '')", 31, "names of columns"),
        ("CREATE TABLE d.t (a INT) WITH ('bucket.key' = 'a,,b')", 31, "names of columns"),
        ("CREATE TABLE d.t (a INT) WITH ('bucket.key' = '\"a')", 31, "not closed"),
        ("CREATE TABLE d.t (a INT) WITH ('bucket.key' = '\"a\"b')", 31, "a comma between"),
    ]);
}
