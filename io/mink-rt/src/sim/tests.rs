//! The simulator: the conformance suite over many seeds, and what only it promises.

use super::*;
use crate::conformance::CASES;
use crate::{Class, Core, TaskEnd, core_main};
use futures::StreamExt as _;
use futures::channel::mpsc;
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

const MS: Duration = Duration::from_millis(1);

fn shards(count: usize) -> CoresConfig {
    CoresConfig { pin: Vec::new(), ..CoresConfig::shards(NonZeroUsize::new(count).unwrap()) }
}

#[test]
fn the_simulator_conforms_for_many_seeds() {
    for case in CASES {
        for seed in 0..10 {
            simulate(SimConfig::seeded(seed), move |runtime| case.run(runtime)).unwrap();
        }
    }
}

/// Cores and services that race for one channel: the order of arrival is the scheduler's choice.
async fn race(runtime: Arc<dyn Runtime>) -> Vec<u64> {
    let (sender, mut arrived) = mpsc::channel(64);
    let service = runtime.service();
    let on_cores = sender.clone();
    let main = core_main(move |core: Core| {
        let mut sender = on_cores.clone();
        async move {
            for round in 0..8 {
                core.yield_if_due().await;
                sender.try_send(u64::try_from(core.index()).unwrap() * 100 + round).unwrap();
                core.sleep(MS).await;
            }
        }
    });
    let cores = runtime.start_cores(shards(3), main).unwrap();
    let mut sender = sender;
    let drawn = service.clone();
    let task = service.spawn("draws", async move {
        for _ in 0..8 {
            drawn.sleep(Duration::from_micros(drawn.random_u64() % 2_000)).await;
            sender.try_send(900 + drawn.random_u64() % 10).unwrap();
        }
    });
    cores.join().await.unwrap();
    assert_eq!(task.join().await, TaskEnd::Finished);
    let mut order = Vec::new();
    while let Some(value) = arrived.next().await {
        order.push(value);
        if order.len() == 32 {
            break;
        }
    }
    order
}

#[test]
fn the_same_seed_gives_the_same_trace_and_another_seed_another_order() {
    let run = |seed| simulate(SimConfig::seeded(seed), race).unwrap();
    let orders: std::collections::BTreeSet<Vec<u64>> = (0..20)
        .map(|seed| {
            let outcome = run(seed);
            assert_eq!(outcome, run(seed), "seed {seed}");
            outcome.value
        })
        .collect();
    assert!(orders.len() > 10, "20 seeds gave only {} orders", orders.len());
}

