//! What lanes leave behind when they end while their writer goes on: where each stands, and what has not been told of it.
//!
//! Lives on: anywhere; shared by a writer and its lanes.
//! Owns: the standing of places that have no lane.
//! Invariants: I6: a place's next lane begins where the one before it ended, and not before that has.
use super::FlightError;
use super::placed::{Flushed, Stored, add};
use super::route::Place;
use mink_types::Sequence;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Where a lane begins, or has ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Standing {
    /// Of an idempotent writer: the number of the next row.
    pub(super) sequence: Option<Sequence>,
    /// The id of the partition whose rows it counts; 0: none has been written to, or the table has none.
    pub(super) partition: u64,
    /// Why nothing more is taken.
    pub(super) failed: Option<FlightError>,
    /// Rows that come again, and are stored.
    pub(super) to_pass: u64,
}

/// What ended lanes have left.
#[derive(Debug, Default)]
pub(super) struct Past(Mutex<Left>);

#[derive(Debug, Default)]
struct Left {
    standing: BTreeMap<Place, Standing>,
    stored: BTreeMap<(u64, u32), Stored>,
    first_error: Option<FlightError>,
}

impl Past {
    fn lock(&self) -> MutexGuard<'_, Left> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes how a place's lane has ended, and what it has not told.
    pub(super) fn note(&self, place: Place, standing: Standing, untold: Flushed) {
        let mut left = self.lock();
        match untold {
            Ok(stored) => stored.iter().for_each(|stored| add(&mut left.stored, *stored)),
            Err(error) => drop(left.first_error.get_or_insert(error)),
        }
        // A place where nothing was decided begins as if for the first time.
        if standing.sequence.is_some() || standing.failed.is_some() {
            left.standing.insert(place, standing);
        }
    }

    /// Where a place's lane begins, if it had one before.
    pub(super) fn standing(&self, place: &Place) -> Option<Standing> {
        self.lock().standing.get(place).cloned()
    }

    /// What has not been told.
    pub(super) fn flush(&self) -> Flushed {
        let mut left = self.lock();
        let stored = std::mem::take(&mut left.stored).into_values().collect();
        left.first_error.take().map_or(Ok(stored), Err)
    }
}

/// Lanes that end together; cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Generation(Arc<watch::Sender<()>>);

/// Held by a lane until it has noted how it ended.
#[derive(Debug)]
pub(super) struct Member {
    _alive: watch::Receiver<()>,
}

impl Generation {
    pub(super) fn new() -> Generation {
        Generation(Arc::new(watch::Sender::new(())))
    }

    pub(super) fn join(&self) -> Member {
        Member { _alive: self.0.subscribe() }
    }

    pub(super) fn has_ended(&self) -> bool {
        self.0.is_closed()
    }

    /// Resolves once no lane of it is left.
    pub(super) async fn ended(&self) {
        self.0.closed().await;
    }
}
