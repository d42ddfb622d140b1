//! Some columns of a stored batch as an IPC message of their own, cut out of it without decoding or inflating.
//!
//! Lives on: anywhere (pure). Costs by the number of columns, not by their bytes: the body's parts are slices.
//! Invariants: what decodes from the cut message is what decodes of these columns from the batch.

use bytes::Bytes;
use mink_types::schema::{FieldId, Schema};

use super::ArrowBatch;
use super::frame::order_of;
use super::layout::counts;
use super::message::{ALIGNMENT, Message, Place};
use super::types::arrow_type;
use crate::RecordError;

static ZEROS: [u8; ALIGNMENT] = [0; ALIGNMENT];

/// An IPC message: its schema is that of the columns it was cut for, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pruned {
    /// As it stands in `FlightData.data_header`.
    pub metadata: Bytes,
    /// Put one after the other, the body.
    pub body: Vec<Bytes>,
    /// Bytes of the body in all.
    pub body_length: usize,
}

/// The body in the making.
struct Cut {
    body: Vec<Bytes>,
    length: usize,
    /// Where the slice added last ends in the stored body.
    source_end: Option<usize>,
}

impl Cut {
    /// Adds the stored bytes `from..to`; gives what their places change by, as (add, take away).
    fn add(&mut self, source: &Bytes, from: usize, to: usize) -> (usize, usize) {
        let at = self.length;
        match self.body.last_mut().filter(|_| self.source_end == Some(from)) {
            // Columns that lie side by side stay one slice.
            Some(last) => *last = source.slice(from.saturating_sub(last.len())..to),
            None => self.body.push(source.slice(from..to)),
        }
        self.length += to - from;
        self.source_end = Some(to);
        let short = self.length.next_multiple_of(ALIGNMENT) - self.length;
        if short > 0 {
            self.body.push(Bytes::from_static(ZEROS.get(..short).unwrap_or_default()));
            self.length += short;
            self.source_end = None;
        }
        (at, from)
    }
}

impl ArrowBatch {
    /// The columns `wanted`, in that order, with the batch's rows.
    ///
    /// # Errors
    /// `SchemaMismatch` for another schema than the batch's, or for columns that it does not have or that are wanted twice;
    /// `InvalidRecord`.
    pub fn prune(&self, stored: &Schema, wanted: &[FieldId]) -> Result<Pruned, RecordError> {
        let message = self.message(stored)?;
        let order = order_of(stored, wanted)?;
        // Of each wanted column: its first node and buffer, and how many.
        let (mut node, mut buffer) = (0, 0);
        let mut found = vec![None; wanted.len()];
        for (column, place) in stored.columns().iter().zip(&order) {
            let own = counts(&arrow_type(&column.data_type));
            if let Some(slot) = place.and_then(|place| found.get_mut(place)) {
                *slot = Some((node, buffer, own));
            }
            node += own.nodes;
            buffer += own.buffers;
        }
        let mut cut = Cut { body: Vec::new(), length: 0, source_end: None };
        let mut pruned =
            Message { nodes: Vec::new(), buffers: Vec::new(), views: Vec::new(), body_bytes: 0, ..message };
        for (node, buffer, own) in found.into_iter().flatten() {
            pruned.nodes.extend(message.nodes.iter().skip(node).take(own.nodes));
            let places: Vec<Place> = message.buffers.iter().skip(buffer).take(own.buffers).copied().collect();
            cut_column(&mut cut, self.body(), &places, &mut pruned.buffers);
        }
        pruned.body_bytes = cut.length;
        Ok(Pruned { metadata: Bytes::from(pruned.write()), body: cut.body, body_length: cut.length })
    }
}

/// Buffers lie in order, so a column's bytes are one range.
fn cut_column(cut: &mut Cut, body: &Bytes, places: &[Place], buffers: &mut Vec<Place>) {
    let full = || places.iter().filter(|place| place.length > 0);
    let (Some(from), Some(to)) =
        (full().next().map(|place| place.offset), full().next_back().map(|place| place.end()))
    else {
        buffers.extend(places.iter().map(|_| Place { offset: cut.length, length: 0 }));
        return;
    };
    // With its padding, so that the next column's bytes follow.
    let to = to.next_multiple_of(ALIGNMENT).min(body.len());
    let (at, start) = cut.add(body, from, to);
    let mut end = at;
    for place in places {
        let moved = match place.length {
            0 => Place { offset: end, length: 0 },
            length => Place { offset: place.offset - start + at, length },
        };
        end = moved.end().next_multiple_of(ALIGNMENT);
        buffers.push(moved);
    }
}
