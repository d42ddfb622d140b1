//! The model's commands in small numbers, and as the engine's own commands.
//!
//! Lives on: anywhere (pure).
//! Invariants: two changes that differ give commands that differ, so a change stands for its command in the table of `engine.rs`.
use mink_metadata::{
    BucketOpening, Command, CommittedObject, CommittedRange, RewrittenObject, RewrittenRange, TakenOver,
};
use mink_types::{
    BucketEpoch, BucketId, CommitTime, Incarnation, ObjectId, Offset, Timestamp, WalChain, WalNumber,
};

use crate::state::{MAXO, NB, NI};

/// The incarnation that is never fenced: the holder of the coordinator's lease, who fences others and collects garbage.
pub(crate) const LEASE_HOLDER: usize = NI;

/// The real ids behind the model's numbers.
#[derive(Clone, Debug)]
pub(crate) struct Ids {
    /// Of W, R1, R2 and the lease holder.
    pub(crate) chains: [WalChain; NI + 1],
    pub(crate) buckets: Vec<BucketId>,
}

impl Ids {
    /// The incarnation of this number.
    pub(crate) fn incarnation(&self, i: usize) -> Incarnation {
        self.chains[i].incarnation
    }

    /// The number of an incarnation.
    pub(crate) fn number(&self, id: Incarnation) -> Option<usize> {
        self.chains.iter().position(|chain| chain.incarnation == id)
    }

    /// A WAL object.
    pub(crate) fn wal(&self, i: usize, n: usize) -> ObjectId {
        ObjectId::Wal { chain: self.chains[i], number: WalNumber(n as u64) }
    }

    /// A stream object.
    pub(crate) fn stream(&self, i: usize, c: usize) -> ObjectId {
        ObjectId::Stream { chain: self.chains[i], counter: c as u64 }
    }
}

/// A command of the model.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Change {
    Fence {
        x: u8,
        by: u8,
    },
    Commit(Commit),
    /// `from` is the incarnation that was walked, plus one; 0 for a free bucket.
    Open {
        by: u8,
        b: u8,
        epoch: u8,
        from: u8,
        seal: u8,
    },
    Release {
        by: u8,
        b: u8,
        epoch: u8,
        end: u8,
    },
    /// Its trim and its seal are at `at`.
    Leave {
        x: u8,
        at: u8,
    },
    Swept {
        x: u8,
    },
    /// Moves a bucket's offsets below `end` from these objects (bits) into stream object `c`.
    Rewrite {
        by: u8,
        b: u8,
        epoch: u8,
        end: u8,
        c: u8,
        replaced: Objects,
    },
    Deleted {
        objects: Objects,
    },
}

/// Objects by incarnation, as bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Objects {
    pub(crate) wal: [u8; NI],
    pub(crate) stream: [u8; NI],
}

impl Objects {
    /// Adds an object of the model; others are none of its business.
    pub(crate) fn add(&mut self, ids: &Ids, id: ObjectId) {
        match id {
            ObjectId::Wal { chain, number } => {
                ids.number(chain.incarnation).into_iter().for_each(|i| self.wal[i] |= 1 << number.0);
            }
            ObjectId::Stream { chain, counter } => {
                ids.number(chain.incarnation).into_iter().for_each(|i| self.stream[i] |= 1 << counter);
            }
        }
    }

    /// All of them.
    pub(crate) fn ids(&self, ids: &Ids) -> Vec<ObjectId> {
        let bits = |set: u8| (0..8).filter(move |n| set >> n & 1 == 1);
        let all = |i: usize| {
            bits(self.wal[i])
                .map(move |n| ids.wal(i, n))
                .chain(bits(self.stream[i]).map(move |c| ids.stream(i, c)))
        };
        (0..NI).flat_map(all).collect()
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        *self == Objects::default()
    }

    /// As bytes.
    pub(crate) fn bytes(&self) -> [u8; 2 * NI] {
        std::array::from_fn(|at| if at < NI { self.wal[at] } else { self.stream[at - NI] })
    }
}

/// A commit of the model: one stream object, or WAL objects of a chain that are adopted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Commit {
    pub(crate) by: u8,
    pub(crate) source: u8,
    /// The stream object's counter.
    pub(crate) c: u8,
    pub(crate) start: [u8; NB],
    pub(crate) len: [u8; NB],
    pub(crate) epoch: [u8; NB],
    pub(crate) trim: Option<u8>,
    /// For an adoption the WAL number of each entry.
    pub(crate) adopts: Option<[[u8; MAXO]; NB]>,
}

