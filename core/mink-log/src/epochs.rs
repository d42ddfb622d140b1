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

/// Two with the same epochs are equal, whatever their form.
#[derive(Clone, Debug)]
pub(crate) struct Epochs(Form);

#[derive(Clone, Debug)]
enum Form {
    /// Here, in the bucket itself: most have one owner for a long time, and a block of its own would be made while batches come and go.
    One([EpochStart; 1]),
    List(Vec<EpochStart>),
}

impl Default for Epochs {
    fn default() -> Epochs {
        Epochs(Form::List(Vec::new()))
    }
}

impl PartialEq for Epochs {
    fn eq(&self, other: &Epochs) -> bool {
        self.list() == other.list()
    }
}

impl Eq for Epochs {}

impl Epochs {
    fn list(&self) -> &[EpochStart] {
        match &self.0 {
            Form::One(one) => one,
            Form::List(list) => list,
        }
    }

    /// Notes that `epoch` gave `start`; only the first time counts, and what contradicts the list is left out.
    pub(crate) fn note(&mut self, epoch: BucketEpoch, start: Offset) {
        if self.list().last().is_some_and(|last| last.epoch >= epoch || last.start > start) {
            return;
        }
        let new = EpochStart { epoch, start };
        match &mut self.0 {
            Form::One([one]) => self.0 = Form::List(vec![*one, new]),
            Form::List(list) if list.is_empty() => self.0 = Form::One([new]),
            Form::List(list) => {
                if list.len() >= EPOCHS_REMEMBERED_MAX {
                    list.remove(0);
                }
                if list.len() < FEW {
                    list.reserve_exact(1);
                }
                list.push(new);
            }
        }
    }

    /// The largest epoch that wrote and is not above `epoch`, with the offset at which the next one began; `end` if it is the
    /// last. None when every epoch that is remembered is above it.
    pub(crate) fn end_of(&self, epoch: BucketEpoch, end: Offset) -> Option<(BucketEpoch, Offset)> {
        let list = self.list();
        let above = list.partition_point(|known| known.epoch <= epoch);
        let found = list.get(above.checked_sub(1)?)?;
        Some((found.epoch, list.get(above).map_or(end, |next| next.start)))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = EpochStart> + '_ {
        self.list().iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i20_one_epoch_lies_in_the_bucket_itself() {
        let mut epochs = Epochs::default();
        epochs.note(BucketEpoch(1), Offset(0));
        epochs.note(BucketEpoch(1), Offset(5));
        assert!(matches!(epochs.0, Form::One(_)));
        assert!(size_of::<Epochs>() <= 24);
    }

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
