//! Partitioned tables: a partition has buckets of its own, is found by its values, and takes all along when it goes.
use super::columns::{add_column, altered, at_level, created, field, names, orders, with_columns};
use super::*;
use crate::{
    FEATURE_LEVEL_SCHEMAS, Invalid, LimitKind, NewPartition, PARTITION_VALUE_BYTES_MAX,
    PARTITIONS_PER_TABLE_MAX, RefusalKind,
};
use mink_types::PartitionId;
use mink_types::schema::{DataType, Literal, SchemaChange, SchemaDraft, SchemaId};

fn text(text: &str) -> Literal {
    Literal::Text(text.to_owned())
}

pub(super) fn create(table: TableId, values: &[Literal]) -> Command {
    Command::CreatePartition(NewPartition { table, values: values.to_vec(), buckets_max: 100 })
}

fn made(log: &mut Log, table: TableId, values: &[Literal]) -> PartitionId {
    match log.done(create(table, values)) {
        Answer::PartitionCreated(id) => id,
        other => panic!("{other:?}"),
    }
}

fn partitioned() -> (Log, Incarnation, TableId) {
    let (mut log, one) = at_level(FEATURE_LEVEL_SCHEMAS);
    let id = created(&mut log, with_columns("a.t", orders(&["day", "what"]), 2));
    (log, one, id)
}

fn in_partition(table: TableId, partition: PartitionId, index: u32) -> BucketId {
    BucketId { table, partition, bucket: BucketIndex(index) }
}

#[test]
fn a_partitioned_table_has_the_buckets_of_its_partitions() {
    let (mut log, one, id) = partitioned();
    assert_eq!((log.state.bucket_count(), log.state.table(id).expect("there").bucket_ids().count()), (0, 0));
    let first = made(&mut log, id, &[Literal::Integer(20_000), text("eu")]);
    let second = made(&mut log, id, &[Literal::Integer(20_000), text("us")]);
    log.open(one, &[(in_partition(id, first, 1), 0), (in_partition(id, second, 0), 0)], None);
    let restored = State::restore(&log.state.snapshot()).expect("opens");
    assert_eq!(restored.digest(), log.state.digest());
    for state in [&log.state, &restored] {
        let table = state.table(id).expect("there");
        let all: Vec<_> = table.bucket_ids().collect();
        let expected = [(first, 0), (first, 1), (second, 0), (second, 1)];
        assert_eq!(all, expected.map(|(partition, index)| in_partition(id, partition, index)));
        assert_eq!(state.buckets().map(|(id, _)| *id).collect::<Vec<_>>(), all);
        assert_eq!((table.bucket_count(), table.partition_count()), (4, 2));
        assert_eq!(table.partition_of(&[Literal::Integer(20_000), text("us")]), Some(second));
        assert_eq!(table.partition(first), Some([Literal::Integer(20_000), text("eu")].as_slice()));
        assert_eq!(table.partitions().map(|(id, _)| id).collect::<Vec<_>>(), [first, second]);
        assert!(state.bucket(&bucket(id, 0)).is_none(), "no bucket without a partition");
    }
    assert!(first < second && first.0 >> 16 == log.state.witness().index.0 - 2, "ids are given by the row");
}

#[test]
fn a_second_partition_of_equal_values_answers_with_the_first() {
    let (mut log, _, id) = partitioned();
    let values = [Literal::Integer(1), text("eu")];
    let result = log.run(create(id, &values));
    let first = result.partition().expect("made");
    let again = log.run(create(id, &values));
    assert_eq!(again.partition(), Some(first));
    let refusal = log.refused(create(id, &values));
    assert_eq!((refusal.kind(), refusal), (RefusalKind::Already, Refusal::PartitionExists { id: first }));
    assert_eq!(log.state.bucket_count(), 2);
    log.done(Command::DropPartition { table: id, partition: first });
    let new = made(&mut log, id, &values);
    assert!(new > first, "K-26: a dropped partition's id is not given again");
    let restored = State::restore(&log.state.snapshot()).expect("opens");
    assert_eq!(restored.digest(), log.state.digest());
}

