//! What a column's type and NOT NULL ask of values, however they come.

use super::*;
use arrow_array::StructArray;
use arrow_array::cast::AsArray;
use arrow_buffer::NullBuffer;
use std::sync::Arc;

/// The same rows by `encode` and, as a client's message, by `accept`: both must agree.
fn both(columns: Vec<Field>, values: &[Value]) -> Result<(), RecordError> {
    let schema = schema(columns);
    // The writer's own fields are free of the rules.
    let free: Vec<Field> = schema.columns().iter().map(freed).collect();
    let rows: Vec<Vec<Value>> = values.iter().map(|value| vec![value.clone()]).collect();
    let batch = batch_of(&rows, &free);
    let encoded = encode(&batch, &schema, PLAIN, None);
    let (metadata, body) = sent(&batch);
    let intake = Intake::new(&schema, &batch.schema()).expect("the types fit");
    let accepted = accept_as_sent(&intake, &metadata, &body, ArrowCompression::None);
    match (&encoded, &accepted) {
        (Ok(encoded), Ok(accepted)) => {
            for stored in [encoded, accepted] {
                let stored = ArrowBatch::parse(stored).expect("our own batch");
                let decoded = stored.decode(&schema).expect("our own batch");
                assert_eq!(rows_of(&decoded, schema.columns()), rows);
            }
        }
        (Err(encoded), Err(accepted)) => assert_eq!(encoded, accepted),
        unlike => panic!("only one was refused: {unlike:?}"),
    }
    encoded.map(drop)
}

fn freed(field: &Field) -> Field {
    let below = |field: &Field| Box::new(freed(field));
    let data_type = match &field.data_type {
        DataType::Char { .. } => DataType::String,
        DataType::Binary { .. } => DataType::Bytes,
        DataType::Array(element) => DataType::Array(below(element)),
        DataType::Map { key, value } => {
            DataType::Map { key: Box::new(Field { nullable: false, ..freed(key) }), value: below(value) }
        }
        DataType::Row(fields) => DataType::Row(fields.iter().map(freed).collect()),
        other => other.clone(),
    };
    Field { nullable: true, data_type, ..field.clone() }
}

