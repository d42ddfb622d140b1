//! Writes a message: the framing into one buffer, records passed on as they are.
//!
//! Lives on: anywhere (pure).
//! Owns: the buffer, and the places in it where records are to be sent.

use bytes::{BufMut as _, Bytes, BytesMut};

use crate::error::{EncodeError, EncodeFault};
use crate::frame::{FRAME_PREFIX_LEN, Frame};
use crate::records::Records;
use crate::text::KafkaString;
use crate::uuid::Uuid;

/// Room for the answers that make up most of the traffic (one topic, few partitions) without growing.
const FRAMING_CAPACITY: usize = 256;

/// Bytes of another owner, to be sent after the first `at` bytes of framing.
#[derive(Debug)]
struct Insert {
    at: usize,
    bytes: Bytes,
}

/// Collects one frame. The `field` that some methods take is only for the error.
#[derive(Debug)]
pub struct Writer {
    framing: BytesMut,
    inserts: Vec<Insert>,
    inserted_len: usize,
    message: &'static str,
    flexible: bool,
}

impl Writer {
    /// Starts a frame; its length comes in when [`Self::finish`] knows it.
    pub fn new(message: &'static str, flexible: bool) -> Self {
        let mut framing = BytesMut::with_capacity(FRAMING_CAPACITY);
        framing.put_i32(0);
        Self { framing, inserts: Vec::new(), inserted_len: 0, message, flexible }
    }

    /// A value within a frame; allocates nothing until something is written.
    fn nested(&self) -> Self {
        Self {
            framing: BytesMut::new(),
            inserts: Vec::new(),
            inserted_len: 0,
            message: self.message,
            flexible: self.flexible,
        }
    }

    /// The frame, its length in front.
    pub fn finish(mut self) -> Result<Frame, EncodeError> {
        let len = self.framing.len() + self.inserted_len;
        let Ok(declared) = i32::try_from(len - FRAME_PREFIX_LEN) else {
            return Err(self.error("frame", EncodeFault::TooLong { length: len }));
        };
        if let Some(prefix) = self.framing.first_chunk_mut::<FRAME_PREFIX_LEN>() {
            *prefix = declared.to_be_bytes();
        }
        let mut segments = Vec::with_capacity(self.inserts.len() * 2 + 1);
        let mut sent = 0;
        for insert in self.inserts {
            if insert.at > sent {
                segments.push(self.framing.split_to(insert.at - sent).freeze());
                sent = insert.at;
            }
            segments.push(insert.bytes);
        }
        if !self.framing.is_empty() {
            segments.push(self.framing.freeze());
        }
        Ok(Frame::new(segments, len))
    }

    #[cold]
    fn error(&self, field: &'static str, fault: EncodeFault) -> EncodeError {
        EncodeError { message: self.message, field, fault }
    }

    /// The error for a field that is set and that `version` does not have.
    #[cold]
    pub fn not_in_version(&self, field: &'static str, version: i16) -> EncodeError {
        self.error(field, EncodeFault::NotInVersion { version })
    }