#[test]
fn a_dropped_partition_dooms_its_objects_and_no_others() {
    let (mut log, one, id) = partitioned();
    let parts = ["eu", "us"].map(|place| made(&mut log, id, &[Literal::Integer(1), text(place)]));
    let [eu, us] = parts.map(|partition| in_partition(id, partition, 0));
    log.open(one, &[(eu, 0), (us, 0)], None);
    let chain = log.chain(one);
    log.done(commit(one, one, &[stream(chain, 1, &[range(eu, 1, 0, 5)])], None));
    log.done(commit(one, one, &[stream(chain, 2, &[range(eu, 1, 5, 6), range(us, 1, 0, 5)])], None));
    let drop = Command::DropPartition { table: id, partition: parts[0] };
    log.done(drop.clone());
    let doomed: Vec<_> = log.state.doomed().map(|(id, _)| *id).collect();
    assert_eq!(doomed, [ObjectId::Stream { chain, counter: 1 }]);
    assert!(log.state.bucket(&eu).is_none() && log.state.bucket(&us).is_some());
    assert_eq!(log.state.hanging(one).collect::<Vec<_>>(), [us]);
    let refusal = log.refused(drop);
    assert_eq!(
        (refusal.kind(), refusal),
        (RefusalKind::NotFound, Refusal::PartitionNotFound { id: parts[0] })
    );
    // A late commit of the dropped partition is skipped, as one of a dropped table is.
    log.done(commit(one, one, &[stream(chain, 3, &[range(eu, 1, 6, 7), range(us, 1, 5, 6)])], None));
    log.done(Command::DropTable { id });
    assert_eq!(
        (log.state.bucket_count(), log.state.doomed().count(), log.state.objects().count()),
        (0, 3, 0)
    );
}

#[test]
fn values_are_those_of_the_columns_and_compared_as_such() {
    let (mut log, _, id) = partitioned();
    let wrong = Refusal::Invalid(Invalid::PartitionValues);
    for values in [
        &[][..],
        &[Literal::Integer(1)],
        &[text("eu"), Literal::Integer(1)],
        &[Literal::Integer(1), text("eu"), text("eu")],
        &[Literal::Integer(i64::MAX), text("eu")],
    ] {
        assert_eq!(log.refused(create(id, values)), wrong, "{values:?}");
    }
    let long = [Literal::Integer(1), text(&"x".repeat(PARTITION_VALUE_BYTES_MAX + 1))];
    let limit = Refusal::Limit { limit: LimitKind::TextBytes, max: PARTITION_VALUE_BYTES_MAX as u64 };
    assert_eq!(log.refused(create(id, &long)), limit);
    let at_most = [Literal::Integer(1), text(&"x".repeat(PARTITION_VALUE_BYTES_MAX))];
    made(&mut log, id, &at_most);
    made(&mut log, id, &[Literal::Integer(1), text("")]);
    made(&mut log, id, &[Literal::Integer(1), text("EU")]);
    made(&mut log, id, &[Literal::Integer(1), text("eu")]);
    assert_eq!(log.state.table(id).map(crate::Table::partition_count), Some(4));
}

#[test]
fn partitions_stay_when_the_schema_changes() {
    let (mut log, _, id) = partitioned();
    let values = [Literal::Integer(1), text("eu")];
    let first = made(&mut log, id, &values);
    let change = altered(&log, id, add_column("x"));
    log.done(Command::AlterTable(change));
    let path = names(&["day"]);
    let rename = altered(&log, id, SchemaChange::RenameColumn { path, name: "date".into() });
    log.done(Command::AlterTable(rename));
    let restored = State::restore(&log.state.snapshot()).expect("opens");
    for state in [&log.state, &restored] {
        let table = state.table(id).expect("there");
        assert_eq!(table.partition_of(&values), Some(first));
        assert_eq!(table.schema().map(|newest| newest.id()), Some(SchemaId(3)));
    }
    let second = made(&mut log, id, &[Literal::Integer(2), text("eu")]);
    assert!(second > first);
}

