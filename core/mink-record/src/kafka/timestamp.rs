//! Finding a record of a batch by its timestamp, for `ListOffsets`.
//!
//! Lives on: anywhere (pure).
//! Invariants: K-15: timestamps are the producer's and in no order; the answer is the record, not the batch.

use bytes::Bytes;

use super::record::{Walk, plain};
use super::{BatchFormat, BatchHeader, TimestampType};
use crate::RecordError;

/// A record by place and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordTime {
    /// Its place in the partition.
    pub offset: i64,
    /// Milliseconds since 1970.
    pub timestamp: i64,
}

/// The first record in offset order whose timestamp is `target` (milliseconds since 1970) or later; `None` if the
/// batch has none. Nothing is inflated if the header states that all are earlier. The other arguments and errors are
/// those of [`records`](super::records), but keys, values and headers are not looked at.
pub fn first_at_or_after(
    header: &BatchHeader,
    batch: Bytes,
    target: i64,
    inflated_bytes_max: usize,
) -> Result<Option<RecordTime>, RecordError> {
    if header.max_timestamp < target {
        return Ok(None);
    }
    if header.format == BatchFormat::Arrow {
        return Ok(first_row(header));
    }
    let mut first = None;
    visit(header, batch, inflated_bytes_max, |record| {
        if record.timestamp >= target {
            first = Some(record);
        }
        first.is_none()
    })?;
    Ok(first)
}

/// The record with the greatest timestamp, the first of them if there are more; `None` for a batch without records.
/// Arguments and errors are those of [`first_at_or_after`].
pub fn max_timestamp_record(
    header: &BatchHeader,
    batch: Bytes,
    inflated_bytes_max: usize,
) -> Result<Option<RecordTime>, RecordError> {
    if header.format == BatchFormat::Arrow {
        return Ok(first_row(header));
    }
    let mut greatest: Option<RecordTime> = None;
    visit(header, batch, inflated_bytes_max, |record| {
        if greatest.is_none_or(|before| record.timestamp > before.timestamp) {
            greatest = Some(record);
        }
        // One timestamp for all: the first record is the answer.
        header.attributes.timestamp_type() == TimestampType::CreateTime
    })?;
    Ok(greatest)
}

/// Rows of Arrow have no time of their own: all were appended at that of their batch.
fn first_row(header: &BatchHeader) -> Option<RecordTime> {
    (header.record_count > 0)
        .then_some(RecordTime { offset: header.base_offset, timestamp: header.max_timestamp })
}

/// Shows the records to `more` until it says no.
fn visit(
    header: &BatchHeader,
    batch: Bytes,
    inflated_bytes_max: usize,
    mut more: impl FnMut(RecordTime) -> bool,
) -> Result<(), RecordError> {
    let plain = plain(header, batch, inflated_bytes_max)?;
    let mut walk = Walk::new(header);
    while let Some(frame) = walk.next(&plain)? {
        if !more(RecordTime { offset: frame.offset, timestamp: frame.timestamp }) {
            break;
        }
    }
    Ok(())
}
