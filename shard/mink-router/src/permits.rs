//! Byte permits: what a connection takes for a frame's declared length before it reads the body.
//!
//! Lives on: the service runtime takes and, as a rule, gives back; a permit travels with the bytes it stands for.
//! Owns: the count of bytes that requests may hold.
//! Invariants: I20: the bytes of requests that are read and not yet durable stay below the budget. Room is given in the order
//! it was asked for, so a large frame is not starved by small ones.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Permits are counted in units of this many bytes, so that a budget of terabytes fits the semaphore.
const UNIT_BYTES: u64 = 1024;

/// The budget of bytes that requests may hold.
#[derive(Clone, Debug)]
pub struct BytePermits {
    semaphore: Arc<Semaphore>,
    units: u32,
    /// Who waits for bytes now.
    waiting: Arc<AtomicUsize>,
}

/// Bytes held, of one budget or of two; given back when dropped.
#[derive(Debug, Default)]
pub struct BytePermit([Option<OwnedSemaphorePermit>; 2]);

impl BytePermit {
    /// Splits off the part that stands for `bytes`, or what is left of it: a request's batches part ways.
    #[must_use]
    pub fn split(&mut self, bytes: u64) -> BytePermit {
        let mut units = usize::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(usize::MAX);
        BytePermit(self.0.each_mut().map(|part| {
            let part = part.as_mut()?;
            let taken = units.min(part.num_permits());
            units -= taken;
            part.split(taken)
        }))
    }

    /// Adds what another permit holds. What is of a third budget is given back.
    pub fn join(&mut self, other: BytePermit) {
        for part in other.0.into_iter().flatten() {
            let own = |held: &Option<OwnedSemaphorePermit>| {
                held.as_ref().is_some_and(|held| Arc::ptr_eq(held.semaphore(), part.semaphore()))
            };
            match self.0.iter().position(own).or_else(|| self.0.iter().position(Option::is_none)) {
                Some(at) => match self.0.get_mut(at) {
                    Some(Some(held)) => held.merge(part),
                    Some(none) => *none = Some(part),
                    None => {}
                },
                None => debug_assert!(false, "a permit of a third budget"),
            }
        }
    }

    /// Bytes that it stands for, in whole units.
    pub fn bytes(&self) -> u64 {
        self.0.iter().flatten().map(|part| part.num_permits() as u64 * UNIT_BYTES).sum()
    }
}

impl BytePermits {
    /// A budget of `bytes`, rounded up to whole units.
    pub fn new(bytes: u64) -> BytePermits {
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX).max(1);
        let places = usize::try_from(units).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS);
        BytePermits { semaphore: Arc::new(Semaphore::new(places)), units, waiting: Arc::default() }
    }

    /// Waits for `bytes`. A request larger than the whole budget takes all of it: it passes alone.
    pub async fn take(&self, bytes: u64) -> BytePermit {
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX).clamp(1, self.units);
        let semaphore = Arc::clone(&self.semaphore);
        if let Ok(permit) = Arc::clone(&semaphore).try_acquire_many_owned(units) {
            return BytePermit([Some(permit), None]);
        }
        let _waits = Waits::new(&self.waiting);
        // The semaphore is never closed; were it, an unbounded permit would be wrong, and none is what it says.
        BytePermit([semaphore.acquire_many_owned(units).await.ok(), None])
    }

    /// Takes `bytes` if they are free and nobody waits for them.
    pub fn try_take(&self, bytes: u64) -> Option<BytePermit> {
        let units = u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX).clamp(1, self.units);
        let permit = Arc::clone(&self.semaphore).try_acquire_many_owned(units).ok()?;
        Some(BytePermit([Some(permit), None]))
    }

    /// Whether somebody waits for bytes.
    pub fn is_short(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Bytes that are free now.
    pub fn free_bytes(&self) -> u64 {
        self.semaphore.available_permits() as u64 * UNIT_BYTES
    }

    /// The whole budget in bytes.
    pub fn total_bytes(&self) -> u64 {
        u64::from(self.units) * UNIT_BYTES
    }
}

/// Counts one who waits, also when the wait is given up.
struct Waits<'a>(&'a AtomicUsize);

impl Waits<'_> {
    fn new(waiting: &AtomicUsize) -> Waits<'_> {
        waiting.fetch_add(1, Ordering::Relaxed);
        Waits(waiting)
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use futures::executor::block_on;

    #[test]
    fn i20_bytes_beyond_the_budget_wait() {
        let permits = BytePermits::new(10 * UNIT_BYTES);
        let held = block_on(permits.take(8 * UNIT_BYTES));
        assert!(permits.take(3 * UNIT_BYTES).now_or_never().is_none());
        let mut waits = Box::pin(permits.take(3 * UNIT_BYTES));
        assert!(!permits.is_short() && waits.as_mut().now_or_never().is_none() && permits.is_short());
        drop(waits);
        assert!(!permits.is_short(), "who gave up waits no more");
        drop(held);
        assert!(permits.take(3 * UNIT_BYTES).now_or_never().is_some());
        assert_eq!(permits.free_bytes(), 10 * UNIT_BYTES);
    }

    #[test]
    fn i20_parts_of_a_permit_hold_no_more_than_the_whole() {
        let permits = BytePermits::new(10 * UNIT_BYTES);
        let mut whole = block_on(permits.take(4 * UNIT_BYTES));
        let part = whole.split(3 * UNIT_BYTES);
        let rest = whole.split(100 * UNIT_BYTES);
        drop(whole);
        assert_eq!(permits.free_bytes(), 6 * UNIT_BYTES);
        drop(part);
        assert_eq!(permits.free_bytes(), 9 * UNIT_BYTES);
        drop(rest);
        assert_eq!(permits.free_bytes(), 10 * UNIT_BYTES);
    }

    #[test]
    fn i20_a_permit_of_two_budgets_gives_back_to_each_what_it_took() {
        let (first, second) = (BytePermits::new(10 * UNIT_BYTES), BytePermits::new(10 * UNIT_BYTES));
        let take = |permits: &BytePermits, units: u64| permits.try_take(units * UNIT_BYTES).expect("room");
        let mut held = BytePermit::default();
        for more in [take(&first, 2), take(&second, 3), take(&first, 1)] {
            held.join(more);
        }
        assert_eq!(held.bytes(), 6 * UNIT_BYTES);
        let part = held.split(4 * UNIT_BYTES);
        assert_eq!((part.bytes(), held.bytes()), (4 * UNIT_BYTES, 2 * UNIT_BYTES));
        drop(held);
        assert_eq!((first.free_bytes(), second.free_bytes()), (7 * UNIT_BYTES, 9 * UNIT_BYTES));
        drop(part);
        assert_eq!((first.free_bytes(), second.free_bytes()), (10 * UNIT_BYTES, 10 * UNIT_BYTES));
        assert!(first.try_take(11 * UNIT_BYTES).is_some_and(|all| all.bytes() == 10 * UNIT_BYTES));
    }

    #[test]
    fn a_frame_larger_than_the_budget_passes_alone() {
        let permits = BytePermits::new(UNIT_BYTES);
        let held = block_on(permits.take(1 << 30));
        assert!(permits.take(1).now_or_never().is_none());
        drop(held);
    }
}
