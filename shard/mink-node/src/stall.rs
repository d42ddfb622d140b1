//! Notices that what is written does not become durable any more: the store is away, takes nothing, or its place is gone.
//!
//! Lives on: one task on the service runtime; `/readyz` reads what it found.
//! Owns: since when the WAL stands still.     Talks to: the WAL's numbers.
//! Invariants: I7, I19: writes wait for the store without an error, so the node must say why, and what to do. One line when it begins, one
//! when it is over.
use crate::context::Context;
use mink_object::StoreHealth;
use mink_rt::Instant;
use s3stream::WalStats;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A PUT may take its time, and a store may be away for a moment: beyond this it is told.
pub(crate) const STALLED_AFTER: Duration = Duration::from_secs(5);

const LOOK_EVERY: Duration = Duration::from_secs(1);
const _: () = assert!(LOOK_EVERY.as_millis() * 2 < STALLED_AFTER.as_millis());

/// What to do about it.
pub(crate) const REMEDY: &str =
    "check that it is there, can be reached and has room; writes wait until then and none is lost";

/// Since when the oldest object of the WAL waits, while none becomes durable.
#[derive(Debug, Default)]
pub(crate) struct Stall(Mutex<Standstill>);

#[derive(Debug, Default)]
struct Standstill {
    durable_below: u64,
    since: Option<Instant>,
    told: bool,
}

/// What a look found that must be told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Told {
    Begun(Duration),
    Over,
}

impl Standstill {
    fn look(&mut self, wal: &WalStats, now: Instant) -> Option<Told> {
        if wal.in_flight == 0 || wal.durable_below != self.durable_below {
            self.durable_below = wal.durable_below;
            self.since = (wal.in_flight > 0).then_some(now);
            return std::mem::take(&mut self.told).then_some(Told::Over);
        }
        let since = *self.since.get_or_insert(now);
        let lasts = too_long(since, now)?;
        (!std::mem::replace(&mut self.told, true)).then_some(Told::Begun(lasts))
    }
}

fn too_long(since: Instant, now: Instant) -> Option<Duration> {
    let lasts = now - since;
    (lasts >= STALLED_AFTER).then_some(lasts)
}

impl Stall {
    fn look(&self, wal: &WalStats, now: Instant) -> Option<Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).look(wal, now)
    }

    /// How long nothing has become durable, if that is too long.
    pub(crate) fn lasts(&self, now: Instant) -> Option<Duration> {
        let since = self.0.lock().unwrap_or_else(PoisonError::into_inner).since;
        too_long(since?, now)
    }
}

/// Runs until the node ends.
pub(crate) async fn watch(context: Arc<Context>) {
    loop {
        context.service.sleep(LOOK_EVERY).await;
        let store = &context.config.stores.wal;
        match context.stall.look(&context.wal.stats(), context.service.now()) {
            // A store that knows what it lacks has said so.
            Some(Told::Begun(lasts)) if store.health() == StoreHealth::Well => {
                let store = store.address();
                tracing::warn!(%store, ?lasts, remedy = REMEDY, "the store takes no writes");
            }
            Some(Told::Over) => tracing::info!(store = %store.address(), "the store has taken a write again"),
            Some(Told::Begun(_)) | None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wal(durable_below: u64, in_flight: usize) -> WalStats {
        WalStats { durable_below, in_flight, ..WalStats::default() }
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn a_wal_that_stands_still_is_told_once_and_its_end_too() {
        let stall = Stall::default();
        assert_eq!(stall.look(&wal(7, 1), at(10)), None);
        assert_eq!(stall.look(&wal(7, 3), at(14)), None);
        assert_eq!(stall.lasts(at(14)), None);
        assert_eq!(stall.look(&wal(7, 3), at(15)), Some(Told::Begun(Duration::from_secs(5))));
        assert_eq!(stall.look(&wal(7, 3), at(60)), None);
        assert_eq!(stall.lasts(at(60)), Some(Duration::from_secs(50)));
        assert_eq!(stall.look(&wal(8, 2), at(61)), Some(Told::Over));
        assert_eq!((stall.look(&wal(8, 2), at(62)), stall.lasts(at(62))), (None, None));
    }

    #[test]
    fn a_wal_that_goes_on_or_rests_never_stands_still() {
        let stall = Stall::default();
        for second in 0..100 {
            // Slow, but each object becomes durable in its time.
            assert_eq!(stall.look(&wal(second / 4, 8), at(second)), None);
        }
        for second in 100..200 {
            assert_eq!(stall.look(&wal(25, 0), at(second)), None);
        }
        assert_eq!(stall.lasts(at(1_000)), None);
    }
}
