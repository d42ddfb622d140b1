//! A run of stored batches, one at a time, and the two fields that the log sets in each.
//!
//! Lives on: anywhere (pure).
//! Invariants: I19: each step takes at least a header's bytes, so a run ends; a slice is never copied.

use bytes::Bytes;

use super::BatchHeader;
use super::header::{EPOCH_AT, HEADER_BYTES, LENGTH_AT};
use crate::{RecordError, RecordErrorKind};

/// The batches of `run` in order, each with its own slice of it. Checksums are not looked at
/// ([`BatchHeader::verify_checksum`]).
///
/// The iterator ends after its first error. A run that is cut in its last batch gives `Incomplete` there.
pub fn batches(run: Bytes) -> Batches {
    Batches { rest: run, failed: false }
}

/// See [`batches`].
#[derive(Clone, Debug)]
pub struct Batches {
    rest: Bytes,
    failed: bool,
}

impl Batches {
    /// The bytes not yet given out: empty at the end of a sound run, else from the batch in question on.
    pub fn rest(&self) -> &Bytes {
        &self.rest
    }
}

impl Iterator for Batches {
    type Item = Result<(BatchHeader, Bytes), RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.rest.is_empty() {
            return None;
        }
        let parsed = BatchHeader::parse(&self.rest).and_then(|header| {
            header.whole(&self.rest)?;
            Ok(header)
        });
        Some(match parsed {
            Ok(header) => Ok((header, self.rest.split_to(header.total_bytes()))),
            Err(error) => {
                self.failed = true;
                Err(error)
            }
        })
    }
}

impl std::iter::FusedIterator for Batches {}

/// Writes the offset of the first record and the leader's epoch into a batch. Both lie outside its checksum.
///
/// # Errors
/// `Incomplete` if `batch` is shorter than a header; nothing is written then.
pub fn set_offset_and_epoch(
    batch: &mut [u8],
    base_offset: i64,
    partition_leader_epoch: i32,
) -> Result<(), RecordError> {
    let have = batch.len();
    let short = || {
        RecordError::new(
            RecordErrorKind::Incomplete,
            format!("{have} bytes are no batch; its header alone has {HEADER_BYTES}"),
        )
    };
    let header = batch.first_chunk_mut::<HEADER_BYTES>().ok_or_else(short)?;
    if let Some(field) = header.get_mut(..LENGTH_AT) {
        field.copy_from_slice(&base_offset.to_be_bytes());
    }
    if let Some(field) = header.get_mut(EPOCH_AT..EPOCH_AT + 4) {
        field.copy_from_slice(&partition_leader_epoch.to_be_bytes());
    }
    Ok(())
}