#[test]
fn added_buckets_come_to_every_partition() {
    let (mut log, one, id) = partitioned();
    let parts = [1, 2].map(|day| made(&mut log, id, &[Literal::Integer(day), text("eu")]));
    log.open(one, &[(in_partition(id, parts[0], 0), 0)], None);
    let mut grown = altered(&log, id, add_column("x"));
    (grown.options.buckets, grown.buckets_max) = (5, 9);
    let limit = Refusal::Limit { limit: LimitKind::Buckets, max: 9 };
    assert_eq!(log.refused(Command::AlterTable(grown.clone())), limit);
    grown.buckets_max = 10;
    log.done(Command::AlterTable(grown));
    let table = log.state.table(id).expect("there");
    let all: Vec<_> = table.bucket_ids().collect();
    assert_eq!(all, log.state.buckets().map(|(id, _)| *id).collect::<Vec<_>>());
    assert_eq!(all.len(), 10);
    let epochs = parts.map(|part| log.state.bucket(&in_partition(id, part, 0)).map(|bucket| bucket.epoch.0));
    assert_eq!(epochs, [Some(1), Some(0)], "those that were there stay as they were");
}

#[test]
fn partitions_and_their_buckets_are_bounded() {
    let (mut log, _) = at_level(FEATURE_LEVEL_SCHEMAS);
    let by_day =
        |name: &str, buckets| NewTable { buckets_max: 3, ..with_columns(name, orders(&["day"]), buckets) };
    // None are made yet, so the bound of all is not met; that of the table is.
    let id = created(&mut log, by_day("a.t", 4));
    let large = Refusal::Limit { limit: LimitKind::BucketsPerTable, max: 1 << 20 };
    assert_eq!(log.refused(Command::CreateTable(by_day("a.u", (1 << 20) + 1))), large);
    let full = Command::CreatePartition(NewPartition {
        table: id,
        values: vec![Literal::Integer(1)],
        buckets_max: 3,
    });
    assert_eq!(log.refused(full), Refusal::Limit { limit: LimitKind::Buckets, max: 3 });
    let half = created(&mut log, NewTable { buckets_max: 1 << 21, ..by_day("a.half", 1 << 19) });
    let part = |day| {
        let values = vec![Literal::Integer(day)];
        Command::CreatePartition(NewPartition { table: half, values, buckets_max: u32::MAX })
    };
    let count = |log: &Log| log.state.table(half).map(crate::Table::partition_count);
    let results = log.append(&[(request(8, 1), part(1)), (request(8, 2), part(2)), (request(8, 3), part(3))]);
    assert_eq!(results[2].1, CommandResult::Refused(large));
    assert_eq!(count(&log), Some(2));
}

#[test]
fn i20_partitions_of_a_table_are_bounded_in_number() {
    let (mut log, _) = at_level(FEATURE_LEVEL_SCHEMAS);
    let id = created(&mut log, with_columns("a.t", orders(&["day"]), 1));
    let create = |day: usize| {
        let values = vec![Literal::Integer(i64::try_from(day).expect("small"))];
        Command::CreatePartition(NewPartition { table: id, values, buckets_max: 100_000 })
    };
    let days: Vec<usize> = (0..PARTITIONS_PER_TABLE_MAX).collect();
    for some in days.chunks(1_000) {
        let row: Vec<_> = some.iter().map(|day| (log.next_request(), create(*day))).collect();
        assert!(log.append(&row).iter().all(|(_, result)| result.partition().is_some()));
    }
    let refusal = log.refused(create(PARTITIONS_PER_TABLE_MAX));
    assert_eq!(
        refusal,
        Refusal::Limit { limit: LimitKind::Partitions, max: PARTITIONS_PER_TABLE_MAX as u64 }
    );
    let restored = State::restore(&log.state.snapshot()).expect("opens");
    assert_eq!(restored.digest(), log.state.digest());
    assert_eq!(restored.bucket_count(), PARTITIONS_PER_TABLE_MAX);
}

