//! What members of a consumer group were told, and whether that can be true of one group (I18).
//!
//! Lives on: the simulation's thread.
//! Owns: every commit ever sent, every generation that was handed out.
//! Invariants checked: I18: an offset that was acked, or seen, is never lost to an older one; no commit of a generation is accepted
//! once members of a later one have their assignments; generations never go back; a partition has one owner in a generation.
use mink_group::{GroupError, MemberId};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A commit, in the order of sending; its offset is this plus one, so each is told from all others.
pub(crate) type CommitId = usize;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum How {
    /// On its way, or its end was not told: it may be there, or come later.
    Unknown,
    Acked,
    Refused,
}

#[derive(Clone, Copy, Debug)]
struct Commit {
    partition: u32,
    generation: i32,
    begun: u64,
    /// When it was known to be there.
    known: u64,
    how: How,
}

#[derive(Debug, Default)]
struct Inner {
    /// Counts what is told, so that "before" has a meaning.
    time: u64,
    commits: Vec<Commit>,
    /// The furthest generation whose assignments somebody was given: it is durable.
    generation: i32,
    owners: BTreeMap<(i32, u32), MemberId>,
}

/// The history of one group.
#[derive(Debug, Default)]
pub(crate) struct GroupHistory(Mutex<Inner>);

/// What was known when a request was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    time: u64,
    generation: i32,
}

impl Sent {
    /// A member was told that it is in this generation, by a join or a heartbeat.
    pub(crate) fn told(self, generation: i32) -> Option<String> {
        (generation < self.generation)
            .then(|| format!("I18: generation {generation} is told after {}", self.generation))
    }
}

impl GroupHistory {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.time += 1;
        inner
    }

    /// A request is sent.
    pub(crate) fn sent(&self) -> Sent {
        let inner = self.inner();
        Sent { time: inner.time, generation: inner.generation }
    }

    /// A member was given these partitions.
    pub(crate) fn assigned(
        &self,
        sent: Sent,
        generation: i32,
        member: &MemberId,
        partitions: &[u32],
    ) -> Option<String> {
        let mut inner = self.inner();
        inner.generation = inner.generation.max(generation);
        for partition in partitions {
            let owner = inner.owners.entry((generation, *partition)).or_insert_with(|| member.clone());
            if owner != member {
                return Some(format!(
                    "I18: partition {partition} has two owners in generation {generation}: {owner:?} and {member:?}"
                ));
            }
        }
        drop(inner);
        sent.told(generation)
    }

    /// A commit is sent: its number and its offset.
    pub(crate) fn committing(&self, partition: u32, generation: i32) -> (CommitId, i64, Sent) {
        let mut inner = self.inner();
        let (id, begun) = (inner.commits.len(), inner.time);
        inner.commits.push(Commit { partition, generation, begun, known: 0, how: How::Unknown });
        let sent = Sent { time: begun, generation: inner.generation };
        (id, i64::try_from(id).unwrap_or(0) + 1, sent)
    }

    /// A commit was answered.
    pub(crate) fn committed(
        &self,
        id: CommitId,
        sent: Sent,
        answer: Result<(), GroupError>,
    ) -> Option<String> {
        let mut inner = self.inner();
        let time = inner.time;
        let commit = inner.commits.get_mut(id)?;
        match answer {
            Ok(()) => {
                (commit.how, commit.known) = (How::Acked, time);
                let generation = commit.generation;
                (generation < sent.generation).then(|| {
                    format!("I18: a commit of generation {generation} is accepted in {}", sent.generation)
                })
            }
            Err(
                GroupError::IllegalGeneration | GroupError::UnknownMemberId | GroupError::RebalanceInProgress,
            ) => {
                commit.how = How::Refused;
                None
            }
            // It may have been handed over, and come later.
            Err(_) => None,
        }
    }

    /// A fetch brought this offset of a partition.
    pub(crate) fn fetched(&self, sent: Sent, partition: u32, offset: Option<i64>) -> Option<String> {
        let mut inner = self.inner();
        let time = inner.time;
        let told = {
            let known: Vec<_> = inner
                .commits
                .iter()
                .enumerate()
                .filter(|(_, commit)| commit.partition == partition && commit.how == How::Acked)
                .filter(|(_, commit)| commit.known < sent.time)
                .collect();
            let Some(offset) = offset else {
                return known
                    .last()
                    .map(|(id, _)| format!("I18: {partition}: nothing is committed, but {}", id + 1));
            };
            let found = usize::try_from(offset - 1).ok().and_then(|id| inner.commits.get(id));
            let Some(found) = found.filter(|found| found.partition == partition) else {
                return Some(format!("I18: {partition}: offset {offset} was never committed"));
            };
            let lost = known.iter().find(|(_, later)| {
                let behind = found.how == How::Acked && later.begun > found.known;
                behind || later.generation > found.generation
            });
            match (found.how, lost) {
                (How::Refused, _) => {
                    Some(format!("I18: {partition}: offset {offset} was refused, but is there"))
                }
                (_, Some((id, _))) => Some(format!(
                    "I18: {partition}: offset {offset} is told, but {} was committed later",
                    id + 1
                )),
                _ => None,
            }
        };
        // What one was told, nobody may lose again.
        if let Some(id) = offset.and_then(|offset| usize::try_from(offset - 1).ok())
            && let Some(seen) = inner.commits.get_mut(id).filter(|seen| seen.how == How::Unknown)
        {
            (seen.how, seen.known) = (How::Acked, time);
        }
        told
    }
}
