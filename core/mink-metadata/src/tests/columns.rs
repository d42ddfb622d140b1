//! Tables with columns: which schema a table has, and that of two changes of one the second is refused.
use std::sync::Arc;

use super::*;
use crate::{
    ApplyError, FEATURE_LEVEL_SCHEMAS, Invalid, LimitKind, RefusalKind, SCHEMAS_MAX, TABLE_SCHEMA_BYTES_MAX,
    TableChange,
};
use mink_types::LogFormat;
use mink_types::schema::{
    COMMENT_BYTES_MAX, ColumnPlace, DataType, Field, FieldId, Literal, SCHEMA_DEPTH_MAX, SCHEMA_FIELDS_MAX,
    SCHEMA_TEXT_BYTES_MAX, Schema, SchemaChange, SchemaDraft, SchemaId,
};

pub(super) fn field(name: &str, data_type: DataType) -> Field {
    let (name, comment) = (name.to_owned(), None);
    Field { id: FieldId(0), name, data_type, nullable: true, default: None, comment }
}

pub(super) fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// `id BIGINT, day DATE, what STRING`, partitioned by some of them.
pub(super) fn orders(partitioned_by: &[&str]) -> SchemaDraft {
    let columns =
        vec![field("id", DataType::BigInt), field("day", DataType::Date), field("what", DataType::String)];
    SchemaDraft { columns, partitioned_by: names(partitioned_by), ..SchemaDraft::default() }
}

pub(super) fn with_columns(address: &str, draft: SchemaDraft, buckets: u32) -> NewTable {
    let new = new_table(address, buckets);
    let options = TableOptions { format: LogFormat::Arrow, ..new.options };
    let schema = Some(Arc::new(Schema::create(draft).expect("a schema")));
    NewTable { options, schema, ..new }
}

/// A log of this level with the databases `kafka` and `a`, and a node.
pub(super) fn at_level(level: u32) -> (Log, Incarnation) {
    let mut log = Log::new();
    for name in ["kafka", "a"] {
        log.done(Command::CreateDatabase { name: database(name) });
    }
    for level in 2..=level {
        log.done(Command::RaiseFeatureLevel { level });
    }
    log.done(Command::Register(Registration { feature_level_max: level, ..registration(1) }));
    let one = Incarnation(log.state.witness().index.0);
    (log, one)
}

pub(super) fn created(log: &mut Log, new: NewTable) -> TableId {
    match log.done(Command::CreateTable(new)) {
        Answer::TableCreated(id) => id,
        other => panic!("{other:?}"),
    }
}

pub(super) fn add_column(name: &str) -> SchemaChange {
    let (parent, column, place) = (Vec::new(), field(name, DataType::Int), ColumnPlace::Last);
    SchemaChange::AddColumn { parent, column, place }
}

/// The schema after one more change, from the newest.
pub(super) fn altered(log: &Log, id: TableId, change: SchemaChange) -> TableChange {
    let table = log.state.table(id).expect("there");
    let newest = table.schema().expect("it has columns");
    let schema = newest.alter(&[change]).expect("may be changed so");
    let (seen, options) = (table.options.clone(), table.options.clone());
    TableChange { id, seen, options, schema: Some((newest.id(), Arc::new(schema))), buckets_max: 100 }
}

/// A change of a table that need not be there.
pub(super) fn of_no_table() -> TableChange {
    let new = with_columns("a.t", orders(&["day"]), 1);
    let first = new.schema.expect("one");
    let schema = Arc::new(first.alter(&[add_column("x")]).expect("may"));
    let (seen, options) = (new.options.clone(), new.options);
    TableChange { id: TableId(0), seen, options, schema: Some((SchemaId(0), schema)), buckets_max: 0 }
}

fn columns_of(schema: &Schema) -> Vec<&str> {
    schema.columns().iter().map(|column| column.name.as_str()).collect()
}

