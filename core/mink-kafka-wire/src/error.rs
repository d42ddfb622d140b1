//! What can be wrong with bytes that came in, or with a message that should go out.
//!
//! Lives on: anywhere (pure).
//! Owns: nothing. Neither error says anything about the peer: every [`DecodeError`] means "close this connection",
//! every [`EncodeError`] means that we filled a message in a way that its version cannot carry.

use thiserror::Error;

/// Bytes that are not a message of the stated API and version.
///
/// The one right reaction is to close the connection (and count it): Kafka has no answer to a frame that cannot be
/// read. The texts hold no bytes of the frame, so they are safe to log.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}, {field}: {fault}")]
pub struct DecodeError {
    /// The message that was being read, or `frame` or `header`.
    pub message: &'static str,
    /// `Struct.field`
    pub field: &'static str,
    pub fault: Fault,
}

/// What was wrong at that place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Fault {
    #[error("{needed} bytes needed, {remaining} left")]
    Truncated { needed: usize, remaining: usize },
    #[error("a length of {length} is not allowed")]
    Length { length: i64 },
    #[error("null where the version does not allow it")]
    Null,
    #[error("a count of {count} cannot fit in the {remaining} bytes left")]
    Count { count: u32, remaining: usize },
    #[error("the elements would take more memory than a frame of this size may ask for")]
    Memory,
    #[error("a variable-length integer does not end within 5 bytes and 32 bits")]
    Varint,
    #[error("text that is not UTF-8")]
    Utf8,
    #[error("{count} bytes left over")]
    Trailing { count: usize },
    #[error("API key {api_key} is not spoken here")]
    UnknownApi { api_key: i16 },
    #[error("version {version} of API key {api_key} is not spoken here")]
    UnsupportedVersion { api_key: i16, version: i16 },
    #[error("a frame of {length} bytes, where 0 to {max} are allowed")]
    FrameLength { length: i32, max: u32 },
}

/// A message that cannot be put into the stated version: a fault of the caller, never of the peer.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}, {field}: {fault}")]
pub struct EncodeError {
    /// The message that was being written.
    pub message: &'static str,
    /// `Struct.field`
    pub field: &'static str,
    pub fault: EncodeFault,
}

/// What cannot be carried, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum EncodeFault {
    #[error("version {version} does not exist; leave the API alone or negotiate another")]
    UnsupportedVersion { version: i16 },
    #[error("set, but version {version} has no such field; leave it at its default")]
    NotInVersion { version: i16 },
    #[error("None, but the version needs a value")]
    Required,
    #[error("{length} bytes or elements are more than the length field can say")]
    TooLong { length: usize },
}
