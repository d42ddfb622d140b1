//! What of a dead chain must be committed before its buckets may open, by reference to its WAL objects.
//!
//! Lives on: anywhere (pure).
//! Invariants: I1, I2, K-6: per bucket the ranges begin at the committed end and follow each other; what lies below is
//! dropped, what is missing is either known to be lost and named as such, or stops the bucket.
use std::collections::BTreeMap;

use mink_types::{BucketEpoch, BucketId, ObjectId, Offset, OffsetRange, Timestamp, WalChain, WalNumber};

use super::Recovered;
use crate::commit::{CommittedObject, CommittedRange, StreamCommit};
use crate::entry::IndexEntry;
use crate::format::FooterBucket;

/// Most ranges of one commit, so that it fits a row of the command log (1 MiB).
pub const RANGES_PER_COMMIT: usize = 8_192;

/// A bucket that hangs on the chain, as noted before the walk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BucketView {
    pub epoch: BucketEpoch,
    /// The committed end.
    pub end: Offset,
}

/// What to commit.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Adoption {
    /// In order of their numbers; those with `length` 0 are lost.
    pub objects: Vec<CommittedObject>,
    /// Offsets whose bytes are gone with a lost or damaged object. They are named in `objects`, too: readers get an error
    /// for them, and for nothing else (P-14).
    pub lost: Vec<LostRange>,
    /// Buckets whose entries do not meet although nothing is known to be lost. Do not open them; a person must look.
    pub gaps: Vec<Gap>,
}

/// Offsets that are gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LostRange {
    pub bucket: BucketId,
    pub range: OffsetRange,
    /// The lost object that they are booked on.
    pub number: WalNumber,
}

/// A bucket that stops before a gap.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gap {
    pub bucket: BucketId,
    /// Where the next entry should begin.
    pub expected: Offset,
    /// Where it begins, in this object.
    pub found: Offset,
    pub number: WalNumber,
}

struct Progress {
    epoch: BucketEpoch,
    end: Offset,
    /// The lowest number that could hold the next entry.
    next: WalNumber,
    stopped: bool,
}

impl Recovered {
    /// What to commit of the buckets that `view` knows; it gives none for those that do not hang on this chain (any more).
    pub fn adopt(&self, view: impl Fn(&BucketId) -> Option<BucketView>) -> Adoption {
        let mut adoption = Adoption::default();
        let mut objects: BTreeMap<WalNumber, CommittedObject> = BTreeMap::new();
        let mut buckets: BTreeMap<BucketId, Option<Progress>> = BTreeMap::new();
        for object in &self.objects {
            for part in &object.footer.buckets {
                let progress = buckets.entry(part.bucket).or_insert_with(|| {
                    let view = view(&part.bucket)?;
                    Some(Progress { epoch: view.epoch, end: view.end, next: WalNumber(0), stopped: false })
                });
                let Some(progress) = progress.as_mut().filter(|progress| !progress.stopped) else {
                    continue;
                };
                let Some(range) = self.next_range(part, object.number, progress, &mut adoption, &mut objects)
                else {
                    continue;
                };
                let committed = objects.entry(object.number).or_insert_with(|| CommittedObject {
                    id: ObjectId::Wal { chain: self.chain, number: object.number },
                    length: object.length,
                    footer_length: object.footer_length,
                    checksum: object.checksum,
                    ranges: Vec::new(),
                });
                committed.ranges.push(range);
            }
        }
        adoption.objects = objects.into_values().collect();
        for object in &mut adoption.objects {
            object.ranges.sort_by_key(|range| (range.bucket, range.start));
        }
        adoption
    }

    /// The part of an object that follows a bucket's end, after booking what is lost in between.
    fn next_range(
        &self,
        part: &FooterBucket,
        number: WalNumber,
        progress: &mut Progress,
        adoption: &mut Adoption,
        objects: &mut BTreeMap<WalNumber, CommittedObject>,
    ) -> Option<CommittedRange> {
        let entries: Vec<&IndexEntry> = part
            .entries()
            .filter(|(epoch, entry)| *epoch == progress.epoch && entry.end() > progress.end)
            .map(|(_, entry)| entry)
            .collect();
        let (first, last) = (entries.first()?, entries.last()?);
        if first.base_offset != progress.end
            && !self.book_lost(part.bucket, first, number, progress, adoption, objects)
        {
            let (expected, found) = (progress.end, first.base_offset);
            adoption.gaps.push(Gap { bucket: part.bucket, expected, found, number });
            progress.stopped = true;
            return None;
        }
        let range = CommittedRange {
            bucket: part.bucket,
            epoch: progress.epoch,
            start: first.base_offset,
            end: last.end(),
            max_timestamp: entries.iter().map(|e| e.max_timestamp).max().unwrap_or(Timestamp(-1)),
            last_commit_time: last.commit_time,
            bytes: entries.iter().map(|e| u64::from(e.length)).sum(),
        };
        (progress.end, progress.next) = (last.end(), number.next());
        Some(range)
    }

