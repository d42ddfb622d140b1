//! The command log in SQLite: `synchronous=FULL`, `journal_mode=WAL`, one connection, foreign processes welcome.
//!
//! Lives on: service runtime; the database work on its blocking threads.
//! Owns: one connection.     Talks to: mink-rt.
//! Invariants: I1 (`Done` after the commit's sync), I12 (only a failed commit is unknown; then, as after any failed sync, the
//! handle is broken: what it could still read may not be on the disk). A full disk breaks nothing: it refuses a write before any sync.
mod schema;
mod statements;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use mink_metadata::Row;
use mink_rt::Service;
use mink_types::{ClusterName, ClusterUuid, Incarnation, LogIndex, Outcome, Witness};
use rusqlite::Connection;
use tokio::sync::watch;

use crate::log::{
    AppendRefused, Beat, BeatRefused, BeatState, CommandLog, IdentityRow, LogError, SnapshotPlace,
    WriteRefused,
};

/// How long a statement waits for another process that writes.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Where the database is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Database {
    /// A file, made when it is not there. Its directory must exist.
    File(PathBuf),
    /// In memory, gone with the last handle: goes with `memory://` storage.
    Memory,
}

/// Why a database was not opened.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OpenLogError {
    #[error("could not open the database {path}: {reason}")]
    Open { path: String, reason: String },
    #[error(
        "the database {path} was made by a newer version of mink (schema {found}, this one knows {known}); upgrade"
    )]
    Newer { path: String, found: i64, known: i64 },
}

/// The log of one cluster in an SQLite database. Clones share the connection.
#[derive(Clone)]
pub struct SqliteLog {
    service: Service,
    connection: Arc<Mutex<Shared>>,
    cluster: Arc<str>,
    /// Highest index that this process knows to be in the log.
    seen: watch::Sender<LogIndex>,
    /// Others may write to the same database, so looking is the only way to hear of it.
    foreign: bool,
}

struct Shared {
    connection: Connection,
    /// Set by a failed sync.
    broken: Option<String>,
    /// SQLite's counter of foreign changes, as of the last look.
    data_version: Option<i64>,
}

impl std::fmt::Debug for SqliteLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteLog")
            .field("cluster", &self.cluster)
            .field("foreign", &self.foreign)
            .finish_non_exhaustive()
    }
}

/// How a write transaction failed.
enum Failed {
    /// Before its commit, or without any effect.
    Clean(String),
    /// In its commit, whose pages found no room: what was written of them lies behind the end of SQLite's log, and the next commit
    /// through this connection is written over it. A process that dies before that may still find it committed.
    NoRoom(String),
    /// In its commit.
    InCommit(String),
}

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Failed {
        Failed::Clean(error.to_string())
    }
}

impl SqliteLog {
    /// Opens the database, and makes its tables when they are not there.
    pub async fn open(
        service: &Service,
        database: Database,
        cluster: &ClusterName,
    ) -> Result<SqliteLog, OpenLogError> {
        let (foreign, path) = match &database {
            Database::File(path) => (true, path.display().to_string()),
            Database::Memory => (false, "in memory".to_owned()),
        };
        let shown = path.clone();
        let opened = service.blocking("sqlite open", move || match &database {
            Database::File(file) => prepare(Connection::open(file), Some(file), &path),
            Database::Memory => prepare(Connection::open_in_memory(), None, &path),
        });
        let connection = opened
            .await
            .unwrap_or_else(|error| Err(OpenLogError::Open { path: shown, reason: error.to_string() }))?;
        let shared = Shared { connection, broken: None, data_version: None };
        Ok(SqliteLog {
            service: service.clone(),
            connection: Arc::new(Mutex::new(shared)),
            cluster: cluster.as_str().into(),
            seen: watch::Sender::new(LogIndex(0)),
            foreign,
        })
    }

    /// A log of another cluster in the same database.
    #[must_use]
    pub fn other_cluster(&self, cluster: &ClusterName) -> SqliteLog {
        SqliteLog { cluster: cluster.as_str().into(), seen: watch::Sender::new(LogIndex(0)), ..self.clone() }
    }

