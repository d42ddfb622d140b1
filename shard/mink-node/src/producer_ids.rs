//! Producer ids without asking anyone: incarnation x 2^24 + counter.
//!
//! Lives on: the service runtime.
//! Owns: the counter of this incarnation.
//! Invariants: I6: no id is ever given twice: an incarnation is unique, and a counter that is used up gives no more. Ids per second
//! are bounded, since each may cost every bucket a row of its producer table.
use mink_rt::Instant;
use mink_types::{Incarnation, ProducerId};
use std::time::Duration;

/// Bits of the counter.
const COUNTER_BITS: u32 = 24;

/// Why there is no id now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NoId {
    /// Too many were asked for; there is one after this time.
    After(Duration),
    /// This incarnation has given all 2^24; a restart of the node makes more.
    UsedUp,
}

/// The producer ids of one incarnation.
#[derive(Debug)]
pub(crate) struct ProducerIds {
    incarnation: Incarnation,
    next: u64,
    per_second: u32,
    window: Instant,
    given: u32,
}

impl ProducerIds {
    /// Ids of `incarnation`, at most `per_second` of them (at least one).
    pub(crate) fn new(incarnation: Incarnation, per_second: u32, now: Instant) -> ProducerIds {
        ProducerIds { incarnation, next: 0, per_second: per_second.max(1), window: now, given: 0 }
    }

    /// The next id.
    pub(crate) fn next(&mut self, now: Instant) -> Result<ProducerId, NoId> {
        let age = now.duration_since(self.window);
        if age >= Duration::from_secs(1) {
            (self.window, self.given) = (now, 0);
        } else if self.given >= self.per_second {
            return Err(NoId::After(Duration::from_secs(1).saturating_sub(age)));
        }
        let id = id(self.incarnation, self.next).ok_or(NoId::UsedUp)?;
        self.next += 1;
        self.given += 1;
        Ok(id)
    }
}

/// `incarnation x 2^24 + counter`; none when either does not fit a positive `i64`.
fn id(incarnation: Incarnation, counter: u64) -> Option<ProducerId> {
    let fits = counter < 1 << COUNTER_BITS && incarnation.0 < 1 << (63 - COUNTER_BITS);
    let value = fits.then_some(incarnation.0 << COUNTER_BITS | counter)?;
    i64::try_from(value).ok().map(ProducerId)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i6_ids_of_two_incarnations_never_meet() {
        assert_eq!(id(Incarnation(1), (1 << 24) - 1), Some(ProducerId((2 << 24) - 1)));
        assert_eq!(id(Incarnation(2), 0), Some(ProducerId(2 << 24)));
        assert_eq!(id(Incarnation(1), 1 << 24), None);
        assert_eq!(id(Incarnation(1 << 40), 0), None);
    }

    #[test]
    fn ids_per_second_are_bounded() {
        let start = Instant::ZERO;
        let mut ids = ProducerIds::new(Incarnation(3), 2, start);
        assert!(ids.next(start).is_ok() && ids.next(start).is_ok());
        assert_eq!(ids.next(start), Err(NoId::After(Duration::from_secs(1))));
        assert!(ids.next(start + Duration::from_secs(1)).is_ok());
    }
}
