//! Statistics hold for every value of their column.

use super::*;
use std::cmp::Ordering;

fn statistics(columns: Vec<Field>, values: &[Value]) -> ColumnStatistics {
    let schema = schema(columns);
    let rows: Vec<_> = values.iter().map(|value| vec![value.clone()]).collect();
    let stored = encode(&batch_of(&rows, schema.columns()), &schema, PLAIN, None).expect("sound rows");
    let mut all = ArrowBatch::parse(&stored).expect("our own batch").statistics().expect("our own");
    assert_eq!(all.len(), 1);
    all.remove(0)
}

fn of(data_type: DataType, values: &[Value]) -> ColumnStatistics {
    statistics(vec![column("c", data_type)], values)
}

/// None for values that lie within no bounds.
fn compare(value: &Value, bound: &Literal) -> Option<Ordering> {
    match (value, bound) {
        (Value::Boolean(value), Literal::Boolean(bound)) => Some(value.cmp(bound)),
        (Value::Integer(value), Literal::Integer(bound)) => Some(value.cmp(bound)),
        (Value::Double(value), Literal::Double(bound)) => {
            f64::from_bits(*value).partial_cmp(&f64::from_bits(*bound))
        }
        (Value::Decimal(value), Literal::Decimal(bound)) => Some(value.cmp(bound)),
        (Value::Text(value), Literal::Text(bound)) => Some(value.cmp(bound)),
        (Value::Bytes(value), Literal::Bytes(bound)) => Some(value.cmp(bound)),
        other => panic!("bounds of another type: {other:?}"),
    }
}

fn is_nan(value: &Value) -> bool {
    matches!(value, Value::Double(bits) if f64::from_bits(*bits).is_nan())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_value_lies_within_the_bounds_of_its_column(seed: u64) {
        let mut random = Random(seed);
        let schema = random_schema(&mut random);
        let rows = random_rows(&mut random, schema.columns());
        let stored = encode(&batch_of(&rows, schema.columns()), &schema, PLAIN, None).expect("sound rows");
        let all = ArrowBatch::parse(&stored).expect("our own batch").statistics().expect("our own");
        let scalars: Vec<_> = schema.columns().iter().filter(|column| column.data_type.is_scalar()).collect();
        prop_assert_eq!(all.len(), scalars.len());
        for (stated, column) in all.iter().zip(scalars) {
            prop_assert_eq!(stated.field, column.id);
            let at = schema.columns().iter().position(|other| other.id == column.id).expect("its own");
            let values: Vec<&Value> = rows.iter().map(|row| &row[at]).collect();
            prop_assert_eq!(stated.nulls, values.iter().filter(|value| ***value == Value::Null).count() as u64);
            prop_assert_eq!(stated.nans, values.iter().filter(|value| is_nan(value)).count() as u64);
            let counted: Vec<_> =
                values.into_iter().filter(|value| **value != Value::Null && !is_nan(value)).collect();
            prop_assert_eq!(stated.min.is_some(), !counted.is_empty());
            for value in &counted {
                if let Some(min) = &stated.min {
                    prop_assert_ne!(compare(value, min), Some(Ordering::Less), "{:?} {:?}", value, min);
                }
                if let Some(max) = &stated.max {
                    prop_assert_ne!(compare(value, max), Some(Ordering::Greater), "{:?} {:?}", value, max);
                }
            }
            // Bounds that are not cut are values of the column.
            if !matches!(column.data_type, DataType::Char { .. } | DataType::String | DataType::Binary { .. } | DataType::Bytes) {
                for bound in [&stated.min, &stated.max].into_iter().flatten() {
                    prop_assert!(counted.iter().any(|value| compare(value, bound) == Some(Ordering::Equal)));
                }
            }
        }
    }
}

