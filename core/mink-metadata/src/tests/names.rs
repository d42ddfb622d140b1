//! Databases, tables and topics: what exists, what collides, what a dropped id means.
use super::*;
use crate::{Invalid, LimitKind};

#[test]
fn a_table_needs_its_database_and_a_database_is_dropped_empty() {
    let mut log = Log::new();
    let refusal = log.refused(Command::CreateTable(new_table("kafka.t", 1)));
    assert_eq!(refusal, Refusal::DatabaseNotFound { name: database("kafka") });
    log.done(Command::CreateDatabase { name: database("kafka") });
    let id = log.create("kafka.t", 3);
    assert_eq!(log.refused(Command::CreateTable(new_table("kafka.t", 1))), Refusal::TableExists { id });
    let drop = Command::DropDatabase { name: database("kafka") };
    assert_eq!(log.refused(drop.clone()), Refusal::DatabaseNotEmpty { name: database("kafka") });
    assert_eq!(log.state.buckets().count(), 3);
    log.done(Command::DropTable { id });
    assert_eq!(log.state.buckets().count(), 0);
    log.done(drop.clone());
    assert_eq!(log.refused(drop), Refusal::DatabaseNotFound { name: database("kafka") });
}

#[test]
fn tables_of_gives_one_database_alone() {
    let (mut log, _, _) = Log::with_nodes();
    log.done(Command::CreateDatabase { name: database("kafk") });
    for address in ["kafka.-", "kafka.b", "kafka.a", "a.z", "kafk.zz"] {
        log.create(address, 1);
    }
    let names: Vec<_> = log.state.tables_of(&database("kafka")).map(|t| t.path.table.to_string()).collect();
    assert_eq!(names, ["-", "a", "b"]);
    assert_eq!(log.state.tables_of(&database("b")).count(), 0);
}

#[test]
fn topics_that_kafka_takes_for_one_are_refused_in_the_kafka_database_only() {
    let (mut log, _, _) = Log::with_nodes();
    log.create("kafka.x.y", 1);
    let refusal = log.refused(Command::CreateTable(new_table("kafka.x_y", 1)));
    assert_eq!(refusal, Refusal::TopicCollision { other: path("kafka.x.y") });
    log.create("kafka.x-y", 1);
    log.create("a.x.y", 1);
    log.create("a.x_y", 1);
}

#[test]
fn a_topic_and_a_table_of_the_same_address_exclude_each_other() {
    let (mut log, _, _) = Log::with_nodes();
    let topic = log.create("kafka.a.b", 1);
    let refusal = log.refused(Command::CreateTable(new_table("a.b", 1)));
    assert_eq!(refusal, Refusal::TopicCollision { other: path("kafka.a.b") });
    log.create("a.c", 1);
    let refusal = log.refused(Command::CreateTable(new_table("kafka.a.c", 1)));
    assert_eq!(refusal, Refusal::TopicCollision { other: path("a.c") });
    log.done(Command::DropTable { id: topic });
    log.create("a.b", 1);
}

#[test]
fn a_topic_name_means_a_table_of_the_kafka_database_first() {
    let (mut log, _, _) = Log::with_nodes();
    let inside = log.create("kafka.orders", 1);
    let outside = log.create("a.orders", 1);
    let kafka = database("kafka");
    let topic = |name: &str| log.state.topic(&kafka, name).map(|table| table.id);
    assert_eq!(topic("orders"), Some(inside));
    assert_eq!(topic("a.orders"), Some(outside));
    assert_eq!(topic("b.orders"), None);
    assert_eq!(topic("no/name"), None);
    let names: Vec<_> = log.state.tables().map(|table| table.topic_name(&kafka)).collect();
    assert_eq!(names, ["orders", "a.orders"]);
}

#[test]
fn a_table_is_refused_beyond_its_limits_and_with_a_bad_topic_id() {
    let (mut log, _, _) = Log::with_nodes();
    let id = log.create("kafka.t", 4);
    let mut table = new_table("kafka.u", 2);
    table.buckets_max = 5;
    let refusal = log.refused(Command::CreateTable(table.clone()));
    assert_eq!(refusal, Refusal::Limit { limit: LimitKind::Buckets, max: 5 });
    table.buckets_max = 6;
    table.uuid = TableUuid([0; 16]);
    assert_eq!(log.refused(Command::CreateTable(table.clone())), Refusal::Invalid(Invalid::ZeroUuid));
    table.uuid = log.state.table(id).expect("there").uuid;
    assert_eq!(log.state.table_by_uuid(&table.uuid).map(|t| t.id), Some(id));
    assert_eq!(log.refused(Command::CreateTable(table.clone())), Refusal::Invalid(Invalid::UuidTaken));
    table.uuid = TableUuid([9; 16]);
    table.options.buckets = 0;
    assert_eq!(log.refused(Command::CreateTable(table.clone())), Refusal::Invalid(Invalid::NoBuckets));
    table.options.buckets = 2;
    log.done(Command::CreateTable(table));
}

#[test]
fn k_26_a_late_commit_for_a_dropped_table_is_skipped_and_its_object_doomed() {
    let (mut log, one, _) = Log::with_nodes();
    let dropped = log.create("kafka.t", 1);
    log.open(one, &[(bucket(dropped, 0), 0)], None);
    log.done(Command::DropTable { id: dropped });
    let fresh = log.create("kafka.t", 1);
    assert_ne!(fresh, dropped);
    log.open(one, &[(bucket(fresh, 0), 0)], None);
    let late = stream(log.chain(one), 1, &[range(bucket(dropped, 0), 1, 0, 50)]);
    log.done(commit(one, one, std::slice::from_ref(&late), Some(2)));
    assert_eq!(log.state.bucket(&bucket(fresh, 0)).expect("there").end, Offset(0));
    assert_eq!(log.state.bucket(&bucket(dropped, 0)), None);
    let at = log.state.witness().index;
    assert_eq!(log.state.doomed().collect::<Vec<_>>(), [(&late.id, at)]);
    assert_eq!(log.state.incarnation(one).expect("there").trim, WalNumber(2));
    log.done(Command::Deleted { objects: vec![late.id] });
    assert_eq!(log.state.doomed().count(), 0);
}

#[test]
fn i14_an_object_shared_with_a_living_table_is_not_doomed_with_the_dropped_one() {
    let (mut log, one, _) = Log::with_nodes();
    let (t, u) = (log.create("kafka.t", 1), log.create("kafka.u", 1));
    let (bt, bu) = (bucket(t, 0), bucket(u, 0));
    log.open(one, &[(bt, 0), (bu, 0)], None);
    let shared = stream(log.chain(one), 1, &[range(bt, 1, 0, 5), range(bu, 1, 0, 2)]);
    log.done(commit(one, one, std::slice::from_ref(&shared), None));
    log.done(Command::DropTable { id: t });
    assert_eq!(log.state.doomed().count(), 0);
    assert_eq!(log.state.object(&shared.id).expect("kept").ranges, 1);
    log.done(Command::DropTable { id: u });
    assert_eq!(log.state.doomed().map(|(id, _)| *id).collect::<Vec<_>>(), [shared.id]);
    assert_eq!(log.state.object(&shared.id), None);
    assert_eq!(log.refused(Command::DropTable { id: u }), Refusal::TableNotFound { id: u });
}
