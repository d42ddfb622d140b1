//! The bounded way of chunks from a shard to the WAL writer.
//!
//! Lives on: the sending half on a core, one clone per shard; the other half in the writer.
//! Owns: the chunks in between.
//! Invariants: never refused for good while the node lives: a full lane means wait (the shard then stops taking requests,
//! and sockets stop); a closed one means that the chain has ended.
use std::collections::BTreeSet;
use std::task::{Context, Poll};

use futures::channel::mpsc;

use crate::batcher::{CHUNK_BYTES_MAX, CHUNK_ENTRIES_MAX, Chunk};
use crate::entry::EntryKind;

/// A shard's end of its lane. A clone has room of its own.
#[derive(Clone, Debug)]
pub struct ChunkSender {
    lane: mpsc::Sender<Chunk>,
}

/// Why a chunk was not taken; it comes back. Dropping it tells its completion that the chain has ended.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// No room now: wait for [`ChunkSender::ready`].
    #[error("the lane to the WAL writer is full")]
    Full(Chunk),
    /// The writer has ended; see [`super::Wal::ended`].
    #[error("the WAL writer has ended")]
    Closed(Chunk),
    /// The chunk breaks a rule that its maker must keep.
    #[error("the chunk is not acceptable: {why}")]
    Invalid { why: &'static str, chunk: Chunk },
}

/// The writer has ended; see [`super::Wal::ended`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the WAL writer has ended")]
pub struct LaneClosed;

/// The shards' end and the writer's.
pub(super) fn lane(chunks: usize) -> (ChunkSender, mpsc::Receiver<Chunk>) {
    // futures gives each sender one place of its own beside the shared ones.
    let (lane, receiver) = mpsc::channel(chunks.saturating_sub(1));
    (ChunkSender { lane }, receiver)
}

impl ChunkSender {
    /// Hands a chunk over if there is room. Chunks of one sender stay in order.
    pub fn try_push(&mut self, chunk: Chunk) -> Result<(), PushError> {
        if let Err(why) = check(&chunk) {
            return Err(PushError::Invalid { why, chunk });
        }
        self.lane.try_send(chunk).map_err(|error| {
            if error.is_full() {
                PushError::Full(error.into_inner())
            } else {
                PushError::Closed(error.into_inner())
            }
        })
    }

    /// Ready when [`Self::try_push`] will find room; wakes the task otherwise.
    pub fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LaneClosed>> {
        self.lane.poll_ready(cx).map_err(|_| LaneClosed)
    }

    /// Waits for room.
    pub async fn ready(&mut self) -> Result<(), LaneClosed> {
        std::future::poll_fn(|cx| self.poll_ready(cx)).await
    }
}

fn check(chunk: &Chunk) -> Result<(), &'static str> {
    if chunk.entries.is_empty() {
        return Err("it is empty");
    }
    if chunk.entries.len() > CHUNK_ENTRIES_MAX || chunk.bytes() > CHUNK_BYTES_MAX {
        return Err("it is larger than a chunk may be");
    }
    if chunk.entries.iter().any(|entry| (entry.kind == EntryKind::Decision) != (entry.count == 0)) {
        return Err("a decision takes no offset, a batch takes some");
    }
    if chunk.entries.iter().all(|entry| entry.kind == EntryKind::Batch) {
        return Ok(());
    }
    let with = |kind| -> BTreeSet<_> {
        chunk
            .entries
            .iter()
            .filter(|entry| entry.kind == kind)
            .map(|entry| (entry.bucket, entry.epoch))
            .collect()
    };
    if with(EntryKind::Decision).is_subset(&with(EntryKind::Batch)) {
        Ok(())
    } else {
        Err("a decision must share its chunk with a batch of its bucket")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::Entry;
    use crate::testing::{entry, in_world};
    use futures::StreamExt as _;

    fn chunk(entries: Vec<Entry>) -> Chunk {
        Chunk::new(entries, |_| ())
    }

    #[test]
    fn i20_a_full_lane_gives_the_chunk_back_and_wakes_when_there_is_room() {
        in_world(1, |_| async {
            let (mut sender, mut receiver) = lane(2);
            sender.try_push(chunk(vec![entry(1, 0, 0, 1, b"a")])).unwrap();
            sender.try_push(chunk(vec![entry(1, 0, 1, 1, b"b")])).unwrap();
            let Err(PushError::Full(back)) = sender.try_push(chunk(vec![entry(1, 0, 2, 1, b"c")])) else {
                panic!("no room for a third");
            };
            assert_eq!(back.entries[0].base_offset.0, 2);
            let first = receiver.next().await.unwrap();
            assert_eq!(first.entries[0].base_offset.0, 0);
            sender.ready().await.unwrap();
            sender.try_push(back).unwrap();
            drop(receiver);
            let late = chunk(vec![entry(1, 0, 3, 1, b"d")]);
            assert!(matches!(sender.try_push(late), Err(PushError::Closed(_))));
        });
    }

    #[test]
    fn a_decision_alone_is_refused_because_no_commit_could_name_it() {
        let (mut sender, _receiver) = lane(2);
        let decision = Entry { kind: EntryKind::Decision, count: 0, ..entry(1, 0, 5, 1, b"d") };
        let refused = sender.try_push(chunk(vec![decision.clone(), entry(2, 0, 5, 1, b"x")]));
        assert!(matches!(refused, Err(PushError::Invalid { .. })));
        sender.try_push(chunk(vec![decision, entry(1, 0, 5, 1, b"x")])).unwrap();
    }
}
