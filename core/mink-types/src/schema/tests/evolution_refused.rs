//! What ALTER cannot do, and in what words.
//!
//! Lives on: anywhere (pure).
use super::super::*;
use super::*;

/// Refused, with text that has the column and what would be accepted.
fn refused(schema: &Schema, changes: &[SchemaChange], column: &str, accepted: &str) {
    let text = schema.alter(changes).expect_err("it is refused").to_string();
    assert!(text.contains(column) && text.contains(accepted), "{text}");
}

#[test]
fn a_column_that_is_not_null_is_not_added() {
    let column = Field::new("x", DataType::Int).not_null();
    refused(&orders(), &[add("", column.clone())], "column x", "without NOT NULL");
    refused(&orders(), &[add("items.element", column)], "items.element.x", "without NOT NULL");
}

#[test]
fn a_column_is_not_added_where_it_cannot_be() {
    let column = || Field::new("x", DataType::Int);
    refused(&orders(), &[add("", Field::new("dt", DataType::Int))], "column dt", "unique");
    refused(&orders(), &[add("items", column())], "items.x", "fields of a ROW");
    refused(&orders(), &[add("dt", column())], "dt.x", "fields of a ROW");
    refused(&orders(), &[add("none", column())], "column none", "order_id, dt");
    let behind = ColumnPlace::After("none".to_owned());
    let change = SchemaChange::AddColumn { parent: Vec::new(), column: column(), place: behind };
    refused(&orders(), &[change], "column none", "order_id, dt");
    let bad = Field { default: Some(Literal::Integer(1)), ..column() };
    refused(&orders(), &[add("items.element", bad)], "items.element.x", "columns only");
    refused(&orders(), &[add("", Field::new("", DataType::Int))], "this is no name", "1 to 255");
    let deep = (0..40).fold(DataType::Int, |inner, _| DataType::array(inner));
    refused(&orders(), &[add("", Field::new("x", deep))], "nested too deeply", "at most 32");
}

#[test]
fn columns_that_a_key_goes_by_are_neither_dropped_nor_retyped_nor_relaxed() {
    let schema = orders();
    refused(&schema, &[drop_column("order_id")], "column order_id is used by PRIMARY KEY", "only renamed");
    refused(&schema, &[drop_column("dt")], "column dt is used by PRIMARY KEY", "dropped");
    refused(&schema, &[relax("dt")], "column dt", "made nullable");
    let columns = ["a", "b", "c"].map(|name| Field::new(name, DataType::Int)).to_vec();
    let (partitioned_by, bucket_key) = (vec!["a".to_owned()], vec!["b".to_owned()]);
    let draft = SchemaDraft { columns, partitioned_by, bucket_key, ..SchemaDraft::default() };
    let log = Schema::create(draft).expect("a right draft");
    refused(&log, &[retype("a", DataType::BigInt)], "column a is used by PARTITIONED BY", "retyped");
    refused(&log, &[retype("b", DataType::BigInt)], "column b is used by bucket.key", "retyped");
    assert!(log.alter(&[retype("c", DataType::BigInt)]).is_ok());
}

#[test]
fn the_last_column_and_the_last_field_of_a_row_stay() {
    let row = DataType::Row(vec![Field::new("x", DataType::Int)]);
    let schema = log_table(vec![Field::new("r", row)]);
    refused(&schema, &[drop_column("r")], "column r", "the last one");
    refused(&schema, &[drop_column("r.x")], "column r.x", "drop what contains it");
    refused(&orders(), &[drop_column("items.element")], "items.element", "fields of a ROW");
    refused(&orders(), &[drop_column("labels.value")], "labels.value", "fields of a ROW");
}