#[test]
fn an_hour_of_sleep_takes_no_time_and_both_clocks_see_it() {
    let real = std::time::Instant::now();
    let hour = Duration::from_hours(1);
    let outcome = simulate(SimConfig::seeded(1), move |runtime| async move {
        let service = runtime.service();
        let (start, wall) = (service.now(), service.wall());
        service.sleep(hour).await;
        (service.now().duration_since(start), service.wall().as_millis() - wall.as_millis())
    })
    .unwrap();
    assert!(outcome.value.0 >= hour && outcome.value.0 < hour + MS);
    assert_eq!(outcome.value.1, 3_600_000);
    assert!(outcome.elapsed >= hour);
    assert!(real.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_deadlock_names_the_tasks_that_wait() {
    let failure = simulate(SimConfig::seeded(7), |runtime| async move {
        let cores = runtime.start_cores(
            shards(1),
            core_main(|core| async move {
                let task = core.spawn(Class::Io, "waits for nobody", futures::future::pending());
                assert_eq!(task.join().await, TaskEnd::Finished);
            }),
        );
        let task = runtime.service().spawn("waits too", futures::future::pending());
        cores.unwrap().join().await.unwrap();
        assert_eq!(task.join().await, TaskEnd::Finished);
    })
    .unwrap_err();
    let text = failure.to_string();
    let SimFailure::Deadlock { seed: 7, waiting } = failure else { panic!("{text}") };
    for name in ["root#0", "waits too#", "core0/main#", "core0/waits for nobody#"] {
        assert!(waiting.iter().any(|task| task.starts_with(name)), "{name} in {waiting:?}");
    }
    assert!(text.contains("seed 7"), "{text}");
}

#[test]
fn a_livelock_ends_at_the_bound_of_steps_and_names_who_runs() {
    let config = SimConfig { steps_max: 1_000, ..SimConfig::seeded(3) };
    let failure = simulate(config, |runtime| async move {
        let main = core_main(|core| async move {
            loop {
                core.yield_now().await;
            }
        });
        runtime.start_cores(shards(1), main).unwrap().join().await.unwrap();
    })
    .unwrap_err();
    let SimFailure::TooLong { seed: 3, steps: 1_000, runnable } = failure else { panic!("{failure}") };
    assert!(runnable.iter().any(|task| task.starts_with("core0/main#")), "{runnable:?}");
}

#[test]
fn a_pump_that_panics_fails_the_simulation() {
    let failure = simulate(SimConfig::seeded(5), |runtime| async move {
        let main = core_main(|_| async { panic!("suspect") });
        drop(runtime.start_cores(shards(1), main).unwrap().join().await);
    })
    .unwrap_err();
    let SimFailure::Pump { seed: 5, panic } = failure else { panic!("{failure}") };
    assert_eq!((panic.core, panic.task, panic.message.as_str()), (0, "main", "suspect"));
}

#[test]
fn what_still_runs_at_the_end_is_dropped_and_told_as_cancelled() {
    struct Seen(Arc<AtomicBool>, Service);
    impl Drop for Seen {
        fn drop(&mut self) {
            // A destructor that spawns must not keep the simulation alive.
            drop(self.1.spawn("too late", async {}));
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let dropped = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&dropped);
    let outcome = simulate(SimConfig::seeded(2), |runtime| async move {
        let service = runtime.service();
        let held = Seen(seen, service.clone());
        let task = service.spawn("waits", async move {
            let _held = held;
            futures::future::pending::<()>().await;
        });
        service.sleep(MS).await;
        (task, service)
    })
    .unwrap();
    assert!(dropped.load(Ordering::SeqCst));
    let (task, service) = outcome.value;
    assert_eq!(task.join().now_or_never(), Some(TaskEnd::Cancelled));
    let late = service.spawn("after the end", async {});
    assert_eq!(late.join().now_or_never(), Some(TaskEnd::Cancelled));
}

#[test]
fn a_wake_from_another_thread_is_safe() {
    let outcome = simulate(SimConfig::seeded(4), |runtime| async move {
        let service = runtime.service();
        let (sender, receiver) = oneshot::channel();
        let thread = Mutex::new(Some(std::thread::spawn(move || sender.send(5).unwrap())));
        let watch = service.clone();
        // Keeps virtual time going while the real thread takes its time.
        let ticks = service.spawn("ticks", async move {
            loop {
                watch.sleep(MS).await;
                std::thread::yield_now();
            }
        });
        let value = receiver.await.unwrap();
        ticks.cancel();
        assert_eq!(ticks.join().await, TaskEnd::Cancelled);
        thread.lock().unwrap().take().unwrap().join().unwrap();
        value
    })
    .unwrap();
    assert_eq!(outcome.value, 5);
}

/// A process that counts milliseconds by its own clock, and the count.
fn ticking(process: &SimProcess) -> Arc<std::sync::atomic::AtomicU64> {
    let ticks = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let (counted, service) = (Arc::clone(&ticks), process.runtime().service());
    let ticker = service.clone();
    drop(service.spawn("ticks", async move {
        loop {
            ticker.sleep(MS).await;
            counted.fetch_add(1, Ordering::Relaxed);
        }
    }));
    ticks
}

/// Says when it is dropped.
struct OnDrop(Arc<AtomicBool>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn a_killed_process_vanishes_where_it_waits_and_begins_nothing_more() {
    simulate_world(SimConfig::seeded(1), |world| async move {
        let (process, service) = (world.process(SimClock::default()), world.runtime().service());
        let ticks = ticking(&process);
        let dropped = Arc::new(AtomicBool::new(false));
        let held = OnDrop(Arc::clone(&dropped));
        let main = Mutex::new(Some(held));
        let cores = process.runtime().start_cores(
            shards(1),
            core_main(move |core: Core| {
                let held = main.lock().unwrap().take();
                async move {
                    let _held = held;
                    core.stopped().await;
                }
            }),
        );
        service.sleep(10 * MS).await;
        assert!(ticks.load(Ordering::Relaxed) >= 8);
        process.kill();
        let at = ticks.load(Ordering::Relaxed);
        service.sleep(10 * MS).await;
        assert_eq!(ticks.load(Ordering::Relaxed), at);
        assert!(dropped.load(Ordering::SeqCst) && !process.is_alive());
        assert!(cores.unwrap().join().await.is_err());
        let late = process.runtime().service().spawn("late", async { panic!("a dead process runs") });
        assert_eq!(late.join().await, TaskEnd::Cancelled);
    })
    .unwrap();
}

#[test]
fn a_paused_process_stands_still_while_its_clocks_go_on() {
    simulate_world(SimConfig::seeded(1), |world| async move {
        let clock = SimClock { boot_ahead: Duration::from_hours(1), drift_ppm: 0, wall_ahead_ms: -5 };
        let (process, service) = (world.process(clock), world.runtime().service());
        let (ticks, its) = (ticking(&process), process.runtime().service());
        service.sleep(10 * MS).await;
        process.pause();
        let (at, before) = (ticks.load(Ordering::Relaxed), its.now());
        service.sleep(100 * MS).await;
        assert_eq!(ticks.load(Ordering::Relaxed), at);
        assert!(its.now().duration_since(before) >= 100 * MS);
        process.resume();
        service.sleep(10 * MS).await;
        assert!(ticks.load(Ordering::Relaxed) > at + 5);
        assert_eq!(its.wall().as_millis(), service.wall().as_millis() - 5);
        process.set_wall_ahead(3_600_000);
        assert_eq!(its.wall().as_millis(), service.wall().as_millis() + 3_600_000);
    })
    .unwrap();
}

#[test]
fn a_clock_that_drifts_sleeps_by_its_own_time() {
    simulate_world(SimConfig::seeded(1), |world| async move {
        let fast = world.process(SimClock { drift_ppm: 100_000, ..SimClock::default() });
        let (its, service) = (fast.runtime().service(), world.runtime().service());
        let (before, real) = (its.now(), service.now());
        its.sleep(Duration::from_secs(11)).await;
        assert!(its.now().duration_since(before) >= Duration::from_secs(11));
        let passed = service.now().duration_since(real);
        assert!(
            passed >= Duration::from_millis(9_999) && passed < Duration::from_millis(10_010),
            "{passed:?}"
        );
    })
    .unwrap();
}
