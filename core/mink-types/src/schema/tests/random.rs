//! Random schemas and random changes of them.
//!
//! Lives on: anywhere (pure).
use super::super::*;
use proptest::collection::vec;
use proptest::prelude::*;

fn scalar() -> impl Strategy<Value = DataType> {
    prop_oneof![
        prop::sample::select(vec![
            DataType::Boolean,
            DataType::TinyInt,
            DataType::SmallInt,
            DataType::Int,
            DataType::BigInt,
            DataType::Float,
            DataType::Double,
            DataType::String,
            DataType::Bytes,
            DataType::Date,
        ]),
        (1..=38_u8).prop_flat_map(
            |precision| (0..=precision).prop_map(move |scale| DataType::Decimal { precision, scale })
        ),
        (1..=LENGTH_MAX).prop_map(|length| DataType::Char { length }),
        (1..=LENGTH_MAX).prop_map(|length| DataType::Binary { length }),
        (0..=9_u8).prop_map(|precision| DataType::Time { precision }),
        (0..=9_u8).prop_map(|precision| DataType::Timestamp { precision }),
        (0..=9_u8).prop_map(|precision| DataType::TimestampLtz { precision }),
    ]
}

fn named(prefix: &str, types: Vec<(DataType, bool)>) -> Vec<Field> {
    let field = |(place, (data_type, nullable))| Field {
        nullable,
        ..Field::new(format!("{prefix}{place}"), data_type)
    };
    types.into_iter().enumerate().map(field).collect()
}

pub(super) fn data_type() -> impl Strategy<Value = DataType> {
    scalar().prop_recursive(4, 16, 4, |inner| {
        let element = |nullable, data_type| Field { nullable, ..Field::new("element", data_type) };
        prop_oneof![
            (any::<bool>(), inner.clone())
                .prop_map(move |(nullable, inner)| DataType::Array(Box::new(element(nullable, inner)))),
            (inner.clone(), inner.clone()).prop_map(|(key, value)| DataType::map(key, value)),
            vec((inner, any::<bool>()), 1..4).prop_map(|types| DataType::Row(named("f", types))),
        ]
    })
}

/// A constant that every type of whole numbers and times holds in each precision, and others of their kind.
fn constant(data_type: &DataType) -> Option<Literal> {
    let literals = [
        Literal::Boolean(true),
        Literal::Integer(0),
        Literal::Integer(9_000),
        Literal::Double(0.5_f64.to_bits()),
        Literal::Decimal(-7),
        Literal::Text("x".to_owned()),
        Literal::Bytes(vec![0]),
    ];
    literals.into_iter().rev().find(|literal| data_type.check_literal(literal).is_ok())
}

/// The type of a column: scalar ones, which can have defaults and be keys, as often as nested ones.
fn column_type() -> impl Strategy<Value = DataType> {
    prop_oneof![scalar(), data_type()]
}

/// Schemas of log tables and of primary-key tables, partitioned and not.
pub(super) fn schema() -> impl Strategy<Value = Schema> {
    let columns = vec((column_type(), any::<bool>()), 1..6);
    (columns, any::<[u8; 4]>()).prop_map(|(types, [keys, partitions, buckets, defaults])| {
        let mut columns = named("c", types);
        for (place, column) in columns.iter_mut().enumerate() {
            column.default = constant(&column.data_type).filter(|_| defaults >> place & 3 != 0);
        }
        let scalars = columns.iter().enumerate().filter(|(_, column)| column.data_type.is_scalar());
        let some = |bits: u8| {
            let picked = scalars.clone().filter(move |(place, _)| bits >> place & 1 == 1);
            picked.map(|(_, column)| column.name.clone()).collect::<Vec<_>>()
        };
        let (mut primary_key, mut partitioned_by, mut bucket_key) =
            (some(keys), some(partitions), some(buckets & !partitions));
        if keys < 128 {
            primary_key.clear();
        } else {
            partitioned_by.retain(|name| primary_key.contains(name));
            if partitioned_by.len() == primary_key.len() {
                partitioned_by.clear();
            }
            bucket_key.retain(|name| primary_key.contains(name));
        }
        Schema::create(SchemaDraft { columns, primary_key, partitioned_by, bucket_key })
            .expect("a right draft")
    })
}

