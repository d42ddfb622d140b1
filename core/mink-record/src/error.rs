//! The one error of this crate: what is wrong with the bytes, and what would be accepted instead.
//!
//! Lives on: anywhere (pure).
//! Invariants: each kind stands for one answer a Kafka client gets; the protocol's code is chosen by the frontend.

use std::fmt;

/// What is wrong, by what the receiver must do about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum RecordErrorKind {
    /// The checksum does not match, or the lengths of the frame contradict each other: the bytes were damaged on
    /// their way. Kafka: `CORRUPT_MESSAGE`, which clients retry.
    Corrupt,
    /// The bytes end before the batch does. A producer must not send that (Kafka: `INVALID_RECORD`); at the end of
    /// a Fetch answer it is normal with brokers that cut by size, and a consumer just asks again from there.
    Incomplete,
    /// The batch is whole but says something that is not allowed or not true. Kafka: `INVALID_RECORD`, fatal.
    InvalidRecord,
    /// More bytes than one batch may have. Kafka: `MESSAGE_TOO_LARGE`; clients split and send again.
    TooLarge,
    /// Inflating the records would exceed the cap. The batch can never be read under this cap: skip it knowingly or
    /// raise the cap. Kafka: `MESSAGE_TOO_LARGE`.
    InflatedTooLarge,
    /// A message set of format 0 or 1. Kafka: `UNSUPPORTED_FOR_MESSAGE_FORMAT`.
    OldFormat,
    /// Part of a transaction, which Mink does not offer. Kafka: `INVALID_TXN_STATE`.
    Transactional,
    /// A control batch, which only a broker may write. Kafka: `INVALID_RECORD`.
    Control,
    /// A compression codec that does not exist. Kafka: `UNSUPPORTED_COMPRESSION_TYPE`.
    UnsupportedCodec,
    /// A timestamp, or kind of timestamp, that is not accepted. Kafka: `INVALID_TIMESTAMP`.
    InvalidTimestamp,
    /// Columns that are not those of the table, or not of their types: every batch of this writer would be refused. Kafka:
    /// `INVALID_RECORD`.
    SchemaMismatch,
}

/// Why bytes are not the records they claim to be. The text never contains record bytes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RecordError {
    kind: RecordErrorKind,
    message: String,
}

impl RecordError {
    pub(crate) fn new(kind: RecordErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(RecordErrorKind::InvalidRecord, message)
    }

    pub(crate) fn mismatch(message: impl Into<String>) -> Self {
        Self::new(RecordErrorKind::SchemaMismatch, message)
    }

    /// What the receiver must do.
    pub fn kind(&self) -> RecordErrorKind {
        self.kind
    }

    /// What was wrong and what would be accepted, in words for the client's log.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for RecordErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Corrupt => "corrupt",
            Self::Incomplete => "incomplete",
            Self::InvalidRecord => "invalid_record",
            Self::TooLarge => "too_large",
            Self::InflatedTooLarge => "inflated_too_large",
            Self::OldFormat => "old_format",
            Self::Transactional => "transactional",
            Self::Control => "control",
            Self::UnsupportedCodec => "unsupported_codec",
            Self::InvalidTimestamp => "invalid_timestamp",
            Self::SchemaMismatch => "schema_mismatch",
        })
    }
}
