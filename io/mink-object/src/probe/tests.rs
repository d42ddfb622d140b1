//! Stores that lie, and stores that only look like it.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use mink_types::{ClusterName, ObjectKey, Outcome};

use super::{CREATORS, ProbeVerdict, probe};
use crate::tests::{Plan, key, memory, service};
use crate::{
    DeleteRefused, FaultAnswer, GetError, ListCursor, ListPage, ObjectMeta, ObjectStore, Payload, PutRefused,
    Span, StoreHealth, StoreStats, list_all,
};

/// A store that drops the condition: every put succeeds and overwrites (P-5).
#[derive(Debug)]
struct Liar {
    inner: Arc<dyn ObjectStore>,
    puts: AtomicUsize,
    /// Every n-th put is told "exists" by a store that overwrote all the same; 0 for none.
    denies: usize,
}

#[async_trait]
impl ObjectStore for Liar {
    async fn put(&self, key: &ObjectKey, payload: &Payload) -> Outcome<(), PutRefused> {
        let gone = self.inner.delete(std::slice::from_ref(key)).await;
        assert!(gone.iter().all(|(_, outcome)| outcome.is_done()));
        let outcome = self.inner.put(key, payload).await;
        let count = self.puts.fetch_add(1, Ordering::SeqCst);
        // The first put of each race is told the truth, so that there is one winner on paper.
        if self.denies > 0 && !count.is_multiple_of(self.denies) {
            return Outcome::Refused(PutRefused::Exists);
        }
        outcome
    }
    async fn get(&self, key: &ObjectKey, span: Span) -> Result<Bytes, GetError> {
        self.inner.get(key, span).await
    }
    async fn head(&self, key: &ObjectKey) -> Result<ObjectMeta, GetError> {
        self.inner.head(key).await
    }
    async fn list(&self, p: &ObjectKey, c: Option<&ListCursor>, limit: usize) -> Result<ListPage, GetError> {
        self.inner.list(p, c, limit).await
    }
    async fn delete(&self, keys: &[ObjectKey]) -> Vec<(ObjectKey, Outcome<(), DeleteRefused>)> {
        self.inner.delete(keys).await
    }
    fn health(&self) -> StoreHealth {
        StoreHealth::Well
    }
    fn stats(&self) -> StoreStats {
        StoreStats::default()
    }
    fn address(&self) -> String {
        "liar://".into()
    }
    fn needs_put_budget(&self) -> bool {
        false
    }
}

async fn probed(stores: Vec<Arc<dyn ObjectStore>>) -> ProbeVerdict {
    let cluster = ClusterName::new("mink").expect("a valid name");
    probe(&stores, &service(), &cluster, 7).await
}

fn lies(verdict: &ProbeVerdict) -> bool {
    matches!(verdict, ProbeVerdict::Lies { .. })
}

#[tokio::test]
async fn p_5_the_probe_finds_stores_that_drop_the_condition() {
    for denies in [0, CREATORS] {
        let inner: Arc<dyn ObjectStore> = memory().open(None);
        let liar = Liar { inner: Arc::clone(&inner), puts: AtomicUsize::new(0), denies };
        let verdict = probed(vec![Arc::new(liar)]).await;
        assert!(lies(&verdict), "{denies}: {verdict:?}");
        assert_eq!(list_all(&*inner, &key("mink"), 9).await, Ok((Vec::new(), false)), "it cleans up");
    }
}

#[tokio::test]
async fn k_2_the_probe_finds_endpoints_that_do_not_know_each_other() {
    let place = memory();
    let verdict = probed(vec![place.open(None), place.open(None)]).await;
    assert!(lies(&verdict), "{verdict:?}");
}

#[tokio::test]
async fn k_4_the_probe_resolves_conflicts_and_lost_answers() {
    let plan =
        [(false, FaultAnswer::Status(409)), (true, FaultAnswer::Lost), (false, FaultAnswer::Status(503))];
    let store = memory().open(Some(Plan::of(&plan)));
    assert_eq!(probed(vec![store]).await, ProbeVerdict::Sound);
}

#[tokio::test]
async fn the_probe_gives_no_verdict_on_a_store_that_refuses() {
    let plan: Vec<_> = std::iter::repeat_n((false, FaultAnswer::Status(403)), 64).collect();
    let store = memory().open(Some(Plan::of(&plan)));
    assert!(matches!(probed(vec![store]).await, ProbeVerdict::Undecided { .. }));
    assert!(matches!(probed(vec![]).await, ProbeVerdict::Undecided { .. }));
}
