//! Which schema may come after which.
//!
//! Lives on: anywhere (pure).
use super::super::*;
use super::random::{change, roll, schema};
use super::{add, log_table, orders, rename};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::cell::RefCell;

/// The next schema with something in it that no change does.
fn not_next(break_it: impl FnOnce(&mut SchemaParts)) -> String {
    let schema = orders();
    let mut parts = schema.alter(&[rename("amount", "total")]).expect("taken").to_parts();
    break_it(&mut parts);
    let next = Schema::from_parts(parts).expect("a schema, but of another history");
    next.follows(&schema).expect_err("it does not follow").to_string()
}

/// The fields of the ROW in `items`.
fn item(parts: &mut SchemaParts) -> &mut Vec<Field> {
    let DataType::Array(element) = &mut parts.columns[3].data_type else { panic!("items is an ARRAY") };
    let DataType::Row(fields) = &mut element.data_type else { panic!("its element is a ROW") };
    fields
}

#[test]
fn only_the_next_id_follows() {
    for id in [1, 3, u32::MAX] {
        assert!(not_next(|parts| parts.id = SchemaId(id)).contains("not the next"));
    }
    let same = SchemaParts { id: SchemaId(2), ..orders().to_parts() };
    let same = Schema::from_parts(same).expect("a schema");
    assert_eq!(same.follows(&orders()), Err(SchemaError::Unchanged));
}

#[test]
fn no_id_is_used_again() {
    let schema = orders();
    let dropped = schema.alter(&[SchemaChange::DropColumn { path: vec!["seen".to_owned()] }]).expect("taken");
    let mut parts = dropped.alter(&[rename("amount", "total")]).expect("taken").to_parts();
    parts.columns.push(Field { id: FieldId(12), ..Field::new("seen", DataType::Int) });
    let next = Schema::from_parts(parts).expect("a schema");
    let text = next.follows(&dropped).expect_err("12 was given").to_string();
    assert!(text.contains("column seen") && text.contains("given before"), "{text}");
    let text = not_next(|parts| {
        parts.columns.truncate(3);
        parts.last_field = FieldId(11);
    });
    assert!(text.contains("gives ids of fields again"), "{text}");
}

#[test]
fn a_field_stays_below_what_it_was_below() {
    let text = not_next(|parts| {
        let sku = item(parts).remove(0);
        parts.columns.push(Field { nullable: true, ..sku });
    });
    assert!(text.contains("column sku") && text.contains("given before"), "{text}");
    let text = not_next(|parts| {
        parts.last_field = FieldId(13);
        let element = Box::new(Field { id: FieldId(13), ..Field::new("element", DataType::Int) });
        parts.columns[3].data_type = DataType::Array(element);
    });
    assert!(text.contains("items.element") && text.contains("its id is another"), "{text}");
    let text = not_next(|parts| {
        let DataType::Map { key, value } = &mut parts.columns[4].data_type else { panic!("a MAP") };
        std::mem::swap(&mut key.id, &mut value.id);
    });
    assert!(text.contains("labels.key") && text.contains("its id is another"), "{text}");
}

#[test]
fn a_new_field_is_nullable_outside_of_map_keys() {
    let new = |parts: &mut SchemaParts| {
        parts.last_field = FieldId(13);
        Field { id: FieldId(13), ..Field::new("x", DataType::Int).not_null() }
    };
    let text = not_next(|parts| {
        let x = new(parts);
        parts.columns.push(x);
    });
    assert!(text.contains("column x") && text.contains("nullable"), "{text}");
    let text = not_next(|parts| {
        let x = new(parts);
        item(parts).push(x);
    });
    assert!(text.contains("items.element.x") && text.contains("nullable"), "{text}");
    let key = DataType::Row(vec![Field::new("a", DataType::Int), Field::new("b", DataType::Int)]);
    let schema = log_table(vec![Field::new("m", DataType::map(key, DataType::Int))]);
    for more in [true, false] {
        let mut parts = SchemaParts { id: SchemaId(2), last_field: FieldId(6), ..schema.to_parts() };
        let DataType::Map { key, .. } = &mut parts.columns[0].data_type else { panic!("a MAP") };
        let DataType::Row(fields) = &mut key.data_type else { panic!("a ROW") };
        if more {
            fields.push(Field { id: FieldId(6), ..Field::new("x", DataType::Int) });
        } else {
            fields.pop();
        }
        let text = Schema::from_parts(parts).expect("a schema").follows(&schema);
        let text = text.expect_err("it does not follow").to_string();
        assert!(text.contains("neither added nor dropped"), "{text}");
    }
}

