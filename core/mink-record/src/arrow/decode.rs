//! Arrays out of a message and its body, checked wholly.
//!
//! Lives on: anywhere (pure). Costs CPU and memory by what the buffers inflate to.
//! Invariants: I19: every array is built by Arrow's validating builder (offsets rise and lie in range, text is UTF-8, lengths fit), and
//! what that builder takes for granted (bitmaps as long as their rows, buffers of whole elements) is seen to before. No error's text has bytes of a value.

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, make_array};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_data::{ArrayData, BufferSpec, layout};
use arrow_schema::{DataType as ArrowType, Field as ArrowField, SchemaRef};
use bytes::Bytes;

use super::inflate::Inflater;
use super::layout::counts;
use super::message::{Message, Node};
use crate::RecordError;

/// Goes through the nodes and buffers of a message, column by column.
pub(super) struct Decoder<'a> {
    message: &'a Message,
    body: &'a Bytes,
    node: usize,
    buffer: usize,
    view: usize,
    inflater: Inflater,
    /// The values of each dictionary-encoded field, in the order in which the fields lie.
    dictionaries: std::slice::Iter<'a, ArrayData>,
}

/// All columns of a message that was read for the columns of `schema`.
pub(super) fn decode(
    message: &Message,
    body: &Bytes,
    schema: &SchemaRef,
    inflated_bytes_max: usize,
) -> Result<RecordBatch, RecordError> {
    decode_with(message, body, schema, &[], inflated_bytes_max)
}

/// As [`decode`], with the values of each dictionary-encoded field, in the order in which the fields lie.
pub(super) fn decode_with(
    message: &Message,
    body: &Bytes,
    schema: &SchemaRef,
    dictionaries: &[ArrayData],
    inflated_bytes_max: usize,
) -> Result<RecordBatch, RecordError> {
    let mut decoder =
        Decoder { dictionaries: dictionaries.iter(), ..Decoder::new(message, body, inflated_bytes_max) };
    let columns = schema.fields().iter().map(|field| decoder.column(field)).collect::<Result<_, _>>()?;
    assemble(schema, columns, message.rows)
}

/// A batch of columns that have `rows` rows each.
pub(super) fn assemble(
    schema: &SchemaRef,
    columns: Vec<ArrayRef>,
    rows: usize,
) -> Result<RecordBatch, RecordError> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(SchemaRef::clone(schema), columns, &options).map_err(|_| {
        RecordError::invalid("a column that is NOT NULL has a null, or columns differ in length")
    })
}

