//! Objects whose footer cannot be read for certain: each is looked at patiently once, and told of once.
//!
//! Lives on: service runtime; shared by all readers of a node, hence the lock (held for a look-up).
//! Owns: which objects these are.
//! Invariants: P-14: an object is called damaged only after several looks that each had an answer of the store: what it does not answer,
//! or refuses, is no such look. I20: bounded in number; what falls out is looked at and told of again.
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mink_rt::Instant;
use mink_types::ObjectId;

use crate::error::Error;

/// Looks at a footer that is missing or damaged before it is called so, and the pause between them: a gateway that fails over, or
/// bytes that a wire has changed, are not to cost what the footer tells.
pub(super) const LOOKS: u32 = 3;
pub(super) const LOOK_PAUSE: Duration = Duration::from_secs(1);
/// So long nobody looks again: thousands of buckets may share an object.
const CERTAIN_FOR: Duration = Duration::from_mins(1);
/// Objects that are remembered.
const OBJECTS_MAX: usize = 10_000;

#[derive(Debug)]
struct Found {
    error: Error,
    until: Instant,
    told: bool,
}

#[derive(Debug, Default)]
pub(super) struct Damage {
    found: Mutex<BTreeMap<ObjectId, Found>>,
}

impl Damage {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectId, Found>> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is wrong with an object, if that was found a short while ago.
    pub(super) fn known(&self, object: ObjectId, now: Instant) -> Option<Error> {
        self.lock().get(&object).filter(|found| now < found.until).map(|found| found.error.clone())
    }

    pub(super) fn note(&self, object: ObjectId, error: Error, now: Instant) {
        let mut all = self.lock();
        let told = all.get(&object).is_some_and(|found| found.told);
        all.insert(object, Found { error, until: now + CERTAIN_FOR, told });
        while all.len() > OBJECTS_MAX {
            all.pop_first();
        }
    }

    /// The object is whole: somebody has put it back.
    pub(super) fn forget(&self, object: ObjectId) {
        self.lock().remove(&object);
    }

    /// Whether the object is damaged and this is the first time that it is asked.
    pub(super) fn tell(&self, object: ObjectId) -> bool {
        self.lock().get_mut(&object).is_some_and(|found| !std::mem::replace(&mut found.told, true))
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use crate::testing::chain;

    fn id(counter: u64) -> ObjectId {
        ObjectId::Stream { chain: chain(1), counter }
    }

    fn note(damage: &Damage, counter: u64, now: Instant) {
        damage.note(id(counter), Error::new(ErrorKind::Missing { object: id(counter) }, "gone"), now);
    }

    #[test]
    fn p_14_damage_is_told_once_and_looked_at_again_after_a_while() {
        let (damage, now) = (Damage::default(), Instant::ZERO);
        assert!(damage.known(id(1), now).is_none() && !damage.tell(id(1)));
        note(&damage, 1, now);
        assert!(damage.known(id(1), now).is_some());
        assert_eq!([(); 2].map(|()| damage.tell(id(1))), [true, false]);
        let later = now + CERTAIN_FOR;
        assert!(damage.known(id(1), later).is_none());
        note(&damage, 1, later);
        assert!(damage.known(id(1), later).is_some() && !damage.tell(id(1)));
        damage.forget(id(1));
        assert_eq!((damage.known(id(1), later), damage.len()), (None, 0));
        note(&damage, 1, later);
        assert!(damage.tell(id(1)), "damaged anew");
    }

    #[test]
    fn i20_what_is_remembered_is_bounded() {
        let damage = Damage::default();
        for counter in 0..OBJECTS_MAX as u64 + 5 {
            note(&damage, counter, Instant::ZERO);
        }
        assert_eq!(damage.len(), OBJECTS_MAX);
        assert!(damage.known(id(4), Instant::ZERO).is_none() && damage.known(id(5), Instant::ZERO).is_some());
    }
}
