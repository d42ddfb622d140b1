//! The state of one open bucket.
//!
//! Lives on: the core that owns the bucket.
//! Owns: its tablet, its tail, the appends that wait to be durable.
//! Invariants: `pending` is in the order of ends, so acks go out in order.
use crate::Latencies;
use crate::ReleaseError;
use crate::Released;
use crate::tail::Tail;
use mink_log::Tablet;
use mink_router::{Appended, DurableReply, ReplyTo};
use mink_rt::Instant;
use mink_types::{CommitTime, Offset};
use std::collections::VecDeque;

/// Tells one opening of a bucket from the next, within this shard.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(crate) struct Opening(pub(crate) u64);

/// An append that has its offset and waits for the WAL.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) base_offset: Offset,
    /// Durable when the high watermark is here.
    pub(crate) end: Offset,
    pub(crate) commit_time: CommitTime,
    /// When the turn that ordered it began.
    pub(crate) ordered_at: Instant,
    pub(crate) duplicate: bool,
    pub(crate) reply: DurableReply,
}

#[derive(Debug)]
pub(crate) struct Bucket {
    pub(crate) opening: Opening,
    pub(crate) tablet: Tablet,
    pub(crate) tail: Tail,
    pub(crate) pending: VecDeque<Pending>,
    /// Committed end by the latest view: what lies below may leave the tail.
    pub(crate) committed: Offset,
    /// Where the open chunk notes this bucket, and which chunk that is.
    pub(crate) noted: Option<(u64, usize)>,
    /// When it last took an append, or gave batches out of its tail.
    pub(crate) touched: Instant,
    /// Whether it stands in the queue of those that may give memory back.
    pub(crate) resting: bool,
    /// Takes no more appends.
    pub(crate) draining: bool,
    pub(crate) release: Vec<ReplyTo<Result<Released, ReleaseError>>>,
}

impl Bucket {
    pub(crate) fn new(opening: Opening, tablet: Tablet) -> Bucket {
        let end = tablet.next_offset();
        Bucket {
            opening,
            tablet,
            tail: Tail::new(end),
            pending: VecDeque::new(),
            committed: end,
            noted: None,
            touched: Instant::ZERO,
            resting: false,
            draining: false,
            release: Vec::new(),
        }
    }

    /// Waits for the WAL. A repeat of a batch in flight goes behind its original, which is before the last one.
    pub(crate) fn wait(&mut self, pending: Pending) {
        if self.pending.back().is_none_or(|last| last.end <= pending.end) {
            self.pending.push_back(pending);
        } else {
            let at = self.pending.partition_point(|before| before.end <= pending.end);
            self.pending.insert(at, pending);
        }
    }

    /// The log is durable up to `end`: moves the high watermark, then acks in order what it covers (I4). Says whether the
    /// high watermark moved. `now` is when that became known.
    pub(crate) fn durable_to(&mut self, end: Offset, now: Instant, acks: &mut Latencies) -> bool {
        let moved = self.tablet.durable_to(end);
        let high_watermark = self.tablet.high_watermark();
        let log_start = self.tablet.log_start();
        while self.pending.front().is_some_and(|first| first.end <= high_watermark) {
            if let Some(first) = self.pending.pop_front() {
                acks.record(now.duration_since(first.ordered_at));
                first.reply.durable(Appended {
                    base_offset: first.base_offset,
                    commit_time: first.commit_time,
                    log_start,
                    duplicate: first.duplicate,
                });
            }
        }
        self.answer_release();
        moved
    }

    /// Answers who waits for the release once all that was ordered is durable.
    pub(crate) fn answer_release(&mut self) {
        let end = self.tablet.next_offset();
        if self.draining && self.tablet.high_watermark() == end {
            let released = Released { epoch: self.tablet.epoch(), end };
            self.release.drain(..).for_each(|reply| reply.send(Ok(released)));
        }
    }
}
