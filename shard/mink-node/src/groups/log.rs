//! One opening of a coordinator bucket's log: read first, then appended to, until it is given up.
//!
//! Lives on: one task on the service runtime per opening.
//! Owns: the order of the appends.     Talks to: the task that coordinates, by events; the bucket's shard.
//! Invariants: I18: the log is read when no append of an earlier opening can land any more: that one's task has ended, and it ends once
//! the outcome of everything it handed over is known.
use super::append;
use super::load::{Loaded, load};
use crate::context::Context;
use futures::channel::oneshot;
use futures::future::{Either, select};
use mink_group::{AppendRefused, Handle, KeyedRecord};
use mink_router::{BytePermits, Receiver, Sender};
use mink_rt::Task;
use mink_types::{BucketId, BucketIndex, CommitTime, Offset};
use std::pin::pin;
use std::sync::Arc;

/// Which opening of which bucket: another opening's events mean nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Opening {
    pub(super) bucket: BucketIndex,
    /// Counted over all buckets.
    pub(super) number: u64,
}

/// Records that make one batch.
#[derive(Debug)]
pub(super) struct Chunk {
    /// The appends that are in it, in order; none if it is a part of a checkpoint.
    pub(super) handles: Vec<Handle>,
    pub(super) records: Vec<KeyedRecord>,
    /// The batch's timestamp.
    pub(super) time: CommitTime,
}

/// What has become of an opening.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) opening: Opening,
    pub(super) what: What,
}

#[derive(Debug)]
pub(super) enum What {
    Loaded(Loaded),
    /// The log holds what no coordinator wrote.
    Broken,
    /// There is room for the next chunk.
    Handed,
    Stored(Stored),
    /// A chunk certainly was not and will not be stored.
    Refused {
        handles: Vec<Handle>,
        why: AppendRefused,
    },
    /// It is not known whether a chunk was stored.
    Unknown,
    /// The log's start was raised, or will not be; else it is to be tried again.
    Raised {
        done: bool,
    },
}

/// A chunk that is durable.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) handles: Vec<Handle>,
    pub(super) base_offset: Offset,
    pub(super) records: u64,
    pub(super) bytes: u64,
}

impl Stored {
    pub(super) fn is_checkpoint(&self) -> bool {
        self.handles.is_empty()
    }
}

/// What an opening works with.
#[derive(Debug)]
pub(super) struct LogParts {
    pub(super) context: Arc<Context>,
    pub(super) bucket: BucketId,
    pub(super) opening: Opening,
    pub(super) batch_bytes_max: usize,
    /// Bytes of appends that are not durable yet, over all coordinators.
    pub(super) permits: BytePermits,
    pub(super) events: Sender<Event>,
}

impl LogParts {
    /// Tells the task that coordinates; if that is gone, so is the node.
    pub(super) async fn tell(&self, what: What) {
        drop(self.events.send(Event { opening: self.opening, what }).await);
    }
}

/// Runs until `stop` is dropped and everything that was handed over has its outcome.
pub(super) async fn run(
    parts: LogParts,
    before: Option<Task>,
    mut stop: oneshot::Receiver<()>,
    chunks: Receiver<Chunk>,
) {
    if let Some(before) = before {
        let end = before.join().await;
        tracing::debug!(bucket = %parts.bucket, ?end, "the opening before it has ended");
    }
    let loaded = {
        let loading = pin!(load(&parts.context, parts.bucket));
        match select(&mut stop, loading).await {
            Either::Left(_) => return,
            Either::Right((loaded, _)) => loaded,
        }
    };
    match loaded {
        Ok(loaded) => parts.tell(What::Loaded(loaded)).await,
        Err(what) => {
            let bucket = parts.bucket;
            tracing::error!(%bucket, what, "the log of consumer groups cannot be read; a person must look");
            parts.tell(What::Broken).await;
            return;
        }
    }
    append::append(&parts, stop, chunks).await;
}
