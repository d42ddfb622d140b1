//! The producer table as bytes: written into footers of stream objects, read at recovery.
//!
//! Lives on: anywhere (pure).
//! Invariants: the same table gives the same bytes; what is read is bounded by the bytes that are there (I19); a snapshot holds
//! exactly the batches below the offset it is as of (T-3: producer state must never be ahead of the data).
//!
//! Little-endian:
//!
//! | size | field |
//! |------|-------|
//! | 4 | `MKPS` |
//! | 2 | version: 1, or 2 if a part of the log is lost of whose producers nobody knows (decision 0016) |
//! | 2 | 0 |
//! | 8 | as of offset: all batches below it are in, none at or above it |
//! | 8 | last commit time below that offset, ms |
//! | 4 | producers, in ascending order of their ids |
//! | 8 | version 2 only: the end of what is lost |
//! | each: 8, 2, 2 | id, epoch, batches (1 to 5, oldest first) |
//! | each batch: 4, 4, 8, 8 | base sequence, records, base offset, commit time |
//! | 4 | CRC-32C of everything before it |
use crate::producers::{Entry, LoggedBatch, Placed, ProducerLimits, Producers, WINDOW_BATCHES, Window};
use crate::{RecoverError, SnapshotError};
use mink_types::{CommitTime, Offset, ProducerEpoch, ProducerId, Sequence};

/// The version that is written, unless [`lost_below`] says more.
pub const SNAPSHOT_VERSION: u16 = 1;
/// The version that says below which offset batches were lost. It is written only while a producer is remembered for whom that matters.
const SNAPSHOT_VERSION_LOST: u16 = 2;

/// Producers that a snapshot may hold when it is read.
pub const SNAPSHOT_PRODUCERS_MAX: usize = 100_000;

/// Producers that a bucket may have at once, whatever its limit: with full windows their snapshot still fits a footer, and an
/// object without one would end what its successors know of them (I6).
pub(crate) const PRODUCERS_MAX: usize = 31_700;
/// What a footer takes of one bucket's producers.
const FOOTER_BYTES_MAX: usize = 4 << 20;
const _: () = assert!(
    HEAD_BYTES
        + LOST_BYTES
        + PRODUCERS_MAX * (PRODUCER_BYTES + WINDOW_BATCHES * BATCH_BYTES)
        + CHECKSUM_BYTES
        <= FOOTER_BYTES_MAX
);

const MAGIC: [u8; 4] = *b"MKPS";
const HEAD_BYTES: usize = 28;
const LOST_BYTES: usize = 8;
const PRODUCER_BYTES: usize = 12;
const BATCH_BYTES: usize = 24;
const CHECKSUM_BYTES: usize = 4;

const _: () = assert!(HEAD_BYTES == 4 + 2 + 2 + 8 + 8 + 4 && BATCH_BYTES == 4 + 4 + 8 + 8);

/// What a snapshot covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SnapshotInfo {
    /// Batches below this offset are folded in, no other.
    pub as_of: Offset,
    /// The log's last commit time below that offset.
    pub last_commit_time: CommitTime,
    /// Producers in it.
    pub producers: u32,
}

/// Checks a snapshot and says what it covers.
pub fn snapshot_info(bytes: &[u8]) -> Result<SnapshotInfo, SnapshotError> {
    let limits = ProducerLimits { producers_max: u32::MAX, expiry_ms: u64::MAX };
    decode(bytes, limits).map(|(info, _)| info)
}

/// The snapshot after `batches`, given the one before them: the same that a tablet that ordered them would give. No bytes at
/// all stand for a log that never held a record.
///
/// # Errors
/// When `before` is no snapshot, or a batch lies below what it covers or below its predecessor.
pub fn fold_producers(
    before: &[u8],
    batches: impl IntoIterator<Item = LoggedBatch>,
    limits: ProducerLimits,
) -> Result<Vec<u8>, RecoverError> {
    let (info, mut producers) = decode_or_new(before, limits)?;
    let (mut as_of, mut last_commit_time) = (info.as_of, info.last_commit_time);
    for batch in batches {
        if batch.base_offset < as_of {
            return Err(RecoverError::BatchOutOfPlace {
                offset: batch.base_offset,
                from: as_of,
                end: Offset(u64::MAX),
            });
        }
        as_of = batch.end();
        last_commit_time = last_commit_time.max(batch.commit_time);
        producers.record(batch);
    }
    Ok(encode(&producers, as_of, last_commit_time))
}

