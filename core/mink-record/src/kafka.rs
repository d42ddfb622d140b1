//! Kafka's record batches, format 2: the bytes of a log in the `kafka` format, kept as the producer sent them.
//!
//! Lives on: anywhere (pure).
//! Invariants: I2 (offsets of a batch's records rise within the range its header states), I19, I20.
//!
//! A batch on the wire, big-endian; the checksum (CRC-32C) covers everything from `attributes` on, so that base
//! offset and leader epoch can be set without touching what the producer signed:
//!
//! | at | size | field |     | at | size | field |
//! |----|------|-------|-----|----|------|-------|
//! | 0  | 8 | base offset   |  | 27 | 8 | base timestamp, ms |
//! | 8  | 4 | length from byte 12 on | | 35 | 8 | max timestamp, ms |
//! | 12 | 4 | leader epoch  |  | 43 | 8 | producer id, -1: none |
//! | 16 | 1 | magic = 2     |  | 51 | 2 | producer epoch |
//! | 17 | 4 | checksum      |  | 53 | 4 | base sequence |
//! | 21 | 2 | attributes    |  | 57 | 4 | record count |
//! | 23 | 4 | last offset delta | | 61 | | records, compressed as one run |

mod append_time;
mod batches;
mod builder;
mod codec;
mod header;
mod inflate;
mod keyless;
mod produced;
mod record;
mod timestamp;

pub use append_time::set_append_time;
pub use batches::{Batches, batches, set_offset_and_epoch};
pub(crate) use builder::Unsigned;
pub use builder::{BatchBuilder, HeaderRef, ProducerStamp, RecordRef};
pub use codec::Codec;
pub(crate) use header::ARROW_MAGIC;
pub use header::{Attributes, BatchFormat, BatchHeader, HEADER_BYTES, stated_checksum};
pub use inflate::INFLATE_WORKING_BYTES_MAX;
pub(crate) use inflate::inflate;
pub use keyless::{Keyless, keyless};
pub use mink_types::TimestampType;
pub use produced::{ProducedLimits, check_produced};
pub use record::{Header, Headers, Record, Records, records};
pub use timestamp::{RecordTime, first_at_or_after, max_timestamp_record};

#[cfg(test)]
mod tests;
