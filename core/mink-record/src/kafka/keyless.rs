//! Records without a key, which a compacted topic does not take.
//!
//! Lives on: anywhere (pure). Inflates: the caller keeps to a budget, and off the cores.
//! Invariants: I19: each record is looked at whole, so a batch that passes can be read; I20: places are listed up to a bound only.

use bytes::Bytes;

use super::{BatchHeader, records};
use crate::RecordError;

/// The records of a batch that have no key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keyless {
    /// How many.
    pub count: u32,
    /// The places of the first of them in the batch, from 0.
    pub first: Vec<u32>,
}

/// The records that have no key, of which at most `most` are listed. An empty key is one. The other arguments and errors are those of
/// [`records`].
pub fn keyless(
    header: &BatchHeader,
    batch: Bytes,
    inflated_bytes_max: usize,
    most: usize,
) -> Result<Keyless, RecordError> {
    let mut found = Keyless::default();
    for (record, place) in records(header, batch, inflated_bytes_max)?.zip(0..) {
        if record?.key.is_none() {
            found.count = found.count.saturating_add(1);
            if found.first.len() < most {
                found.first.push(place);
            }
        }
    }
    Ok(found)
}
