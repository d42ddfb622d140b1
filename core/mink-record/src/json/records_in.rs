//! Kafka's records become a batch of rows: the whole batch, or none of it and what is wrong with each record.
//!
//! Lives on: anywhere (pure). Costs CPU by what the batch inflates to: off the cores.
//! Invariants: I2: a row for each record, in their order; I6: one batch becomes one batch, with its producer's sequence, so that what is sent
//! again is told as the same; I19: each record is looked at; I20: what a batch inflates to and what its rows take is bounded before it is held,
//! refused records are listed up to a bound only.
use super::error::named;
use super::{JsonErrorKind, JsonLimits, RowsBuilder};
use crate::arrow::{Buckets, EncodeOptions, encode};
use crate::kafka::{BatchHeader, ProducerStamp, records};
use crate::{RecordError, RecordErrorKind};
use arrow_array::RecordBatch;
use bytes::Bytes;
use mink_types::schema::Schema;

/// How many buckets a table has whose rows belong to certain ones, and which of them the records were sent to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SentTo {
    pub bucket: u32,
    pub buckets: u32,
}

/// What is taken, and what it may take meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordsIntake {
    /// Memory for all of it, in bytes: half of it for what the batch inflates to.
    pub room_bytes: usize,
    /// Largest batch that is stored, in bytes.
    pub batch_bytes_max: usize,
    pub options: EncodeOptions,
    pub sent_to: SentTo,
    /// Refused records that are listed.
    pub refused_max: usize,
}

/// The records that no row can be made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusedRecords {
    /// How many.
    pub count: u32,
    /// The places of the first of them in the batch, from 0, and why; the text begins with the field's name where there is one.
    pub first: Vec<(u32, String)>,
}

impl RefusedRecords {
    fn add(&mut self, place: usize, most: usize, why: impl FnOnce() -> String) {
        self.count = self.count.saturating_add(1);
        if self.first.len() < most {
            self.first.push((u32::try_from(place).unwrap_or(u32::MAX), why()));
        }
    }
}

/// A batch of rows, as it is stored, of a batch of Kafka's records whose values (and keys) are JSON; the other arguments are those of
/// [`records`]. A record's headers and time have no place in a row. With base offset 0 and without a time: the log sets both.
///
/// # Errors
/// As [`records`]; `TooLarge` if the rows need more than they may take, or make too large a batch. Then nothing is taken.
pub fn rows_of_records(
    header: &BatchHeader,
    batch: Bytes,
    schema: &Schema,
    intake: RecordsIntake,
) -> Result<Result<Bytes, RefusedRecords>, RecordError> {
    let rows = match read(header, batch, schema, intake)? {
        Ok(rows) => rows,
        Err(refused) => return Ok(Err(refused)),
    };
    if let Some(refused) = misplaced(&rows, schema, intake)? {
        return Ok(Err(refused));
    }
    let stamp = header.is_idempotent().then_some(ProducerStamp {
        id: header.producer_id,
        epoch: header.producer_epoch,
        base_sequence: header.base_sequence,
    });
    let stored = encode(&rows, schema, intake.options, stamp)?;
    if stored.len() > intake.batch_bytes_max {
        return Err(RecordError::new(
            RecordErrorKind::TooLarge,
            format!(
                "the records have {} bytes as a batch of rows; max.message.bytes accepts {}, so send fewer in each batch",
                stored.len(),
                intake.batch_bytes_max
            ),
        ));
    }
    Ok(Ok(stored))
}

/// The rows, with the table's columns. What the batch inflates to is given back before they are written.
fn read(
    header: &BatchHeader,
    batch: Bytes,
    schema: &Schema,
    intake: RecordsIntake,
) -> Result<Result<RecordBatch, RefusedRecords>, RecordError> {
    // Vectors grow by doubling: a quarter for what is counted is half for what is held.
    let limits = JsonLimits { held_bytes_max: intake.room_bytes / 4, ..JsonLimits::default() };
    let mut rows = RowsBuilder::with_limits(schema, limits);
    let mut refused = RefusedRecords::default();
    for (place, record) in records(header, batch, intake.room_bytes / 2)?.enumerate() {
        let record = record?;
        match rows.push_json_parts(record.key.as_deref(), record.value.as_deref()) {
            Ok(()) => {}
            Err(error) if matches!(error.kind(), JsonErrorKind::Full | JsonErrorKind::TooLarge) => {
                return Err(RecordError::new(
                    RecordErrorKind::TooLarge,
                    format!(
                        "the records take more than {} bytes as rows; send fewer in each batch",
                        limits.held_bytes_max
                    ),
                ));
            }
            Err(error) => refused.add(place, intake.refused_max, || error.to_string()),
        }
    }
    if refused.count > 0 {
        return Ok(Err(refused));
    }
    rows.finish().map(Ok)
}

/// The records whose rows belong to another bucket than the one that they were sent to.
fn misplaced(
    rows: &RecordBatch,
    schema: &Schema,
    intake: RecordsIntake,
) -> Result<Option<RefusedRecords>, RecordError> {
    let SentTo { bucket: sent_to, buckets } = intake.sent_to;
    let Some(key) = Buckets::new(schema, buckets).filter(|_| buckets > 1) else { return Ok(None) };
    let mut refused = RefusedRecords::default();
    for (place, bucket) in key.of(rows)?.into_iter().enumerate() {
        if bucket != sent_to {
            refused.add(place, intake.refused_max, || {
                let columns = schema.bucket_key().iter().filter_map(|id| schema.column_by_id(*id));
                let columns: Vec<String> = columns.map(|column| named(&column.name)).collect();
                format!(
                    "{}: by this bucket key the row belongs to partition {bucket}, but it was sent to {sent_to}; send it there",
                    columns.join(", ")
                )
            });
        }
    }
    Ok((refused.count > 0).then_some(refused))
}