    /// Runs `work` with the connection on a blocking thread.
    async fn with<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce(&mut Shared) -> T + Send + 'static,
    ) -> Result<T, String> {
        let connection = Arc::clone(&self.connection);
        let run = move || work(&mut connection.lock().unwrap_or_else(PoisonError::into_inner));
        self.service.blocking(name, run).await.map_err(|error| error.to_string())
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection, &str) -> Result<T, LogError> + Send + 'static,
    ) -> Result<T, LogError> {
        let cluster = Arc::clone(&self.cluster);
        let done = self.with("sqlite read", move |shared| match &shared.broken {
            Some(reason) => Err(LogError::Broken { reason: reason.clone() }),
            None => work(&shared.connection, &cluster),
        });
        done.await.unwrap_or_else(|reason| Err(LogError::Unavailable { reason }))
    }

    /// One write transaction. `work` gives `Err(refusal)` to roll back for a reason of its own.
    async fn write<R: From<WriteRefused> + Send + 'static>(
        &self,
        work: impl FnOnce(&Connection, &str) -> Result<Result<(), R>, rusqlite::Error> + Send + 'static,
    ) -> Outcome<(), R> {
        let cluster = Arc::clone(&self.cluster);
        let done = self.with("sqlite write", move |shared| {
            let refused = |reason| Outcome::Refused(WriteRefused { reason }.into());
            if let Some(reason) = &shared.broken {
                return refused(reason.clone());
            }
            match transaction(&mut shared.connection, |connection| work(connection, &cluster)) {
                Ok(Ok(())) => Outcome::Done(()),
                Ok(Err(refusal)) => Outcome::Refused(refusal),
                Err(Failed::Clean(reason)) => refused(reason),
                Err(Failed::NoRoom(reason)) => Outcome::unknown(reason),
                Err(Failed::InCommit(reason)) => {
                    tracing::error!(
                        reason,
                        "a commit of the metadata database failed; it is not used any more: restart the node once the disk is sound"
                    );
                    shared.broken = Some(reason.clone());
                    Outcome::unknown(reason)
                }
            }
        });
        // The work may have run and its answer been lost.
        done.await.unwrap_or_else(Outcome::unknown)
    }

    /// Looks whether another process has changed the database since the last look: at shared memory, not at the disk. True if the
    /// handle is broken, which only a read tells.
    async fn look(&self) -> bool {
        let cluster = Arc::clone(&self.cluster);
        let seen = self.seen.clone();
        // What is found is noted inside: the caller may be dropped meanwhile, and the look is not repeated.
        let looked = self.with("sqlite look", move |shared| {
            if shared.broken.is_some() {
                return Ok(true);
            }
            let version = statements::data_version(&shared.connection)?;
            if shared.data_version != Some(version) {
                let last = statements::last(&shared.connection, &cluster)?;
                shared.data_version = Some(version);
                notice(&seen, last.index);
            }
            Ok(false)
        });
        let failed = match looked.await {
            Ok(Ok(broken)) => return broken,
            Ok(Err::<_, LogError>(error)) => error.to_string(),
            Err(reason) => reason,
        };
        tracing::debug!(reason = failed, "could not look for rows of other processes");
        false
    }
}

/// Notes that rows up to `index` are there, and wakes those who wait for them.
fn notice(seen: &watch::Sender<LogIndex>, index: LogIndex) {
    seen.send_if_modified(|seen| {
        let newer = index > *seen;
        *seen = index.max(*seen);
        newer
    });
}

fn prepare(
    opened: rusqlite::Result<Connection>,
    file: Option<&Path>,
    path: &str,
) -> Result<Connection, OpenLogError> {
    let refuse =
        |error: rusqlite::Error| OpenLogError::Open { path: path.to_owned(), reason: error.to_string() };
    let connection = opened.map_err(refuse)?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(refuse)?;
    if file.is_some() {
        schema::durable(&connection).map_err(refuse)?;
    }
    match schema::create(&connection).map_err(refuse)? {
        schema::Version::Known => Ok(connection),
        schema::Version::Newer(found) => {
            Err(OpenLogError::Newer { path: path.to_owned(), found, known: schema::VERSION })
        }
    }
}

/// `BEGIN IMMEDIATE`, `work`, `COMMIT`. The write lock is taken first, so the only surprises left are the disk's.
fn transaction<R>(
    connection: &mut Connection,
    work: impl FnOnce(&Connection) -> Result<Result<(), R>, rusqlite::Error>,
) -> Result<Result<(), R>, Failed> {
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    match work(&transaction)? {
        Ok(()) => transaction.commit().map(Ok).map_err(|error| match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => {
                Failed::Clean(error.to_string())
            }
            Some(rusqlite::ErrorCode::DiskFull) => Failed::NoRoom(error.to_string()),
            _ => Failed::InCommit(error.to_string()),
        }),
        Err(refusal) => {
            transaction.rollback()?;
            Ok(Err(refusal))
        }
    }
}

