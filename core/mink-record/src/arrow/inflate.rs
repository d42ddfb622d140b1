//! The buffers of a body as their arrays see them: inflated, under one cap for all of them.
//!
//! Lives on: anywhere (pure). Costs CPU by the cap.
//! Invariants: I20: the length that a compressed buffer states is taken off the cap before a byte is inflated, and no more comes out than
//! it states.

use crate::kafka::{Codec, inflate};
use crate::{RecordError, RecordErrorKind};
use arrow_buffer::Buffer;
use bytes::Bytes;
use mink_types::ArrowCompression;

use super::message::{Message, Place};

/// Before each compressed buffer: its length when inflated, or [`PLAIN`].
const PREFIX_BYTES: usize = 8;
/// The buffer is not compressed, as that would have made it longer.
const PLAIN: i64 = -1;

#[derive(Debug)]
pub(super) struct Inflater {
    compression: ArrowCompression,
    bytes_max: usize,
    left: usize,
}

impl Inflater {
    pub(super) fn new(compression: ArrowCompression, bytes_max: usize) -> Inflater {
        Inflater { compression, bytes_max, left: bytes_max }
    }

    /// The bytes of one buffer, for the column `column`.
    pub(super) fn inflate(&mut self, stored: &Bytes, column: &str) -> Result<Buffer, RecordError> {
        let codec = match self.compression {
            ArrowCompression::None => return Ok(Buffer::from(stored.clone())),
            ArrowCompression::Lz4 => Codec::Lz4,
            ArrowCompression::Zstd => Codec::Zstd,
        };
        if stored.is_empty() {
            return Ok(Buffer::from(Vec::<u8>::new()));
        }
        let Some((prefix, compressed)) = stored.split_first_chunk::<PREFIX_BYTES>() else {
            return Err(RecordError::invalid(format!(
                "column {column:?}: a compressed buffer has {} bytes; its length alone has {PREFIX_BYTES}",
                stored.len()
            )));
        };
        let stated = i64::from_le_bytes(*prefix);
        if stated == PLAIN {
            return Ok(Buffer::from(stored.slice(PREFIX_BYTES..)));
        }
        let length = usize::try_from(stated).map_err(|_| {
            RecordError::invalid(format!(
                "column {column:?}: a buffer says that it inflates to {stated} bytes"
            ))
        })?;
        self.left = self.left.checked_sub(length).ok_or_else(|| {
            RecordError::new(
                RecordErrorKind::InflatedTooLarge,
                format!(
                    "the batch inflates to more than {} bytes, the most that is read back; send fewer rows in each batch",
                    self.bytes_max
                ),
            )
        })?;
        if length == 0 {
            return Ok(Buffer::from(Vec::<u8>::new()));
        }
        let plain = inflate(codec, compressed, length)
            .map_err(|_| RecordError::invalid(format!("column {column:?}: a buffer is not sound {codec}")))?;
        if plain.len() != length {
            return Err(RecordError::invalid(format!(
                "column {column:?}: a buffer says that it inflates to {length} bytes, but {} come out",
                plain.len()
            )));
        }
        Ok(Buffer::from_vec(plain))
    }
}

/// What the buffers of a body that we have written say they inflate to, in sum.
pub(super) fn inflated_bytes(message: &Message, body: &[u8]) -> usize {
    let stated = |place: &Place| {
        let stored = body.get(place.offset..place.end()).unwrap_or_default();
        match stored.split_first_chunk::<PREFIX_BYTES>() {
            Some((prefix, _)) if message.compression != ArrowCompression::None => {
                usize::try_from(i64::from_le_bytes(*prefix)).unwrap_or(stored.len())
            }
            _ => stored.len(),
        }
    };
    message.buffers.iter().map(stated).fold(0, usize::saturating_add)
}
