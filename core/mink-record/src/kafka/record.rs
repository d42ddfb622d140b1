//! The records of a batch: inflated once, then cut out of that buffer without a copy.
//!
//! Lives on: anywhere (pure).
//! Invariants: I2: offsets rise within the header's range; I19: counts and lengths are believed only as far as bytes
//! remain (K-28); no allocation for a record, however many headers it has.

use bytes::Bytes;

use super::header::RECORD_BYTES_MIN;
use super::{BatchHeader, Codec, HEADER_BYTES, TimestampType, inflate::inflate};
use crate::bounded::Bounded;
use crate::{RecordError, RecordErrorKind};

/// The smallest header: two lengths of a byte each.
const HEADER_ENTRY_BYTES_MIN: usize = 2;

/// One record. `key`, `value` and `headers` are slices of the inflated batch and keep it alive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its place in the partition.
    pub offset: i64,
    /// Milliseconds since 1970; -1 if the producer gave none.
    pub timestamp: i64,
    /// `None` if null.
    pub key: Option<Bytes>,
    /// `None` if null: a tombstone on a compacted topic.
    pub value: Option<Bytes>,
    /// In the producer's order; names may repeat.
    pub headers: Headers,
}

/// A header of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The name; UTF-8 by custom, not by rule.
    pub key: Bytes,
    /// `None` if null.
    pub value: Option<Bytes>,
}

/// The headers of one record, kept encoded: they were checked when the record was read, and cost nothing until
/// someone looks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    encoded: Bytes,
    count: usize,
}

impl Headers {
    /// How many.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// In the producer's order.
    pub fn iter(&self) -> impl Iterator<Item = Header> + '_ {
        let mut at = Bounded::new(&self.encoded);
        (0..self.count).map_while(move |_| {
            let (key, value) = header_entry(&mut at)?;
            Some(Header {
                key: self.encoded.slice_ref(key),
                value: value.map(|value| self.encoded.slice_ref(value)),
            })
        })
    }

    fn parse(encoded: Bytes, count: i32) -> Option<Self> {
        let count = usize::try_from(count).ok()?;
        if count > encoded.len() / HEADER_ENTRY_BYTES_MIN {
            return None;
        }
        let mut at = Bounded::new(&encoded);
        for _ in 0..count {
            header_entry(&mut at)?;
        }
        at.rest().is_empty().then_some(Self { encoded, count })
    }
}

fn header_entry<'a>(at: &mut Bounded<'a>) -> Option<(&'a [u8], Option<&'a [u8]>)> {
    let key = field(at)??;
    Some((key, field(at)?))
}

/// A length and that many bytes; the inner `None` is the null of length -1.
#[expect(clippy::option_option, reason = "outside: do the bytes hold a field; inside: is the field null")]
fn field<'a>(at: &mut Bounded<'a>) -> Option<Option<&'a [u8]>> {
    match at.varint()? {
        -1 => Some(None),
        length => at.take(usize::try_from(length).ok()?).map(Some),
    }
}

/// The records of one batch in offset order. `batch` starts with the batch that `header` was read from, whose checksum
/// the caller has verified if it does not trust the bytes; `inflated_bytes_max` bounds what a codec may put out.
/// Records that are not compressed are slices of `batch` itself.
///
/// # Errors
/// `InflatedTooLarge`; `InvalidRecord` if the bytes are not what the codec would write, or can't hold as many records
/// as the header states; `Incomplete`.
pub fn records(
    header: &BatchHeader,
    batch: Bytes,
    inflated_bytes_max: usize,
) -> Result<Records, RecordError> {
    let walk = Walk::new(header);
    let plain = plain(header, batch, inflated_bytes_max)?;
    Ok(Records { plain, walk, failed: false })
}

/// The bytes of the records, inflated if need be.
pub(super) fn plain(
    header: &BatchHeader,
    mut batch: Bytes,
    inflated_bytes_max: usize,
) -> Result<Bytes, RecordError> {
    header.check_kafka()?;
    header.whole(&batch)?;
    batch.truncate(header.total_bytes());
    let stored = batch.split_off(HEADER_BYTES);
    let plain = match header.attributes.codec() {
        Codec::None => stored,
        // A batch that compaction has emptied keeps its header alone.
        _ if stored.is_empty() && header.record_count == 0 => stored,
        codec => Bytes::from(inflate(codec, &stored, inflated_bytes_max)?),
    };
    let count = usize::try_from(header.record_count).unwrap_or(usize::MAX);
    if count > plain.len() / RECORD_BYTES_MIN {
        return Err(RecordError::invalid(format!(
            "the batch states {count} records, but {} bytes hold fewer",
            plain.len()
        )));
    }
    Ok(plain)
}

