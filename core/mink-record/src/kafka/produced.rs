//! The checks of one batch from a client before it may get an offset. Nothing is inflated here.
//!
//! Lives on: anywhere (pure).
//! Invariants: I2 (a batch takes exactly as many offsets as it states records), I19.

use super::header::{Framed, RECORD_BYTES_MIN, check_kafka};
use super::{Attributes, BatchHeader, Codec, HEADER_BYTES, TimestampType};
use crate::{RecordError, RecordErrorKind};

/// What one produced batch may measure, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducedLimits {
    /// The batch as sent, header included: `max.message.bytes` of the topic.
    pub batch_bytes_max: usize,
    /// What its records may inflate to. Only bounds the record count here: a batch with more records than could
    /// ever be read back under the cap would take offsets that no one can read.
    pub inflated_bytes_max: usize,
}

/// Checks the bytes that a Produce request holds for one partition: exactly one batch, whole and of a kind that is
/// stored. The bytes may be stored as they are if this succeeds.
///
/// The producer's epoch and sequence are looked at only if it has an id: kafkajs and sarama send 0 there, others
/// -1, when they are not idempotent.
///
/// # Errors
/// Every [`RecordErrorKind`] except `InflatedTooLarge`.
pub fn check_produced(bytes: &[u8], limits: ProducedLimits) -> Result<BatchHeader, RecordError> {
    if bytes.is_empty() {
        return Err(RecordError::invalid("no record batch; send exactly one for each partition"));
    }
    let framed = Framed::read(bytes)?;
    check_kafka(framed.format)?;
    check_frame(framed.total_bytes(), bytes.len(), limits.batch_bytes_max)?;
    framed.verify_checksum(bytes)?;
    let header = framed.header()?;
    check_attributes(header.attributes)?;
    check_count(&header, limits.inflated_bytes_max)?;
    check_producer(&header)?;
    Ok(header)
}

fn check_frame(stated: usize, sent: usize, batch_bytes_max: usize) -> Result<(), RecordError> {
    // Before a cut batch is noticed (by the checksum): a client that sends too much must learn that.
    if stated > batch_bytes_max {
        return Err(RecordError::new(
            RecordErrorKind::TooLarge,
            format!("the batch has {stated} bytes; max.message.bytes accepts {batch_bytes_max}"),
        ));
    }
    if stated < sent {
        return Err(RecordError::invalid(format!(
            "{} bytes follow the batch of {stated}; send exactly one batch for each partition",
            sent - stated
        )));
    }
    Ok(())
}

fn check_attributes(attributes: Attributes) -> Result<(), RecordError> {
    if attributes.is_control() {
        return Err(RecordError::new(
            RecordErrorKind::Control,
            "control batches are not accepted from clients; send records only",
        ));
    }
    if attributes.is_transactional() {
        return Err(RecordError::new(
            RecordErrorKind::Transactional,
            "transactions are not supported; use an idempotent producer without transactional.id",
        ));
    }
    if attributes.timestamp_type() == TimestampType::LogAppendTime {
        return Err(RecordError::new(
            RecordErrorKind::InvalidTimestamp,
            "a producer must not set the timestamp type LogAppendTime; send CreateTime",
        ));
    }
    if attributes.has_delete_horizon() || attributes.unknown_bits() != 0 {
        return Err(RecordError::invalid(format!(
            "attributes {:#06x} have bits that a producer must leave 0; only the codec (bits 0 to 2) may be set",
            attributes.raw()
        )));
    }
    Ok(())
}

fn check_count(header: &BatchHeader, inflated_bytes_max: usize) -> Result<(), RecordError> {
    if header.base_offset != 0 {
        return Err(RecordError::invalid(format!(
            "base offset is {}; a producer sends 0",
            header.base_offset
        )));
    }
    let count = header.record_count;
    // In 64 bits, as the delta may be the greatest i32.
    if count <= 0 || i64::from(count) != i64::from(header.last_offset_delta) + 1 {
        return Err(RecordError::invalid(format!(
            "record count {count} and last offset delta {} do not fit; at least one record, and count = delta + 1",
            header.last_offset_delta
        )));
    }
    let room = match header.attributes.codec() {
        Codec::None => header.total_bytes() - HEADER_BYTES,
        _ => inflated_bytes_max,
    };
    if usize::try_from(count).is_ok_and(|count| count <= room / RECORD_BYTES_MIN) {
        return Ok(());
    }
    Err(RecordError::invalid(format!(
        "{count} records do not fit into {room} bytes; a record has at least {RECORD_BYTES_MIN}"
    )))
}

fn check_producer(header: &BatchHeader) -> Result<(), RecordError> {
    let fits = match header.producer_id {
        -1 => true,
        0.. => header.producer_epoch >= 0 && header.base_sequence >= 0,
        _ => false,
    };
    if fits {
        return Ok(());
    }
    Err(RecordError::invalid(format!(
        "producer id {}, epoch {} and sequence {} do not fit; all from 0 on, or id -1 for a producer that is not idempotent",
        header.producer_id, header.producer_epoch, header.base_sequence
    )))
}
