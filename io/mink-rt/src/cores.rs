//! A set of cores that were started together: how they are configured, stopped and joined.
//! Lives on: anywhere.
//! Owns: the stop signals and the ends of the cores.     Talks to: a backend's threads.
//! Invariants: a panic in a core's pump is told to the fatal hook before anything else on that core runs.

use crate::beat::{Beat, CoreStats};
use crate::stop::{StopSeen, Stopper, stop_signal};
use crate::{Core, Instant};
use futures::channel::oneshot;
use futures::future::{FutureExt as _, LocalBoxFuture};
use std::fmt;
use std::future::Future;
use std::io::Write as _;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};

/// What each core runs: called once on every core. The core ends when the future returns.
pub type CoreMain = Arc<dyn Fn(Core) -> LocalBoxFuture<'static, ()> + Send + Sync>;

/// A [`CoreMain`] from an async closure.
pub fn core_main<F>(main: impl Fn(Core) -> F + Send + Sync + 'static) -> CoreMain
where
    F: Future<Output = ()> + 'static,
{
    Arc::new(move |core| main(core).boxed_local())
}

/// Called when a pump has panicked, on its core.
pub type FatalHook = Arc<dyn Fn(&CorePanic) + Send + Sync>;

/// How cores are started.
#[derive(Clone)]
pub struct CoresConfig {
    /// How many.
    pub count: NonZeroUsize,
    /// CPUs to pin them to, in turn (`pin[i % len]`); empty for none. A CPU that the system refuses is warned
    /// about and not fatal: a core is then slower, not wrong.
    pub pin: Vec<usize>,
    /// Threads are called `<name>-<index>`; Linux shows the first 15 bytes.
    pub name: &'static str,
    /// What a panic in a pump does. `None`: the real backends abort the process, the simulation fails.
    pub on_fatal: Option<FatalHook>,
}

impl CoresConfig {
    /// `count` cores called `mink-shard-<index>`, pinned to the CPUs that the process may run on if there are
    /// enough of them for one each.
    pub fn shards(count: NonZeroUsize) -> Self {
        let allowed = crate::machine::allowed_cores();
        let pin = if allowed.len() >= count.get() { allowed } else { Vec::new() };
        Self { count, pin, name: "mink-shard", on_fatal: None }
    }
}

impl fmt::Debug for CoresConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoresConfig")
            .field("count", &self.count)
            .field("pin", &self.pin)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A pump panicked, so the state of its shard is suspect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("task {task:?} of core {core} panicked: {message}")]
pub struct CorePanic {
    /// Index of the core.
    pub core: usize,
    /// Name of the task; `"main"` for the core's main future.
    pub task: &'static str,
    /// The panic's message.
    pub message: String,
}

/// What the cores of one set share with each other and with [`Cores`]: how to stop and how to fail.
pub(crate) struct CoreShared {
    pub(crate) count: usize,
    on_fatal: FatalHook,
    stoppers: Vec<Stopper>,
    panics: Mutex<Vec<CorePanic>>,
}

impl CoreShared {
    pub(crate) fn new(count: usize, on_fatal: FatalHook) -> (Arc<Self>, Vec<StopSeen>) {
        let (stoppers, seen) = (0..count).map(|_| stop_signal()).unzip();
        (Arc::new(Self { count, on_fatal, stoppers, panics: Mutex::new(Vec::new()) }), seen)
    }

    pub(crate) fn stop(&self) {
        self.stoppers.iter().for_each(Stopper::stop);
    }

    /// A hook that returns (in tests) stops all cores, and [`Cores::join`] tells the panic.
    pub(crate) fn fatal(&self, panic: CorePanic) {
        (self.on_fatal)(&panic);
        self.panics.lock().unwrap_or_else(PoisonError::into_inner).push(panic);
        self.stop();
    }

    pub(crate) fn take_panic_of(&self, core: usize) -> Option<CorePanic> {
        let mut panics = self.panics.lock().unwrap_or_else(PoisonError::into_inner);
        let index = panics.iter().position(|panic| panic.core == core)?;
        Some(panics.remove(index))
    }
}

/// The default of the real backends: says who panicked and ends the process at once, without unwinding through
/// state that is suspect. A restart recovers from the WAL.
pub(crate) fn abort_process(panic: &CorePanic) {
    tracing::error!(core = panic.core, task = panic.task, panic = panic.message, "pump panicked, aborting");
    // Not `eprintln!`, which a test harness keeps for itself until the test ends; this one never does. There is
    // nowhere left to tell a failure of stderr.
    let _ = writeln!(std::io::stderr(), "mink: {panic}; the shard's state is suspect, so the process ends");
    std::process::abort();
}

/// Cores that were started together. Dropping it tells them to stop, without waiting.
#[must_use = "dropping it stops the cores"]
pub struct Cores {
    shared: Arc<CoreShared>,
    ends: Vec<oneshot::Receiver<Result<(), CorePanic>>>,
    watchdog: Watchdog,
}

impl Cores {
    pub(crate) fn new(
        shared: Arc<CoreShared>,
        ends: Vec<oneshot::Receiver<Result<(), CorePanic>>>,
        watchdog: Watchdog,
    ) -> Self {
        Self { shared, ends, watchdog }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.shared.count
    }

    /// Tells every core to stop: [`Core::stopped`] completes there. Returns at once; may be called again.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// Waits until every core has ended: its main future has returned and every task of it has been dropped. It
    /// does not stop them; dropping the future of `join` does.
    ///
    /// # Errors
    /// The panic of the core with the lowest index that had one.
    pub async fn join(mut self) -> Result<(), CorePanic> {
        let mut result = Ok(());
        for (core, end) in std::mem::take(&mut self.ends).into_iter().enumerate() {
            let lost = || CorePanic { core, task: "executor", message: "ended without a result".to_owned() };
            let ended = end.await.unwrap_or_else(|_| Err(lost()));
            result = result.and(ended);
        }
        result
    }

    /// The counters of these cores. They can be read after the cores have ended, too.
    pub fn watchdog(&self) -> Watchdog {
        self.watchdog.clone()
    }
}

impl Drop for Cores {
    fn drop(&mut self) {
        self.shared.stop();
    }
}

impl fmt::Debug for Cores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cores").field("count", &self.shared.count).finish_non_exhaustive()
    }
}

/// Reads what the watchdog and the cores have counted. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Watchdog {
    beats: Arc<[Arc<Beat>]>,
    now: fn() -> Instant,
}

impl Watchdog {
    pub(crate) fn new(beats: Arc<[Arc<Beat>]>, now: fn() -> Instant) -> Self {
        Self { beats, now }
    }

    /// Times in which any core did not answer for 50 ms. Zero in the simulator, where nothing can block.
    pub fn stalls(&self) -> u64 {
        self.beats.iter().map(|beat| beat.stats(Instant::ZERO).stalls).sum()
    }

    /// Counters of one core; `None` past the last.
    pub fn core(&self, index: usize) -> Option<CoreStats> {
        self.beats.get(index).map(|beat| beat.stats((self.now)()))
    }

    /// Name of the task that core `index` is polling now, if any.
    pub fn running(&self, index: usize) -> Option<&'static str> {
        self.beats.get(index).and_then(|beat| beat.running())
    }
}

/// A clock that stands still at zero: for counters whose backend never parks.
pub(crate) fn no_clock() -> Instant {
    Instant::ZERO
}
