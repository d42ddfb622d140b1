//! How far each connection has got, and which one goes when room is needed.
//!
//! Lives on: the service runtime.
//! Owns: the list of open connections.
//! Invariants: I20: whatever a connection waits for from its client has an end, and while it waits it may have to make room. One whose
//! request is being worked on is never sent away.
use crate::config::HttpConfig;
use crate::counters::Closed;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Who has not taken his answer by then, and takes nothing now, goes when another answer needs the memory.
pub(crate) const TAKEN_WITHIN: Duration = Duration::from_secs(2);

/// What a connection waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// The first byte of its first request.
    New,
    /// The rest of a head.
    Head,
    /// The rest of a body.
    Body,
    /// Us.
    Working,
    /// The next request, or that the last answer is taken.
    Idle,
}

#[derive(Debug)]
struct Progress {
    phase: Phase,
    since: Instant,
    answered: Instant,
    /// The client takes nothing of its answer since then.
    stalled: Option<Instant>,
    sent_away: Option<Closed>,
}

/// One connection as the list knows it.
#[derive(Debug)]
pub(crate) struct Presence {
    progress: Mutex<Progress>,
    leave: Notify,
}

impl Presence {
    fn new() -> Presence {
        let now = Instant::now();
        let progress =
            Progress { phase: Phase::New, since: now, answered: now, stalled: None, sent_away: None };
        Presence { progress: Mutex::new(progress), leave: Notify::new() }
    }

