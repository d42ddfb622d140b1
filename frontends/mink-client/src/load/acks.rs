//! Batches of a load that wait for their ack.
//!
//! Lives on: gathered by the task that offers records, counted by one of its own per connection.
//! Invariants: every batch that was offered is counted, as acked, as failed, or as one without an ack.
use super::ending::Ending;
use super::tally::{Came, Tally};
use crate::producer::Delivery;
use futures::FutureExt;
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

/// Counts how batches end; those that have not when the load gives up are told as such.
pub(super) async fn count(mut groups: mpsc::Receiver<Group>, tally: Arc<Tally>, ending: Ending) {
    let mut given_up = std::pin::pin!(ending.given_up());
    let mut is_given_up = false;
    while let Some(group) = groups.recv().await {
        let Group { records, bytes, .. } = group;
        let ended = if is_given_up {
            group.delivery.batch_ended().now_or_never()
        } else {
            tokio::select! {
                biased;
                ended = group.delivery.batch_ended() => Some(ended),
                () = &mut given_up => {
                    is_given_up = true;
                    None
                }
            }
        };
        let Some(ended) = ended else {
            tally.unacked(&group.since);
            continue;
        };
        match ended.end {
            Ok(_) => {
                let batches = u64::from(records > 0);
                tally.came(ended.at, &Came { records, bytes, batches, since: &group.since, ages_ms: &[] });
                ending.progress().add(records + group.uncounted, bytes + group.uncounted_bytes);
            }
            Err(error) => {
                tally.unacked(&group.since);
                tally.failed(ended.at, records + group.uncounted, error);
            }
        }
    }
}
