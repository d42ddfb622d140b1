//! The SQLite log keeps the trait's promises, in memory and in a file that others share.
use std::time::Duration;

use mink_metadata::{Group, Row};
use mink_types::{
    ClusterUuid, Incarnation, LogIndex, ObjectKey, Outcome, RequestId, RowHash, SessionId, Witness,
};

use super::{cluster, create, memory_log, sim};
use crate::{
    AppendRefused, Beat, BeatRefused, BeatState, CommandLog, Database, IdentityRow, OpenLogError,
    SnapshotPlace, SqliteLog,
};

fn row(previous: Witness, name: &str) -> Row {
    let mut group = Group::new();
    let request = RequestId { session: SessionId([1; 16]), counter: previous.index.0 + 1 };
    group.push(request, &create(name)).expect("fits");
    group.row(previous)
}

/// Appends `count` rows and gives them.
async fn fill(log: &SqliteLog, count: u64) -> Vec<Row> {
    let mut last = log.last().await.expect("reads");
    let mut rows = Vec::new();
    for at in 0..count {
        let next = row(last, &format!("d{at}"));
        assert_eq!(log.append(last, &next).await, Outcome::Done(()));
        last = next.witness();
        rows.push(next);
    }
    rows
}

fn place(row: &Row) -> SnapshotPlace {
    let key = ObjectKey::snapshot(&cluster("mink"), row.index, row.hash, Incarnation(1));
    SnapshotPlace { witness: row.witness(), key }
}

#[test]
fn rows_are_appended_in_order_and_an_index_is_taken_once() {
    sim(1, |service| async move {
        let log = memory_log(&service).await;
        assert_eq!(log.last().await, Ok(Witness::default()));
        let rows = fill(&log, 3).await;
        let other = row(rows[1].witness(), "other");
        assert_eq!(log.append(rows[1].witness(), &other).await, Outcome::Refused(AppendRefused::Taken));
        assert_eq!(log.append(rows[1].witness(), &rows[2]).await, Outcome::Refused(AppendRefused::Taken));
        assert_eq!(log.read_after(LogIndex(0), 2).await.expect("reads"), rows[..2]);
        assert_eq!(log.read_after(LogIndex(1), 9).await.expect("reads"), rows[1..]);
        assert_eq!(log.last().await, Ok(rows[2].witness()));
    });
}

#[test]
fn i13_a_row_that_follows_what_the_database_does_not_have_is_refused() {
    sim(1, |service| async move {
        let log = memory_log(&service).await;
        let rows = fill(&log, 2).await;
        let ahead = Witness { index: LogIndex(5), hash: RowHash([3; 32]) };
        let behind = AppendRefused::Behind { last: rows[1].witness() };
        assert_eq!(log.append(ahead, &row(ahead, "x")).await, Outcome::Refused(behind.clone()));
        let differs = Witness { index: LogIndex(2), hash: RowHash([3; 32]) };
        assert_eq!(log.append(differs, &row(differs, "x")).await, Outcome::Refused(behind));
    });
}

#[test]
fn clusters_share_a_database_without_seeing_each_other() {
    sim(1, |service| async move {
        let log = memory_log(&service).await;
        let other = log.other_cluster(&cluster("other"));
        fill(&log, 2).await;
        assert_eq!(other.last().await, Ok(Witness::default()));
        let rows = fill(&other, 1).await;
        assert_eq!(log.read_after(LogIndex(0), 9).await.expect("reads").len(), 2);
        let uuid = ClusterUuid([4; 16]);
        assert_eq!(other.create_identity(uuid).await, Outcome::Done(()));
        assert_eq!(log.identity().await, Ok(None));
        assert_eq!(other.close_beats(Incarnation(1)).await, Outcome::Done(()));
        assert_eq!(log.beats().await, Ok(vec![]));
        assert_eq!(other.begin_at(&place(&rows[0])).await, Outcome::Done(()));
        assert_eq!(log.read_after(LogIndex(0), 9).await.expect("reads").len(), 2);
    });
}

#[test]
fn i1_a_file_keeps_what_was_done_and_syncs_each_commit() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("meta.db");
    let path = file.clone();
    let rows = sim(1, |service| async move {
        let log = SqliteLog::open(&service, Database::File(path), &cluster("mink")).await.expect("opens");
        fill(&log, 3).await
    });
    let path = file.clone();
    sim(2, |service| async move {
        let log = SqliteLog::open(&service, Database::File(path), &cluster("mink")).await.expect("opens");
        assert_eq!(log.read_after(LogIndex(0), 9).await.expect("reads"), rows);
        // 2 is FULL.
        assert_eq!(log.pragma("synchronous").await, "2");
        assert_eq!(log.pragma("journal_mode").await, "wal");
    });
}