/// The same snapshot, of a log that has lost batches below `offset` of which nobody knows who wrote them: a producer that is known by
/// batches below it alone may have written there, too. So the next batch that he sends is taken, whatever has gone before; what is
/// remembered of him stays a repeat. `offset` may lie beyond what the snapshot covers.
///
/// # Errors
/// When `before` is no snapshot.
pub fn lost_below(before: &[u8], offset: Offset) -> Result<Vec<u8>, SnapshotError> {
    let limits = ProducerLimits { producers_max: u32::MAX, expiry_ms: u64::MAX };
    let (info, mut producers) = decode_or_new(before, limits)?;
    producers.lost_below(offset);
    Ok(encode(&producers, info.as_of, info.last_commit_time))
}

pub(crate) fn decode_or_new(
    bytes: &[u8],
    limits: ProducerLimits,
) -> Result<(SnapshotInfo, Producers), SnapshotError> {
    if !bytes.is_empty() {
        return decode(bytes, limits);
    }
    let info = SnapshotInfo { as_of: Offset(0), last_commit_time: CommitTime(0), producers: 0 };
    Ok((info, Producers::new(limits)))
}

pub(crate) fn encode(producers: &Producers, as_of: Offset, last_commit_time: CommitTime) -> Vec<u8> {
    let count = producers.len().min(SNAPSHOT_PRODUCERS_MAX);
    let batches: usize = producers.iter().take(count).map(|(_, entry)| entry.window.as_slice().len()).sum();
    let lost = producers.unsure_below(as_of);
    // Exactly: there is a snapshot of every bucket in memory.
    let lost_bytes = lost.map_or(0, |_| LOST_BYTES);
    let bytes = HEAD_BYTES + lost_bytes + count * PRODUCER_BYTES + batches * BATCH_BYTES + CHECKSUM_BYTES;
    let mut out = Vec::with_capacity(bytes);
    out.extend_from_slice(&MAGIC);
    let version = lost.map_or(SNAPSHOT_VERSION, |_| SNAPSHOT_VERSION_LOST);
    out.extend_from_slice(&version.to_le_bytes());
    out.extend_from_slice(&0_u16.to_le_bytes());
    out.extend_from_slice(&as_of.0.to_le_bytes());
    out.extend_from_slice(&last_commit_time.0.to_le_bytes());
    out.extend_from_slice(&u32::try_from(count).unwrap_or(0).to_le_bytes());
    if let Some(lost) = lost {
        out.extend_from_slice(&lost.0.to_le_bytes());
    }
    for (producer, entry) in producers.iter().take(count) {
        let batches = entry.window.as_slice();
        out.extend_from_slice(&producer.0.to_le_bytes());
        out.extend_from_slice(&entry.epoch.0.to_le_bytes());
        out.extend_from_slice(&u16::try_from(batches.len()).unwrap_or(0).to_le_bytes());
        for placed in batches {
            out.extend_from_slice(&placed.base_sequence.0.to_le_bytes());
            out.extend_from_slice(&placed.count.to_le_bytes());
            out.extend_from_slice(&placed.base_offset.0.to_le_bytes());
            out.extend_from_slice(&placed.commit_time.0.to_le_bytes());
        }
    }
    let checksum = crc32c::crc32c(&out);
    out.extend_from_slice(&checksum.to_le_bytes());
    debug_assert_eq!(out.len(), bytes);
    out
}

