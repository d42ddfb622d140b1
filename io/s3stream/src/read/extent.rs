//! What one GET has brought of an object's body: neighbouring blocks, each checked once.
//!
//! Lives on: anywhere.
//! Owns: the bytes, and what became of each block.
//! Invariants: P-1: no byte is given whose block's checksum does not match; a block is checked when it is first used, and a
//! damaged one fails itself only (P-14).
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use mink_types::{BucketId, ObjectId, OffsetRange};

use super::index::Index;
use super::plan::{Run, offsets_of};
use crate::error::Error;

/// Blocks of an object that came in one GET.
#[derive(Debug)]
pub(super) struct Extent {
    pub(super) object: ObjectId,
    /// Where its first block begins in the object.
    pub(super) start: u64,
    /// Where its last block ends.
    pub(super) end: u64,
    bytes: Bytes,
    blocks: Box<[Part]>,
}

/// One block of an extent.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) bucket: BucketId,
    pub(super) offsets: OffsetRange,
    position: u64,
    length: u32,
    crc: u32,
    /// Fetched before it was asked for.
    ahead: bool,
    sound: OnceLock<Result<(), u32>>,
    used: AtomicBool,
    passed: AtomicBool,
}

/// The blocks of an extent to be.
#[derive(Debug)]
pub(super) struct Outline {
    pub(super) object: ObjectId,
    pub(super) start: u64,
    pub(super) end: u64,
    blocks: Vec<Part>,
}

impl Outline {
    /// The blocks of a run, of which those that are not `asked` come ahead of time. None for a run that is not the
    /// index's.
    pub(super) fn new(
        object: ObjectId,
        index: &Index,
        run: Run,
        asked: impl Fn(usize) -> bool,
    ) -> Option<Outline> {
        let places = index.places().get(run.first..=run.last)?;
        let (start, end) = (places.first()?.position, places.last()?.end());
        let part = |(n, place): (usize, _)| {
            let (part, block) = index.block(place)?;
            Some(Part {
                bucket: part.bucket,
                offsets: offsets_of(block),
                position: block.position,
                length: block.length,
                crc: block.crc,
                ahead: !asked(run.first + n),
                sound: OnceLock::new(),
                used: AtomicBool::new(false),
                passed: AtomicBool::new(false),
            })
        };
        let blocks = places.iter().enumerate().map(part).collect::<Option<Vec<Part>>>()?;
        Some(Outline { object, start, end, blocks })
    }

    /// Memory beside the bytes.
    pub(super) fn beside(&self) -> usize {
        self.blocks.len() * size_of::<Part>() + size_of::<Extent>()
    }

    /// Whether the block at this position comes with it.
    pub(super) fn holds(&self, position: u64) -> bool {
        (self.start..self.end).contains(&position)
    }

    /// Bytes of the body.
    pub(super) fn length(&self) -> u64 {
        self.end - self.start
    }

    /// The extent, out of bytes that begin at `from` in the object.
    pub(super) fn filled(self, bytes: &Bytes, from: u64) -> Result<Extent, Error> {
        let Outline { object, start, end, blocks } = self;
        let place = |at: u64| at.checked_sub(from).and_then(|at| usize::try_from(at).ok());
        match (place(start), place(end)) {
            (Some(first), Some(last)) if first <= last && last <= bytes.len() => {
                let bytes = bytes.slice(first..last);
                Ok(Extent { object, start, end, bytes, blocks: blocks.into() })
            }
            _ => {
                let what = format!("{} bytes came from {from} on, {start}..{end} are wanted", bytes.len());
                Err(Error::corrupt(object, what))
            }
        }
    }
}

/// How a block was used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Use {
    /// For the first time; `ahead` says that nobody had asked for it when it was fetched.
    First {
        ahead: bool,
    },
    Again,
}

impl Extent {
    /// The block at this position.
    pub(super) fn part(&self, position: u64) -> Option<&Part> {
        let at = self.blocks.binary_search_by_key(&position, |part| part.position).ok()?;
        self.blocks.get(at)
    }

    /// The bytes of a block, checked.
    pub(super) fn content(&self, part: &Part) -> Result<Bytes, Error> {
        let start = usize::try_from(part.position - self.start).unwrap_or(usize::MAX);
        let end = start.saturating_add(part.length as usize);
        if end > self.bytes.len() {
            return Err(Error::corrupt(self.object, "a block lies outside of what was read"));
        }
        let content = self.bytes.slice(start..end);
        let check = || {
            let found = crc32c::crc32c(&content);
            if found == part.crc { Ok(()) } else { Err(found) }
        };
        match part.sound.get_or_init(check) {
            Ok(()) => Ok(content),
            Err(found) => {
                let (at, expected) = (part.position, part.crc);
                let what = format!("block at {at} has checksum {found:08x}, expected {expected:08x}");
                Err(Error::corrupt(self.object, what))
            }
        }
    }

    /// Whether a reader has passed every block.
    pub(super) fn all_passed(&self) -> bool {
        self.blocks.iter().all(|part| part.passed.load(Ordering::Relaxed))
    }

    /// The buckets and offsets that it holds.
    pub(super) fn offsets(&self) -> impl Iterator<Item = (BucketId, OffsetRange)> + '_ {
        self.blocks.iter().map(|part| (part.bucket, part.offsets))
    }

    /// Bytes that were fetched ahead and that nobody has used.
    pub(super) fn wasted(&self) -> u64 {
        let unused = self.blocks.iter().filter(|part| part.ahead && !part.used.load(Ordering::Relaxed));
        unused.map(|part| u64::from(part.length)).sum()
    }
}

impl Part {
    pub(super) fn length(&self) -> u64 {
        u64::from(self.length)
    }

    pub(super) fn use_it(&self) -> Use {
        if self.used.swap(true, Ordering::Relaxed) { Use::Again } else { Use::First { ahead: self.ahead } }
    }

    /// A reader in sequence has taken the last entry.
    pub(super) fn pass(&self) {
        self.passed.store(true, Ordering::Relaxed);
    }
}