#[test]
fn a_table_keeps_every_schema_that_it_had() {
    let (mut log, _) = at_level(FEATURE_LEVEL_SCHEMAS);
    let id = created(&mut log, with_columns("a.t", orders(&[]), 2));
    assert_eq!(log.state.table(id).map(|table| table.bucket_ids().count()), Some(2));
    for name in ["x", "y"] {
        let change = altered(&log, id, add_column(name));
        log.done(Command::AlterTable(change));
    }
    let drop = altered(&log, id, SchemaChange::DropColumn { path: names(&["what"]) });
    log.done(Command::AlterTable(drop));
    let restored = State::restore(&log.state.snapshot()).expect("opens");
    assert_eq!(restored.digest(), log.state.digest());
    for state in [&log.state, &restored] {
        let table = state.table(id).expect("there");
        let newest = table.schema().expect("it has columns");
        assert_eq!((newest.id(), columns_of(newest)), (SchemaId(4), vec!["id", "day", "x", "y"]));
        let second = table.schema_by_id(SchemaId(2)).expect("kept");
        assert_eq!((second.id(), columns_of(second)), (SchemaId(2), vec!["id", "day", "what", "x"]));
        assert_eq!(table.schemas().map(|schema| schema.id().0).collect::<Vec<_>>(), [1, 2, 3, 4]);
        assert!(table.schema_by_id(SchemaId(0)).is_none() && table.schema_by_id(SchemaId(5)).is_none());
        assert!(!table.is_partitioned() && table.partitions().next().is_none());
    }
    assert!(log.state.memory_bytes() > State::new(CLUSTER).memory_bytes() + 300);
    log.done(Command::DropTable { id });
    assert_eq!(log.state.bucket_count(), 0);
}

#[test]
fn of_two_changes_of_one_schema_the_second_is_refused() {
    let (mut log, _) = at_level(FEATURE_LEVEL_SCHEMAS);
    let id = created(&mut log, with_columns("a.t", orders(&[]), 1));
    let (first, second) = (altered(&log, id, add_column("x")), altered(&log, id, add_column("y")));
    log.done(Command::AlterTable(first));
    let refusal = log.refused(Command::AlterTable(second));
    assert_eq!(refusal, Refusal::SchemaChanged { id, newest: SchemaId(2) });
    assert_eq!(refusal.kind(), RefusalKind::Stale);
    let restored = State::restore(&log.state.snapshot()).expect("the refusal is kept with its session");
    assert_eq!(restored.digest(), log.state.digest());
    let again = altered(&log, id, add_column("y"));
    log.done(Command::AlterTable(again));
    let table = log.state.table(id).expect("there");
    assert_eq!(table.schema().map(|newest| columns_of(newest)), Some(vec!["id", "day", "what", "x", "y"]));
}

#[test]
fn a_change_is_taken_as_a_whole_or_not_at_all() {
    let (mut log, _) = at_level(FEATURE_LEVEL_SCHEMAS);
    let id = created(&mut log, with_columns("a.t", orders(&[]), 1));
    let mut change = altered(&log, id, add_column("x"));
    change.options = TableOptions { buckets: 3, log_ttl_ms: Some(7), ..change.options };
    let mut stale = change.clone();
    stale.schema = stale.schema.map(|(_, schema)| (SchemaId(9), schema));
    let refusal = log.refused(Command::AlterTable(stale));
    assert_eq!(refusal, Refusal::SchemaChanged { id, newest: SchemaId(1) });
    log.done(Command::AlterTable(change));
    let table = log.state.table(id).expect("there");
    assert_eq!((table.buckets, table.options.log_ttl_ms, log.state.bucket_count()), (3, Some(7), 3));
    assert_eq!(table.schema().map(|newest| newest.id()), Some(SchemaId(2)));
}

