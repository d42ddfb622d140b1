//! Rows into messages of Arrow IPC: plain, joined when they are few, cut when they are many.
//!
//! Lives on: anywhere (pure).
//! Invariants: a message becomes one batch of the log, as far as its size can tell: a repeat of it is then recognized whole.
use crate::flight::FlightError;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use arrow_select::concat::concat_batches;
use bytes::Bytes;
use mink_record::arrow::{ARROW_ROWS_MAX, ipc_message};
use mink_types::ArrowCompression;
use std::sync::Arc;

/// How messages are made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Encoding {
    /// As the table stores its rows, so that the server need not write them anew.
    pub(super) compression: ArrowCompression,
    /// Bytes of one message.
    pub(super) message_bytes_max: usize,
}

/// Rows as they are sent.
#[derive(Debug)]
pub(super) struct Encoded {
    pub(super) metadata: Bytes,
    pub(super) body: Bytes,
    pub(super) rows: u32,
}

/// The rows with what is encoded by a dictionary written out, for a message alone does not hold one.
pub(super) fn plain(batch: RecordBatch) -> Result<RecordBatch, FlightError> {
    let fields = plain_fields(batch.schema_ref().fields());
    if fields == *batch.schema_ref().fields() {
        return Ok(batch);
    }
    let columns = batch.columns().iter().zip(&fields).map(|(column, field)| {
        if column.data_type() == field.data_type() {
            return Ok(ArrayRef::clone(column));
        }
        cast(column, field.data_type()).map_err(|error| {
            FlightError::refused(format!("column {:?} is not written out: {error}", field.name()))
        })
    });
    let columns = columns.collect::<Result<_, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
        .map_err(|error| FlightError::refused(error.to_string()))
}

fn plain_fields(fields: &Fields) -> Fields {
    fields.iter().map(plain_field).collect()
}

fn plain_field(field: &FieldRef) -> FieldRef {
    match plain_type(field.data_type()) {
        Some(data_type) => Arc::new(Field::new(field.name(), data_type, field.is_nullable())),
        None => FieldRef::clone(field),
    }
}

/// The type without dictionaries, if it has any.
fn plain_type(data_type: &DataType) -> Option<DataType> {
    let changed = |before: &FieldRef| {
        let after = plain_field(before);
        (after != *before).then_some(after)
    };
    match data_type {
        DataType::Dictionary(_, value) => Some(plain_type(value).unwrap_or_else(|| value.as_ref().clone())),
        DataType::List(child) => changed(child).map(DataType::List),
        DataType::LargeList(child) => changed(child).map(DataType::LargeList),
        DataType::Map(entries, sorted) => changed(entries).map(|entries| DataType::Map(entries, *sorted)),
        DataType::Struct(fields) => {
            let after = plain_fields(fields);
            (after != *fields).then_some(DataType::Struct(after))
        }
        _ => None,
    }
}

/// About what the rows take in memory and on the way; never 0.
pub(crate) fn bytes_of(batch: &RecordBatch) -> usize {
    let columns = batch.columns().iter().map(|column| column.to_data().get_slice_memory_size().unwrap_or(0));
    columns.fold(0, usize::saturating_add).max(1)
}

/// The messages of these rows, in order.
pub(super) fn encode(
    schema: &SchemaRef,
    rows: &[RecordBatch],
    how: Encoding,
) -> Result<Vec<Encoded>, FlightError> {
    let mut messages = Vec::new();
    match rows {
        [only] => cut(only, how, &mut messages)?,
        several => {
            let joined = concat_batches(schema, several)
                .map_err(|error| FlightError::refused(format!("the rows do not fit together: {error}")))?;
            cut(&joined, how, &mut messages)?;
        }
    }
    Ok(messages)
}

/// Halves rows until each part is a message that is small enough. A single row is sent as it is: the server says what it thinks of it.
fn cut(rows: &RecordBatch, how: Encoding, messages: &mut Vec<Encoded>) -> Result<(), FlightError> {
    let count = rows.num_rows();
    // Nobody writes what is surely too large only to see that it is.
    let hopeless = how.compression == ArrowCompression::None && bytes_of(rows) > how.message_bytes_max;
    if count == 1 || (count <= ARROW_ROWS_MAX && !hopeless) {
        let (metadata, body) =
            ipc_message(rows, how.compression).map_err(|error| FlightError::refused(error.to_string()))?;
        if count == 1 || metadata.len() + body.len() <= how.message_bytes_max {
            let rows = u32::try_from(count).unwrap_or(u32::MAX);
            messages.push(Encoded { metadata, body, rows });
            return Ok(());
        }
    }
    cut(&rows.slice(0, count / 2), how, messages)?;
    cut(&rows.slice(count / 2, count - count / 2), how, messages)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::types::Int32Type;
    use arrow_array::{DictionaryArray, Int64Array, StringArray};

    #[test]
    fn what_a_dictionary_encodes_is_written_out() {
        let words: DictionaryArray<Int32Type> = vec!["a", "b", "a"].into_iter().collect();
        let batch = RecordBatch::try_from_iter([("word", Arc::new(words) as ArrayRef)]).expect("one column");
        let batch = plain(batch).expect("it can be cast");
        assert_eq!(batch.column(0).as_ref(), &StringArray::from(vec!["a", "b", "a"]) as &dyn Array);
    }

    #[test]
    fn many_rows_become_messages_below_the_bound_with_all_rows() {
        let numbers = Int64Array::from_iter_values(0..10_000);
        let batch = RecordBatch::try_from_iter([("n", Arc::new(numbers) as ArrayRef)]).expect("one column");
        let how = Encoding { compression: ArrowCompression::None, message_bytes_max: 16 << 10 };
        let messages = encode(&batch.schema(), &[batch.clone(), batch], how).expect("they can be written");
        assert!(messages.len() > 8, "{}", messages.len());
        assert!(messages.iter().all(|message| message.metadata.len() + message.body.len() <= 16 << 10));
        assert_eq!(messages.iter().map(|message| message.rows).sum::<u32>(), 20_000);
    }
}
