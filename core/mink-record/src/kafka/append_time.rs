//! The time at which a batch was appended, written into a batch that its producer has signed.
//!
//! Lives on: anywhere (pure). Costs the same for a batch of any size: the checksum is linear, so what the change adds to it follows from
//! the change alone.
//! Invariants: the checksum is right afterwards if it was before, and wrong if it was wrong; base timestamp and records stay as they were.

use super::header::{ATTRIBUTES_AT, Attributes, CHECKSUM_AT, MAX_TIMESTAMP_AT};
use super::{BatchHeader, HEADER_BYTES};
use crate::RecordError;
use crate::checksum::moved;

/// From the first byte that changes to the last.
const CHANGED: std::ops::Range<usize> = ATTRIBUTES_AT..MAX_TIMESTAMP_AT + 8;
const CHANGED_BYTES: usize = CHANGED.end - CHANGED.start;

/// The remainder of `bytes` and `zeros` bytes of zero behind them, without the inversions of a checksum.
fn remainder(bytes: &[u8], zeros: usize) -> u32 {
    moved(!crc32c::crc32c_append(!0, bytes), zeros)
}

/// Says in the header of `batch`, which it fills exactly, that all its records have the timestamp `time` (milliseconds since 1970):
/// that of appending, as Kafka writes it.
///
/// # Errors
/// Those of [`BatchHeader::parse`]; nothing is written then.
pub fn set_append_time(batch: &mut [u8], time: i64) -> Result<(), RecordError> {
    let header = BatchHeader::parse(batch)?;
    let zeros = header.whole(batch)?.len().saturating_sub(CHANGED.end);
    let attributes = header.attributes.raw() | Attributes::LOG_APPEND_TIME;
    let mut change = [0; CHANGED_BYTES];
    {
        let (first, rest) = change.split_at_mut(2);
        first.copy_from_slice(&(header.attributes.raw() ^ attributes).to_be_bytes());
        let (_, last) = rest.split_at_mut(CHANGED_BYTES - 2 - 8);
        last.copy_from_slice(&(header.max_timestamp ^ time).to_be_bytes());
    }
    let checksum = header.checksum ^ remainder(&change, zeros);
    let Some(head) = batch.first_chunk_mut::<HEADER_BYTES>() else { return Ok(()) };
    for (byte, change) in head.iter_mut().skip(CHANGED.start).zip(change) {
        *byte ^= change;
    }
    if let Some(field) = head.get_mut(CHECKSUM_AT..CHECKSUM_AT + 4) {
        field.copy_from_slice(&checksum.to_be_bytes());
    }
    Ok(())
}
