//! What all messages have in common.
//!
//! Lives on: anywhere (pure).
//! Owns: the two checks around every decoder: the version is one the message has, and no byte is left over.

use std::fmt;

use bytes::Bytes;

use crate::error::{DecodeError, EncodeError, EncodeFault, Fault};
use crate::messages::ApiKey;
use crate::reader::Reader;
use crate::writer::Writer;

/// An inclusive range of versions of one API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionRange {
    pub min: i16,
    pub max: i16,
}

impl VersionRange {
    pub const fn contains(self, version: i16) -> bool {
        self.min <= version && version <= self.max
    }

    pub fn iter(self) -> impl Iterator<Item = i16> {
        self.min..=self.max
    }
}

/// A struct that is part of a message, or a message.
///
/// `version` is one that the message has; at others the bytes mean nothing.
pub trait Codec: Sized {
    fn decode(reader: &mut Reader, version: i16) -> Result<Self, DecodeError>;
    fn encode(&self, writer: &mut Writer, version: i16) -> Result<(), EncodeError>;
}

/// The body of a request or a response.
pub trait Message: Codec + fmt::Debug + Clone + PartialEq + Default {
    /// As Kafka names it, e.g. `FetchRequest`.
    const NAME: &'static str;
    const API_KEY: ApiKey;
    /// The versions this code can decode and encode, which may be more than [`crate::OFFERED`].
    const VERSIONS: VersionRange;

    /// Whether `version` has compact lengths and tagged fields.
    fn is_flexible(version: i16) -> bool {
        is_flexible(Self::API_KEY, version)
    }

    /// Decodes the bytes after the header. An unknown version, and a byte left over, are errors.
    fn decode_body(version: i16, body: Bytes) -> Result<Self, DecodeError> {
        if !Self::VERSIONS.contains(version) {
            let fault = Fault::UnsupportedVersion { api_key: Self::API_KEY.code(), version };
            return Err(DecodeError { message: Self::NAME, field: "version", fault });
        }
        let mut reader = Reader::new(body, Self::NAME, Self::is_flexible(version));
        let message = Self::decode(&mut reader, version)?;
        reader.finish()?;
        Ok(message)
    }

    /// Appends the body. A version that the message does not have is an error.
    fn encode_body(&self, version: i16, writer: &mut Writer) -> Result<(), EncodeError> {
        if !Self::VERSIONS.contains(version) {
            let fault = EncodeFault::UnsupportedVersion { version };
            return Err(EncodeError { message: Self::NAME, field: "version", fault });
        }
        self.encode(writer, version)
    }
}

/// A message that asks, with the message that answers it.
pub trait Request: Message {
    type Response: Message;
}

pub(crate) fn is_flexible(key: ApiKey, version: i16) -> bool {
    key.flexible_from().is_some_and(|first| version >= first)
}
