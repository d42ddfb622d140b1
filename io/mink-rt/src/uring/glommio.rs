//! A core on glommio's executor: its io_uring rings for timers and parks, and one latency queue for all tasks.
//! Lives on: one thread per core.
//! Owns: the core's tasks.     Talks to: glommio.
//! Invariants: no panic reaches glommio, which would abort the process for it (`task::Contained` sees to that).
//!
//! glommio 0.9 reports "nothing ran" also when it was preempted before the first task, and parks then with tasks to
//! run; the watchdog wakes such a core. What was measured: docs/decisions/0020-io-uring.md.

use crate::beat::{Answer, Beat};
use crate::core_handle::CoreBackend;
use crate::threads::Executor;
use crate::{Class, Core, CoreMain, CorePanic, Error, ErrorKind, Instant, WallTime};
use futures::future::{FutureExt as _, LocalBoxFuture};
use glommio::task::JoinHandle;
use glommio::timer::Timer;
use glommio::{Latency, LocalExecutor, LocalExecutorBuilder, Placement, Shares, TaskQueueHandle};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Below 1 ms the parks with runnable tasks become common (0001); above, messages to a busy core wait longer.
const PREEMPT_EVERY: Duration = Duration::from_millis(1);
const LATENCY: Latency = Latency::Matters(Duration::from_micros(200));
/// Entries of each of the three rings. A core has no sockets and no files: a timer, a wake-up, a link between rings.
const RING_DEPTH: usize = 32;
/// Registered buffers, which count against the limit of locked memory; glommio takes no less.
const IO_MEMORY_BYTES: usize = 64 << 10;
/// Rounds in which tasks that were spawned by the end of others are ended too.
const END_ROUNDS_MAX: u32 = 16;

pub(super) struct GlommioExecutor {
    executor: LocalExecutor,
    tasks: Rc<Tasks>,
}

/// The tasks that live, so that all can be dropped before the core's end is told: glommio leaks those that nothing wakes.
#[derive(Default)]
struct Tasks {
    queue: Cell<Option<TaskQueueHandle>>,
    live: RefCell<BTreeMap<u64, JoinHandle<()>>>,
    next_id: Cell<u64>,
}

impl Executor for GlommioExecutor {
    const PARKS_ARE_SOUND: bool = false;

    fn new(_beat: &Arc<Beat>) -> Result<Self, Error> {
        let executor = LocalExecutorBuilder::new(Placement::Unbound)
            .preempt_timer(PREEMPT_EVERY)
            .ring_depth(RING_DEPTH)
            .io_memory(IO_MEMORY_BYTES)
            .make()
            .map_err(|error| {
                Error::new(
                    ErrorKind::Machine,
                    "cannot start a core's io_uring executor",
                    "raise the limits of locked memory and open files, or use --runtime epoll",
                )
                .with_source(io::Error::other(error.to_string()))
            })?;
        Ok(Self { executor, tasks: Rc::default() })
    }

    fn backend(&self) -> Box<dyn CoreBackend> {
        Box::new(GlommioCore(Rc::clone(&self.tasks)))
    }

    fn run(self, core: Core, main: CoreMain, answer: Answer) -> Result<(), CorePanic> {
        let tasks = Rc::clone(&self.tasks);
        self.executor.run(async move {
            let queue = glommio::executor().create_task_queue(Shares::default(), LATENCY, "tasks");
            tasks.queue.set(Some(queue));
            tasks.spawn(answer.boxed_local());
            let result = core.run_main(main).await;
            tasks.end_all().await;
            result
        })
    }
}

impl Tasks {
    fn spawn(self: &Rc<Self>, future: LocalBoxFuture<'static, ()>) {
        let id = self.next_id.replace(self.next_id.get() + 1);
        let tasks = Rc::clone(self);
        let whole = async move {
            future.await;
            tasks.live.borrow_mut().remove(&id);
        };
        let queue = self.queue.get().unwrap_or_default();
        match glommio::spawn_local_into(whole, queue) {
            Ok(task) => {
                self.live.borrow_mut().insert(id, task.detach());
            }
            // Dropped with its future, so whoever joins it is told that it was cancelled.
            Err(error) => tracing::error!(%error, "glommio has lost the queue of the core"),
        }
    }

    async fn end_all(&self) {
        for _ in 0..END_ROUNDS_MAX {
            let live = std::mem::take(&mut *self.live.borrow_mut());
            if live.is_empty() {
                return;
            }
            for task in live.values() {
                task.cancel();
            }
            for task in live.into_values() {
                task.await;
            }
        }
        tracing::warn!("tasks of a core spawn others without an end while they are dropped");
    }
}

/// Works within a core's thread only, which [`Core`] cannot leave.
struct GlommioCore(Rc<Tasks>);

impl CoreBackend for GlommioCore {
    fn now(&self) -> Instant {
        crate::clock::boot_now()
    }

    fn wall(&self) -> WallTime {
        crate::clock::wall_now()
    }

    fn spawn(&self, _class: Class, _name: &'static str, future: LocalBoxFuture<'static, ()>) {
        self.0.spawn(future);
    }

    fn sleep(&self, duration: Duration) -> LocalBoxFuture<'static, ()> {
        Timer::new(duration).map(|_| ()).boxed_local()
    }

    fn yield_now(&self) -> LocalBoxFuture<'static, ()> {
        async { glommio::executor().yield_task_queue_now().await }.boxed_local()
    }

    fn budget_spent(&self, since: Instant) -> bool {
        crate::clock::boot_now().duration_since(since) >= crate::TASK_BUDGET
    }
}
