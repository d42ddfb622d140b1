//! Follows the buckets of a table, those among them that come to be and go meanwhile.
//!
//! Lives on: whoever polls the stream.
//! Owns: which buckets are followed.
//! Invariants: a bucket that comes to be while its table is followed is read from its first row, wherever the others began; one whose
//! partition was dropped leaves, and those that stay go on; never more than [`FOLLOWED_MAX`] at a time.
use super::bucket::BucketScan;
use super::{FOLLOWED_MAX, Rows};
use crate::flight::client::Place;
use crate::flight::{FlightClient, FlightError, FlightErrorKind};
use futures::stream::{self, BoxStream, SelectAll, StreamExt};
use mink_proto::{Earliest, Position, Scan, position};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::time::Instant;

/// How often it is looked for buckets that are new.
const DISCOVER_EVERY: Duration = Duration::from_secs(1);

/// A bucket: the id of its partition, and its number there.
type Key = (u64, u32);

/// How the calls of a scan that follows are made.
#[derive(Clone)]
pub(super) struct Calls {
    pub(super) client: FlightClient,
    pub(super) patience: Duration,
    pub(super) evolves: bool,
}

/// A table, or a part of it, that is followed.
pub(super) struct Follow {
    calls: Calls,
    /// What is followed, as a whole.
    scan: Scan,
    rows: SelectAll<BoxStream<'static, (Key, Result<Rows, FlightError>)>>,
    /// The buckets that are followed; with the reason, if one was said to be gone and it was not looked yet whether it is.
    known: BTreeMap<Key, Option<FlightError>>,
    /// When to look for new ones; never if there can be none.
    look_at: Option<Instant>,
    /// Since when it cannot be looked.
    stuck: Option<Instant>,
    ended: bool,
}

impl Follow {
    /// Of these buckets at first. `grows`: others may come.
    pub(super) fn new(
        calls: Calls,
        scan: Scan,
        places: Vec<Place>,
        grows: bool,
    ) -> Result<Follow, FlightError> {
        let look_at = grows.then(|| Instant::now() + DISCOVER_EVERY);
        let (rows, known) = (SelectAll::new(), BTreeMap::new());
        let mut follow = Follow { calls, scan, rows, known, look_at, stuck: None, ended: false };
        follow.check_count(places.len())?;
        for place in places {
            follow.add(place);
        }
        Ok(follow)
    }

    /// The rows as they come; an error is the last item.
    pub(super) fn rows(self) -> BoxStream<'static, Result<Rows, FlightError>> {
        stream::unfold(self, |mut follow| async move {
            if follow.ended {
                return None;
            }
            let next = follow.next().await;
            follow.ended = next.is_err();
            Some((next, follow))
        })
        .boxed()
    }

    async fn next(&mut self) -> Result<Rows, FlightError> {
        loop {
            let look_at = self.look_at;
            let look = async {
                match look_at {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                Some((key, found)) = self.rows.next(), if !self.rows.is_empty() => match found {
                    Ok(rows) => return Ok(rows),
                    Err(error) if error.kind() == FlightErrorKind::NotFound => self.is_missing(key, error)?,
                    Err(error) => return Err(error),
                },
                () = look => self.look().await?,
            }
        }
    }

    /// A bucket is said to be gone: it is looked at once whether it is.
    fn is_missing(&mut self, key: Key, error: FlightError) -> Result<(), FlightError> {
        if self.look_at.is_none() {
            // Nothing is left to follow, and nothing will come.
            return Err(error);
        }
        if let Some(known) = self.known.get_mut(&key) {
            *known = Some(error);
            self.look_at = Some(Instant::now());
        }
        Ok(())
    }

    /// Lets go of buckets that are gone, and adds those that are new.
    async fn look(&mut self) -> Result<(), FlightError> {
        let now = Instant::now();
        self.look_at = Some(now + DISCOVER_EVERY);
        // Where they begin is not asked for: a search by time costs the server reads.
        let earliest = position::Position::Earliest(Earliest {});
        let asked = Scan { from: Some(Position { position: Some(earliest) }), ..self.scan.clone() };
        let places = match self.calls.client.places(&asked).await {
            Ok(places) => places,
            Err(status) => {
                let error = FlightError::from_status(&status);
                let since = *self.stuck.get_or_insert(now);
                if !error.is_retriable() || since.elapsed() >= self.calls.patience {
                    return Err(error);
                }
                tracing::debug!(%error, "new buckets are looked for again");
                return Ok(());
            }
        };
        self.stuck = None;
        let current: BTreeSet<Key> = places.iter().filter_map(key).collect();
        self.check_count(current.len())?;
        self.known.retain(|key, _| current.contains(key));
        if let Some(error) = self.known.values().flatten().next() {
            // It is there, and who has it does not find it.
            return Err(error.clone());
        }
        for mut place in places {
            if key(&place).is_some_and(|key| self.known.contains_key(&key)) {
                continue;
            }
            if let Some(Position { position: Some(position::Position::TimestampMs(_)) }) = &self.scan.from {
                place.scan.from.clone_from(&self.scan.from);
            }
            self.add(place);
        }
        Ok(())
    }

    fn check_count(&self, buckets: usize) -> Result<(), FlightError> {
        if buckets <= FOLLOWED_MAX {
            return Ok(());
        }
        Err(FlightError::refused(format!(
            "{}.{} has {buckets} buckets to follow; a stream takes up to {FOLLOWED_MAX}, so name the bucket, or the partition",
            self.scan.database, self.scan.table
        )))
    }

    fn add(&mut self, mut place: Place) {
        let Some(key) = key(&place) else { return };
        // A ticket ends where its bucket did when it was made.
        place.scan.until = None;
        self.known.insert(key, None);
        let rows = BucketScan::new(self.calls.clone(), place, true).rows();
        self.rows.push(rows.map(move |found| (key, found)).boxed());
    }
}

fn key(place: &Place) -> Option<Key> {
    Some((place.scan.partition_id, place.scan.bucket?))
}
