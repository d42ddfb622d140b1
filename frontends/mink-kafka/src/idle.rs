//! Which connections do nothing, so that the one that does nothing for the longest goes first when room is needed.
//!
//! Lives on: the service runtime.
//! Owns: the list of open connections.
//! Invariants: I20; a connection that waits for us is never idle, nor one that did something within [`IDLE_MIN`].
use crate::frame_reader::Count;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// A connection that was silent for less is not closed to make room.
const IDLE_MIN: Duration = Duration::from_secs(5);

/// All are looked at to find one: not more often than this.
const PAUSE: Duration = Duration::from_millis(20);

/// One connection as the list knows it.
#[derive(Clone, Debug)]
pub(crate) struct Presence {
    /// How far it has got.
    pub(crate) count: Arc<Count>,
    /// Tells it to go.
    pub(crate) leave: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    connections: BTreeMap<u64, Presence>,
    searched: Option<Instant>,
}

/// The open connections.
#[derive(Clone, Debug, Default)]
pub(crate) struct Idle(Arc<Mutex<Open>>);

/// A connection's entry; gone when dropped.
#[derive(Debug)]
pub(crate) struct Listed {
    idle: Idle,
    number: u64,
    pub(crate) presence: Presence,
}

impl Idle {
    /// Lists a connection that has just come.
    pub(crate) fn list(&self) -> Listed {
        let presence = Presence { count: Arc::new(Count::new(Instant::now())), leave: Arc::default() };
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = open.next;
        open.next += 1;
        open.connections.insert(number, presence.clone());
        Listed { idle: self.clone(), number, presence }
    }

    /// Tells the connection that was idle for the longest to go; false if none is idle, or if one was looked for just now.
    pub(crate) fn make_room(&self, now: Instant) -> bool {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.searched.is_some_and(|searched| now.saturating_duration_since(searched) < PAUSE) {
            return false;
        }
        open.searched = Some(now);
        let idle = open.connections.iter().filter_map(|(number, presence)| {
            let since = presence.count.idle_since()?;
            (now.saturating_duration_since(since) >= IDLE_MIN).then_some((since, *number))
        });
        let Some((_, number)) = idle.min() else {
            return false;
        };
        if let Some(presence) = open.connections.remove(&number) {
            presence.leave.notify_one();
        }
        true
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        let mut open = self.idle.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.connections.remove(&self.number);
    }
}