    fn with<T>(&self, change: impl FnOnce(&mut Progress) -> T) -> T {
        change(&mut self.progress.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn enter(&self, phase: Phase) {
        let since = Instant::now();
        self.with(|progress| (progress.phase, progress.since) = (phase, since));
    }

    /// Bytes have come.
    pub(crate) fn note_read(&self) {
        self.with(|progress| {
            if matches!(progress.phase, Phase::New | Phase::Idle) {
                (progress.phase, progress.since) = (Phase::Head, Instant::now());
            }
        });
    }

    /// Bytes of an answer have gone.
    pub(crate) fn note_written(&self) {
        self.with(|progress| {
            progress.stalled = None;
            if progress.phase == Phase::Idle {
                progress.since = Instant::now();
            }
        });
    }

    /// Bytes of an answer do not go.
    pub(crate) fn note_stalled(&self) {
        self.with(|progress| progress.stalled = progress.stalled.or_else(|| Some(Instant::now())));
    }

    /// A head is there, and its body is awaited.
    pub(crate) fn note_head(&self) {
        self.enter(Phase::Body);
    }

    /// The whole request is there.
    pub(crate) fn note_request(&self) {
        self.enter(Phase::Working);
    }

    /// The answer is there, to be sent.
    pub(crate) fn note_answer(&self) {
        self.enter(Phase::Idle);
        self.with(|progress| progress.answered = progress.since);
    }

    /// When the connection has to be closed, if nothing happens until then, and why. A body's deadline has an answer of its own.
    pub(crate) fn deadline(&self, config: &HttpConfig) -> Option<(Instant, Closed)> {
        self.with(|progress| {
            if let Some(stalled) = progress.stalled {
                return Some((stalled + config.write_deadline, Closed::WriteDeadline));
            }
            match progress.phase {
                Phase::New | Phase::Head => {
                    Some((progress.since + config.head_deadline, Closed::HeadDeadline))
                }
                Phase::Idle => Some((progress.since + config.idle_deadline, Closed::Idle)),
                Phase::Body | Phase::Working => None,
            }
        })
    }

    /// Completes when the connection is sent away.
    pub(crate) async fn sent_away(&self) -> Closed {
        loop {
            let told = self.leave.notified();
            if let Some(why) = self.with(|progress| progress.sent_away) {
                return why;
            }
            told.await;
        }
    }

    fn send_away(&self, why: Closed) {
        self.with(|progress| progress.sent_away = Some(why));
        self.leave.notify_waiters();
    }

    /// Since when it keeps us waiting, unless we keep it waiting or it goes already.
    fn silent_since(&self) -> Option<Instant> {
        self.with(|progress| match progress.sent_away {
            None if progress.phase != Phase::Working => Some(progress.stalled.unwrap_or(progress.since)),
            _ => None,
        })
    }

    /// When it got the answer of which it takes nothing now.
    fn answered_in_vain(&self) -> Option<Instant> {
        self.with(|progress| match (progress.stalled, progress.sent_away) {
            (Some(_), None) => Some(progress.answered),
            _ => None,
        })
    }
}

#[derive(Debug, Default)]
struct List {
    next: u64,
    connections: BTreeMap<u64, Arc<Presence>>,
}

/// The open connections.
#[derive(Clone, Debug, Default)]
pub(crate) struct Open(Arc<Mutex<List>>);

/// A connection's entry; gone when dropped.
#[derive(Debug)]
pub(crate) struct Listed {
    open: Open,
    number: u64,
    pub(crate) presence: Arc<Presence>,
}

impl Open {
    /// Lists a connection that has just come.
    pub(crate) fn list(&self) -> Listed {
        let presence = Arc::new(Presence::new());
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = list.next;
        list.next += 1;
        list.connections.insert(number, Arc::clone(&presence));
        Listed { open: self.clone(), number, presence }
    }

    /// Sends the connection away that was silent for the longest; false if none is silent.
    pub(crate) fn make_room(&self) -> bool {
        self.send_away(Closed::MadeRoom, Presence::silent_since)
    }

    /// Sends the connection away that has had its answer for the longest and takes nothing of it, if any has for [`TAKEN_WITHIN`].
    pub(crate) fn make_room_for_an_answer(&self) -> bool {
        let now = Instant::now();
        self.send_away(Closed::WriteDeadline, |presence| {
            let answered = presence.answered_in_vain()?;
            (now.saturating_duration_since(answered) >= TAKEN_WITHIN).then_some(answered)
        })
    }

    fn send_away(&self, why: Closed, since: impl Fn(&Presence) -> Option<Instant>) -> bool {
        let list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let candidates = list.connections.values().filter_map(|presence| Some((since(presence)?, presence)));
        let Some((_, oldest)) = candidates.min_by_key(|(since, _)| *since) else { return false };
        oldest.send_away(why);
        true
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.open.0.lock().unwrap_or_else(PoisonError::into_inner).connections.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    fn goes(listed: &Listed) -> Option<Closed> {
        listed.presence.sent_away().now_or_never()
    }

    #[tokio::test(start_paused = true)]
    async fn i20_the_one_that_was_silent_for_the_longest_goes_and_none_that_is_worked_on() {
        let open = Open::default();
        let [working, half, idle] = [open.list(), open.list(), open.list()];
        working.presence.note_request();
        tokio::time::advance(Duration::from_secs(1)).await;
        half.presence.note_read();
        tokio::time::advance(Duration::from_secs(1)).await;
        idle.presence.note_answer();
        assert!(open.make_room() && goes(&half) == Some(Closed::MadeRoom) && goes(&idle).is_none());
        assert!(open.make_room() && goes(&idle) == Some(Closed::MadeRoom));
        assert!(!open.make_room() && goes(&working).is_none());
        drop((half, idle));
        assert_eq!(open.0.lock().expect("sound").connections.len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn i20_only_who_takes_nothing_makes_room_for_an_answer() {
        let open = Open::default();
        let [stalled, slow, taking] = [open.list(), open.list(), open.list()];
        for listed in [&stalled, &slow, &taking] {
            listed.presence.note_answer();
            listed.presence.note_stalled();
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert!(!open.make_room_for_an_answer(), "they have had no time to take it");
        tokio::time::advance(TAKEN_WITHIN).await;
        taking.presence.note_written();
        slow.presence.note_written();
        slow.presence.note_stalled();
        assert!(open.make_room_for_an_answer() && goes(&stalled) == Some(Closed::WriteDeadline));
        assert!(open.make_room_for_an_answer() && goes(&slow) == Some(Closed::WriteDeadline));
        assert!(!open.make_room_for_an_answer() && goes(&taking).is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn each_wait_for_a_client_has_its_own_end() {
        let (config, start) = (HttpConfig::default(), Instant::now());
        let presence = Presence::new();
        let deadline = || presence.deadline(&config);
        assert_eq!(deadline(), Some((start + config.head_deadline, Closed::HeadDeadline)));
        let second = Duration::from_secs(1);
        tokio::time::advance(second).await;
        presence.note_read();
        tokio::time::advance(second).await;
        presence.note_read();
        assert_eq!(deadline(), Some((start + second + config.head_deadline, Closed::HeadDeadline)));
        presence.note_request();
        assert_eq!(deadline(), None);
        presence.note_answer();
        assert_eq!(deadline(), Some((start + second * 2 + config.idle_deadline, Closed::Idle)));
        presence.note_stalled();
        assert_eq!(deadline(), Some((start + second * 2 + config.write_deadline, Closed::WriteDeadline)));
        presence.note_written();
        assert_eq!(deadline(), Some((start + second * 2 + config.idle_deadline, Closed::Idle)));
    }
}