    /// The value of a field that the version wants, nullable as it may be at others.
    pub fn required<'a, T: ?Sized>(
        &self,
        field: &'static str,
        value: Option<&'a T>,
    ) -> Result<&'a T, EncodeError> {
        value.ok_or_else(|| self.error(field, EncodeFault::Required))
    }

    // ---- numbers ----

    pub fn boolean(&mut self, value: bool) {
        self.framing.put_u8(u8::from(value));
    }

    pub fn int8(&mut self, value: i8) {
        self.framing.put_i8(value);
    }

    pub fn int16(&mut self, value: i16) {
        self.framing.put_i16(value);
    }

    pub fn uint16(&mut self, value: u16) {
        self.framing.put_u16(value);
    }

    pub fn int32(&mut self, value: i32) {
        self.framing.put_i32(value);
    }

    pub fn int64(&mut self, value: i64) {
        self.framing.put_i64(value);
    }

    pub fn uuid(&mut self, value: Uuid) {
        self.framing.put_slice(&value.0);
    }

    pub fn unsigned_varint(&mut self, mut value: u32) {
        while value >= 0x80 {
            let [low, ..] = value.to_le_bytes();
            self.framing.put_u8(low | 0x80);
            value >>= 7;
        }
        let [low, ..] = value.to_le_bytes();
        self.framing.put_u8(low);
    }

    // ---- what has a length ----

    fn compact_length(&mut self, field: &'static str, length: usize) -> Result<(), EncodeError> {
        // As i32, since that is what Java readers hold it in.
        match i32::try_from(length).ok().and_then(|length| u32::try_from(length).ok()) {
            Some(length) => {
                self.unsigned_varint(length + 1);
                Ok(())
            }
            None => Err(self.error(field, EncodeFault::TooLong { length })),
        }
    }

    fn length16(&mut self, field: &'static str, length: usize) -> Result<(), EncodeError> {
        let Ok(short) = i16::try_from(length) else {
            return Err(self.error(field, EncodeFault::TooLong { length }));
        };
        self.int16(short);
        Ok(())
    }

    fn length32(&mut self, field: &'static str, length: usize) -> Result<(), EncodeError> {
        if self.flexible {
            return self.compact_length(field, length);
        }
        let Ok(short) = i32::try_from(length) else {
            return Err(self.error(field, EncodeFault::TooLong { length }));
        };
        self.int32(short);
        Ok(())
    }

    fn null32(&mut self) {
        if self.flexible {
            self.unsigned_varint(0);
        } else {
            self.int32(-1);
        }
    }

    pub fn string(&mut self, field: &'static str, value: &KafkaString) -> Result<(), EncodeError> {
        // Classic text stops at i16::MAX, and Kafka holds compact text to the same.
        if self.flexible && value.len() <= usize::from(i16::MAX.unsigned_abs()) {
            self.compact_length(field, value.len())?;
        } else if self.flexible {
            return Err(self.error(field, EncodeFault::TooLong { length: value.len() }));
        } else {
            self.length16(field, value.len())?;
        }
        self.framing.put_slice(value.as_bytes());
        Ok(())
    }

    pub fn nullable_string(
        &mut self,
        field: &'static str,
        value: Option<&KafkaString>,
    ) -> Result<(), EncodeError> {
        match value {
            Some(text) => return self.string(field, text),
            None if self.flexible => self.unsigned_varint(0),
            None => self.int16(-1),
        }
        Ok(())
    }

    /// Text with a two-byte length even where lengths are compact.
    pub fn classic_nullable_string(
        &mut self,
        field: &'static str,
        value: Option<&KafkaString>,
    ) -> Result<(), EncodeError> {
        let Some(text) = value else {
            self.int16(-1);
            return Ok(());
        };
        self.length16(field, text.len())?;
        self.framing.put_slice(text.as_bytes());
        Ok(())
    }

    pub fn bytes(&mut self, field: &'static str, value: &Bytes) -> Result<(), EncodeError> {
        self.length32(field, value.len())?;
        self.framing.put_slice(value);
        Ok(())
    }

    pub fn nullable_bytes(&mut self, field: &'static str, value: Option<&Bytes>) -> Result<(), EncodeError> {
        if let Some(bytes) = value {
            return self.bytes(field, bytes);
        }
        self.null32();
        Ok(())
    }

    /// The length goes into the framing, the records themselves stay where they are.
    pub fn records(&mut self, field: &'static str, value: &Records) -> Result<(), EncodeError> {
        self.length32(field, value.len())?;
        let at = self.framing.len();
        for segment in value.segments().filter(|segment| !segment.is_empty()) {
            self.inserted_len += segment.len();
            self.inserts.push(Insert { at, bytes: segment.clone() });
        }
        Ok(())
    }

    pub fn nullable_records(
        &mut self,
        field: &'static str,
        value: Option<&Records>,
    ) -> Result<(), EncodeError> {
        if let Some(records) = value {
            return self.records(field, records);
        }
        self.null32();
        Ok(())
    }

    // ---- arrays ----

    pub fn array<T>(
        &mut self,
        field: &'static str,
        items: &[T],
        mut element: impl FnMut(&mut Self, &T) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        self.length32(field, items.len())?;
        items.iter().try_for_each(|item| element(self, item))
    }

    pub fn nullable_array<T>(
        &mut self,
        field: &'static str,
        items: Option<&[T]>,
        element: impl FnMut(&mut Self, &T) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        if let Some(items) = items {
            return self.array(field, items, element);
        }
        self.null32();
        Ok(())
    }

    // ---- structs ----

    /// A struct that may be absent, behind a byte that says whether it is there.
    pub fn nullable_struct<T>(
        &mut self,
        value: Option<&T>,
        write: impl FnOnce(&mut Self, &T) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        self.int8(if value.is_some() { 1 } else { -1 });
        value.map_or(Ok(()), |value| write(self, value))
    }

    // ---- tagged fields ----

    /// Ends a struct without tagged fields; writes nothing where the version has none.
    pub fn no_tagged_fields(&mut self) {
        if self.flexible {
            self.framing.put_u8(0);
        }
    }

    /// Starts the tagged fields that end a struct; give them in the order of their tags.
    pub fn tagged_fields(&self) -> TaggedFields {
        TaggedFields { count: 0, body: self.nested() }
    }
}