impl<'a> Decoder<'a> {
    pub(super) fn new(message: &'a Message, body: &'a Bytes, inflated_bytes_max: usize) -> Decoder<'a> {
        let inflater = Inflater::new(message.compression, inflated_bytes_max);
        Decoder { message, body, node: 0, buffer: 0, view: 0, inflater, dictionaries: [].iter() }
    }

    /// The next column.
    pub(super) fn column(&mut self, field: &ArrowField) -> Result<ArrayRef, RecordError> {
        let data = self.array(field, field.name(), Some(self.message.rows))?;
        if !field.is_nullable() && data.null_count() > 0 {
            return Err(RecordError::invalid(format!(
                "column {:?} is NOT NULL, but has nulls",
                field.name()
            )));
        }
        Ok(make_array(data))
    }

    /// Passes over the next column without inflating it.
    pub(super) fn skip(&mut self, field: &ArrowField) {
        let own = counts(field.data_type());
        let views = self.message.views.iter().skip(self.view).take(own.views).sum::<usize>();
        self.node += own.nodes;
        self.buffer += own.buffers + views;
        self.view += own.views;
    }

    /// `rows`: how many there must be; none where the offsets of the array above say it.
    fn array(
        &mut self,
        field: &ArrowField,
        column: &str,
        rows: Option<usize>,
    ) -> Result<ArrayData, RecordError> {
        let unsound = || unsound(column, field.data_type());
        let node = self.next_node().ok_or_else(unsound)?;
        if rows.is_some_and(|rows| rows != node.rows) {
            return Err(RecordError::invalid(format!(
                "column {column:?}: {} entries where there must be {}",
                node.rows,
                rows.unwrap_or_default()
            )));
        }
        let nulls = self.nulls(node, column)?;
        let mut builder = ArrayData::builder(field.data_type().clone()).len(node.rows).nulls(nulls);
        match field.data_type() {
            ArrowType::Struct(children) => {
                for child in children {
                    builder = builder.add_child_data(self.array(child, column, Some(node.rows))?);
                }
            }
            list @ (ArrowType::List(child) | ArrowType::LargeList(child) | ArrowType::Map(child, _)) => {
                builder = builder.add_buffer(self.own_buffer(list, 0, column)?);
                builder = builder.add_child_data(self.array(child, column, None)?);
            }
            keyed @ ArrowType::Dictionary(..) => {
                builder = builder.add_buffer(self.own_buffer(keyed, 0, column)?);
                let values = self.dictionaries.next().ok_or_else(|| {
                    RecordError::invalid(format!(
                        "column {column:?}: its dictionary did not come before its rows"
                    ))
                })?;
                builder = builder.add_child_data(values.clone());
            }
            other => {
                for at in 0..self.value_buffers(other) {
                    builder = builder.add_buffer(self.own_buffer(other, at, column)?);
                }
            }
        }
        builder.align_buffers(true).build().map_err(|_| unsound())
    }

    fn value_buffers(&mut self, data_type: &ArrowType) -> usize {
        let own = counts(data_type);
        let variadic = match own.views {
            0 => 0,
            _ => self.message.views.get(self.view).copied().unwrap_or_default(),
        };
        self.view += own.views;
        own.buffers - 1 + variadic
    }

    fn next_node(&mut self) -> Option<Node> {
        let node = self.message.nodes.get(self.node).copied();
        self.node += 1;
        node
    }

    fn nulls(&mut self, node: Node, column: &str) -> Result<Option<NullBuffer>, RecordError> {
        if node.nulls == 0 {
            // Its bitmap may be there or not, and says nothing.
            self.buffer += 1;
            return Ok(None);
        }
        let bits = self.next_buffer(column)?;
        if bits.len() < node.rows.div_ceil(8) {
            return Err(RecordError::invalid(format!(
                "column {column:?}: {} bytes don't say which of {} entries are null",
                bits.len(),
                node.rows
            )));
        }
        let nulls = NullBuffer::new(BooleanBuffer::new(bits, 0, node.rows));
        if nulls.null_count() != node.nulls {
            return Err(RecordError::invalid(format!(
                "column {column:?}: {} entries are null, but the message says {}",
                nulls.null_count(),
                node.nulls
            )));
        }
        Ok(Some(nulls))
    }

    /// The buffer `at` of those that an array of this type has beside its bitmap, without a broken element at its end: Arrow's builder
    /// takes for granted that there is none, and panics.
    fn own_buffer(&mut self, data_type: &ArrowType, at: usize, column: &str) -> Result<Buffer, RecordError> {
        let buffer = self.next_buffer(column)?;
        let width = match layout(data_type).buffers.get(at) {
            Some(BufferSpec::FixedWidth { byte_width, .. }) => (*byte_width).max(1),
            _ => 1,
        };
        Ok(buffer.slice_with_length(0, buffer.len() - buffer.len() % width))
    }

    fn next_buffer(&mut self, column: &str) -> Result<Buffer, RecordError> {
        let place = self.message.buffers.get(self.buffer).copied();
        self.buffer += 1;
        let stored = place
            .filter(|place| place.end() <= self.body.len())
            .map(|place| self.body.slice(place.offset..place.end()))
            .ok_or_else(|| RecordError::invalid(format!("column {column:?}: a buffer is missing")))?;
        self.inflater.inflate(&stored, column)
    }
}

fn unsound(column: &str, data_type: &ArrowType) -> RecordError {
    RecordError::invalid(format!(
        "column {column:?}: its buffers hold no sound array of {data_type}: offsets must rise and lie in range, text must be UTF-8, \
         buffers must be as long as their rows, and what is NOT NULL must not be null"
    ))
}
