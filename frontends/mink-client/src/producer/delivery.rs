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

/// The base offset of a batch, or why it has none.
pub(super) type BatchEnd = Result<i64, ClientError>;

/// Resolves to the record's offset once it is acked. May be dropped: the record is sent all the same.
#[derive(Clone, Debug)]
#[must_use = "awaiting it tells whether the record was stored"]
pub struct Delivery {
    batch: Shared<oneshot::Receiver<BatchEnd>>,
    index: i32,
}

impl Delivery {
    pub(super) fn new(batch: &Shared<oneshot::Receiver<BatchEnd>>, index: i32) -> Delivery {
        Delivery { batch: batch.clone(), index }
    }
}

/// The two ends of a batch's delivery.
pub(super) fn channel() -> (oneshot::Sender<BatchEnd>, Shared<oneshot::Receiver<BatchEnd>>) {
    let (end, ends) = oneshot::channel();
    (end, ends.shared())
}

impl Future for Delivery {
    type Output = Result<i64, ClientError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let ended = ready!(self.batch.poll_unpin(context));
        Poll::Ready(ended.unwrap_or_else(|_| Err(gone())).map(|base| base + i64::from(self.index)))
    }
}
