//! The handle by which a node speaks to the command log: submit, views, waiting, snapshots.
//!
//! Lives on: anywhere; the driver behind it on the service runtime.
//! Owns: nothing but the way to the driver.     Talks to: driver (a bounded queue there, watched views back).
//! Invariants: I12 (an answer is the command's own result; no lost commit answer becomes a failure), I20 (bounded queue).
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::channel::oneshot;
use mink_metadata::{ApplyError, Command, CommandResult, GroupError, SnapshotError, State};
use mink_object::{ObjectKey, ObjectStore};
use mink_rt::{Service, Task};
use mink_types::{ClusterName, ClusterUuid, Incarnation, LogIndex, RequestId, RowHash, SessionId, Witness};
use tokio::sync::{mpsc, watch};

use crate::driver::{Driver, Submission};
use crate::identity::{IdentityError, ensure_identity};
use crate::log::{CommandLog, LogError, SnapshotPlace};
use crate::snapshots::{self, SnapshotWriteError, write_snapshot};

/// Where a cluster's metadata is at home.
#[derive(Clone, Debug)]
pub struct Home {
    pub service: Service,
    pub log: Arc<dyn CommandLog>,
    pub store: Arc<dyn ObjectStore>,
    pub cluster: ClusterName,
}

/// How the driver works.
#[derive(Clone, Debug)]
pub struct MetadataConfig {
    /// Commands that may wait; beyond it [`Metadata::submit`] waits for room.
    pub queue_max: usize,
    /// How often to look for rows of other processes while this node is the only one that is registered.
    pub poll_alone: Duration,
    /// The same while other nodes are registered.
    pub poll_shared: Duration,
    /// First and longest pause after the database did not answer.
    pub retry_first: Duration,
    pub retry_max: Duration,
}

impl Default for MetadataConfig {
    fn default() -> MetadataConfig {
        MetadataConfig {
            queue_max: 1_024,
            poll_alone: Duration::from_secs(1),
            poll_shared: Duration::from_millis(200),
            retry_first: Duration::from_millis(20),
            retry_max: Duration::from_secs(2),
        }
    }
}

/// Why the metadata could not be loaded.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LoadError {
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error(transparent)]
    Log(#[from] LogError),
    #[error("could not read metadata snapshots: {reason}")]
    Store { reason: String },
    /// The database has lost acknowledged commands (I13).
    #[error(
        "the database ends at row {}, but the store proves row {}: the database has lost acknowledged commands (was it \
         restored from a backup?); run `mink metadata recover`", .database.index, .store.index
    )]
    Behind { database: Witness, store: Witness },
    /// The database went another way than the store proves (I13).
    #[error(
        "row {} of the database has hash {found}, the store proves {}: the database belongs to another history; restore \
         the right one, or run `mink metadata recover`", .store.index, .store.hash
    )]
    Differs { store: Witness, found: RowHash },
    #[error("rows are missing in the database and no snapshot covers them; run `mink metadata recover`")]
    NoSnapshot,
    #[error("{key}: {error}")]
    Snapshot { key: ObjectKey, error: SnapshotError },
    #[error(transparent)]
    Apply(ApplyError),
}

/// Why a command has no result. It may be in the log all the same.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MetadataError {
    /// The node shuts down.
    #[error("the node is stopping")]
    Stopped,
    /// The log cannot be followed any more (I13): the node must stop.
    #[error("the command log cannot be followed: {reason}")]
    Failed { reason: String },
    /// The command is too large for a row; it was not sent.
    #[error(transparent)]
    TooLarge(GroupError),
}

/// What the driver shows.
#[derive(Clone, Debug)]
pub(crate) struct Published {
    pub(crate) state: State,
    /// Why the driver has ended.
    pub(crate) ended: Option<MetadataError>,
    /// Why the database does not answer now.
    pub(crate) trouble: Option<String>,
}

/// A handle on the metadata. Cheap to clone.
#[derive(Clone)]
pub struct Metadata {
    inner: Arc<Inner>,
}

struct Inner {
    home: Home,
    queue: mpsc::Sender<Submission>,
    published: watch::Receiver<Published>,
    stop: watch::Sender<bool>,
    task: Mutex<Option<Task>>,
}

impl std::fmt::Debug for Metadata {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metadata").field("witness", &self.witness()).finish_non_exhaustive()
    }
}

impl Metadata {
    /// Checks identity and witness, loads the state, and starts the driver.
    pub async fn open(home: Home, config: MetadataConfig) -> Result<Metadata, LoadError> {
        let fresh = ClusterUuid(random_id(&home.service));
        let cluster = ensure_identity(&home, fresh).await?;
        let state = snapshots::load(&home, cluster).await?;
        Ok(Metadata::start(home, state, config))
    }

    fn start(home: Home, state: State, config: MetadataConfig) -> Metadata {
        let (queue, submissions) = mpsc::channel(config.queue_max.max(1));
        let (publish, published) =
            watch::channel(Published { state: state.clone(), ended: None, trouble: None });
        let (stop, stopping) = watch::channel(false);
        let session = SessionId(random_id(&home.service));
        let driver = Driver::new(home.clone(), config, state, session, submissions, publish, stopping);
        let task = home.service.spawn("metadata driver", driver.run());
        let task = Mutex::new(Some(task));
        Metadata { inner: Arc::new(Inner { home, queue, published, stop, task }) }
    }

