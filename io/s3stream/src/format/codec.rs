//! Little-endian reading with bounds, and writing.
//!
//! Lives on: anywhere (pure).
use crate::FORMAT_VERSION;

/// Bytes that are not what this format says.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FormatError {
    #[error("{part} ends too early")]
    Short { part: &'static str },
    #[error("{part} has the wrong magic")]
    Magic { part: &'static str },
    #[error(
        "format version {version} is not known to this build, which reads version {FORMAT_VERSION}; upgrade Mink"
    )]
    Version { version: u16 },
    #[error("checksum of {part} is {found:08x}, expected {expected:08x}")]
    Checksum { part: &'static str, expected: u32, found: u32 },
    #[error("{part} holds an impossible value: {what}")]
    Value { part: &'static str, what: &'static str },
}

/// Reads from the front of a slice.
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    part: &'static str,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8], part: &'static str) -> Cursor<'a> {
        Cursor { rest: bytes, part }
    }

    pub(super) fn value(&self, what: &'static str) -> FormatError {
        FormatError::Value { part: self.part, what }
    }

    pub(super) fn slice(&mut self, len: usize) -> Result<&'a [u8], FormatError> {
        let (now, later) = self.rest.split_at_checked(len).ok_or(FormatError::Short { part: self.part })?;
        self.rest = later;
        Ok(now)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let (now, later) =
            self.rest.split_first_chunk::<N>().ok_or(FormatError::Short { part: self.part })?;
        self.rest = later;
        Ok(*now)
    }

    pub(super) fn u8(&mut self) -> Result<u8, FormatError> {
        self.array().map(u8::from_le_bytes)
    }

    pub(super) fn u16(&mut self) -> Result<u16, FormatError> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn i16(&mut self) -> Result<i16, FormatError> {
        self.array().map(i16::from_le_bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, FormatError> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn i32(&mut self) -> Result<i32, FormatError> {
        self.array().map(i32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, FormatError> {
        self.array().map(u64::from_le_bytes)
    }

    pub(super) fn i64(&mut self) -> Result<i64, FormatError> {
        self.array().map(i64::from_le_bytes)
    }

    /// A count of items that each take at least `item_bytes_min`: never more than what remains can hold (K-28).
    pub(super) fn count(&mut self, item_bytes_min: usize) -> Result<usize, FormatError> {
        let count = usize::try_from(self.u32()?).map_err(|_| self.value("a count"))?;
        if count > self.rest.len() / item_bytes_min {
            return Err(self.value("a count above what the bytes can hold"));
        }
        Ok(count)
    }

    /// Bytes that a later version may use must be zero in this one.
    pub(super) fn zeros(&mut self, len: usize) -> Result<(), FormatError> {
        if self.slice(len)?.iter().any(|byte| *byte != 0) {
            return Err(self.value("a reserved byte that is not zero"));
        }
        Ok(())
    }

    pub(super) fn end(&self) -> Result<(), FormatError> {
        if self.rest.is_empty() { Ok(()) } else { Err(self.value("bytes behind its end")) }
    }
}

/// Checks a CRC32C.
pub(super) fn check(part: &'static str, bytes: &[u8], expected: u32) -> Result<(), FormatError> {
    let found = crc32c::crc32c(bytes);
    if found == expected { Ok(()) } else { Err(FormatError::Checksum { part, expected, found }) }
}
