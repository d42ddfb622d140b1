//! Statements and schemas of every kind, for the properties.
//!
//! Lives on: anywhere (pure).
use crate::{Change, Statement, literal_of};
use mink_types::schema::{ColumnPlace, DataType, Field, Literal, SchemaChange, SchemaDraft};
use mink_types::{DatabaseName, TableName, TablePath};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

/// Names of columns: plain ones, words of SQL, and what needs quotes.
pub(super) fn column_name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z_][a-zA-Z0-9_]{0,8}",
        prop::sample::select(vec![
            "primary", "Column", "if", "null", "X", "date", "first", "a,b", " a ", "\"", "`", "'", "--",
            "/*", "ä", "1", "a.b", "\u{202e}"
        ])
        .prop_map(str::to_owned),
        "[^\\p{Cc}]{1,20}",
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z'\";\\-/*\n\t ]{0,12}", any::<String>()]
}

fn database() -> impl Strategy<Value = DatabaseName> {
    "[a-zA-Z0-9_-]{1,10}".prop_filter_map("reserved", |name| DatabaseName::new(&name).ok())
}

pub(super) fn path() -> impl Strategy<Value = TablePath> {
    let table = "[a-zA-Z0-9_.-]{1,10}".prop_filter_map("dots alone", |name| TableName::new(&name).ok());
    (database(), table).prop_map(|(database, table)| TablePath { database, table })
}

pub(super) fn scalar() -> impl Strategy<Value = DataType> {
    let decimal = (1..=38_u8).prop_flat_map(|precision| {
        (0..=precision).prop_map(move |scale| DataType::Decimal { precision, scale })
    });
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
        decimal,
        (1..=2_147_483_647_u32).prop_map(|length| DataType::Char { length }),
        (1..=2_147_483_647_u32).prop_map(|length| DataType::Binary { length }),
        (0..=9_u8).prop_map(|precision| DataType::Time { precision }),
        (0..=9_u8).prop_map(|precision| DataType::Timestamp { precision }),
        (0..=9_u8).prop_map(|precision| DataType::TimestampLtz { precision }),
    ]
}

fn data_type() -> impl Strategy<Value = DataType> {
    scalar().prop_recursive(5, 24, 4, |inner| {
        let field = (column_name(), inner.clone(), any::<bool>(), option::of(short_text())).prop_map(
            |(name, data_type, nullable, comment)| Field { nullable, comment, ..Field::new(name, data_type) },
        );
        let element = |name: &'static str, inner: BoxedStrategy<DataType>| {
            (inner, any::<bool>()).prop_map(move |(data_type, nullable)| {
                Box::new(Field { nullable, ..Field::new(name, data_type) })
            })
        };
        prop_oneof![
            element("element", inner.clone().boxed()).prop_map(DataType::Array),
            (inner.clone(), element("value", inner.boxed())).prop_map(|(key, value)| {
                DataType::Map { key: Box::new(Field::new("key", key).not_null()), value }
            }),
            vec(field, 1..4).prop_map(DataType::Row),
        ]
    })
}

fn short_text() -> impl Strategy<Value = String> {
    text().prop_filter("a comment's bound", |text| text.len() <= 1_024)
}

/// A constant of a type, if it is one that a number or a text can be made into.
pub(super) fn literal(data_type: &DataType, number: i128, text: &str) -> Option<Literal> {
    let integer = i64::try_from(number % (1 << 62)).ok()?;
    let literal = match data_type {
        DataType::Boolean => Literal::Boolean(number % 2 == 0),
        DataType::Float => {
            Literal::Double(f64::from(f32::from_bits(u32::try_from(number & 0xffff_ffff).ok()?)).to_bits())
        }
        DataType::Double => Literal::Double(integer.cast_unsigned()),
        DataType::Decimal { precision, .. } => Literal::Decimal(number % 10_i128.pow((*precision).into())),
        DataType::Char { .. } | DataType::String => Literal::Text(text.to_owned()),
        DataType::Binary { .. } | DataType::Bytes => Literal::Bytes(text.as_bytes().to_vec()),
        DataType::TinyInt => Literal::Integer(integer % 128),
        DataType::SmallInt => Literal::Integer(integer % 32_768),
        DataType::Int => Literal::Integer(integer % (1 << 31)),
        DataType::Date => Literal::Integer(integer % 700_000),
        DataType::Time { precision } => return timed(data_type, *precision, integer.rem_euclid(86_400)),
        DataType::Timestamp { precision } | DataType::TimestampLtz { precision } => {
            return timed(data_type, *precision, integer % 9_000_000_000);
        }
        _ => Literal::Integer(integer),
    };
    data_type.check_literal(&literal).is_ok().then_some(literal)
}

/// Seconds, and as many digits behind them as the type has.
fn timed(data_type: &DataType, precision: u8, seconds: i64) -> Option<Literal> {
    let unit = mink_types::schema::TimeUnit::of_precision(precision).per_second();
    let step = unit / 10_i64.pow(precision.into()).min(unit);
    let fraction = (seconds.unsigned_abs().cast_signed() * 7_919 % (unit / step)) * step;
    let literal = Literal::Integer(seconds.checked_mul(unit)?.checked_add(fraction)?);
    data_type.check_literal(&literal).is_ok().then_some(literal)
}

