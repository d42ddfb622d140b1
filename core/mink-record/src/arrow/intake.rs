//! How the batches of one writer become batches of the table: decided once per writer, by its Arrow schema.
//!
//! Lives on: anywhere (pure). Costs CPU by what a batch inflates to: off the cores.
//! Invariants: I19: a message of a client is decoded and checked wholly before it is stored, and what is stored decodes by the table's
//! schema; I20.

use arrow_array::RecordBatch;
use arrow_schema::{DataType as ArrowType, FieldRef, SchemaRef};
use bytes::Bytes;
use mink_types::ArrowCompression;
use mink_types::schema::{DataType, Field, Schema};
use std::sync::Arc;

use super::conform::{Conformed, conform};
use super::decode::decode;
use super::encode::pack;
use super::frame::Parts;
use super::layout::{Counts, counts_of};
use super::message::Message;
use super::receive::Dictionaries;
use super::statistics::{statistics_of, write_statistics};
use super::types::{arrow_schema, arrow_type};
use super::{ARROW_INFLATED_BYTES_MAX, ARROW_ROWS_MAX, EncodeOptions};
use crate::kafka::{ProducedLimits, ProducerStamp};
use crate::{RecordError, RecordErrorKind};

/// A record batch as a client sent it.
#[derive(Clone, Copy, Debug)]
pub struct IpcMessage<'a> {
    /// The message's flatbuffer, as in `FlightData.data_header`: without continuation marker and length.
    pub metadata: &'a [u8],
    /// As in `FlightData.data_body`.
    pub body: &'a Bytes,
}

/// The rows of a message whose columns are those of `schema`, which no dictionary encodes; checked wholly, so that bytes of anybody may be
/// read by it. What it inflates to is capped by `inflated_bytes_max`.
///
/// # Errors
/// `InvalidRecord` for bytes that are no sound message, or have no rows; `InflatedTooLarge`.
pub fn decode_message(
    message: IpcMessage<'_>,
    schema: &SchemaRef,
    inflated_bytes_max: usize,
) -> Result<RecordBatch, RecordError> {
    let read = Message::read(message.metadata, counts_of(schema.fields()), message.body.len())?;
    decode(&read, &message.body.slice(..read.body_bytes), schema, inflated_bytes_max)
}

/// The way from a writer's columns to the table's.
#[derive(Clone, Debug)]
pub struct Intake {
    pub(super) table: Schema,
    strict: SchemaRef,
    pub(super) writer: SchemaRef,
    /// For each column of the table, which of the writer's it is.
    source: Vec<Option<usize>>,
    pub(super) expected: Counts,
    same_layout: bool,
    pub(super) dictionaries: Dictionaries,
}

impl Intake {
    /// Whether batches of the Arrow schema `writer` are taken for rows of `table`, and how. Columns, and fields of a ROW, are found by
    /// name, in any order; a nullable one, or one with a default, may be missing. Types are those of
    /// [`arrow_schema`](super::arrow_schema()), or other forms of the same: LargeUtf8, Utf8View, LargeBinary, BinaryView, LargeList,
    /// dictionaries of a scalar type, instants shown in another zone.
    ///
    /// # Errors
    /// `SchemaMismatch`, which names the column.
    pub fn new(table: &Schema, writer: &SchemaRef) -> Result<Intake, RecordError> {
        let fields: Vec<FieldRef> = writer.fields().iter().map(Arc::clone).collect();
        let (source, same_layout) = match_fields(table.columns(), &fields, "")?;
        Ok(Intake {
            table: table.clone(),
            strict: arrow_schema(table),
            writer: SchemaRef::clone(writer),
            source,
            expected: counts_of(writer.fields()),
            same_layout,
            dictionaries: Dictionaries::default(),
        })
    }

    /// Whether a message of this writer may be stored as it was sent, if it is compressed as the table wants.
    pub fn is_same_layout(&self) -> bool {
        self.same_layout
    }

