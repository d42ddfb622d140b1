//! What a core shows of itself to the outside: how often it polls, what it polls now, and the answer to the watchdog.
//! Lives on: written by its core, read by the watchdog and by metrics.
//! Owns: one core's counters; the only state of a core that other threads may read.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::Instant;

/// Alone on its cache lines: a neighbour's counter must not slow a core down.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Beat {
    /// Polls of tasks (the beat task's own are not counted). Only the core writes it.
    polls: AtomicU64,
    /// Index into `names` of the task that is being polled, plus one; 0 for none. Only the core writes it.
    running: AtomicU32,
    /// Last sequence that the watchdog posted, and the last that the core answered.
    posted: AtomicU64,
    answered: AtomicU64,
    /// Of the task that answers. It stays here when it is used: a wake that its executor lost must not be the last one.
    waker: Mutex<Option<Waker>>,
    /// Nanoseconds spent parked, and since when it is parked now (0: it is not).
    parked_nanos: AtomicU64,
    parked_since: AtomicU64,
    ended: AtomicBool,
    stalls: AtomicU64,
    parked_stalls: AtomicU64,
    foreign_wakes: AtomicU64,
    /// The core's thread as the kernel knows it; 0 where that is unknown.
    thread: AtomicI32,
    /// Nanoseconds that the thread had stood in the system's queue for CPU time when the watchdog posted last.
    waited_at_post: AtomicU64,
    names: Mutex<Vec<&'static str>>,
}

/// What the watchdog reads at one look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BeatReading {
    pub(crate) polls: u64,
    pub(crate) answered: bool,
}

/// How long the watchdog looks whether a silent core's thread gets CPU time.
const STARVED_LOOK: Duration = Duration::from_millis(5);

/// CPU time of a thread since its start, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    ran: u64,
    /// Time in which it could have run and others did.
    waited: u64,
}

/// Who keeps a core from answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Culprit {
    /// The task with this name does not return.
    Task(&'static str),
    /// The thread sleeps although it was woken for the watchdog's post, and runs no task.
    Executor,
    /// The thread could run, but the system gives it no time (or this system does not tell).
    System,
}

/// Counters of one core, all since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreStats {
    /// Polls of tasks.
    pub polls: u64,
    /// Time in which the core had nothing to do and was parked. Zero in the simulator, and on glommio, which does not tell.
    pub parked: Duration,
    /// Times in which the core did not answer the watchdog for 50 ms.
    pub stalls: u64,
    /// Those of the stalls in which the core's thread slept while it ran no task: its executor had parked it although
    /// it had something to do. The others blocked in a task, or got no time from the system. Seen on Linux alone.
    pub parked_stalls: u64,
    /// Wakes the watchdog sent to a core that did not answer.
    pub foreign_wakes: u64,
}