/// Iterator over the records of a batch; ends after its first error.
#[derive(Clone, Debug)]
pub struct Records {
    plain: Bytes,
    walk: Walk,
    failed: bool,
}

impl Records {
    fn step(&mut self) -> Result<Option<Record>, RecordError> {
        let Some(frame) = self.walk.next(&self.plain)? else {
            return Ok(None);
        };
        let broken =
            || RecordError::invalid(format!("the fields of record {} do not fill its length", frame.offset));
        let mut at = Bounded::new(frame.body);
        let key = field(&mut at).ok_or_else(broken)?;
        let value = field(&mut at).ok_or_else(broken)?;
        let count = at.varint().ok_or_else(broken)?;
        let headers = match at.rest() {
            [] if count == 0 => Headers::default(),
            encoded => Headers::parse(self.plain.slice_ref(encoded), count).ok_or_else(broken)?,
        };
        Ok(Some(Record {
            offset: frame.offset,
            timestamp: frame.timestamp,
            key: key.map(|key| self.plain.slice_ref(key)),
            value: value.map(|value| self.plain.slice_ref(value)),
            headers,
        }))
    }
}

impl Iterator for Records {
    type Item = Result<Record, RecordError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let step = self.step();
        self.failed = step.is_err();
        step.transpose()
    }
}

impl std::iter::FusedIterator for Records {}

/// Where a walk over inflated records stands; knows offset and timestamp of each without looking into it.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    header: BatchHeader,
    position: usize,
    remaining: i32,
    /// Smallest offset delta that the next record may have; in 64 bits, as the last one may be the greatest `i32`.
    delta_min: i64,
}

/// A record's place and time, and the bytes from its key on.
pub(super) struct Frame<'a> {
    pub(super) offset: i64,
    pub(super) timestamp: i64,
    body: &'a [u8],
}

impl Walk {
    pub(super) fn new(header: &BatchHeader) -> Self {
        Self { header: *header, position: 0, remaining: header.record_count, delta_min: 0 }
    }

    /// The next record of `plain`, which is the same bytes each time.
    pub(super) fn next<'a>(&mut self, plain: &'a [u8]) -> Result<Option<Frame<'a>>, RecordError> {
        let rest = plain.get(self.position..).unwrap_or_default();
        if self.remaining <= 0 {
            return if rest.is_empty() {
                Ok(None)
            } else {
                Err(RecordError::invalid(format!(
                    "{} bytes follow the {} records of the batch",
                    rest.len(),
                    self.header.record_count
                )))
            };
        }
        let mut at = Bounded::new(rest);
        let (time_delta, offset_delta, body) = open(&mut at).ok_or_else(|| {
            let index = self.header.record_count - self.remaining;
            RecordError::invalid(format!(
                "record {index} of the batch is cut short or has a length out of range"
            ))
        })?;
        let frame = self.frame(time_delta, offset_delta, body)?;
        self.position += rest.len() - at.rest().len();
        self.remaining -= 1;
        self.delta_min = i64::from(offset_delta) + 1;
        Ok(Some(frame))
    }

    fn frame<'a>(
        &self,
        time_delta: i64,
        offset_delta: i32,
        body: &'a [u8],
    ) -> Result<Frame<'a>, RecordError> {
        if !(self.delta_min..=self.header.last_offset_delta.into()).contains(&offset_delta.into()) {
            return Err(RecordError::invalid(format!(
                "offset delta {offset_delta} is out of order; {} to {} may come here",
                self.delta_min, self.header.last_offset_delta
            )));
        }
        let timestamp = match self.header.attributes.timestamp_type() {
            TimestampType::LogAppendTime => self.header.max_timestamp,
            TimestampType::CreateTime => {
                self.header.base_timestamp.checked_add(time_delta).ok_or_else(|| {
                    RecordError::new(
                        RecordErrorKind::InvalidTimestamp,
                        format!("timestamp {} plus {time_delta} is out of range", self.header.base_timestamp),
                    )
                })?
            }
        };
        // In range: `parse` has checked that the base plus the last delta is, and this delta is not greater.
        let offset = self.header.base_offset.saturating_add(offset_delta.into());
        Ok(Frame { offset, timestamp, body })
    }
}

/// Length, attributes (no bit of which means anything yet), the two deltas, and the rest of the record.
fn open<'a>(at: &mut Bounded<'a>) -> Option<(i64, i32, &'a [u8])> {
    let length = usize::try_from(at.varint()?).ok()?;
    let mut inside = Bounded::new(at.take(length)?);
    inside.i8()?;
    let time_delta = inside.varlong()?;
    let offset_delta = inside.varint()?;
    Some((time_delta, offset_delta, inside.rest()))
}