/// What a change is made of, once it is known of which schema.
#[derive(Clone, Debug)]
pub(super) struct Roll {
    kind: u8,
    pick: prop::sample::Index,
    other: prop::sample::Index,
    bits: u64,
    data_type: DataType,
}

pub(super) fn roll() -> impl Strategy<Value = Roll> {
    let kind = prop_oneof![0..7_u8, Just(3)];
    let index = any::<prop::sample::Index>;
    (kind, index(), index(), any::<u64>(), column_type())
        .prop_map(|(kind, pick, other, bits, data_type)| Roll { kind, pick, other, bits, data_type })
}

/// The paths of all columns and nested fields.
fn paths(fields: &[&Field], above: &[String], found: &mut Vec<Vec<String>>) {
    for field in fields {
        let mut path = above.to_vec();
        path.push(field.name.clone());
        found.push(path.clone());
        paths(&field.data_type.children(), &path, found);
    }
}

/// A change that often can be made, but not always.
pub(super) fn change(roll: &Roll, schema: &Schema) -> SchemaChange {
    let mut all = Vec::new();
    paths(&schema.columns().iter().collect::<Vec<_>>(), &[], &mut all);
    let path = roll.pick.get(&all).clone();
    let field = schema.field(&path).expect("it was found there");
    let place = match roll.bits % 3 {
        0 => ColumnPlace::First,
        1 => ColumnPlace::Last,
        _ => ColumnPlace::After(roll.other.get(&all).last().expect("no path is empty").clone()),
    };
    let name = format!("n{}", roll.bits >> 8 & 7);
    match roll.kind {
        0 => {
            let nullable = roll.bits & 15 != 15;
            let default = constant(&roll.data_type).filter(|_| roll.bits & 16 == 16);
            let column = Field { nullable, default, ..Field::new(name, roll.data_type.clone()) };
            let parent = if roll.bits & 32 == 32 { path } else { Vec::new() };
            SchemaChange::AddColumn { parent, column, place }
        }
        1 => SchemaChange::DropColumn { path },
        2 => SchemaChange::RenameColumn { path, name },
        3 if roll.bits & 7 == 7 => SchemaChange::ChangeType { path, data_type: roll.data_type.clone() },
        3 => {
            let data_type = wider(&field.data_type, &mut roll.bits.rotate_right(3));
            SchemaChange::ChangeType { path, data_type }
        }
        4 => SchemaChange::Move { path, place },
        5 => SchemaChange::DropNotNull { path },
        _ => SchemaChange::SetComment { path, comment: (roll.bits & 3 != 3).then_some(name) },
    }
}

/// A type that is wider in some of its fields, as the bits say.
fn wider(data_type: &DataType, bits: &mut u64) -> DataType {
    *bits = bits.rotate_right(2);
    let (widen, much) = (*bits & 1 == 1, *bits & 2 == 2);
    let mut field = |field: &Field| {
        let data_type = wider(&field.data_type, bits);
        Field { data_type, nullable: field.nullable || (much && field.name != KEY), ..field.clone() }
    };
    match data_type {
        DataType::Array(element) => DataType::Array(Box::new(field(element))),
        DataType::Map { key, value } => {
            DataType::Map { key: Box::new(field(key)), value: Box::new(field(value)) }
        }
        DataType::Row(fields) => {
            let mut fields: Vec<Field> = fields.iter().map(field).collect();
            if much {
                fields.reverse();
            }
            DataType::Row(fields)
        }
        same if !widen => same.clone(),
        DataType::TinyInt if much => DataType::Int,
        DataType::TinyInt => DataType::SmallInt,
        DataType::SmallInt | DataType::Int => DataType::BigInt,
        DataType::Float => DataType::Double,
        DataType::Decimal { precision, scale } => {
            DataType::Decimal { precision: (precision + 3).min(38), scale: *scale }
        }
        DataType::Char { .. } if much => DataType::String,
        DataType::Char { length } => DataType::Char { length: length.saturating_add(1) },
        DataType::Binary { .. } if much => DataType::Bytes,
        DataType::Binary { length } => DataType::Binary { length: length.saturating_add(1) },
        DataType::Time { precision } => DataType::Time { precision: (precision + 2).min(9) },
        DataType::Timestamp { precision } => DataType::Timestamp { precision: (precision + 2).min(9) },
        DataType::TimestampLtz { precision } => DataType::TimestampLtz { precision: (precision + 2).min(9) },
        same => same.clone(),
    }
}
