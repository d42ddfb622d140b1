//! On whose chain a bucket hangs: open and release.
//!
//! Lives on: anywhere (pure).
//! Invariants: I13 (an open adds one to the epoch that it relied on; a bucket that hangs on a live chain moves by release only).
use mink_types::{BucketEpoch, BucketId, Incarnation, Offset};

use super::Judged;
use crate::{Answer, Bucket, BucketOpening, Refusal, Stale, State, TakenOver};

impl State {
    pub(super) fn open(
        &mut self,
        by: Incarnation,
        buckets: &[BucketOpening],
        from: Option<TakenOver>,
    ) -> Judged {
        self.acting(by)?;
        if let Some(TakenOver { incarnation, .. }) = from {
            let state = self.incarnations.get(&incarnation).ok_or(Refusal::NotRegistered { incarnation })?;
            if !state.fenced {
                return Err(Refusal::NotFenced { incarnation });
            }
        }
        let mut refused = Vec::new();
        for opening in buckets {
            let walked = from.map(|from| from.incarnation);
            if let Err(why) = self.open_bucket(by, *opening, walked) {
                refused.push((opening.bucket, why));
            }
        }
        if let Some(from) = from
            && (buckets.is_empty() || refused.len() < buckets.len())
            && let Some(state) = self.incarnations.get_mut(&from.incarnation)
        {
            // The first seal stands for ever; a later taker's walk has met the same one. Without a bucket it is recorded
            // for its own sake: a chain on which nothing hangs any more can then be cleaned up to it.
            state.seal = state.seal.or(Some(from.seal));
        }
        Ok(Answer::Opened { refused })
    }

    fn open_bucket(
        &mut self,
        by: Incarnation,
        opening: BucketOpening,
        walked: Option<Incarnation>,
    ) -> Result<(), Stale> {
        let bucket = self.buckets.get_mut(&opening.bucket).ok_or(Stale::Gone)?;
        if bucket.epoch != opening.epoch {
            return Err(Stale::Epoch { current: bucket.epoch });
        }
        // `walked` is fenced: `open` has checked it.
        if bucket.owner.is_some() && bucket.owner != walked {
            return Err(Stale::Hangs { on: bucket.owner });
        }
        if bucket.epoch >= BucketEpoch::MAX {
            return Err(Stale::EpochsUsedUp);
        }
        bucket.epoch = BucketEpoch(bucket.epoch.0 + 1);
        self.set_owner(opening.bucket, Some(by));
        Ok(())
    }

    pub(super) fn release(
        &mut self,
        by: Incarnation,
        id: BucketId,
        epoch: BucketEpoch,
        end: Offset,
    ) -> Judged {
        self.acting(by)?;
        let committed = self.live_bucket(by, id, epoch)?.end;
        if committed != end {
            return Err(Refusal::Stale { bucket: id, why: Stale::End { committed } });
        }
        self.set_owner(id, None);
        Ok(Answer::Done)
    }

    /// The bucket, if it hangs on `by`'s chain at this epoch.
    pub(super) fn live_bucket(
        &self,
        by: Incarnation,
        id: BucketId,
        epoch: BucketEpoch,
    ) -> Result<&Bucket, Refusal> {
        let refuse = |why| Err(Refusal::Stale { bucket: id, why });
        match self.buckets.get(&id) {
            None => refuse(Stale::Gone),
            Some(bucket) if bucket.epoch != epoch => refuse(Stale::Epoch { current: bucket.epoch }),
            Some(bucket) if bucket.owner != Some(by) => refuse(Stale::Hangs { on: bucket.owner }),
            Some(bucket) => Ok(bucket),
        }
    }
}
