//! Batches of a load that wait for their ack.
//!
//! Lives on: gathered by the task that offers records, counted by one of its own per connection.
use super::Progress;
use super::tally::{Came, Tally};
use crate::producer::Delivery;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// Records of one batch.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) delivery: Delivery,
    pub(super) opened: Instant,
    /// From when the latency of records counts, and of how many.
    since: Vec<(Instant, u64)>,
    /// That count.
    records: u64,
    bytes: u64,
    /// Of the warm-up.
    uncounted: u64,
    uncounted_bytes: u64,
}

/// Records that were handed to the producer together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Offered {
    /// From when their latency counts.
    pub(super) since: Instant,
    pub(super) records: u64,
    pub(super) bytes: u64,
    /// They are not of the warm-up.
    pub(super) counts: bool,
}

impl Group {
    pub(super) fn new(delivery: Delivery, opened: Instant) -> Group {
        let since = Vec::new();
        Group { delivery, opened, since, records: 0, bytes: 0, uncounted: 0, uncounted_bytes: 0 }
    }

    pub(super) fn add(&mut self, offered: Offered) {
        if offered.counts {
            self.since.push((offered.since, offered.records));
            self.records += offered.records;
            self.bytes += offered.bytes;
        } else {
            self.uncounted += offered.records;
            self.uncounted_bytes += offered.bytes;
        }
    }
}

/// Counts how batches end.
pub(super) async fn count(mut groups: mpsc::Receiver<Group>, tally: Arc<Tally>, progress: Arc<Progress>) {
    while let Some(group) = groups.recv().await {
        let Group { records, bytes, .. } = group;
        let ended = group.delivery.batch_ended().await;
        match ended.end {
            Ok(_) => {
                let batches = u64::from(records > 0);
                tally.came(ended.at, &Came { records, bytes, batches, since: &group.since, ages_ms: &[] });
                progress.add(records + group.uncounted, bytes + group.uncounted_bytes);
            }
            Err(error) => tally.failed(ended.at, records + group.uncounted, error),
        }
    }
}
