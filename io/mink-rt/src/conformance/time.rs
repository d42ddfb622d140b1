//! Cases about time: sleeps, timers, yields, the clock.
//! Lives on: tests of backends.

use super::{MS, on_a_core, work_a_little};
use crate::{Class, Runtime, TaskEnd};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// How late a timer may be on a machine that has other things to do as well.
const LATE_AT_MOST: Duration = Duration::from_millis(200);

pub(super) async fn sleeps_end_in_order_and_never_early(runtime: Arc<dyn Runtime>) {
    on_a_core(&*runtime, |core| async move {
        let order = Rc::new(RefCell::new(Vec::new()));
        let tasks: Vec<_> = [90_u32, 30, 60]
            .map(|millis| {
                let (sleeper, order) = (core.clone(), Rc::clone(&order));
                core.spawn(Class::Io, "sleeps", async move {
                    let start = sleeper.now();
                    sleeper.sleep(millis * MS).await;
                    let slept = sleeper.now().duration_since(start);
                    assert!(slept >= millis * MS, "{millis} ms ended after {slept:?}");
                    assert!(slept < millis * MS + LATE_AT_MOST, "{millis} ms ended after {slept:?}");
                    order.borrow_mut().push(millis);
                })
            })
            .into();
        for task in tasks {
            assert_eq!(task.join().await, TaskEnd::Finished);
        }
        assert_eq!(*order.borrow(), [30, 60, 90]);
    })
    .await;
}

pub(super) async fn yield_if_due_lets_others_run(runtime: Arc<dyn Runtime>) {
    const CALLS_MAX: u32 = 1_000_000;
    on_a_core(&*runtime, |core| async move {
        let others = Rc::new(Cell::new(0));
        let tasks: Vec<_> = (0..3)
            .map(|_| {
                let others = Rc::clone(&others);
                core.spawn(Class::Io, "other", async move { others.set(others.get() + 1) })
            })
            .collect();
        let mut calls = 0;
        while others.get() < 3 {
            work_a_little();
            core.yield_if_due().await;
            calls += 1;
            assert!(calls < CALLS_MAX, "{calls} calls, and the others have not run");
        }
        for task in tasks {
            assert_eq!(task.join().await, TaskEnd::Finished);
        }
    })
    .await;
}

pub(super) async fn yield_now_lets_timers_run(runtime: Arc<dyn Runtime>) {
    on_a_core(&*runtime, |core| async move {
        let fired = Rc::new(Cell::new(false));
        let (seen, sleeper) = (Rc::clone(&fired), core.clone());
        let task = core.spawn(Class::Io, "sleeps", async move {
            sleeper.sleep(10 * MS).await;
            seen.set(true);
        });
        let start = core.now();
        while !fired.get() {
            core.yield_now().await;
            let waited = core.now().duration_since(start);
            assert!(waited < 10 * MS + LATE_AT_MOST, "no timer in {waited:?} of yields");
        }
        assert_eq!(task.join().await, TaskEnd::Finished);
    })
    .await;
}

pub(super) async fn timers_fire_after_others_were_cancelled(runtime: Arc<dyn Runtime>) {
    on_a_core(&*runtime, |core| async move {
        let sleep = |millis: u32| {
            let sleeper = core.clone();
            core.spawn(Class::Io, "sleeps", async move { sleeper.sleep(millis * MS).await })
        };
        let (first, kept, last) = (sleep(10), sleep(20), sleep(60_000));
        core.sleep(MS).await;
        first.cancel();
        last.cancel();
        assert_eq!(kept.join().await, TaskEnd::Finished);
        // A busy machine may have let the first one end before it was cancelled.
        assert_ne!(first.join().await, TaskEnd::Panicked(String::new()));
        assert_eq!(last.join().await, TaskEnd::Cancelled);
    })
    .await;
}

pub(super) async fn timeout_gives_the_result_or_elapsed(runtime: Arc<dyn Runtime>) {
    let service = runtime.service();
    assert_eq!(service.timeout(10_000 * MS, async { 7 }).await, Ok(7));
    assert_eq!(service.timeout(Duration::ZERO, async { 7 }).await, Ok(7), "a ready result wins");
    let start = service.now();
    let elapsed = service.timeout(20 * MS, futures::future::pending::<()>()).await.expect_err("no result");
    assert_eq!(elapsed.0, 20 * MS);
    let waited = service.now().duration_since(start);
    assert!(waited >= 20 * MS && waited < 20 * MS + LATE_AT_MOST, "{waited:?}");
}

pub(super) async fn a_service_timer_works_on_a_core(runtime: Arc<dyn Runtime>) {
    let service = runtime.service();
    on_a_core(&*runtime, move |core| {
        let service = service.clone();
        async move {
            let start = core.now();
            service.sleep(10 * MS).await;
            assert!(core.now().duration_since(start) >= 10 * MS);
            assert!(service.timeout(MS, futures::future::pending::<()>()).await.is_err());
            assert_eq!(service.blocking("adds", || 1 + 1).await, Ok(2));
        }
    })
    .await;
}

pub(super) async fn the_clock_goes_forward_with_sleeps(runtime: Arc<dyn Runtime>) {
    let service = runtime.service();
    let (start, deadline) = (service.now(), service.now() + 15 * MS);
    service.sleep_until(deadline).await;
    assert!(service.now() >= deadline);
    service.sleep_until(start).await;
    let seen = on_a_core(&*runtime, |core| async move {
        core.sleep_until(core.now() + MS).await;
        (core.now(), core.wall())
    })
    .await;
    assert!(seen.0 >= deadline, "the clocks of cores and services are one");
    assert!(seen.1.as_millis() > 1_577_836_800_000, "{:?}", seen.1);
}
