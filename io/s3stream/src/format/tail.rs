//! The last bytes of an object: where its footer is, and that all of it is there.
//!
//! Lives on: anywhere (pure).
//! Invariants: an object that was cut short, padded or torn never decodes: its tail holds its own total length (P-1).
use super::codec::{Cursor, FormatError, check};
use super::footer::Footer;
use super::{FOOTER_BYTES_MAX, HEADER_BYTES};

/// Length of a tail in bytes.
pub const TAIL_BYTES: usize = 32;
const MAGIC: [u8; 4] = *b"MEND";
const PART: &str = "object tail";

/// The tail of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tail {
    /// Where the footer begins; the body ends there.
    pub footer_position: u64,
    /// Length of the footer, without the tail.
    pub footer_length: u32,
    /// CRC32C of the footer.
    pub footer_crc: u32,
    /// Length of the whole object.
    pub total: u64,
}

impl Tail {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.footer_position.to_le_bytes());
        out.extend_from_slice(&self.footer_length.to_le_bytes());
        out.extend_from_slice(&self.footer_crc.to_le_bytes());
        out.extend_from_slice(&self.total.to_le_bytes());
        let crc = crc32c::crc32c(out.get(start..).unwrap_or_default());
        out.extend_from_slice(&crc.to_le_bytes());
        out.extend_from_slice(&MAGIC);
    }

    /// Reads the tail of an object of `total` bytes from its last [`TAIL_BYTES`] bytes.
    pub fn decode(bytes: &[u8], total: u64) -> Result<Tail, FormatError> {
        let mut at = Cursor::new(bytes, PART);
        let tail = Tail {
            footer_position: at.u64()?,
            footer_length: at.u32()?,
            footer_crc: at.u32()?,
            total: at.u64()?,
        };
        let crc = at.u32()?;
        if at.array::<4>()? != MAGIC {
            return Err(FormatError::Magic { part: PART });
        }
        at.end()?;
        check(PART, bytes.get(..TAIL_BYTES - 8).unwrap_or_default(), crc)?;
        let parts = tail.footer_position.checked_add(u64::from(tail.footer_length));
        if tail.total != total || parts.and_then(|n| n.checked_add(TAIL_BYTES as u64)) != Some(total) {
            return Err(FormatError::Value { part: PART, what: "its length" });
        }
        if tail.footer_position < HEADER_BYTES as u64 || tail.footer_length > FOOTER_BYTES_MAX {
            return Err(FormatError::Value { part: PART, what: "the footer's place" });
        }
        Ok(tail)
    }

    /// Reads the footer, given its bytes.
    pub fn footer(&self, bytes: &[u8]) -> Result<Footer, FormatError> {
        check(super::footer::PART, bytes, self.footer_crc)?;
        Footer::decode(bytes, self.footer_position)
    }
}

/// The tail of an object of `total` bytes and, when they are long enough, its footer, from its last bytes.
pub(crate) fn split_end(last: &[u8], total: u64) -> Result<(Tail, Option<Footer>), FormatError> {
    let at = last.len().checked_sub(TAIL_BYTES).ok_or(FormatError::Short { part: PART })?;
    let (before, tail) = last.split_at(at);
    let tail = Tail::decode(tail, total)?;
    let footer = before.len().checked_sub(tail.footer_length as usize).and_then(|start| before.get(start..));
    Ok((tail, footer.map(|bytes| tail.footer(bytes)).transpose()?))
}
