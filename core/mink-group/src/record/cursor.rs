//! Reading and writing the pieces of a record.
//!
//! Lives on: anywhere (pure).
//! Invariants: a read takes only bytes that are there; no length sizes an allocation before its bytes were seen (I19).
use super::MemberValue;
use crate::{InstanceId, MemberId, RecordError};
use bytes::Bytes;
use std::sync::Arc;

pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    part: &'static str,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(rest: &'a [u8], part: &'static str) -> Cursor<'a> {
        Cursor { rest, part }
    }

    fn length<V>(&self, value: Option<V>) -> Result<V, RecordError> {
        value.ok_or(RecordError::Length { part: self.part })
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], RecordError> {
        let (head, rest) = self.length(self.rest.split_first_chunk::<N>())?;
        self.rest = rest;
        Ok(*head)
    }

    fn slice(&mut self, bytes: usize) -> Result<&'a [u8], RecordError> {
        let (head, rest) = self.length(self.rest.split_at_checked(bytes))?;
        self.rest = rest;
        Ok(head)
    }

    pub(super) fn version(&mut self, known: u8) -> Result<(), RecordError> {
        match self.byte()? {
            version if version == known => Ok(()),
            version => Err(RecordError::Version { part: self.part, version }),
        }
    }

    pub(super) fn byte(&mut self) -> Result<u8, RecordError> {
        let [byte] = self.array()?;
        Ok(byte)
    }

    pub(super) fn u32(&mut self) -> Result<u32, RecordError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64, RecordError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub(super) fn i32(&mut self) -> Result<i32, RecordError> {
        Ok(i32::from_le_bytes(self.array()?))
    }

    pub(super) fn i64(&mut self) -> Result<i64, RecordError> {
        Ok(i64::from_le_bytes(self.array()?))
    }

    pub(super) fn text(&mut self) -> Result<&'a str, RecordError> {
        let bytes = u16::from_le_bytes(self.array()?);
        let text = self.slice(usize::from(bytes))?;
        std::str::from_utf8(text).map_err(|_| RecordError::Content { what: "a text is not UTF-8" })
    }

    pub(super) fn shared_text(&mut self) -> Result<Arc<str>, RecordError> {
        self.text().map(Arc::from)
    }

    fn bytes(&mut self) -> Result<Bytes, RecordError> {
        let bytes = self.u32()?;
        let bytes = self.length(usize::try_from(bytes).ok())?;
        // Copied: a slice would keep the whole batch that it came with.
        self.slice(bytes).map(Bytes::copy_from_slice)
    }

    pub(super) fn optional<V>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<V, RecordError>,
    ) -> Result<Option<V>, RecordError> {
        match self.byte()? {
            0 => Ok(None),
            1 => read(self).map(Some),
            _ => Err(RecordError::Content { what: "an optional is neither there nor absent" }),
        }
    }

    pub(super) fn member(&mut self) -> Result<MemberValue, RecordError> {
        Ok(MemberValue {
            member: MemberId::new(self.text()?),
            instance: self.optional(|at| at.text().map(InstanceId::new))?,
            client_id: self.shared_text()?,
            client_host: self.shared_text()?,
            session_timeout_ms: self.u32()?,
            rebalance_timeout_ms: self.u32()?,
            metadata: self.bytes()?,
            assignment: self.bytes()?,
        })
    }

    pub(super) fn end(&self) -> Result<(), RecordError> {
        self.length(self.rest.is_empty().then_some(()))
    }
}

/// A text of at most 65,535 bytes; what is stored is checked for that before (names come from Kafka's strings, which are
/// shorter), and cut at a character otherwise.
pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    let text = text.get(..text.floor_char_boundary(usize::from(u16::MAX))).unwrap_or_default();
    debug_assert!(u16::try_from(text.len()).is_ok());
    out.extend_from_slice(&u16::try_from(text.len()).unwrap_or(0).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

pub(super) fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    debug_assert!(u32::try_from(bytes.len()).is_ok(), "limits keep members far smaller");
    out.extend_from_slice(&u32::try_from(bytes.len()).unwrap_or(0).to_le_bytes());
    out.extend_from_slice(bytes);
}

pub(super) fn put_optional<V>(out: &mut Vec<u8>, value: Option<V>, put: impl FnOnce(&mut Vec<u8>, V)) {
    out.push(u8::from(value.is_some()));
    if let Some(value) = value {
        put(out, value);
    }
}