#[async_trait]
impl CommandLog for SqliteLog {
    async fn append(&self, previous: Witness, row: &Row) -> Outcome<(), AppendRefused> {
        let new = row.clone();
        let index = row.index;
        let outcome = self
            .write(move |connection, cluster| statements::append(connection, cluster, previous, &new))
            .await;
        if outcome.is_done() {
            notice(&self.seen, index);
        }
        outcome
    }

    async fn read_after(&self, after: LogIndex, rows_max: usize) -> Result<Vec<Row>, LogError> {
        let rows = self
            .read(move |connection, cluster| statements::read_after(connection, cluster, after, rows_max))
            .await?;
        if let Some(last) = rows.last() {
            notice(&self.seen, last.index);
        }
        Ok(rows)
    }

    async fn last(&self) -> Result<Witness, LogError> {
        self.read(statements::last).await
    }

    async fn changed(&self, after: LogIndex, poll: Duration) {
        let mut seen = self.seen.subscribe();
        while *seen.borrow_and_update() <= after {
            if !self.foreign {
                // The sender lives as long as `self`.
                if seen.changed().await.is_err() {
                    return;
                }
                continue;
            }
            match self.service.timeout(poll, seen.changed()).await {
                // The sender lives as long as `self`, here too.
                Ok(Err(_)) => return,
                Err(_) if self.look().await => return,
                Ok(Ok(())) | Err(_) => {}
            }
        }
    }

    async fn beat(&self, beat: Beat) -> Outcome<(), BeatRefused> {
        self.write(move |connection, cluster| statements::beat(connection, cluster, beat)).await
    }

    async fn close_beats(&self, incarnation: Incarnation) -> Outcome<(), WriteRefused> {
        self.write(move |connection, cluster| statements::close_beats(connection, cluster, incarnation)).await
    }

    async fn forget_beats(&self, upto: Incarnation) -> Outcome<(), WriteRefused> {
        self.write(move |connection, cluster| statements::forget_beats(connection, cluster, upto)).await
    }

    async fn beats(&self) -> Result<Vec<BeatState>, LogError> {
        self.read(statements::beats).await
    }

    async fn identity(&self) -> Result<Option<IdentityRow>, LogError> {
        self.read(statements::identity).await
    }

    async fn create_identity(&self, uuid: ClusterUuid) -> Outcome<(), WriteRefused> {
        self.write(move |connection, cluster| statements::create_identity(connection, cluster, uuid)).await
    }

    async fn confirm_identity(&self, uuid: ClusterUuid) -> Outcome<(), WriteRefused> {
        self.write(move |connection, cluster| statements::confirm_identity(connection, cluster, uuid)).await
    }

    async fn latest_snapshot(&self) -> Result<Option<SnapshotPlace>, LogError> {
        self.read(statements::latest_snapshot).await
    }

    async fn record_snapshot(&self, place: &SnapshotPlace) -> Outcome<(), WriteRefused> {
        let place = place.clone();
        self.write(move |connection, cluster| statements::record_snapshot(connection, cluster, &place)).await
    }

    async fn truncate(&self, upto: LogIndex) -> Outcome<(), WriteRefused> {
        self.write(move |connection, cluster| statements::truncate(connection, cluster, upto)).await
    }

    async fn begin_at(&self, place: &SnapshotPlace) -> Outcome<(), WriteRefused> {
        let place = place.clone();
        let index = place.witness.index;
        let outcome =
            self.write(move |connection, cluster| statements::begin_at(connection, cluster, &place)).await;
        if outcome.is_done() {
            notice(&self.seen, index);
        }
        outcome
    }
}

#[cfg(test)]
impl SqliteLog {
    /// A setting of the connection, as text.
    pub(crate) async fn pragma(&self, name: &'static str) -> String {
        let read = move |shared: &mut Shared| {
            shared.connection.pragma_query_value(None, name, |row| {
                Ok(match row.get_ref(0)? {
                    rusqlite::types::ValueRef::Integer(value) => value.to_string(),
                    other => String::from_utf8_lossy(other.as_bytes().unwrap_or_default()).into_owned(),
                })
            })
        };
        self.with("sqlite pragma", read).await.expect("runs").expect("reads")
    }

    /// As after a failed sync.
    pub(crate) async fn break_handle(&self) {
        let broken = |shared: &mut Shared| shared.broken = Some("the disk lost it".into());
        self.with("sqlite break", broken).await.expect("runs");
    }

    /// Waits for other writers so long, and no longer.
    pub(crate) async fn busy_timeout(&self, timeout: Duration) {
        let set = move |shared: &mut Shared| shared.connection.busy_timeout(timeout);
        self.with("sqlite pragma", set).await.expect("runs").expect("sets");
    }
}