    /// A batch of these rows, with base offset 0 and without a time.
    ///
    /// # Errors
    /// `SchemaMismatch` for rows of another Arrow schema than the writer's; `InvalidRecord` for no rows or for a value that its column
    /// does not accept; `TooLarge`.
    pub fn encode(
        &self,
        batch: &RecordBatch,
        options: EncodeOptions,
        stamp: Option<ProducerStamp>,
    ) -> Result<Bytes, RecordError> {
        if batch.schema_ref() != &self.writer {
            return Err(RecordError::mismatch(
                "the rows do not have the Arrow schema that was stated for them",
            ));
        }
        let conformed = self.conform(batch, ARROW_INFLATED_BYTES_MAX)?;
        pack(&conformed.batch, &self.table, options, stamp)
    }

    /// A batch of the rows of a message that a client sent, with base offset 0 and without a time. Its body stays as it was sent if it is
    /// laid out and compressed as the table's batches are; else the rows are written anew.
    ///
    /// # Errors
    /// `InvalidRecord` for bytes that are no sound message, or for a value that its column does not accept; `InflatedTooLarge`;
    /// `TooLarge`; `SchemaMismatch` for columns encoded by a dictionary, which a message alone does not hold.
    pub fn accept(
        &self,
        message: IpcMessage<'_>,
        limits: ProducedLimits,
        options: EncodeOptions,
        stamp: Option<ProducerStamp>,
    ) -> Result<Bytes, RecordError> {
        if let Some(field) = self.writer.fields().iter().find(|field| has_dictionary(field.data_type())) {
            return Err(RecordError::mismatch(format!(
                "column {:?} is encoded by a dictionary; send it plain",
                field.name()
            )));
        }
        if message.body.len() > limits.inflated_bytes_max.max(limits.batch_bytes_max) {
            return Err(too_large(message.body.len(), limits.batch_bytes_max));
        }
        let read = Message::read(message.metadata, self.expected, message.body.len())?;
        let body = message.body.slice(..read.body_bytes);
        let inflated_bytes_max = limits.inflated_bytes_max.min(ARROW_INFLATED_BYTES_MAX);
        let rows = decode(&read, &body, &self.writer, inflated_bytes_max)?;
        let conformed = self.conform(&rows, inflated_bytes_max)?;
        // Readers differ in which frames of lz4 they take (what stands behind a frame, reserved bits), so none is stored but ours.
        let as_sent = self.same_layout
            && !conformed.cut
            && read.in_order
            && read.compression == options.compression
            && read.compression != ArrowCompression::Lz4
            && read.rows <= ARROW_ROWS_MAX;
        let stored = if as_sent {
            Parts {
                schema: self.table.id(),
                rows: read.rows,
                statistics: &write_statistics(&statistics_of(&conformed.batch, &self.table)),
                metadata: &read.write(),
                body: &body,
                stamp,
            }
            .put_together()?
        } else {
            pack(&conformed.batch, &self.table, options, stamp)?
        };
        if stored.len() > limits.batch_bytes_max {
            return Err(too_large(stored.len(), limits.batch_bytes_max));
        }
        Ok(stored)
    }

    pub(super) fn conform(&self, rows: &RecordBatch, bytes_max: usize) -> Result<Conformed, RecordError> {
        conform(rows, self.table.columns(), &self.source, &self.strict, bytes_max)
    }
}

pub(super) fn too_large(bytes: usize, most: usize) -> RecordError {
    RecordError::new(
        RecordErrorKind::TooLarge,
        format!("the batch has {bytes} bytes; at most {most} are accepted, so send fewer rows in each"),
    )
}

pub(super) fn has_dictionary(data_type: &ArrowType) -> bool {
    match data_type {
        ArrowType::Dictionary(..) => true,
        ArrowType::List(child) | ArrowType::LargeList(child) | ArrowType::Map(child, _) => {
            has_dictionary(child.data_type())
        }
        ArrowType::Struct(fields) => fields.iter().any(|field| has_dictionary(field.data_type())),
        _ => false,
    }
}