#[test]
fn what_is_not_wider_is_refused_with_what_is() {
    let schema = orders();
    for (column, to, accepted) in [
        ("amount", DataType::Int, "use DOUBLE"),
        ("amount", DataType::array(DataType::Float), "use DOUBLE"),
        (
            "items.element.price",
            DataType::Decimal { precision: 14, scale: 3 },
            "DECIMAL(p, 2) with p from 13",
        ),
        ("items.element.price", DataType::Decimal { precision: 11, scale: 2 }, "DECIMAL(p, 2)"),
        ("items.element.sku", DataType::Char { length: 7 }, "STRING, or CHAR(n) with n above 8"),
        ("items.element.sku", DataType::Bytes, "STRING, or CHAR(n)"),
        ("items.element.count", DataType::SmallInt, "use BIGINT"),
        ("labels.value", DataType::String, "BYTES, or BINARY(n) with n above 4"),
        ("seen", DataType::Timestamp { precision: 0 }, "TIMESTAMP(p) with p from 4 to 9"),
        ("seen", DataType::TimestampLtz { precision: 6 }, "TIMESTAMP(p)"),
        ("items", DataType::map(DataType::Int, DataType::Int), "use an ARRAY"),
    ] {
        refused(&schema, &[retype(column, to)], column, accepted);
    }
    let top = log_table(vec![Field::new("s", DataType::String), Field::new("d", DataType::Double)]);
    refused(&top, &[retype("s", DataType::Char { length: 9 })], "column s", "none is wider");
    refused(&top, &[retype("d", DataType::Float)], "column d", "none is wider");
}

#[test]
fn a_change_of_type_neither_adds_nor_drops_nor_tightens_fields() {
    let schema = orders();
    let item = |fields: Vec<Field>| retype("items", DataType::array(DataType::Row(fields)));
    let sku = || Field::new("sku", DataType::String);
    let count = || Field::new("count", DataType::Int);
    let price = || Field::new("price", DataType::Decimal { precision: 12, scale: 2 });
    let more = vec![sku(), count(), price(), Field::new("x", DataType::Int)];
    refused(&schema, &[item(more)], "items.element.x", "adds no field");
    refused(&schema, &[item(vec![sku(), count()])], "items.element.price", "drops no field");
    refused(&schema, &[item(vec![sku(), count(), count()])], "items.element.count", "unique");
    refused(&schema, &[item(vec![sku(), count().not_null(), price()])], "items.element.count", "NOT NULL");
    let defaulted = Field { default: Some(Literal::Integer(0)), ..count() };
    refused(&schema, &[item(vec![sku(), defaulted, price()])], "items.element.count", "columns only");
}

#[test]
fn a_default_that_the_wider_type_does_not_hold_stops_the_widening() {
    // The year 2300.
    let column = Field {
        default: Some(Literal::Integer(10_413_792_000)),
        ..Field::new("c", DataType::Timestamp { precision: 0 })
    };
    let schema = log_table(vec![column]);
    refused(
        &schema,
        &[retype("c", DataType::Timestamp { precision: 9 })],
        "column c",
        "TIMESTAMP(9) does not",
    );
    assert!(schema.alter(&[retype("c", DataType::Timestamp { precision: 6 })]).is_ok());
}

#[test]
fn the_key_of_a_map_keeps_its_fields_and_is_never_null() {
    let key = DataType::Row(vec![Field::new("x", DataType::Int), Field::new("y", DataType::Int)]);
    let schema = log_table(vec![Field::new("m", DataType::map(key, DataType::Int))]);
    refused(&schema, &[add("m.key", Field::new("z", DataType::Int))], "m.key.z", "neither added nor dropped");
    refused(&schema, &[drop_column("m.key.x")], "m.key.x", "neither added nor dropped");
    refused(&schema, &[relax("m.key")], "m.key", "never null");
    for change in [rename("m.key.x", "z"), retype("m.key.x", DataType::BigInt)] {
        let next = schema.alter(&[change]).expect("a key's fields are renamed and widened");
        assert_eq!(next.follows(&schema), Ok(()));
    }
    // A field that is only called so is like any other.
    let row = DataType::Row(vec![Field::new("x", DataType::Int)]);
    let named = DataType::Row(vec![Field::new("key", row).not_null()]);
    let schema = log_table(vec![Field::new("r", named)]);
    assert!(schema.alter(&[add("r.key", Field::new("y", DataType::Int)), relax("r.key")]).is_ok());
}

