//! The messages of one writer, one after the other: dictionaries are kept, rows become one batch or several.
//!
//! Lives on: anywhere (pure). Costs CPU by what a message inflates to: off the cores.
//! Owns: the dictionaries that the writer has sent.
//! Invariants: I6: the batches that a message becomes follow each other, with the sequences of their first rows; I19; I20: dictionaries
//! are bounded in sum.

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_data::ArrayData;
use arrow_schema::{DataType as ArrowType, Fields};
use arrow_select::concat::concat;
use bytes::Bytes;
use mink_types::Sequence;
use mink_types::schema::Schema;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::decode::{decode, decode_with};
use super::encode::pack;
use super::intake::too_large;
use super::layout::counts;
use super::message::{Kind, Message, kind};
use super::{ARROW_INFLATED_BYTES_MAX, ARROW_ROWS_MAX, EncodeOptions, Intake, IpcMessage, StatedSchema};
use crate::kafka::{ProducedLimits, ProducerStamp};
use crate::{RecordError, RecordErrorKind};

/// What a message of a writer has become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// Batches in the order of their rows, each with base offset 0 and without a time; none for a message without rows.
    Batches(Vec<Bytes>),
    /// A dictionary, which later messages refer to.
    Dictionary,
}

/// The dictionaries of a writer.
#[derive(Clone, Debug, Default)]
pub(super) struct Dictionaries {
    /// The id of each dictionary-encoded field and the type of its values, in the order in which the fields lie.
    fields: Vec<(i64, ArrowType)>,
    values: BTreeMap<i64, ArrayRef>,
}

impl Intake {
    /// As [`Intake::new`], for a writer that stated its schema in a message, and may send dictionaries.
    ///
    /// # Errors
    /// As [`Intake::new`].
    pub fn stated(table: &Schema, writer: &StatedSchema) -> Result<Intake, RecordError> {
        let mut intake = Intake::new(table, &writer.schema)?;
        let mut values = Vec::new();
        value_types(writer.schema.fields(), &mut values);
        intake.dictionaries.fields = writer.dictionaries.iter().copied().zip(values).collect();
        Ok(intake)
    }

    /// Takes the next message of the writer. Rows that are more than one batch may hold become several; `stamp` is that of the first row.
    ///
    /// # Errors
    /// As [`Intake::accept`]; nothing of the message is kept then.
    pub fn receive(
        &mut self,
        message: IpcMessage<'_>,
        limits: ProducedLimits,
        options: EncodeOptions,
        stamp: Option<ProducerStamp>,
    ) -> Result<Received, RecordError> {
        match kind(message.metadata)? {
            Kind::NoRows => Ok(Received::Batches(Vec::new())),
            Kind::Dictionary => {
                self.keep_dictionary(message, limits)?;
                Ok(Received::Dictionary)
            }
            Kind::Rows => self.rows(message, limits, options, stamp).map(Received::Batches),
        }
    }

    /// Takes the next message of the writer as rows that have the table's columns, for whoever tells them apart before they become
    /// batches; none for a dictionary and for a message without rows.
    ///
    /// # Errors
    /// As [`Intake::receive`].
    pub fn receive_rows(
        &mut self,
        message: IpcMessage<'_>,
        limits: ProducedLimits,
    ) -> Result<Option<RecordBatch>, RecordError> {
        match kind(message.metadata)? {
            Kind::NoRows => Ok(None),
            Kind::Dictionary => self.keep_dictionary(message, limits).map(|()| None),
            Kind::Rows => self.conformed(message, limits).map(Some),
        }
    }

    /// Batches of rows that have the table's columns, as [`Intake::receive_rows`] gives them.
    ///
    /// # Errors
    /// `TooLarge` for a row that no batch may hold.
    pub fn batches_of(
        &self,
        rows: &RecordBatch,
        limits: ProducedLimits,
        options: EncodeOptions,
        stamp: Option<ProducerStamp>,
    ) -> Result<Vec<Bytes>, RecordError> {
        let mut batches = Vec::new();
        if rows.num_rows() > 0 {
            self.split(rows, limits, options, stamp, &mut batches)?;
        }
        Ok(batches)
    }

    fn rows(
        &self,
        message: IpcMessage<'_>,
        limits: ProducedLimits,
        options: EncodeOptions,
        stamp: Option<ProducerStamp>,
    ) -> Result<Vec<Bytes>, RecordError> {
        let has_dictionaries = !self.dictionaries.fields.is_empty();
        if !has_dictionaries && message.body.len() <= limits.batch_bytes_max {
            match self.accept(message, limits, options, stamp) {
                Ok(batch) => return Ok(vec![batch]),
                // It fits as it was sent, and not with its statistics, or not as the table writes it.
                Err(error) if error.kind() == RecordErrorKind::TooLarge => {}
                Err(error) => return Err(error),
            }
        }
        self.batches_of(&self.conformed(message, limits)?, limits, options, stamp)
    }

