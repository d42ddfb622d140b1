//! Commands survive lost answers, competing writers and late writes, and are applied once (I12).
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::join_all;
use mink_metadata::{Answer, Command, CommandResult, GroupError, Refusal};
use mink_types::{LogIndex, Outcome, RequestId, SessionId};

use super::{cluster, create, grow, home, open, register, sim, with_log};
use crate::{
    Coins, CommandLog, Database, FaultyLog, LogCall, Metadata, MetadataConfig, MetadataError, SqliteLog,
    write_snapshot,
};

/// A log whose first append fares as `coins`, and all else well.
fn first_append(inner: Arc<dyn CommandLog>, coins: Coins) -> FaultyLog {
    let appends = AtomicUsize::new(0);
    FaultyLog::new(inner, move |call| match call {
        LogCall::Append if appends.fetch_add(1, Ordering::Relaxed) == 0 => coins,
        _ => Coins::Well,
    })
}

#[test]
fn i12_a_command_is_applied_once_in_all_combinations_of_happened_and_reported() {
    for coins in [Coins::Well, Coins::AnswerLost, Coins::Refused, Coins::RequestLost, Coins::Late] {
        sim(1, |service| async move {
            let home = home(&service).await;
            let faulty = with_log(&home, first_append(Arc::clone(&home.log), coins));
            let metadata = open(&faulty).await;
            let results = join_all([metadata.submit(create("a")), metadata.submit(create("a"))]).await;
            let done = results.iter().filter(|r| matches!(r, Ok(CommandResult::Done(_)))).count();
            let exists = results
                .iter()
                .filter(|r| matches!(r, Ok(CommandResult::Refused(Refusal::DatabaseExists { .. }))))
                .count();
            assert_eq!((done, exists), (1, 1), "{coins:?}: {results:?}");
            metadata.stop().await;
            // Whatever came late is in the log by now: another node sees the same.
            let other = open(&home).await;
            assert_eq!(other.view().databases().count(), 1, "{coins:?}");
        });
    }
}

#[test]
fn i12_two_nodes_under_random_faults_agree_and_lose_nothing() {
    for seed in 0..60 {
        sim(seed, |service| async move {
            let home = home(&service).await;
            let nodes = join_all((0..2).map(|_| {
                let dice = service.clone();
                let faulty =
                    FaultyLog::new(Arc::clone(&home.log), move |call| match (call, dice.random_u64() % 12) {
                        (_, 0) => Coins::Refused,
                        (_, 1) => Coins::RequestLost,
                        (LogCall::Append, 2) => Coins::Late,
                        (LogCall::Append, 3) => Coins::AnswerLost,
                        _ => Coins::Well,
                    });
                let faulty = with_log(&home, faulty);
                async move {
                    loop {
                        match Metadata::open(faulty.clone(), MetadataConfig::default()).await {
                            Ok(metadata) => return metadata,
                            Err(crate::LoadError::Log(_) | crate::LoadError::Identity(_)) => {}
                            Err(other) => panic!("{other}"),
                        }
                    }
                }
            }))
            .await;
            // Each name is asked for by both nodes, thrice: exactly one of the six is created.
            let asks = (0..20).flat_map(|at| nodes.iter().map(move |node| (at, node)));
            let results = join_all(asks.map(|(at, node)| async move {
                let mut created = 0;
                for _ in 0..3 {
                    match node.submit(create(&format!("d{at}"))).await.expect("a result") {
                        CommandResult::Done(Answer::DatabaseCreated(_)) => created += 1,
                        CommandResult::Refused(Refusal::DatabaseExists { .. }) => {}
                        other => panic!("{other:?}"),
                    }
                }
                (at, created)
            }))
            .await;
            for name in 0..20 {
                let created: usize =
                    results.iter().filter(|(at, _)| *at == name).map(|(_, created)| created).sum();
                assert_eq!(created, 1, "d{name}");
            }
            let last = nodes.iter().map(|node| node.witness().index).max().expect("two nodes");
            let one = nodes[0].wait_for(last).await.expect("follows");
            let two = nodes[1].wait_for(one.witness().index).await.expect("follows");
            // I11; the other may have followed further, by late repeats.
            if one.witness() == two.witness() {
                assert_eq!(one.digest(), two.digest());
            }
            assert_eq!((one.databases().count(), two.databases().count()), (20, 20));
            join_all(nodes.iter().map(Metadata::stop)).await;
        });
    }
}

