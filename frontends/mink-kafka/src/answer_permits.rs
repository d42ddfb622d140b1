//! How much memory answers may take until their clients have taken them, and how much of it one connection's may.
//!
//! Lives on: the service runtime, shared by all connections.
//! Owns: the budget of the answers' bytes, in three parts.
//! Invariants: I20: what all answers that are there hold never exceeds the budget but by one batch each. A connection is new until it asks for more
//! after it has taken a fetch's answer. New ones share one half, with answers of some size to other requests; known ones may take from both. So
//! clients that come, ask and take nothing keep others of their kind waiting, and must come again as new ones. Small answers to anything
//! but a fetch have a part of their own: none waits behind fetches.
use mink_router::{BytePermit, BytePermits, Turns};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Part of the budget for small answers; the rest is halved.
const SMALL_PART: u64 = 8;

/// What is more than this of that part is no small answer, and so much of it may one connection hold.
const SMALL_SHARE_PART: u64 = 32;

/// Part of the budget that one connection may hold, known and new: as many must stall before others wait.
const SHARE_PART: u64 = 8;
const SHARE_PART_NEW: u64 = 32;

/// A fetch's answer may take this part of its connection's share: the rest is for others, which may wait there behind an append.
const ANSWER_PART: u64 = 2;

/// A client that takes nothing for so long must go, if others wait for what its answer holds: a known one, and a new one.
const STALLED_AFTER: Duration = Duration::from_secs(1);
const STALLED_AFTER_NEW: Duration = Duration::from_millis(500);

/// The budget of the bytes of answers; cheap to clone.
#[derive(Clone, Debug)]
pub struct AnswerPermits {
    known: Arc<Part>,
    new: Arc<Part>,
    small: Arc<Part>,
}

/// A part of the budget, and who waits for it.
#[derive(Debug)]
pub(crate) struct Part {
    bytes: BytePermits,
    turns: Turns,
    /// Connections that must take what they were sent before they may take of it.
    held_back: AtomicUsize,
}

/// Counts a connection that is held back.
#[derive(Debug)]
pub(crate) struct HeldBack<'a>(&'a Part);

/// What one connection may take of the budget.
#[derive(Clone, Debug)]
pub(crate) struct AnswerShare {
    own: BytePermits,
    own_small: BytePermits,
    all: AnswerPermits,
    is_known: bool,
}

/// Memory of one answer: given back when the answer was taken.
#[derive(Debug)]
pub(crate) struct AnswerMemory {
    own: BytePermit,
    permit: BytePermit,
    /// Where `permit` is of.
    part: Arc<Part>,
    patience: Duration,
    is_of_fetch: bool,
}

impl AnswerPermits {
    /// A budget of `bytes`.
    pub fn new(bytes: u64) -> AnswerPermits {
        let small = bytes / SMALL_PART;
        let large = bytes - small;
        AnswerPermits {
            known: Part::new(large.div_ceil(2)),
            new: Part::new(large / 2),
            small: Part::new(small),
        }
    }

    fn parts(&self) -> [&Part; 3] {
        [&self.known, &self.new, &self.small]
    }

    /// The whole budget in bytes.
    pub fn total_bytes(&self) -> u64 {
        self.parts().iter().map(|part| part.bytes.total_bytes()).sum()
    }

    /// Bytes that are free now.
    pub fn free_bytes(&self) -> u64 {
        self.parts().iter().map(|part| part.bytes.free_bytes()).sum()
    }

    /// The share of a connection.
    pub(crate) fn share(&self, is_known: bool) -> AnswerShare {
        let part = if is_known { SHARE_PART } else { SHARE_PART_NEW };
        AnswerShare {
            own: BytePermits::new(self.total_bytes() / part),
            own_small: BytePermits::new(self.small.bytes.total_bytes() / SMALL_SHARE_PART),
            all: self.clone(),
            is_known,
        }
    }

    #[cfg(test)]
    pub(crate) fn is_short(&self) -> bool {
        self.parts().iter().any(|part| part.bytes.is_short())
    }
}

impl Part {
    fn new(bytes: u64) -> Arc<Part> {
        let held_back = AtomicUsize::new(0);
        Arc::new(Part { bytes: BytePermits::new(bytes), turns: Turns::default(), held_back })
    }

    /// Waits for memory.
    async fn take(&self, bytes: u64) -> BytePermit {
        if let Some(permit) = self.bytes.try_take(bytes) {
            return permit;
        }
        let _turn = self.turns.take().await;
        self.bytes.take(bytes).await
    }

    /// Whether less than half of it is free.
    pub(crate) fn is_scarce(&self) -> bool {
        self.bytes.free_bytes() < self.bytes.total_bytes() / 2
    }

    /// A connection is held back from it.
    pub(crate) fn hold_back(&self) -> HeldBack<'_> {
        self.held_back.fetch_add(1, Ordering::Relaxed);
        HeldBack(self)
    }

    /// Whether somebody waits for what an answer holds of it.
    fn is_wanted(&self) -> bool {
        self.bytes.is_short() || self.held_back.load(Ordering::Relaxed) > 0
    }
}

impl HeldBack<'_> {
    /// Whether others wait too.
    pub(crate) fn others_wait(&self) -> bool {
        self.0.bytes.is_short() || self.0.held_back.load(Ordering::Relaxed) > 1
    }
}

impl Drop for HeldBack<'_> {
    fn drop(&mut self) {
        self.0.held_back.fetch_sub(1, Ordering::Relaxed);
    }
}