    /// The rows of a message, with the table's columns.
    fn conformed(&self, message: IpcMessage<'_>, limits: ProducedLimits) -> Result<RecordBatch, RecordError> {
        let read = Message::read(message.metadata, self.expected, message.body.len())?;
        let body = message.body.slice(..read.body_bytes);
        // What is not compressed takes what its message takes.
        let inflated_bytes_max = limits.inflated_bytes_max.min(ARROW_INFLATED_BYTES_MAX).max(body.len());
        let values = self.dictionaries.in_order()?;
        let rows = decode_with(&read, &body, &self.writer, &values, inflated_bytes_max)?;
        Ok(self.conform(&rows, inflated_bytes_max)?.batch)
    }

    /// Halves rows until each part is a batch that is taken.
    fn split(
        &self,
        rows: &RecordBatch,
        limits: ProducedLimits,
        options: EncodeOptions,
        stamp: Option<ProducerStamp>,
        batches: &mut Vec<Bytes>,
    ) -> Result<(), RecordError> {
        let count = rows.num_rows();
        // Nobody writes what is surely too large only to see that it is.
        let hopeless = count > ARROW_ROWS_MAX
            || options.compression == mink_types::ArrowCompression::None
                && sliced_bytes(rows) > limits.batch_bytes_max
            || sliced_bytes(rows) > ARROW_INFLATED_BYTES_MAX;
        if !(hopeless && count > 1) {
            let packed = pack(rows, &self.table, options, stamp)?;
            if packed.len() <= limits.batch_bytes_max {
                batches.push(packed);
                return Ok(());
            }
            if count == 1 {
                return Err(too_large(packed.len(), limits.batch_bytes_max));
            }
        }
        let first = count / 2;
        self.split(&rows.slice(0, first), limits, options, stamp, batches)?;
        let later = stamp.map(|stamp| ProducerStamp {
            base_sequence: Sequence(stamp.base_sequence).plus(u32::try_from(first).unwrap_or(u32::MAX)).0,
            ..stamp
        });
        self.split(&rows.slice(first, count - first), limits, options, later, batches)
    }

    fn keep_dictionary(
        &mut self,
        message: IpcMessage<'_>,
        limits: ProducedLimits,
    ) -> Result<(), RecordError> {
        let fields = &self.dictionaries.fields;
        let value_type = |id: i64| {
            let known = fields.iter().find(|(field, _)| *field == id).map(|(_, value)| value.clone());
            known.ok_or_else(|| RecordError::invalid(format!("no column refers to the dictionary {id}")))
        };
        let expected = |id| Ok(counts(&value_type(id)?));
        let (id, is_delta, read) = Message::read_dictionary(message.metadata, expected, message.body.len())?;
        let body = message.body.slice(..read.body_bytes);
        let inflated_bytes_max = limits.inflated_bytes_max.min(ARROW_INFLATED_BYTES_MAX);
        let field = arrow_schema::Field::new("dictionary", value_type(id)?, true);
        let schema = Arc::new(arrow_schema::Schema::new(vec![field]));
        let decoded = decode(&read, &body, &schema, inflated_bytes_max)?;
        let values =
            decoded.columns().first().ok_or_else(|| RecordError::invalid("a dictionary without values"))?;
        let values = match self.dictionaries.values.get(&id).filter(|_| is_delta) {
            None => ArrayRef::clone(values),
            Some(before) => concat(&[before.as_ref(), values.as_ref()])
                .map_err(|error| RecordError::invalid(format!("the dictionary {id} can't go on: {error}")))?,
        };
        let others = self.dictionaries.values.iter().filter(|(other, _)| **other != id);
        let held: usize = others.map(|(_, values)| values.get_array_memory_size()).sum();
        if held.saturating_add(values.get_array_memory_size()) > inflated_bytes_max {
            return Err(RecordError::new(
                RecordErrorKind::InflatedTooLarge,
                format!("the dictionaries have more than {inflated_bytes_max} bytes; send the columns plain"),
            ));
        }
        self.dictionaries.values.insert(id, values);
        Ok(())
    }
}

impl Dictionaries {
    /// The values of each dictionary-encoded field.
    fn in_order(&self) -> Result<Vec<ArrayData>, RecordError> {
        let values = self.fields.iter().map(|(id, value)| match self.values.get(id) {
            // Two fields may share an id, and then its values' type.
            Some(values) if values.data_type() == value => Ok(values.to_data()),
            Some(_) => Err(RecordError::invalid(format!("the dictionary {id} has values of another type"))),
            // A column of nulls needs none.
            None => Ok(ArrayData::new_empty(value)),
        });
        values.collect()
    }
}

/// The types of the values of all dictionary-encoded fields, a field before those within it.
fn value_types(fields: &Fields, found: &mut Vec<ArrowType>) {
    for field in fields {
        match field.data_type() {
            ArrowType::Dictionary(_, value) => found.push(value.as_ref().clone()),
            ArrowType::List(child) | ArrowType::LargeList(child) | ArrowType::Map(child, _) => {
                value_types(&Fields::from(vec![Arc::clone(child)]), found);
            }
            ArrowType::Struct(children) => value_types(children, found),
            _ => {}
        }
    }
}

/// About what these rows take when they are written plain.
fn sliced_bytes(rows: &RecordBatch) -> usize {
    let columns = rows.columns().iter().map(|column| column.to_data().get_slice_memory_size().unwrap_or(0));
    columns.fold(0, usize::saturating_add)
}