#[test]
fn a_client_that_repeats_its_request_gets_the_first_answer() {
    sim(1, |service| async move {
        let metadata = open(&home(&service).await).await;
        let request = RequestId { session: SessionId([9; 16]), counter: 1 };
        let first = metadata.submit_as(request, create("a")).await.expect("a result");
        let again = metadata.submit_as(request, create("a")).await.expect("a result");
        assert_eq!(first, again);
        assert!(matches!(first, CommandResult::Done(Answer::DatabaseCreated(_))));
        let both = join_all([1, 2].map(|_| {
            let next = RequestId { counter: 2, ..request };
            metadata.submit_as(next, create("b"))
        }))
        .await;
        assert_eq!(both[0], both[1], "also when both wait at once");
    });
}

#[test]
fn commands_that_wait_together_share_rows() {
    sim(1, |service| async move {
        let metadata = open(&home(&service).await).await;
        let names: Vec<_> = (0..500).map(|at| format!("d{at}")).collect();
        let results = join_all(names.iter().map(|name| metadata.submit(create(name)))).await;
        assert!(results.iter().all(|result| matches!(result, Ok(CommandResult::Done(_)))));
        assert!(metadata.witness().index <= LogIndex(5), "{:?}", metadata.witness().index);
        let too_large = Command::Probed { store: "s".into(), sound: true, detail: "x".repeat(2 << 20) };
        let error = metadata.submit(too_large).await.expect_err("fits into no row");
        assert!(matches!(error, MetadataError::TooLarge(GroupError::TooLarge { .. })), "{error}");
    });
}

#[test]
fn i20_the_queue_is_bounded_and_its_commands_wait_while_the_database_is_away() {
    sim(1, |service| async move {
        let home = home(&service).await;
        let away = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let gate = Arc::clone(&away);
        let faulty = FaultyLog::new(Arc::clone(&home.log), move |_| {
            if gate.load(Ordering::Relaxed) { Coins::Refused } else { Coins::Well }
        });
        let config = MetadataConfig { queue_max: 4, ..MetadataConfig::default() };
        let metadata = Metadata::open(with_log(&home, faulty), config).await.expect("opens");
        away.store(true, Ordering::Relaxed);
        let names: Vec<_> = (0..40).map(|at| format!("d{at}")).collect();
        let all = join_all(names.iter().map(|name| metadata.submit(create(name))));
        let outage = async {
            service.sleep(Duration::from_secs(30)).await;
            assert_eq!(metadata.view().databases().count(), 0);
            assert!(metadata.trouble().is_some(), "the outage is shown");
            away.store(false, Ordering::Relaxed);
        };
        let (results, ()) = futures::join!(all, outage);
        assert!(results.iter().all(|result| matches!(result, Ok(CommandResult::Done(_)))));
        assert!(metadata.trouble().is_none(), "and its end");
        // 4 wait in the driver and 4 in its queue, so no row has more than 8.
        assert!(metadata.witness().index >= LogIndex(5));
    });
}

/// A log that loses every append, and counts them.
fn losing(inner: Arc<dyn CommandLog>) -> (FaultyLog, Arc<AtomicUsize>) {
    let appends = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&appends);
    let faulty = FaultyLog::new(inner, move |call| match call {
        LogCall::Append => {
            count.fetch_add(1, Ordering::Relaxed);
            Coins::RequestLost
        }
        _ => Coins::Well,
    });
    (faulty, appends)
}

#[test]
fn a_database_that_reads_well_and_loses_every_row_is_asked_less_and_less_often() {
    sim(1, |service| async move {
        let home = home(&service).await;
        let (faulty, appends) = losing(Arc::clone(&home.log));
        let metadata = open(&with_log(&home, faulty)).await;
        let minute = Duration::from_mins(1);
        assert!(service.timeout(minute, metadata.submit(create("a"))).await.is_err());
        let asked = appends.load(Ordering::Relaxed);
        assert!((20..60).contains(&asked), "{asked} appends in a minute");
        assert!(metadata.trouble().is_some(), "it reads well, but takes nothing");
    });
}

#[test]
fn a_driver_that_nobody_waits_for_ends_though_the_database_does_not_answer() {
    sim(1, |service| async move {
        let home = home(&service).await;
        let (faulty, appends) = losing(Arc::clone(&home.log));
        let metadata = open(&with_log(&home, faulty)).await;
        assert!(service.timeout(Duration::from_secs(1), metadata.submit(create("a"))).await.is_err());
        drop(metadata);
        let asked = appends.load(Ordering::Relaxed);
        service.sleep(Duration::from_mins(1)).await;
        assert!(appends.load(Ordering::Relaxed) <= asked + 1, "{asked} appends and then more");
    });
}

