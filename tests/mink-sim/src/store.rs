//! The simulated object store: real rules in memory, each request a task of the world that lives on when its sender dies.
//!
//! Lives on: the simulation's thread.
//! Owns: nothing; the objects lie in the memory store underneath, the faults in the weather.
//! Invariants: nothing is overwritten (the memory store's rule); a deletion is looked at by the ledger at the moment it happens.
use crate::ledger::Ledger;
use crate::weather::{Cut, Place, Weather, hash};
use async_trait::async_trait;
use bytes::Bytes;
use futures::channel::oneshot;
use mink_object::{
    Counted, DeleteRefused, FaultAnswer, FaultSeam, GetError, ListCursor, ListPage, MemoryStore, ObjectKey,
    ObjectMeta, ObjectStore, Op, Outcome, Payload, PutRefused, Request, Span, StoreHealth, StoreLayer,
    StoreStats,
};
use mink_rt::Service;
use std::sync::Arc;
use std::time::Duration;

/// A client of the store gives a request up after this; it may happen later all the same.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);

/// How long a node that is cut off waits for a connection.
const CUT_OFF: Duration = Duration::from_millis(200);

/// The store as nodes see it.
#[derive(Clone, Debug)]
pub(crate) struct SimStore {
    service: Service,
    inner: Arc<dyn ObjectStore>,
    /// Whether this node is cut off from the store.
    cut: Cut,
}

impl SimStore {
    pub(crate) fn new(
        service: &Service,
        memory: &Arc<MemoryStore>,
        weather: &Arc<Weather>,
        ledger: &Arc<Ledger>,
    ) -> SimStore {
        let memory = Arc::clone(memory) as Arc<dyn ObjectStore>;
        let watched = Arc::new(Watched { inner: memory, ledger: Arc::clone(ledger) });
        let seam = Arc::new(Seam(Arc::clone(weather)));
        let inner = Arc::new(Counted::new(watched, Some(seam)));
        SimStore { service: service.clone(), inner, cut: Cut::default() }
    }

    /// The same store as one node sees it, which may be cut off from it.
    pub(crate) fn of_node(&self, cut: &Cut) -> SimStore {
        SimStore { cut: cut.clone(), ..self.clone() }
    }

    /// Sends a request; none when there is no answer in time.
    async fn send<T, F>(&self, request: impl FnOnce(Arc<dyn ObjectStore>) -> F) -> Option<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        if self.cut.is() {
            self.service.sleep(CUT_OFF).await;
            return None;
        }
        let (answer, answered) = oneshot::channel();
        let running = request(Arc::clone(&self.inner));
        drop(self.service.spawn("store request", async move {
            // Its sender may have died.
            drop(answer.send(running.await));
        }));
        self.service.timeout(REQUEST_TIMEOUT, answered).await.ok()?.ok()
    }
}

fn timed_out() -> GetError {
    GetError::Unavailable { reason: "simulated: no answer in time".into() }
}

#[async_trait]
impl ObjectStore for SimStore {
    async fn put(&self, key: &ObjectKey, payload: &Payload) -> Outcome<(), PutRefused> {
        let (key, payload) = (key.clone(), payload.clone());
        let done = self.send(|inner| async move { inner.put(&key, &payload).await }).await;
        done.unwrap_or_else(|| Outcome::unknown("simulated: no answer in time"))
    }

    async fn get(&self, key: &ObjectKey, span: Span) -> Result<Bytes, GetError> {
        let key = key.clone();
        self.send(|inner| async move { inner.get(&key, span).await }).await.ok_or_else(timed_out)?
    }

    async fn head(&self, key: &ObjectKey) -> Result<ObjectMeta, GetError> {
        let key = key.clone();
        self.send(|inner| async move { inner.head(&key).await }).await.ok_or_else(timed_out)?
    }

    async fn list(
        &self,
        prefix: &ObjectKey,
        cursor: Option<&ListCursor>,
        limit: usize,
    ) -> Result<ListPage, GetError> {
        let (prefix, cursor) = (prefix.clone(), cursor.cloned());
        let done = self.send(|inner| async move { inner.list(&prefix, cursor.as_ref(), limit).await });
        done.await.ok_or_else(timed_out)?
    }

    async fn delete(&self, keys: &[ObjectKey]) -> Vec<(ObjectKey, Outcome<(), DeleteRefused>)> {
        let own = keys.to_vec();
        let done = self.send(|inner| async move { inner.delete(&own).await }).await;
        let unknown = || Outcome::unknown("simulated: no answer in time");
        done.unwrap_or_else(|| keys.iter().map(|key| (key.clone(), unknown())).collect())
    }

    fn health(&self) -> StoreHealth {
        self.inner.health()
    }

    fn stats(&self) -> StoreStats {
        self.inner.stats()
    }

    fn address(&self) -> String {
        "sim://store".into()
    }

    fn needs_put_budget(&self) -> bool {
        true
    }
}

/// The weather over the store.
#[derive(Debug)]
struct Seam(Arc<Weather>);

#[async_trait]
impl FaultSeam for Seam {
    async fn before(&self, request: Request<'_>) -> Option<FaultAnswer> {
        let what =
            hash(&[request.op.label().as_bytes(), request.key.as_bytes(), &request.bytes.to_le_bytes()]);
        self.0.arrive(Place::Store, what, request.op == Op::Put).await
    }

    async fn after(&self, request: Request<'_>) -> Option<FaultAnswer> {
        self.0.answer_back(Place::Store, request.op == Op::Put).await
    }
}

/// Shows deletions to the ledger when they happen.
#[derive(Debug)]
struct Watched {
    inner: Arc<dyn ObjectStore>,
    ledger: Arc<Ledger>,
}

#[async_trait]
impl StoreLayer for Watched {
    fn below(&self) -> &dyn ObjectStore {
        &*self.inner
    }

    async fn delete(&self, keys: &[ObjectKey]) -> Vec<(ObjectKey, Outcome<(), DeleteRefused>)> {
        self.ledger.deleting(keys);
        self.inner.delete(keys).await
    }
}
