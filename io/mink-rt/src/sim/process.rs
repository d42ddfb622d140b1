//! Processes of a simulation: groups of tasks that can be killed or paused, each with clocks of its own.
//! Lives on: the simulation's thread.
//! Owns: which processes live, which are paused, what was woken meanwhile.     Talks to: the shared state.
//! Invariants: nothing of a killed process runs again, nothing of a paused one until it is resumed; clocks go on meanwhile, as
//! those of a stopped machine's boot-time clock do.

use crate::sim::SimRuntime;
use crate::sim::state::{START, Shared, TaskId};
use crate::{Instant, Runtime};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Parts of a million by which a clock may be off.
const MILLION: u128 = 1_000_000;

/// A process of the simulation, in the order of creation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ProcessId(u64);

/// The process of the root: it is never paused or killed, and its clocks are the virtual time itself.
pub(super) const WORLD: ProcessId = ProcessId(0);

/// How the clocks of a process differ from virtual time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SimClock {
    /// The boot-time clock is so far ahead when the process begins.
    pub boot_ahead: Duration,
    /// The boot-time clock goes faster by so many parts of a million (slower when negative).
    pub drift_ppm: i32,
    /// The wall clock is so many milliseconds ahead.
    pub wall_ahead_ms: i64,
}

/// Clocks as they are read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    ahead: Duration,
    /// Nanoseconds of this clock in a million of virtual time; zero for a clock that is virtual time itself.
    rate: u128,
    pub(super) wall_ahead_ms: i64,
}

impl Clock {
    fn new(clock: SimClock) -> Self {
        let drift = u128::from(clock.drift_ppm.unsigned_abs()).min(MILLION / 2);
        let rate = if clock.drift_ppm < 0 { MILLION - drift } else { MILLION + drift };
        Self { ahead: clock.boot_ahead, rate, wall_ahead_ms: clock.wall_ahead_ms }
    }

    pub(super) fn read(self, now: Instant) -> Instant {
        if self.rate == 0 {
            return now;
        }
        let passed = now.duration_since(START).as_nanos().saturating_mul(self.rate) / MILLION;
        START + self.ahead + Duration::from_nanos(u64::try_from(passed).unwrap_or(u64::MAX))
    }

    /// Virtual time in which this clock goes on by at least `duration`.
    pub(super) fn to_virtual(self, duration: Duration) -> Duration {
        if self.rate == 0 || duration.is_zero() {
            return duration;
        }
        let nanos = (duration.as_nanos().saturating_mul(MILLION) / self.rate).saturating_add(2);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

#[derive(Debug, Default)]
struct Process {
    clock: Clock,
    dead: bool,
    /// While it is paused: who was woken.
    held: Option<BTreeSet<TaskId>>,
}

/// Runnable tasks and whose they are.
pub(super) type Ready = BTreeMap<TaskId, ProcessId>;

/// The processes beside the world's.
#[derive(Debug, Default)]
pub(super) struct Processes {
    all: BTreeMap<ProcessId, Process>,
}

impl Processes {
    pub(super) fn add(&mut self, clock: Clock) -> ProcessId {
        let id = ProcessId(self.all.len() as u64 + 1);
        self.all.insert(id, Process { clock, ..Process::default() });
        id
    }

    pub(super) fn clock(&self, id: ProcessId) -> Clock {
        self.all.get(&id).map_or_else(Clock::default, |process| process.clock)
    }

    pub(super) fn is_alive(&self, id: ProcessId) -> bool {
        self.all.get(&id).is_none_or(|process| !process.dead)
    }

    pub(super) fn set_wall_ahead(&mut self, id: ProcessId, ms: i64) {
        if let Some(process) = self.all.get_mut(&id) {
            process.clock.wall_ahead_ms = ms;
        }
    }

    /// Whether it lived until now.
    pub(super) fn kill(&mut self, id: ProcessId) -> bool {
        let Some(process) = self.all.get_mut(&id) else { return false };
        process.held = None;
        !std::mem::replace(&mut process.dead, true)
    }

    /// Keeps those of the process back that could run now, and all that are woken from here on.
    pub(super) fn pause(&mut self, id: ProcessId, ready: &mut Ready) {
        let Some(process) = self.all.get_mut(&id).filter(|process| !process.dead) else { return };
        let held = process.held.get_or_insert_default();
        held.extend(ready.extract_if(.., |_, of| *of == id).map(|(task, _)| task));
    }

    pub(super) fn resume(&mut self, id: ProcessId, ready: &mut Ready) {
        let held = self.all.get_mut(&id).and_then(|process| process.held.take());
        ready.extend(held.into_iter().flatten().map(|task| (task, id)));
    }

    /// Keeps a wake back if the process is paused; drops it if it is dead.
    pub(super) fn hold(&mut self, id: ProcessId, task: TaskId) -> bool {
        let Some(process) = self.all.get_mut(&id) else { return false };
        if process.dead {
            return true;
        }
        match &mut process.held {
            Some(held) => {
                held.insert(task);
                true
            }
            None => false,
        }
    }

    pub(super) fn forget(&mut self, id: ProcessId, task: TaskId) {
        if let Some(held) = self.all.get_mut(&id).and_then(|process| process.held.as_mut()) {
            held.remove(&task);
        }
    }
}

/// The handle of a simulation's root: the world, in which processes live and die. Cheap to clone.
#[derive(Clone)]
pub struct SimWorld {
    shared: Arc<Shared>,
}

impl SimWorld {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// The runtime of the world itself: what runs on it outlives every process.
    pub fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::new(SimRuntime { shared: Arc::clone(&self.shared), process: WORLD })
    }

    /// Begins a process: nothing runs in it yet.
    #[must_use]
    pub fn process(&self, clock: SimClock) -> SimProcess {
        let id = self.shared.add_process(Clock::new(clock));
        SimProcess { shared: Arc::clone(&self.shared), id }
    }

    /// Makes `value` a part of the trace: a decision of the world's own, or what was asked of it.
    pub fn note(&self, value: u64) {
        self.shared.mix(value);
    }
}

impl fmt::Debug for SimWorld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimWorld").finish_non_exhaustive()
    }
}

/// A process of a simulation. Cheap to clone; dropping it does nothing to the process.
#[derive(Clone)]
pub struct SimProcess {
    shared: Arc<Shared>,
    id: ProcessId,
}

impl SimProcess {
    /// Its number.
    pub fn id(&self) -> ProcessId {
        self.id
    }

    /// The runtime whose cores and tasks are this process.
    pub fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::new(SimRuntime { shared: Arc::clone(&self.shared), process: self.id })
    }

    /// Ends it as a crash would: all its tasks vanish where they wait, before anything else runs. What it spawns from here on is
    /// dropped.
    pub fn kill(&self) {
        self.shared.kill(self.id);
    }

    /// Whether it was not killed.
    pub fn is_alive(&self) -> bool {
        self.shared.is_alive(self.id)
    }

    /// Stops all its tasks until [`SimProcess::resume`]; its clocks go on.
    pub fn pause(&self) {
        self.shared.pause(self.id);
    }

    /// Lets a paused process go on.
    pub fn resume(&self) {
        self.shared.resume(self.id);
    }

    /// Sets its wall clock `ms` milliseconds ahead of the world's (behind when negative).
    pub fn set_wall_ahead(&self, ms: i64) {
        self.shared.set_wall_ahead(self.id, ms);
    }
}

impl fmt::Debug for SimProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimProcess").field("id", &self.id).finish_non_exhaustive()
    }
}
