//! What may be a schema, of bytes that anybody wrote.
//!
//! Lives on: anywhere (pure).
use super::super::*;
use super::{log_table, orders};

/// A change of the parts of a schema, after which they are none.
fn no_schema(schema: &Schema, break_it: impl FnOnce(&mut SchemaParts)) -> String {
    let mut parts = schema.to_parts();
    break_it(&mut parts);
    Schema::from_parts(parts).expect_err("this is no schema").to_string()
}

#[test]
fn a_schema_is_the_same_after_it_was_apart() {
    let schema = orders();
    assert_eq!(Schema::from_parts(schema.to_parts()), Ok(schema));
}

#[test]
fn ids_are_unique_from_one_to_the_last() {
    let schema = orders();
    let column = |n: usize| move |parts: &mut SchemaParts, id: u32| parts.columns[n].id = FieldId(id);
    let last = column(5);
    for (id, why) in [(0, "from 1"), (13, "from 1"), (u32::MAX, "from 1"), (1, "one id"), (7, "one id")] {
        let text = no_schema(&schema, |parts| last(parts, id));
        assert!(text.contains(why), "{id}: {text}");
    }
    assert!(no_schema(&schema, |parts| parts.last_field = FieldId(11)).contains("from 1"));
    assert!(no_schema(&schema, |parts| parts.id = SchemaId(0)).contains("ids start at 1"));
    // Gaps are what drops leave.
    let mut parts = schema.to_parts();
    (parts.last_field, parts.columns[5].id) = (FieldId(100), FieldId(99));
    assert!(Schema::from_parts(parts).is_ok());
}

#[test]
fn keys_are_there_scalar_and_never_null() {
    let schema = orders();
    let text = no_schema(&schema, |parts| parts.primary_key.push(FieldId(77)));
    assert!(text.contains("not there"), "{text}");
    // Nested fields are no key columns.
    let text = no_schema(&schema, |parts| parts.primary_key.push(FieldId(6)));
    assert!(text.contains("not there"), "{text}");
    let text = no_schema(&schema, |parts| parts.columns[0].nullable = true);
    assert!(text.contains("never null"), "{text}");
    let text = no_schema(&schema, |parts| {
        parts.primary_key.push(FieldId(4));
        parts.columns[3].nullable = false;
    });
    assert!(text.contains("column items") && text.contains("scalar"), "{text}");
    let text = no_schema(&schema, |parts| parts.bucket_key.clear());
    assert!(text.contains("PRIMARY KEY"), "{text}");
    let text = no_schema(&schema, |parts| parts.bucket_key = vec![FieldId(6); KEY_COLUMNS_MAX + 1]);
    assert!(text.contains("at most 32"), "{text}");
}

#[test]
fn fixed_names_and_map_keys_are_as_they_must_be() {
    let schema = log_table(vec![
        Field::new("l", DataType::array(DataType::Int)),
        Field::new("m", DataType::map(DataType::Int, DataType::Int)),
    ]);
    let list =
        |name: &str| DataType::Array(Box::new(Field { id: FieldId(2), ..Field::new(name, DataType::Int) }));
    let text = no_schema(&schema, |parts| parts.columns[0].data_type = list("item"));
    assert!(text.contains("element"), "{text}");
    let mut parts = schema.to_parts();
    parts.columns[0].data_type = list("element");
    assert_eq!(Schema::from_parts(parts), Ok(schema.clone()));
    let text = no_schema(&schema, |parts| {
        if let DataType::Map { key, .. } = &mut parts.columns[1].data_type {
            key.nullable = true;
        }
    });
    assert!(text.contains("never null"), "{text}");
}

#[test]
fn bounds_are_looked_at_again() {
    let schema = orders();
    assert!(no_schema(&schema, |parts| parts.columns.clear()).contains("without columns"));
    assert!(no_schema(&schema, |parts| parts.columns[2].name.clear()).contains("no name"));
    assert!(no_schema(&schema, |parts| parts.columns[2].name = "dt".to_owned()).contains("unique"));
    let text = no_schema(&schema, |parts| parts.columns[2].default = Some(Literal::Integer(1)));
    assert!(text.contains("column amount: its default"), "{text}");
    let text = no_schema(&schema, |parts| {
        parts.last_field = FieldId(u32::MAX);
        let deep = |inner, n: u32| {
            DataType::Array(Box::new(Field { id: FieldId(1_000 + n), ..Field::new("element", inner) }))
        };
        parts.columns[2].data_type = (0..100).fold(DataType::Int, deep);
    });
    assert!(text.contains("nested too deeply"), "{text}");
}