#[test]
fn only_a_partitioned_table_has_partitions_and_it_is_no_topic() {
    let (mut log, _, id) = partitioned();
    let topic = log.create("kafka.t", 1);
    let bare = created(&mut log, with_columns("a.bare", orders(&[]), 1));
    for table in [topic, bare] {
        let none = Refusal::Invalid(Invalid::NotPartitioned);
        assert_eq!(log.refused(create(table, &[])), none);
        assert_eq!(log.refused(create(table, &[Literal::Integer(1)])), none);
        assert_eq!(log.refused(Command::DropPartition { table, partition: PartitionId(0) }), none);
    }
    let gone = TableId(1);
    assert_eq!(log.refused(create(gone, &[])), Refusal::TableNotFound { id: gone });
    let drop = Command::DropPartition { table: gone, partition: PartitionId(0) };
    assert_eq!(log.refused(drop), Refusal::TableNotFound { id: gone });
    let kafka = database("kafka");
    let topic_of = |name: &str| log.state.topic(&kafka, name).map(|table| table.id);
    assert_eq!((topic_of("t"), topic_of("a.bare"), topic_of("a.t")), (Some(topic), Some(bare), None));
    assert!(log.state.table(id).is_some_and(crate::Table::is_partitioned));
    // It has its name all the same.
    let taken = log.refused(Command::CreateTable(new_table("kafka.a.t", 1)));
    assert_eq!(taken, Refusal::TopicCollision { other: path("a.t") });
}

#[test]
fn a_key_of_columns_and_partitions_of_every_type_are_taken() {
    let (mut log, _) = at_level(FEATURE_LEVEL_SCHEMAS);
    let types = [
        (DataType::Boolean, Literal::Boolean(true)),
        (DataType::TinyInt, Literal::Integer(-1)),
        (DataType::Double, Literal::Double(1.5_f64.to_bits())),
        (DataType::Decimal { precision: 20, scale: 2 }, Literal::Decimal(-(1 << 60))),
        (DataType::Char { length: 2 }, text("äö")),
        (DataType::Bytes, Literal::Bytes(vec![0, 1, 255])),
        (DataType::TimestampLtz { precision: 3 }, Literal::Integer(1_700_000_000_000)),
    ];
    let columns =
        types.iter().enumerate().map(|(at, (data_type, _))| field(&format!("c{at}"), data_type.clone()));
    let columns: Vec<_> = columns.chain([field("id", DataType::BigInt)]).collect();
    let by: Vec<String> = (0..types.len()).map(|at| format!("c{at}")).collect();
    let primary_key = by.iter().cloned().chain(names(&["id"])).collect();
    let draft = SchemaDraft { columns, primary_key, partitioned_by: by, ..SchemaDraft::default() };
    let id = created(&mut log, with_columns("a.t", draft, 1));
    let values = types.map(|(_, value)| value);
    let partition = made(&mut log, id, &values);
    let row = log.rows.last().expect("one").commands().expect("decodes");
    assert!(matches!(&row[0].1, Command::CreatePartition(new) if new.values == values));
    let restored = State::restore(&log.state.snapshot()).expect("opens");
    assert_eq!(restored.table(id).and_then(|table| table.partition_of(&values)), Some(partition));
    assert_eq!(restored.digest(), log.state.digest());
}

#[test]
fn partitions_come_with_their_feature_level() {
    let (mut log, _) = at_level(FEATURE_LEVEL_SCHEMAS - 1);
    let id = log.create("kafka.t", 1);
    let early = Refusal::Invalid(Invalid::FeatureLevel);
    assert_eq!(log.refused(create(id, &[])), early);
    assert_eq!(log.refused(Command::DropPartition { table: id, partition: PartitionId(0) }), early);
}
