//! The idempotent producers of a bucket, for those who look after a cluster.
//!
//! Lives on: the core.
//! Invariants: I3: what is told of a producer is as readers see its batches; I20: one answer holds as many as were asked for.
use crate::shard::Shard;
use mink_router::{ProducerState, ReadError};
use mink_types::{BucketId, ProducerId};

/// Producers of one answer, whatever was asked for: the core is not held up by more.
const PRODUCERS_MAX: usize = 1_000;

impl Shard {
    /// Up to `most` producers by id, from `from` on.
    pub(crate) fn producers(
        &mut self,
        id: BucketId,
        from: ProducerId,
        most: usize,
    ) -> Result<Vec<ProducerState>, ReadError> {
        let tablet = &self.readable(id, None)?.tablet;
        let active = tablet.active_producers(from).take(most.min(PRODUCERS_MAX));
        let states = active.map(|active| ProducerState {
            producer: active.producer,
            epoch: active.epoch,
            last_sequence: active.last_sequence,
            last_commit_time: active.last_commit_time,
        });
        Ok(states.collect())
    }
}
