//! The handle of a core: all that code on a shard may do with its executor.
//! Lives on: one per core; it cannot leave its core.
//! Owns: the core's list of live tasks.     Talks to: a backend, the watchdog (through the core's beat).
//! Invariants: a panic in a `Pump` task is fatal, in any other task it is contained; no state crosses cores.

use crate::beat::Beat;
use crate::cores::{CoreMain, CorePanic, CoreShared};
use crate::stop::StopSeen;
use crate::task::{Contained, LocalTask};
use crate::{Instant, WallTime};
use futures::future::{FutureExt as _, LocalBoxFuture};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// How long a task may run before [`Core::yield_if_due`] gives the core away.
pub const TASK_BUDGET: Duration = Duration::from_micros(500);

/// Scheduling class of a core's task. A backend may use it to order tasks; those for real cores run all
/// classes in turn and rely on [`Core::yield_if_due`]. It decides what a panic means, on every backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// The task that changes the shard's state. After a panic that state is suspect: the process ends.
    Pump,
    /// Work that somebody waits for.
    Io,
    /// Work that nobody waits for.
    Background,
}

/// What a backend does for [`Core`].
pub(crate) trait CoreBackend {
    fn now(&self) -> Instant;
    fn wall(&self) -> WallTime;
    fn spawn(&self, class: Class, name: &'static str, future: LocalBoxFuture<'static, ()>);
    fn sleep(&self, duration: Duration) -> LocalBoxFuture<'static, ()>;
    /// Pending once; the other runnable tasks, timers and messages of the core get their turn before it completes.
    fn yield_now(&self) -> LocalBoxFuture<'static, ()>;
    /// Whether a task that was resumed at `since` has used up its budget.
    fn budget_spent(&self, since: Instant) -> bool;
}

/// Handle of a core. Cheap to clone, `!Send`.
#[derive(Clone)]
pub struct Core {
    inner: Rc<CoreInner>,
}

struct CoreInner {
    index: usize,
    shared: Arc<CoreShared>,
    backend: Box<dyn CoreBackend>,
    beat: Arc<Beat>,
    stop: StopSeen,
    /// When the running task was resumed, or last yielded.
    slice_start: Cell<Instant>,
    live: RefCell<BTreeMap<u64, &'static str>>,
    next_id: Cell<u64>,
}

impl Core {
    pub(crate) fn new(
        index: usize,
        shared: Arc<CoreShared>,
        backend: Box<dyn CoreBackend>,
        beat: Arc<Beat>,
        stop: StopSeen,
    ) -> Self {
        let slice_start = Cell::new(backend.now());
        let live = RefCell::new(BTreeMap::new());
        Self {
            inner: Rc::new(CoreInner {
                index,
                shared,
                backend,
                beat,
                stop,
                slice_start,
                live,
                next_id: Cell::new(0),
            }),
        }
    }

    /// The core's number among those that were started together, from 0. Not the number of a CPU.
    pub fn index(&self) -> usize {
        self.inner.index
    }

    /// How many cores were started together.
    pub fn count(&self) -> usize {
        self.inner.shared.count
    }

    /// Spawns a task on this core. A task that still lives when the core's main future returns is cancelled then,
    /// with a warning that names it: whoever spawned it should have awaited its end.
    pub fn spawn(
        &self,
        class: Class,
        name: &'static str,
        future: impl Future<Output = ()> + 'static,
    ) -> LocalTask {
        let (shared, index) = (Arc::clone(&self.inner.shared), self.inner.index);
        let on_panic = Box::new(move |message: &str| {
            if class == Class::Pump {
                shared.fatal(CorePanic { core: index, task: name, message: message.to_owned() });
            } else {
                tracing::error!(core = index, task = name, panic = message, "task panicked");
            }
        });
        let (contained, link) = Contained::new(name, future.boxed_local(), on_panic);
        let id = self.inner.next_id.get();
        self.inner.next_id.set(id + 1);
        self.inner.live.borrow_mut().insert(id, name);
        let metered =
            Metered { id, name_id: self.inner.beat.name_id(name), core: self.clone(), inner: contained };
        self.inner.backend.spawn(class, name, metered.boxed_local());
        LocalTask::new(link)
    }