impl Change {
    /// What it asks for.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Change::Fence { .. } => "fence",
            Change::Commit(_) => "commit",
            Change::Open { .. } => "open",
            Change::Release { .. } => "release",
            Change::Leave { .. } => "leave",
            Change::Swept { .. } => "swept",
            Change::Rewrite { .. } => "rewrite",
            Change::Deleted { .. } => "deleted",
        }
    }

    /// The engine's command.
    pub(crate) fn command(&self, ids: &Ids) -> Command {
        let who = |i: u8| ids.incarnation(i as usize);
        let bucket = |b: u8| ids.buckets[b as usize];
        match *self {
            Change::Fence { x, by } => Command::Fence { incarnation: who(x), by: who(by) },
            Change::Commit(commit) => Command::Commit {
                by: who(commit.by),
                source: who(commit.source),
                objects: commit.objects(ids),
                trim: commit.trim.map(|trim| WalNumber(trim.into())),
            },
            Change::Open { by, b, epoch, from, seal } => Command::Open {
                by: who(by),
                buckets: vec![BucketOpening { bucket: bucket(b), epoch: BucketEpoch(epoch.into()) }],
                from: (from > 0)
                    .then(|| TakenOver { incarnation: who(from - 1), seal: WalNumber(seal.into()) }),
            },
            Change::Release { by, b, epoch, end } => Command::Release {
                by: who(by),
                bucket: bucket(b),
                epoch: BucketEpoch(epoch.into()),
                end: Offset(end.into()),
            },
            Change::Leave { x, at } => Command::Leave {
                incarnation: who(x),
                trim: WalNumber(at.into()),
                seal: Some(WalNumber(at.into())),
            },
            Change::Swept { x } => Command::Swept { incarnation: who(x) },
            Change::Rewrite { by, b, epoch, end, c, replaced } => Command::Rewrite {
                by: who(by),
                replaced: replaced.ids(ids),
                objects: vec![RewrittenObject {
                    id: ids.stream(by as usize, c as usize),
                    length: 100,
                    footer_length: 10,
                    checksum: 1,
                    ranges: vec![RewrittenRange {
                        bucket: bucket(b),
                        epoch: BucketEpoch(epoch.into()),
                        start: Offset(0),
                        end: Offset(end.into()),
                    }],
                }],
            },
            Change::Deleted { objects } => Command::Deleted { objects: objects.ids(ids) },
        }
    }
}

impl Commit {
    fn objects(&self, ids: &Ids) -> Vec<CommittedObject> {
        let Some(numbers) = self.adopts else {
            let ranges = (0..ids.buckets.len()).filter(|&b| self.len[b] > 0);
            let ranges = ranges.map(|b| self.range(ids, b, 0, self.len[b])).collect();
            return vec![object(ids.stream(self.by as usize, self.c as usize), ranges)];
        };
        // As an adoption has it: in order of the numbers, each with a range of every bucket it holds.
        let mut objects: Vec<CommittedObject> = Vec::new();
        for n in 0..=*numbers.iter().flatten().max().unwrap_or(&0) {
            let held = |b: usize| (0..self.len[b]).filter(move |&at| numbers[b][at as usize] == n);
            let ranges = |b: usize| held(b).map(move |at| self.range(ids, b, at, 1));
            let ranges: Vec<CommittedRange> = (0..ids.buckets.len()).flat_map(ranges).collect();
            if !ranges.is_empty() {
                objects.push(object(ids.wal(self.source as usize, n as usize), ranges));
            }
        }
        objects
    }

    /// `count` entries of a bucket, from the `first` of this commit.
    fn range(&self, ids: &Ids, b: usize, first: u8, count: u8) -> CommittedRange {
        let start = u64::from(self.start[b] + first);
        CommittedRange {
            bucket: ids.buckets[b],
            epoch: BucketEpoch(self.epoch[b].into()),
            start: Offset(start),
            end: Offset(start + u64::from(count)),
            max_timestamp: Timestamp(0),
            last_commit_time: CommitTime(1),
            bytes: 1,
        }
    }
}

fn object(id: ObjectId, ranges: Vec<CommittedRange>) -> CommittedObject {
    CommittedObject { id, length: 100, footer_length: 10, checksum: 1, ranges }
}
