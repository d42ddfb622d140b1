//! Tables that change: options, and more buckets; never fewer, and no change is lost to another.
use super::*;
use crate::{FEATURE_LEVEL_ALTER_TABLE, Invalid, LimitKind, RefusalKind, TableChange};

fn change(log: &Log, id: TableId, change: impl FnOnce(&mut TableOptions)) -> TableChange {
    let seen = log.state.table(id).expect("there").options.clone();
    let mut options = seen.clone();
    change(&mut options);
    TableChange { id, seen, options, schema: None, buckets_max: 10 }
}

fn at_level(level: u32) -> (Log, TableId) {
    let mut log = Log::new();
    log.done(Command::CreateDatabase { name: database("kafka") });
    for level in 2..=level {
        log.done(Command::RaiseFeatureLevel { level });
    }
    let id = log.create("kafka.t", 2);
    (log, id)
}

#[test]
fn added_buckets_are_free_and_the_old_ones_stay_as_they_are() {
    let (mut log, id) = at_level(FEATURE_LEVEL_ALTER_TABLE);
    log.done(Command::Register(Registration {
        feature_level_max: FEATURE_LEVEL_ALTER_TABLE,
        ..registration(1)
    }));
    let one = Incarnation(log.state.witness().index.0);
    log.open(one, &[(bucket(id, 1), 0)], None);
    let before = log.state.bucket(&bucket(id, 1)).cloned();
    let grown = change(&log, id, |options| options.buckets = 5);
    log.done(Command::AlterTable(grown));
    let table = log.state.table(id).expect("there");
    assert_eq!((table.buckets, table.options.buckets, log.state.bucket_count()), (5, 5, 5));
    assert_eq!(log.state.bucket(&bucket(id, 1)).cloned(), before);
    let new = log.state.bucket(&bucket(id, 4)).expect("made");
    assert_eq!((new.epoch, new.owner, new.end), (BucketEpoch(0), None, Offset(0)));
    log.open(one, &[(bucket(id, 4), 0)], None);
    let restored = State::restore(&log.state.snapshot()).expect("opens");
    assert_eq!(restored.digest(), log.state.digest());
    log.done(Command::DropTable { id });
    assert_eq!(log.state.bucket_count(), 0, "a dropped table takes them all along");
}

#[test]
fn of_two_changes_that_saw_the_same_table_the_second_is_refused() {
    let (mut log, id) = at_level(FEATURE_LEVEL_ALTER_TABLE);
    let first = change(&log, id, |options| options.log_ttl_ms = Some(1));
    let second = change(&log, id, |options| options.buckets = 3);
    log.done(Command::AlterTable(first));
    let refusal = log.refused(Command::AlterTable(second));
    assert_eq!((refusal.kind(), refusal), (RefusalKind::Stale, Refusal::TableChanged { id }));
    assert_eq!(log.state.table(id).expect("there").options.log_ttl_ms, Some(1));
}

#[test]
fn a_table_keeps_its_buckets_and_the_bounds_hold() {
    let (mut log, id) = at_level(FEATURE_LEVEL_ALTER_TABLE);
    let fewer = change(&log, id, |options| options.buckets = 1);
    assert_eq!(log.refused(Command::AlterTable(fewer)), Refusal::Invalid(Invalid::FixedForTable));
    let many = change(&log, id, |options| options.buckets = 11);
    let limit = Refusal::Limit { limit: LimitKind::Buckets, max: 10 };
    assert_eq!(log.refused(Command::AlterTable(many)), limit);
    let too_many =
        TableChange { buckets_max: u32::MAX, ..change(&log, id, |options| options.buckets = u32::MAX) };
    let refusal = log.refused(Command::AlterTable(too_many));
    assert!(matches!(refusal, Refusal::Limit { limit: LimitKind::BucketsPerTable, .. }), "{refusal:?}");
    let gone = TableChange { id: TableId(1), ..change(&log, id, |_| ()) };
    assert_eq!(log.refused(Command::AlterTable(gone)), Refusal::TableNotFound { id: TableId(1) });
    let lowered =
        TableChange { buckets_max: 1, ..change(&log, id, |options| options.retention_bytes = Some(9)) };
    log.done(Command::AlterTable(lowered));
}

#[test]
fn tables_change_from_their_feature_level_on() {
    let (mut log, id) = at_level(FEATURE_LEVEL_ALTER_TABLE - 1);
    let early = change(&log, id, |options| options.buckets = 3);
    assert_eq!(log.refused(Command::AlterTable(early)), Refusal::Invalid(Invalid::FeatureLevel));
}
