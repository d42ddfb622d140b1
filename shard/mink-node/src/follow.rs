//! Follows the command log: passes each view to the shards, opens what is planned for this node, closes what is gone.
//!
//! Lives on: one task on the service runtime.
//! Owns: nothing; `Opened` is written by it and by the start, which ends before it begins.
//! Invariants: I5 (a node that sees its own fence ends), K-26 (a dropped table's buckets are closed by id).
use crate::context::Context;
use crate::error::{NodeEnd, StartError};
use mink_metadata::State;
use mink_shard::{Control, View};
use mink_types::{BucketEpoch, BucketId};
use std::sync::Arc;

impl Context {
    /// Sends the newest view to every shard.
    pub(crate) async fn send_view(&self) {
        let (state, me) = (self.state(), self.me());
        self.tell_shards(|| Control::View(Box::new(View { state: state.clone(), me }))).await;
    }

    /// Whether a bucket hangs on this node's chain at this epoch.
    pub(crate) fn owns(&self, state: &State, bucket: BucketId, epoch: BucketEpoch) -> bool {
        state.bucket(&bucket).is_some_and(|b| b.owner == Some(self.me()) && b.epoch == epoch)
    }

    /// Stops serving a bucket that was opened with this epoch.
    pub(crate) async fn close(&self, bucket: BucketId, epoch: BucketEpoch) {
        if !self.opened.remove(&bucket, epoch) {
            return;
        }
        self.wal.close_bucket(&bucket);
        if let Some(shard) = self.shard(bucket) {
            drop(shard.controls.send(Control::Close { bucket }).await);
        }
    }
}

/// Runs until the node ends.
pub(crate) async fn follow(context: Arc<Context>) {
    let mut changes = context.metadata.changes();
    loop {
        let Some(state) = changes.next().await else {
            context.end(NodeEnd::Failed { what: "the metadata driver has stopped".into() });
            return;
        };
        if state.incarnation(context.me()).is_none_or(|me| me.fenced) && !context.is_draining() {
            context.end(NodeEnd::Fenced { how: "by the command log".into() });
            return;
        }
        context.send_view().await;
        for (bucket, epoch) in context.opened.all() {
            if !context.owns(&state, bucket, epoch) {
                context.close(bucket, epoch).await;
            }
        }
        if context.is_draining() {
            continue;
        }
        match context.open_planned(&state).await {
            Ok(()) => {}
            // Another process took over since this view was made.
            Err(StartError::Fenced) => {
                context.end(NodeEnd::Fenced { how: "by the command log".into() });
                return;
            }
            Err(error) => {
                context.end(NodeEnd::Failed { what: error.to_string() });
                return;
            }
        }
    }
}