#[test]
fn stopping_answers_all_that_wait_and_later_commands_too() {
    sim(1, |service| async move {
        let home = home(&service).await;
        let faulty = FaultyLog::new(Arc::clone(&home.log), |call| {
            if call == LogCall::Append { Coins::Refused } else { Coins::Well }
        });
        let metadata = open(&with_log(&home, faulty)).await;
        let waiting = metadata.submit(create("a"));
        let stop = async {
            service.sleep(Duration::from_secs(1)).await;
            metadata.stop().await;
        };
        let (result, ()) = futures::join!(waiting, stop);
        assert_eq!(result, Err(MetadataError::Stopped));
        assert_eq!(metadata.submit(create("b")).await, Err(MetadataError::Stopped));
        assert_eq!(metadata.wait_for(LogIndex(9)).await.expect_err("never comes"), MetadataError::Stopped);
        let mut changes = metadata.changes();
        while changes.next().await.is_some() {}
    });
}

#[test]
fn i1_a_database_whose_sync_failed_ends_the_driver_whether_it_rests_or_writes() {
    for writes in [false, true] {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("meta.db");
        sim(1, |service| async move {
            let log = SqliteLog::open(&service, Database::File(file), &cluster("mink")).await.expect("opens");
            let home = with_log(&home(&service).await, log.clone());
            let metadata = open(&home).await;
            grow(&metadata, "d", 1).await;
            log.break_handle().await;
            if writes {
                let error = metadata.submit(create("e")).await.expect_err("nothing can be written");
                assert!(error.to_string().contains("restart the node"), "{error}");
            }
            let mut changes = metadata.changes();
            let ends = async { while changes.next().await.is_some() {} };
            service.timeout(Duration::from_mins(1), ends).await.expect("the driver ends by itself");
        });
    }
}

#[test]
fn i13_a_database_that_loses_rows_under_a_node_ends_its_driver() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("meta.db");
    sim(1, |service| async move {
        let log =
            SqliteLog::open(&service, Database::File(file.clone()), &cluster("mink")).await.expect("opens");
        let home = with_log(&home(&service).await, log);
        let metadata = open(&home).await;
        grow(&metadata, "d", 3).await;
        let raw = rusqlite::Connection::open(&file).expect("opens");
        raw.execute("DELETE FROM mink_log WHERE idx > 1", []).expect("deletes");
        let error = metadata.submit(create("e")).await.expect_err("the database is behind");
        assert!(
            matches!(&error, MetadataError::Failed { reason } if reason.contains("lost rows")),
            "{error}"
        );
        assert_eq!(metadata.submit(create("f")).await, Err(error), "and stays ended");
    });
}

#[test]
fn a_follower_whose_next_rows_were_truncated_loads_the_snapshot() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("meta.db");
    sim(3, |service| async move {
        let name = cluster("mink");
        let open_log = || SqliteLog::open(&service, Database::File(file.clone()), &name);
        let first = with_log(&home(&service).await, open_log().await.expect("opens"));
        let second = with_log(&first, open_log().await.expect("opens"));
        let writer = open(&first).await;
        let me = register(&writer, 1).await;
        let slow = MetadataConfig { poll_alone: Duration::from_mins(1), ..MetadataConfig::default() };
        let follower = Metadata::open(second, slow).await.expect("opens");
        grow(&writer, "d", 20).await;
        write_snapshot(&first, &writer.view(), me, 2).await.expect("writes");
        assert_eq!(follower.witness().index, LogIndex(1), "it has not looked yet");
        let result = follower.submit(create("mine")).await.expect("a result");
        assert!(matches!(result, CommandResult::Done(_)));
        let state = writer.wait_for(follower.witness().index).await.expect("follows");
        assert_eq!(state.digest(), follower.view().digest());
        assert_eq!(state.databases().count(), 21);
    });
}

#[test]
fn an_idle_node_writes_nothing_and_reads_no_rows() {
    sim(1, |service| async move {
        let home = home(&service).await;
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let log = FaultyLog::new(Arc::clone(&home.log), move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            Coins::Well
        });
        let metadata = open(&with_log(&home, log)).await;
        let me = register(&metadata, 1).await;
        let keeper = metadata.keep_snapshots(me, 100, 10);
        service.sleep(Duration::from_secs(10)).await;
        let before = calls.load(Ordering::Relaxed);
        service.sleep(Duration::from_mins(10)).await;
        assert_eq!(calls.load(Ordering::Relaxed), before);
        keeper.cancel();
        metadata.stop().await;
    });
}