pub(crate) fn decode(
    bytes: &[u8],
    limits: ProducerLimits,
) -> Result<(SnapshotInfo, Producers), SnapshotError> {
    let length = SnapshotError::Length { bytes: bytes.len() };
    let (body, stated) = bytes.split_last_chunk::<CHECKSUM_BYTES>().ok_or(length)?;
    let mut at = Cursor(body);
    let magic = at.take::<4>().ok_or(length)?;
    let version = u16::from_le_bytes(at.take().ok_or(length)?);
    if magic != MAGIC {
        return Err(content("it does not begin with MKPS"));
    }
    // Before the checksum: another version may put it elsewhere.
    if version != SNAPSHOT_VERSION && version != SNAPSHOT_VERSION_LOST {
        return Err(SnapshotError::Version { version });
    }
    let (stated, computed) = (u32::from_le_bytes(*stated), crc32c::crc32c(body));
    if stated != computed {
        return Err(SnapshotError::Checksum { stated, computed });
    }
    at.take::<2>().ok_or(length)?;
    let as_of = Offset(u64::from_le_bytes(at.take().ok_or(length)?));
    let last_commit_time = CommitTime(i64::from_le_bytes(at.take().ok_or(length)?));
    let count = u32::from_le_bytes(at.take().ok_or(length)?);
    let info = SnapshotInfo { as_of, last_commit_time, producers: count };
    if usize::try_from(count).map_or(true, |count| count > SNAPSHOT_PRODUCERS_MAX) {
        return Err(content("it has more producers than any release writes"));
    }
    let mut producers = Producers::new(limits);
    if version == SNAPSHOT_VERSION_LOST {
        producers.lost_below(Offset(u64::from_le_bytes(at.take().ok_or(length)?)));
    }
    let mut before = None;
    for _ in 0..count {
        let (producer, entry) = at.producer(&info).ok_or(length)??;
        if before.is_some_and(|before| before >= producer) {
            return Err(content("its producers are not in order"));
        }
        before = Some(producer);
        producers.insert(producer, entry);
    }
    if at.0.is_empty() { Ok((info, producers)) } else { Err(length) }
}

fn content(what: &'static str) -> SnapshotError {
    SnapshotError::Content { what }
}

struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*head)
    }

    /// None when the bytes end.
    fn producer(&mut self, info: &SnapshotInfo) -> Option<Result<(ProducerId, Entry), SnapshotError>> {
        let producer = ProducerId(i64::from_le_bytes(self.take()?));
        let epoch = ProducerEpoch(i16::from_le_bytes(self.take()?));
        let batches = u16::from_le_bytes(self.take()?);
        if batches == 0 || usize::from(batches) > WINDOW_BATCHES {
            return Some(Err(content("a producer has no batch, or more than five")));
        }
        let mut window = Window::default();
        for _ in 0..batches {
            let placed = Placed {
                base_sequence: Sequence(i32::from_le_bytes(self.take()?)),
                count: u32::from_le_bytes(self.take()?),
                base_offset: Offset(u64::from_le_bytes(self.take()?)),
                commit_time: CommitTime(i64::from_le_bytes(self.take()?)),
            };
            let behind = window
                .as_slice()
                .last()
                .is_some_and(|last| last.end() > placed.base_offset || last.commit_time > placed.commit_time);
            if behind || placed.count == 0 || placed.base_sequence.0 < 0 {
                return Some(Err(content("a producer's batches are not in order")));
            }
            if placed.end() > info.as_of || placed.commit_time > info.last_commit_time {
                return Some(Err(content("it holds a batch beyond its own offset or time")));
            }
            window.push(placed);
        }
        Some(Ok((producer, Entry { epoch, window })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stamp;

    const LIMITS: ProducerLimits = ProducerLimits { producers_max: 10, expiry_ms: 1_000_000 };

    fn table() -> Producers {
        let mut producers = Producers::new(LIMITS);
        for (producer, base_sequence, base_offset) in [(7, 0, 0), (9, i32::MAX, 3), (7, 3, 4)] {
            producers.record(LoggedBatch {
                stamp: Some(Stamp {
                    producer: ProducerId(producer),
                    epoch: ProducerEpoch(2),
                    base_sequence: Sequence(base_sequence),
                }),
                count: if base_sequence == i32::MAX { 1 } else { 3 },
                base_offset: Offset(base_offset),
                commit_time: CommitTime(1_000 + i64::try_from(base_offset).expect("small")),
            });
        }
        producers
    }

    /// The format of version 1: never to be changed.
    const GOLDEN: &str = "4d4b5053010000000700000000000000ec0300000000000002000000\
        070000000000000002000200\
        000000000300000000000000\
        00000000e803000000000000\
        0300000003000000\
        0400000000000000ec03000000000000\
        090000000000000002000100\
        ffffff7f01000000\
        0300000000000000eb03000000000000";

    fn unhex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits
            .chunks(2)
            .map(|pair| {
                u8::from_str_radix(std::str::from_utf8(pair).expect("ascii"), 16).expect("a hex byte")
            })
            .collect()
    }

    #[test]
    fn the_bytes_of_version_1_are_golden() {
        let mut golden = unhex(GOLDEN);
        golden.extend_from_slice(&crc32c::crc32c(&golden).to_le_bytes());
        let bytes = encode(&table(), Offset(7), CommitTime(1_004));
        assert_eq!(bytes, golden);
        let (info, producers) = decode(&golden, LIMITS).expect("sound");
        assert_eq!(
            info,
            SnapshotInfo { as_of: Offset(7), last_commit_time: CommitTime(1_004), producers: 2 }
        );
        assert_eq!(producers, table());
        assert_eq!(snapshot_info(&golden), Ok(info));
    }

    #[test]
    fn the_bytes_of_version_2_are_golden_and_are_written_only_while_the_loss_matters() {
        let mut golden = unhex(GOLDEN);
        golden[4] = 2;
        golden.splice(28..28, [8, 0, 0, 0, 0, 0, 0, 0]);
        golden.extend_from_slice(&crc32c::crc32c(&golden).to_le_bytes());
        let mut known = table();
        known.lost_below(Offset(8));
        let bytes = encode(&known, Offset(7), CommitTime(1_004));
        assert_eq!(bytes, golden);
        assert_eq!(decode(&bytes, LIMITS), Ok((snapshot_info(&bytes).expect("sound"), known.clone())));
        let whole = encode(&table(), Offset(7), CommitTime(1_004));
        assert_eq!(lost_below(&whole, Offset(8)), Ok(bytes));
        for bit in 0..golden.len() * 8 {
            let mut bad = golden.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&bad, LIMITS).is_err(), "bit {bit}");
        }
        // Both have written behind the loss.
        for (producer, base_sequence, base_offset) in [(7, 6, 8), (9, 0, 9)] {
            assert_eq!(encode(&known, Offset(base_offset), CommitTime(1_004))[4], 2);
            known.record(LoggedBatch {
                stamp: Some(Stamp {
                    producer: ProducerId(producer),
                    epoch: ProducerEpoch(2),
                    base_sequence: Sequence(base_sequence),
                }),
                count: 1,
                base_offset: Offset(base_offset),
                commit_time: CommitTime(1_004),
            });
        }
        assert_eq!(encode(&known, Offset(10), CommitTime(1_004))[4], 1);
    }

    #[test]
    fn i19_every_cut_and_every_flipped_bit_is_refused() {
        let bytes = encode(&table(), Offset(7), CommitTime(1_004));
        for cut in 0..bytes.len() {
            assert!(decode(&bytes[..cut], LIMITS).is_err(), "cut at {cut}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&bad, LIMITS).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn i19_a_count_never_outruns_the_bytes() {
        let mut bytes = encode(&Producers::new(LIMITS), Offset(0), CommitTime(0));
        bytes.truncate(HEAD_BYTES - 4);
        bytes.extend_from_slice(&90_000_u32.to_le_bytes());
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        assert_eq!(decode(&bytes, LIMITS).map(|_| ()), Err(SnapshotError::Length { bytes: 32 }));
    }

    #[test]
    fn t_3_a_snapshot_ahead_of_its_offset_is_refused() {
        let bytes = encode(&table(), Offset(6), CommitTime(1_004));
        assert!(matches!(decode(&bytes, LIMITS), Err(SnapshotError::Content { .. })));
    }

    #[test]
    fn a_newer_version_is_named() {
        let mut bytes = encode(&table(), Offset(7), CommitTime(1_004));
        bytes[4] = 3;
        assert_eq!(decode(&bytes, LIMITS).map(|_| ()), Err(SnapshotError::Version { version: 3 }));
    }
}