    /// Completes `duration` from now at the earliest (the epoll backend rounds up to whole milliseconds). The
    /// sleep itself does not count time in which the machine was suspended; compare [`Core::now`] for that.
    pub fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + use<> {
        self.inner.backend.sleep(duration)
    }

    /// Completes at `deadline` or soon after; at once when it has passed.
    pub fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()> + use<> {
        self.inner.backend.sleep(deadline.duration_since(self.now()))
    }

    /// Monotonic time, counted through suspends.
    pub fn now(&self) -> Instant {
        self.inner.backend.now()
    }

    /// The wall clock; see [`WallTime`] for what it may not decide.
    pub fn wall(&self) -> WallTime {
        self.inner.backend.wall()
    }

    /// Gives the core away if the task has run for [`TASK_BUDGET`] since it was resumed or last yielded; completes
    /// at once otherwise (one read of the clock). Every loop over data calls it. The simulator yields by its seed.
    pub fn yield_if_due(&self) -> YieldIfDue<'_> {
        YieldIfDue { core: self, yielding: None }
    }

    /// Gives the core away now: other runnable tasks, timers and messages get their turn.
    pub async fn yield_now(&self) {
        self.inner.backend.yield_now().await;
    }

    /// Completes once [`crate::Cores::stop`] was called.
    pub fn stopped(&self) -> impl Future<Output = ()> + use<> {
        self.inner.stop.stopped()
    }

    /// Whether [`crate::Cores::stop`] was called.
    pub fn is_stopping(&self) -> bool {
        self.inner.stop.is_stopping()
    }

    /// Runs the core's main future as its first `Pump` task; what lives after it is named and left to the backend,
    /// which drops it.
    pub(crate) async fn run_main(self, main: CoreMain) -> Result<(), CorePanic> {
        let core = self.clone();
        // The call itself is inside the task, so that its panic is one of the task.
        let task = self.spawn(Class::Pump, MAIN_TASK, async move { main(core).await });
        task.join().await;
        let left: Vec<&'static str> = self.inner.live.borrow().values().copied().collect();
        if !left.is_empty() {
            tracing::warn!(core = self.index(), tasks = ?left, "core ends with live tasks, which are cancelled");
        }
        self.inner.shared.take_panic_of(self.index()).map_or(Ok(()), Err)
    }
}

/// Name of the task that runs a core's main future.
pub(crate) const MAIN_TASK: &str = "main";

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core").field("index", &self.inner.index).finish_non_exhaustive()
    }
}

/// Future of [`Core::yield_if_due`].
#[must_use = "yields only when awaited"]
pub struct YieldIfDue<'core> {
    core: &'core Core,
    yielding: Option<LocalBoxFuture<'static, ()>>,
}

impl Future for YieldIfDue<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let inner = &this.core.inner;
        let yielding = match &mut this.yielding {
            Some(yielding) => yielding,
            None if !inner.backend.budget_spent(inner.slice_start.get()) => return Poll::Ready(()),
            none => none.insert(inner.backend.yield_now()),
        };
        ready!(yielding.as_mut().poll(cx));
        Poll::Ready(())
    }
}

impl fmt::Debug for YieldIfDue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("YieldIfDue").field("yielding", &self.yielding.is_some()).finish_non_exhaustive()
    }
}

/// A core's task as the executor sees it: every poll starts a new slice and shows the task's name to the watchdog.
struct Metered {
    id: u64,
    name_id: u32,
    core: Core,
    inner: Contained<LocalBoxFuture<'static, ()>>,
}

impl Future for Metered {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let core = &this.core.inner;
        core.slice_start.set(core.backend.now());
        core.beat.enter(this.name_id);
        let polled = Pin::new(&mut this.inner).poll(cx);
        core.beat.leave();
        if polled.is_ready() {
            core.live.borrow_mut().remove(&this.id);
        }
        polled
    }
}
