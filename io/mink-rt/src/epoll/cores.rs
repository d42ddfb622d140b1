//! A core on tokio's current-thread runtime and its `LocalSet`, without an I/O driver.
//! Lives on: one thread per core.
//! Owns: the core's tasks.     Talks to: tokio.

use crate::beat::{Answer, Beat};
use crate::core_handle::CoreBackend;
use crate::threads::{Executor, refused};
use crate::{Class, Core, CoreMain, CorePanic, Error, Instant, WallTime};
use futures::future::{FutureExt as _, LocalBoxFuture};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

pub(super) struct TokioExecutor {
    runtime: Runtime,
}

impl Executor for TokioExecutor {
    /// tokio's park returns whenever something was woken, so a quiet core needs no posts to stay alive.
    const PARKS_ARE_SOUND: bool = true;

    fn new(beat: &Arc<Beat>) -> Result<Self, Error> {
        let (parked, unparked) = (Arc::clone(beat), Arc::clone(beat));
        let runtime = Builder::new_current_thread()
            .enable_time()
            .on_thread_park(move || parked.park(super::now()))
            .on_thread_unpark(move || unparked.unpark(super::now()))
            .build()
            .map_err(|source| refused("cannot start a core's executor", source))?;
        Ok(Self { runtime })
    }

    fn backend(&self) -> Box<dyn CoreBackend> {
        Box::new(TokioCore)
    }

    fn run(self, core: Core, main: CoreMain, answer: Answer) -> Result<(), CorePanic> {
        // Dropped before the runtime, so that its tasks' timers still have one.
        let local = LocalSet::new();
        local.block_on(&self.runtime, async move {
            let answer = tokio::task::spawn_local(answer);
            let result = core.run_main(main).await;
            answer.abort();
            result
        })
    }
}

/// Works within a core's thread only, which [`Core`] cannot leave.
struct TokioCore;

impl CoreBackend for TokioCore {
    fn now(&self) -> Instant {
        super::now()
    }

    fn wall(&self) -> WallTime {
        super::wall()
    }

    fn spawn(&self, _class: Class, _name: &'static str, future: LocalBoxFuture<'static, ()>) {
        drop(tokio::task::spawn_local(future));
    }

    fn sleep(&self, duration: Duration) -> LocalBoxFuture<'static, ()> {
        tokio::time::sleep(duration).boxed_local()
    }

    /// tokio's own yield puts the task aside until the driver was polled. A plain wake would keep it in the local
    /// queue, where 61 turns (30 ms) may pass before timers and messages from other threads are looked at.
    fn yield_now(&self) -> LocalBoxFuture<'static, ()> {
        tokio::task::yield_now().boxed_local()
    }

    fn budget_spent(&self, since: Instant) -> bool {
        super::now().duration_since(since) >= crate::TASK_BUDGET
    }
}
