//! Leaving in order: stop accepting, make all durable, commit all, seal, say so in the log.
//!
//! Lives on: the service runtime.
//! Invariants: I1 (what was ordered is made durable and committed first), I5 (a drained node acks and reads nothing more).
use crate::context::Context;
use crate::error::NodeEnd;
use futures::future::join_all;
use mink_metadata::{Command, CommandResult, RefusalKind};
use mink_router::reply;
use mink_shard::Control;
use mink_types::BucketId;
use s3stream::WalEnd;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl Context {
    /// Drains for at most `limit`.
    pub(crate) async fn drain(&self, limit: Duration) -> NodeEnd {
        self.draining.store(true, Ordering::Release);
        match self.service.timeout(limit, self.leave()).await {
            Ok(end) => end,
            Err(_) => NodeEnd::DrainTimedOut,
        }
    }

    async fn leave(&self) -> NodeEnd {
        // Members look for another coordinator while this one makes its last commits durable.
        self.drain_groups().await;
        let buckets = self.opened.all();
        join_all(buckets.iter().map(|(bucket, _)| self.release(*bucket))).await;
        // All they ordered is durable; they would take the end of the chain for a fence.
        self.tell_shards(|| Control::Stop).await;
        let drained = match self.wal.drain().await {
            Ok(drained) => drained,
            // Another process took over while this one was leaving.
            Err(end @ WalEnd::Fenced { .. }) => return NodeEnd::Fenced { how: end.to_string() },
            Err(end) => return NodeEnd::Failed { what: end.to_string() },
        };
        self.lease.end();
        let leave = Command::Leave { incarnation: self.me(), trim: drained.seal, seal: Some(drained.seal) };
        match self.metadata.submit(leave).await {
            Ok(CommandResult::Done(_)) => NodeEnd::Drained,
            Ok(CommandResult::Refused(refusal)) if refusal.kind() == RefusalKind::Fenced => {
                NodeEnd::Fenced { how: refusal.to_string() }
            }
            Ok(CommandResult::Refused(refusal)) => NodeEnd::Failed { what: refusal.to_string() },
            Err(error) => NodeEnd::Failed { what: error.to_string() },
        }
    }

    /// Waits until all that a bucket ordered is durable.
    async fn release(&self, bucket: BucketId) {
        let Some(shard) = self.shard(bucket) else { return };
        let (reply, answer) = reply();
        drop(shard.controls.send(Control::Release { bucket, reply }).await);
        match answer.answer().await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => tracing::debug!(%bucket, %error, "release"),
            Err(lost) => tracing::warn!(%bucket, %lost, "release"),
        }
    }
}
