//! What Mink asks of the database: the log's rows, heartbeats, the cluster's identity, the newest snapshot's place.
//!
//! Lives on: service runtime.
//! Owns: nothing; the trait and its words. SQLite carries it now, Postgres can carry it unchanged.
//! Invariants: every write ends as done, refused or unknown; an unknown one is looked up or repeated, never failed (I12).
use std::time::Duration;

use async_trait::async_trait;
use mink_metadata::Row;
use mink_types::{ClusterUuid, Incarnation, LogIndex, ObjectKey, Outcome, Witness};

/// The log of one cluster. All methods may be called at the same time from many tasks; a call that is dropped before it
/// ends may still happen.
#[async_trait]
pub trait CommandLog: Send + Sync + std::fmt::Debug {
    /// Appends the row that follows `previous`. `Done` means durable. One attempt, no retries inside.
    async fn append(&self, previous: Witness, row: &Row) -> Outcome<(), AppendRefused>;

    /// Rows after `after`, ascending, at most `rows_max`. When rows were truncated, the first one is not `after + 1`.
    async fn read_after(&self, after: LogIndex, rows_max: usize) -> Result<Vec<Row>, LogError>;

    /// How far the log has got: its last row, or the snapshot it was refilled from when that is newer.
    async fn last(&self) -> Result<Witness, LogError>;

    /// Completes when there may be rows after `after`: at once for rows appended through this handle, else within about
    /// `poll`. May complete for nothing.
    async fn changed(&self, after: LogIndex, poll: Duration);

    /// Renews a heartbeat. The first one of an incarnation opens it.
    async fn beat(&self, beat: Beat) -> Outcome<(), BeatRefused>;

    /// Ends an incarnation's heartbeats: once this is done, no renewal of it succeeds any more.
    async fn close_beats(&self, incarnation: Incarnation) -> Outcome<(), WriteRefused>;

    /// Forgets the closed heartbeats of incarnations up to `upto`, every one of which must be fenced: no beat of theirs succeeds any
    /// more, whether it was closed or not. One row is left that says so, however many lives there were.
    async fn forget_beats(&self, upto: Incarnation) -> Outcome<(), WriteRefused>;

    /// The heartbeats of all incarnations that had one and are not forgotten, by incarnation.
    async fn beats(&self) -> Result<Vec<BeatState>, LogError>;

    /// Whose database this is.
    async fn identity(&self) -> Result<Option<IdentityRow>, LogError>;

    /// Notes a cluster's identity as being created. An identity that is there stays as it is: `Done` for either, so read
    /// it back.
    async fn create_identity(&self, cluster: ClusterUuid) -> Outcome<(), WriteRefused>;

    /// Notes that the store has the identity too.
    async fn confirm_identity(&self, cluster: ClusterUuid) -> Outcome<(), WriteRefused>;

    /// The newest snapshot that was recorded.
    async fn latest_snapshot(&self) -> Result<Option<SnapshotPlace>, LogError>;

    /// Records a snapshot, unless a newer one is recorded: then it is done all the same.
    async fn record_snapshot(&self, place: &SnapshotPlace) -> Outcome<(), WriteRefused>;

    /// Removes rows up to and with `upto`, but never the last row, nor one that the recorded snapshot does not cover.
    async fn truncate(&self, upto: LogIndex) -> Outcome<(), WriteRefused>;

    /// Makes the log begin at a snapshot: all rows go, and the next row follows the snapshot. For recovery alone.
    async fn begin_at(&self, place: &SnapshotPlace) -> Outcome<(), WriteRefused>;
}

/// A heartbeat of one incarnation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Beat {
    pub incarnation: Incarnation,
    /// Grows with each renewal. Others watch it change by their own clocks.
    pub counter: u64,
    /// How long the lease holds from before this renewal was sent; kept in whole milliseconds, rounded up. The same for an
    /// incarnation's whole life.
    pub ttl: Duration,
}

/// What others see of an incarnation's heartbeat.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BeatState {
    pub incarnation: Incarnation,
    pub counter: u64,
    /// How long each of its leases holds; zero when it was closed before its first beat, and so never had one.
    pub ttl: Duration,
    /// No renewal can succeed any more.
    pub closed: bool,
}

/// The identity in the database.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IdentityRow {
    pub cluster: ClusterUuid,
    /// The store has it too. Until then the two-step creation may have been cut short, and is finished by whoever comes.
    pub ready: bool,
}

/// Where a snapshot lies, and how far it reaches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SnapshotPlace {
    pub witness: Witness,
    pub key: ObjectKey,
}

/// Why a row was not appended, for certain.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AppendRefused {
    /// Somebody else's row has the index: read on, apply, judge again.
    #[error("the index is taken")]
    Taken,
    /// The database does not have the row that this one follows: it has lost rows (I13). Stop.
    #[error("the database ends at row {}, before the row that this one follows", .last.index)]
    Behind { last: Witness },
    /// Nothing happened; try again later.
    #[error(transparent)]
    Write(#[from] WriteRefused),
}

/// Why a heartbeat was not renewed, for certain.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BeatRefused {
    /// A contender has ended this incarnation's heartbeats: serve no read from here on.
    #[error("the incarnation's heartbeats were closed")]
    Closed,
    /// Nothing happened; try again.
    #[error(transparent)]
    Write(#[from] WriteRefused),
}

/// A write that did not happen.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the database did not take a write: {reason}")]
pub struct WriteRefused {
    pub reason: String,
}

/// Why the database could not be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LogError {
    /// No answer now; try again later.
    #[error("the database does not answer: {reason}")]
    Unavailable { reason: String },
    /// A sync failed, so what can be read may not be durable. Only a new process may look again.
    #[error("a write to the database's disk failed ({reason}); restart the node once the disk is sound")]
    Broken { reason: String },
    /// The database holds what no version of Mink writes.
    #[error("the database is damaged: {what}; run `mink metadata recover`")]
    Damaged { what: &'static str },
}
