//! The io_uring backend: the conformance suite, and what only real threads can show.

use super::*;
use crate::conformance::CASES;
use crate::{Class, ServiceConfig, TaskEnd, core_main};
use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::time::Duration;

/// Nothing where the kernel or a profile forbids io_uring: such a test is skipped by name, and fails under
/// `MINK_TEST_STRICT=1`.
fn runtime(test: &str) -> Option<(Arc<EpollRuntime>, Arc<UringRuntime>)> {
    let services = EpollRuntime::start(ServiceConfig::default()).unwrap();
    match UringRuntime::beside(Arc::clone(&services)) {
        Ok(runtime) => Some((services, runtime)),
        Err(error) => {
            let strict = std::env::var_os("MINK_TEST_STRICT").is_some_and(|value| value == "1");
            assert!(!strict, "{test} needs io_uring: {error}");
            println!("skipped: {test} needs io_uring: {error}");
            None
        }
    }
}

fn shards(count: usize) -> CoresConfig {
    CoresConfig::shards(NonZeroUsize::new(count).unwrap())
}

#[test]
fn the_uring_backend_conforms() {
    let Some((services, runtime)) = runtime("the conformance suite") else { return };
    for case in CASES {
        println!("{}", case.name);
        services.block_on(case.run(Arc::clone(&runtime) as Arc<dyn Runtime>));
    }
}

#[test]
fn a_task_that_blocks_its_core_for_200_ms_is_counted_as_a_stall_of_that_core() {
    let Some((services, runtime)) = runtime("a stall") else { return };
    let main = core_main(|core| async move {
        if core.index() == 1 {
            let task = core.spawn(Class::Background, "blocks", async {
                std::thread::sleep(Duration::from_millis(200));
            });
            assert_eq!(task.join().await, TaskEnd::Finished);
        }
    });
    let cores = runtime.start_cores(shards(2), main).unwrap();
    let watchdog = cores.watchdog();
    services.block_on(cores.join()).unwrap();
    let stats = watchdog.core(1).unwrap();
    assert!(stats.stalls >= 1 && stats.parked_stalls == 0, "{stats:?}");
    assert!(stats.foreign_wakes >= 1, "{stats:?}");
}

#[test]
fn threads_are_named_and_pinned() {
    let Some((services, runtime)) = runtime("names of threads") else { return };
    let last = *crate::allowed_cores().last().unwrap();
    let names = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&names);
    let main = core_main(move |core| {
        let name = std::thread::current().name().unwrap().to_owned();
        seen.lock().unwrap().push((core.index(), name, crate::allowed_cores()));
        async {}
    });
    let cores = runtime.start_cores(CoresConfig { pin: vec![last], ..shards(2) }, main).unwrap();
    services.block_on(cores.join()).unwrap();
    let mut names = names.lock().unwrap().clone();
    names.sort();
    let expected = |core: usize| (core, format!("mink-shard-{core}"), vec![last]);
    assert_eq!(names, [expected(0), expected(1)]);
}

/// glommio does not tell when it parks.
#[cfg(not(feature = "glommio"))]
#[test]
fn an_idle_core_is_parked_and_polls_nothing() {
    let Some((services, runtime)) = runtime("an idle core") else { return };
    let cores =
        runtime.start_cores(shards(1), core_main(|core| async move { core.stopped().await })).unwrap();
    let watchdog = cores.watchdog();
    services.block_on(async {
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

/// Set for the child process that is meant to die.
const CHILD: &str = "MINK_RT_TEST_URING_PUMP_CHILD";

#[test]
fn by_default_a_panic_in_a_pump_ends_the_process_and_names_the_task() {
    let Some((services, runtime)) = runtime("a panic in a pump") else { return };
    if std::env::var_os(CHILD).is_some() {
        let main = core_main(|core| async move {
            let pump = core.spawn(Class::Pump, "pump", async { panic!("state is suspect") });
            assert_eq!(pump.join().await, TaskEnd::Finished);
        });
        let cores = runtime.start_cores(shards(1), main).unwrap();
        let ended = services.block_on(cores.join());
        panic!("the process lives on: {ended:?}");
    }
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture"])
        .arg("uring::tests::by_default_a_panic_in_a_pump_ends_the_process_and_names_the_task")
        .env(CHILD, "1")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&child.stderr);
    assert!(std::os::unix::process::ExitStatusExt::signal(&child.status).is_some(), "{:?}", child.status);
    assert!(told.contains("mink: task \"pump\" of core 0 panicked: state is suspect"), "{told}");
    assert!(!told.contains("the process lives on"), "{told}");
}