#[test]
fn a_schema_that_no_change_gives_is_refused() {
    let (mut log, _) = at_level(FEATURE_LEVEL_SCHEMAS);
    let id = created(&mut log, with_columns("a.t", orders(&[]), 1));
    let other = Schema::create(orders(&["day"])).expect("a schema").alter(&[add_column("x")]).expect("may");
    let mut change = altered(&log, id, add_column("x"));
    change.schema = Some((SchemaId(1), Arc::new(other)));
    let refusal = log.refused(Command::AlterTable(change.clone()));
    assert_eq!(refusal, Refusal::Invalid(Invalid::SchemaDoesNotFollow));
    let again = Schema::create(orders(&[])).expect("a schema");
    change.schema = Some((SchemaId(1), Arc::new(again)));
    let refusal = log.refused(Command::AlterTable(change));
    assert_eq!(refusal, Refusal::Invalid(Invalid::SchemaDoesNotFollow));
}

#[test]
fn schemas_go_with_the_format_that_has_columns() {
    let (mut log, _) = at_level(FEATURE_LEVEL_SCHEMAS);
    let wrong = Refusal::Invalid(Invalid::SchemaAndFormat);
    let good = with_columns("a.t", orders(&[]), 1);
    let bare = NewTable { schema: None, ..good.clone() };
    assert_eq!(log.refused(Command::CreateTable(bare)), wrong);
    let records = NewTable { options: TableOptions::default(), ..good.clone() };
    assert_eq!(log.refused(Command::CreateTable(records)), wrong);
    let first = good.schema.clone().expect("one");
    let second = Arc::new(first.alter(&[add_column("x")]).expect("may"));
    let late = NewTable { schema: Some(Arc::clone(&second)), ..good };
    assert_eq!(log.refused(Command::CreateTable(late)), Refusal::Invalid(Invalid::SchemaNotFirst));
    let topic = log.create("kafka.t", 1);
    let seen = log.state.table(topic).expect("there").options.clone();
    let schema = Some((SchemaId(1), second));
    let change = TableChange { id: topic, seen: seen.clone(), options: seen, schema, buckets_max: 10 };
    assert_eq!(log.refused(Command::AlterTable(change)), wrong);
}

#[test]
fn a_table_with_a_primary_key_keeps_its_buckets() {
    let (mut log, _) = at_level(FEATURE_LEVEL_SCHEMAS);
    let draft = SchemaDraft { primary_key: names(&["id"]), ..orders(&[]) };
    let id = created(&mut log, with_columns("a.t", draft, 2));
    let mut change = altered(&log, id, add_column("x"));
    change.options.buckets = 3;
    let refusal = log.refused(Command::AlterTable(change.clone()));
    assert_eq!(refusal, Refusal::Invalid(Invalid::FixedForTable));
    change.options.buckets = 2;
    log.done(Command::AlterTable(change));
}

#[test]
fn i20_schemas_of_a_table_are_bounded_in_number() {
    let (mut log, _) = at_level(FEATURE_LEVEL_SCHEMAS);
    let id = created(&mut log, with_columns("a.t", orders(&[]), 1));
    let comment =
        |at: usize| SchemaChange::SetComment { path: names(&["id"]), comment: Some(at.to_string()) };
    for at in 2..=SCHEMAS_MAX {
        let change = altered(&log, id, comment(at));
        log.done(Command::AlterTable(change));
    }
    assert_eq!(log.state.table(id).map(|table| table.schemas().count()), Some(SCHEMAS_MAX));
    let more = altered(&log, id, comment(0));
    let refusal = log.refused(Command::AlterTable(more));
    assert_eq!(refusal, Refusal::Limit { limit: LimitKind::Schemas, max: SCHEMAS_MAX as u64 });
    assert!(refusal.to_string().contains("make a new table"), "{refusal}");
    let restored = State::restore(&log.state.snapshot()).expect("opens");
    assert_eq!(restored.digest(), log.state.digest());
}