#[test]
fn names_stay_unique_and_elements_keep_theirs() {
    refused(&orders(), &[rename("amount", "dt")], "column dt", "unique");
    refused(&orders(), &[rename("items.element.sku", "count")], "items.element.count", "unique");
    refused(&orders(), &[rename("items.element", "item")], "items.element", "fields of a ROW");
    refused(&orders(), &[rename("amount", "a\0")], "this is no name", "control characters");
    refused(&orders(), &[move_to("labels.value", ColumnPlace::First)], "labels.value", "fields of a ROW");
    refused(&orders(), &[comment("labels.value", "x")], "labels.value", "field of a ROW");
}

#[test]
fn a_change_that_changes_nothing_is_refused() {
    let schema = orders();
    let taken_away = SchemaChange::SetComment { path: path("amount"), comment: None };
    for (change, column) in [
        (rename("amount", "amount"), "amount"),
        (retype("amount", DataType::Float), "amount"),
        (move_to("order_id", ColumnPlace::First), "order_id"),
        (move_to("seen", ColumnPlace::Last), "seen"),
        (move_to("dt", ColumnPlace::After("order_id".to_owned())), "dt"),
        (relax("amount"), "amount"),
        (taken_away, "amount"),
    ] {
        refused(&schema, &[change], &format!("column {column}"), "changes nothing");
    }
    assert_eq!(schema.alter(&[]), Err(SchemaError::Unchanged));
    let there_and_back = [rename("amount", "x"), rename("x", "amount")];
    assert_eq!(schema.alter(&there_and_back), Err(SchemaError::Unchanged));
    let come_and_gone = [add("", Field::new("x", DataType::Int)), drop_column("x")];
    assert_eq!(schema.alter(&come_and_gone), Err(SchemaError::Unchanged));
}

#[test]
fn what_is_not_there_is_refused_with_what_is() {
    let schema = orders();
    for change in [
        drop_column as fn(&str) -> SchemaChange,
        relax,
        |dotted| rename(dotted, "x"),
        |dotted| retype(dotted, DataType::BigInt),
        |dotted| move_to(dotted, ColumnPlace::First),
        |dotted| comment(dotted, "x"),
    ] {
        refused(&schema, &[change("none")], "no column none", "order_id, dt, amount");
        refused(&schema, &[change("items.element.none")], "items.element.none", "sku, count, price");
        refused(&schema, &[change("dt.none")], "no column dt.none", "dt alone");
        refused(&schema, &[change("")], "no column \"\"", "order_id, dt");
    }
    refused(&schema, &[move_to("dt", ColumnPlace::After("dt".to_owned()))], "column dt", "order_id, amount");
}

#[test]
fn a_list_of_changes_is_taken_as_a_whole_in_order_and_bounded() {
    let schema = orders();
    refused(&schema, &[rename("amount", "x"), drop_column("amount")], "column amount", "order_id, dt, x");
    assert_eq!(schema, orders());
    let many: Vec<SchemaChange> =
        (0..=SCHEMA_CHANGES_MAX).map(|n| comment("amount", &n.to_string())).collect();
    assert_eq!(schema.alter(&many), Err(SchemaError::Changes));
    assert!(schema.alter(many.get(1..).expect("so many")).is_ok());
}

#[test]
fn ids_end_with_their_numbers() {
    let last = SchemaParts { last_field: FieldId(u32::MAX), ..orders().to_parts() };
    let schema = Schema::from_parts(last).expect("a schema, though an old one");
    assert_eq!(schema.alter(&[add("", Field::new("x", DataType::Int))]), Err(SchemaError::IdsUsedUp));
    let last = SchemaParts { id: SchemaId(u32::MAX), ..orders().to_parts() };
    let schema = Schema::from_parts(last).expect("a schema, though an old one");
    assert_eq!(schema.alter(&[relax("seen")]), Err(SchemaError::IdsUsedUp));
}
