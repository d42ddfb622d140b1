//! The metadata of an IPC message: rows, nodes and the places of buffers, read within bounds and written in one form.
//!
//! Lives on: anywhere (pure).
//! Invariants: I19: the flatbuffer is verified before any field is read; there are as many nodes and buffers as the schema has; every
//! buffer lies within the body, and together they are no longer than it. What is written is made anew from these numbers, so that no
//! byte of a client's flatbuffer reaches the flatbuffer readers of other clients.

use crate::RecordError;
use arrow_ipc::{BodyCompressionMethod, CompressionType, MessageHeader, MetadataVersion};
use flatbuffers::{FlatBufferBuilder, VerifierOptions};
use mink_types::ArrowCompression;

use super::layout::Counts;

/// Four thousand fields, each with a node and three buffers, need less than half of it.
pub(super) const METADATA_BYTES_MAX: usize = 1 << 20;
/// Message, record batch, compression; the rest are pairs of a client's own metadata, which are not kept.
const TABLES_MAX: usize = 1_024;
const DEPTH_MAX: usize = 8;
/// Rows of a message, which becomes several batches if it has more than one may have.
pub(super) const MESSAGE_ROWS_MAX: usize = 1 << 26;
/// What places in a body are multiples of.
pub(super) const ALIGNMENT: usize = 8;

/// Rows of a column, or entries of a nested one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) rows: usize,
    pub(super) nulls: usize,
}

/// Where in the body a buffer lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) offset: usize,
    pub(super) length: usize,
}

impl Place {
    pub(super) fn end(self) -> usize {
        self.offset.saturating_add(self.length)
    }
}

/// What an IPC message says of a record batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) rows: usize,
    pub(super) nodes: Vec<Node>,
    pub(super) buffers: Vec<Place>,
    /// How many buffers each column of a view type has beside its own two.
    pub(super) views: Vec<usize>,
    pub(super) compression: ArrowCompression,
    pub(super) body_bytes: usize,
    /// Each buffer begins at a multiple of 8, at or behind the end of the one before it. Only such bodies are stored.
    pub(super) in_order: bool,
}

fn refused(what: impl std::fmt::Display) -> RecordError {
    RecordError::invalid(format!("not a sound Arrow IPC message: {what}"))
}

impl Message {
    /// Reads the metadata of a message whose body has `body_bytes` bytes, for columns that have `expected` nodes and buffers.
    pub(super) fn read(metadata: &[u8], expected: Counts, body_bytes: usize) -> Result<Message, RecordError> {
        let message = verified(metadata)?;
        let batch = message.header_as_record_batch().ok_or_else(|| {
            refused("its header is no record batch; send the schema once, before the batches")
        })?;
        Message::of_batch(&message, &batch, expected, body_bytes, 1)
    }

    /// Reads the metadata of a message that brings a dictionary whose values have `expected` nodes and buffers: its id, whether it goes
    /// on where the one before it ends, and its values as a batch of one column.
    pub(super) fn read_dictionary(
        metadata: &[u8],
        expected: impl FnOnce(i64) -> Result<Counts, RecordError>,
        body_bytes: usize,
    ) -> Result<(i64, bool, Message), RecordError> {
        let message = verified(metadata)?;
        let dictionary =
            message.header_as_dictionary_batch().ok_or_else(|| refused("its header is no dictionary"))?;
        let batch = dictionary.data().ok_or_else(|| refused("a dictionary without values"))?;
        let expected = expected(dictionary.id())?;
        let values = Message::of_batch(&message, &batch, expected, body_bytes, 0)?;
        Ok((dictionary.id(), dictionary.isDelta(), values))
    }

