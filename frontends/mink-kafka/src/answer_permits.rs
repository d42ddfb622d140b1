//! How much memory answers may take until their clients have taken them, and how much of it one connection's may.
//!
//! Lives on: the service runtime, shared by all connections.
//! Owns: the budget of the answers' bytes, in two halves.
//! Invariants: I20: what all answers that are there hold never exceeds the budget but by one batch each. A connection is new until it asks for more
//! after it has taken a fetch's answer. New ones share one half, with small answers; known ones may take from both. So clients that come, ask
//! and take nothing keep others of their kind waiting, and must come again as new ones.
use mink_router::{BytePermit, BytePermits};
use std::time::Duration;

/// Part of the budget that one connection may hold, known and new: as many must stall before others wait.
const SHARE_PART: u64 = 8;
const SHARE_PART_NEW: u64 = 32;

/// A fetch's answer may take this part of its connection's share: the rest is for small ones, which may wait there behind an append.
const ANSWER_PART: u64 = 2;

/// A client that takes nothing for so long must go, if others wait for what its answer holds: a known one, and a new one.
const STALLED_AFTER: Duration = Duration::from_secs(1);
const STALLED_AFTER_NEW: Duration = Duration::from_millis(500);

/// The budget of the bytes of answers; cheap to clone.
#[derive(Clone, Debug)]
pub struct AnswerPermits {
    known: BytePermits,
    new: BytePermits,
}

/// What one connection may take of the budget.
#[derive(Clone, Debug)]
pub(crate) struct AnswerShare {
    own: BytePermits,
    all: AnswerPermits,
    is_known: bool,
}

/// Memory of one answer: given back when the answer was taken.
#[derive(Debug)]
pub(crate) struct AnswerMemory {
    own: BytePermit,
    part: BytePermit,
    /// Where `part` is of.
    half: BytePermits,
    patience: Duration,
    is_of_fetch: bool,
}

impl AnswerPermits {
    /// A budget of `bytes`.
    pub fn new(bytes: u64) -> AnswerPermits {
        AnswerPermits { known: BytePermits::new(bytes.div_ceil(2)), new: BytePermits::new(bytes / 2) }
    }

    /// The whole budget in bytes.
    pub fn total_bytes(&self) -> u64 {
        self.known.total_bytes() + self.new.total_bytes()
    }

    /// Bytes that are free now.
    pub fn free_bytes(&self) -> u64 {
        self.known.free_bytes() + self.new.free_bytes()
    }

    /// The share of a connection.
    pub(crate) fn share(&self, is_known: bool) -> AnswerShare {
        let part = if is_known { SHARE_PART } else { SHARE_PART_NEW };
        AnswerShare { own: BytePermits::new(self.total_bytes() / part), all: self.clone(), is_known }
    }

    #[cfg(test)]
    pub(crate) fn is_short(&self) -> bool {
        self.known.is_short() || self.new.is_short()
    }
}

impl AnswerShare {
    pub(crate) fn is_known(&self) -> bool {
        self.is_known
    }

    /// Most bytes that one answer should have.
    pub(crate) fn answer_bytes_max(&self) -> u64 {
        self.own.total_bytes() / ANSWER_PART
    }

    /// Waits for memory. The own share comes first: who waits for it holds nothing of the others'.
    pub(crate) async fn take(&self, bytes: u64) -> AnswerMemory {
        let own = self.own.take(bytes).await;
        let AnswerPermits { known, new } = &self.all;
        if !self.is_known {
            return AnswerMemory::new(own, new.take(bytes).await, new, STALLED_AFTER_NEW);
        }
        if let Some(part) = known.try_take(bytes) {
            return AnswerMemory::new(own, part, known, STALLED_AFTER);
        }
        tokio::select! {
            biased;
            part = known.take(bytes) => AnswerMemory::new(own, part, known, STALLED_AFTER),
            part = new.take(bytes) => AnswerMemory::new(own, part, new, STALLED_AFTER),
        }
    }
}

impl AnswerMemory {
    fn new(own: BytePermit, part: BytePermit, half: &BytePermits, patience: Duration) -> AnswerMemory {
        AnswerMemory { own, part, half: half.clone(), patience, is_of_fetch: true }
    }

    /// Gives back all but what stands for `bytes`.
    pub(crate) fn keep(mut self, bytes: u64) -> AnswerMemory {
        AnswerMemory { own: self.own.split(bytes), part: self.part.split(bytes), ..self }
    }

    /// That of a small answer, whose taking tells nothing of its client.
    pub(crate) fn of_no_fetch(self) -> AnswerMemory {
        AnswerMemory { is_of_fetch: false, ..self }
    }

    pub(crate) fn is_of_fetch(&self) -> bool {
        self.is_of_fetch
    }

    /// Whether others wait for what it holds.
    fn is_wanted(&self) -> bool {
        self.half.is_short()
    }

    /// Whether its client, that has taken nothing for so long, must go.
    pub(crate) fn is_over(&self, stalled: Duration) -> bool {
        stalled >= self.patience && self.is_wanted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    const MIB: u64 = 1 << 20;

    #[test]
    fn i20_new_clients_that_take_nothing_keep_no_known_one_waiting() {
        let all = AnswerPermits::new(32 * MIB);
        // As many as there is room for, and those that wait.
        let shares: Vec<AnswerShare> = (0..100).map(|_| all.share(false)).collect();
        let ask = |share: &AnswerShare| share.take(share.answer_bytes_max()).now_or_never();
        let held: Vec<AnswerMemory> = shares.iter().filter_map(ask).collect();
        assert_eq!(held.len(), 32, "half a megabyte each, of one half");
        assert!(!held[0].is_wanted());
        let late = all.share(false);
        let mut waits = Box::pin(late.take(MIB));
        assert!(waits.as_mut().now_or_never().is_none() && held[0].is_wanted());
        let known = all.share(true);
        let answers: Vec<AnswerMemory> = std::iter::from_fn(|| ask(&known)).collect();
        assert_eq!(answers.len(), 2, "its own share");
        assert!(answers.iter().all(|answer| !answer.is_wanted()));
        drop((waits, held));
        let others: Vec<AnswerMemory> = (0..20).filter_map(|_| ask(&all.share(true))).collect();
        assert_eq!(others.len(), 14, "known ones take from both halves");
        drop((others, answers));
        assert_eq!(all.free_bytes(), all.total_bytes());
    }
}
