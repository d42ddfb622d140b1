//! Rows that wait for company.
//!
//! Lives on: a lane's task.
use super::encode::bytes_of;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use std::time::Duration;
use tokio::time::Instant;

/// Rows of one Arrow schema that will travel together.
#[derive(Debug)]
pub(super) struct Collected {
    pub(super) schema: SchemaRef,
    pub(super) batches: Vec<RecordBatch>,
    pub(super) rows: u64,
    /// When the first of them came.
    pub(super) since: Instant,
    bytes: usize,
}

impl Collected {
    pub(super) fn new(batch: RecordBatch, now: Instant) -> Collected {
        let (schema, rows) = (batch.schema(), batch.num_rows() as u64);
        Collected { schema, bytes: bytes_of(&batch), batches: vec![batch], rows, since: now }
    }

    /// Takes the rows in, or gives them back if their columns are others.
    pub(super) fn add(&mut self, batch: RecordBatch) -> Option<RecordBatch> {
        if batch.schema_ref() != &self.schema {
            return Some(batch);
        }
        self.bytes = self.bytes.saturating_add(bytes_of(&batch));
        self.rows += batch.num_rows() as u64;
        self.batches.push(batch);
        None
    }

    pub(super) fn is_full(&self, batch_bytes: usize) -> bool {
        self.bytes >= batch_bytes
    }

    /// When they go, full or not.
    pub(super) fn due(&self, linger: Duration) -> Instant {
        self.since + linger
    }
}
