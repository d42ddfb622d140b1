//! The epoll backend: the conformance suite, and what only real threads can show.

use super::*;
use crate::conformance::CASES;
use crate::{Class, Core, TaskEnd, core_main};
use futures::FutureExt as _;
use futures::channel::oneshot;

fn runtime() -> Arc<EpollRuntime> {
    EpollRuntime::start(ServiceConfig::default()).unwrap()
}

#[test]
fn the_epoll_backend_conforms() {
    let runtime = runtime();
    for case in CASES {
        println!("{}", case.name);
        runtime.block_on(case.run(Arc::clone(&runtime) as Arc<dyn Runtime>));
    }
}

/// Blocks without a clock's help for `duration`: what a core must never do.
fn block_the_core(duration: Duration) {
    std::thread::sleep(duration);
}

fn shards(count: usize) -> CoresConfig {
    CoresConfig::shards(NonZeroUsize::new(count).unwrap())
}

#[test]
fn a_task_that_blocks_its_core_for_200_ms_is_counted_as_a_stall_of_that_core() {
    let runtime = runtime();
    let main = core_main(|core| async move {
        if core.index() == 1 {
            let task = core.spawn(Class::Background, "blocks", async {
                block_the_core(Duration::from_millis(200));
            });
            assert_eq!(task.join().await, TaskEnd::Finished);
        }
    });
    let cores = runtime.start_cores(shards(2), main).unwrap();
    let watchdog = cores.watchdog();
    runtime.block_on(cores.join()).unwrap();
    let stats = watchdog.core(1).unwrap();
    // A machine under load may add stalls of its own, but none in which the core was parked.
    assert!(stats.stalls >= 1 && stats.parked_stalls == 0, "{stats:?}");
    assert!(stats.foreign_wakes >= 1, "{stats:?}");
    assert!(watchdog.core(2).is_none());
}

#[test]
fn a_blocked_core_shows_the_name_of_its_task() {
    let runtime = runtime();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let released = Mutex::new(Some(released));
    let main = core_main(move |core: Core| {
        let released = released.lock().unwrap().take().unwrap();
        async move {
            let task = core.spawn(Class::Background, "blocks", async move { released.recv().unwrap() });
            assert_eq!(task.join().await, TaskEnd::Finished);
        }
    });
    let cores = runtime.start_cores(shards(1), main).unwrap();
    let watchdog = cores.watchdog();
    runtime.block_on(async {
        let service = runtime.service();
        let stalled = async {
            while watchdog.stalls() == 0 {
                service.sleep(Duration::from_millis(1)).await;
            }
        };
        service.timeout(Duration::from_secs(20), stalled).await.unwrap();
    });
    assert_eq!(watchdog.running(0), Some("blocks"));
    release.send(()).unwrap();
    runtime.block_on(cores.join()).unwrap();
    assert_eq!(watchdog.running(0), None);
}

#[test]
fn an_idle_core_is_parked_and_polls_nothing() {
    let runtime = runtime();
    let cores =
        runtime.start_cores(shards(1), core_main(|core| async move { core.stopped().await })).unwrap();
    let watchdog = cores.watchdog();
    runtime.block_on(async {
        let service = runtime.service();
        while watchdog.core(0).unwrap().polls == 0 {
            service.sleep(Duration::from_millis(1)).await;
        }
        let (before, start) = (watchdog.core(0).unwrap(), service.now());
        service.sleep(Duration::from_millis(400)).await;
        let (after, passed) = (watchdog.core(0).unwrap(), service.now().duration_since(start));
        assert_eq!(after.polls, before.polls, "the watchdog's wakes are not polls of tasks");
        let parked = after.parked.saturating_sub(before.parked);
        assert!(parked > passed / 2, "parked for {parked:?} of {passed:?}");
        cores.stop();
        cores.join().await.unwrap();
    });
}

#[test]
fn threads_are_named_and_pinned() {
    let runtime = runtime();
    let pin = crate::allowed_cores();
    let last = *pin.last().unwrap();
    let names = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&names);
    let main = core_main(move |core| {
        let name = std::thread::current().name().unwrap().to_owned();
        seen.lock().unwrap().push((core.index(), name, crate::allowed_cores()));
        async {}
    });
    let cores = runtime.start_cores(CoresConfig { pin: vec![last], ..shards(2) }, main).unwrap();
    runtime.block_on(cores.join()).unwrap();
    let mut names = names.lock().unwrap().clone();
    names.sort();
    let expected = |core: usize| (core, format!("mink-shard-{core}"), vec![last]);
    assert_eq!(names, [expected(0), expected(1)]);
    let service = runtime.block_on(async {
        let (sender, name) = oneshot::channel();
        let task = runtime.service().spawn("tells its thread", async move {
            sender.send(std::thread::current().name().unwrap().to_owned()).unwrap();
        });
        assert_eq!(task.join().await, TaskEnd::Finished);
        name.await.unwrap()
    });
    assert!(service.starts_with("mink-service-"), "{service}");
    assert_eq!(crate::allowed_cores(), pin, "pinning a core leaves the other threads alone");
}

