//! The simulator: cores and services as tasks of one thread, in virtual time, in an order drawn from a seed.
//! Lives on: the thread that calls `simulate`.
//! Owns: virtual time, the seed's random numbers, the trace.     Talks to: nobody.
//! Invariants: the same seed and the same program give the same trace; nothing real (clock, thread, random) leaks in.
//!
//! Every poll of a task takes [`STEP_TIME`] of virtual time, so a task that spins over `yield_now` does not stop the
//! clock; when nothing can run, time jumps to the next timer; when there is none either, that is a deadlock.
//! Wakes are meant to come from this thread. One from another thread is safe, but then the trace means nothing.

mod executor;
mod process;
mod state;

pub use process::{ProcessId, SimClock, SimProcess, SimWorld};

use crate::service::ServiceBackend;
use crate::{CoreMain, CorePanic, Cores, CoresConfig, Error, FatalHook, Instant, Runtime, Service, WallTime};
use executor::Executor;
use futures::channel::oneshot;
use futures::future::{BoxFuture, FutureExt as _};
use state::{Arrival, CoreSeed, Shared, Sleep};
use std::cell::RefCell;
use std::fmt;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::beat::Beat;
use crate::cores::{CoreShared, Watchdog, no_clock};

/// Virtual time that one poll of a task takes.
const STEP_TIME: Duration = Duration::from_micros(1);

/// What a simulation starts from.
#[derive(Clone, Copy, Debug)]
pub struct SimConfig {
    /// Decides every choice of the scheduler and every random number.
    pub seed: u64,
    /// Polls of tasks after which the simulation is given up as a livelock.
    pub steps_max: u64,
    /// The wall clock at the start.
    pub wall_start: WallTime,
}

impl SimConfig {
    /// The usual bounds (10 million steps, starting on 2026-01-01) for a seed.
    pub const fn seeded(seed: u64) -> Self {
        Self { seed, steps_max: 10_000_000, wall_start: WallTime::from_millis(1_767_225_600_000) }
    }
}

/// What a simulation that completed has given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimOutcome<T> {
    /// The root's result.
    pub value: T,
    /// Hash of all decisions: which task ran at which virtual time. Equal for equal seeds.
    pub trace: u64,
    /// Polls of tasks.
    pub steps: u64,
    /// Virtual time that has passed.
    pub elapsed: Duration,
}

/// Why a simulation did not complete. `Display` gives the seed to replay it with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimFailure {
    /// Nothing can run and no timer is set, but the root has not completed.
    #[error("seed {seed}: deadlock; these tasks wait for each other: {}", waiting.join(", "))]
    Deadlock {
        /// To replay.
        seed: u64,
        /// Tasks that wait, as `name#id` (`core<i>/name#id` on a core), by id.
        waiting: Vec<String>,
    },
    /// The bound of steps was reached.
    #[error("seed {seed}: not done after {steps} steps; runnable then: {}", runnable.join(", "))]
    TooLong {
        /// To replay.
        seed: u64,
        /// The bound.
        steps: u64,
        /// Tasks that could have run next, as in `Deadlock`.
        runnable: Vec<String>,
    },
    /// A pump panicked, and the cores had no hook of their own for that.
    #[error("seed {seed}: {panic}")]
    Pump {
        /// To replay.
        seed: u64,
        /// Who and what.
        #[source]
        panic: CorePanic,
    },
}

/// Runs `root` to its end. It gets the runtime whose cores and services are simulated with it; what still runs
/// when it completes is dropped, in the order of spawning. A panic of the root itself passes through, after the seed was printed.
///
/// # Errors
/// [`SimFailure`].
pub fn simulate<T, F>(
    config: SimConfig,
    root: impl FnOnce(Arc<dyn Runtime>) -> F,
) -> Result<SimOutcome<T>, SimFailure>
where
    T: 'static,
    F: Future<Output = T> + 'static,
{
    simulate_world(config, |world| root(world.runtime()))
}

/// As [`simulate`], for a root that makes processes of its own beside the one it runs in: see [`SimWorld`].
///
/// # Errors
/// [`SimFailure`].
pub fn simulate_world<T, F>(
    config: SimConfig,
    root: impl FnOnce(SimWorld) -> F,
) -> Result<SimOutcome<T>, SimFailure>
where
    T: 'static,
    F: Future<Output = T> + 'static,
{
    let shared = Arc::new(Shared::new(config));
    let _named = SeedOnPanic(config.seed);
    let value: Rc<RefCell<Option<T>>> = Rc::default();
    let future = root(SimWorld::new(Arc::clone(&shared)));
    let kept = Rc::clone(&value);
    let root = async move {
        let result = future.await;
        *kept.borrow_mut() = Some(result);
    };
    let mut executor = Executor::new(Arc::clone(&shared), root.boxed_local());
    executor.run()?;
    drop(executor);
    let (trace, steps, elapsed) = shared.totals();
    let value = value.borrow_mut().take().expect("the executor returns Ok only after the root has stored it");
    Ok(SimOutcome { value, trace, steps, elapsed })
}

/// Prints the seed when a panic passes.
struct SeedOnPanic(u64);

impl Drop for SeedOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the simulation with seed {} panicked", self.0);
        }
    }
}

/// The backend of one process of a simulation.
struct SimRuntime {
    shared: Arc<Shared>,
    process: ProcessId,
}

impl Runtime for SimRuntime {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn start_cores(&self, config: CoresConfig, main: CoreMain) -> Result<Cores, Error> {
        let count = config.count.get();
        let failing = Arc::clone(&self.shared);
        let fail: FatalHook = Arc::new(move |panic: &CorePanic| failing.fail(panic.clone()));
        let (cores, stops) = CoreShared::new(count, config.on_fatal.unwrap_or(fail));
        let beats: Arc<[Arc<Beat>]> = (0..count).map(|_| Arc::new(Beat::default())).collect();
        let mut ends = Vec::with_capacity(count);
        for (index, (beat, stop)) in beats.iter().zip(stops).enumerate() {
            let (sender, end) = oneshot::channel();
            self.shared.arrive(Arrival::Core(CoreSeed {
                process: self.process,
                index,
                cores: Arc::clone(&cores),
                beat: Arc::clone(beat),
                stop,
                main: Arc::clone(&main),
                end: sender,
            }));
            ends.push(end);
        }
        Ok(Cores::new(cores, ends, Watchdog::new(beats, no_clock)))
    }

    fn service(&self) -> Service {
        Service::new(Arc::new(SimService { shared: Arc::clone(&self.shared), process: self.process }))
    }
}

impl fmt::Debug for SimRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimRuntime").finish_non_exhaustive()
    }
}

struct SimService {
    shared: Arc<Shared>,
    process: ProcessId,
}

impl ServiceBackend for SimService {
    fn now(&self) -> Instant {
        self.shared.now_of(self.process)
    }

    fn wall(&self) -> WallTime {
        self.shared.wall_of(self.process)
    }

    fn random_u64(&self) -> u64 {
        self.shared.random_u64()
    }

    fn spawn(&self, name: &'static str, future: BoxFuture<'static, ()>) {
        self.shared.arrive(Arrival::Task { process: self.process, name, future });
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Sleep::new(Arc::clone(&self.shared), self.process, duration).boxed()
    }

    fn spawn_blocking(&self, name: &'static str, work: Box<dyn FnOnce() + Send>) {
        self.spawn(name, async move { work() }.boxed());
    }
}

#[cfg(test)]
mod tests;
