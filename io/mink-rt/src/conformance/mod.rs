//! What every backend must do, as cases that each backend's own tests run.
//! Lives on: tests of backends (`conformance` feature outside this crate).
//! Talks to: a backend through the seam alone; messages go by `futures` channels, which work on every executor.
//!
//! A case panics when the backend fails it. Real backends run it on a thread of their own
//! (`EpollRuntime::block_on`), the simulator as a simulation's root.

mod messages;
mod tasks;
mod time;

use crate::{Core, CoreMain, Cores, CoresConfig, FatalHook, Runtime, core_main};
use futures::channel::oneshot;
use futures::future::{FutureExt as _, LocalBoxFuture};
use std::fmt;
use std::future::Future;
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A case that hangs has failed.
const CASE_BOUND: Duration = Duration::from_mins(1);
const MS: Duration = Duration::from_millis(1);

/// One thing that every backend must do.
#[derive(Clone, Copy)]
pub struct Case {
    /// The behaviour, as the name of a test.
    pub name: &'static str,
    run: fn(Arc<dyn Runtime>) -> LocalBoxFuture<'static, ()>,
}

impl Case {
    /// Runs the case; panics if the backend fails it or takes longer than a minute.
    pub async fn run(&self, runtime: Arc<dyn Runtime>) {
        let service = runtime.service();
        let bounded = service.timeout(CASE_BOUND, (self.run)(runtime)).await;
        assert!(bounded.is_ok(), "{} hangs", self.name);
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case").field("name", &self.name).finish_non_exhaustive()
    }
}

macro_rules! cases {
    ($($about:ident: $case:ident),+ $(,)?) => {
        /// All cases.
        pub const CASES: &[Case] =
            &[$(Case { name: stringify!($case), run: |runtime| $about::$case(runtime).boxed_local() }),+];
    };
}

cases!(
    tasks: spawn_never_polls_and_join_tells_the_end,
    tasks: a_joined_task_has_been_dropped,
    time: sleeps_end_in_order_and_never_early,
    messages: a_busy_core_answers_within_5_ms,
    messages: a_thousand_rounds_of_ping_pong_without_a_stall,
    messages: messages_that_race_timers_are_not_lost,
    messages: requests_through_full_queues_are_all_answered,
    messages: a_wake_after_the_end_of_a_core_does_nothing,
    messages: a_panic_elsewhere_that_wakes_a_core_is_contained,
    tasks: panics_are_contained,
    tasks: a_panic_in_a_pump_is_fatal_and_told_by_join,
    tasks: stop_ends_all_tasks_of_all_cores,
    time: yield_if_due_lets_others_run,
    time: yield_now_lets_timers_run,
    time: timers_fire_after_others_were_cancelled,
    time: timeout_gives_the_result_or_elapsed,
    tasks: blocking_gives_the_result_or_the_panic,
    time: a_service_timer_works_on_a_core,
    time: the_clock_goes_forward_with_sleeps,
);

/// A panic on a core is told by `join`, so that the case fails and not the whole test process.
fn start(runtime: &dyn Runtime, count: usize, main: &CoreMain) -> Cores {
    start_with(runtime, count, Arc::new(|_| {}), main)
}

fn start_with(runtime: &dyn Runtime, count: usize, on_fatal: FatalHook, main: &CoreMain) -> Cores {
    let count = NonZeroUsize::new(count).expect("a case starts a core at least");
    let config = CoresConfig { name: "conform", on_fatal: Some(on_fatal), ..CoresConfig::shards(count) };
    runtime.start_cores(config, Arc::clone(main)).expect("cores start")
}

/// Runs `body` on one core until it returns, and hands its result out.
async fn on_a_core<T, F>(runtime: &dyn Runtime, body: impl Fn(Core) -> F + Send + Sync + 'static) -> T
where
    T: Send + 'static,
    F: Future<Output = T> + 'static,
{
    let (sender, receiver) = oneshot::channel();
    let (sender, body) = (Slots::new([sender]), Arc::new(body));
    let cores = start(
        runtime,
        1,
        &core_main(move |core| {
            let (sender, body) = (sender.take(0), Arc::clone(&body));
            async move {
                let result = body(core).await;
                drop(sender.send(result));
            }
        }),
    );
    let ended = cores.join().await;
    assert_eq!(ended, Ok(()));
    receiver.await.expect("the body has returned")
}

/// Things that are handed to one core each.
struct Slots<T>(Arc<Mutex<Vec<Option<T>>>>);

impl<T> Slots<T> {
    fn new(things: impl IntoIterator<Item = T>) -> Self {
        Self(Arc::new(Mutex::new(things.into_iter().map(Some).collect())))
    }

    fn take(&self, index: usize) -> T {
        let mut things = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        things.get_mut(index).and_then(Option::take).expect("every core takes its own, once")
    }
}

/// A microsecond or so of work, far below the budget of a task.
fn work_a_little() {
    for round in 0..1_000_u32 {
        black_box(round);
    }
}
