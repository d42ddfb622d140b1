//! The 61 bytes before the records of a batch: what can be known without inflating anything. Batches of Arrow begin with the same bytes
//! ([`BatchFormat`]), so that a log is kept, recovered and read by them whatever its batches hold.
//!
//! Lives on: anywhere (pure).
//! Invariants: I19: `parse` looks at the header alone and allocates nothing.

use super::Codec;
use crate::bounded::Bounded;
use crate::{RecordError, RecordErrorKind};
use mink_types::TimestampType;

/// Bytes of a batch before its records.
pub const HEADER_BYTES: usize = 61;
/// Base offset and length: what the length field does not count.
pub(super) const LENGTH_BASE: usize = 12;
pub(super) const LENGTH_AT: usize = 8;
pub(super) const EPOCH_AT: usize = 12;
pub(super) const MAGIC_AT: usize = 16;
pub(super) const CHECKSUM_AT: usize = 17;
/// First byte that the checksum covers.
pub(super) const CHECKED_FROM: usize = 21;
pub(super) const ATTRIBUTES_AT: usize = 21;
pub(super) const MAX_TIMESTAMP_AT: usize = 35;
pub(super) const MAGIC: i8 = 2;
/// Far from what Kafka may count up to.
pub(crate) const ARROW_MAGIC: i8 = 16;
/// Length, three deltas, two lengths and a header count, a byte each: no record is smaller.
pub(super) const RECORD_BYTES_MIN: usize = 7;

const _: () =
    assert!(CHECKED_FROM == CHECKSUM_AT + 4 && CHECKSUM_AT == MAGIC_AT + 1 && ATTRIBUTES_AT == CHECKED_FROM);

/// What follows the header, told by its magic byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BatchFormat {
    /// Magic 2: Kafka's records ([`records`](super::records)).
    Kafka,
    /// Magic 16: a record batch of Arrow ([`ArrowBatch`](crate::arrow::ArrowBatch)).
    Arrow,
}

/// The flags of a batch. The codec is known to exist; other bits are as they came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attributes {
    raw: i16,
    codec: Codec,
}

impl Attributes {
    const CODEC: i16 = 0x07;
    pub(super) const LOG_APPEND_TIME: i16 = 0x08;
    pub(super) const TRANSACTIONAL: i16 = 0x10;
    pub(super) const CONTROL: i16 = 0x20;
    pub(super) const DELETE_HORIZON: i16 = 0x40;
    const KNOWN: i16 =
        Self::CODEC | Self::LOG_APPEND_TIME | Self::TRANSACTIONAL | Self::CONTROL | Self::DELETE_HORIZON;

    /// # Errors
    /// `UnsupportedCodec` for codec numbers 5 to 7.
    pub fn parse(raw: i16) -> Result<Self, RecordError> {
        let number = raw & Self::CODEC;
        let codec = Codec::from_number(number).ok_or_else(|| {
            RecordError::new(
                RecordErrorKind::UnsupportedCodec,
                format!("codec {number} is unknown; use 0 none, 1 gzip, 2 snappy, 3 lz4 or 4 zstd"),
            )
        })?;
        Ok(Self { raw, codec })
    }

    /// As on the wire.
    pub fn raw(self) -> i16 {
        self.raw
    }

    /// How the records are compressed.
    pub fn codec(self) -> Codec {
        self.codec
    }

    /// Whether each record has a timestamp of its own, or all have the `max_timestamp` of the batch.
    pub fn timestamp_type(self) -> TimestampType {
        if self.raw & Self::LOG_APPEND_TIME == 0 {
            TimestampType::CreateTime
        } else {
            TimestampType::LogAppendTime
        }
    }

    /// Part of a transaction.
    pub fn is_transactional(self) -> bool {
        self.raw & Self::TRANSACTIONAL != 0
    }

    /// Holds a transaction marker or the like rather than records of a user.
    pub fn is_control(self) -> bool {
        self.raw & Self::CONTROL != 0
    }

    /// The base timestamp is the time after which tombstones may go, not that of the first record.
    pub fn has_delete_horizon(self) -> bool {
        self.raw & Self::DELETE_HORIZON != 0
    }

    /// Bits that no version of the format that we know gives a meaning to.
    pub fn unknown_bits(self) -> i16 {
        self.raw & !Self::KNOWN
    }
}