/// The tagged fields of one struct, collected because their number and sizes come first.
#[derive(Debug)]
pub struct TaggedFields {
    count: u32,
    body: Writer,
}

impl TaggedFields {
    pub fn field(
        &mut self,
        tag: u32,
        write: impl FnOnce(&mut Writer) -> Result<(), EncodeError>,
    ) -> Result<(), EncodeError> {
        let mut value = self.body.nested();
        write(&mut value)?;
        debug_assert!(value.inserts.is_empty(), "records are never tagged");
        let length = value.framing.len();
        let Ok(size) = u32::try_from(length) else {
            return Err(self.body.error("tagged field", EncodeFault::TooLong { length }));
        };
        self.body.unsigned_varint(tag);
        self.body.unsigned_varint(size);
        self.body.framing.extend_from_slice(&value.framing);
        self.count += 1;
        Ok(())
    }

    /// Writes what was collected; nothing where the version has no tagged fields.
    pub fn finish(self, writer: &mut Writer) {
        if writer.flexible {
            writer.unsigned_varint(self.count);
            writer.framing.extend_from_slice(&self.body.framing);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::Reader;

    #[test]
    fn varints_come_back_at_every_width() {
        for value in
            [0, 1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152, 268_435_455, 268_435_456, u32::MAX]
        {
            let mut writer = Writer::new("Test", true);
            writer.unsigned_varint(value);
            let mut reader = Reader::new(writer.finish().unwrap().to_bytes().slice(4..), "Test", true);
            assert_eq!(reader.unsigned_varint("f").unwrap(), value);
            reader.finish().unwrap();
        }
    }

    #[test]
    fn records_keep_their_memory_and_framing_lies_around_them() {
        let batches = [Bytes::from(vec![1; 10]), Bytes::from(vec![2; 20])];
        let mut writer = Writer::new("Test", false);
        writer.int16(7);
        writer.records("f", &batches.iter().cloned().collect()).unwrap();
        writer.records("f", &Records::default()).unwrap();
        writer.int8(9);
        let frame = writer.finish().unwrap();
        let segments = frame.segments();
        assert_eq!(segments.len(), 4);
        assert_eq!(segments[0], &b"\x00\x00\x00\x29\x00\x07\x00\x00\x00\x1e"[..]);
        assert_eq!(segments[1].as_ptr(), batches[0].as_ptr());
        assert_eq!(segments[2].as_ptr(), batches[1].as_ptr());
        assert_eq!(segments[3], &b"\x00\x00\x00\x00\x09"[..]);
        assert_eq!(frame.len(), 4 + 0x29);
    }

    #[test]
    fn text_beyond_the_length_field_is_an_error_in_both_encodings() {
        let long = KafkaString::from("x".repeat(32_768));
        for flexible in [false, true] {
            let error = Writer::new("Test", flexible).string("f", &long).unwrap_err();
            assert_eq!(error.fault, EncodeFault::TooLong { length: 32_768 });
        }
    }
}
