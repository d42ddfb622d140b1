//! The memory of what scans have read and their clients have not taken, and whose turn it is when there is none.
//!
//! Lives on: the service runtime, shared by all calls.
//! Owns: the lines of those that wait.
//! Invariants: I20: what is taken never exceeds the budget. Large messages leave a part of it to small ones, and wait in a line of their own.
//! Of those that wait, the one that came last and the one that waits for the longest have it by turns ([`Turns`]).
use mink_router::{BytePermit, BytePermits, Turns};
use std::time::Duration;

/// So many reads have room side by side, and each asks for no less and no more.
const READS: u64 = 64;
const READ_BYTES_MIN: u64 = 64 << 10;
const READ_BYTES_MAX: u64 = 1 << 20;

/// The part of the budget that what is larger than a read leaves to reads.
const READS_PART: u64 = 4;

/// How often the first of those that wait with something large looks for room.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The budget; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Answers {
    bytes: BytePermits,
    reads: Turns,
    large: Turns,
}

impl Answers {
    pub(crate) fn new(bytes: BytePermits) -> Answers {
        Answers { bytes, reads: Turns::default(), large: Turns::default() }
    }

    /// Waits for `bytes`; what is larger than the whole budget takes all of it.
    pub(crate) async fn take(&self, bytes: u64) -> BytePermit {
        if let Some(permit) = self.try_take(bytes) {
            return permit;
        }
        if !self.is_large(bytes) {
            let _turn = self.reads.take().await;
            return self.bytes.take(bytes).await;
        }
        let _turn = self.large.take().await;
        loop {
            if let Some(permit) = self.try_take_large(bytes) {
                return permit;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Takes `bytes` if they are free and nobody waits for as much.
    pub(crate) fn try_take(&self, bytes: u64) -> Option<BytePermit> {
        if !self.is_large(bytes) {
            return self.bytes.try_take(bytes);
        }
        if self.large.is_empty() { self.try_take_large(bytes) } else { None }
    }

    fn try_take_large(&self, bytes: u64) -> Option<BytePermit> {
        let is_free = self.bytes.free_bytes() >= bytes + self.total_bytes() / READS_PART;
        if is_free { self.bytes.try_take(bytes) } else { None }
    }

    /// Whether it must leave room for reads. What leaves none in any case waits as they do.
    fn is_large(&self, bytes: u64) -> bool {
        bytes > self.read_bytes() && bytes + self.total_bytes() / READS_PART <= self.total_bytes()
    }

    /// Bytes that a scan asks a bucket for at once.
    pub(crate) fn read_bytes(&self) -> u64 {
        (self.total_bytes() / READS).clamp(READ_BYTES_MIN, READ_BYTES_MAX)
    }

    /// Whether somebody waits, beside so many who are known to.
    pub(crate) fn is_wanted(&self, beside: usize) -> bool {
        self.reads.len() + self.large.len() > beside
    }

    /// Whether there is so much that scans may read ahead of their clients.
    pub(crate) fn is_plenty(&self) -> bool {
        self.bytes.free_bytes() > self.bytes.total_bytes() / 2
    }

    pub(crate) fn total_bytes(&self) -> u64 {
        self.bytes.total_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use futures::future::BoxFuture;

    const ALL: u64 = 64 << 10;

    fn wait(answers: &Answers) -> BoxFuture<'static, BytePermit> {
        let answers = answers.clone();
        let mut waits = async move { answers.take(ALL).await }.boxed();
        assert!((&mut waits).now_or_never().is_none(), "somebody has it");
        waits
    }

    /// I20: who came last does not wait for all that came before.
    #[test]
    fn i20_the_first_to_wait_then_the_newest_and_the_oldest_by_turns() {
        let answers = Answers::new(BytePermits::new(ALL));
        let mut held = answers.take(ALL).now_or_never().expect("all is free");
        assert!(!answers.is_wanted(0) && !answers.is_plenty());
        let mut waiting: Vec<(usize, BoxFuture<'_, BytePermit>)> =
            (0..5).map(|n| (n, wait(&answers))).collect();
        assert!(answers.is_wanted(4) && !answers.is_wanted(5));
        let mut order = Vec::new();
        while !waiting.is_empty() {
            drop(held);
            let mut given = waiting
                .iter_mut()
                .enumerate()
                .filter_map(|(at, (_, waits))| Some((at, waits.now_or_never()?)));
            let (at, next) = given.next().expect("one of them has it");
            assert!(given.next().is_none(), "and no other");
            held = next;
            order.push(waiting.remove(at).0);
            // Those that had the turn given have asked for the bytes.
            for (_, waits) in &mut waiting {
                assert!(waits.now_or_never().is_none(), "all is held");
            }
        }
        assert_eq!(order, [0, 4, 1, 3, 2]);
        assert!(!answers.is_wanted(0));
    }

    #[test]
    fn whoever_gives_up_leaves_the_line_and_passes_the_turn_on() {
        let answers = Answers::new(BytePermits::new(ALL));
        let held = answers.take(ALL).now_or_never().expect("all is free");
        let (first, middle, mut last) = (wait(&answers), wait(&answers), wait(&answers));
        drop(middle);
        drop(first);
        assert!(answers.is_wanted(0) && !answers.is_wanted(1));
        drop(held);
        assert_eq!((&mut last).now_or_never().expect("nobody is before it").bytes(), ALL);
        assert!(!answers.is_wanted(0) && answers.is_plenty());
    }

    /// I20: whoever reads little waits for nobody who reads much.
    #[tokio::test]
    async fn i20_large_messages_leave_room_for_reads_and_have_their_turns() {
        const MIB: u64 = 1 << 20;
        let answers = Answers::new(BytePermits::new(8 * MIB));
        let mut large: Vec<BytePermit> = std::iter::from_fn(|| answers.try_take(MIB)).collect();
        assert_eq!(large.len(), 6, "a fourth is left");
        let mut waits = Box::pin(answers.take(MIB));
        assert!((&mut waits).now_or_never().is_none() && answers.is_wanted(0));
        let reads: Vec<BytePermit> = std::iter::from_fn(|| answers.try_take(answers.read_bytes())).collect();
        assert_eq!(reads.len(), 16, "two MiB of 128 KiB");
        large.pop();
        assert!(answers.try_take(MIB).is_none(), "one waits already");
        drop(reads);
        assert_eq!(waits.await.bytes(), MIB);
        assert!(!answers.is_wanted(0));
        // What leaves no room in any case passes alone, and does not wait for room that there never is.
        drop(large);
        assert_eq!(answers.take(20 * MIB).await.bytes(), 8 * MIB);
    }
}