/// A batch's header. `parse` has checked that its fields don't contradict each other; the checksum is separate
/// ([`BatchHeader::verify_checksum`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    /// What follows the header.
    pub format: BatchFormat,
    /// Offset of the batch's first record (or where it was, once compaction removed it), at least 0.
    pub base_offset: i64,
    /// Bytes of the batch after this field: the whole batch less 12.
    pub batch_length: i32,
    /// Epoch of the leader that gave the offset; what a producer writes here has no meaning.
    pub partition_leader_epoch: i32,
    /// CRC-32C of everything from the attributes on, as stated.
    pub checksum: u32,
    /// Codec and flags.
    pub attributes: Attributes,
    /// Offset of the last record less the base offset, at least 0.
    pub last_offset_delta: i32,
    /// Milliseconds since 1970 that the records' timestamps count from; -1 without timestamps.
    pub base_timestamp: i64,
    /// The greatest timestamp in the batch as its producer states it; -1 without timestamps.
    pub max_timestamp: i64,
    /// Id of an idempotent producer, or -1; then epoch and sequence have no meaning.
    pub producer_id: i64,
    /// Epoch of the idempotent producer.
    pub producer_epoch: i16,
    /// Sequence of the first record, wrapping after `i32::MAX` to 0.
    pub base_sequence: i32,
    /// Records in the batch, at least 0; fewer than `last_offset_delta + 1` after compaction only.
    pub record_count: i32,
}

impl BatchHeader {
    /// Reads the header at the start of `bytes`; bytes after it may be there or not.
    ///
    /// # Errors
    /// `Incomplete` for fewer than 61 bytes; `OldFormat`; `UnsupportedCodec`; `Corrupt` for a length below the
    /// header's own; `InvalidRecord` for a magic that is not known, a negative offset, delta or count, or a codec of Kafka's in a
    /// batch of Arrow.
    pub fn parse(bytes: &[u8]) -> Result<Self, RecordError> {
        Framed::read(bytes)?.header()
    }

    /// Bytes of the whole batch, header included; at least 61.
    pub fn total_bytes(&self) -> usize {
        total_bytes(self.batch_length)
    }

    /// Offset of the last record.
    pub fn last_offset(&self) -> i64 {
        self.base_offset.saturating_add(self.last_offset_delta.into())
    }

    /// Whether an idempotent producer made the batch, so that epoch and sequence mean something.
    pub fn is_idempotent(&self) -> bool {
        self.producer_id >= 0
    }

    /// Compares the stated checksum with that of the bytes; `batch` starts with this batch.
    ///
    /// # Errors
    /// `Corrupt`, or `Incomplete` if `batch` is not as long as the header says.
    pub fn verify_checksum(&self, batch: &[u8]) -> Result<(), RecordError> {
        verify_checksum(self.checksum, self.whole(batch)?)
    }

    /// That what follows the header are Kafka's records.
    pub(super) fn check_kafka(&self) -> Result<(), RecordError> {
        check_kafka(self.format)
    }

    /// `batch` cut to this batch.
    pub(crate) fn whole<'a>(&self, batch: &'a [u8]) -> Result<&'a [u8], RecordError> {
        whole(batch, self.total_bytes())
    }
}

/// What the batch that fills `batch` says is the CRC-32C of its bytes, and from which byte on; none if it is too short for that. Whether it
/// is right, [`BatchHeader::verify_checksum`] tells.
pub fn stated_checksum(batch: &[u8]) -> Option<(usize, u32)> {
    let field = batch.get(CHECKSUM_AT..CHECKED_FROM)?.first_chunk()?;
    Some((CHECKED_FROM, u32::from_be_bytes(*field)))
}

pub(super) fn check_kafka(format: BatchFormat) -> Result<(), RecordError> {
    match format {
        BatchFormat::Kafka => Ok(()),
        BatchFormat::Arrow => Err(RecordError::invalid(format!(
            "record batch format {ARROW_MAGIC} is that of Arrow, not of Kafka's records; use format 2"
        ))),
    }
}

fn total_bytes(batch_length: i32) -> usize {
    // Not negative once read; the fallback makes a hand-made header harmless.
    LENGTH_BASE.saturating_add(usize::try_from(batch_length).unwrap_or(0))
}

fn whole(batch: &[u8], total_bytes: usize) -> Result<&[u8], RecordError> {
    batch.get(..total_bytes).ok_or_else(|| {
        RecordError::new(
            RecordErrorKind::Incomplete,
            format!("the batch says it has {total_bytes} bytes, but {} are there", batch.len()),
        )
    })
}

fn verify_checksum(stated: u32, whole: &[u8]) -> Result<(), RecordError> {
    let computed = crc32c::crc32c(whole.get(CHECKED_FROM..).unwrap_or_default());
    if computed == stated {
        return Ok(());
    }
    Err(RecordError::new(
        RecordErrorKind::Corrupt,
        format!("the batch's CRC-32C is {computed:08x}, its header says {stated:08x}"),
    ))
}

