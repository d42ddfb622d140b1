//! Where logs may begin: as far as a client asked for, as records are too old, or as they are too much.
//!
//! Lives on: the simulation's thread.
//! Invariants checked: I1 and decision 0013 (no record goes before its time, whatever clocks do), I2 (a start that was told is a row's).
use super::History;
use mink_rt::Instant;
use mink_types::{BucketId, Offset};
use std::time::Duration;

/// How long, and how much, a bucket keeps; none is for ever.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Keeps {
    pub(crate) ttl: Option<Duration>,
    pub(crate) bytes: Option<u64>,
}

/// A row of the command log has raised the start of a log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Raised {
    pub(crate) bucket: BucketId,
    pub(crate) start: Offset,
    /// Bytes that metadata counts behind it.
    pub(crate) kept_bytes: u64,
    pub(crate) now: Instant,
    /// How much older than it is a record may look.
    pub(crate) age_error: Duration,
}

impl History {
    /// What the table of `bucket` was made with.
    pub(crate) fn keeps(&self, bucket: BucketId, keeps: Keeps) {
        self.inner().keeps.insert(bucket, keeps);
    }

    /// A client asks that the log of `bucket` begins at `start`.
    pub(crate) fn may_start_at(&self, bucket: BucketId, start: Offset) {
        let mut inner = self.inner();
        let log = inner.logs.entry(bucket).or_default();
        log.asked = log.asked.max(start.0);
    }

    /// Where the log of `bucket` begins, by the rows that the ledger has seen.
    pub(crate) fn begins_at(&self, bucket: BucketId) -> Offset {
        Offset(self.inner().logs.get(&bucket).map_or(0, |log| log.start))
    }

    /// A client was told that the log of `bucket` begins at `start`.
    pub(crate) fn starts_at(&self, bucket: BucketId, start: Offset) {
        let by_rows = {
            let mut inner = self.inner();
            // Asked before its table was dropped; what the rows said of it is forgotten.
            if inner.gone.contains(&bucket) {
                return;
            }
            let log = inner.logs.entry(bucket).or_default();
            log.start_seen = log.start_seen.max(start.0);
            log.start
        };
        if start.0 > by_rows {
            self.violated(format!("I1: {bucket}: begins at {start}, by the rows at {by_rows}"));
        }
    }

    /// A row has raised a start: for one of three reasons.
    pub(crate) fn raised(&self, raised: Raised) {
        let Raised { bucket, start, kept_bytes, now, age_error } = raised;
        let told = {
            let mut inner = self.inner();
            if inner.gone.contains(&bucket) {
                return;
            }
            inner.counts.raises += 1;
            let keeps = inner.keeps.get(&bucket).copied().unwrap_or_default();
            let log = inner.logs.entry(bucket).or_default();
            let before = log.start.max(log.asked);
            log.start = log.start.max(start.0);
            let asked = log.asked;
            if start.0 <= asked || keeps.bytes.is_some_and(|most| kept_bytes >= most) {
                return;
            }
            let young = |id: usize| {
                let batch = inner.batches.get(id)?;
                let (base, age) = (batch.placed?, now.duration_since(batch.sent?));
                let goes = base + u64::from(batch.count) > before;
                (goes && keeps.ttl.is_none_or(|ttl| age + age_error < ttl)).then_some((base, age))
            };
            let placed = inner.logs.get(&bucket).map(|log| log.placed.range(..start.0).rev());
            let found = placed.into_iter().flatten().find_map(|(_, id)| young(*id));
            found.map(|(base, age)| {
                format!(
                    "I1: {bucket}: begins at {start}, asked for {asked}, {base} is {age:?} old ({keeps:?})"
                )
            })
        };
        self.all_violated(told);
    }
}