    fn of_batch(
        message: &arrow_ipc::Message<'_>,
        batch: &arrow_ipc::RecordBatch<'_>,
        expected: Counts,
        body_bytes: usize,
        rows_min: usize,
    ) -> Result<Message, RecordError> {
        let rows = usize::try_from(batch.length())
            .ok()
            .filter(|rows| (rows_min..=MESSAGE_ROWS_MAX).contains(rows))
            .ok_or_else(|| {
                refused(format_args!("it has {} rows; 1 to {MESSAGE_ROWS_MAX} are accepted", batch.length()))
            })?;
        let stated = usize::try_from(message.bodyLength())
            .ok()
            .filter(|stated| *stated <= body_bytes)
            .ok_or_else(|| {
                refused(format_args!(
                    "it says its body has {} bytes, but {body_bytes} are there",
                    message.bodyLength()
                ))
            })?;
        let views = read_views(batch, expected)?;
        let nodes = read_nodes(batch, expected.nodes)?;
        let (buffers, in_order) =
            read_buffers(batch, expected.buffers + views.iter().sum::<usize>(), stated)?;
        let compression = read_compression(batch)?;
        Ok(Message { rows, nodes, buffers, views, compression, body_bytes: stated, in_order })
    }

    /// The metadata of a message of a stored batch or of a part of one: version V5, no views, no metadata of anyone's own.
    pub(super) fn write(&self) -> Vec<u8> {
        let mut builder =
            FlatBufferBuilder::with_capacity(256 + 16 * (self.nodes.len() + self.buffers.len()));
        let codec = match self.compression {
            ArrowCompression::None => None,
            ArrowCompression::Lz4 => Some(CompressionType::LZ4_FRAME),
            ArrowCompression::Zstd => Some(CompressionType::ZSTD),
        };
        let compression = codec.map(|codec| {
            let mut table = arrow_ipc::BodyCompressionBuilder::new(&mut builder);
            table.add_method(BodyCompressionMethod::BUFFER);
            table.add_codec(codec);
            table.finish()
        });
        let buffers: Vec<_> = self
            .buffers
            .iter()
            .map(|place| arrow_ipc::Buffer::new(wide(place.offset), wide(place.length)))
            .collect();
        let buffers = builder.create_vector(&buffers);
        let nodes: Vec<_> = self
            .nodes
            .iter()
            .map(|node| arrow_ipc::FieldNode::new(wide(node.rows), wide(node.nulls)))
            .collect();
        let nodes = builder.create_vector(&nodes);
        let mut batch = arrow_ipc::RecordBatchBuilder::new(&mut builder);
        batch.add_length(wide(self.rows));
        batch.add_nodes(nodes);
        batch.add_buffers(buffers);
        if let Some(compression) = compression {
            batch.add_compression(compression);
        }
        let batch = batch.finish().as_union_value();
        let mut message = arrow_ipc::MessageBuilder::new(&mut builder);
        message.add_version(MetadataVersion::V5);
        message.add_header_type(MessageHeader::RecordBatch);
        message.add_bodyLength(wide(self.body_bytes));
        message.add_header(batch);
        let message = message.finish();
        builder.finish(message, None);
        builder.finished_data().to_vec()
    }
}

/// What a message brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Rows,
    NoRows,
    Dictionary,
}

/// What the message of this metadata brings; its parts are not looked at.
pub(super) fn kind(metadata: &[u8]) -> Result<Kind, RecordError> {
    let message = verified(metadata)?;
    Ok(match message.header_as_record_batch() {
        Some(batch) if batch.length() == 0 => Kind::NoRows,
        None if message.header_type() == MessageHeader::DictionaryBatch => Kind::Dictionary,
        _ => Kind::Rows,
    })
}

/// The message of a flatbuffer that was verified.
fn verified(metadata: &[u8]) -> Result<arrow_ipc::Message<'_>, RecordError> {
    if metadata.len() > METADATA_BYTES_MAX {
        return Err(refused(format_args!(
            "its metadata has {} bytes; at most {METADATA_BYTES_MAX} are accepted",
            metadata.len()
        )));
    }
    let options = VerifierOptions {
        max_depth: DEPTH_MAX,
        max_tables: TABLES_MAX,
        max_apparent_size: 2 * METADATA_BYTES_MAX,
        ignore_missing_null_terminator: false,
    };
    let message = arrow_ipc::root_as_message_with_opts(&options, metadata)
        .map_err(|_| refused("its metadata is no flatbuffer of a message"))?;
    if !matches!(message.version(), MetadataVersion::V4 | MetadataVersion::V5) {
        return Err(refused("its metadata version is not V5 or V4"));
    }
    Ok(message)
}

