//! What ALTER can do, a test for each rule of the feature list.
//!
//! Lives on: anywhere (pure).
use super::super::*;
use super::*;

/// After one change, which must be taken.
fn after(schema: &Schema, change: SchemaChange) -> Schema {
    let next = schema.alter(&[change]).expect("the change is taken");
    next.follows(schema).expect("what is altered follows");
    assert_eq!(next.id().0, schema.id().0 + 1);
    next
}

fn type_at(schema: &Schema, dotted: &str) -> String {
    schema.field(&path(dotted)).expect("it is there").data_type.to_string()
}

fn place(parent: &str, name: &str, place: ColumnPlace) -> SchemaChange {
    SchemaChange::AddColumn { parent: path(parent), column: Field::new(name, DataType::Int), place }
}

#[test]
fn a_nullable_column_is_added_anywhere() {
    let schema = orders();
    let next = after(&schema, place("", "x", ColumnPlace::First));
    assert_eq!(names(&next, ""), ["x", "order_id", "dt", "amount", "items", "labels", "seen"]);
    let next = after(&next, place("", "y", ColumnPlace::After("dt".to_owned())));
    let next = after(&next, place("", "z", ColumnPlace::Last));
    assert_eq!(names(&next, ""), ["x", "order_id", "dt", "y", "amount", "items", "labels", "seen", "z"]);
    assert_eq!(ids(&next, ""), [13, 1, 2, 14, 3, 4, 9, 12, 15]);
    assert_eq!((next.id(), next.last_field()), (SchemaId(4), FieldId(15)));
}

#[test]
fn a_nullable_field_is_added_anywhere_in_a_row() {
    let next = after(&orders(), place("items.element", "x", ColumnPlace::After("sku".to_owned())));
    assert_eq!(names(&next, "items.element"), ["sku", "x", "count", "price"]);
    assert_eq!(ids(&next, "items.element"), [6, 13, 7, 8]);
}

#[test]
fn a_nested_column_is_added_with_all_its_fields() {
    let inner = DataType::Row(vec![Field::new("a", DataType::Int).not_null()]);
    let next = after(&orders(), add("", Field::new("x", DataType::array(inner))));
    assert_eq!((ids(&next, "x"), ids(&next, "x.element")), (vec![14], vec![15]));
    assert_eq!(next.last_field(), FieldId(15));
}

#[test]
fn a_column_is_added_with_a_constant_default() {
    let column = Field { default: Some(Literal::Integer(7)), ..Field::new("x", DataType::Int) };
    let next = after(&orders(), add("", column));
    assert_eq!(next.column("x").expect("added").default, Some(Literal::Integer(7)));
}

#[test]
fn a_column_is_dropped_and_its_id_never_given_again() {
    let schema = orders();
    let dropped = after(&schema, drop_column("seen"));
    assert_eq!(names(&dropped, ""), ["order_id", "dt", "amount", "items", "labels"]);
    let again = after(&dropped, add("", Field::new("seen", DataType::Int)));
    assert_eq!(again.column("seen").expect("added").id, FieldId(13));
    let nested = after(&again, drop_column("items.element.count"));
    assert_eq!(ids(&nested, "items.element"), [6, 8]);
    // In one list too.
    let list = [drop_column("seen"), add("", Field::new("seen", DataType::Int))];
    let next = schema.alter(&list).expect("both are taken");
    assert_eq!(next.column("seen").expect("added").id, FieldId(13));
    assert_eq!(next.follows(&schema), Ok(()));
}

#[test]
fn a_column_is_renamed() {
    let next = after(&orders(), rename("amount", "total"));
    assert_eq!(next.column("total").map(|column| column.id), Some(FieldId(3)));
    let next = after(&next, rename("items.element.sku", "article"));
    assert_eq!(names(&next, "items.element"), ["article", "count", "price"]);
    let swapped = next.alter(&[rename("seen", "x"), rename("total", "seen"), rename("x", "total")]);
    assert_eq!(names(&swapped.expect("taken"), ""), ["order_id", "dt", "seen", "items", "labels", "total"]);
}

#[test]
fn a_key_column_is_renamed_and_moved_and_commented_on() {
    let next = after(&orders(), rename("dt", "day"));
    assert_eq!(next.primary_key(), [FieldId(2), FieldId(1)]);
    let next = after(&next, move_to("day", ColumnPlace::Last));
    let next = after(&next, comment("day", "of the order"));
    assert_eq!(next.column("day").map(|column| column.id), Some(FieldId(2)));
}

