//! Cases about the life of tasks: spawn, end, cancel, panic, stop.
//! Lives on: tests of backends.

use super::{MS, on_a_core, start, start_with};
use crate::{BlockingError, Class, FatalHook, Runtime, TaskEnd, core_main};
use futures::channel::oneshot;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Counts drops.
struct Dropped(Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

pub(super) async fn spawn_never_polls_and_join_tells_the_end(runtime: Arc<dyn Runtime>) {
    on_a_core(&*runtime, |core| async move {
        let ran = Rc::new(Cell::new(0));
        let tasks: Vec<_> = (0..10)
            .map(|_| {
                let ran = Rc::clone(&ran);
                core.spawn(Class::Io, "counts", async move { ran.set(ran.get() + 1) })
            })
            .collect();
        assert_eq!(ran.get(), 0, "a task was polled within spawn");
        for task in tasks {
            assert_eq!(task.name(), "counts");
            assert_eq!(task.join().await, TaskEnd::Finished);
        }
        assert_eq!(ran.get(), 10);
    })
    .await;
    let task = runtime.service().spawn("finishes", async {});
    assert_eq!(task.join().await, TaskEnd::Finished);
}

pub(super) async fn a_joined_task_has_been_dropped(runtime: Arc<dyn Runtime>) {
    let drops = Arc::new(AtomicUsize::new(0));
    let held = Dropped(Arc::clone(&drops));
    let task = runtime.service().spawn("waits for ever", async move {
        let _held = held;
        futures::future::pending::<()>().await;
    });
    task.cancel();
    assert_eq!(task.join().await, TaskEnd::Cancelled);
    assert_eq!(drops.load(Ordering::SeqCst), 1);

    let seen = Arc::clone(&drops);
    on_a_core(&*runtime, move |core| {
        let drops = Arc::clone(&seen);
        async move {
            let held = Dropped(Arc::clone(&drops));
            let task = core.spawn(Class::Io, "waits for ever", async move {
                let _held = held;
                futures::future::pending::<()>().await;
            });
            core.yield_now().await;
            task.cancel();
            assert_eq!(task.join().await, TaskEnd::Cancelled);
            assert_eq!(drops.load(Ordering::SeqCst), 2);
        }
    })
    .await;
}

pub(super) async fn panics_are_contained(runtime: Arc<dyn Runtime>) {
    let told = |text: &str| TaskEnd::Panicked(text.to_owned());
    on_a_core(&*runtime, move |core| async move {
        let plain = core.spawn(Class::Io, "panics", async { panic!("plain") });
        let formatted = core.spawn(Class::Background, "panics too", async { panic!("number {}", 7) });
        assert_eq!(plain.join().await, told("plain"));
        assert_eq!(formatted.join().await, told("number 7"));
        let after = core.spawn(Class::Io, "goes on", async {});
        assert_eq!(after.join().await, TaskEnd::Finished);
        let held = PanicsInDrop;
        let task = core.spawn(Class::Io, "panics in drop", async move {
            let _held = held;
            futures::future::pending::<()>().await;
        });
        core.yield_now().await;
        task.cancel();
        assert_eq!(task.join().await, told("in drop"));
    })
    .await;
    let task = runtime.service().spawn("panics", async { panic!("plain") });
    assert_eq!(task.join().await, told("plain"));
}

struct PanicsInDrop;

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        panic!("in drop");
    }
}

pub(super) async fn a_panic_in_a_pump_is_fatal_and_told_by_join(runtime: Arc<dyn Runtime>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&told);
    let hook: FatalHook = Arc::new(move |panic| {
        kept.lock().unwrap_or_else(PoisonError::into_inner).push((panic.core, panic.task));
    });
    let main = core_main(|core| async move {
        if core.index() == 1 {
            let pump = core.spawn(Class::Pump, "pump", async { panic!("state is suspect") });
            assert_eq!(pump.join().await, TaskEnd::Panicked("state is suspect".to_owned()));
        }
        core.stopped().await;
    });
    let cores = start_with(&*runtime, 2, hook, &main);
    let panic = cores.join().await.expect_err("the panic is told");
    assert_eq!((panic.core, panic.task, panic.message.as_str()), (1, "pump", "state is suspect"));
    assert_eq!(*told.lock().unwrap_or_else(PoisonError::into_inner), [(1, "pump")]);
}

pub(super) async fn stop_ends_all_tasks_of_all_cores(runtime: Arc<dyn Runtime>) {
    const CORES: usize = 3;
    const TASKS: usize = 20;
    let (drops, ready) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (in_core, up) = (Arc::clone(&drops), Arc::clone(&ready));
    let cores = start(
        &*runtime,
        CORES,
        &core_main(move |core| {
            let (drops, ready) = (Arc::clone(&in_core), Arc::clone(&up));
            async move {
                let tasks: Vec<_> = (0..TASKS)
                    .map(|number| {
                        let (core_of_task, held) = (core.clone(), Dropped(Arc::clone(&drops)));
                        core.spawn(Class::Io, "waits for the stop", async move {
                            let _held = held;
                            core_of_task.stopped().await;
                            assert!(core_of_task.is_stopping());
                            // Half of them still have something to do.
                            if number % 2 == 0 {
                                core_of_task.sleep(MS).await;
                            }
                        })
                    })
                    .collect();
                ready.fetch_add(1, Ordering::SeqCst);
                for task in tasks {
                    assert_eq!(task.join().await, TaskEnd::Finished);
                }
                // One that nobody awaits: it is dropped with its core.
                let held = Dropped(Arc::clone(&drops));
                let left = core.spawn(Class::Background, "left behind", async move {
                    let _held = held;
                    futures::future::pending::<()>().await;
                });
                assert_eq!(left.name(), "left behind");
            }
        }),
    );
    let service = runtime.service();
    while ready.load(Ordering::SeqCst) < CORES {
        service.sleep(MS).await;
    }
    assert_eq!(drops.load(Ordering::SeqCst), 0, "a task ended before the stop");
    cores.stop();
    cores.stop();
    assert_eq!(cores.join().await, Ok(()));
    assert_eq!(drops.load(Ordering::SeqCst), CORES * (TASKS + 1));
}

pub(super) async fn blocking_gives_the_result_or_the_panic(runtime: Arc<dyn Runtime>) {
    let service = runtime.service();
    assert_eq!(service.blocking("adds", || 3 + 4).await, Ok(7));
    let panicked = service.blocking("panics", || -> u32 { panic!("no") }).await;
    assert_eq!(panicked, Err(BlockingError::Panicked { name: "panics", message: "no".to_owned() }));
    // It is done also when nobody waits for it.
    let (sender, receiver) = oneshot::channel();
    drop(service.blocking("unwatched", move || sender.send(9)));
    assert_eq!(receiver.await, Ok(9));
}
