//! Where an epoch of a bucket ended: what a reader asks that wants to know whether its position is still one of this log.
//!
//! Lives on: the core.
//! Invariants: I3: an end is never beyond the high watermark. The history is as durable as the batches: each names its epoch, and
//! recovery reads them.
use crate::shard::Shard;
use mink_router::{EpochEnd, ReadError};
use mink_types::{BucketEpoch, BucketId};

impl Shard {
    /// The end of the largest epoch that wrote and is not above `epoch`; none if `epoch` has not begun.
    pub(crate) fn epoch_end(
        &mut self,
        id: BucketId,
        epoch: BucketEpoch,
        leader_epoch: Option<i32>,
    ) -> Result<Option<EpochEnd>, ReadError> {
        let tablet = &self.readable(id, leader_epoch)?.tablet;
        let end = tablet.high_watermark();
        if epoch > tablet.epoch() {
            return Ok(None);
        }
        if epoch == tablet.epoch() {
            return Ok(Some(EpochEnd { epoch, end }));
        }
        let (found, next) = tablet.epoch_end(epoch).unwrap_or_else(|| {
            // Older than all that is remembered: it ended where that begins, at the latest.
            let oldest = tablet.epochs().next();
            (epoch, oldest.map_or(end, |oldest| oldest.start))
        });
        Ok(Some(EpochEnd { epoch: found, end: next.min(end) }))
    }
}