#[test]
fn whole_numbers_are_widened_upwards() {
    let all = [DataType::TinyInt, DataType::SmallInt, DataType::Int, DataType::BigInt];
    for (low, from) in all.iter().enumerate() {
        for (high, to) in all.iter().enumerate() {
            let result = log_table(vec![Field::new("c", from.clone())]).alter(&[retype("c", to.clone())]);
            assert_eq!(result.is_ok(), low < high, "{from} to {to}");
        }
    }
}

#[test]
fn float_is_widened_to_double() {
    let next = after(&orders(), retype("amount", DataType::Double));
    assert_eq!(type_at(&next, "amount"), "DOUBLE");
}

#[test]
fn decimal_is_widened_at_the_same_scale() {
    let next = after(&orders(), retype("items.element.price", DataType::Decimal { precision: 20, scale: 2 }));
    assert_eq!(type_at(&next, "items.element.price"), "DECIMAL(20, 2)");
}

#[test]
fn char_and_binary_are_lengthened_or_become_string_and_bytes() {
    let schema = after(&orders(), retype("items.element.sku", DataType::Char { length: 9 }));
    let schema = after(&schema, retype("items.element.sku", DataType::String));
    let schema = after(&schema, retype("labels.value", DataType::Binary { length: 5 }));
    let schema = after(&schema, retype("labels.value", DataType::Bytes));
    assert_eq!(type_at(&schema, "items.element.sku"), "STRING");
    assert_eq!(type_at(&schema, "labels"), "MAP<INT, BYTES>");
}

#[test]
fn time_precision_is_widened_upwards() {
    for of in [
        |precision| DataType::Time { precision },
        |precision| DataType::Timestamp { precision },
        |precision| DataType::TimestampLtz { precision },
    ] {
        let schema = log_table(vec![Field::new("c", of(3))]);
        assert_eq!(type_at(&after(&schema, retype("c", of(9))), "c"), of(9).to_string());
        assert!(schema.alter(&[retype("c", of(2))]).is_err());
    }
}

#[test]
fn nested_types_are_widened_as_a_whole_by_the_names_of_their_fields() {
    let item = vec![
        Field::new("price", DataType::Decimal { precision: 14, scale: 2 }),
        Field::new("sku", DataType::String),
        Field::new("count", DataType::BigInt),
    ];
    let schema = after(&orders(), comment("items.element.sku", "kept"));
    let next = after(&schema, retype("items", DataType::array(DataType::Row(item))));
    assert_eq!(
        type_at(&next, "items"),
        "ARRAY<ROW<price DECIMAL(14, 2), sku STRING COMMENT 'kept', count BIGINT>>"
    );
    assert_eq!(ids(&next, "items.element"), [8, 6, 7]);
    let next = after(&next, retype("labels", DataType::map(DataType::BigInt, DataType::Bytes)));
    assert_eq!(
        (type_at(&next, "labels"), ids(&next, "labels")),
        ("MAP<BIGINT, BYTES>".to_owned(), vec![10, 11])
    );
}

#[test]
fn a_default_follows_a_widening_of_its_column() {
    // Noon and a bit, in ms; then in ns.
    let data_type = DataType::Time { precision: 2 };
    let default = Some(Literal::Integer(43_200_010));
    let schema = log_table(vec![Field { default, ..Field::new("c", data_type) }]);
    let next = after(&schema, retype("c", DataType::Time { precision: 7 }));
    assert_eq!(next.column("c").expect("there").default, Some(Literal::Integer(43_200_010_000_000)));
}

#[test]
fn columns_and_fields_are_reordered() {
    let next = after(&orders(), move_to("seen", ColumnPlace::First));
    let next = after(&next, move_to("order_id", ColumnPlace::Last));
    let next = after(&next, move_to("amount", ColumnPlace::After("labels".to_owned())));
    assert_eq!(names(&next, ""), ["seen", "dt", "items", "labels", "amount", "order_id"]);
    let next = after(&next, move_to("items.element.sku", ColumnPlace::After("count".to_owned())));
    assert_eq!(ids(&next, "items.element"), [7, 6, 8]);
}

#[test]
fn not_null_is_relaxed() {
    let next = after(&orders(), relax("seen"));
    assert!(next.column("seen").expect("there").nullable);
    let next = after(&next, relax("items.element.sku"));
    assert!(type_at(&next, "items").starts_with("ARRAY<ROW<sku CHAR(8), "));
}

#[test]
fn comments_are_set_and_taken_away() {
    let next = after(&orders(), comment("items.element.sku", "what it is"));
    let next = after(&next, SchemaChange::SetComment { path: path("items.element.sku"), comment: None });
    assert_eq!(type_at(&next, "items"), type_at(&orders(), "items"));
}
