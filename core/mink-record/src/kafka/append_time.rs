//! The time at which a batch was appended, written into a batch that its producer has signed.
//!
//! Lives on: anywhere (pure). Costs the same for a batch of any size: the checksum is linear, so what the change adds to it follows from
//! the change alone.
//! Invariants: the checksum is right afterwards if it was before, and wrong if it was wrong; base timestamp and records stay as they were.

use super::header::{ATTRIBUTES_AT, Attributes, CHECKSUM_AT, MAX_TIMESTAMP_AT};
use super::{BatchHeader, HEADER_BYTES};
use crate::RecordError;

/// From the first byte that changes to the last.
const CHANGED: std::ops::Range<usize> = ATTRIBUTES_AT..MAX_TIMESTAMP_AT + 8;
const CHANGED_BYTES: usize = CHANGED.end - CHANGED.start;

/// The polynomial of CRC-32C without its highest power; the power 0 is the top bit, as in the checksum itself.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// By place: the power 8 x 2^place of the variable, which moves a checksum as many bytes on.
const SHIFTS: [u32; 32] = {
    let mut shifts = [1 << (31 - 8); 32];
    let mut at = 1;
    while at < shifts.len() {
        #[expect(clippy::indexing_slicing, reason = "evaluated when compiled")]
        {
            shifts[at] = times(shifts[at - 1], shifts[at - 1]);
        }
        at += 1;
    }
    shifts
};

/// The product of two polynomials modulo that of the checksum.
const fn times(a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    let mut bit = 1 << 31;
    while bit != 0 {
        if a & bit != 0 {
            product ^= b;
        }
        b = (b >> 1) ^ (if b & 1 == 0 { 0 } else { POLYNOMIAL });
        bit >>= 1;
    }
    product
}

/// The remainder of `bytes` and `zeros` bytes of zero behind them, without the inversions of a checksum.
fn remainder(bytes: &[u8], zeros: usize) -> u32 {
    let first = !crc32c::crc32c_append(!0, bytes);
    let places = SHIFTS.iter().enumerate().filter(|(place, _)| (zeros >> place) & 1 == 1);
    places.fold(first, |sum, (_, shift)| times(*shift, sum))
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
