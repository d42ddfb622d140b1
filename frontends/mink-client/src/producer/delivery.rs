//! What became of a record: a future that all records of a batch share.
//!
//! Lives on: anywhere.
use super::gone;
use crate::error::ClientError;
use futures::FutureExt;
use futures::future::Shared;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::sync::oneshot;
use tokio::time::Instant;

/// The base offset of a batch, or why it has none.
pub(crate) type BatchEnd = Result<i64, ClientError>;

/// The end of a batch and when it came: whoever looks later still knows how long it took.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    pub(crate) at: Instant,
    pub(crate) end: BatchEnd,
}

impl Ended {
    pub(super) fn now(end: BatchEnd) -> Ended {
        Ended { at: Instant::now(), end }
    }
}

/// Resolves to the record's offset once it is acked. May be dropped: the record is sent all the same.
#[derive(Clone, Debug)]
#[must_use = "awaiting it tells whether the record was stored"]
pub struct Delivery {
    batch: Shared<oneshot::Receiver<Ended>>,
    index: i32,
}

impl Delivery {
    pub(super) fn new(batch: &Shared<oneshot::Receiver<Ended>>, index: i32) -> Delivery {
        Delivery { batch: batch.clone(), index }
    }

    /// Whether both records travel in one batch.
    pub(crate) fn is_with(&self, other: &Delivery) -> bool {
        self.batch.ptr_eq(&other.batch)
    }

    /// The end of the record's batch.
    pub(crate) async fn batch_ended(self) -> Ended {
        self.batch.await.unwrap_or_else(|_| Ended::now(Err(gone())))
    }
}

/// The two ends of a batch's delivery.
pub(super) fn channel() -> (oneshot::Sender<Ended>, Shared<oneshot::Receiver<Ended>>) {
    let (end, ends) = oneshot::channel();
    (end, ends.shared())
}

impl Future for Delivery {
    type Output = Result<i64, ClientError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let ended = ready!(self.batch.poll_unpin(context));
        let end = ended.map_or_else(|_| Err(gone()), |ended| ended.end);
        Poll::Ready(end.map(|base| base + i64::from(self.index)))
    }
}
