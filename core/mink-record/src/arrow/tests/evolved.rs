//! Rows of one schema as another shows them, held against a model that goes row by row.

use super::*;
use mink_types::schema::{ColumnPlace, SchemaChange, TimeUnit};

/// A value as the field `to` shows it; `from` is the field that it was written by.
fn shown(value: Option<(&Value, &Field)>, to: &Field) -> Value {
    let Some((value, from)) = value else {
        return match &to.default {
            None => Value::Null,
            Some(Literal::Boolean(value)) => Value::Boolean(*value),
            Some(Literal::Integer(value)) => Value::Integer(*value),
            Some(Literal::Double(bits)) => Value::Double(*bits),
            Some(Literal::Decimal(value)) => Value::Decimal(*value),
            Some(Literal::Text(text)) => Value::Text(text.clone()),
            Some(Literal::Bytes(bytes)) => Value::Bytes(bytes.clone()),
        };
    };
    let units = |from: &u8, to: &u8| {
        TimeUnit::of_precision(*to).per_second() / TimeUnit::of_precision(*from).per_second()
    };
    match (value, &from.data_type, &to.data_type) {
        (Value::Integer(value), DataType::Time { precision }, DataType::Time { precision: to })
        | (Value::Integer(value), DataType::Timestamp { precision }, DataType::Timestamp { precision: to })
        | (
            Value::Integer(value),
            DataType::TimestampLtz { precision },
            DataType::TimestampLtz { precision: to },
        ) => Value::Integer(value * units(precision, to)),
        (Value::List(values), DataType::Array(from), DataType::Array(to)) => {
            Value::List(values.iter().map(|value| shown(Some((value, from)), to)).collect())
        }
        (
            Value::List(pairs),
            DataType::Map { key, value },
            DataType::Map { key: to_key, value: to_value },
        ) => {
            let pair = |pair: &Value| {
                let Value::Row(pair) = pair else { panic!("{pair:?} is no pair") };
                let [a, b] = pair.as_slice() else { panic!("{pair:?} is no pair") };
                Value::Row(vec![shown(Some((a, key)), to_key), shown(Some((b, value)), to_value)])
            };
            Value::List(pairs.iter().map(pair).collect())
        }
        (Value::Row(values), DataType::Row(from), DataType::Row(to)) => {
            Value::Row(shown_row(values, from, to.iter()))
        }
        _ => value.clone(),
    }
}

fn shown_row<'a>(values: &[Value], from: &[Field], to: impl Iterator<Item = &'a Field>) -> Vec<Value> {
    to.map(|to| shown(values.iter().zip(from).find(|(_, from)| from.id == to.id), to)).collect()
}

/// Some path to a field of the schema.
fn random_path(random: &mut Random, schema: &Schema) -> (Vec<String>, DataType) {
    let mut field = &schema.columns()[random.below(schema.columns().len())];
    let mut path = vec![field.name.clone()];
    while !field.data_type.is_scalar() && random.coin() {
        let below = field.data_type.children();
        field = below[random.below(below.len())];
        path.push(field.name.clone());
    }
    (path, field.data_type.clone())
}

fn wider(random: &mut Random, data_type: &DataType) -> DataType {
    let mut up = |precision: &u8| (*precision + 1 + u8::try_from(random.below(3)).expect("few")).min(9);
    match data_type {
        DataType::TinyInt => DataType::SmallInt,
        DataType::SmallInt | DataType::Int => DataType::BigInt,
        DataType::Float => DataType::Double,
        DataType::Decimal { precision, scale } => {
            DataType::Decimal { precision: precision + 1, scale: *scale }
        }
        DataType::Char { length } => DataType::Char { length: length + 1 },
        DataType::Binary { .. } => DataType::Bytes,
        DataType::Time { precision } => DataType::Time { precision: up(precision) },
        DataType::Timestamp { precision } => DataType::Timestamp { precision: up(precision) },
        DataType::TimestampLtz { precision } => DataType::TimestampLtz { precision: up(precision) },
        other => other.clone(),
    }
}