    /// Puts a command into the log and gives its result. Waits for room, for the database, and through lost answers; fails
    /// only when the driver ends. Dropping the future takes nothing back.
    pub async fn submit(&self, command: Command) -> Result<CommandResult, MetadataError> {
        self.send(None, command).await
    }

    /// The same under a request id of a client: repeated after an unknown end, it is applied once and answered alike. The
    /// counters of a session must grow.
    pub async fn submit_as(
        &self,
        request: RequestId,
        command: Command,
    ) -> Result<CommandResult, MetadataError> {
        self.send(Some(request), command).await
    }

    async fn send(
        &self,
        request: Option<RequestId>,
        command: Command,
    ) -> Result<CommandResult, MetadataError> {
        let (answer, result) = oneshot::channel();
        if self.inner.queue.send(Submission { request, command, answer }).await.is_err() {
            return Err(self.ended());
        }
        match result.await {
            Ok(result) => result,
            Err(oneshot::Canceled) => Err(self.ended()),
        }
    }

    fn ended(&self) -> MetadataError {
        self.inner.published.borrow().ended.clone().unwrap_or(MetadataError::Stopped)
    }

    /// The newest state that was applied. A cheap clone.
    pub fn view(&self) -> State {
        self.inner.published.borrow().state.clone()
    }

    /// How far the log was applied.
    pub fn witness(&self) -> Witness {
        self.inner.published.borrow().state.witness()
    }

    /// Why the database does not answer, if it does not.
    pub fn trouble(&self) -> Option<String> {
        self.inner.published.borrow().trouble.clone()
    }

    /// The state once `index` was applied.
    pub async fn wait_for(&self, index: LogIndex) -> Result<State, MetadataError> {
        self.wait_until(|state| state.witness().index >= index).await
    }

    /// The first state that `suits`.
    pub async fn wait_until(&self, mut suits: impl FnMut(&State) -> bool) -> Result<State, MetadataError> {
        let mut published = self.inner.published.clone();
        let found = published.wait_for(|now| now.ended.is_some() || suits(&now.state)).await;
        let now = found.map_err(|_| MetadataError::Stopped)?.clone();
        match now.ended {
            Some(error) if !suits(&now.state) => Err(error),
            _ => Ok(now.state),
        }
    }

    /// Follows the states, from the current one on.
    pub fn changes(&self) -> Changes {
        let mut published = self.inner.published.clone();
        published.mark_changed();
        Changes { published, last: None }
    }

    /// The cluster's home: its log (for heartbeats), store and name.
    pub fn home(&self) -> &Home {
        &self.inner.home
    }

    /// Writes a snapshot of the current view now.
    pub async fn snapshot(
        &self,
        by: Incarnation,
        rows_kept: u64,
    ) -> Result<SnapshotPlace, SnapshotWriteError> {
        let state = self.view();
        write_snapshot(&self.inner.home, &state, by, rows_kept).await
    }

    /// Writes a snapshot whenever `every` rows have come since the last recorded one, until the driver ends or the task is
    /// cancelled. For the lease holder alone.
    pub fn keep_snapshots(&self, by: Incarnation, every: u64, rows_kept: u64) -> Task {
        let metadata = self.clone();
        let mut changes = self.changes();
        self.inner.home.service.spawn("metadata snapshots", async move {
            let mut recorded = loop {
                match metadata.inner.home.log.latest_snapshot().await {
                    Ok(place) => break place.map_or(0, |place| place.witness.index.0),
                    Err(error) => tracing::debug!(%error, "the last snapshot is not known yet"),
                }
                if changes.next().await.is_none() {
                    return;
                }
            };
            while let Some(state) = changes.next().await {
                if state.witness().index.0 < recorded.saturating_add(every.max(1)) {
                    continue;
                }
                match write_snapshot(&metadata.inner.home, &state, by, rows_kept).await {
                    Ok(place) => recorded = place.witness.index.0,
                    Err(error) => {
                        tracing::warn!(%error, "no metadata snapshot was written, the next row tries again");
                    }
                }
            }
        })
    }

    /// Stops the driver after the row in flight and waits for its end. Commands that still wait get
    /// [`MetadataError::Stopped`].
    pub async fn stop(&self) {
        self.inner.stop.send_replace(true);
        let task = self.inner.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            let end = task.join().await;
            tracing::debug!(?end, "metadata driver ended");
        }
    }
}

/// The states as they come; states that follow quickly may be skipped, the newest never.
#[derive(Clone, Debug)]
pub struct Changes {
    published: watch::Receiver<Published>,
    last: Option<LogIndex>,
}

impl Changes {
    /// The next state that differs from the last one given; none once the driver has ended.
    pub async fn next(&mut self) -> Option<State> {
        loop {
            self.published.changed().await.ok()?;
            let now = self.published.borrow_and_update();
            let index = now.state.witness().index;
            if self.last != Some(index) {
                self.last = Some(index);
                return Some(now.state.clone());
            }
            if now.ended.is_some() {
                return None;
            }
        }
    }
}

/// Sixteen random bytes.
fn random_id(service: &Service) -> [u8; 16] {
    let mut id = [0; 16];
    let (left, right) = id.split_at_mut(8);
    left.copy_from_slice(&service.random_u64().to_le_bytes());
    right.copy_from_slice(&service.random_u64().to_le_bytes());
    id
}
