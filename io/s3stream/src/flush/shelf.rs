//! The states of very many buckets at rest, as bytes that lie side by side.
//!
//! Lives on: wherever the book is.
//! Owns: the bytes of all states, and where each lies.
//! Invariants: I20: a state that has been replaced is dead; dead bytes are at most a quarter of the living ones and some slack, else the
//! living are moved together. A block of its own for each would keep a page resident for a few hundred bytes, for it is made in the
//! midst of batches that come and go. Half of a state is zeros, which are left out.
use std::collections::BTreeMap;

use bytes::Bytes;
use mink_types::{BucketEpoch, BucketId, Offset};

use super::book::BucketState;
use super::zeros;
use crate::entry::EpochStart;

/// Dead bytes that are no trouble.
const DEAD_KEPT: usize = 64 << 10;

/// Where a state lies.
#[derive(Clone, Copy, Debug)]
struct Place {
    at: usize,
    bytes: u32,
}

/// States by bucket. Each is, little-endian and without its zeros: 8 offset, 4 number of epochs, 4 length of the producers; each epoch:
/// 4 epoch, 8 start; the producers.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    places: BTreeMap<BucketId, Place>,
    bytes: Vec<u8>,
    dead: usize,
}

impl Shelf {
    pub(super) fn get(&self, bucket: &BucketId) -> Option<BucketState> {
        read(self.slice(*self.places.get(bucket)?)?)
    }

    pub(super) fn put(&mut self, bucket: BucketId, state: &BucketState) {
        let at = self.bytes.len();
        let bytes = written(state).and_then(|written| {
            zeros::leave_out(&written, &mut self.bytes);
            u32::try_from(self.bytes.len() - at).ok()
        });
        // Bounded far below by what a footer takes; one that is not would not be known, as if its snapshot were too long.
        let Some(bytes) = bytes else {
            self.bytes.truncate(at);
            return self.remove(&bucket);
        };
        // In the place of the one before: the tree stays as full as it was.
        if let Some(before) = self.places.insert(bucket, Place { at, bytes }) {
            self.died(before);
        }
    }

    pub(super) fn remove(&mut self, bucket: &BucketId) {
        if let Some(place) = self.places.remove(bucket) {
            self.died(place);
        }
    }

    fn died(&mut self, place: Place) {
        self.dead += place.bytes as usize;
        let living = self.bytes.len() - self.dead;
        if self.dead > living / 4 + DEAD_KEPT {
            self.move_together();
        }
    }

    fn slice(&self, place: Place) -> Option<&[u8]> {
        self.bytes.get(place.at..)?.get(..place.bytes as usize)
    }

    fn move_together(&mut self) {
        let living = self.bytes.len() - self.dead;
        // With room for what comes before the next time.
        let mut moved = Vec::with_capacity(living + living / 4 + DEAD_KEPT);
        let places = std::mem::take(&mut self.places);
        // A tree that is built of what is in order has no free places.
        self.places = places
            .into_iter()
            .map(|(bucket, place)| {
                let at = moved.len();
                moved.extend_from_slice(self.slice(place).unwrap_or_default());
                (bucket, Place { at, ..place })
            })
            .collect();
        (self.bytes, self.dead) = (moved, 0);
    }
}

/// The bytes of a state, if their counts fit.
fn written(state: &BucketState) -> Option<Vec<u8>> {
    let epochs = u32::try_from(state.epochs.len()).ok()?;
    let producers = u32::try_from(state.producers.len()).ok()?;
    let mut bytes = Vec::with_capacity(16 + state.epochs.len() * 12 + state.producers.len());
    bytes.extend_from_slice(&state.at.0.to_le_bytes());
    bytes.extend_from_slice(&epochs.to_le_bytes());
    bytes.extend_from_slice(&producers.to_le_bytes());
    for epoch in &state.epochs {
        bytes.extend_from_slice(&epoch.epoch.0.to_le_bytes());
        bytes.extend_from_slice(&epoch.start.0.to_le_bytes());
    }
    bytes.extend_from_slice(&state.producers);
    Some(bytes)
}

/// None would mean that these are not the bytes of a state.
fn read(bytes: &[u8]) -> Option<BucketState> {
    let bytes = zeros::put_back(bytes);
    let (at, rest) = bytes.split_first_chunk()?;
    let (epochs, rest) = rest.split_first_chunk()?;
    let (producers, mut rest) = rest.split_first_chunk()?;
    let starts = (0..u32::from_le_bytes(*epochs)).map(|_| {
        let (epoch, after) = rest.split_first_chunk()?;
        let (start, after) = after.split_first_chunk()?;
        rest = after;
        let (epoch, start) = (u32::from_le_bytes(*epoch), u64::from_le_bytes(*start));
        Some(EpochStart { epoch: BucketEpoch(epoch), start: Offset(start) })
    });
    let epochs = starts.collect::<Option<Vec<_>>>()?;
    let producers = rest.get(..u32::from_le_bytes(*producers) as usize)?;
    let at = Offset(u64::from_le_bytes(*at));
    Some(BucketState { at, producers: Bytes::copy_from_slice(producers), epochs })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::bucket;
    use proptest::prelude::*;

    fn state(seed: u64, epochs: u32, producers: usize) -> BucketState {
        let start = |epoch| EpochStart { epoch: BucketEpoch(epoch), start: Offset(seed + u64::from(epoch)) };
        BucketState {
            at: Offset(seed),
            producers: vec![u8::try_from(seed % 251).unwrap(); producers].into(),
            epochs: (0..epochs).map(start).collect(),
        }
    }

    #[test]
    fn i20_small_numbers_take_no_wide_fields() {
        let mut shelf = Shelf::default();
        // Five batches of one producer: words of which two or three bytes in eight say something.
        let producers: Vec<u8> = (0..164).map(|at| if at % 8 < 3 { 7 } else { 0 }).collect();
        let state = BucketState { producers: producers.into(), ..state(10, 1, 0) };
        shelf.put(bucket(1), &state);
        assert_eq!(shelf.get(&bucket(1)), Some(state));
        assert!(shelf.bytes.len() <= 100 && size_of::<Place>() <= 16, "{} bytes", shelf.bytes.len());
    }

    proptest! {
        #[test]
        fn i20_what_was_put_is_there_and_little_else(
            steps in proptest::collection::vec((0_u64..6, any::<u32>(), 0_u32..4, 0_usize..20_000, any::<bool>()), 0..200),
        ) {
            let (mut shelf, mut model) = (Shelf::default(), BTreeMap::new());
            for (id, seed, epochs, producers, remove) in steps {
                if remove {
                    shelf.remove(&bucket(id));
                    model.remove(&id);
                } else {
                    let state = state(u64::from(seed), epochs, producers);
                    shelf.put(bucket(id), &state);
                    model.insert(id, state);
                }
                for id in 0..6 {
                    prop_assert_eq!(shelf.get(&bucket(id)), model.get(&id).cloned());
                }
                let living: usize = shelf.places.values().map(|place| place.bytes as usize).sum();
                let whole: usize = model.values().map(|s| 17 + 12 * s.epochs.len() + s.producers.len()).sum();
                prop_assert_eq!(shelf.bytes.len() - shelf.dead, living);
                prop_assert!(living <= whole + whole / 8 + model.len(), "{} of {}", living, whole);
                // One state may have been added since the dead were last looked at.
                prop_assert!(shelf.dead <= living / 4 + DEAD_KEPT + 22_600, "{} dead of {}", shelf.dead, shelf.bytes.len());
            }
        }
    }
}
