//! What a node finds at its start: identity, witness, snapshots, and recovery of a database that is behind (I13).
use std::sync::Arc;

use bytes::Bytes;
use mink_object::{MemoryStore, ObjectKey, Payload};
use mink_types::{ClusterUuid, LogIndex, Outcome};

use super::{create, grow, home, memory_log, open, register, sim, with_log};
use crate::{
    Home, IdentityError, LoadError, Metadata, MetadataConfig, RecoverError, Recovered, ensure_identity,
    recover, witness_of_store, write_snapshot,
};

const FRESH: ClusterUuid = ClusterUuid([1; 16]);
const OTHER: ClusterUuid = ClusterUuid([2; 16]);

fn without_store(home: &Home) -> Home {
    Home { store: Arc::new(MemoryStore::new()), ..home.clone() }
}

async fn without_database(home: &Home) -> Home {
    with_log(home, memory_log(&home.service).await)
}

#[test]
fn an_empty_pair_becomes_a_cluster_and_stays_it() {
    sim(1, |service| async move {
        let home = home(&service).await;
        assert_eq!(ensure_identity(&home, FRESH).await, Ok(FRESH));
        assert_eq!(ensure_identity(&home, OTHER).await, Ok(FRESH));
        assert!(home.log.identity().await.expect("reads").expect("there").ready);
    });
}

#[test]
fn a_creation_that_was_cut_short_is_finished_by_the_next_start() {
    sim(1, |service| async move {
        // After the first step.
        let cut = home(&service).await;
        assert_eq!(cut.log.create_identity(FRESH).await, Outcome::Done(()));
        assert_eq!(ensure_identity(&cut, OTHER).await, Ok(FRESH));
        assert!(cut.log.identity().await.expect("reads").expect("there").ready);
        // After the second: the store has it, the database was not told.
        let donor = home(&service).await;
        ensure_identity(&donor, FRESH).await.expect("made");
        let cut = without_database(&donor).await;
        assert_eq!(cut.log.create_identity(FRESH).await, Outcome::Done(()));
        assert_eq!(ensure_identity(&cut, OTHER).await, Ok(FRESH));
        assert!(cut.log.identity().await.expect("reads").expect("there").ready);
    });
}

#[test]
fn two_nodes_that_start_at_once_agree() {
    for seed in 0..20 {
        sim(seed, |service| async move {
            let home = home(&service).await;
            let (one, two) = futures::join!(ensure_identity(&home, FRESH), ensure_identity(&home, OTHER));
            assert_eq!(one, two);
            assert!(one.is_ok());
        });
    }
}

#[test]
fn i13_one_half_without_the_other_or_two_that_differ_are_refused_with_the_remedy() {
    sim(1, |service| async move {
        let first = home(&service).await;
        ensure_identity(&first, FRESH).await.expect("made");
        let second = home(&service).await;
        ensure_identity(&second, OTHER).await.expect("made");

        let no_store = without_store(&first);
        let error = ensure_identity(&no_store, FRESH).await.expect_err("no store");
        assert!(matches!(error, IdentityError::StoreEmpty { uuid: FRESH, .. }), "{error}");
        assert!(error.to_string().contains("--storage"));
        let no_database = without_database(&first).await;
        let error = ensure_identity(&no_database, FRESH).await.expect_err("no database");
        assert!(matches!(error, IdentityError::DatabaseEmpty { uuid: FRESH, .. }), "{error}");
        assert!(error.to_string().contains("mink metadata recover"));
        let mixed = Home { log: Arc::clone(&second.log), ..first.clone() };
        let error = ensure_identity(&mixed, FRESH).await.expect_err("they differ");
        assert!(
            matches!(error, IdentityError::Differ { in_store: FRESH, in_database: OTHER, .. }),
            "{error}"
        );
        assert_eq!(no_database.log.identity().await, Ok(None), "nothing was written");

        let damaged = home(&service).await;
        let payload = Payload::from(Bytes::from_static(b"mink-identity 1\nwhat?\n"));
        let _ = damaged.store.put(&ObjectKey::identity(&damaged.cluster), &payload).await;
        let error = ensure_identity(&damaged, FRESH).await.expect_err("damaged");
        assert!(matches!(error, IdentityError::Damaged { .. }), "{error}");
    });
}

/// A cluster with a snapshot at row 11 and ten rows after it; few rows are kept before it.
async fn lived(home: &Home) -> Metadata {
    let metadata = open(home).await;
    let me = register(&metadata, 1).await;
    grow(&metadata, "early", 10).await;
    write_snapshot(home, &metadata.view(), me, 2).await.expect("writes");
    grow(&metadata, "late", 10).await;
    metadata
}

