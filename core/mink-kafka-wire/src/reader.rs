//! Reads a message from bytes that a stranger sent: every length is checked before it is used.
//!
//! Lives on: anywhere (pure).
//! Owns: the bytes not yet read and what is left of the memory that this message may take.
//! Invariants: I19: no panic, no allocation sized by a count alone (K-28).
//!
//! Two checks stand before every allocation. A count must fit in the bytes that are left, each element taking at
//! least its minimum; and the elements' size in memory is taken from a budget of [`ALLOCATION_FACTOR`] times the
//! frame, because an element can be much larger in memory (an empty compact string is 1 byte on the wire and 32 here).
//! Text, bytes and records allocate nothing: they are slices of the frame.

use bytes::{Buf as _, Bytes};

use crate::error::{DecodeError, Fault};
use crate::records::Records;
use crate::text::KafkaString;
use crate::uuid::Uuid;

/// A decoded message takes at most this many times the bytes of its frame, plus [`ALLOCATION_CONSTANT`].
pub const ALLOCATION_FACTOR: usize = 16;

/// In bytes; lets small honest frames be as uneven as they like.
pub const ALLOCATION_CONSTANT: usize = 4096;

/// The smallest tagged field: one byte of tag, one of size.
const TAGGED_FIELD_LEN_MIN: usize = 2;

/// Longest text of any field, in bytes, as from Kafka.
const TEXT_BYTES_MAX: u32 = i16::MAX as u32;

/// A cursor over one frame. The `field` that each method takes is only for the error.
#[derive(Debug)]
pub struct Reader {
    bytes: Bytes,
    message: &'static str,
    flexible: bool,
    memory_left: usize,
}

impl Reader {
    /// `flexible` tells whether lengths are compact and structs end in tagged fields.
    pub fn new(bytes: Bytes, message: &'static str, flexible: bool) -> Self {
        let memory_left = bytes.len().saturating_mul(ALLOCATION_FACTOR).saturating_add(ALLOCATION_CONSTANT);
        Self { bytes, message, flexible, memory_left }
    }

    /// Ends the reading; a byte left over is an error.
    pub fn finish(self) -> Result<(), DecodeError> {
        match self.bytes.len() {
            0 => Ok(()),
            count => Err(self.error("end", Fault::Trailing { count })),
        }
    }

    /// The bytes not yet read.
    pub fn into_rest(self) -> Bytes {
        self.bytes
    }

    #[cold]
    fn error(&self, field: &'static str, fault: Fault) -> DecodeError {
        DecodeError { message: self.message, field, fault }
    }

