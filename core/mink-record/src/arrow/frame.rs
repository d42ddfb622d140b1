//! A stored batch of Arrow: its parts, put together and taken apart.
//!
//! Lives on: anywhere (pure).
//! Invariants: I2 (a batch takes exactly as many offsets as it has rows), I19: lengths are believed only as far as the bytes are there.
//! Parts are slices of the batch, never copies.

use bytes::Bytes;
use mink_types::schema::{FieldId, Schema, SchemaId};

use super::inflate::inflated_bytes;
use super::message::{ALIGNMENT, Message};
use super::statistics::{ColumnStatistics, read_statistics};
use super::types::{arrow_field, arrow_schema};
use super::{ARROW_INFLATED_BYTES_MAX, layout};
use crate::bounded::Bounded;
use crate::kafka::{ARROW_MAGIC, BatchFormat, BatchHeader, Codec, HEADER_BYTES, ProducerStamp, Unsigned};
use crate::{RecordError, RecordErrorKind};
use arrow_array::RecordBatch;

/// Of the bytes between Kafka's header and the statistics.
const VERSION: u8 = 1;
/// Where the statistics begin.
pub(super) const STATISTICS_AT: usize = HEADER_BYTES + 4 + 1 + 1 + 2 + 4 + 4;
/// Base offset and length: what the length field does not count.
const LENGTH_BASE: usize = 12;

const _: () = assert!(STATISTICS_AT == 77);

/// A stored batch of Arrow, taken apart but not decoded.
#[derive(Clone, Debug)]
pub struct ArrowBatch {
    header: BatchHeader,
    schema: SchemaId,
    rows: usize,
    whole: Bytes,
    statistics: Bytes,
    metadata: Bytes,
    body: Bytes,
}

/// What a batch is made of.
pub(super) struct Parts<'a> {
    pub(super) schema: SchemaId,
    pub(super) rows: usize,
    pub(super) statistics: &'a [u8],
    pub(super) metadata: &'a [u8],
    pub(super) body: &'a [u8],
    pub(super) stamp: Option<ProducerStamp>,
}

impl Parts<'_> {
    /// The batch with base offset 0 and without a time: the log sets both.
    pub(super) fn put_together(&self) -> Result<Bytes, RecordError> {
        let metadata_at = aligned(STATISTICS_AT + self.statistics.len());
        let body_at = aligned(metadata_at + self.metadata.len());
        let total = body_at.saturating_add(self.body.len());
        let too_large = || {
            RecordError::new(
                RecordErrorKind::TooLarge,
                format!("a batch of {total} bytes is more than the format holds; send fewer rows in each"),
            )
        };
        let length = i32::try_from(total - LENGTH_BASE).map_err(|_| too_large())?;
        let count = i32::try_from(self.rows).map_err(|_| too_large())?;
        let narrow = |length: usize| u32::try_from(length).map_err(|_| too_large());
        let mut batch = Vec::with_capacity(total);
        batch.resize(HEADER_BYTES, 0);
        batch.extend_from_slice(&self.schema.0.to_le_bytes());
        batch.extend_from_slice(&[VERSION, 0, 0, 0]);
        batch.extend_from_slice(&narrow(self.statistics.len())?.to_le_bytes());
        batch.extend_from_slice(&narrow(self.metadata.len())?.to_le_bytes());
        batch.extend_from_slice(self.statistics);
        batch.resize(metadata_at, 0);
        batch.extend_from_slice(self.metadata);
        batch.resize(body_at, 0);
        batch.extend_from_slice(self.body);
        let header = Unsigned {
            magic: ARROW_MAGIC,
            length,
            codec: Codec::None,
            count,
            base_timestamp: -1,
            max_timestamp: -1,
            stamp: self.stamp,
        };
        header.write(&mut batch);
        Ok(Bytes::from(batch))
    }
}

fn aligned(length: usize) -> usize {
    length.next_multiple_of(ALIGNMENT)
}