#[test]
fn more_shards_than_cpus_are_not_pinned_by_default() {
    let allowed = crate::allowed_cores();
    assert_eq!(shards(allowed.len()).pin, allowed);
    assert!(shards(allowed.len() + 1).pin.is_empty());
}

#[test]
fn a_cpu_that_does_not_exist_does_not_keep_a_core_from_running() {
    let runtime = runtime();
    for cpu in [1_000, usize::MAX] {
        let main = core_main(|_| async {});
        let cores = runtime.start_cores(CoresConfig { pin: vec![cpu], ..shards(1) }, main).unwrap();
        runtime.block_on(cores.join()).unwrap();
    }
}

#[test]
fn a_socket_on_a_core_fails_at_once() {
    let runtime = runtime();
    let main = core_main(|core| async move {
        let task = core.spawn(Class::Io, "binds", async {
            tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        });
        assert!(matches!(task.join().await, TaskEnd::Panicked(_)));
    });
    let cores = runtime.start_cores(shards(1), main).unwrap();
    runtime.block_on(cores.join()).unwrap();
}

#[test]
fn dropping_the_handle_stops_the_cores() {
    let runtime = runtime();
    let ended = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&ended);
    let main = core_main(move |core| {
        let ended = Arc::clone(&counted);
        async move {
            core.stopped().await;
            ended.fetch_add(1, Ordering::SeqCst);
        }
    });
    drop(runtime.start_cores(shards(2), main).unwrap());
    runtime.block_on(async {
        let service = runtime.service();
        let all = async {
            while ended.load(Ordering::SeqCst) < 2 {
                service.sleep(Duration::from_millis(1)).await;
            }
        };
        service.timeout(Duration::from_secs(20), all).await.unwrap();
    });
}

#[test]
fn a_runtime_that_shuts_down_cancels_its_tasks_and_refuses_more() {
    let runtime = runtime();
    let service = runtime.service();
    let task = service.spawn("waits for ever", futures::future::pending());
    runtime.shutdown(Duration::from_secs(5));
    runtime.shutdown(Duration::from_secs(5));
    assert_eq!(task.join().now_or_never(), Some(TaskEnd::Cancelled));
    let late = service.spawn("too late", async {});
    assert_eq!(late.join().now_or_never(), Some(TaskEnd::Cancelled));
    let work = service.blocking("too late", || 1).now_or_never();
    assert_eq!(work, Some(Err(crate::BlockingError::Stopped { name: "too late" })));
}

#[test]
fn it_attaches_to_the_runtime_it_is_called_on_and_nowhere_else() {
    assert_eq!(EpollRuntime::attach().unwrap_err().kind(), ErrorKind::Misuse);
    let outer = Builder::new_current_thread().enable_all().build().unwrap();
    outer.block_on(async {
        let runtime = EpollRuntime::attach().unwrap();
        assert_eq!(runtime.name(), "epoll");
        let task = runtime.service().spawn("runs", async {});
        assert_eq!(task.join().await, TaskEnd::Finished);
        drop(runtime);
    });
}

/// Set for the child process that is meant to die.
const CHILD: &str = "MINK_RT_TEST_PUMP_CHILD";

#[test]
fn by_default_a_panic_in_a_pump_ends_the_process_and_names_the_task() {
    if std::env::var_os(CHILD).is_some() {
        let runtime = runtime();
        let main = core_main(|core| async move {
            let pump = core.spawn(Class::Pump, "pump", async { panic!("state is suspect") });
            assert_eq!(pump.join().await, TaskEnd::Finished);
        });
        let cores = runtime.start_cores(shards(1), main).unwrap();
        let ended = runtime.block_on(cores.join());
        panic!("the process lives on: {ended:?}");
    }
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture"])
        .arg("epoll::tests::by_default_a_panic_in_a_pump_ends_the_process_and_names_the_task")
        .env(CHILD, "1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&child.stderr);
    assert!(!child.status.success(), "{told}");
    assert!(told.contains("mink: task \"pump\" of core 0 panicked: state is suspect"), "{told}");
    assert!(!told.contains("the process lives on"), "{told}");
    #[cfg(unix)]
    assert!(std::os::unix::process::ExitStatusExt::signal(&child.status).is_some(), "{:?}", child.status);
}