#[test]
fn rows_of_another_process_are_noticed_within_the_poll() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("meta.db");
    sim(1, |service| async move {
        let name = cluster("mink");
        let open = || SqliteLog::open(&service, Database::File(file.clone()), &name);
        let (one, two) = (open().await.expect("opens"), open().await.expect("opens twice"));
        let poll = Duration::from_millis(200);
        assert!(
            service.timeout(Duration::from_secs(5), one.changed(LogIndex(0), poll)).await.is_err(),
            "nothing came"
        );
        let rows = fill(&two, 1).await;
        let began = service.now();
        service.timeout(Duration::from_secs(5), one.changed(LogIndex(0), poll)).await.expect("noticed");
        assert!(service.now() - began <= poll * 2);
        assert_eq!(one.read_after(LogIndex(0), 9).await.expect("reads"), rows);
        // Both write: whoever is late reads on.
        let late = row(Witness::default(), "late");
        assert_eq!(one.append(Witness::default(), &late).await, Outcome::Refused(AppendRefused::Taken));
    });
}

#[test]
fn own_rows_wake_those_who_wait_at_once() {
    sim(1, |service| async move {
        let log = memory_log(&service).await;
        let other = log.clone();
        let waiter = service.spawn("waiter", async move {
            other.changed(LogIndex(0), Duration::from_hours(1)).await;
        });
        fill(&log, 1).await;
        service.timeout(Duration::from_millis(1), waiter.join()).await.expect("woken without a poll");
    });
}

#[test]
fn i3_a_closed_heartbeat_is_never_renewed() {
    sim(1, |service| async move {
        let log = memory_log(&service).await;
        let (one, two) = (Incarnation(1), Incarnation(2));
        let ttl = Duration::from_micros(1_500_001);
        let beat = |incarnation, counter| log.beat(Beat { incarnation, counter, ttl });
        assert_eq!(beat(one, 1).await, Outcome::Done(()));
        assert_eq!(beat(one, 2).await, Outcome::Done(()));
        assert_eq!(log.close_beats(one).await, Outcome::Done(()));
        assert_eq!(beat(one, 3).await, Outcome::Refused(BeatRefused::Closed));
        // Closed before its first beat: that one fails too.
        assert_eq!(log.close_beats(two).await, Outcome::Done(()));
        assert_eq!(beat(two, 1).await, Outcome::Refused(BeatRefused::Closed));
        let closed = |incarnation, counter, ttl| BeatState { incarnation, counter, ttl, closed: true };
        let rounded_up = Duration::from_millis(1_501);
        let expected = vec![closed(one, 2, rounded_up), closed(two, 0, Duration::ZERO)];
        assert_eq!(log.beats().await, Ok(expected), "a contender still sees how long the last lease holds");
    });
}

#[test]
fn i3_heartbeats_that_are_forgotten_stay_closed_and_take_one_row() {
    sim(1, |service| async move {
        let log = memory_log(&service).await;
        let ttl = Duration::from_secs(1);
        let beat =
            |incarnation, counter| log.beat(Beat { incarnation: Incarnation(incarnation), counter, ttl });
        for life in [3, 5, 8, 9] {
            assert_eq!(beat(life, 1).await, Outcome::Done(()));
        }
        for life in [3, 5] {
            assert_eq!(log.close_beats(Incarnation(life)).await, Outcome::Done(()));
        }
        // 7 never had a beat, and 8 was fenced before its beats were closed.
        for upto in [7, 8, 8] {
            assert_eq!(log.forget_beats(Incarnation(upto)).await, Outcome::Done(()));
            for life in [1, 3, 4, 5, 7] {
                assert_eq!(beat(life, 2).await, Outcome::Refused(BeatRefused::Closed), "{life} up to {upto}");
            }
        }
        assert_eq!(beat(8, 2).await, Outcome::Refused(BeatRefused::Closed));
        // A contender that comes late changes nothing of it.
        assert_eq!(log.close_beats(Incarnation(8)).await, Outcome::Done(()));
        assert_eq!(beat(7, 3).await, Outcome::Refused(BeatRefused::Closed));
        assert_eq!(beat(9, 2).await, Outcome::Done(()), "the living beat on");
        assert_eq!(beat(10, 1).await, Outcome::Done(()));
        let left: Vec<(u64, bool)> =
            log.beats().await.expect("read").iter().map(|beat| (beat.incarnation.0, beat.closed)).collect();
        assert_eq!(left, [(8, true), (9, false), (10, false)]);
    });
}

