//! Batches as clients send them, of a given size.
//!
//! Lives on: anywhere (pure).
use bytes::Bytes;
use mink_record::kafka::{BatchBuilder, BatchHeader, Codec, HEADER_BYTES, ProducedLimits, RecordRef};

/// The sizes of batches that docs/performance.md speaks of, with their names.
pub const SIZES: [(&str, usize); 3] = [("16KiB", 16 << 10), ("128KiB", 128 << 10), ("1MiB", 1 << 20)];

/// Bytes of a record's value; the last one of a batch fills it up.
const VALUE_BYTES: usize = 1000;

/// Bytes of a record beside its value, at most.
const RECORD_BYTES: usize = 16;

/// The limits under which every batch of these passes.
pub const LIMITS: ProducedLimits = ProducedLimits { batch_bytes_max: 8 << 20, inflated_bytes_max: 64 << 20 };

/// A batch that is ready to be appended.
#[derive(Clone, Debug)]
pub struct Batch {
    pub header: BatchHeader,
    pub bytes: Bytes,
}

/// A batch of `bytes` bytes, give or take a record's overhead, not compressed, of no idempotent producer.
#[must_use]
pub fn batch(bytes: usize) -> Batch {
    let mut builder = BatchBuilder::with_capacity(bytes);
    // Bytes that no checksum or copy could know: a fixed sequence without a short period.
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    while builder.size() + RECORD_BYTES < bytes.max(HEADER_BYTES + 2 * RECORD_BYTES) {
        let room = bytes.saturating_sub(builder.size() + RECORD_BYTES).clamp(1, VALUE_BYTES);
        let value: Vec<u8> = std::iter::repeat_with(|| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[0]
        })
        .take(room)
        .collect();
        let record = RecordRef { timestamp: 1_767_225_600_000, value: Some(&value), ..RecordRef::default() };
        builder.push(record).unwrap_or_else(|error| unreachable!("a small record fits: {error}"));
    }
    let built = builder.build(Codec::None, None);
    let bytes = built.unwrap_or_else(|error| unreachable!("a batch without compression builds: {error}"));
    let header =
        BatchHeader::parse(&bytes).unwrap_or_else(|error| unreachable!("our own batch parses: {error}"));
    Batch { header, bytes }
}
