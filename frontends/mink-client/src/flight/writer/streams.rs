//! How many streams the writers of a connection have open at once.
//!
//! Lives on: anywhere; shared by all lanes of all writers of a client.
//! Owns: the places.
//! Invariants: no more streams are open than a node takes calls from one connection, with room for scans; a lane that waits for a place gets
//! one, since idle lanes give theirs up and busy ones do so after a turn.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// Streams of one client. A node takes 128 calls from a connection, and a client follows up to 64 buckets in one scan.
const STREAMS_MAX: usize = 48;
/// Batches after which a busy lane lets others have its place.
pub(super) const TURN_BATCHES: u64 = 64;

/// The places of streams.
#[derive(Debug)]
pub(in crate::flight) struct Streams {
    places: Arc<Semaphore>,
    /// Lanes without a place.
    waiting: AtomicUsize,
    /// Rings when there is one more of them.
    short: Notify,
}

impl Default for Streams {
    fn default() -> Streams {
        Streams {
            places: Arc::new(Semaphore::new(STREAMS_MAX)),
            waiting: AtomicUsize::new(0),
            short: Notify::new(),
        }
    }
}

/// One lane that waits, for as long as it does.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Waiting<'a> {
        count.fetch_add(1, Ordering::SeqCst);
        Waiting(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Streams {
    /// A place, held until it is dropped. Waits while all are taken, first come, first served.
    pub(super) async fn take(&self) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return Some(place);
        }
        let _waiting = Waiting::new(&self.waiting);
        self.short.notify_waiters();
        Arc::clone(&self.places).acquire_owned().await.ok()
    }

    /// Whether a lane waits for a place.
    pub(super) fn is_short(&self) -> bool {
        self.waiting.load(Ordering::SeqCst) > 0
    }

    /// Resolves when a lane begins to wait; made before `is_short` is asked, it misses none.
    pub(super) fn rings(&self) -> Notified<'_> {
        self.short.notified()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[tokio::test]
    async fn who_waits_is_seen_and_gets_the_next_place() {
        let streams = Streams::default();
        let mut held = Vec::new();
        for _ in 0..STREAMS_MAX {
            held.push(streams.take().now_or_never().expect("there is room"));
        }
        let mut rings = Box::pin(streams.rings());
        assert!(!streams.is_short() && rings.as_mut().now_or_never().is_none());
        let mut waits = Box::pin(streams.take());
        assert!(waits.as_mut().now_or_never().is_none());
        assert!(streams.is_short() && rings.now_or_never().is_some());
        held.pop();
        assert!(waits.await.is_some());
        assert!(!streams.is_short());
    }
}
