//! Making a batch, for clients: records are encoded as they come, the header last.
//!
//! Lives on: anywhere (pure).
//! Owns: the bytes of the batch in the making.

use bytes::Bytes;

use super::codec::deflate;
use super::header::{CHECKED_FROM, CHECKSUM_AT, HEADER_BYTES, LENGTH_BASE, MAGIC};
use super::{Attributes, Codec};
use crate::bounded::{put_varlong, varlong_size};
use crate::{RecordError, RecordErrorKind};

/// A record to be sent; everything borrowed.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecordRef<'a> {
    /// Milliseconds since 1970, or -1 for none.
    pub timestamp: i64,
    /// `None` is null.
    pub key: Option<&'a [u8]>,
    /// `None` is null.
    pub value: Option<&'a [u8]>,
    /// In this order; names may repeat.
    pub headers: &'a [HeaderRef<'a>],
}

/// A header of a record to be sent.
#[derive(Clone, Copy, Debug)]
pub struct HeaderRef<'a> {
    /// The name.
    pub key: &'a str,
    /// `None` is null.
    pub value: Option<&'a [u8]>,
}

/// Which idempotent producer a batch comes from, and its place there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerStamp {
    /// From `InitProducerId`.
    pub id: i64,
    /// From `InitProducerId`.
    pub epoch: i16,
    /// Sequence of the batch's first record.
    pub base_sequence: i32,
}

/// Collects records and makes one batch of them.
///
/// ```
/// use mink_record::kafka::{BatchBuilder, Codec, RecordRef};
///
/// let mut builder = BatchBuilder::new();
/// builder.push(RecordRef { timestamp: 1_700_000_000_000, value: Some(b"hello"), ..RecordRef::default() })?;
/// let batch = builder.build(Codec::Zstd, None)?;
/// assert_eq!(batch[16], 2);
/// # Ok::<(), mink_record::RecordError>(())
/// ```
#[derive(Clone, Debug)]
pub struct BatchBuilder {
    /// Room for the header, then the records: without compression this is the batch.
    bytes: Vec<u8>,
    count: i32,
    base_timestamp: i64,
    max_timestamp: i64,
}

impl Default for BatchBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl BatchBuilder {
    /// An empty batch.
    pub fn new() -> Self {
        Self::with_capacity(0)
    }

    /// An empty batch with room for so many bytes of records.
    pub fn with_capacity(records_bytes: usize) -> Self {
        let mut bytes = Vec::with_capacity(HEADER_BYTES.saturating_add(records_bytes));
        bytes.resize(HEADER_BYTES, 0);
        Self { bytes, count: 0, base_timestamp: -1, max_timestamp: -1 }
    }

    /// Records pushed so far.
    pub fn record_count(&self) -> i32 {
        self.count
    }

    /// Bytes of the batch if it were built now without compression, header included.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes of the batch with one more record, without compression.
    pub fn size_with(&self, record: &RecordRef<'_>) -> usize {
        let body = self.body_size(record);
        self.size().saturating_add(varlong_size(signed(body))).saturating_add(body)
    }

    /// Adds a record.
    ///
    /// # Errors
    /// `TooLarge` if the batch would outgrow the format (2 GiB), `InvalidTimestamp` if the timestamp is too far from
    /// that of the first record to be written. Nothing was added then.
    pub fn push(&mut self, record: RecordRef<'_>) -> Result<(), RecordError> {
        let size = self.size_with(&record);
        if i32::try_from(size).is_err() || self.count == i32::MAX {
            return Err(RecordError::new(
                RecordErrorKind::TooLarge,
                format!(
                    "a batch of {size} bytes is more than the format holds; build this one and begin another"
                ),
            ));
        }
        if self.count == 0 {
            self.base_timestamp = record.timestamp;
            self.max_timestamp = record.timestamp;
        }
        let time_delta = record.timestamp.checked_sub(self.base_timestamp).ok_or_else(|| {
            RecordError::new(
                RecordErrorKind::InvalidTimestamp,
                format!("timestamp {} is too far from {}", record.timestamp, self.base_timestamp),
            )
        })?;
        self.max_timestamp = self.max_timestamp.max(record.timestamp);
        let body = signed(self.body_size(&record));
        let out = &mut self.bytes;
        put_varlong(out, body);
        out.push(0); // attributes
        put_varlong(out, time_delta);
        put_varlong(out, self.count.into());
        put_field(out, record.key);
        put_field(out, record.value);
        put_varlong(out, signed(record.headers.len()));
        for header in record.headers {
            put_field(out, Some(header.key.as_bytes()));
            put_field(out, header.value);
        }
        self.count += 1;
        Ok(())
    }