impl Beat {
    /// A small number for a task's name, which the core can store with one instruction.
    pub(crate) fn name_id(&self, name: &'static str) -> u32 {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let index = names.iter().position(|known| *known == name).unwrap_or_else(|| {
            names.push(name);
            names.len() - 1
        });
        u32::try_from(index).map_or(0, |index| index.saturating_add(1))
    }

    pub(crate) fn enter(&self, name_id: u32) {
        self.running.store(name_id, Ordering::Relaxed);
        // One writer: no read-modify-write, which would lock the bus on every poll.
        self.polls.store(self.polls.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    pub(crate) fn leave(&self) {
        self.running.store(0, Ordering::Relaxed);
    }

    pub(crate) fn park(&self, now: Instant) {
        self.parked_since.store(now.as_nanos(), Ordering::Relaxed);
    }

    pub(crate) fn unpark(&self, now: Instant) {
        let since = self.parked_since.swap(0, Ordering::Relaxed);
        if since != 0 {
            let total = self.parked_nanos.load(Ordering::Relaxed);
            let parked = now.as_nanos().saturating_sub(since);
            self.parked_nanos.store(total.saturating_add(parked), Ordering::Relaxed);
        }
    }

    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Name of the task that is being polled now.
    pub(crate) fn running(&self) -> Option<&'static str> {
        let index = usize::try_from(self.running.load(Ordering::Relaxed).checked_sub(1)?).ok()?;
        self.names.lock().unwrap_or_else(PoisonError::into_inner).get(index).copied()
    }

    pub(crate) fn read(&self) -> BeatReading {
        BeatReading {
            polls: self.polls.load(Ordering::Relaxed),
            answered: self.answered.load(Ordering::Acquire) == self.posted.load(Ordering::Relaxed),
        }
    }

    /// Asks the core for an answer. Only the watchdog calls it.
    pub(crate) fn post(&self) {
        let waited = self.schedule().map_or(0, |schedule| schedule.waited);
        self.waited_at_post.store(waited, Ordering::Relaxed);
        self.posted.store(self.posted.load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
        self.wake();
    }

    /// Asks again a core that does not answer: a wake from another thread ends a park.
    pub(crate) fn wake_again(&self) {
        self.foreign_wakes.fetch_add(1, Ordering::Relaxed);
        self.wake();
    }

    /// The lock is held for the wake, or the core might end meanwhile and its executor with it; the core itself takes it
    /// once for each answer.
    fn wake(&self) {
        if let Some(waker) = &*self.waker.lock().unwrap_or_else(PoisonError::into_inner) {
            waker.wake_by_ref();
        }
    }

    fn register(&self, waker: &Waker) {
        let mut kept = self.waker.lock().unwrap_or_else(PoisonError::into_inner);
        if !kept.as_ref().is_some_and(|kept| kept.will_wake(waker)) {
            *kept = Some(waker.clone());
        }
    }

    pub(crate) fn count_stall(&self, culprit: Culprit) {
        self.stalls.fetch_add(1, Ordering::Relaxed);
        if culprit == Culprit::Executor {
            self.parked_stalls.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Called on the core's own thread.
    pub(crate) fn on_this_thread(&self) {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        self.thread.store(rustix::thread::gettid().as_raw_nonzero().get(), Ordering::Relaxed);
    }

    /// Who has kept the core from answering for the time `silent` since the last post, as far as can be told from outside.
    pub(crate) fn culprit(&self, silent: Duration) -> Culprit {
        if let Some(task) = self.running() {
            let starved = self.was_starved(silent) || self.is_starved();
            return if starved { Culprit::System } else { Culprit::Task(task) };
        }
        // `pid (name) state ...`; the name may hold anything but ends at the last parenthesis.
        let stat = std::fs::read_to_string(self.proc_file("stat")).unwrap_or_default();
        match stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next()) {
            // Not if it has answered meanwhile and sleeps by right.
            Some('S') if !self.read().answered => Culprit::Executor,
            _ => Culprit::System,
        }
    }

    /// Whether the core's thread stood in the queue for CPU time for at least half of the time since the last post.
    fn was_starved(&self, silent: Duration) -> bool {
        let waited_before = self.waited_at_post.load(Ordering::Relaxed);
        let waited = self.schedule().map_or(0, |schedule| schedule.waited.saturating_sub(waited_before));
        Duration::from_nanos(waited) * 2 >= silent
    }

    /// Whether the core's thread could run and is given less than half of the CPU time now: a wait that lasts is not in the
    /// system's sums yet. A thread that waits in a system call gets none because it wants none, and is not starved.
    fn is_starved(&self) -> bool {
        let before = self.schedule();
        std::thread::sleep(STARVED_LOOK);
        let (Some(before), Some(after)) = (before, self.schedule()) else { return false };
        let stat = std::fs::read_to_string(self.proc_file("stat")).unwrap_or_default();
        let runnable = stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('R'));
        runnable && Duration::from_nanos(after.ran.saturating_sub(before.ran)) * 2 < STARVED_LOOK
    }

    /// What the system has given the core's thread so far; none where it does not tell.
    fn schedule(&self) -> Option<Schedule> {
        // `nanoseconds-run nanoseconds-waited slices`
        let text = std::fs::read_to_string(self.proc_file("schedstat")).ok()?;
        let mut numbers = text.split_whitespace().map(str::parse);
        Some(Schedule { ran: numbers.next()?.ok()?, waited: numbers.next()?.ok()? })
    }

    fn proc_file(&self, name: &str) -> String {
        format!("/proc/self/task/{}/{name}", self.thread.load(Ordering::Relaxed))
    }

    pub(crate) fn stats(&self, now: Instant) -> CoreStats {
        let total = self.parked_nanos.load(Ordering::Relaxed);
        let since = self.parked_since.load(Ordering::Relaxed);
        let current = if since == 0 { 0 } else { now.as_nanos().saturating_sub(since) };
        CoreStats {
            polls: self.polls.load(Ordering::Relaxed),
            parked: Duration::from_nanos(total.saturating_add(current)),
            stalls: self.stalls.load(Ordering::Relaxed),
            parked_stalls: self.parked_stalls.load(Ordering::Relaxed),
            foreign_wakes: self.foreign_wakes.load(Ordering::Relaxed),
        }
    }
}

/// The task on the core that answers the watchdog. It never ends by itself.
#[derive(Debug)]
pub(crate) struct Answer(pub(crate) Arc<Beat>);

impl Future for Answer {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // Registered before the sequence is read, so that no post falls between.
        self.0.register(cx.waker());
        self.0.answered.store(self.0.posted.load(Ordering::Acquire), Ordering::Release);
        Poll::Pending
    }
}

/// A core that has ended needs no wakes, and its executor's memory should go with it.
impl Drop for Answer {
    fn drop(&mut self) {
        self.0.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}
