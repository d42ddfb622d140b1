//! The states of very many buckets at rest, as bytes that lie side by side.
//!
//! Lives on: wherever the book is.
//! Owns: the bytes of all states, and where each lies.
//! Invariants: I20: a state that has been replaced is dead; dead bytes are at most a quarter of the living ones and some slack, else the
//! living are moved together. A block of its own for each would keep a page resident for a few hundred bytes, for it is made in the
//! midst of batches that come and go.
use std::collections::BTreeMap;

use bytes::Bytes;
use mink_types::{BucketEpoch, BucketId, Offset};

use super::book::BucketState;
use crate::entry::EpochStart;

/// Dead bytes that are no trouble.
const DEAD_KEPT: usize = 64 << 10;

/// Where a state lies.
#[derive(Clone, Copy, Debug)]
struct Place {
    at: usize,
    bytes: u32,
}

/// States by bucket. Each is, little-endian: 8 offset, 4 number of epochs, then each epoch: 4 epoch, 8 start; the rest are the producers.
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
        self.remove(&bucket);
        let length = 12 + state.epochs.len() * 12 + state.producers.len();
        // Bounded far below by what a footer takes; one that is not would not be known, as if its snapshot were too long.
        let (Ok(bytes), Ok(epochs)) = (u32::try_from(length), u32::try_from(state.epochs.len())) else {
            return;
        };
        let at = self.bytes.len();
        self.bytes.reserve(length);
        self.bytes.extend_from_slice(&state.at.0.to_le_bytes());
        self.bytes.extend_from_slice(&epochs.to_le_bytes());
        for epoch in &state.epochs {
            self.bytes.extend_from_slice(&epoch.epoch.0.to_le_bytes());
            self.bytes.extend_from_slice(&epoch.start.0.to_le_bytes());
        }
        self.bytes.extend_from_slice(&state.producers);
        self.places.insert(bucket, Place { at, bytes });
    }

    pub(super) fn remove(&mut self, bucket: &BucketId) {
        let Some(place) = self.places.remove(bucket) else { return };
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
        for place in self.places.values_mut() {
            let at = moved.len();
            moved.extend_from_slice(
                self.bytes.get(place.at..place.at + place.bytes as usize).unwrap_or_default(),
            );
            place.at = at;
        }
        (self.bytes, self.dead) = (moved, 0);
    }
}

/// None would mean that these are not the bytes of a state.
fn read(bytes: &[u8]) -> Option<BucketState> {
    let (at, rest) = bytes.split_first_chunk()?;
    let (epochs, mut rest) = rest.split_first_chunk()?;
    let starts = (0..u32::from_le_bytes(*epochs)).map(|_| {
        let (epoch, after) = rest.split_first_chunk()?;
        let (start, after) = after.split_first_chunk()?;
        rest = after;
        let (epoch, start) = (u32::from_le_bytes(*epoch), u64::from_le_bytes(*start));
        Some(EpochStart { epoch: BucketEpoch(epoch), start: Offset(start) })
    });
    let epochs = starts.collect::<Option<Vec<_>>>()?;
    Some(BucketState { at: Offset(u64::from_le_bytes(*at)), producers: Bytes::copy_from_slice(rest), epochs })
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
                let living: usize = model.values().map(|s| 12 + 12 * s.epochs.len() + s.producers.len()).sum();
                prop_assert_eq!(shelf.bytes.len() - shelf.dead, living);
                // One state may have been added since the dead were last looked at.
                prop_assert!(shelf.dead <= living / 4 + DEAD_KEPT + 20_100, "{} dead of {}", shelf.dead, shelf.bytes.len());
            }
        }
    }
}
