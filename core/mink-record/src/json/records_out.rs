//! Rows become Kafka's records: a JSON object as value, and one of the key columns as key.
//!
//! Lives on: anywhere (pure). Costs CPU and memory by the bytes that are asked for.
//! Owns: how the columns of one schema are written.
//! Invariants: I2: a record for each row, at the row's offset; the same row always gives the same key and value; I20: no more bytes than
//! there is room for, but for one record that is asked for at any rate.
use super::JsonWriter;
use crate::RecordError;
use crate::arrow::{ArrowBatch, Mapping};
use crate::kafka::{BatchBuilder, Codec, RecordRef, set_append_time, set_offset_and_epoch};
use arrow_array::RecordBatch;
use bytes::Bytes;
use mink_types::schema::Schema;

/// Largest batch that is made, unless one record alone is larger: a reader gets what it has room for without much beside it.
const BATCH_BYTES: usize = 512 << 10;

/// No record of Kafka's is smaller.
const RECORD_BYTES_MIN: usize = 7;

/// Writes rows of a table.
#[derive(Clone, Debug)]
pub struct RecordsWriter {
    value: JsonWriter,
    /// None for a table without key columns: its records have no key.
    key: Option<JsonWriter>,
}

/// Where the rows of a stored batch lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowsPlace {
    /// Offset of the first row.
    pub base_offset: i64,
    pub leader_epoch: i32,
    /// When they were appended: the time of all records.
    pub append_time: i64,
}

/// What is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RecordsRoom {
    pub bytes: usize,
    /// Whether the first record is given even if it has no room.
    pub first_anyway: bool,
}

/// Batches of records, each with its offset.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrittenRecords {
    pub batches: Vec<Bytes>,
    /// How many rows are in them.
    pub rows: usize,
    /// Whether these are all that there were.
    pub is_whole: bool,
}

impl WrittenRecords {
    pub fn bytes(&self) -> usize {
        self.batches.iter().map(Bytes::len).sum()
    }
}

impl RecordsWriter {
    /// For rows with all columns of this schema.
    ///
    /// # Errors
    /// None for a schema that is sound.
    pub fn new(schema: &Schema) -> Result<RecordsWriter, RecordError> {
        let key = if schema.primary_key().is_empty() { schema.bucket_key() } else { schema.primary_key() };
        let key = (!key.is_empty()).then(|| JsonWriter::for_columns(schema, key)).transpose()?;
        Ok(RecordsWriter { value: JsonWriter::new(schema), key })
    }

    /// The rows of a stored batch from the offset `from` on, as many as have room; `schema` is the one with its id, and `mapping` leads from
    /// that to the schema that this is for.
    ///
    /// # Errors
    /// As [`ArrowBatch::decode`], [`Mapping::map`] and [`JsonWriter::write_row`].
    pub fn write_stored(
        &self,
        stored: &ArrowBatch,
        schema: &Schema,
        mapping: &Mapping,
        from: i64,
        mut room: RecordsRoom,
    ) -> Result<WrittenRecords, RecordError> {
        let header = stored.header();
        let decoded = stored.decode_columns(schema, mapping.stored_columns())?;
        let skip = from.saturating_sub(header.base_offset).max(0);
        let mut at = usize::try_from(skip).unwrap_or(usize::MAX);
        let mut all = WrittenRecords::default();
        while at < decoded.num_rows() {
            let rows = mapped(mapping, &decoded, at, room)?;
            let place = RowsPlace {
                base_offset: header.base_offset.saturating_add(i64::try_from(at).unwrap_or(i64::MAX)),
                leader_epoch: header.partition_leader_epoch,
                append_time: header.max_timestamp,
            };
            let written = self.write(&rows, place, room)?;
            room.bytes = room.bytes.saturating_sub(written.bytes());
            room.first_anyway &= written.rows == 0;
            at += written.rows;
            all.rows += written.rows;
            all.batches.extend(written.batches);
            if !written.is_whole {
                return Ok(all);
            }
        }
        Ok(WrittenRecords { is_whole: true, ..all })
    }

    /// The first rows, as many as have room.
    ///
    /// # Errors
    /// As [`JsonWriter::write_row`].
    pub fn write(
        &self,
        rows: &RecordBatch,
        place: RowsPlace,
        room: RecordsRoom,
    ) -> Result<WrittenRecords, RecordError> {
        let mut made = Made { place, written: WrittenRecords::default(), left: room.bytes };
        let mut batch: Option<BatchBuilder> = None;
        let (mut key, mut value) = (Vec::new(), Vec::new());
        for row in 0..rows.num_rows() {
            value.clear();
            self.value.write_row(rows, row, &mut value)?;
            if let Some(writer) = &self.key {
                key.clear();
                writer.write_row(rows, row, &mut key)?;
            }
            let record = RecordRef {
                timestamp: place.append_time,
                key: self.key.is_some().then_some(key.as_slice()),
                value: Some(&value),
                headers: &[],
            };
            if let Some(full) = batch.take_if(|batch| batch.size_with(&record) > BATCH_BYTES) {
                made.close(full)?;
            }
            let is_first = batch.is_none() && made.written.rows == 0;
            let mut open = batch.take().unwrap_or_default();
            let size = open.size_with(&record);
            if size > made.left && !(is_first && room.first_anyway) {
                batch = (open.record_count() > 0).then_some(open);
                break;
            }
            if open.record_count() == 0 {
                // As if all rows were as long as the first.
                let guess = size.saturating_mul(rows.num_rows() - row).min(BATCH_BYTES).min(made.left);
                open = BatchBuilder::with_capacity(guess.max(size));
            }
            open.push(record)?;
            batch = Some(open);
        }
        if let Some(last) = batch {
            made.close(last)?;
        }
        made.written.is_whole = made.written.rows == rows.num_rows();
        Ok(made.written)
    }
}

/// Rows from `at` on by the schema that is wanted: as many as may have room, and no more than mapping them may hold.
fn mapped(
    mapping: &Mapping,
    decoded: &RecordBatch,
    at: usize,
    room: RecordsRoom,
) -> Result<RecordBatch, RecordError> {
    let rows = decoded.num_rows().saturating_sub(at).min(room.bytes / RECORD_BYTES_MIN + 1);
    mapping.map_first(&decoded.slice(at, rows))
}

/// What there is so far.
struct Made {
    place: RowsPlace,
    written: WrittenRecords,
    left: usize,
}

impl Made {
    /// Ends a batch.
    fn close(&mut self, batch: BatchBuilder) -> Result<(), RecordError> {
        let count = usize::try_from(batch.record_count()).unwrap_or(0);
        let mut bytes = batch.into_bytes(Codec::None, None)?;
        let before = i64::try_from(self.written.rows).unwrap_or(i64::MAX);
        let base_offset = self.place.base_offset.saturating_add(before);
        set_offset_and_epoch(&mut bytes, base_offset, self.place.leader_epoch)?;
        set_append_time(&mut bytes, self.place.append_time)?;
        self.left = self.left.saturating_sub(bytes.len());
        self.written.rows += count;
        self.written.batches.push(bytes.into());
        Ok(())
    }
}
