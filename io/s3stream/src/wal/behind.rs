//! What lies behind the durable point: data that is acked and not yet committed, and how far the chain is trimmed.
//!
//! Lives on: the WAL writer (pure but for telling who waits for a flush).
//! Owns: the durable entries (the same `Bytes` as everywhere), the trim.
//! Invariants: I1, P-2, P-3: a flush takes a prefix of the durable numbers, from the trim on and each of them whole, one flush
//! at a time; I20: no more of them than [`FLUSH_BYTES_PER_ENTRY`] allows.
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use futures::channel::oneshot;
use mink_rt::Instant;
use mink_types::WalNumber;

use super::WalConfig;
use crate::create::Pause;
use crate::entry::Entry;
use crate::flush::FlushWork;
use crate::trim;

/// Refusals in a row after which the writer ends: its view of the buckets does not become right by asking again.
const REFUSALS_MAX: u32 = 3;

/// A flush takes one entry for so many bytes of `flush_bytes`, or one number. What it holds of an entry beside its bytes, which the tail
/// holds anyway (a place in the list of its object's parts and its index, about 100 bytes), is then a fifth of `flush_bytes` at most.
const FLUSH_BYTES_PER_ENTRY: u64 = 512;

/// An object between its freezing and its trim.
#[derive(Debug)]
pub(super) struct Untrimmed {
    pub(super) entries: Arc<Vec<Entry>>,
    /// Most bytes of the object.
    pub(super) bytes: u64,
    /// Bytes of its entries: what a flush would write.
    pub(super) data_bytes: u64,
}

/// Whether to flush.
#[derive(Debug)]
pub(super) enum FlushDue {
    Now(FlushWork),
    At(Instant),
    Not,
}

#[derive(Debug)]
pub(super) struct Behind {
    config: Arc<WalConfig>,
    /// Numbers from the trim on, with the time at which each became durable.
    durable: VecDeque<(Instant, Untrimmed)>,
    data_bytes: u64,
    trim: u64,
    flushing: bool,
    not_before: Instant,
    pause: Pause,
    waiters: Vec<(WalNumber, oneshot::Sender<()>)>,
    deleting: bool,
    deleted_below: u64,
    flushes: u64,
    refusals: u64,
    refusals_in_a_row: u32,
}

impl Behind {
    pub(super) fn new(config: Arc<WalConfig>) -> Behind {
        Behind {
            durable: VecDeque::new(),
            data_bytes: 0,
            trim: 0,
            flushing: false,
            not_before: Instant::ZERO,
            pause: Pause::new(&config),
            waiters: Vec::new(),
            deleting: false,
            deleted_below: 0,
            flushes: 0,
            refusals: 0,
            refusals_in_a_row: 0,
            config,
        }
    }

    /// All numbers below are committed.
    pub(super) fn trim(&self) -> u64 {
        self.trim
    }

    /// Durable numbers that are not committed.
    pub(super) fn len(&self) -> usize {
        self.durable.len()
    }