#[test]
fn i20_schemas_of_a_table_are_bounded_in_bytes() {
    let (mut log, _) = at_level(FEATURE_LEVEL_SCHEMAS);
    let long = |at: usize| {
        let column = field(&format!("c{at}"), DataType::Int);
        Field { comment: Some("c".repeat(COMMENT_BYTES_MAX)), ..column }
    };
    let draft = SchemaDraft { columns: (0..240).map(long).collect(), ..SchemaDraft::default() };
    let id = created(&mut log, with_columns("a.t", draft, 1));
    let max = TABLE_SCHEMA_BYTES_MAX as u64;
    for at in 0..100 {
        let change = altered(&log, id, add_column(&format!("x{at}")));
        match log.run(Command::AlterTable(change)) {
            CommandResult::Done(_) => {}
            CommandResult::Refused(refusal) => {
                assert_eq!(refusal, Refusal::Limit { limit: LimitKind::SchemaBytes, max });
                assert!((60..70).contains(&at), "{at} schemas of a quarter of a megabyte each");
                return;
            }
        }
    }
    panic!("no bound");
}

/// One column of each type, and one that is as deep as may be.
pub(super) fn all_types() -> SchemaDraft {
    let mut columns = vec![field("plain", DataType::Int)];
    let mut add = |data_type: DataType, default: Option<Literal>| {
        let name = format!("c{}", columns.len());
        columns.push(Field { default, ..field(&name, data_type) });
    };
    add(DataType::Boolean, Some(Literal::Boolean(false)));
    add(DataType::TinyInt, Some(Literal::Integer(-128)));
    add(DataType::SmallInt, None);
    add(DataType::BigInt, Some(Literal::Integer(i64::MIN)));
    add(DataType::Float, Some(Literal::Double(0.5_f64.to_bits())));
    add(DataType::Double, Some(Literal::Double((-0.1_f64).to_bits())));
    add(DataType::Decimal { precision: 38, scale: 2 }, Some(Literal::Decimal(-(10_i128.pow(38) - 1))));
    add(DataType::Char { length: 3 }, Some(Literal::Text("äöü".into())));
    add(DataType::String, Some(Literal::Text(String::new())));
    add(DataType::Binary { length: u32::MAX / 2 }, Some(Literal::Bytes(vec![0, 255])));
    add(DataType::Bytes, Some(Literal::Bytes(Vec::new())));
    add(DataType::Date, Some(Literal::Integer(-1)));
    add(DataType::Time { precision: 9 }, Some(Literal::Integer(1)));
    add(DataType::Timestamp { precision: 0 }, None);
    add(DataType::TimestampLtz { precision: 6 }, Some(Literal::Integer(0)));
    add(DataType::Map { key: Box::new(key("key")), value: Box::new(field("value", DataType::Date)) }, None);
    let two = vec![field("a", DataType::Int), Field { comment: Some("said".into()), ..key("b") }];
    add(DataType::Row(two), None);
    let mut deep = DataType::Int;
    for _ in 1..SCHEMA_DEPTH_MAX {
        deep = DataType::Array(Box::new(field("element", deep)));
    }
    add(deep, None);
    SchemaDraft { columns, ..SchemaDraft::default() }
}

fn key(name: &str) -> Field {
    Field { nullable: false, ..field(name, DataType::String) }
}

#[test]
fn every_type_and_constant_survives_its_encoding() {
    let (mut log, _) = at_level(FEATURE_LEVEL_SCHEMAS);
    let new = with_columns("a.t", all_types(), 1);
    let sent = new.schema.clone();
    let id = created(&mut log, new);
    let row = log.rows.last().expect("one").commands().expect("decodes");
    let Some((_, Command::CreateTable(decoded))) = row.first() else { panic!("{row:?}") };
    assert_eq!(decoded.schema, sent);
    let restored = State::restore(&log.state.snapshot()).expect("opens");
    assert_eq!(restored.table(id).and_then(|table| table.schema().cloned()), sent);
}