fn random_change(random: &mut Random, schema: &Schema, number: usize) -> SchemaChange {
    let (path, data_type) = random_path(random, schema);
    let place = if random.coin() { ColumnPlace::First } else { ColumnPlace::Last };
    match random.below(7) {
        0 => {
            let default = random.coin().then_some(Literal::Integer(7));
            let column = Field { default, ..column(&format!("new{number}"), DataType::Int) };
            SchemaChange::AddColumn { parent: Vec::new(), column, place }
        }
        1 => {
            let mut added = schemas::random_field(random, &format!("new{number}"), 3);
            added.nullable = true;
            SchemaChange::AddColumn { parent: path, column: added, place }
        }
        2 => SchemaChange::DropColumn { path },
        3 => SchemaChange::RenameColumn { path, name: format!("renamed{number}") },
        4 => SchemaChange::Move { path, place },
        5 => SchemaChange::DropNotNull { path },
        _ => SchemaChange::ChangeType { path, data_type: wider(random, &data_type) },
    }
}

/// The schema after some random changes: those that are not allowed are left out.
fn evolved(random: &mut Random, schema: &Schema) -> Schema {
    let mut next = schema.clone();
    for number in 0..=random.below(6) {
        if let Ok(altered) = next.alter(&[random_change(random, &next, number)]) {
            next = altered;
        }
    }
    next
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn a_mapping_shows_what_the_model_shows(seed: u64) {
        let mut random = Random(seed);
        let stored = random_schema(&mut random);
        let wanted = evolved(&mut random, &stored);
        let rows = random_rows(&mut random, stored.columns());
        let batch = batch_of(&rows, stored.columns());
        let projection: Option<Vec<FieldId>> = random.coin().then(|| {
            wanted.columns().iter().rev().map(|column| column.id).filter(|_| random.below(3) > 0).collect()
        });
        let mapping = Mapping::new(&stored, &wanted, projection.as_deref()).expect("a schema of the same table");
        let shown_columns: Vec<Field> = match &projection {
            None => wanted.columns().to_vec(),
            Some(ids) => ids.iter().filter_map(|id| wanted.column_by_id(*id)).cloned().collect(),
        };
        let expected: Vec<Vec<Value>> =
            rows.iter().map(|row| shown_row(row, stored.columns(), shown_columns.iter())).collect();
        let mapped = mapping.map(&batch).expect("a sound batch");
        prop_assert_eq!(mapped.num_rows(), rows.len());
        prop_assert_eq!(mapped.schema_ref(), mapping.schema());
        prop_assert_eq!(rows_of(&mapped, &shown_columns), expected);

        // The same by way of what is stored: only the needed columns are read.
        let frame = encode(&batch, &stored, PLAIN, None).expect("sound rows");
        let frame = ArrowBatch::parse(&frame).expect("our own batch");
        let needed = frame.decode_columns(&stored, mapping.stored_columns()).expect("its own columns");
        prop_assert_eq!(&mapping.map(&needed).expect("all that is needed"), &mapped);
        if mapping.is_identity() {
            // Then the pruned bytes are those of the mapped rows.
            let pruned = frame.prune(&stored, mapping.stored_columns()).expect("its own columns");
            let body = Bytes::from(pruned.body.concat());
            let counts = layout::counts_of(mapping.schema().fields());
            let message = message::Message::read(&pruned.metadata, counts, body.len()).expect("sound");
            let passed = decode::decode(&message, &body, mapping.schema(), 1 << 20).expect("sound");
            prop_assert_eq!(passed, mapped);
        }
        if mapping.is_whole() {
            prop_assert!(mapping.is_identity());
            prop_assert_eq!(frame.prune(&stored, mapping.stored_columns()).expect("all columns").body.concat(),
                frame.body().to_vec());
        }
    }
}

fn after(schema: &Schema, changes: &[SchemaChange]) -> Schema {
    schema.alter(changes).expect("an allowed change")
}

