//! DeleteRecords: a client raises the start of logs.
//!
//! Lives on: the service runtime.
//! Invariants: I1, I2: only what is committed can go, so what lies behind the committed end is flushed first, once for all buckets of a
//! request; I3: a client names no offset beyond the high watermark. When the answer leaves, readers see the new start.
use crate::context::Context;
use crate::groups::refuse_internal;
use crate::retention::{Raise, RaiseError};
use crate::source::NodeSource;
use futures::StreamExt as _;
use mink_api::{AdminError, DeleteRecordsError, DeleteUpTo, LogSource as _};
use mink_metadata::RefusalKind;
use mink_router::{Position, ReadError};
use mink_types::{BucketId, Offset};
use std::sync::Arc;

/// Buckets that are asked for their ends, or raised, at a time.
const BUCKETS_AT_ONCE: usize = 256;

type Answer = Result<Offset, DeleteRecordsError>;

impl Context {
    /// For each bucket the start of its log once all below the offset asked for is forgotten, in the order asked.
    pub(crate) async fn delete_records(self: &Arc<Self>, asked: Vec<(BucketId, DeleteUpTo)>) -> Vec<Answer> {
        if self.is_draining() {
            return asked.iter().map(|_| Err(AdminError::Stopping.into())).collect();
        }
        let targets = asked.into_iter().map(|(bucket, up_to)| async move {
            let target = self.target(bucket, up_to).await;
            target.map(|target| (bucket, target))
        });
        let targets: Vec<Result<(BucketId, Offset), DeleteRecordsError>> =
            futures::stream::iter(targets).buffered(BUCKETS_AT_ONCE).collect().await;
        let stopped = self.must_flush(&targets) && self.wal.flush_now().await.is_err();
        let raised = targets.into_iter().map(|target| async move {
            match target {
                Ok(_) if stopped => Err(AdminError::Stopping.into()),
                Ok((bucket, target)) => self.forget_below(bucket, target).await,
                Err(error) => Err(error),
            }
        });
        futures::stream::iter(raised).buffered(BUCKETS_AT_ONCE).collect().await
    }

    /// Whether something of what is to be forgotten is not committed yet.
    fn must_flush(&self, targets: &[Result<(BucketId, Offset), DeleteRecordsError>]) -> bool {
        let state = self.state();
        let committed = |bucket| state.bucket(bucket).map(|known| known.end);
        targets.iter().flatten().any(|(bucket, target)| committed(bucket).is_some_and(|end| end < *target))
    }

    /// The offset meant, if the log goes that far and is ours.
    async fn target(self: &Arc<Self>, bucket: BucketId, up_to: DeleteUpTo) -> Answer {
        let state = self.state();
        let known = state.bucket(&bucket).ok_or(DeleteRecordsError::NotFound { bucket })?;
        if state.table(bucket.table).is_some_and(|table| table.path.database.is_internal()) {
            return Err(refuse_internal().into());
        }
        if known.owner != Some(self.me()) {
            return Err(DeleteRecordsError::NotOwner { bucket });
        }
        let found = NodeSource(Arc::clone(self)).locate(bucket, Position::Latest, None).await;
        let high_watermark = match found {
            Ok(found) => found.offset.unwrap_or(known.end),
            Err(ReadError::NotOwner { .. } | ReadError::Opening { .. } | ReadError::LeaseExpired) => {
                return Err(DeleteRecordsError::NotOwner { bucket });
            }
            Err(error) => return Err(AdminError::Unavailable { why: error.to_string() }.into()),
        };
        match up_to {
            DeleteUpTo::HighWatermark => Ok(high_watermark),
            DeleteUpTo::Offset(offset) if offset <= high_watermark => Ok(offset),
            DeleteUpTo::Offset(offset) => {
                Err(DeleteRecordsError::OutOfRange { bucket, offset, end: high_watermark })
            }
        }
    }

    async fn forget_below(&self, bucket: BucketId, target: Offset) -> Answer {
        let state = self.state();
        let known = state.bucket(&bucket).ok_or(DeleteRecordsError::NotFound { bucket })?;
        if target <= known.start {
            return Ok(known.start);
        }
        if target > known.end {
            // Another view of what is durable than the flush had: an owner change, a bucket that has just been opened.
            return Err(
                AdminError::Conflict { why: format!("{bucket} is not committed up to {target}") }.into()
            );
        }
        match self.raise_start(Raise { bucket, epoch: known.epoch, start: target }).await {
            Ok(start) => Ok(start),
            Err(RaiseError::Metadata(error)) => {
                Err(AdminError::Unavailable { why: error.to_string() }.into())
            }
            Err(RaiseError::Refused(refusal)) => Err(match refusal.kind() {
                RefusalKind::Fenced => AdminError::Stopping.into(),
                RefusalKind::Stale if self.state().bucket(&bucket).is_none() => {
                    DeleteRecordsError::NotFound { bucket }
                }
                RefusalKind::Stale => DeleteRecordsError::NotOwner { bucket },
                _ => AdminError::Conflict { why: refusal.to_string() }.into(),
            }),
        }
    }
}