#[test]
fn p_8_a_start_from_the_snapshot_gives_the_state_of_the_whole_log() {
    sim(1, |service| async move {
        let home = home(&service).await;
        let before = lived(&home).await;
        before.stop().await;
        let rows = home.log.read_after(LogIndex(0), 1_000).await.expect("reads");
        assert_eq!(rows.first().map(|row| row.index), Some(LogIndex(10)), "older rows are gone");
        let after = open(&home).await;
        assert_eq!(after.view().digest(), before.view().digest());
        grow(&after, "more", 1).await;
    });
}

#[test]
fn a_damaged_or_missing_snapshot_is_passed_over_for_an_older_one() {
    sim(1, |service| async move {
        let home = home(&service).await;
        let metadata = lived(&home).await;
        let (state, me) = (metadata.view(), mink_types::Incarnation(1));
        // A second snapshot, of which the store later loses the bytes; rows since the first are kept.
        let place = write_snapshot(&home, &state, me, 1_000).await.expect("writes");
        let _ = home.store.delete(std::slice::from_ref(&place.key)).await;
        metadata.stop().await;
        let again = open(&home).await;
        assert_eq!(again.view().digest(), state.digest());
        again.stop().await;
        let _ = home.store.put(&place.key, &Payload::from(Bytes::from_static(b"no snapshot at all"))).await;
        assert_eq!(open(&home).await.view().digest(), state.digest());
    });
}

#[test]
fn i13_a_database_behind_the_store_is_refused_and_recovered() {
    sim(1, |service| async move {
        let home = home(&service).await;
        let metadata = lived(&home).await;
        let me = mink_types::Incarnation(1);
        write_snapshot(&home, &metadata.view(), me, 1_000).await.expect("writes");
        metadata.stop().await;
        let snapshot = metadata.witness();
        assert_eq!(witness_of_store(&home).await.expect("lists").map(|place| place.witness), Some(snapshot));

        // The database comes back from an old backup: two rows.
        let backup = without_database(&home).await;
        let cluster = metadata.view().cluster();
        assert_eq!(backup.log.create_identity(cluster).await, Outcome::Done(()));
        assert_eq!(backup.log.confirm_identity(cluster).await, Outcome::Done(()));
        let donor = without_database(&home).await;
        let mut state = mink_metadata::State::new(cluster);
        for name in ["x", "y"] {
            let mut group = mink_metadata::Group::new();
            let request = mink_types::RequestId {
                session: mink_types::SessionId([3; 16]),
                counter: state.witness().index.0 + 1,
            };
            group.push(request, &create(name)).expect("fits");
            let row = group.row(state.witness());
            assert_eq!(backup.log.append(state.witness(), &row).await, Outcome::Done(()));
            let _ = state.apply(&row).expect("follows");
        }
        let error = Metadata::open(backup.clone(), MetadataConfig::default()).await.expect_err("behind");
        assert!(matches!(error, LoadError::Behind { .. }), "{error}");
        assert!(error.to_string().contains("mink metadata recover"));

        for target in [&backup, &donor] {
            let before = target.log.last().await.expect("reads");
            assert_eq!(recover(target).await, Ok(Recovered::Refilled { before, snapshot }));
            assert_eq!(
                recover(target).await,
                Ok(Recovered::NothingToDo { database: snapshot }),
                "repeating is safe"
            );
            let node = open(target).await;
            assert_eq!(node.view().digest(), metadata.view().digest());
            node.stop().await;
        }
        let node = open(&backup).await;
        grow(&node, "after", 3).await;
        node.stop().await;
        assert_eq!(open(&backup).await.view().databases().count(), 23);
    });
}

#[test]
fn i13_a_database_of_another_history_is_refused_and_never_overwritten() {
    sim(1, |service| async move {
        let first = home(&service).await;
        let metadata = lived(&first).await;
        metadata.stop().await;
        // The same cluster, but the database went another way for longer.
        let forked = without_database(&first).await;
        let cluster = metadata.view().cluster();
        let other = Home { store: Arc::new(MemoryStore::new()), ..forked.clone() };
        assert_eq!(ensure_identity(&other, cluster).await, Ok(cluster));
        let node = open(&other).await;
        grow(&node, "other", 30).await;
        node.stop().await;
        let error = Metadata::open(forked.clone(), MetadataConfig::default()).await.expect_err("differs");
        assert!(matches!(error, LoadError::Differs { .. }), "{error}");
        let error = recover(&forked).await.expect_err("forked");
        assert!(matches!(error, RecoverError::Forked { index: LogIndex(11), .. }), "{error}");
        assert_eq!(forked.log.last().await, other.log.last().await);
    });
}

#[test]
fn nothing_is_recovered_from_a_store_that_knows_nothing() {
    sim(1, |service| async move {
        let empty = home(&service).await;
        assert!(matches!(recover(&empty).await, Err(RecoverError::NoCluster { .. })));
        ensure_identity(&empty, FRESH).await.expect("made");
        assert_eq!(recover(&empty).await, Err(RecoverError::NoSnapshot));
    });
}