fn refused(columns: Vec<Field>, values: &[Value], named: &[&str]) {
    let error = both(columns, values).expect_err("a rule is broken");
    assert_eq!(error.kind(), Kind::InvalidRecord, "{error}");
    for name in named {
        assert!(error.message().contains(name), "{error} does not name {name}");
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

#[test]
fn char_counts_characters() {
    let char3 = || vec![column("c", DataType::Char { length: 3 })];
    both(char3(), &[text("абв"), Value::Null, text("")]).expect("three characters");
    refused(char3(), &[text("a"), text("абвг")], &["\"c\"", "entry 1", "4 characters", "CHAR(3)"]);
}

#[test]
fn binary_counts_bytes() {
    let binary2 = || vec![column("b", DataType::Binary { length: 2 })];
    both(binary2(), &[Value::Bytes(vec![1, 2]), Value::Null]).expect("two bytes");
    refused(binary2(), &[Value::Bytes(vec![1, 2, 3])], &["\"b\"", "3 bytes", "BINARY(2)"]);
}

#[test]
fn decimals_have_no_more_digits_than_their_precision() {
    let decimal = || vec![column("d", DataType::Decimal { precision: 3, scale: 1 })];
    both(decimal(), &[Value::Decimal(999), Value::Decimal(-999), Value::Null]).expect("three digits");
    refused(decimal(), &[Value::Decimal(1_000)], &["\"d\"", "DECIMAL(3, 1)"]);
    refused(decimal(), &[Value::Decimal(i128::MIN)], &["\"d\""]);
}

#[test]
fn a_time_is_within_its_day() {
    for (precision, day) in [(0, 86_400), (3, 86_400_000), (6, 86_400_000_000), (9, 86_400_000_000_000)] {
        let time = || vec![column("t", DataType::Time { precision })];
        both(time(), &[Value::Integer(0), Value::Integer(day - 1), Value::Null]).expect("a time of day");
        refused(time(), &[Value::Integer(day)], &["\"t\"", "time of day"]);
        refused(time(), &[Value::Integer(-1)], &["\"t\"", "time of day"]);
    }
}

#[test]
fn a_time_has_no_digits_below_its_precision() {
    let types: [fn(u8) -> DataType; 3] = [
        |precision| DataType::Time { precision },
        |precision| DataType::Timestamp { precision },
        |precision| DataType::TimestampLtz { precision },
    ];
    for of_precision in types {
        // The unit of a precision is the coarsest that has its digits.
        for (precision, step) in [(1, 100), (2, 10), (4, 100), (5, 10), (7, 100), (8, 10)] {
            let time = || vec![column("t", of_precision(precision))];
            both(time(), &[Value::Integer(step), Value::Integer(0), Value::Null]).expect("whole");
            refused(time(), &[Value::Integer(0), Value::Integer(step / 10)], &["\"t\"", "entry 1", "digits"]);
        }
        for precision in [0, 3, 6, 9] {
            both(vec![column("t", of_precision(precision))], &[Value::Integer(7)]).expect("all digits");
        }
    }
    let before_1970 = || vec![column("t", DataType::Timestamp { precision: 2 })];
    both(before_1970(), &[Value::Integer(-10)]).expect("whole");
    refused(before_1970(), &[Value::Integer(-15)], &["digits"]);
}

#[test]
fn a_key_stands_in_a_map_once() {
    let map = |key: DataType| {
        let key = Box::new(required("key", key));
        vec![column("m", DataType::Map { key, value: Box::new(column("value", DataType::Int)) })]
    };
    let of = |keys: Vec<Value>| {
        Value::List(keys.into_iter().map(|key| Value::Row(vec![key, Value::Null])).collect())
    };
    let integers = |keys: &[i64]| of(keys.iter().map(|key| Value::Integer(*key)).collect());
    // The same key may stand in several maps.
    both(map(DataType::Int), &[integers(&[1, 2]), Value::Null, integers(&[2, 1]), integers(&[])])
        .expect("once");
    refused(map(DataType::Int), &[integers(&[1, 2]), integers(&[1, 3, 1])], &["\"m\"", "entry 1", "twice"]);
    // Large maps, too.
    let many: Vec<i64> = (0..1_000).collect();
    both(map(DataType::Int), &[integers(&many)]).expect("once");
    refused(map(DataType::Int), &[integers(&[&many[..], &[500]].concat())], &["entry 0", "twice"]);
    let texts = |keys: &[&str]| of(keys.iter().map(|key| text(key)).collect());
    both(map(DataType::String), &[texts(&["", "a", "A"])]).expect("once");
    refused(map(DataType::String), &[texts(&["", "a", ""])], &["twice"]);
    let doubles = |keys: &[f64]| of(keys.iter().map(|key| Value::Double(key.to_bits())).collect());
    both(map(DataType::Double), &[doubles(&[0.0, -0.0, f64::NAN])]).expect("once");
    refused(map(DataType::Double), &[doubles(&[f64::NAN, f64::NAN])], &["twice"]);
    // A key of several parts.
    let row = DataType::Row(vec![column("a", DataType::Int), column("b", DataType::String)]);
    let pair = |number: i64, letter: &str| Value::Row(vec![Value::Integer(number), text(letter)]);
    both(map(row.clone()), &[of(vec![pair(1, "a"), pair(1, "b")])]).expect("once");
    refused(map(row), &[of(vec![pair(1, "a"), pair(2, "a"), pair(1, "a")])], &["twice"]);
}

#[test]
fn keys_of_a_map_within_a_row_that_is_null_do_not_count() {
    let map = DataType::Map {
        key: Box::new(required("key", DataType::Int)),
        value: Box::new(column("value", DataType::Int)),
    };
    let schema = schema(vec![column("r", DataType::Row(vec![column("m", map)]))]);
    let pair = || Value::Row(vec![Value::Integer(1), Value::Null]);
    let twice = Value::Row(vec![Value::List(vec![pair(), pair()])]);
    let batch = batch_of(&[vec![twice]], schema.columns());
    let (fields, columns, _) = batch.column(0).as_struct().clone().into_parts();
    let hidden = StructArray::new(fields, columns, Some(NullBuffer::new_null(1)));
    let hidden = RecordBatch::try_new(batch.schema(), vec![Arc::new(hidden)]).expect("the same column");
    assert_eq!(kind(encode(&batch, &schema, PLAIN, None)), Kind::InvalidRecord);
    encode(&hidden, &schema, PLAIN, None).expect("nobody sees the map");
}

#[test]
fn not_null_holds_for_columns() {
    refused(
        vec![required("n", DataType::Int)],
        &[Value::Integer(1), Value::Null],
        &["\"n\"", "entry 1", "NOT NULL"],
    );
}

#[test]
fn not_null_holds_at_every_depth() {
    let row = |inner: Field| DataType::Row(vec![inner, column("other", DataType::Int)]);
    let a_row = |value| Value::Row(vec![value, Value::Null]);
    let columns = || vec![column("r", row(required("n", DataType::Int)))];
    // A row that is null has no fields that could be.
    both(columns(), &[a_row(Value::Integer(1)), Value::Null]).expect("no null counts");
    refused(columns(), &[a_row(Value::Null), Value::Null], &["\"r.n\"", "entry 0", "NOT NULL"]);

    let list = || vec![column("l", DataType::Array(Box::new(required("element", DataType::Int))))];
    both(list(), &[Value::List(vec![]), Value::Null, Value::List(vec![Value::Integer(1)])]).expect("no null");
    refused(list(), &[Value::List(vec![Value::Null])], &["\"l.element\"", "NOT NULL"]);

    let map = || {
        let (key, value) = (required("key", DataType::Int), required("value", DataType::Int));
        vec![column("m", DataType::Map { key: Box::new(key), value: Box::new(value) })]
    };
    let pair = |value| Value::List(vec![Value::Row(vec![Value::Integer(1), value])]);
    both(map(), &[pair(Value::Integer(2)), Value::Null]).expect("no null");
    refused(map(), &[pair(Value::Null)], &["\"m.value\"", "NOT NULL"]);
}

#[test]
fn rules_hold_within_nested_types_where_a_value_counts() {
    let char1 = DataType::Char { length: 1 };
    let nested = || {
        let row = DataType::Row(vec![column("c", char1.clone())]);
        vec![column("l", DataType::Array(Box::new(column("element", row))))]
    };
    let list = |value: &str| Value::List(vec![Value::Row(vec![text(value)]), Value::Null]);
    both(nested(), &[list("a"), Value::Null]).expect("one character");
    refused(nested(), &[list("ab")], &["\"l.element.c\"", "CHAR(1)"]);
}

#[test]
fn no_error_shows_a_value() {
    let error =
        both(vec![column("c", DataType::Char { length: 1 })], &[text("secret")]).expect_err("too long");
    assert!(!error.message().contains("secret"));
}

#[test]
fn a_batch_has_a_row_at_least() {
    let schema = schema(vec![column("a", DataType::Int)]);
    let empty = encode(&batch_of(&[], schema.columns()), &schema, PLAIN, None);
    assert_eq!(kind(empty), Kind::InvalidRecord);
}