fn column() -> impl Strategy<Value = Field> {
    let attributes = (any::<bool>(), option::of((any::<i128>(), text())), option::of(short_text()));
    (column_name(), data_type(), attributes).prop_map(|(name, data_type, (nullable, default, comment))| {
        let default = default.and_then(|(number, text)| literal(&data_type, number, &text));
        Field { nullable, default, comment, ..Field::new(name, data_type) }
    })
}

fn column_path() -> impl Strategy<Value = Vec<String>> {
    vec(column_name(), 1..5)
}

/// Pairs with names that differ, in no order.
pub(super) fn options() -> impl Strategy<Value = Vec<(String, String)>> {
    btree_map(text().prop_filter("part of the schema", |name| name != "bucket.key"), text(), 0..4)
        .prop_map(|options| options.into_iter().rev().collect())
}

fn values() -> impl Strategy<Value = Vec<(String, String)>> {
    btree_map(column_name(), text(), 1..4).prop_map(|values| values.into_iter().rev().collect())
}

fn draft() -> impl Strategy<Value = SchemaDraft> {
    (vec(column(), 1..5), vec(column_name(), 0..3), vec(column_name(), 0..3), vec(column_name(), 0..3))
        .prop_map(|(columns, primary_key, partitioned_by, bucket_key)| SchemaDraft {
            columns,
            primary_key,
            partitioned_by,
            bucket_key,
        })
}

fn place() -> impl Strategy<Value = ColumnPlace> {
    prop_oneof![Just(ColumnPlace::Last), Just(ColumnPlace::First), column_name().prop_map(ColumnPlace::After)]
}

fn schema_change() -> impl Strategy<Value = SchemaChange> {
    prop_oneof![
        (vec(column_name(), 0..3), column(), place())
            .prop_map(|(parent, column, place)| SchemaChange::AddColumn { parent, column, place }),
        column_path().prop_map(|path| SchemaChange::DropColumn { path }),
        (column_path(), column_name()).prop_map(|(path, name)| SchemaChange::RenameColumn { path, name }),
        (column_path(), data_type())
            .prop_map(|(path, data_type)| SchemaChange::ChangeType { path, data_type }),
        (column_path(), place()).prop_map(|(path, place)| SchemaChange::Move { path, place }),
        column_path().prop_map(|path| SchemaChange::DropNotNull { path }),
        (column_path(), option::of(short_text()))
            .prop_map(|(path, comment)| SchemaChange::SetComment { path, comment }),
    ]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => schema_change().prop_map(Change::Schema),
        1 => options().prop_filter("at least one", |options| !options.is_empty()).prop_map(Change::SetOptions),
        1 => prop::collection::btree_set("[a-z.']{0,9}", 1..4)
            .prop_map(|names| Change::ResetOptions(names.into_iter().collect())),
        1 => (values(), any::<bool>())
            .prop_map(|(values, if_not_exists)| Change::AddPartition { values, if_not_exists }),
        1 => (values(), any::<bool>()).prop_map(|(values, if_exists)| Change::DropPartition { values, if_exists }),
    ]
}

pub(super) fn statement() -> impl Strategy<Value = Statement> {
    prop_oneof![
        1 => (database(), any::<bool>())
            .prop_map(|(name, if_not_exists)| Statement::CreateDatabase { name, if_not_exists }),
        1 => (database(), any::<bool>()).prop_map(|(name, if_exists)| Statement::DropDatabase { name, if_exists }),
        8 => (path(), any::<bool>(), draft(), options()).prop_map(|(path, if_not_exists, draft, options)| {
            Statement::CreateTable { path, if_not_exists, draft, options }
        }),
        1 => (path(), any::<bool>(), any::<bool>())
            .prop_map(|(path, if_exists, purge)| Statement::DropTable { path, if_exists, purge }),
        8 => (path(), vec(change(), 1..4)).prop_map(|(path, change)| Statement::AlterTable { path, change }),
        1 => Just(Statement::ShowDatabases),
        1 => option::of(database()).prop_map(|database| Statement::ShowTables { database }),
        1 => path().prop_map(|path| Statement::ShowPartitions { path }),
        1 => path().prop_map(|path| Statement::ShowCreateTable { path }),
        1 => path().prop_map(|path| Statement::Describe { path }),
        1 => database().prop_map(|name| Statement::Use { name }),
    ]
}

#[test]
fn constants_of_every_type_are_among_the_generated_ones() {
    let types = [
        DataType::Boolean,
        DataType::TinyInt,
        DataType::BigInt,
        DataType::Float,
        DataType::Double,
        DataType::Decimal { precision: 38, scale: 3 },
        DataType::String,
        DataType::Bytes,
        DataType::Date,
        DataType::Time { precision: 4 },
        DataType::Timestamp { precision: 9 },
        DataType::TimestampLtz { precision: 1 },
    ];
    for data_type in types {
        let found = literal(&data_type, 1_234_567_890_123, "text").unwrap_or_else(|| panic!("{data_type}"));
        assert_eq!(
            literal_of(&data_type, &crate::literal_text(&data_type, &found)),
            Ok(found),
            "{data_type}"
        );
    }
}
