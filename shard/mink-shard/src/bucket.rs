//! The state of one open bucket.
//!
//! Lives on: the core that owns the bucket.
//! Owns: its tablet, its tail, the appends that wait to be durable.
//! Invariants: `pending` is in the order of ends, so acks go out in order; I20: a bucket at rest is its rules and little else.
use crate::Latencies;
use crate::ReleaseError;
use crate::Released;
use crate::tail::{Tail, TailBatch};
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
    /// None in a bucket at rest.
    flow: Option<Box<Flow>>,
    /// Committed end by the latest view: what lies below may leave the tail.
    pub(crate) committed: Offset,
    /// When it last took an append, or gave batches out of its tail.
    pub(crate) touched: Instant,
    /// Whether it stands in the queue of those that may give memory back.
    pub(crate) resting: bool,
    /// Takes no more appends.
    pub(crate) draining: bool,
}

/// What a bucket has of batches that come and go: from the first one until it rests.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) tail: Tail,
    pub(crate) pending: VecDeque<Pending>,
    /// Where the open chunk notes this bucket, and which chunk that is.
    pub(crate) noted: Option<(u64, usize)>,
    pub(crate) release: Vec<ReplyTo<Result<Released, ReleaseError>>>,
}

/// The tail of a bucket at rest.
static NO_TAIL: Tail = Tail::new();

impl Flow {
    fn new() -> Flow {
        Flow { tail: Tail::new(), pending: VecDeque::new(), noted: None, release: Vec::new() }
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
}

impl Bucket {
    pub(crate) fn new(opening: Opening, tablet: Tablet) -> Bucket {
        let end = tablet.next_offset();
        Bucket {
            opening,
            tablet,
            flow: None,
            committed: end,
            touched: Instant::ZERO,
            resting: false,
            draining: false,
        }
    }

    /// What flows; it flows from here on.
    pub(crate) fn flow(&mut self) -> &mut Flow {
        self.flow.get_or_insert_with(|| Box::new(Flow::new()))
    }

    /// Its batches in memory.
    pub(crate) fn tail(&self) -> &Tail {
        self.flow.as_ref().map_or(&NO_TAIL, |flow| &flow.tail)
    }

    /// The first offset that is in memory; the appended end if none is.
    pub(crate) fn tail_start(&self) -> Offset {
        self.tail().start().unwrap_or(self.tablet.next_offset())
    }

    /// Takes the oldest batch out of the tail.
    pub(crate) fn pop(&mut self) -> Option<TailBatch> {
        self.flow.as_mut()?.tail.pop()
    }

    /// Appends that wait to be durable.
    pub(crate) fn pending(&self) -> usize {
        self.flow.as_ref().map_or(0, |flow| flow.pending.len())
    }

    /// Gives back what its batches do not need, and if there is none and nobody waits, all of it.
    pub(crate) fn rest(&mut self) {
        let Some(flow) = &mut self.flow else { return };
        flow.tail.shrink();
        flow.pending.shrink_to_fit();
        if flow.tail.len() == 0 && flow.pending.is_empty() && flow.release.is_empty() {
            self.flow = None;
        }
    }

    /// The log is durable up to `end`: moves the high watermark, then acks in order what it covers (I4). Says whether the
    /// high watermark moved. `now` is when that became known.
    pub(crate) fn durable_to(&mut self, end: Offset, now: Instant, acks: &mut Latencies) -> bool {
        let moved = self.tablet.durable_to(end);
        let high_watermark = self.tablet.high_watermark();
        let log_start = self.tablet.log_start();
        let Some(flow) = &mut self.flow else { return moved };
        while let Some(first) = flow.pending.pop_front_if(|first| first.end <= high_watermark) {
            acks.record(now.duration_since(first.ordered_at));
            first.reply.durable(Appended {
                base_offset: first.base_offset,
                commit_time: first.commit_time,
                log_start,
                duplicate: first.duplicate,
            });
        }
        self.answer_release();
        moved
    }

    /// Answers who waits for the release once all that was ordered is durable.
    pub(crate) fn answer_release(&mut self) {
        let end = self.tablet.next_offset();
        if self.draining
            && self.tablet.high_watermark() == end
            && let Some(flow) = &mut self.flow
        {
            let released = Released { epoch: self.tablet.epoch(), end };
            flow.release.drain(..).for_each(|reply| reply.send(Ok(released)));
        }
    }

    /// Tells who waits for the release that there will be none.
    pub(crate) fn refuse_release(&mut self, error: ReleaseError) {
        let waiting = self.flow.as_mut().map(|flow| std::mem::take(&mut flow.release));
        waiting.into_iter().flatten().for_each(|reply| reply.send(Err(error)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i20_a_bucket_at_rest_is_its_rules_and_little_else() {
        // Very many rest, each with a producer or none. A field that only traffic needs belongs into `Flow`.
        assert!(size_of::<Bucket>() <= size_of::<Tablet>() + 48, "{} bytes", size_of::<Bucket>());
        assert!(size_of::<Bucket>() <= 280, "{} bytes", size_of::<Bucket>());
    }
}