fn path(path: &[&str]) -> Vec<String> {
    path.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn names_and_digits_are_not_in_the_bytes() {
    let stored = schema(vec![
        required("a", DataType::Int),
        column("d", DataType::Decimal { precision: 4, scale: 2 }),
        column("c", DataType::Char { length: 2 }),
    ]);
    let mapping = Mapping::new(&stored, &stored, None).expect("itself");
    assert!(mapping.is_identity() && mapping.is_whole());
    let wanted = after(
        &stored,
        &[
            SchemaChange::RenameColumn { path: path(&["a"]), name: "b".into() },
            SchemaChange::DropNotNull { path: path(&["b"]) },
            SchemaChange::ChangeType {
                path: path(&["d"]),
                data_type: DataType::Decimal { precision: 9, scale: 2 },
            },
            SchemaChange::ChangeType { path: path(&["c"]), data_type: DataType::String },
        ],
    );
    let mapping = Mapping::new(&stored, &wanted, None).expect("the next schema");
    assert!(mapping.is_identity() && mapping.is_whole());
    let moved = after(&wanted, &[SchemaChange::Move { path: path(&["c"]), place: ColumnPlace::First }]);
    let mapping = Mapping::new(&stored, &moved, None).expect("a later schema");
    assert!(mapping.is_identity() && !mapping.is_whole());
    assert_eq!(mapping.stored_columns(), [FieldId(3), FieldId(1), FieldId(2)]);
    let wider =
        after(&wanted, &[SchemaChange::ChangeType { path: path(&["b"]), data_type: DataType::BigInt }]);
    assert!(!Mapping::new(&stored, &wider, None).expect("a later schema").is_identity());
    let added = SchemaChange::AddColumn {
        parent: Vec::new(),
        column: column("new", DataType::Int),
        place: ColumnPlace::Last,
    };
    let wider = after(&wanted, &[added]);
    assert!(!Mapping::new(&stored, &wider, None).expect("a later schema").is_identity());
    assert!(Mapping::new(&stored, &wider, Some(&[FieldId(1)])).expect("an old column").is_identity());
}

#[test]
fn a_value_beyond_the_wanted_type_is_an_error() {
    let stored = schema(vec![column("t", DataType::Timestamp { precision: 0 })]);
    let nanoseconds = DataType::Timestamp { precision: 9 };
    let wanted = after(&stored, &[SchemaChange::ChangeType { path: path(&["t"]), data_type: nanoseconds }]);
    let mapping = Mapping::new(&stored, &wanted, None).expect("the next schema");
    let far = batch_of(&[vec![Value::Integer(10_000_000_000)]], stored.columns());
    let error = mapping.map(&far).expect_err("beyond 2262");
    assert_eq!(error.kind(), Kind::InvalidRecord);
    assert!(error.message().contains("\"t\"") && error.message().contains("TIMESTAMP(9)"), "{error}");
}

#[test]
fn an_older_schema_shows_no_more_than_it_can_hold() {
    let stored = schema(vec![
        required("a", DataType::Int),
        column("r", DataType::Row(vec![column("x", DataType::Int)])),
    ]);
    let relaxed = after(&stored, &[SchemaChange::DropNotNull { path: path(&["a"]) }]);
    let mapping = Mapping::new(&relaxed, &stored, None).expect("the same types");
    assert!(!mapping.is_identity());
    let rows = |value| batch_of(&[vec![value, Value::Null]], relaxed.columns());
    mapping.map(&rows(Value::Integer(1))).expect("no null");
    assert_eq!(kind(mapping.map(&rows(Value::Null))), Kind::InvalidRecord);
    let wider =
        after(&stored, &[SchemaChange::ChangeType { path: path(&["a"]), data_type: DataType::BigInt }]);
    assert!(message(Mapping::new(&wider, &stored, None)).contains("\"a\""));
    assert_eq!(kind(Mapping::new(&stored, &stored, Some(&[FieldId(9)]))), Kind::SchemaMismatch);
    assert_eq!(kind(Mapping::new(&stored, &stored, Some(&[FieldId(1), FieldId(1)]))), Kind::SchemaMismatch);
    let other = schema(vec![column("a", DataType::String)]);
    assert_eq!(kind(Mapping::new(&stored, &other, None)), Kind::SchemaMismatch);
}

#[test]
fn rows_of_another_schema_are_refused() {
    let stored = schema(vec![column("a", DataType::Int)]);
    let mapping = Mapping::new(&stored, &stored, None).expect("itself");
    let other = schema(vec![column("a", DataType::BigInt)]);
    let rows = batch_of(&[vec![Value::Integer(1)]], other.columns());
    assert_eq!(kind(mapping.map(&rows)), Kind::SchemaMismatch);
}