/// For each of `wanted`, which of `fields` it is; and whether they are laid out alike. `path` is empty or ends with a point.
fn match_fields(
    wanted: &[Field],
    fields: &[FieldRef],
    path: &str,
) -> Result<(Vec<Option<usize>>, bool), RecordError> {
    for (at, field) in fields.iter().enumerate() {
        let name = field.name();
        if !wanted.iter().any(|wanted| wanted.name == *name) {
            let known: Vec<&str> = wanted.iter().map(|wanted| wanted.name.as_str()).take(NAMES_MAX).collect();
            return Err(RecordError::mismatch(format!(
                "the table has no column {:?}; it has {known:?}",
                format!("{path}{name}")
            )));
        }
        if fields.iter().take(at).any(|before| before.name() == name) {
            return Err(RecordError::mismatch(format!(
                "column {:?} is there twice",
                format!("{path}{name}")
            )));
        }
    }
    let mut same = fields.len() == wanted.len();
    let mut source = Vec::with_capacity(wanted.len());
    for (at, wanted) in wanted.iter().enumerate() {
        let below = format!("{path}{}", wanted.name);
        let found = fields.iter().position(|field| *field.name() == wanted.name);
        match found.and_then(|found| fields.get(found)) {
            Some(field) => same &= match_type(&wanted.data_type, field.data_type(), &below)?,
            None if wanted.nullable || wanted.default.is_some() => {}
            None => {
                return Err(RecordError::mismatch(format!(
                    "column {below:?} is missing; it is NOT NULL and has no default, so send a value for it"
                )));
            }
        }
        same &= found == Some(at);
        source.push(found);
    }
    Ok((source, same))
}

/// Names that an error lists.
const NAMES_MAX: usize = 20;

/// Whether values of `sent` are laid out as those of `wanted`; an error if they are not taken for them.
fn match_type(wanted: &DataType, sent: &ArrowType, path: &str) -> Result<bool, RecordError> {
    match (wanted, sent) {
        (DataType::Array(element), ArrowType::List(child)) => {
            match_type(&element.data_type, child.data_type(), &format!("{path}.{}", element.name))
        }
        (DataType::Array(element), ArrowType::LargeList(child)) => {
            match_type(&element.data_type, child.data_type(), &format!("{path}.{}", element.name))?;
            Ok(false)
        }
        (DataType::Map { key, value }, ArrowType::Map(entries, _)) => {
            let ArrowType::Struct(pair) = entries.data_type() else { return Err(unlike(wanted, sent, path)) };
            let (Some(sent_key), Some(sent_value), 2) = (pair.first(), pair.get(1), pair.len()) else {
                return Err(unlike(wanted, sent, path));
            };
            let keys = match_type(&key.data_type, sent_key.data_type(), &format!("{path}.{}", key.name))?;
            let values =
                match_type(&value.data_type, sent_value.data_type(), &format!("{path}.{}", value.name))?;
            Ok(keys && values)
        }
        (DataType::Row(children), ArrowType::Struct(fields)) => {
            let fields: Vec<FieldRef> = fields.iter().map(Arc::clone).collect();
            let (_, same) = match_fields(children, &fields, &format!("{path}."))?;
            Ok(same)
        }
        _ if wanted.is_scalar() => match_scalar(wanted, sent, path),
        _ => Err(unlike(wanted, sent, path)),
    }
}

fn match_scalar(wanted: &DataType, sent: &ArrowType, path: &str) -> Result<bool, RecordError> {
    let plain = arrow_type(wanted);
    if plain == *sent {
        return Ok(true);
    }
    match (&plain, sent) {
        (ArrowType::Timestamp(unit, Some(_)), ArrowType::Timestamp(sent, Some(_))) if unit == sent => {
            Ok(true)
        }
        (ArrowType::Utf8, ArrowType::LargeUtf8 | ArrowType::Utf8View)
        | (ArrowType::Binary, ArrowType::LargeBinary | ArrowType::BinaryView) => Ok(false),
        (_, ArrowType::Dictionary(_, value)) if !matches!(**value, ArrowType::Dictionary(..)) => {
            match_scalar(wanted, value, path)?;
            Ok(false)
        }
        _ => Err(unlike(wanted, sent, path)),
    }
}

fn unlike(wanted: &DataType, sent: &ArrowType, path: &str) -> RecordError {
    RecordError::mismatch(format!(
        "column {path:?} is {wanted} in the table, and {sent} in what was sent; send {}",
        arrow_type(wanted)
    ))
}
