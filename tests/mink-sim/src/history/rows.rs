//! Batches of Arrow: how they are made for tables with columns, and what of a stored one is as it was sent.
//!
//! Lives on: the simulation's thread.
//! Invariants checked: I1 (rows, metadata, statistics and the marks of the writer stay byte for byte), I2 (every row says which batch and
//! which place it has).
use super::{Batch, BatchId, History, Sender};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray};
use bytes::Bytes;
use mink_record::arrow::{ArrowBatch, EncodeOptions, arrow_schema, encode};
use mink_record::kafka::{BatchHeader, ProducerStamp};
use mink_types::schema::{DataType, Field, FieldId, Schema, SchemaDraft};
use mink_types::{ArrowCompression, BucketId};
use std::sync::Arc;

/// Where a batch's own bytes begin behind the header that logs of all formats share.
const HEADER_BYTES: usize = 61;

/// The columns of a bucket's table, and how it is written.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    schema: Arc<Schema>,
    compression: ArrowCompression,
}

/// The columns that tables of a history have.
pub(crate) fn columns() -> Arc<Schema> {
    let column = |name: &str, data_type, nullable| Field {
        id: FieldId::NONE,
        name: name.into(),
        data_type,
        nullable,
        default: None,
        comment: None,
    };
    let columns = vec![
        column("batch", DataType::BigInt, false),
        column("place", DataType::Int, false),
        column("text", DataType::String, true),
    ];
    Arc::new(Schema::create(SchemaDraft { columns, ..SchemaDraft::default() }).expect("a sound schema"))
}

impl History {
    /// The table of `bucket` has columns.
    pub(crate) fn has_columns(&self, bucket: BucketId, schema: Arc<Schema>, compression: ArrowCompression) {
        self.inner().columns.insert(bucket, Columns { schema, compression });
    }

    pub(crate) fn is_of_rows(&self, bucket: BucketId) -> bool {
        self.inner().columns.contains_key(&bucket)
    }

    /// Makes a batch of `count` rows with texts of about `bytes` bytes; none if the bucket's table has no columns.
    pub(crate) fn make_rows(&self, sender: Sender, count: u32, bytes: usize) -> Option<BatchId> {
        let mut inner = self.inner();
        let Columns { schema, compression } = inner.columns.get(&sender.bucket)?.clone();
        let id = inner.batches.len();
        inner.counts.batches += 1;
        inner.counts.of_rows += 1;
        let number = i64::try_from(id).unwrap_or(i64::MAX);
        let texts = (0..count).map(|place| {
            let text = format!("{id}/{place}/");
            // Nulls are there, too.
            (place % 5 < 4).then(|| text.chars().cycle().take(text.len().max(bytes)).collect::<String>())
        });
        let places = (0..count).map(|place| i32::try_from(place).unwrap_or(i32::MAX));
        let arrays: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_iter_values((0..count).map(|_| number))),
            Arc::new(Int32Array::from_iter_values(places)),
            Arc::new(texts.collect::<StringArray>()),
        ];
        let rows = RecordBatch::try_new(arrow_schema(&schema), arrays).expect("columns of the schema");
        let stamp =
            sender.idempotent.map(|(id, base_sequence)| ProducerStamp { id, epoch: 0, base_sequence });
        let bytes = encode(&rows, &schema, EncodeOptions { compression }, stamp).expect("sound rows");
        inner.batches.push(Batch::new(sender, bytes, count));
        Some(id)
    }
}

/// Which batch a stored one is, by its rows; none if they are not those of one batch in their order.
pub(super) fn number(columns: &Columns, stored: &Bytes) -> Option<BatchId> {
    let rows = ArrowBatch::parse(stored).ok()?.decode(&columns.schema).ok()?;
    let batch = rows.column_by_name("batch")?.as_primitive_opt::<Int64Type>()?;
    let place = rows.column_by_name("place")?.as_primitive_opt::<Int32Type>()?;
    let first = *batch.values().first()?;
    let in_order = (0..).zip(place.values()).all(|(wanted, place)| wanted == *place);
    let of_one = batch.values().iter().all(|number| *number == first);
    usize::try_from(first).ok().filter(|_| in_order && of_one)
}

/// Whether a stored batch is the one that was sent but for its place and its time, which are the log's, and sound by its checksum.
pub(super) fn is_same(sent: &Bytes, stored: &Bytes) -> bool {
    let (Ok(of_sent), Ok(of_stored)) = (BatchHeader::parse(sent), BatchHeader::parse(stored)) else {
        return false;
    };
    let marks = |header: &BatchHeader| {
        (
            header.record_count,
            header.last_offset_delta,
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
        )
    };
    let is_sound = ArrowBatch::parse(stored).is_ok_and(|batch| batch.verify_checksum().is_ok());
    is_sound && marks(&of_sent) == marks(&of_stored) && sent.get(HEADER_BYTES..) == stored.get(HEADER_BYTES..)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mink_types::{BucketIndex, TableId};

    /// The checker itself: bytes that were changed, or rows of two batches, are noticed.
    #[test]
    fn what_is_not_as_it_was_sent_is_noticed() {
        let history = History::default();
        let bucket = BucketId::unpartitioned(TableId(1), BucketIndex(0));
        let sender = Sender { bucket, idempotent: Some((7, 0)) };
        assert!(history.make_rows(sender, 3, 10).is_none(), "it has no columns yet");
        history.has_columns(bucket, columns(), ArrowCompression::None);
        let made = [0, 1].map(|_| history.make_rows(sender, 3, 10).expect("it has columns"));
        let [first, second] = made.map(|id| history.bytes(id));
        let columns = history.inner().columns.get(&bucket).cloned().expect("told above");
        assert_eq!([number(&columns, &first), number(&columns, &second)], made.map(Some));
        assert!(is_same(&first, &first) && !is_same(&first, &second));
        for at in HEADER_BYTES..first.len() {
            let mut changed = first.to_vec();
            changed[at] ^= 1;
            assert!(!is_same(&first, &Bytes::from(changed)), "byte {at}");
        }
    }
}
