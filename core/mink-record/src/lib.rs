//! Bytes to values and back: record batches of Kafka and of Arrow, their codecs and checksums, rows as JSON.
//!
//! Lives on: anywhere (pure).
//! Owns: nothing; every function is a value to a value.     Talks to: no one.
//! Invariants: I19 (hostile bytes end in a typed error, no count from outside sizes an allocation), I20 (what a
//! codec inflates is capped while it inflates).
#![forbid(unsafe_code)]

pub mod arrow;
mod bounded;
mod checksum;
mod error;
pub mod json;
pub mod kafka;

pub use checksum::joined_checksum;
pub use error::{RecordError, RecordErrorKind};
