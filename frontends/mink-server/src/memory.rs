//! `--memory` in parts: who may hold how much, so that the sum holds.
//!
//! Lives on: anywhere (pure).
//! Invariants: I20: the parts never sum up to more than the whole, and each counts what is really held. What a batch takes while it
//! goes from part to part is counted once: in `requests` until it is durable, in `log` from then on.
//!
//! | part | of 32 | holds | at most |
//! |---|---|---|---|
//! | requests | 6 | frames that were read, and their batches until they are durable | 1 GiB |
//! | log | 9 | durable batches that are not flushed, and flushed ones that stay for readers: the same bytes for WAL, flush and readers | - |
//! | answers | 4 | answers that clients have not taken, and what is read from objects for them | 1 GiB |
//! | flight | 1, and a fourth of what others need no more | messages of Arrow Flight until their rows are durable (three quarters), and rows on their way to clients | 1 GiB |
//! | blocks | 2 | blocks of objects, read and read ahead | - |
//! | footers | 1 | footers of objects | 256 MiB |
//! | inflating | 3 | batches that searches by time inflate, and rows while they become JSON or are made of it | `inflated-bytes-max` |
//! | work | 2 | flushes, compaction, garbage, connections | 256 MiB |
//! | groups | 1 | consumer groups and their offsets, twice: as they are, and on their way to the log | 2 GiB |
//! | metadata | 3 | tables and buckets: [`TOPIC_BYTES`] each | 256 MiB |
//!
//! What a part needs no more goes to `log` and `blocks`, half each. Beside all this a process takes what it takes idle
//! (docs/performance.md).
use mink_types::Limits;
use s3stream::{CHUNK_ENTRIES_MAX, ENTRY_BYTES_MAX};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Least memory that a node can work with: its parts are then large enough for batches of 8 MiB.
pub const MEMORY_MIN: u64 = 128 * MIB;

/// What a topic of one partition takes, flushed and at rest, in bytes.
pub const TOPIC_BYTES: u64 = 2048;

/// Longest WAL that a takeover may have to read, whatever memory there is.
const UNTRIMMED_MAX: u64 = 256 * MIB;
const OBJECT_MAX: u64 = 64 * MIB;
/// Bytes of appends that a shard takes in one turn, beyond which the largest batch may go.
const TURN_BYTES: u64 = MIB;
/// Of an object, beside its batches: the index of the longest chunk.
const INDEX_BYTES: u64 = CHUNK_ENTRIES_MAX as u64 * 128;
/// Of a frame, beside its one batch.
const FRAME_BESIDE_BYTES: u64 = 64 << 10;
/// Answers that fit side by side at least.
const ANSWERS_MIN: u64 = 16;
const UNIT: u64 = 32;

/// The parts of a node's memory, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Memory {
    pub total: u64,
    pub requests: u64,
    pub log: u64,
    pub flight: u64,
    pub answers: u64,
    pub blocks: u64,
    pub footers: u64,
    pub inflating: u64,
    pub work: u64,
    pub groups: u64,
    pub metadata: u64,
}

impl Memory {
    /// Splits `total` bytes; none below [`MEMORY_MIN`].
    pub fn split(total: u64) -> Option<Memory> {
        if total < MEMORY_MIN {
            return None;
        }
        let unit = total / UNIT;
        let inflating_max = u64::from(Limits::default().inflated_bytes_max);
        let requests = (6 * unit).min(GIB);
        let answers = (4 * unit).min(GIB);
        let footers = unit.min(256 * MIB);
        let inflating = (3 * unit).min(inflating_max);
        let work = (2 * unit).min(256 * MIB);
        let groups = unit.min(2 * GIB);
        let metadata = (3 * unit).min(256 * MIB);
        let (log, blocks) = (9 * unit, 2 * unit);
        let given = requests + unit + answers + footers + inflating + work + groups + metadata + log + blocks;
        let flight = (unit + (total - given) / 4).min(GIB);
        let left = (total - given + unit - flight) / 2;
        let (log, blocks) = (log + left, blocks + left);
        Some(Memory {
            total,
            requests,
            log,
            flight,
            answers,
            blocks,
            footers,
            inflating,
            work,
            groups,
            metadata,
        })
    }