    /// Bytes of the record after its length.
    fn body_size(&self, record: &RecordRef<'_>) -> usize {
        let base = if self.count == 0 { record.timestamp } else { self.base_timestamp };
        let headers = record.headers.iter().fold(0_usize, |sum, header| {
            sum.saturating_add(field_size(Some(header.key.as_bytes())))
                .saturating_add(field_size(header.value))
        });
        // Wraps only where `push` refuses.
        (1 + varlong_size(record.timestamp.wrapping_sub(base)) + varlong_size(self.count.into()))
            .saturating_add(varlong_size(signed(record.headers.len())))
            .saturating_add(field_size(record.key))
            .saturating_add(field_size(record.value))
            .saturating_add(headers)
    }

    /// The batch with base offset 0, as a producer sends it. Without compression no byte is copied.
    ///
    /// # Errors
    /// `InvalidRecord` without a record or if the codec fails; `TooLarge` if the batch outgrows the format.
    pub fn build(self, codec: Codec, producer: Option<ProducerStamp>) -> Result<Bytes, RecordError> {
        self.into_bytes(codec, producer).map(Bytes::from)
    }

    /// As [`BatchBuilder::build`], for whoever goes on writing into the batch.
    pub(crate) fn into_bytes(
        self,
        codec: Codec,
        producer: Option<ProducerStamp>,
    ) -> Result<Vec<u8>, RecordError> {
        if self.count == 0 {
            return Err(RecordError::invalid("a batch needs at least one record"));
        }
        let Self { bytes, count, base_timestamp, max_timestamp } = self;
        let mut batch = if codec == Codec::None {
            bytes
        } else {
            let mut compressed = Vec::with_capacity(bytes.len() / 2 + HEADER_BYTES);
            compressed.resize(HEADER_BYTES, 0);
            deflate(codec, bytes.get(HEADER_BYTES..).unwrap_or_default(), &mut compressed)?;
            compressed
        };
        let length = i32::try_from(batch.len() - LENGTH_BASE).map_err(|_| {
            RecordError::new(
                RecordErrorKind::TooLarge,
                format!("a batch of {} bytes is more than the format holds", batch.len()),
            )
        })?;
        let stamp = producer;
        let header = Unsigned { magic: MAGIC, length, codec, count, base_timestamp, max_timestamp, stamp };
        header.write(&mut batch);
        Ok(batch)
    }
}

/// The header before its checksum is known.
pub(crate) struct Unsigned {
    pub(crate) magic: i8,
    pub(crate) length: i32,
    pub(crate) codec: Codec,
    pub(crate) count: i32,
    pub(crate) base_timestamp: i64,
    pub(crate) max_timestamp: i64,
    /// None: not of an idempotent producer.
    pub(crate) stamp: Option<ProducerStamp>,
}

impl Unsigned {
    /// Writes the header over the first bytes of the batch, and the checksum of all of it.
    pub(crate) fn write(&self, batch: &mut [u8]) {
        let stamp = self.stamp.unwrap_or(ProducerStamp { id: -1, epoch: -1, base_sequence: -1 });
        let mut fields = Fields { batch, at: 0 };
        fields.put(0_i64.to_be_bytes()); // base offset
        fields.put(self.length.to_be_bytes());
        fields.put((-1_i32).to_be_bytes()); // leader epoch: the broker's to set
        fields.put(self.magic.to_be_bytes());
        fields.put([0; 4]);
        fields.put((self.codec as i16).to_be_bytes());
        fields.put((self.count - 1).to_be_bytes());
        fields.put(self.base_timestamp.to_be_bytes());
        fields.put(self.max_timestamp.to_be_bytes());
        fields.put(stamp.id.to_be_bytes());
        fields.put(stamp.epoch.to_be_bytes());
        fields.put(stamp.base_sequence.to_be_bytes());
        fields.put(self.count.to_be_bytes());
        debug_assert_eq!(fields.at, HEADER_BYTES);
        let checksum = crc32c::crc32c(fields.batch.get(CHECKED_FROM..).unwrap_or_default());
        fields.at = CHECKSUM_AT;
        fields.put(checksum.to_be_bytes());
    }
}

/// Writes fields one after the other.
struct Fields<'a> {
    batch: &'a mut [u8],
    at: usize,
}

impl Fields<'_> {
    fn put<const N: usize>(&mut self, field: [u8; N]) {
        if let Some(target) = self.batch.get_mut(self.at..self.at + N) {
            target.copy_from_slice(&field);
        }
        self.at += N;
    }
}

const _: () =
    assert!(Attributes::LOG_APPEND_TIME > Codec::Zstd as i16, "a codec number is a whole attributes field");

fn put_field(out: &mut Vec<u8>, field: Option<&[u8]>) {
    match field {
        None => put_varlong(out, -1),
        Some(bytes) => {
            put_varlong(out, signed(bytes.len()));
            out.extend_from_slice(bytes);
        }
    }
}

fn field_size(field: Option<&[u8]>) -> usize {
    match field {
        None => 1,
        Some(bytes) => varlong_size(signed(bytes.len())).saturating_add(bytes.len()),
    }
}

/// A length in memory is never beyond `isize`.
fn signed(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}
