//! A core on compio's io_uring driver. Loop, tasks and timers are ours, so that it parks only when nothing is left to run.
//! Lives on: one thread per core.
//! Owns: the core's loop and tasks.     Talks to: compio-driver, for parks and wake-ups.
//! Invariants: no park while a task is runnable or a spawned one waits; a wake from any thread, at any time, even
//! while that thread unwinds, is seen by the next turn. (compio's own executor ends the process in the last case.)

use super::timers::Timers;
use crate::beat::{Answer, Beat};
use crate::core_handle::CoreBackend;
use crate::threads::{Executor, refused};
use crate::{Class, Core, CoreMain, CorePanic, Error, Instant, WallTime};
use compio_driver::{Proactor, ProactorBuilder};
use futures::StreamExt as _;
use futures::future::{FutureExt as _, LocalBoxFuture};
use futures::stream::FuturesUnordered;
use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

/// Entries of the ring. A core has no sockets and no files: the ring carries wake-ups and the end of parks.
const RING_ENTRIES: u32 = 32;
/// Tasks that may end in one turn before timers are looked at again.
const ENDS_PER_TURN_MAX: u32 = 16;
/// Rounds in which tasks that were spawned by the end of others are dropped too.
const END_ROUNDS_MAX: u32 = 16;

type LocalTask = LocalBoxFuture<'static, ()>;

pub(super) struct CompioExecutor {
    ring: Proactor,
    beat: Arc<Beat>,
    tasks: Rc<Tasks>,
}

/// What the core's handle may touch while a task runs.
#[derive(Default)]
struct Tasks {
    spawned: RefCell<Vec<LocalTask>>,
    timers: Rc<Timers>,
}

/// The waker of the whole core. It costs a system call only when the core is parked.
struct Unpark {
    state: AtomicU8,
    ring: Waker,
}

const RUNS: u8 = 0;
const WOKEN: u8 = 1;
const PARKED: u8 = 2;

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.swap(WOKEN, Ordering::SeqCst) == PARKED {
            self.ring.wake_by_ref();
        }
    }
}

impl Executor for CompioExecutor {
    const PARKS_ARE_SOUND: bool = true;

    fn new(beat: &Arc<Beat>) -> Result<Self, Error> {
        let ring = ProactorBuilder::new()
            .capacity(RING_ENTRIES)
            .build()
            .map_err(|source| refused("cannot set up a core's io_uring", source))?;
        Ok(Self { ring, beat: Arc::clone(beat), tasks: Rc::default() })
    }

    fn backend(&self) -> Box<dyn CoreBackend> {
        Box::new(CompioCore(Rc::clone(&self.tasks)))
    }

    fn run(mut self, core: Core, main: CoreMain, answer: Answer) -> Result<(), CorePanic> {
        let unpark = Arc::new(Unpark { state: AtomicU8::new(RUNS), ring: self.ring.waker() });
        let waker = Waker::from(Arc::clone(&unpark));
        let mut cx = Context::from_waker(&waker);
        let ended = Rc::new(Cell::new(None));
        let tell = Rc::clone(&ended);
        let mut running: FuturesUnordered<LocalTask> = FuturesUnordered::new();
        running.push(answer.boxed_local());
        running.push(async move { tell.set(Some(core.run_main(main).await)) }.boxed_local());
        loop {
            // Before the tasks are polled: a wake from here on is for the next turn.
            unpark.state.store(RUNS, Ordering::SeqCst);
            self.tasks.timers.fire();
            let is_done = self.turn(&mut running, &mut cx);
            if let Some(result) = ended.take() {
                self.drop_all(running);
                return result;
            }
            let may_park = is_done
                && unpark.state.compare_exchange(RUNS, PARKED, Ordering::SeqCst, Ordering::SeqCst).is_ok();
            if may_park {
                self.park();
            }
        }
    }
}

impl CompioExecutor {
    /// Polls what is runnable, at most every task once or so. False if more is known to be runnable.
    fn turn(&self, running: &mut FuturesUnordered<LocalTask>, cx: &mut Context<'_>) -> bool {
        for _ in 0..ENDS_PER_TURN_MAX {
            running.extend(self.tasks.spawned.borrow_mut().drain(..));
            match running.poll_next_unpin(cx) {
                Poll::Ready(Some(())) => {}
                // It wakes the core if it stopped for fairness with tasks left to run.
                Poll::Ready(None) | Poll::Pending => return self.tasks.spawned.borrow().is_empty(),
            }
        }
        false
    }

    fn park(&mut self) {
        self.beat.park(crate::clock::boot_now());
        let parked = self.ring.poll(self.tasks.timers.next());
        self.beat.unpark(crate::clock::boot_now());
        match parked {
            Ok(()) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::Interrupted) => {}
            // A core that can neither park nor be woken is as lost as one whose pump has panicked.
            Err(error) => panic!("the core cannot park on its io_uring: {error}"),
        }
    }

    /// Drops every task, and those that are spawned meanwhile.
    fn drop_all(&self, running: FuturesUnordered<LocalTask>) {
        drop(running);
        for _ in 0..END_ROUNDS_MAX {
            let late = std::mem::take(&mut *self.tasks.spawned.borrow_mut());
            if late.is_empty() {
                return;
            }
            drop(late);
        }
        tracing::warn!("tasks of a core spawn others without an end while they are dropped");
    }
}

/// Works within a core's thread only, which [`Core`] cannot leave.
struct CompioCore(Rc<Tasks>);

impl CoreBackend for CompioCore {
    fn now(&self) -> Instant {
        crate::clock::boot_now()
    }

    fn wall(&self) -> WallTime {
        crate::clock::wall_now()
    }

    fn spawn(&self, _class: Class, _name: &'static str, future: LocalTask) {
        self.0.spawned.borrow_mut().push(future);
    }

    fn sleep(&self, duration: Duration) -> LocalTask {
        self.0.timers.sleep(duration).boxed_local()
    }

    fn yield_now(&self) -> LocalTask {
        Yield(false).boxed_local()
    }

    fn budget_spent(&self, since: Instant) -> bool {
        crate::clock::boot_now().duration_since(since) >= crate::TASK_BUDGET
    }
}

/// Pending once and woken at once, which puts it behind the others; at most two such in a row before timers are looked at.
struct Yield(bool);

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