fn read_views(batch: &arrow_ipc::RecordBatch<'_>, expected: Counts) -> Result<Vec<usize>, RecordError> {
    let stated = batch.variadicBufferCounts();
    let count = stated.map_or(0, |views| views.len());
    if count != expected.views {
        return Err(refused(format_args!(
            "it counts the buffers of {count} columns of views; the schema has {}",
            expected.views
        )));
    }
    let room = batch.buffers().map_or(0, |buffers| buffers.len());
    let mut left = room;
    let mut views = Vec::with_capacity(count);
    for stated in stated.into_iter().flatten() {
        let count = usize::try_from(stated).ok().filter(|count| *count <= left);
        let count =
            count.ok_or_else(|| refused(format_args!("{room} buffers can't be {stated} of one column")))?;
        left -= count;
        views.push(count);
    }
    Ok(views)
}

fn read_nodes(batch: &arrow_ipc::RecordBatch<'_>, expected: usize) -> Result<Vec<Node>, RecordError> {
    let stated = batch.nodes();
    let count = stated.map_or(0, |nodes| nodes.len());
    if count != expected {
        return Err(refused(format_args!("it has {count} field nodes; the schema has {expected}")));
    }
    let mut nodes = Vec::with_capacity(count);
    for node in stated.into_iter().flatten() {
        let rows = i32::try_from(node.length()).ok().and_then(|rows| usize::try_from(rows).ok());
        let nulls = usize::try_from(node.null_count()).ok();
        let (Some(rows), Some(nulls)) = (rows, nulls.filter(|nulls| rows.is_some_and(|rows| *nulls <= rows)))
        else {
            return Err(refused(format_args!(
                "a field node has {} entries, {} of them null",
                node.length(),
                node.null_count()
            )));
        };
        nodes.push(Node { rows, nulls });
    }
    Ok(nodes)
}

fn read_buffers(
    batch: &arrow_ipc::RecordBatch<'_>,
    expected: usize,
    body_bytes: usize,
) -> Result<(Vec<Place>, bool), RecordError> {
    let stated = batch.buffers();
    let count = stated.map_or(0, |buffers| buffers.len());
    if count != expected {
        return Err(refused(format_args!("it has {count} buffers; the schema has {expected}")));
    }
    let mut buffers: Vec<Place> = Vec::with_capacity(count);
    let (mut in_order, mut end, mut sum) = (true, 0, 0_usize);
    for buffer in stated.into_iter().flatten() {
        let place = match (usize::try_from(buffer.offset()), usize::try_from(buffer.length())) {
            // Writers put an empty buffer anywhere: it has no place.
            (_, Ok(0)) => Place { offset: end, length: 0 },
            (Ok(offset), Ok(length)) => Place { offset, length },
            _ => Place { offset: usize::MAX, length: usize::MAX },
        };
        sum = sum.saturating_add(place.length);
        if place.end() > body_bytes || sum > body_bytes {
            return Err(refused(format_args!(
                "a buffer of {} bytes at {} is not in its body of {body_bytes}, or shares bytes with others",
                buffer.length(),
                buffer.offset()
            )));
        }
        in_order &= place.length == 0 || place.offset >= end && place.offset.is_multiple_of(ALIGNMENT);
        if place.length > 0 {
            end = place.end();
        }
        buffers.push(place);
    }
    // An empty buffer too begins at a multiple, as readers may check that.
    for place in &mut buffers {
        if place.length == 0 {
            place.offset = place.offset.next_multiple_of(ALIGNMENT).min(body_bytes - body_bytes % ALIGNMENT);
        }
    }
    Ok((buffers, in_order))
}

fn read_compression(batch: &arrow_ipc::RecordBatch<'_>) -> Result<ArrowCompression, RecordError> {
    let Some(compression) = batch.compression() else { return Ok(ArrowCompression::None) };
    match (compression.method(), compression.codec()) {
        (BodyCompressionMethod::BUFFER, CompressionType::LZ4_FRAME) => Ok(ArrowCompression::Lz4),
        (BodyCompressionMethod::BUFFER, CompressionType::ZSTD) => Ok(ArrowCompression::Zstd),
        _ => Err(refused("it is compressed in a way that is not known; use none, lz4 or zstd, by buffer")),
    }
}

/// A length in memory is never beyond `isize`.
fn wide(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}
