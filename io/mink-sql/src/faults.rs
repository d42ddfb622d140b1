//! The fault seam of the command log: two coins for each write (did it happen, was it reported), and writes that come late.
//!
//! Lives on: service runtime.
//! Owns: writes that were held back.     Talks to: the log it wraps.
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use mink_metadata::Row;
use mink_types::{ClusterUuid, Incarnation, LogIndex, Outcome, Witness};

use crate::log::{
    AppendRefused, Beat, BeatRefused, BeatState, CommandLog, IdentityRow, LogError, SnapshotPlace,
    WriteRefused,
};

/// A call that faults are drawn for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogCall {
    Append,
    Beat,
    /// Any other write.
    Write,
    /// Any read.
    Read,
}

/// How a call fares. Reads look at `happened` alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coins {
    /// It happens, and the caller is told.
    Well,
    /// It happens, and the caller is told nothing.
    AnswerLost,
    /// It does not happen, and the caller is told so.
    Refused,
    /// It does not happen, and the caller is told nothing.
    RequestLost,
    /// The caller is told nothing, and an append happens later: before the next append through this seam.
    Late,
}

type Draw = dyn Fn(LogCall) -> Coins + Send + Sync;

/// A log whose calls fare as `draw` says.
pub struct FaultyLog {
    inner: Arc<dyn CommandLog>,
    draw: Box<Draw>,
    late: Mutex<Vec<(Witness, Row)>>,
}

impl std::fmt::Debug for FaultyLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FaultyLog").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl FaultyLog {
    /// Wraps a log.
    pub fn new(
        inner: Arc<dyn CommandLog>,
        draw: impl Fn(LogCall) -> Coins + Send + Sync + 'static,
    ) -> FaultyLog {
        FaultyLog { inner, draw: Box::new(draw), late: Mutex::new(Vec::new()) }
    }

    async fn fare<R: From<WriteRefused> + Send>(
        &self,
        call: LogCall,
        run: impl Future<Output = Outcome<(), R>> + Send,
    ) -> Outcome<(), R> {
        match (self.draw)(call) {
            Coins::Well => run.await,
            Coins::AnswerLost => match run.await {
                Outcome::Done(()) | Outcome::Refused(_) => Outcome::unknown("injected: the answer was lost"),
                unknown @ Outcome::Unknown(_) => unknown,
            },
            Coins::Refused => Outcome::Refused(WriteRefused { reason: "injected".into() }.into()),
            Coins::RequestLost | Coins::Late => Outcome::unknown("injected: the request was lost"),
        }
    }

    fn reading(&self) -> Result<(), LogError> {
        match (self.draw)(LogCall::Read) {
            Coins::Well => Ok(()),
            _ => Err(LogError::Unavailable { reason: "injected".into() }),
        }
    }
}

#[async_trait]
impl CommandLog for FaultyLog {
    async fn append(&self, previous: Witness, row: &Row) -> Outcome<(), AppendRefused> {
        let late = std::mem::take(&mut *self.late.lock().unwrap_or_else(PoisonError::into_inner));
        for (previous, row) in late {
            // Nobody waits for this answer any more.
            let _ = self.inner.append(previous, &row).await;
        }
        match (self.draw)(LogCall::Append) {
            Coins::Late => {
                self.late.lock().unwrap_or_else(PoisonError::into_inner).push((previous, row.clone()));
                Outcome::unknown("injected: the request is late")
            }
            Coins::Well => self.inner.append(previous, row).await,
            Coins::AnswerLost => {
                let _ = self.inner.append(previous, row).await;
                Outcome::unknown("injected: the answer was lost")
            }
            Coins::Refused => {
                Outcome::Refused(AppendRefused::Write(WriteRefused { reason: "injected".into() }))
            }
            Coins::RequestLost => Outcome::unknown("injected: the request was lost"),
        }
    }

    async fn read_after(&self, after: LogIndex, rows_max: usize) -> Result<Vec<Row>, LogError> {
        self.reading()?;
        self.inner.read_after(after, rows_max).await
    }

    async fn last(&self) -> Result<Witness, LogError> {
        self.reading()?;
        self.inner.last().await
    }

    async fn changed(&self, after: LogIndex, poll: Duration) {
        self.inner.changed(after, poll).await;
    }

    async fn beat(&self, beat: Beat) -> Outcome<(), BeatRefused> {
        self.fare(LogCall::Beat, self.inner.beat(beat)).await
    }

    async fn close_beats(&self, incarnation: Incarnation) -> Outcome<(), WriteRefused> {
        self.fare(LogCall::Write, self.inner.close_beats(incarnation)).await
    }

    async fn forget_beats(&self, upto: Incarnation) -> Outcome<(), WriteRefused> {
        self.fare(LogCall::Write, self.inner.forget_beats(upto)).await
    }

    async fn beats(&self) -> Result<Vec<BeatState>, LogError> {
        self.reading()?;
        self.inner.beats().await
    }

    async fn identity(&self) -> Result<Option<IdentityRow>, LogError> {
        self.reading()?;
        self.inner.identity().await
    }

    async fn create_identity(&self, cluster: ClusterUuid) -> Outcome<(), WriteRefused> {
        self.fare(LogCall::Write, self.inner.create_identity(cluster)).await
    }

    async fn confirm_identity(&self, cluster: ClusterUuid) -> Outcome<(), WriteRefused> {
        self.fare(LogCall::Write, self.inner.confirm_identity(cluster)).await
    }

    async fn latest_snapshot(&self) -> Result<Option<SnapshotPlace>, LogError> {
        self.reading()?;
        self.inner.latest_snapshot().await
    }

    async fn record_snapshot(&self, place: &SnapshotPlace) -> Outcome<(), WriteRefused> {
        self.fare(LogCall::Write, self.inner.record_snapshot(place)).await
    }

    async fn truncate(&self, upto: LogIndex) -> Outcome<(), WriteRefused> {
        self.fare(LogCall::Write, self.inner.truncate(upto)).await
    }

    async fn begin_at(&self, place: &SnapshotPlace) -> Outcome<(), WriteRefused> {
        self.fare(LogCall::Write, self.inner.begin_at(place)).await
    }
}
