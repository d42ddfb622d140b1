//! Which offsets may be refused, as somebody has damaged the object that they lie in.
//!
//! Lives on: the simulation's thread.
//! Invariants checked: P-14 and P-1 (a refusal names a damaged object and concerns what lay in it).
use super::{History, Inner};
use mink_types::{BucketId, ObjectId, Offset, OffsetRange, WalChain, WalNumber};

impl History {
    /// An object is damaged; these ranges lie in it.
    pub(crate) fn hurt(&self, object: ObjectId, ranges: Vec<(BucketId, OffsetRange)>) {
        let mut inner = self.inner();
        inner.counts.damaged += 1;
        inner.hurt.insert(object, ranges);
    }

    pub(crate) fn is_hurt(&self, object: ObjectId) -> bool {
        self.inner().hurt.contains_key(&object)
    }

    /// Whether an object of the chain, of `from` or above, was damaged; also one that is gone.
    pub(crate) fn hurts_chain(&self, chain: WalChain, from: WalNumber) -> bool {
        let of_chain = |id: &ObjectId| matches!(id, ObjectId::Wal { chain: of, number } if *of == chain && *number >= from);
        self.inner().hurt.keys().any(of_chain)
    }

    /// Whether a part of the bucket may be lost, and with it what told of producers.
    pub(crate) fn may_forget_producers(&self, bucket: BucketId) -> bool {
        self.inner().any_hurt(bucket)
    }

    /// Whether a line of a node's log names an object that was damaged.
    pub(crate) fn names_hurt(&self, line: &str) -> bool {
        let named = |id: &ObjectId| {
            let name = id.to_string();
            line.split(&name).skip(1).any(|rest| !rest.starts_with(|next: char| next.is_ascii_digit()))
        };
        self.inner().hurt.keys().any(named)
    }

    /// A read at `from` was refused because of `object`: where the log goes on, if that may be.
    pub(crate) fn refused_read(&self, bucket: BucketId, from: Offset, object: ObjectId) -> Option<Offset> {
        let mut inner = self.inner();
        let ranges = inner.hurt.get(&object)?;
        let holds = |range: &OffsetRange| range.start <= from && from < range.end;
        let end = ranges.iter().find(|(of, range)| *of == bucket && holds(range))?.1.end;
        inner.counts.damaged_reads += 1;
        Some(end)
    }
}

impl Inner {
    /// Whether any object that held a part of the bucket was damaged.
    pub(super) fn any_hurt(&self, bucket: BucketId) -> bool {
        self.hurt.values().flatten().any(|(of, _)| *of == bucket)
    }

    /// Whether all of `from..to` lay in objects that were damaged.
    pub(super) fn all_hurt(&self, bucket: BucketId, from: u64, to: u64) -> bool {
        let ranges = || self.hurt.values().flatten().filter(|(of, _)| *of == bucket).map(|(_, range)| range);
        let mut at = from;
        while at < to {
            let Some(range) = ranges().find(|range| range.start.0 <= at && at < range.end.0) else {
                return false;
            };
            at = range.end.0;
        }
        true
    }
}