#[test]
fn common_fields_are_only_widened_and_relaxed() {
    let text = not_next(|parts| parts.columns[2].nullable = false);
    assert!(text.contains("column total") && text.contains("NOT NULL"), "{text}");
    let text = not_next(|parts| parts.columns[2].data_type = DataType::Int);
    assert!(text.contains("column total") && text.contains("wider"), "{text}");
    let text = not_next(|parts| item(parts)[1].data_type = DataType::SmallInt);
    assert!(text.contains("items.element.count") && text.contains("wider"), "{text}");
    let text = not_next(|parts| item(parts)[1].nullable = false);
    assert!(text.contains("items.element.count") && text.contains("NOT NULL"), "{text}");
    let text = not_next(|parts| parts.columns[3].data_type = DataType::Int);
    assert!(text.contains("column items") && text.contains("wider"), "{text}");
    let text = not_next(|parts| parts.columns[2].default = Some(Literal::Double(0)));
    assert!(text.contains("column total") && text.contains("default"), "{text}");
}

#[test]
fn keys_stay_as_they_are() {
    for break_it in [
        |parts: &mut SchemaParts| parts.primary_key.reverse(),
        |parts: &mut SchemaParts| parts.primary_key.push(FieldId(12)),
        |parts: &mut SchemaParts| parts.partitioned_by.clear(),
    ] {
        assert!(not_next(break_it).contains("other ones"));
    }
    let mut columns = vec![Field::new("a", DataType::Int), Field::new("b", DataType::Int)];
    columns[0].default = Some(Literal::Integer(1));
    let bucket_key = vec!["a".to_owned()];
    let schema =
        Schema::create(SchemaDraft { columns, bucket_key, ..SchemaDraft::default() }).expect("right");
    let mut parts = SchemaParts { id: SchemaId(2), ..schema.to_parts() };
    parts.columns[0].data_type = DataType::BigInt;
    let text =
        Schema::from_parts(parts).expect("a schema").follows(&schema).expect_err("retyped").to_string();
    assert!(text.contains("column a") && text.contains("retyped"), "{text}");
    let parts = SchemaParts { id: SchemaId(2), bucket_key: Vec::new(), ..schema.to_parts() };
    let text = Schema::from_parts(parts).expect("a schema").follows(&schema).expect_err("other buckets");
    assert!(text.to_string().contains("other ones"), "{text}");
}

#[test]
fn a_schema_follows_itself_after_any_one_more_column() {
    let schema = orders();
    let next = schema.alter(&[add("items.element", Field::new("x", DataType::Date))]).expect("taken");
    assert_eq!(next.follows(&schema), Ok(()));
    assert!(schema.follows(&next).is_err());
    let third = next.alter(&[rename("amount", "total")]).expect("taken");
    assert!(third.follows(&schema).is_err(), "two schemas on");
}

fn kind(change: &SchemaChange) -> usize {
    match change {
        SchemaChange::AddColumn { .. } => 0,
        SchemaChange::DropColumn { .. } => 1,
        SchemaChange::RenameColumn { .. } => 2,
        SchemaChange::ChangeType { .. } => 3,
        SchemaChange::Move { .. } => 4,
        SchemaChange::DropNotNull { .. } => 5,
        SchemaChange::SetComment { .. } => 6,
    }
}

/// Each accepted change gives a schema that follows; all of them in one list give the same columns, which follow too. And none of
/// the kinds is refused always; nor does every default stay as it is when its column is retyped.
#[test]
fn whatever_is_altered_follows_and_survives_its_parts() {
    let (mut accepted_of, mut defaults_scaled) = ([0_u32; 7], 0_u32);
    let config = Config { cases: 800, failure_persistence: None, ..Config::default() };
    let seen = RefCell::new((&mut accepted_of, &mut defaults_scaled));
    let result = TestRunner::new(config).run(&(schema(), vec(roll(), 1..12)), |(first, rolls)| {
        prop_assert_eq!(Schema::from_parts(first.to_parts()), Ok(first.clone()));
        let (mut newest, mut accepted) = (first.clone(), Vec::new());
        for roll in &rolls {
            let change = change(roll, &newest);
            let Ok(next) = newest.alter(std::slice::from_ref(&change)) else { continue };
            prop_assert_eq!(next.follows(&newest), Ok(()));
            prop_assert_eq!(Schema::from_parts(next.to_parts()), Ok(next.clone()));
            let mut seen = seen.borrow_mut();
            seen.0[kind(&change)] += 1;
            let scaled = |column: &&Field| {
                let old = newest.column_by_id(column.id);
                old.is_some_and(|old| old.default != column.default)
            };
            *seen.1 += u32::from(next.columns().iter().any(|column| scaled(&column)));
            newest = next;
            accepted.push(change);
        }
        match first.alter(&accepted) {
            Ok(at_once) => {
                prop_assert_eq!(at_once.follows(&first), Ok(()));
                let (at_once, one_by_one) = (at_once.to_parts(), newest.to_parts());
                prop_assert_eq!(at_once, SchemaParts { id: SchemaId(2), ..one_by_one });
            }
            Err(error) => {
                prop_assert_eq!(error, SchemaError::Unchanged);
                prop_assert_eq!(first.columns(), newest.columns());
            }
        }
        Ok(())
    });
    result.expect("what is altered follows");
    assert!(
        accepted_of.iter().all(|&count| count >= 20) && defaults_scaled >= 1,
        "{accepted_of:?} {defaults_scaled}"
    );
}