    /// The parts by the names that metrics give them.
    pub fn parts(&self) -> [(&'static str, u64); 10] {
        [
            ("requests", self.requests),
            ("log", self.log),
            ("flight", self.flight),
            ("answers", self.answers),
            ("blocks", self.blocks),
            ("footers", self.footers),
            ("inflating", self.inflating),
            ("work", self.work),
            ("groups", self.groups),
            ("metadata", self.metadata),
        ]
    }

    /// Bytes of WAL that may be untrimmed. They lie in `log`, whose other bytes are flushed and may go at any time.
    pub fn untrimmed_bytes_max(&self) -> u64 {
        self.log.min(UNTRIMMED_MAX)
    }

    /// Longest WAL or stream object: two of them fit the untrimmed WAL, so that one is flushed while the next fills.
    pub fn object_bytes_max(&self) -> u64 {
        (self.untrimmed_bytes_max() / 2).min(OBJECT_MAX)
    }

    /// Longest chunk of a shard: one turn's appends, the last of which may be the largest batch.
    pub fn chunk_bytes_max(&self) -> u64 {
        TURN_BYTES + self.batch_bytes_max()
    }

    /// Bytes that the WAL writer takes out of the shards' lanes before they are cut; they are some of `requests`.
    pub fn waiting_bytes_max(&self) -> u64 {
        (self.requests / 2).min(64 * MIB)
    }

    /// Longest frame: frames above 2 MiB share half of `requests`, and one of them must fit.
    pub fn frame_bytes_max(&self) -> u64 {
        self.requests / 2
    }

    /// What messages of Arrow Flight may hold; the rest of `flight` is for what is sent.
    pub fn flight_requests(&self) -> u64 {
        self.flight / 4 * 3
    }

    /// Largest message of Arrow Flight: it and the batches that are made of it must fit.
    pub fn flight_message_bytes_max(&self) -> u64 {
        self.flight_requests() / 2
    }

    /// Largest batch: its frame, its chunk's object and one entry must hold it.
    pub fn batch_bytes_max(&self) -> u64 {
        let frame = self.frame_bytes_max() - FRAME_BESIDE_BYTES;
        let object = self.object_bytes_max() - INDEX_BYTES - TURN_BYTES;
        frame.min(object).min(ENTRY_BYTES_MAX as u64)
    }

    /// Largest answer to one fetch.
    pub fn fetch_bytes_max(&self) -> u64 {
        self.answers / ANSWERS_MIN
    }

    /// Buckets of all tables whose state fits.
    pub fn buckets_max(&self) -> u64 {
        self.metadata / TOPIC_BYTES
    }

    /// The least memory, in whole steps of doubling, that passes `fits`; none if no machine has so much.
    pub fn least(fits: impl Fn(&Memory) -> bool) -> Option<u64> {
        (0..16)
            .map(|doubled| MEMORY_MIN << doubled)
            .find(|total| Memory::split(*total).is_some_and(|m| fits(&m)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use s3stream::WalConfig;

    fn sizes() -> impl Iterator<Item = u64> {
        (0..400_u64).map(|n| MEMORY_MIN + n * n * MIB / 2 + n * 777)
    }

    #[test]
    fn i20_the_parts_never_sum_up_to_more_than_the_whole() {
        for total in sizes() {
            let memory = Memory::split(total).expect("enough");
            let sum: u64 = memory.parts().iter().map(|(_, bytes)| bytes).sum();
            assert!(sum <= total && sum + 2 * UNIT >= total, "{total}: {memory:?}");
        }
        assert_eq!(Memory::split(MEMORY_MIN - 1), None);
    }

    #[test]
    fn every_size_gives_a_wal_that_works_and_takes_batches_of_8_mib() {
        for total in sizes() {
            let memory = Memory::split(total).expect("enough");
            assert!(memory.batch_bytes_max() >= 8 * MIB, "{total}: {memory:?}");
            assert!(memory.batch_bytes_max() < memory.frame_bytes_max());
            assert!(memory.waiting_bytes_max() <= memory.requests);
            let config = WalConfig {
                object_bytes_max: memory.object_bytes_max(),
                chunk_bytes_max: memory.chunk_bytes_max(),
                untrimmed_bytes_max: memory.untrimmed_bytes_max(),
                waiting_bytes_max: memory.waiting_bytes_max(),
                flush_bytes: memory.object_bytes_max(),
                ..WalConfig::default()
            };
            assert_eq!(config.check(), Ok(()), "{total}");
        }
    }

    #[test]
    fn more_memory_never_makes_a_part_smaller() {
        let mut before = Memory::split(MEMORY_MIN).expect("enough");
        for total in sizes().skip(1) {
            let memory = Memory::split(total).expect("enough");
            for ((name, now), (_, then)) in memory.parts().iter().zip(before.parts()) {
                assert!(*now >= then, "{name} at {total}");
            }
            before = memory;
        }
    }

    #[test]
    fn the_limits_of_the_documentation_fit_a_gibibyte_and_a_half() {
        let (memory, limits) = (Memory::split(3 * GIB / 2).expect("enough"), Limits::default());
        assert!(memory.frame_bytes_max() >= u64::from(limits.frame_bytes_max));
        assert!(memory.batch_bytes_max() >= u64::from(limits.batch_bytes_max));
        assert_eq!(memory.inflating, u64::from(limits.inflated_bytes_max));
        assert_eq!(Memory::least(|memory| memory.frame_bytes_max() >= 20 * MIB), Some(256 * MIB));
        assert_eq!(Memory::least(|_| false), None);
    }
}