fn refused(what: impl std::fmt::Display) -> RecordError {
    RecordError::invalid(format!("not a sound batch of Arrow: {what}"))
}

impl ArrowBatch {
    /// Takes the batch at the start of `frame` apart. Its checksum is not looked at ([`ArrowBatch::verify_checksum`]), nor are its
    /// metadata and body.
    ///
    /// # Errors
    /// Those of [`BatchHeader::parse`]; `Incomplete`; `InvalidRecord` for a batch of Kafka's records, a version that is not known, or
    /// parts that don't fit.
    pub fn parse(frame: &Bytes) -> Result<ArrowBatch, RecordError> {
        let header = BatchHeader::parse(frame)?;
        if header.format != BatchFormat::Arrow {
            return Err(refused("it holds Kafka's records (magic 2); a batch of Arrow has magic 16"));
        }
        let whole = frame.slice(..header.whole(frame)?.len());
        let rows = usize::try_from(header.record_count).unwrap_or_default();
        if rows == 0 || i64::from(header.record_count) != i64::from(header.last_offset_delta) + 1 {
            return Err(refused(format_args!(
                "{rows} rows and last offset delta {}; at least one row, and rows = delta + 1",
                header.last_offset_delta
            )));
        }
        let (schema, statistics_bytes, metadata_bytes) = read_fixed(&whole)?;
        let cut = || {
            refused(format_args!(
                "{statistics_bytes} bytes of statistics and {metadata_bytes} of metadata don't fit into {}",
                whole.len()
            ))
        };
        let part = |at: usize, length: usize| {
            let end = at.checked_add(length).filter(|end| *end <= whole.len())?;
            Some((whole.slice(at..end), end))
        };
        let padded = |end: usize| {
            let to = end.checked_next_multiple_of(ALIGNMENT)?;
            whole.get(end..to)?.iter().all(|byte| *byte == 0).then_some(to)
        };
        let (statistics, end) = part(STATISTICS_AT, statistics_bytes).ok_or_else(cut)?;
        let (metadata, end) = padded(end).and_then(|at| part(at, metadata_bytes)).ok_or_else(cut)?;
        let body_at = padded(end).ok_or_else(cut)?;
        let body = whole.slice(body_at..);
        Ok(ArrowBatch { header, schema, rows, whole, statistics, metadata, body })
    }

