//! The clients of a history: producers as Kafka's are, readers at the tail and from the start, members of a consumer
//! group, an administrator.
//!
//! Lives on: the simulation's thread, outside every node's process.
//! Invariants: a client tells the history what it was told, when it was told.
pub(crate) mod admin;
pub(crate) mod members;
pub(crate) mod producer;
pub(crate) mod reader;

use crate::history::Keeps;
use crate::machine::Site;
use mink_metadata::Table;
use mink_types::{BucketId, Offset};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What clients share.
#[derive(Clone, Debug)]
pub(crate) struct Clients {
    pub(crate) site: Site,
    /// Buckets of tables that live; producers and readers of others end.
    buckets: Arc<Mutex<BTreeSet<BucketId>>>,
    stopping: Arc<AtomicBool>,
}

impl Clients {
    pub(crate) fn new(site: &Site) -> Clients {
        Clients { site: site.clone(), buckets: Arc::default(), stopping: Arc::default() }
    }

    pub(crate) fn buckets(&self) -> MutexGuard<'_, BTreeSet<BucketId>> {
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A table is there: producers and readers may go to its buckets.
    pub(crate) fn begin_with(&self, table: &Table) {
        let options = &table.options;
        let ttl = options.log_ttl_ms.map(Duration::from_millis);
        let keeps = Keeps { ttl, bytes: options.retention_bytes };
        for bucket in table.bucket_ids() {
            if let Some(schema) = table.schema() {
                self.site.history.has_columns(bucket, Arc::clone(schema), options.arrow_compression);
            }
            self.site.history.keeps(bucket, keeps);
            self.buckets().insert(bucket);
        }
    }

    /// A client is told that a log begins at `start`: sees to it that the history knows of the row that says so.
    pub(crate) async fn know_start(&self, bucket: BucketId, start: Offset) {
        if self.site.history.begins_at(bucket) < start {
            self.site.ledger.catch_up().await;
        }
    }

    /// A bucket of a table that lives.
    pub(crate) fn some_bucket(&self) -> Option<BucketId> {
        let buckets = self.buckets();
        buckets.iter().nth(self.site.dice.index(buckets.len())).copied()
    }

    pub(crate) fn lives(&self, bucket: BucketId) -> bool {
        self.buckets().contains(&bucket)
    }

    /// Nothing new is begun from here on.
    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    pub(crate) fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }
}