impl AnswerShare {
    pub(crate) fn is_known(&self) -> bool {
        self.is_known
    }

    /// Most bytes that one answer to a fetch should have.
    pub(crate) fn answer_bytes_max(&self) -> u64 {
        self.own.total_bytes() / ANSWER_PART
    }

    /// How long its client may take nothing while others wait.
    pub(crate) fn patience(&self) -> Duration {
        if self.is_known { STALLED_AFTER } else { STALLED_AFTER_NEW }
    }

    /// The part of the budget from which its answers to fetches come first, or small ones.
    pub(crate) fn part(&self, of_fetch: bool) -> &Part {
        match (of_fetch, self.is_known) {
            (false, _) => &self.all.small,
            (true, true) => &self.all.known,
            (true, false) => &self.all.new,
        }
    }

    /// Waits for memory. The own share comes first: who waits for it holds nothing of the others'.
    pub(crate) async fn take(&self, bytes: u64) -> AnswerMemory {
        let own = self.own.take(bytes).await;
        let AnswerPermits { known, new, .. } = &self.all;
        if !self.is_known {
            return AnswerMemory::new(own, new.take(bytes).await, new, STALLED_AFTER_NEW);
        }
        tokio::select! {
            biased;
            permit = known.take(bytes) => AnswerMemory::new(own, permit, known, STALLED_AFTER),
            permit = new.take(bytes) => AnswerMemory::new(own, permit, new, STALLED_AFTER_NEW),
        }
    }

    /// The same for an answer that is there, to anything but a fetch: that it is taken tells nothing of its client.
    pub(crate) async fn take_for_other(&self, bytes: u64) -> AnswerMemory {
        let memory = if bytes <= self.own_small.total_bytes() {
            let own = self.own_small.take(bytes).await;
            let small = &self.all.small;
            AnswerMemory::new(own, small.take(bytes).await, small, self.patience())
        } else {
            self.take(bytes).await
        };
        AnswerMemory { is_of_fetch: false, ..memory }
    }
}

impl AnswerMemory {
    fn new(own: BytePermit, permit: BytePermit, part: &Arc<Part>, patience: Duration) -> AnswerMemory {
        AnswerMemory { own, permit, part: Arc::clone(part), patience, is_of_fetch: true }
    }

    /// Gives back all but what stands for `bytes`.
    pub(crate) fn keep(mut self, bytes: u64) -> AnswerMemory {
        AnswerMemory { own: self.own.split(bytes), permit: self.permit.split(bytes), ..self }
    }

    pub(crate) fn is_of_fetch(&self) -> bool {
        self.is_of_fetch
    }

    /// Whether its client, that has taken nothing for so long, must go.
    pub(crate) fn is_over(&self, stalled: Duration) -> bool {
        stalled >= self.patience && self.part.is_wanted()
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
        assert_eq!(held.len(), 28, "half a megabyte each, of one half of what is not for small ones");
        assert!(!held[0].part.is_wanted());
        let late = all.share(false);
        let mut waits = Box::pin(late.take(MIB));
        assert!(waits.as_mut().now_or_never().is_none() && held[0].part.is_wanted());
        let known = all.share(true);
        let answers: Vec<AnswerMemory> = std::iter::from_fn(|| ask(&known)).collect();
        assert_eq!(answers.len(), 2, "its own share");
        assert!(answers.iter().all(|answer| !answer.part.is_wanted()));
        drop((waits, held));
        let others: Vec<AnswerMemory> = (0..20).filter_map(|_| ask(&all.share(true))).collect();
        assert_eq!(others.len(), 12, "known ones take from both halves");
        drop((others, answers));
        assert_eq!(all.free_bytes(), all.total_bytes());
    }

    #[test]
    fn i20_a_small_answer_to_another_request_waits_behind_no_fetch() {
        let all = AnswerPermits::new(32 * MIB);
        let shares: Vec<AnswerShare> = (0..100).map(|_| all.share(false)).collect();
        let mut asking: Vec<_> = shares.iter().map(|share| share.take(MIB).boxed_local()).collect();
        let held: Vec<AnswerMemory> = asking.iter_mut().filter_map(FutureExt::now_or_never).collect();
        assert!(held.len() < shares.len() && all.is_short());
        let share = all.share(false);
        let small: Vec<AnswerMemory> =
            std::iter::from_fn(|| share.take_for_other(1_000).now_or_never()).collect();
        assert_eq!(
            small.len() as u64,
            4 * MIB / SMALL_SHARE_PART / 1024,
            "as many as one connection may have"
        );
        assert!(small.iter().all(|memory| !memory.is_of_fetch() && !memory.part.is_wanted()));
        // One of some size is as a fetch's.
        assert!(all.share(false).take_for_other(MIB).now_or_never().is_none());
    }

    #[test]
    fn i20_who_is_held_back_wants_what_others_hold_and_not_what_it_holds() {
        let all = AnswerPermits::new(32 * MIB);
        let share = all.share(false);
        let held = share.take(MIB).now_or_never().expect("room");
        let first = share.part(true).hold_back();
        assert!(held.is_over(STALLED_AFTER_NEW) && !held.is_over(STALLED_AFTER_NEW / 2));
        assert!(!first.others_wait());
        let second = share.part(true).hold_back();
        assert!(first.others_wait() && second.others_wait());
        drop((first, second));
        assert!(!held.is_over(STALLED_AFTER));
    }
}
