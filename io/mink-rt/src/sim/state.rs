//! What the simulator's handles, wakers and timers share: virtual time, the ready list, arrivals, the seed, the trace.
//! Lives on: the simulation's thread; locked, so that a stray wake from another thread is safe.
//! Owns: all decisions of a simulation.

use crate::beat::Beat;
use crate::cores::CoreShared;
use crate::sim::process::{Clock, Processes, Ready, WORLD};
use crate::sim::{ProcessId, STEP_TIME, SimConfig};
use crate::stop::StopSeen;
use crate::{CoreMain, CorePanic, Instant, WallTime};
use futures::channel::oneshot;
use futures::future::BoxFuture;
use rand::{Rng as _, RngCore as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// The clock's reading at the start: not zero, so that code that subtracts from it is seen to do so.
pub(super) const START: Instant = Instant::from_nanos(1_000_000_000);

/// One call in so many of `yield_if_due` yields: time does not pass within a poll, so a budget would never run out.
const YIELD_ONE_IN: u32 = 8;

/// A task's number in the simulation, in the order of spawning.
pub(super) type TaskId = u64;

/// What was spawned since the executor last looked.
pub(super) enum Arrival {
    Task {
        process: ProcessId,
        name: &'static str,
        future: BoxFuture<'static, ()>,
    },
    Core(CoreSeed),
    /// The process was killed: its tasks are dropped before anything else runs.
    Kill(ProcessId),
}

/// All that a simulated core starts from.
pub(super) struct CoreSeed {
    pub(super) process: ProcessId,
    pub(super) index: usize,
    pub(super) cores: Arc<CoreShared>,
    pub(super) beat: Arc<Beat>,
    pub(super) stop: StopSeen,
    pub(super) main: CoreMain,
    pub(super) end: oneshot::Sender<Result<(), CorePanic>>,
}

pub(super) struct Shared {
    config: SimConfig,
    state: Mutex<State>,
}

struct State {
    now: Instant,
    steps: u64,
    trace: Trace,
    random: ChaCha8Rng,
    /// Runnable tasks, by number and not in the order they were woken: a library may wake those who wait for one thing in an
    /// order of its own, and that must not show.
    ready: Ready,
    processes: Processes,
    timers: BTreeMap<TimerKey, Waker>,
    timers_made: u64,
    arrivals: VecDeque<Arrival>,
    failed: Option<CorePanic>,
    closed: bool,
}

/// Deadline, then order of creation.
type TimerKey = (Instant, u64);

/// What the executor does next.
pub(super) enum Next {
    Poll(TaskId),
    /// Nothing is runnable and no timer is set.
    Stuck,
    TooLong(Vec<TaskId>),
}

impl Shared {
    pub(super) fn new(config: SimConfig) -> Self {
        Self {
            config,
            state: Mutex::new(State {
                now: START,
                steps: 0,
                trace: Trace::new(),
                random: ChaCha8Rng::seed_from_u64(config.seed),
                ready: Ready::new(),
                processes: Processes::default(),
                timers: BTreeMap::new(),
                timers_made: 0,
                arrivals: VecDeque::new(),
                failed: None,
                closed: false,
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn seed(&self) -> u64 {
        self.config.seed
    }

    /// The boot-time clock of a process.
    pub(super) fn now_of(&self, process: ProcessId) -> Instant {
        let state = self.lock();
        state.processes.clock(process).read(state.now)
    }

    pub(super) fn wall_of(&self, process: ProcessId) -> WallTime {
        let state = self.lock();
        let passed = state.now.duration_since(START).as_millis();
        let ahead = state.processes.clock(process).wall_ahead_ms;
        self.config.wall_start.plus_millis(i64::try_from(passed).unwrap_or(i64::MAX)).plus_millis(ahead)
    }

    pub(super) fn mix(&self, value: u64) {
        self.lock().trace.mix(value);
    }

    pub(super) fn add_process(&self, clock: Clock) -> ProcessId {
        self.lock().processes.add(clock)
    }

    pub(super) fn is_alive(&self, process: ProcessId) -> bool {
        self.lock().processes.is_alive(process)
    }

    pub(super) fn set_wall_ahead(&self, process: ProcessId, ms: i64) {
        self.lock().processes.set_wall_ahead(process, ms);
    }

    /// From here on nothing of the process runs; the executor drops its tasks before it polls anything.
    pub(super) fn kill(&self, process: ProcessId) {
        let mut state = self.lock();
        if state.processes.kill(process) {
            state.arrivals.push_back(Arrival::Kill(process));
        }
    }

    pub(super) fn pause(&self, process: ProcessId) {
        let mut state = self.lock();
        let State { processes, ready, .. } = &mut *state;
        processes.pause(process, ready);
    }

    pub(super) fn resume(&self, process: ProcessId) {
        let mut state = self.lock();
        let State { processes, ready, .. } = &mut *state;
        processes.resume(process, ready);
    }

    pub(super) fn random_u64(&self) -> u64 {
        self.lock().random.next_u64()
    }

    pub(super) fn draws_a_yield(&self) -> bool {
        self.lock().random.random_ratio(1, YIELD_ONE_IN)
    }

    /// After the simulation's end an arrival is dropped, which its joiner sees as cancelled.
    pub(super) fn arrive(&self, arrival: Arrival) {
        let mut state = self.lock();
        let process = match &arrival {
            Arrival::Task { process, .. } => *process,
            Arrival::Core(seed) => seed.process,
            Arrival::Kill(_) => WORLD,
        };
        if state.closed || !state.processes.is_alive(process) {
            drop(state);
            drop(arrival);
            return;
        }
        state.arrivals.push_back(arrival);
    }

    pub(super) fn next_arrival(&self) -> Option<Arrival> {
        self.lock().arrivals.pop_front()
    }

    pub(super) fn fail(&self, panic: CorePanic) {
        self.lock().failed.get_or_insert(panic);
    }

    pub(super) fn failed(&self) -> Option<CorePanic> {
        self.lock().failed.clone()
    }

    pub(super) fn wake(&self, id: TaskId, process: ProcessId) {
        let mut state = self.lock();
        if !state.closed && !state.processes.hold(process, id) {
            state.ready.insert(id, process);
        }
    }

    /// Forgets a task that has ended.
    pub(super) fn forget(&self, id: TaskId, process: ProcessId) {
        let mut state = self.lock();
        state.ready.remove(&id);
        state.processes.forget(process, id);
    }

    /// Lets due timers fire, jumps in time if nothing is runnable, then draws a runnable task.
    pub(super) fn next(&self) -> Next {
        loop {
            let due = self.lock().take_due_timers();
            // Woken outside the lock, which a wake takes.
            for waker in due {
                waker.wake();
            }
            let mut state = self.lock();
            if let Some(next) = state.draw(self.config.steps_max) {
                return next;
            }
            let Some((&(deadline, _), _)) = state.timers.first_key_value() else {
                return Next::Stuck;
            };
            state.now = state.now.max(deadline);
        }
    }

    /// From here on nothing is taken in, and what was is given back to be dropped.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let arrivals = std::mem::take(&mut state.arrivals);
        let timers = std::mem::take(&mut state.timers);
        drop(state);
        drop((arrivals, timers));
    }

    pub(super) fn totals(&self) -> (u64, u64, Duration) {
        let state = self.lock();
        (state.trace.0, state.steps, state.now.duration_since(START))
    }
}

impl State {
    fn take_due_timers(&mut self) -> Vec<Waker> {
        let later = self.timers.split_off(&(self.now, u64::MAX));
        std::mem::replace(&mut self.timers, later).into_values().collect()
    }

    fn draw(&mut self, steps_max: u64) -> Option<Next> {
        if self.ready.is_empty() {
            return None;
        }
        if self.steps == steps_max {
            return Some(Next::TooLong(self.ready.keys().copied().collect()));
        }
        let index = self.random.random_range(0..self.ready.len());
        let id = self.ready.keys().nth(index).copied()?;
        self.ready.remove(&id);
        self.steps += 1;
        self.now += STEP_TIME;
        self.trace.mix(id);
        self.trace.mix(self.now.as_nanos());
        Some(Next::Poll(id))
    }
}

/// FNV-1a over the decisions: the same on every machine and in every release, unlike the standard hasher.
struct Trace(u64);

impl Trace {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn mix(&mut self, value: u64) {
        for byte in value.to_le_bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

pub(super) struct TaskWaker {
    pub(super) id: TaskId,
    pub(super) process: ProcessId,
    pub(super) shared: Arc<Shared>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.shared.wake(self.id, self.process);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.shared.wake(self.id, self.process);
    }
}

/// A sleep in virtual time.
pub(super) struct Sleep {
    shared: Arc<Shared>,
    deadline: Instant,
    key: Option<TimerKey>,
}

impl Sleep {
    /// A sleep of `duration` by the clock of `process`.
    pub(super) fn new(shared: Arc<Shared>, process: ProcessId, duration: Duration) -> Self {
        let deadline = {
            let state = shared.lock();
            state.now + state.processes.clock(process).to_virtual(duration)
        };
        Self { shared, deadline, key: None }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let mut state = this.shared.lock();
        if state.now >= this.deadline {
            return Poll::Ready(());
        }
        let key = *this.key.get_or_insert_with(|| {
            state.timers_made += 1;
            (this.deadline, state.timers_made)
        });
        let replaced = state.timers.insert(key, cx.waker().clone());
        drop(state);
        drop(replaced);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let Some(key) = self.key else { return };
        let removed = self.shared.lock().timers.remove(&key);
        drop(removed);
    }
}