    /// Commits applied and refused.
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.flushes, self.refusals)
    }

    /// The next number is durable.
    pub(super) fn push(&mut self, object: Untrimmed, now: Instant) {
        self.data_bytes += object.data_bytes;
        self.durable.push_back((now, object));
    }

    /// Somebody waits until all below `target` is committed.
    pub(super) fn wait_for(&mut self, target: WalNumber, tell: oneshot::Sender<()>) {
        self.waiters.push((target, tell));
        self.tell();
    }

    /// Whether a flush is due at `now`; `urgent` ones do not wait for age or size.
    pub(super) fn flush_due(&mut self, now: Instant, urgent: bool) -> FlushDue {
        let Some((since, _)) = self.durable.front().filter(|_| !self.flushing) else {
            return FlushDue::Not;
        };
        let at_once = urgent
            || !self.waiters.is_empty()
            || self.data_bytes >= self.config.flush_bytes
            || self.durable.len() >= (self.config.untrimmed_objects_max / 2).max(1);
        let wanted = if at_once { now } else { *since + self.config.flush_age };
        let due = wanted.max(self.not_before);
        if due > now {
            return FlushDue::At(due);
        }
        self.flushing = true;
        FlushDue::Now(self.work())
    }

    /// The oldest numbers, as many as a flush may take.
    fn work(&self) -> FlushWork {
        let entries_max = self.config.flush_bytes / FLUSH_BYTES_PER_ENTRY;
        let (mut entries, mut count) = (Vec::new(), 0);
        for (_, object) in &self.durable {
            count += object.entries.len() as u64;
            if count > entries_max && !entries.is_empty() {
                break;
            }
            entries.push(Arc::clone(&object.entries));
        }
        let trim = WalNumber(self.trim + entries.len() as u64);
        FlushWork { entries, trim }
    }

    /// The flush up to `trim` is committed. Gives the bytes that are untrimmed no more.
    pub(super) fn applied(&mut self, trim: WalNumber) -> u64 {
        self.flushing = false;
        self.flushes += 1;
        self.refusals_in_a_row = 0;
        self.pause = Pause::new(&self.config);
        let mut bytes = 0;
        while self.trim < trim.0 {
            let Some((_, object)) = self.durable.pop_front() else {
                break;
            };
            self.trim += 1;
            self.data_bytes -= object.data_bytes;
            bytes += object.bytes;
        }
        self.tell();
        bytes
    }

    /// The flush is refused; whether it may be tried anew, after a pause.
    pub(super) fn refused(&mut self, now: Instant, random: u64) -> bool {
        self.flushing = false;
        self.refusals += 1;
        self.refusals_in_a_row += 1;
        self.not_before = now + self.pause.next(random);
        self.refusals_in_a_row < REFUSALS_MAX
    }

    /// Numbers to delete now; none while a deletion runs.
    pub(super) fn delete_due(&mut self) -> Option<Range<u64>> {
        let numbers = trim::deletable(self.deleted_below, WalNumber(self.trim));
        if self.deleting || numbers.is_empty() {
            return None;
        }
        self.deleting = true;
        Some(numbers)
    }

    /// The deletion has ended; what is left of it is tried with the next trim.
    pub(super) fn deleted(&mut self, below: u64, all: bool) {
        self.deleting = false;
        if all {
            self.deleted_below = below;
        }
    }

    /// Whether everything is committed and nothing is under way.
    pub(super) fn is_done(&self) -> bool {
        self.durable.is_empty() && !self.deleting && !self.flushing
    }

    fn tell(&mut self) {
        let trim = self.trim;
        for (_, tell) in self.waiters.extract_if(.., |(target, _)| target.0 <= trim) {
            // Whoever asked may have gone.
            let _ = tell.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::entry;

    #[test]
    fn i20_a_flush_takes_whole_numbers_from_the_oldest_on_and_a_bounded_number_of_entries() {
        let now = Instant::ZERO;
        let config = WalConfig { flush_bytes: 10 * FLUSH_BYTES_PER_ENTRY, ..WalConfig::default() };
        let mut behind = Behind::new(Arc::new(config));
        for count in [4u64, 4, 4, 30, 1, 1] {
            let entries: Vec<Entry> = (0..count).map(|n| entry(1, 0, n, 1, b"x")).collect();
            behind.push(Untrimmed { entries: Arc::new(entries), bytes: 200, data_bytes: count }, now);
        }
        let mut taken = Vec::new();
        while let FlushDue::Now(work) = behind.flush_due(now, true) {
            taken.push((work.entries.iter().map(|entries| entries.len()).collect::<Vec<_>>(), work.trim.0));
            assert!(matches!(behind.flush_due(now, true), FlushDue::Not), "one at a time");
            behind.applied(work.trim);
        }
        // A number that is longer than a flush may be is one of its own.
        let by_number = [(vec![4, 4], 2), (vec![4], 3), (vec![30], 4), (vec![1, 1], 6)];
        assert_eq!(taken, by_number);
        assert!(behind.is_done());
    }
}
