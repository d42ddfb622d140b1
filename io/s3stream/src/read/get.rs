//! The GETs of readers: each is led by a task of its own, so that a reader that gives up stops nobody else.
//!
//! Lives on: service runtime.
//! Talks to: the stores.
//! Invariants: P-14: an error concerns the GET's own object, is told to all who wait for it, and is not kept; the next who asks
//! sends a new one. I20: no GET flies without a pass.
use std::sync::Arc;

use bytes::Bytes;
use mink_object::Span;
use mink_types::{ObjectId, ObjectKey};

use super::blocks::{Landing, Pass};
use super::extent::Outline;
use super::index::{FooterLanding, Footing, Index, landed};
use super::plan::Run;
use super::stats::Count;
use super::{Inner, ObjectRange};
use crate::error::{Error, ErrorKind};
use crate::format::{BLOCK_BYTES, TAIL_BYTES, split_end};

/// An object up to this length comes whole with its footer, whoever asks.
pub(super) const WHOLE_BYTES_MIN: u64 = 256 << 10;

/// What a reader that asks for a footer is about to read of the object, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hint {
    /// What it asks for.
    pub(super) asked: u64,
    /// What it has read in sequence so far.
    pub(super) streak: u64,
    /// What all readers together used of an object that it read before this one.
    pub(super) around: u64,
}

impl Hint {
    /// The footer alone.
    pub(super) const FOOTER: Hint = Hint { asked: 0, streak: 0, around: 0 };
}

/// Where the GET of a footer begins. It brings blocks with it when that saves a GET and brings at most twice what is about to
/// be read, by the reader or by all readers of buckets that share objects: of a small object all, of a middling one the
/// second half.
pub(super) fn footer_get_start(object: &ObjectRange, hint: Hint, tile_bytes: u64) -> Option<u64> {
    let footer_start = object.length.checked_sub(u64::from(object.footer_length) + TAIL_BYTES as u64)?;
    let expected = object.bytes.min(hint.asked.max(hint.streak)).max(object.length.min(hint.around));
    if hint.asked == 0 || expected == 0 {
        return Some(footer_start);
    }
    let whole_max = tile_bytes.min(expected.saturating_mul(2).max(WHOLE_BYTES_MIN));
    if object.length <= whole_max {
        return Some(0);
    }
    let half = object.length / 2 + BLOCK_BYTES as u64;
    let halves = object.length <= tile_bytes.saturating_mul(2) && half < expected;
    Some(if halves { footer_start.min(object.length - half) } else { footer_start })
}

impl Inner {
    /// The footer of an object, from the cache or by one GET that others may share.
    pub(super) async fn index(
        self: &Arc<Inner>,
        object: &ObjectRange,
        hint: Hint,
    ) -> Result<Arc<Index>, Error> {
        let (footing, ours) = self.start_index(object, hint)?;
        match footing {
            Footing::Ready(index) => {
                self.counts.add(Count::FooterHits, 1);
                Ok(index)
            }
            Footing::Flying(flight) => {
                self.counts.add(Count::Joined, u64::from(!ours));
                landed(object.object, flight).await
            }
        }
    }

    /// The same without the wait; and whether this call has sent for it.
    pub(super) fn start_index(
        self: &Arc<Inner>,
        object: &ObjectRange,
        hint: Hint,
    ) -> Result<(Footing, bool), Error> {
        let id = object.object;
        if object.length == 0 {
            return Err(Error::new(ErrorKind::Lost { object: id }, format!("{id} is lost")));
        }
        // Whoever has blocks of the object needs no second copy of them.
        let hint = if self.blocks.knows(id) { Hint::FOOTER } else { hint };
        let Some(start) = footer_get_start(object, hint, self.tile_bytes) else {
            return Err(Error::corrupt(id, "metadata gives it a footer longer than itself"));
        };
        let (footing, landing) = self.footers.find_or_fly(id);
        let ours = landing.is_some();
        if let Some(landing) = landing {
            self.counts.add(Count::FooterMisses, 1);
            let led = Arc::clone(self).lead_footer(*object, start, landing);
            // Its end is told through the landing, whatever happens to it.
            drop(self.parts.service.spawn("read-footer", led));
        }
        Ok((footing, ours))
    }

    async fn lead_footer(self: Arc<Inner>, object: ObjectRange, start: u64, landing: FooterLanding) {
        let length = object.length - start;
        let Some(pass) = self.blocks.pass(usize::try_from(length).unwrap_or(usize::MAX)).await else {
            return;
        };
        let result = self.fetch_footer(&object, start, pass).await;
        landing.land(result);
    }

    async fn fetch_footer(&self, object: &ObjectRange, start: u64, pass: Pass) -> Result<Arc<Index>, Error> {
        let id = object.object;
        let bytes = self.get(id, Span::Range(start..object.length)).await?;
        let (tail, footer) = split_end(&bytes, object.length).map_err(|error| Error::corrupt(id, error))?;
        let footer = match footer {
            Some(footer) if tail.footer_crc == object.checksum => Arc::new(footer),
            _ => return Err(Error::corrupt(id, "its footer is not the one that was committed")),
        };
        let index = self.footers.put(id, footer);
        let index = index.ok_or_else(|| Error::corrupt(id, "blocks of it overlap"))?;
        if let Some(outline) = came_along(id, &index, start) {
            self.blocks.adopt(outline, bytes, start, pass)?;
        }
        Ok(index)
    }