    fn fixed<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], DecodeError> {
        let Some(chunk) = self.bytes.first_chunk::<N>() else {
            return Err(self.error(field, Fault::Truncated { needed: N, remaining: self.bytes.len() }));
        };
        let chunk = *chunk;
        self.bytes.advance(N);
        Ok(chunk)
    }

    fn take(&mut self, field: &'static str, len: usize) -> Result<Bytes, DecodeError> {
        if len > self.bytes.len() {
            return Err(self.error(field, Fault::Truncated { needed: len, remaining: self.bytes.len() }));
        }
        Ok(self.bytes.split_to(len))
    }

    // ---- numbers ----

    pub fn boolean(&mut self, field: &'static str) -> Result<bool, DecodeError> {
        // Any value but 0 is true, as in Kafka.
        Ok(self.fixed::<1>(field)? != [0])
    }

    pub fn int8(&mut self, field: &'static str) -> Result<i8, DecodeError> {
        self.fixed(field).map(i8::from_be_bytes)
    }

    pub fn int16(&mut self, field: &'static str) -> Result<i16, DecodeError> {
        self.fixed(field).map(i16::from_be_bytes)
    }

    pub fn uint16(&mut self, field: &'static str) -> Result<u16, DecodeError> {
        self.fixed(field).map(u16::from_be_bytes)
    }

    pub fn int32(&mut self, field: &'static str) -> Result<i32, DecodeError> {
        self.fixed(field).map(i32::from_be_bytes)
    }

    pub fn int64(&mut self, field: &'static str) -> Result<i64, DecodeError> {
        self.fixed(field).map(i64::from_be_bytes)
    }

    pub fn uuid(&mut self, field: &'static str) -> Result<Uuid, DecodeError> {
        self.fixed(field).map(Uuid)
    }

    /// At most 5 bytes; more, or more than 32 bits in them, are an error.
    pub fn unsigned_varint(&mut self, field: &'static str) -> Result<u32, DecodeError> {
        let mut value = 0u32;
        for shift in [0, 7, 14, 21, 28] {
            let [byte] = self.fixed(field)?;
            let bits = u32::from(byte & 0x7f);
            if shift == 28 && byte > 0x0f {
                return Err(self.error(field, Fault::Varint));
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.error(field, Fault::Varint))
    }

    // ---- what has a length ----

    /// A compact length is one more than the value, and 0 is null.
    fn compact_length(&mut self, field: &'static str) -> Result<Option<u32>, DecodeError> {
        Ok(self.unsigned_varint(field)?.checked_sub(1))
    }

    fn length16(&mut self, field: &'static str) -> Result<Option<u32>, DecodeError> {
        if self.flexible {
            return self.compact_length(field);
        }
        self.classic_length(field)
    }

    /// The length of text outside compact encoding: also the client id of every header.
    fn classic_length(&mut self, field: &'static str) -> Result<Option<u32>, DecodeError> {
        let length = self.int16(field)?;
        self.signed_length(field, i32::from(length))
    }

    fn length32(&mut self, field: &'static str) -> Result<Option<u32>, DecodeError> {
        if self.flexible {
            return self.compact_length(field);
        }
        let length = self.int32(field)?;
        self.signed_length(field, length)
    }

    fn signed_length(&self, field: &'static str, length: i32) -> Result<Option<u32>, DecodeError> {
        match u32::try_from(length) {
            Ok(length) => Ok(Some(length)),
            Err(_) if length == -1 => Ok(None),
            Err(_) => Err(self.error(field, Fault::Length { length: i64::from(length) })),
        }
    }

    fn take_length(&mut self, field: &'static str, length: u32) -> Result<Bytes, DecodeError> {
        let Ok(len) = usize::try_from(length) else {
            return Err(self.error(field, Fault::Length { length: i64::from(length) }));
        };
        self.take(field, len)
    }

    fn text(&mut self, field: &'static str, length: Option<u32>) -> Result<Option<KafkaString>, DecodeError> {
        let Some(length) = length else { return Ok(None) };
        // A compact length could say more, and an answer that repeats it could not be written.
        if length > TEXT_BYTES_MAX {
            return Err(self.error(field, Fault::Length { length: i64::from(length) }));
        }
        let bytes = self.take_length(field, length)?;
        match KafkaString::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(self.error(field, Fault::Utf8)),
        }
    }

    fn required<T>(&self, field: &'static str, value: Option<T>) -> Result<T, DecodeError> {
        value.ok_or_else(|| self.error(field, Fault::Null))
    }

    pub fn nullable_string(&mut self, field: &'static str) -> Result<Option<KafkaString>, DecodeError> {
        let length = self.length16(field)?;
        self.text(field, length)
    }

    pub fn string(&mut self, field: &'static str) -> Result<KafkaString, DecodeError> {
        let value = self.nullable_string(field)?;
        self.required(field, value)
    }

    /// Text with a two-byte length even where lengths are compact.
    pub fn classic_nullable_string(
        &mut self,
        field: &'static str,
    ) -> Result<Option<KafkaString>, DecodeError> {
        let length = self.classic_length(field)?;
        self.text(field, length)
    }

    pub fn nullable_bytes(&mut self, field: &'static str) -> Result<Option<Bytes>, DecodeError> {
        match self.length32(field)? {
            Some(length) => self.take_length(field, length).map(Some),
            None => Ok(None),
        }
    }

    pub fn bytes(&mut self, field: &'static str) -> Result<Bytes, DecodeError> {
        let value = self.nullable_bytes(field)?;
        self.required(field, value)
    }

    pub fn nullable_records(&mut self, field: &'static str) -> Result<Option<Records>, DecodeError> {
        Ok(self.nullable_bytes(field)?.map(Records::from))
    }

    pub fn records(&mut self, field: &'static str) -> Result<Records, DecodeError> {
        self.bytes(field).map(Records::from)
    }

    // ---- arrays ----

    /// `element_len_min` is the fewest bytes that one element can take; at least 1.
    pub fn nullable_array<T>(
        &mut self,
        field: &'static str,
        element_len_min: usize,
        mut element: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Option<Vec<T>>, DecodeError> {
        let Some(count) = self.length32(field)? else {
            return Ok(None);
        };
        let elements = self.checked_count(field, count, element_len_min)?;
        self.charge::<T>(field, elements)?;
        let mut array = Vec::with_capacity(elements);
        for _ in 0..elements {
            array.push(element(self)?);
        }
        Ok(Some(array))
    }

    /// As [`Self::nullable_array`], where null is an error.
    pub fn array<T>(
        &mut self,
        field: &'static str,
        element_len_min: usize,
        element: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        let value = self.nullable_array(field, element_len_min, element)?;
        self.required(field, value)
    }

    fn checked_count(&self, field: &'static str, count: u32, len_min: usize) -> Result<usize, DecodeError> {
        let remaining = self.bytes.len();
        let room = remaining / len_min.max(1);
        match usize::try_from(count) {
            Ok(elements) if elements <= room => Ok(elements),
            _ => Err(self.error(field, Fault::Count { count, remaining })),
        }
    }

    fn charge<T>(&mut self, field: &'static str, elements: usize) -> Result<(), DecodeError> {
        let left = elements.checked_mul(size_of::<T>()).and_then(|size| self.memory_left.checked_sub(size));
        match left {
            Some(left) => {
                self.memory_left = left;
                Ok(())
            }
            None => Err(self.error(field, Fault::Memory)),
        }
    }

    // ---- structs ----

    /// A struct that may be absent: a byte says whether it follows.
    pub fn nullable_struct<T>(
        &mut self,
        field: &'static str,
        read: impl FnOnce(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Option<T>, DecodeError> {
        if self.int8(field)? < 0 { Ok(None) } else { read(self).map(Some) }
    }

    // ---- tagged fields ----

    /// Reads the tagged fields that end a struct, if this version has them. `known` reads the value of a tag it knows
    /// and must use all of it, or answers `false`: then the field is passed over.
    pub fn tagged_fields(
        &mut self,
        field: &'static str,
        mut known: impl FnMut(&mut Self, u32) -> Result<bool, DecodeError>,
    ) -> Result<(), DecodeError> {
        if !self.flexible {
            return Ok(());
        }
        let count = self.unsigned_varint(field)?;
        let count = self.checked_count(field, count, TAGGED_FIELD_LEN_MIN)?;
        for _ in 0..count {
            let tag = self.unsigned_varint(field)?;
            let size = self.unsigned_varint(field)?;
            let value = self.take_length(field, size)?;
            // The value is read by this reader, so that its memory counts too.
            let rest = std::mem::replace(&mut self.bytes, value);
            let understood = known(self, tag)?;
            let left_over = std::mem::replace(&mut self.bytes, rest).len();
            if understood && left_over > 0 {
                return Err(self.error(field, Fault::Trailing { count: left_over }));
            }
        }
        Ok(())
    }

    /// As [`Self::tagged_fields`], where none is known.
    pub fn skip_tagged_fields(&mut self, field: &'static str) -> Result<(), DecodeError> {
        self.tagged_fields(field, |_, _| Ok(false))
    }
}

#[cfg(test)]
mod tests;