/// The magic byte lies at the same place in all formats, and an old message set can be shorter than a new header.
fn check_magic(bytes: &[u8]) -> Result<BatchFormat, RecordError> {
    match bytes.get(MAGIC_AT).map(|byte| byte.cast_signed()) {
        None | Some(MAGIC) => Ok(BatchFormat::Kafka),
        Some(ARROW_MAGIC) => Ok(BatchFormat::Arrow),
        Some(old @ (0 | 1)) => Err(RecordError::new(
            RecordErrorKind::OldFormat,
            format!(
                "message format {old} is not accepted; produce with format 2 (clients of Kafka 0.11 or later)"
            ),
        )),
        Some(other) => {
            Err(RecordError::invalid(format!("record batch format {other} is unknown; use format 2")))
        }
    }
}

/// The fields of a header of which only those outside the checksum were looked at: damage must be told from a
/// producer's fault, so the checksum comes before the rest.
pub(super) struct Framed {
    pub(super) format: BatchFormat,
    base_offset: i64,
    batch_length: i32,
    partition_leader_epoch: i32,
    checksum: u32,
    attributes: i16,
    last_offset_delta: i32,
    base_timestamp: i64,
    max_timestamp: i64,
    producer_id: i64,
    producer_epoch: i16,
    base_sequence: i32,
    record_count: i32,
}

impl Framed {
    /// # Errors
    /// `Incomplete`, `OldFormat`, `Corrupt` for the length, `InvalidRecord` for the magic.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, RecordError> {
        let format = check_magic(bytes)?;
        let framed = Self::fields(format, bytes).ok_or_else(|| {
            RecordError::new(
                RecordErrorKind::Incomplete,
                format!("{} bytes are no batch; its header alone has {HEADER_BYTES}", bytes.len()),
            )
        })?;
        if total_bytes(framed.batch_length) < HEADER_BYTES {
            return Err(RecordError::new(
                RecordErrorKind::Corrupt,
                format!(
                    "batch length {} is less than the {} bytes of a header",
                    framed.batch_length,
                    HEADER_BYTES - LENGTH_BASE
                ),
            ));
        }
        Ok(framed)
    }

    fn fields(format: BatchFormat, bytes: &[u8]) -> Option<Self> {
        let mut at = Bounded::new(bytes);
        let base_offset = at.i64()?;
        let batch_length = at.i32()?;
        let partition_leader_epoch = at.i32()?;
        at.i8()?; // magic, checked before
        Some(Self {
            format,
            base_offset,
            batch_length,
            partition_leader_epoch,
            checksum: at.u32()?,
            attributes: at.i16()?,
            last_offset_delta: at.i32()?,
            base_timestamp: at.i64()?,
            max_timestamp: at.i64()?,
            producer_id: at.i64()?,
            producer_epoch: at.i16()?,
            base_sequence: at.i32()?,
            record_count: at.i32()?,
        })
    }

    /// At least 61.
    pub(super) fn total_bytes(&self) -> usize {
        total_bytes(self.batch_length)
    }

    /// As [`BatchHeader::verify_checksum`].
    pub(super) fn verify_checksum(&self, batch: &[u8]) -> Result<(), RecordError> {
        verify_checksum(self.checksum, whole(batch, self.total_bytes())?)
    }

    /// # Errors
    /// `UnsupportedCodec`, `InvalidRecord`.
    pub(super) fn header(&self) -> Result<BatchHeader, RecordError> {
        let attributes = Attributes::parse(self.attributes)?;
        if self.record_count < 0 || self.last_offset_delta < 0 {
            return Err(RecordError::invalid(format!(
                "record count {} and last offset delta {} must not be negative",
                self.record_count, self.last_offset_delta
            )));
        }
        if self.base_offset < 0 || self.base_offset.checked_add(self.last_offset_delta.into()).is_none() {
            return Err(RecordError::invalid(format!("base offset {} is out of range", self.base_offset)));
        }
        if self.format == BatchFormat::Arrow && attributes.codec() != Codec::None {
            return Err(RecordError::invalid(format!(
                "a batch of Arrow says itself how it is compressed; its header must have codec none, not {}",
                attributes.codec()
            )));
        }
        Ok(BatchHeader {
            format: self.format,
            base_offset: self.base_offset,
            batch_length: self.batch_length,
            partition_leader_epoch: self.partition_leader_epoch,
            checksum: self.checksum,
            attributes,
            last_offset_delta: self.last_offset_delta,
            base_timestamp: self.base_timestamp,
            max_timestamp: self.max_timestamp,
            producer_id: self.producer_id,
            producer_epoch: self.producer_epoch,
            base_sequence: self.base_sequence,
            record_count: self.record_count,
        })
    }
}
