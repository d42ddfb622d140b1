//! The simulated database: the real SQLite log in memory, each request a task of the world, with the weather over it.
//!
//! Lives on: the simulation's thread.
//! Owns: nothing.     Talks to: the SQLite log underneath, the ledger.
//! Invariants: an append whose answer is lost, or that comes long after its sender gave it up, has happened all the same.
use crate::ledger::Ledger;
use crate::weather::{Cut, Place, Weather, hash};
use async_trait::async_trait;
use futures::channel::oneshot;
use mink_metadata::Row;
use mink_object::FaultAnswer;
use mink_rt::Service;
use mink_sql::{
    AppendRefused, Beat, BeatRefused, BeatState, CommandLog, IdentityRow, LogError, SnapshotPlace,
    WriteRefused,
};
use mink_types::{ClusterUuid, Incarnation, LogIndex, Outcome, Witness};
use std::sync::Arc;
use std::time::Duration;

/// A client of the database gives a request up after this; it may happen later all the same.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// The database as nodes see it.
#[derive(Clone, Debug)]
pub(crate) struct SimLog {
    service: Service,
    inner: Arc<dyn CommandLog>,
    weather: Arc<Weather>,
    ledger: Arc<Ledger>,
    /// Whether this node is cut off from the database.
    cut: Cut,
}

impl SimLog {
    pub(crate) fn new(
        service: &Service,
        inner: Arc<dyn CommandLog>,
        weather: &Arc<Weather>,
        ledger: &Arc<Ledger>,
    ) -> SimLog {
        let (service, weather, ledger) = (service.clone(), Arc::clone(weather), Arc::clone(ledger));
        SimLog { service, inner, weather, ledger, cut: Cut::default() }
    }

    /// The same database as one node sees it, which may be cut off from it.
    pub(crate) fn of_node(&self, cut: &Cut) -> SimLog {
        SimLog { cut: cut.clone(), ..self.clone() }
    }

    async fn spawn<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        drop(self.service.spawn("database request", async move {
            // Its sender may have died.
            drop(answer.send(work.await));
        }));
        self.service.timeout(REQUEST_TIMEOUT, answered).await.ok()?.ok()
    }

    async fn read<T, F>(
        &self,
        name: &'static str,
        read: impl FnOnce(Arc<dyn CommandLog>) -> F,
    ) -> Result<T, LogError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, LogError>> + Send + 'static,
    {
        let unavailable = || LogError::Unavailable { reason: "simulated: no answer".into() };
        let (weather, running) = (Arc::clone(&self.weather), read(Arc::clone(&self.inner)));
        let cut = self.cut.clone();
        let done = self.spawn(async move {
            if cut.is() {
                return Err(unavailable());
            }
            if weather.arrive(Place::Database, hash(&[name.as_bytes()]), false).await.is_some() {
                return Err(unavailable());
            }
            let read = running.await;
            match weather.answer_back(Place::Database, false).await {
                Some(_) => Err(unavailable()),
                None => read,
            }
        });
        done.await.unwrap_or_else(|| Err(unavailable()))
    }

    async fn write<R, F>(&self, what: u64, write: impl FnOnce(Arc<dyn CommandLog>) -> F) -> Outcome<(), R>
    where
        R: From<WriteRefused> + Send + 'static,
        F: Future<Output = Outcome<(), R>> + Send + 'static,
    {
        let unknown = || Outcome::unknown("simulated: no answer");
        let (weather, running) = (Arc::clone(&self.weather), write(Arc::clone(&self.inner)));
        let (ledger, cut) = (Arc::clone(&self.ledger), self.cut.clone());
        let done = self.spawn(async move {
            if cut.is() {
                return unknown();
            }
            match weather.arrive(Place::Database, what, false).await {
                Some(FaultAnswer::Status(_)) => {
                    let reason = "simulated".into();
                    return Outcome::Refused(WriteRefused { reason }.into());
                }
                Some(FaultAnswer::Lost) => return unknown(),
                None => {}
            }
            let outcome = running.await;
            ledger.catch_up().await;
            match weather.answer_back(Place::Database, false).await {
                Some(_) => unknown(),
                None => outcome,
            }
        });
        done.await.unwrap_or_else(unknown)
    }
}

#[async_trait]
impl CommandLog for SimLog {
    async fn append(&self, previous: Witness, row: &Row) -> Outcome<(), AppendRefused> {
        let row = row.clone();
        let what = hash(&[b"append", &row.index.0.to_le_bytes(), &row.payload]);
        self.write(what, |inner| async move { inner.append(previous, &row).await }).await
    }

    async fn read_after(&self, after: LogIndex, rows_max: usize) -> Result<Vec<Row>, LogError> {
        self.read("rows", |inner| async move { inner.read_after(after, rows_max).await }).await
    }

    async fn last(&self) -> Result<Witness, LogError> {
        self.read("last", |inner| async move { inner.last().await }).await
    }

    async fn changed(&self, after: LogIndex, poll: Duration) {
        self.inner.changed(after, poll).await;
        while self.cut.is() {
            self.service.sleep(poll).await;
        }
    }

    async fn beat(&self, beat: Beat) -> Outcome<(), BeatRefused> {
        let what = hash(&[b"beat", &beat.incarnation.0.to_le_bytes(), &beat.counter.to_le_bytes()]);
        self.write(what, |inner| async move { inner.beat(beat).await }).await
    }

    async fn close_beats(&self, incarnation: Incarnation) -> Outcome<(), WriteRefused> {
        let what = hash(&[b"close", &incarnation.0.to_le_bytes()]);
        self.write(what, |inner| async move { inner.close_beats(incarnation).await }).await
    }

    async fn forget_beats(&self, upto: Incarnation) -> Outcome<(), WriteRefused> {
        let what = hash(&[b"forget", &upto.0.to_le_bytes()]);
        self.write(what, |inner| async move { inner.forget_beats(upto).await }).await
    }

    async fn beats(&self) -> Result<Vec<BeatState>, LogError> {
        self.read("beats", |inner| async move { inner.beats().await }).await
    }

    async fn identity(&self) -> Result<Option<IdentityRow>, LogError> {
        self.read("identity", |inner| async move { inner.identity().await }).await
    }

    async fn create_identity(&self, cluster: ClusterUuid) -> Outcome<(), WriteRefused> {
        self.write(1, |inner| async move { inner.create_identity(cluster).await }).await
    }

    async fn confirm_identity(&self, cluster: ClusterUuid) -> Outcome<(), WriteRefused> {
        self.write(2, |inner| async move { inner.confirm_identity(cluster).await }).await
    }

    async fn latest_snapshot(&self) -> Result<Option<SnapshotPlace>, LogError> {
        self.read("snapshot", |inner| async move { inner.latest_snapshot().await }).await
    }

    async fn record_snapshot(&self, place: &SnapshotPlace) -> Outcome<(), WriteRefused> {
        let place = place.clone();
        self.write(3, |inner| async move { inner.record_snapshot(&place).await }).await
    }

    async fn truncate(&self, upto: LogIndex) -> Outcome<(), WriteRefused> {
        self.write(4, |inner| async move { inner.truncate(upto).await }).await
    }

    async fn begin_at(&self, place: &SnapshotPlace) -> Outcome<(), WriteRefused> {
        let place = place.clone();
        self.write(5, |inner| async move { inner.begin_at(&place).await }).await
    }
}
