//! What is printed parses to what it was printed of.
//!
//! Lives on: anywhere (pure).
use super::generated::{literal, options, path, scalar, statement};
use super::{parsed, path as address};
use crate::{Statement, literal_of, literal_text, parse, show_create, split};
use mink_types::schema::{DataType, Field, Literal, Schema, SchemaChange, SchemaDraft};
use proptest::prelude::*;

/// Schemas with keys that a schema may have.
fn schema() -> impl Strategy<Value = Schema> {
    let columns =
        proptest::collection::btree_map(super::generated::column_name(), (scalar(), any::<i128>()), 3..8);
    (columns, 0..3_usize, 0..2_usize, any::<bool>()).prop_map(|(columns, keys, partitions, bucketed)| {
        let names: Vec<String> = columns.keys().rev().cloned().collect();
        let columns = columns.into_iter().map(|(name, (data_type, number))| {
            let default = literal(&data_type, number, "it's").filter(|_| number % 3 == 0);
            Field { default, nullable: number % 2 == 0, ..Field::new(name, data_type) }
        });
        let partitioned_by = names[..partitions].to_vec();
        let primary_key = if keys == 0 { Vec::new() } else { names[..partitions + keys].to_vec() };
        let bucket_key = if bucketed { vec![names[partitions].clone()] } else { Vec::new() };
        Schema::create(SchemaDraft { columns: columns.collect(), primary_key, partitioned_by, bucket_key })
            .expect("a sound schema")
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn statements_parse_to_themselves(statement in statement()) {
        let text = statement.to_string();
        match parse(&text, None) {
            Ok(found) => prop_assert_eq!(&found, &statement, "{}", text),
            Err(error) => prop_assert!(false, "{}\n{}", text, error),
        }
        // A script of it is it alone.
        let script = format!("{text};\n-- and more\n{text}");
        let parts: Vec<&str> = split(&script).filter_map(|part| part.ok().map(|part| part.text)).collect();
        prop_assert_eq!(parts, [text.as_str(), text.as_str()]);
    }

    #[test]
    fn constants_read_as_themselves(data_type in scalar(), number in any::<i128>(), text in any::<String>()) {
        if let Some(literal) = literal(&data_type, number, &text) {
            let printed = literal_text(&data_type, &literal);
            prop_assert_eq!(literal_of(&data_type, &printed), Ok(literal), "{} {}", data_type, printed);
        }
    }

    #[test]
    fn a_shown_table_makes_the_same_schema(schema in schema(), path in path(), options in options()) {
        let text = show_create(&path, &schema, &options);
        let statement = parse(&text, None).map_err(|error| TestCaseError::fail(format!("{text}\n{error}")))?;
        let Statement::CreateTable { path: found, draft, options: found_options, if_not_exists: false } = statement else {
            return Err(TestCaseError::fail(text));
        };
        prop_assert_eq!((found, found_options), (path, options));
        prop_assert_eq!(Schema::create(draft), Ok(schema), "{}", text);
    }
}

#[test]
fn the_canonical_text_of_a_table_is_this() {
    let text = "create table s.o (id bigint primary key, \"Größe\" decimal(12,2) default 0 comment 'it''s', a array<row<x int not null>>, dt varchar not null) with ('z'='1', 'bucket.key'='id') partitioned by (dt)";
    assert_eq!(
        parsed(text).to_string(),
        "CREATE TABLE s.o (\n  id BIGINT,\n  \"Größe\" DECIMAL(12, 2) DEFAULT 0.00 COMMENT 'it''s',\n  a ARRAY<ROW<x INT NOT NULL>>,\n  \
         dt STRING NOT NULL,\n  PRIMARY KEY (id)\n)\nPARTITIONED BY (dt)\nWITH (\n  'bucket.key' = 'id',\n  'z' = '1'\n)"
    );
    let text =
        "alter table \"s\".`o-1` add (a int first, b.c string after d), drop if exists partition (n = 5)";
    assert_eq!(
        parsed(text).to_string(),
        "ALTER TABLE s.\"o-1\" ADD COLUMN a INT FIRST, ADD COLUMN b.c STRING AFTER d, DROP IF EXISTS PARTITION (n = '5')"
    );
}

#[test]
fn a_shown_table_shows_what_was_altered_and_not_what_goes_without_saying() {
    let Statement::CreateTable { draft, .. } =
        parsed("CREATE TABLE d.t (dt DATE, id INT, r ROW<x INT>, PRIMARY KEY (dt, id)) PARTITIONED BY (dt)")
    else {
        panic!("a table")
    };
    let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<String>>();
    let changes = [
        SchemaChange::RenameColumn { path: names(&["id"]), name: "order".into() },
        SchemaChange::SetComment { path: names(&["r", "x"]), comment: Some("it's".into()) },
        SchemaChange::AddColumn {
            parent: Vec::new(),
            column: Field {
                default: Some(Literal::Double(0.5_f64.to_bits())),
                ..Field::new("f", DataType::Float)
            },
            place: mink_types::schema::ColumnPlace::First,
        },
    ];
    let schema = Schema::create(draft).and_then(|schema| schema.alter(&changes)).expect("sound changes");
    let options = [
        ("bucket.key".to_owned(), "no longer its name".to_owned()),
        ("bucket.num".to_owned(), "4".to_owned()),
    ];
    assert_eq!(
        show_create(&address("d.t"), &schema, &options),
        "CREATE TABLE d.t (\n  f FLOAT DEFAULT 0.5,\n  dt DATE NOT NULL,\n  order INT NOT NULL,\n  r ROW<x INT COMMENT 'it''s'>,\n  \
         PRIMARY KEY (dt, order)\n)\nPARTITIONED BY (dt)\nWITH (\n  'bucket.num' = '4'\n)"
    );
}