#[test]
fn text_is_cut_down_below_and_up_above() {
    let text = |text: String| Value::Text(text);
    let cut = of(DataType::String, &[text("a".repeat(40)), text("b".repeat(40)), Value::Null]);
    assert_eq!(cut.min, Some(Literal::Text("a".repeat(32))));
    assert_eq!(cut.max, Some(Literal::Text(format!("{}c", "b".repeat(31)))));
    assert_eq!(cut.nulls, 1);
    // Not within a character, and over the gap of the surrogates.
    let cut = of(DataType::String, &[text(format!("{}\u{d7ff}zz", "b".repeat(29)))]);
    assert_eq!(cut.min, Some(Literal::Text(format!("{}\u{d7ff}", "b".repeat(29)))));
    assert_eq!(cut.max, Some(Literal::Text(format!("{}\u{e000}", "b".repeat(29)))));
    let cut = of(DataType::String, &[text("é".repeat(17))]);
    assert_eq!(cut.min, Some(Literal::Text("é".repeat(16))));
    // Nothing short is above the greatest characters; a character that would grow too long makes way.
    assert_eq!(of(DataType::String, &[text(char::MAX.to_string().repeat(9))]).max, None);
    let cut = of(DataType::String, &[text(format!("a{}", "\u{7f}".repeat(40)))]);
    assert_eq!(cut.max, Some(Literal::Text(format!("a{}\u{80}", "\u{7f}".repeat(29)))));
}

#[test]
fn bytes_are_cut_down_below_and_up_above() {
    let cut = of(DataType::Bytes, &[Value::Bytes([vec![7; 31], vec![0xff; 9]].concat())]);
    assert_eq!(cut.min, Some(Literal::Bytes([vec![7; 31], vec![0xff]].concat())));
    assert_eq!(cut.max, Some(Literal::Bytes([vec![7; 30], vec![8]].concat())));
    assert_eq!(of(DataType::Bytes, &[Value::Bytes(vec![0xff; 33])]).max, None);
    let short = of(DataType::Bytes, &[Value::Bytes(vec![0xff; 32])]);
    assert_eq!(short.max, Some(Literal::Bytes(vec![0xff; 32])));
}

#[test]
fn nan_is_counted_and_no_bound() {
    let double = |value: f64| Value::Double(value.to_bits());
    let mixed = of(DataType::Double, &[double(f64::NAN), double(2.0), double(-1.0), Value::Null]);
    assert_eq!((mixed.nulls, mixed.nans), (1, 1));
    assert_eq!(mixed.min, Some(Literal::Double((-1.0_f64).to_bits())));
    assert_eq!(mixed.max, Some(Literal::Double(2.0_f64.to_bits())));
    let only = of(DataType::Double, &[double(f64::NAN)]);
    assert_eq!((only.nans, only.min, only.max), (1, None, None));
}

#[test]
fn a_bound_of_zero_covers_both_zeros() {
    for zero in [0.0, -0.0] {
        let stated = of(DataType::Double, &[Value::Double(f64::to_bits(zero))]);
        assert_eq!(stated.min, Some(Literal::Double((-0.0_f64).to_bits())));
        assert_eq!(stated.max, Some(Literal::Double(0.0_f64.to_bits())));
    }
}

#[test]
fn a_column_of_nulls_has_no_bounds_and_nested_ones_are_not_listed() {
    let nulls = of(DataType::Int, &[Value::Null, Value::Null]);
    assert_eq!((nulls.nulls, nulls.min, nulls.max), (2, None, None));
    let list = DataType::Array(Box::new(column("element", DataType::Int)));
    let schema = schema(vec![column("l", list), column("a", DataType::Int)]);
    let rows = [vec![Value::List(vec![Value::Integer(1)]), Value::Integer(2)]];
    let stored = encode(&batch_of(&rows, schema.columns()), &schema, PLAIN, None).expect("a row");
    let all = ArrowBatch::parse(&stored).expect("our own batch").statistics().expect("our own");
    // The list has id 1, its element 2.
    assert_eq!(all.iter().map(|column| column.field).collect::<Vec<_>>(), [FieldId(3)]);
}