    /// Sends a task for an extent.
    pub(super) fn start_extent(self: &Arc<Inner>, outline: Outline, landing: Landing, pass: Option<Pass>) {
        let led = Arc::clone(self).lead_extent(outline, landing, pass);
        // Its end is told through the landing, whatever happens to it.
        drop(self.parts.service.spawn("read-blocks", led));
    }

    async fn lead_extent(self: Arc<Inner>, outline: Outline, landing: Landing, pass: Option<Pass>) {
        let pass = match pass {
            Some(pass) => pass,
            None => match self.blocks.pass(weight(&outline)).await {
                Some(pass) => pass,
                None => return,
            },
        };
        let result = self.get(outline.object, Span::Range(outline.start..outline.end)).await;
        landing.land(outline, result, pass);
    }

    async fn get(&self, id: ObjectId, span: Span) -> Result<Bytes, Error> {
        let store = match id {
            ObjectId::Wal { .. } => &self.parts.wal_store,
            ObjectId::Stream { .. } => &self.parts.stream_store,
        };
        let key = ObjectKey::object(&self.parts.cluster, id);
        self.counts.add(Count::Gets, 1);
        let error = match self.parts.service.timeout(self.parts.get_timeout, store.get(&key, span)).await {
            Ok(Ok(bytes)) => {
                self.counts.add(Count::GetBytes, bytes.len() as u64);
                return Ok(bytes);
            }
            Ok(Err(error)) => {
                self.footers.forget(&id);
                Error::read(id, error)
            }
            Err(elapsed) => Error::new(ErrorKind::Retry, format!("{id}: {elapsed}")),
        };
        self.counts.add(Count::GetsFailed, 1);
        Err(error)
    }
}

/// What an extent to be takes in memory.
pub(super) fn weight(outline: &Outline) -> usize {
    usize::try_from(outline.length()).unwrap_or(usize::MAX).saturating_add(outline.beside())
}

/// The blocks that lie behind `start` as a whole.
fn came_along(id: ObjectId, index: &Index, start: u64) -> Option<Outline> {
    let places = index.places();
    let first = places.partition_point(|place| place.position < start);
    let last = places.len().checked_sub(1)?;
    (first <= last).then(|| Outline::new(id, index, Run { first, last }, |_| false))?
}

#[cfg(test)]
mod tests {
    use mink_types::{Offset, OffsetRange, Timestamp};

    use super::*;
    use crate::testing::chain;

    const MIB: u64 = 1 << 20;

    fn object(length: u64, bytes: u64) -> ObjectRange {
        ObjectRange {
            object: ObjectId::Stream { chain: chain(1), counter: 1 },
            range: OffsetRange { start: Offset(0), end: Offset(10) },
            max_timestamp: Timestamp(0),
            bytes,
            length,
            footer_length: 1_000,
            checksum: 0,
        }
    }

    #[test]
    fn a_footers_get_brings_blocks_only_where_the_reader_will_use_half_of_them() {
        let start = |length, bytes, asked, streak| {
            footer_get_start(&object(length, bytes), Hint { asked, streak, around: 0 }, 16 * MIB).unwrap()
        };
        let alone = |length: u64| length - 1_032;
        assert_eq!(start(200 << 10, 100, 100, 0), 0, "small: whole for anybody");
        assert_eq!(start(MIB, 100, 100, 0), alone(MIB), "a crumb of it is wanted");
        assert_eq!(start(MIB, MIB, MIB, 0), 0);
        assert_eq!(start(8 * MIB, 8 * MIB, MIB, 0), alone(8 * MIB), "nobody knows that it will read on");
        assert_eq!(start(8 * MIB, 8 * MIB, MIB, 4 * MIB), 0);
        assert_eq!(start(8 * MIB, MIB, MIB, 64 * MIB), alone(8 * MIB), "most of it is other buckets'");
        assert_eq!(start(17 * MIB, 17 * MIB, MIB, 64 * MIB), 17 * MIB / 2 - MIB);
        assert_eq!(start(40 * MIB, 40 * MIB, MIB, 64 * MIB), alone(40 * MIB));
        assert_eq!(
            start(8 * MIB, 8 * MIB, 0, 64 * MIB),
            alone(8 * MIB),
            "who wants the footer gets the footer"
        );
        let together = Hint { asked: MIB, streak: 0, around: 6 * MIB };
        assert_eq!(
            footer_get_start(&object(8 * MIB, MIB / 8), together, 16 * MIB),
            Some(0),
            "all read together"
        );
        assert_eq!(footer_get_start(&object(1_000, 0), Hint::FOOTER, MIB), None);
    }
}
