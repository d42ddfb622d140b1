//! What a node says, and how it ends, when the places that it writes to are gone.
//!
//! Lives on: the simulation's thread.
use super::suspect::PATIENCE;
use super::{Machine, Site, TTL, story};
use crate::stall::STALLED_AFTER;
use crate::{NodeConfig, NodeEnd, Stores};
use async_trait::async_trait;
use mink_object::{ObjectKey, ObjectStore, Outcome, Payload, PutRefused, StoreLayer};
use mink_types::{BucketId, BucketIndex, Offset, TableOptions};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A store that takes nothing while it is away, as a directory that was removed.
#[derive(Debug)]
struct Away {
    below: Arc<dyn ObjectStore>,
    away: AtomicBool,
}

#[async_trait]
impl StoreLayer for Away {
    fn below(&self) -> &dyn ObjectStore {
        &*self.below
    }

    async fn put(&self, key: &ObjectKey, payload: &Payload) -> Outcome<(), PutRefused> {
        if self.away.load(Ordering::Relaxed) {
            return Outcome::unknown("make a temporary: no such directory");
        }
        self.below.put(key, payload).await
    }
}

async fn why_not_ready(machine: &Machine) -> String {
    machine.node.admin().status().await.not_ready.join("; ")
}

fn on(site: &Site, store: &Arc<Away>) -> NodeConfig {
    let config = site.config(1);
    let store = Arc::clone(store) as Arc<dyn ObjectStore>;
    let stores = Stores { stream: Arc::clone(&store), wal: store, ..config.stores };
    NodeConfig { stores, ..config }
}

#[test]
fn i19_a_node_whose_store_takes_no_writes_is_not_ready_until_it_does() {
    story(|site| async move {
        let store = Arc::new(Away { below: Arc::clone(&site.store), away: AtomicBool::new(false) });
        let machine = site.start(on(&site, &store)).await.expect("starts");
        let table = machine.create_with("t", TableOptions::default()).await;
        assert!(machine.node.admin().wait_open(table, PATIENCE).await);
        let bucket = BucketId::unpartitioned(table, BucketIndex(0));
        assert_eq!(machine.append(bucket, 5).await, Offset(0));
        store.away.store(true, Ordering::Relaxed);
        let told = async {
            site.sleep(STALLED_AFTER / 2).await;
            assert_eq!(why_not_ready(&machine).await, "", "a store may be away for a moment");
            site.until(STALLED_AFTER * 2, async || !why_not_ready(&machine).await.is_empty()).await;
            let why = why_not_ready(&machine).await;
            for words in ["no write has become durable", &*store.address(), "none is lost"] {
                assert!(why.contains(words), "{why}");
            }
            store.away.store(false, Ordering::Relaxed);
        };
        let (appended, ()) = futures::join!(machine.append(bucket, 5), told);
        assert_eq!(appended, Offset(5), "it waited, and was not refused");
        site.until(PATIENCE, async || why_not_ready(&machine).await.is_empty()).await;
        // Nothing is written: nothing stands still.
        store.away.store(true, Ordering::Relaxed);
        site.sleep(STALLED_AFTER * 3).await;
        assert_eq!(why_not_ready(&machine).await, "");
        machine.node.stop().await;
    });
}

#[test]
fn i3_a_node_whose_data_directory_is_removed_ends_and_says_so() {
    story(|site| async move {
        let mut machine = site.start(site.config(1)).await.expect("starts");
        let service = site.world.runtime().service();
        assert!(service.timeout(TTL * 2, machine.node.ended()).await.is_err(), "it runs");
        std::fs::remove_dir_all(site.root.path().join("node-1")).expect("removed");
        let ended = service.timeout(TTL, machine.node.ended()).await.expect("looks as often as it beats");
        let NodeEnd::Failed { what } = &ended else { panic!("{ended}") };
        assert!(what.contains("node-1 was removed") && what.contains("--data-dir"), "{what}");
        assert!(!machine.node.admin().status().await.lease, "it reads nothing more");
        machine.node.stop().await;
        site.sleep(Duration::from_secs(1)).await;
    });
}