#[test]
fn a_schema_that_breaks_the_rules_or_has_unknown_parts_stops_the_node() {
    let (log, _) = at_level(FEATURE_LEVEL_SCHEMAS);
    let mut new = with_columns("a.t", orders(&[]), 1);
    new.schema = Some(Arc::new(
        Schema::create(SchemaDraft {
            columns: vec![field("c", DataType::Char { length: 7 })],
            ..SchemaDraft::default()
        })
        .expect("a schema"),
    ));
    let good = row_of(&log.state, &[(request(9, 1), Command::CreateTable(new))]);
    let with = |change: &[(&[u8], &[u8])]| {
        let mut payload = good.payload.clone();
        for (from, to) in change {
            let places: Vec<_> =
                payload.windows(from.len()).enumerate().filter(|(_, at)| at == from).collect();
            let [(at, _)] = places[..] else { panic!("{from:?} is there {} times", places.len()) };
            payload[at..at + to.len()].copy_from_slice(to);
        }
        let hash = crate::row_hash(log.state.witness().hash, good.index, &payload);
        log.state.clone().apply(&Row { hash, payload, ..good.clone() })
    };
    // The column: id 1, name "c", type CHAR (9) of length 7, nullable.
    let column: &[u8] = &[0x08, 1, 0x12, 1, b'c', 0x1a, 4, 0x08, 9, 0x10, 7, 0x20, 1];
    assert!(with(&[(column, column)]).is_ok());
    for (place, byte, what) in [(1, 2, "an id above the last"), (4, 0, "a control character")] {
        let mut changed = column.to_vec();
        changed[place] = byte;
        assert!(matches!(with(&[(column, &changed)]), Err(ApplyError::Malformed { .. })), "{what}");
    }
    for (place, byte, what) in
        [(8, 10, "a STRING of a length"), (8, 99, "an unknown type"), (11, 0x38, "a part")]
    {
        let mut changed = column.to_vec();
        changed[place] = byte;
        assert!(matches!(with(&[(column, &changed)]), Err(ApplyError::Unsupported { .. })), "{what}");
    }
}

#[test]
fn tables_have_columns_from_their_feature_level_on() {
    let (mut log, _) = at_level(FEATURE_LEVEL_SCHEMAS - 1);
    let early = Refusal::Invalid(Invalid::FeatureLevel);
    let new = with_columns("a.t", orders(&[]), 1);
    let first = new.schema.clone().expect("one");
    assert_eq!(log.refused(Command::CreateTable(new.clone())), early);
    assert_eq!(log.refused(Command::CreateTable(NewTable { schema: None, ..new.clone() })), early);
    assert_eq!(
        log.refused(Command::CreateTable(NewTable { options: TableOptions::default(), ..new })),
        early
    );
    let id = log.create("kafka.t", 1);
    let seen = log.state.table(id).expect("there").options.clone();
    let schema = Some((SchemaId(1), Arc::new(first.alter(&[add_column("x")]).expect("may"))));
    let change = TableChange { id, seen: seen.clone(), options: seen, schema, buckets_max: 10 };
    assert_eq!(log.refused(Command::AlterTable(change)), early);
}

#[test]
fn the_longest_schema_goes_into_a_row() {
    // As many columns as there may be, with as long texts as they may have together.
    let name =
        |at: usize| format!("column {at:04} {}", "n".repeat(SCHEMA_TEXT_BYTES_MAX / SCHEMA_FIELDS_MAX - 12));
    let precise = DataType::Decimal { precision: 38, scale: 37 };
    let columns: Vec<Field> = (0..SCHEMA_FIELDS_MAX)
        .map(|at| {
            let default = Some(Literal::Decimal(i128::from(i64::MIN)));
            Field { default, ..field(&name(at), precise.clone()) }
        })
        .collect();
    assert!(columns.iter().map(|column| column.name.len()).sum::<usize>() > SCHEMA_TEXT_BYTES_MAX * 9 / 10);
    let new = with_columns("a.t", SchemaDraft { columns, ..SchemaDraft::default() }, 1);
    Group::new().push(request(1, 1), &Command::CreateTable(new)).expect("fits");
}