    /// Compares the stated checksum with that of the bytes.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn verify_checksum(&self) -> Result<(), RecordError> {
        self.header.verify_checksum(&self.whole)
    }

    /// The first 61 bytes: offsets, time, producer.
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// The schema that its writer knew: the one to decode it by.
    pub fn schema(&self) -> SchemaId {
        self.schema
    }

    /// Rows, at least one.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The IPC message's metadata, as it stands in `FlightData.data_header`.
    pub fn metadata(&self) -> &Bytes {
        &self.metadata
    }

    /// The IPC message's body, as it stands in `FlightData.data_body`.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// Per scalar column, in the order of the schema's columns, nulls and bounds. A column that is not listed may hold anything.
    ///
    /// # Errors
    /// `InvalidRecord`.
    pub fn statistics(&self) -> Result<Vec<ColumnStatistics>, RecordError> {
        read_statistics(&self.statistics)
    }

    /// What its buffers inflate to in sum, by their own word: what [`ArrowBatch::decode`] holds at least. `stored` is the schema with the
    /// batch's id.
    ///
    /// # Errors
    /// `SchemaMismatch` for a schema with another id; `InvalidRecord`.
    pub fn inflated_bytes(&self, stored: &Schema) -> Result<usize, RecordError> {
        Ok(inflated_bytes(&self.message(stored)?, &self.body))
    }

    /// All columns, in the order of `stored`, the schema with the batch's id.
    ///
    /// # Errors
    /// `SchemaMismatch` for a schema with another id; `InvalidRecord`; `InflatedTooLarge`.
    pub fn decode(&self, stored: &Schema) -> Result<RecordBatch, RecordError> {
        let message = self.message(stored)?;
        super::decode::decode(&message, &self.body, &arrow_schema(stored), ARROW_INFLATED_BYTES_MAX)
    }

    /// The columns `wanted`, in that order; the others are not inflated.
    ///
    /// # Errors
    /// As of [`ArrowBatch::decode`], and `SchemaMismatch` for a column that `stored` does not have, or that is wanted twice.
    pub fn decode_columns(&self, stored: &Schema, wanted: &[FieldId]) -> Result<RecordBatch, RecordError> {
        let message = self.message(stored)?;
        let order = order_of(stored, wanted)?;
        let mut decoder = super::decode::Decoder::new(&message, &self.body, ARROW_INFLATED_BYTES_MAX);
        let mut found = vec![None; wanted.len()];
        for (column, place) in stored.columns().iter().zip(&order) {
            let field = arrow_field(column);
            match place.and_then(|place| found.get_mut(place)) {
                Some(slot) => *slot = Some((decoder.column(&field)?, field)),
                None => decoder.skip(&field),
            }
        }
        let (columns, fields): (Vec<_>, Vec<_>) = found.into_iter().flatten().unzip();
        let schema = std::sync::Arc::new(arrow_schema::Schema::new(fields));
        super::decode::assemble(&schema, columns, message.rows)
    }

    /// The metadata, read for the columns of `stored`.
    pub(super) fn message(&self, stored: &Schema) -> Result<Message, RecordError> {
        if stored.id() != self.schema {
            return Err(RecordError::mismatch(format!(
                "the batch was written with schema {}; it can't be read by schema {}",
                self.schema,
                stored.id()
            )));
        }
        let expected = layout::counts_of(arrow_schema(stored).fields());
        let message = Message::read(&self.metadata, expected, self.body.len())?;
        if message.rows != self.rows || message.body_bytes != self.body.len() || !message.in_order {
            return Err(refused(format_args!(
                "{} rows and a body of {} bytes in its metadata, {} rows and {} bytes in fact, or buffers out of order",
                message.rows,
                message.body_bytes,
                self.rows,
                self.body.len()
            )));
        }
        Ok(message)
    }
}

/// For each column of `stored`, its place in `wanted`.
pub(super) fn order_of(stored: &Schema, wanted: &[FieldId]) -> Result<Vec<Option<usize>>, RecordError> {
    let mut order = vec![None; stored.columns().len()];
    for (place, id) in wanted.iter().enumerate() {
        let slot =
            stored.columns().iter().position(|column| column.id == *id).and_then(|at| order.get_mut(at));
        match slot {
            Some(slot @ None) => *slot = Some(place),
            Some(_) => return Err(RecordError::mismatch(format!("column {id} is wanted twice"))),
            None => {
                return Err(RecordError::mismatch(format!("schema {} has no column {id}", stored.id())));
            }
        }
    }
    Ok(order)
}

/// Schema, bytes of statistics, bytes of metadata.
fn read_fixed(whole: &[u8]) -> Result<(SchemaId, usize, usize), RecordError> {
    let cut =
        || refused(format_args!("it has {} bytes; the fixed part alone has {STATISTICS_AT}", whole.len()));
    let mut at = Bounded::new(whole.get(HEADER_BYTES..).unwrap_or_default());
    let schema = SchemaId(u32::from_le_bytes(at.array().ok_or_else(cut)?));
    let [version, flags, zero, reserved] = at.array().ok_or_else(cut)?;
    if version != VERSION {
        return Err(refused(format_args!("version {version}; this Mink reads version {VERSION}")));
    }
    if flags != 0 || zero != 0 || reserved != 0 {
        return Err(refused(format_args!("flags {flags:#04x} and reserved bytes must be 0")));
    }
    let mut length = || {
        let stated = u32::from_le_bytes(at.array().ok_or_else(cut)?);
        usize::try_from(stated).map_err(|_| cut())
    };
    Ok((schema, length()?, length()?))
}
