//! Bytes to values and back: Kafka record batches, their codecs and checksums.
//!
//! Lives on: anywhere (pure).
//! Owns: nothing; every function is a value to a value.     Talks to: no one.
//! Invariants: I19 (hostile bytes end in a typed error, no count from outside sizes an allocation), I20 (what a
//! codec inflates is capped while it inflates).
#![forbid(unsafe_code)]

mod bounded;
mod checksum;
mod error;
pub mod kafka;

pub use checksum::joined_checksum;
pub use error::{RecordError, RecordErrorKind};