#[test]
fn views_and_changes_follow_in_order() {
    sim(1, |service| async move {
        let metadata = open(&home(&service).await).await;
        let mut changes = metadata.changes();
        assert_eq!(changes.next().await.map(|state| state.witness().index), Some(LogIndex(0)));
        let follower = service.spawn("follower", async move {
            let mut last = LogIndex(0);
            while last < LogIndex(30) {
                let state = changes.next().await.expect("goes on");
                assert!(state.witness().index > last);
                last = state.witness().index;
            }
        });
        grow(&metadata, "d", 30).await;
        assert_eq!(follower.join().await, mink_rt::TaskEnd::Finished);
    });
}

#[test]
fn snapshots_are_kept_as_rows_come_and_old_ones_go() {
    sim(1, |service| async move {
        let home = home(&service).await;
        let metadata = open(&home).await;
        let me = register(&metadata, 1).await;
        let keeper = metadata.keep_snapshots(me, 10, 3);
        for round in 0..6 {
            grow(&metadata, &format!("r{round}x"), 11).await;
            let reached = metadata.witness().index;
            let enough = |place: &crate::SnapshotPlace| place.witness.index.0 + 11 > reached.0;
            while !home.log.latest_snapshot().await.expect("reads").as_ref().is_some_and(enough) {
                service.sleep(Duration::from_millis(10)).await;
            }
        }
        service.sleep(Duration::from_secs(1)).await;
        let prefix = mink_object::ObjectKey::snapshot_prefix(&home.cluster);
        let (found, _) = mink_object::list_all(&*home.store, &prefix, 100).await.expect("lists");
        assert_eq!(found.len(), crate::SNAPSHOTS_KEPT);
        let rows = home.log.read_after(LogIndex(0), 1_000).await.expect("reads");
        assert!(rows.len() < 30, "{} rows", rows.len());
        keeper.cancel();
        metadata.stop().await;
        assert_eq!(open(&home).await.view().digest(), metadata.view().digest());
    });
}

#[test]
fn beats_fare_by_both_coins() {
    sim(1, |service| async move {
        let home = home(&service).await;
        let ttl = Duration::from_secs(10);
        let beat = |counter| crate::Beat { incarnation: mink_types::Incarnation(1), counter, ttl };
        for (counter, coins, there) in [
            (1, Coins::Well, true),
            (2, Coins::AnswerLost, true),
            (3, Coins::Refused, false),
            (4, Coins::RequestLost, false),
        ] {
            let faulty = FaultyLog::new(Arc::clone(&home.log), move |_| coins);
            let outcome = faulty.beat(beat(counter)).await;
            let told = matches!(coins, Coins::Well | Coins::Refused);
            assert_eq!(matches!(outcome, Outcome::Unknown(_)), !told, "{coins:?}");
            let stored = home.log.beats().await.expect("reads")[0].counter;
            assert_eq!(stored == counter, there, "{coins:?}");
        }
    });
}

/// Looks at the view at the very moment of the answer.
struct Look {
    metadata: Metadata,
    seen: std::sync::Mutex<Option<LogIndex>>,
}

impl std::task::Wake for Look {
    fn wake(self: Arc<Self>) {
        *self.seen.lock().expect("one thread") = Some(self.metadata.witness().index);
    }
}

#[test]
fn whoever_is_answered_finds_its_command_in_the_view() {
    sim(1, |service| async move {
        let metadata = open(&home(&service).await).await;
        let look = Arc::new(Look { metadata: metadata.clone(), seen: std::sync::Mutex::new(None) });
        let waker = std::task::Waker::from(Arc::clone(&look));
        let mut submitted = Box::pin(metadata.submit(create("d")));
        let first = submitted.as_mut().poll(&mut std::task::Context::from_waker(&waker));
        assert!(first.is_pending());
        metadata.wait_for(LogIndex(1)).await.expect("applied");
        let created = submitted.await;
        assert!(matches!(created, Ok(CommandResult::Done(Answer::DatabaseCreated(_)))), "{created:?}");
        let seen = *look.seen.lock().expect("one thread");
        assert_eq!(seen, Some(LogIndex(1)), "the view was shown before the answer");
        metadata.stop().await;
    });
}
