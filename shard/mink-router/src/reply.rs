//! Replies: a one-shot for questions, and the two moments of an append, *ordered* and *durable*.
//!
//! Lives on: the replying end on a core, the waiting end on the service runtime.
//! Invariants: I7: an append that was ordered and whose reply is dropped ends in `Lost`, never in an error that a client would take
//! for "not written"; its connection closes.
use crate::{AppendError, BytePermit};
use futures::channel::oneshot;
use mink_types::{CommitTime, Offset};

/// The other end is gone: the shard stopped, or this process was fenced. What was asked may have happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the shard ended before it answered; the outcome is not known")]
pub struct Lost;

/// Where the answer to a question goes.
#[derive(Debug)]
pub struct ReplyTo<T>(oneshot::Sender<T>);

/// Where the answer to a question comes from.
#[derive(Debug)]
pub struct Waiting<T>(oneshot::Receiver<T>);

/// A reply and the future that waits for it.
pub fn reply<T>() -> (ReplyTo<T>, Waiting<T>) {
    let (sender, receiver) = oneshot::channel();
    (ReplyTo(sender), Waiting(receiver))
}

impl<T> ReplyTo<T> {
    /// Answers. Whoever asked may have gone; then the answer is dropped.
    pub fn send(self, answer: T) {
        drop(self.0.send(answer));
    }

    /// Whether nobody waits any more.
    pub fn is_abandoned(&self) -> bool {
        self.0.is_canceled()
    }
}

impl<T> Waiting<T> {
    /// The answer, or `Lost` when the replying end went away.
    pub async fn answer(self) -> Result<T, Lost> {
        self.0.await.map_err(|oneshot::Canceled| Lost)
    }
}

/// A batch has its offset: what comes behind it on the connection may follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ordered {
    pub base_offset: Offset,
}

/// A batch is durable at its offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Appended {
    pub base_offset: Offset,
    pub commit_time: CommitTime,
    pub log_start: Offset,
    /// The batch had been stored before; this is where (I6).
    pub duplicate: bool,
}

/// The replying end of an append before it has an offset.
#[derive(Debug)]
pub struct AppendReply {
    ordered: oneshot::Sender<Result<Ordered, AppendError>>,
    durable: oneshot::Sender<(Appended, BytePermit)>,
    permit: BytePermit,
}

/// The replying end of an append that has its offset. It can only be made durable, or lost.
#[derive(Debug)]
pub struct DurableReply {
    durable: oneshot::Sender<(Appended, BytePermit)>,
    permit: BytePermit,
}

/// The waiting end of an append.
#[derive(Debug)]
pub struct AppendTicket {
    ordered: oneshot::Receiver<Result<Ordered, AppendError>>,
    durable: oneshot::Receiver<(Appended, BytePermit)>,
}

/// The ends of an append that holds `permit` for its bytes until it is durable.
pub fn append_reply(permit: BytePermit) -> (AppendReply, AppendTicket) {
    let (ordered, ordered_waits) = oneshot::channel();
    let (durable, durable_waits) = oneshot::channel();
    (
        AppendReply { ordered, durable, permit },
        AppendTicket { ordered: ordered_waits, durable: durable_waits },
    )
}

impl AppendReply {
    /// The batch will not be stored.
    pub fn refuse(self, error: AppendError) {
        drop(self.ordered.send(Err(error)));
    }

    /// The batch has its offset.
    pub fn ordered(self, base_offset: Offset) -> DurableReply {
        drop(self.ordered.send(Ok(Ordered { base_offset })));
        DurableReply { durable: self.durable, permit: self.permit }
    }
}

impl DurableReply {
    /// The batch is durable. The permit goes back with the answer, so that it is given back off the core.
    pub fn durable(self, appended: Appended) {
        drop(self.durable.send((appended, self.permit)));
    }
}

impl AppendTicket {
    /// Waits until the batch has its offset, or is refused. To be called once, before `durable`.
    pub async fn ordered(&mut self) -> Result<Result<Ordered, AppendError>, Lost> {
        (&mut self.ordered).await.map_err(|oneshot::Canceled| Lost)
    }

    /// Waits until the batch is durable.
    pub async fn durable(self) -> Result<Appended, Lost> {
        self.durable.await.map(|(appended, _permit)| appended).map_err(|oneshot::Canceled| Lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BytePermits;
    use futures::FutureExt;
    use futures::executor::block_on;

    #[test]
    fn i7_an_ordered_append_ends_durable_or_lost() {
        let permits = BytePermits::new(1 << 20);
        let (reply, mut ticket) = append_reply(block_on(permits.take(1)));
        let durable = reply.ordered(Offset(4));
        assert_eq!(block_on(ticket.ordered()), Ok(Ok(Ordered { base_offset: Offset(4) })));
        drop(durable);
        assert_eq!(block_on(ticket.durable()), Err(Lost));
    }

    #[test]
    fn i20_an_append_holds_its_bytes_until_it_is_durable_even_if_nobody_waits() {
        let permits = BytePermits::new(1 << 20);
        let (reply, ticket) = append_reply(block_on(permits.take(1 << 20)));
        drop(ticket);
        let durable = reply.ordered(Offset(0));
        assert!(permits.take(1).now_or_never().is_none());
        let appended = Appended {
            base_offset: Offset(0),
            commit_time: CommitTime(0),
            log_start: Offset(0),
            duplicate: false,
        };
        durable.durable(appended);
        assert!(permits.take(1).now_or_never().is_some());
    }
}
