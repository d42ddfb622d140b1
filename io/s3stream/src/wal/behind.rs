//! What lies behind the durable point: data that is acked and not yet committed, and how far the chain is trimmed.
//!
//! Lives on: the WAL writer (pure but for telling who waits for a flush).
//! Owns: the durable entries (the same `Bytes` as everywhere), the trim.
//! Invariants: I1, P-2, P-3: a flush takes the whole prefix from the trim to the durable point, one flush at a time.
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
        FlushDue::Now(FlushWork {
            entries: self.durable.iter().map(|(_, object)| Arc::clone(&object.entries)).collect(),
            trim: WalNumber(self.trim + self.durable.len() as u64),
        })
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