#[test]
fn truncation_spares_the_last_row_and_what_no_snapshot_covers() {
    sim(1, |service| async move {
        let log = memory_log(&service).await;
        let rows = fill(&log, 5).await;
        assert_eq!(log.truncate(LogIndex(5)).await, Outcome::Done(()));
        assert_eq!(log.read_after(LogIndex(0), 9).await.expect("reads").len(), 5, "no snapshot is recorded");
        assert_eq!(log.record_snapshot(&place(&rows[2])).await, Outcome::Done(()));
        assert_eq!(log.record_snapshot(&place(&rows[1])).await, Outcome::Done(()));
        assert_eq!(
            log.latest_snapshot().await,
            Ok(Some(place(&rows[2]))),
            "an older one does not replace it"
        );
        assert_eq!(log.truncate(LogIndex(5)).await, Outcome::Done(()));
        assert_eq!(log.read_after(LogIndex(0), 9).await.expect("reads"), rows[3..]);
        assert_eq!(log.record_snapshot(&place(&rows[4])).await, Outcome::Done(()));
        assert_eq!(log.truncate(LogIndex(99)).await, Outcome::Done(()));
        assert_eq!(log.read_after(LogIndex(0), 9).await.expect("reads"), rows[4..], "the last row stays");
        fill(&log, 1).await;
    });
}

#[test]
fn a_log_that_begins_at_a_snapshot_goes_on_behind_it() {
    sim(1, |service| async move {
        let (from, log) = (memory_log(&service).await, memory_log(&service).await);
        let rows = fill(&from, 4).await;
        fill(&log, 2).await;
        assert_eq!(log.begin_at(&place(&rows[3])).await, Outcome::Done(()));
        assert_eq!(log.last().await, Ok(rows[3].witness()));
        assert_eq!(log.read_after(LogIndex(0), 9).await, Ok(vec![]));
        let next = row(rows[3].witness(), "next");
        assert_eq!(log.append(rows[3].witness(), &next).await, Outcome::Done(()));
        assert_eq!(log.last().await, Ok(next.witness()));
    });
}

#[test]
fn an_identity_is_noted_once_and_confirmed_by_its_own_uuid() {
    sim(1, |service| async move {
        let log = memory_log(&service).await;
        let (first, second) = (ClusterUuid([1; 16]), ClusterUuid([2; 16]));
        assert_eq!(log.create_identity(first).await, Outcome::Done(()));
        assert_eq!(log.create_identity(second).await, Outcome::Done(()));
        let row = |ready| Ok(Some(IdentityRow { cluster: first, ready }));
        assert_eq!(log.confirm_identity(second).await, Outcome::Done(()));
        assert_eq!(log.identity().await, row(false));
        assert_eq!(log.confirm_identity(first).await, Outcome::Done(()));
        assert_eq!(log.identity().await, row(true));
    });
}

#[test]
fn a_database_of_a_newer_version_or_no_database_at_all_is_refused_in_words() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("meta.db");
    let raw = rusqlite::Connection::open(&file).expect("opens");
    raw.pragma_update(None, "user_version", 7).expect("sets");
    drop(raw);
    let missing = folder.path().join("no/such/folder.db");
    sim(1, |service| async move {
        let error =
            SqliteLog::open(&service, Database::File(file), &cluster("mink")).await.expect_err("newer");
        assert!(matches!(error, OpenLogError::Newer { found: 7, known: 1, .. }), "{error}");
        let error =
            SqliteLog::open(&service, Database::File(missing), &cluster("mink")).await.expect_err("missing");
        assert!(error.to_string().contains("no/such/folder.db"), "{error}");
    });
}

#[test]
fn a_locked_database_refuses_a_write_and_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("meta.db");
    sim(1, |service| async move {
        let log =
            SqliteLog::open(&service, Database::File(file.clone()), &cluster("mink")).await.expect("opens");
        fill(&log, 1).await;
        log.busy_timeout(Duration::ZERO).await;
        let other = rusqlite::Connection::open(&file).expect("opens");
        other.execute_batch("BEGIN IMMEDIATE").expect("locks");
        let last = log.last().await.expect("reads go on");
        let outcome = log.append(last, &row(last, "x")).await;
        assert!(matches!(outcome, Outcome::Refused(AppendRefused::Write(_))), "{outcome:?}");
        other.execute_batch("ROLLBACK").expect("unlocks");
        fill(&log, 1).await;
        assert_eq!(log.read_after(LogIndex(0), 9).await.expect("reads").len(), 2);
    });
}
