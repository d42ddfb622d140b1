//! Where each epoch of a bucket began to write, so that a reader can be told where its epoch ended.
//!
//! Lives on: anywhere (pure).
//! Invariants: epochs and offsets rise together; the list is bounded, its oldest entries go first (I20).
use mink_types::{BucketEpoch, Offset};

/// Epochs that are remembered. An owner that changes every minute for a day stays below it; who asks for an older one is told
/// the start of the oldest.
pub const EPOCHS_REMEMBERED_MAX: usize = 4096;

/// So many epochs take no more memory than they need.
const FEW: usize = 8;

/// The first offset that an epoch gave.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct EpochStart {
    pub epoch: BucketEpoch,
    pub start: Offset,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Epochs(Vec<EpochStart>);

impl Epochs {
    /// Notes that `epoch` gave `start`; only the first time counts, and what contradicts the list is left out.
    pub(crate) fn note(&mut self, epoch: BucketEpoch, start: Offset) {
        let new = self.0.last().is_none_or(|last| last.epoch < epoch && last.start <= start);
        if new {
            if self.0.len() >= EPOCHS_REMEMBERED_MAX {
                self.0.remove(0);
            }
            if self.0.len() < FEW {
                // Most buckets have one owner for a long time, and there are many of them.
                self.0.reserve_exact(1);
            }
            self.0.push(EpochStart { epoch, start });
        }
    }

    /// The largest epoch that wrote and is not above `epoch`, with the offset at which the next one began; `end` if it is the
    /// last. None when every epoch that is remembered is above it.
    pub(crate) fn end_of(&self, epoch: BucketEpoch, end: Offset) -> Option<(BucketEpoch, Offset)> {
        let above = self.0.partition_point(|known| known.epoch <= epoch);
        let found = self.0.get(above.checked_sub(1)?)?;
        Some((found.epoch, self.0.get(above).map_or(end, |next| next.start)))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = EpochStart> + '_ {
        self.0.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_ends_where_the_next_one_that_wrote_began() {
        let mut epochs = Epochs::default();
        epochs.note(BucketEpoch(1), Offset(0));
        epochs.note(BucketEpoch(1), Offset(5));
        epochs.note(BucketEpoch(4), Offset(10));
        let end = Offset(12);
        assert_eq!(epochs.end_of(BucketEpoch(0), end), None);
        assert_eq!(epochs.end_of(BucketEpoch(1), end), Some((BucketEpoch(1), Offset(10))));
        assert_eq!(epochs.end_of(BucketEpoch(3), end), Some((BucketEpoch(1), Offset(10))));
        assert_eq!(epochs.end_of(BucketEpoch(9), end), Some((BucketEpoch(4), end)));
    }

    #[test]
    fn i20_the_list_is_bounded() {
        let mut epochs = Epochs::default();
        for n in 0..10_000 {
            epochs.note(BucketEpoch(n), Offset(u64::from(n)));
        }
        assert_eq!(epochs.iter().count(), EPOCHS_REMEMBERED_MAX);
    }
}