    /// Books the offsets before `first` on a lost number between; false if there is none, or they overlap.
    fn book_lost(
        &self,
        bucket: BucketId,
        first: &IndexEntry,
        number: WalNumber,
        progress: &Progress,
        adoption: &mut Adoption,
        objects: &mut BTreeMap<WalNumber, CommittedObject>,
    ) -> bool {
        let gone = self.lost.iter().copied().chain(self.damaged.iter().map(|damaged| damaged.number));
        let culprit = gone.filter(|gone| *gone >= progress.next && *gone < number).min();
        let Some(culprit) = culprit.filter(|_| first.base_offset > progress.end) else {
            return false;
        };
        let range = OffsetRange { start: progress.end, end: first.base_offset };
        adoption.lost.push(LostRange { bucket, range, number: culprit });
        let object = objects.entry(culprit).or_insert_with(|| CommittedObject {
            id: ObjectId::Wal { chain: self.chain, number: culprit },
            length: 0,
            footer_length: 0,
            checksum: 0,
            ranges: Vec::new(),
        });
        object.ranges.push(CommittedRange {
            bucket,
            epoch: progress.epoch,
            start: range.start,
            end: range.end,
            max_timestamp: Timestamp(-1),
            last_commit_time: first.commit_time,
            bytes: 0,
        });
        true
    }
}

impl Adoption {
    /// The commits, in the order in which to submit them.
    pub fn commits(&self, source: WalChain) -> Vec<StreamCommit> {
        in_commits(source, self.objects.iter().cloned())
    }
}

/// Objects as commits of at most [`RANGES_PER_COMMIT`] ranges, none with a trim. A WAL object with more is named by several
/// (metadata takes it for the same object); a stream object never has more.
pub(crate) fn in_commits(
    source: WalChain,
    objects: impl Iterator<Item = CommittedObject>,
) -> Vec<StreamCommit> {
    let mut commits: Vec<StreamCommit> = Vec::new();
    let mut ranges = 0;
    for object in objects.flat_map(split) {
        let fits = ranges + object.ranges.len() <= RANGES_PER_COMMIT;
        ranges = if fits { ranges } else { 0 } + object.ranges.len();
        match commits.last_mut().filter(|_| fits) {
            Some(last) => last.objects.push(object),
            None => commits.push(StreamCommit { source, objects: vec![object], trim: None }),
        }
    }
    commits
}

fn split(object: CommittedObject) -> Vec<CommittedObject> {
    if object.ranges.len() <= RANGES_PER_COMMIT || matches!(object.id, ObjectId::Stream { .. }) {
        return vec![object];
    }
    let part = |ranges: &[CommittedRange]| CommittedObject { ranges: ranges.to_vec(), ..object };
    object.ranges.chunks(RANGES_PER_COMMIT).map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{bucket, chain};
    use mink_types::CommitTime;

    fn object(number: u64, ranges: u64) -> CommittedObject {
        let range = |n| CommittedRange {
            bucket: bucket(n),
            epoch: BucketEpoch(1),
            start: Offset(0),
            end: Offset(1),
            max_timestamp: Timestamp(0),
            last_commit_time: CommitTime(0),
            bytes: 1,
        };
        let id = ObjectId::Wal { chain: chain(1), number: WalNumber(number) };
        CommittedObject {
            id,
            length: 9,
            footer_length: 1,
            checksum: 7,
            ranges: (0..ranges).map(range).collect(),
        }
    }

    #[test]
    fn commits_stay_small_and_keep_the_order() {
        let objects = [object(0, 5_000), object(1, 3_000), object(2, 193), object(3, 20_000), object(4, 1)];
        let commits = in_commits(chain(1), objects.iter().cloned());
        let shape: Vec<Vec<usize>> =
            commits.iter().map(|c| c.objects.iter().map(|o| o.ranges.len()).collect()).collect();
        assert_eq!(shape, [vec![5_000, 3_000], vec![193], vec![8_192], vec![8_192], vec![3_616, 1]]);
        let all: Vec<_> = commits.iter().flat_map(|c| &c.objects).flat_map(|o| &o.ranges).copied().collect();
        let given: Vec<_> = objects.iter().flat_map(|o| &o.ranges).copied().collect();
        assert_eq!(all, given);
    }
}
