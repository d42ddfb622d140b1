//! Pinned cores on tokio's current-thread runtime and its `LocalSet`, without an I/O driver.
//! Lives on: one thread per core.
//! Owns: the threads of the cores and of their watchdog.     Talks to: tokio.

use crate::beat::{Answer, Beat};
use crate::core_handle::CoreBackend;
use crate::cores::{CoreShared, abort_process};
use crate::stop::StopSeen;
use crate::{
    Class, Core, CoreMain, CorePanic, Cores, CoresConfig, Error, ErrorKind, Instant, WallTime, Watchdog,
};
use futures::channel::oneshot;
use futures::future::{FutureExt as _, LocalBoxFuture};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

/// tokio's park returns whenever something was woken, so a quiet core needs no posts to stay alive.
const PARKS_ARE_SOUND: bool = true;

pub(super) fn start(config: CoresConfig, main: &CoreMain) -> Result<Cores, Error> {
    let count = config.count.get();
    let on_fatal = config.on_fatal.unwrap_or_else(|| Arc::new(abort_process));
    let (shared, stops) = CoreShared::new(count, on_fatal);
    let beats: Arc<[Arc<Beat>]> = (0..count).map(|_| Arc::new(Beat::default())).collect();
    let mut ends = Vec::with_capacity(count);
    for (index, (beat, stop)) in beats.iter().zip(stops).enumerate() {
        let (sender, end) = oneshot::channel();
        let seed = Seed {
            index,
            cpu: config.pin.get(index % config.pin.len().max(1)).copied(),
            shared: Arc::clone(&shared),
            beat: Arc::clone(beat),
            stop,
            main: Arc::clone(main),
        };
        let started = seed.into_runtime().and_then(|(seed, runtime)| {
            std::thread::Builder::new()
                .name(format!("{}-{index}", config.name))
                .spawn(move || seed.run(runtime, sender))
        });
        if let Err(source) = started {
            shared.stop();
            return Err(refused(&format!("cannot start core {index}"), source));
        }
        ends.push(end);
    }
    let watched = Arc::clone(&beats);
    let watchdog = std::thread::Builder::new()
        .name("mink-watchdog".to_owned())
        .spawn(move || crate::watchdog::watch(&watched, PARKS_ARE_SOUND));
    if let Err(source) = watchdog {
        shared.stop();
        return Err(refused("cannot start the watchdog", source));
    }
    Ok(Cores::new(shared, ends, Watchdog::new(beats, super::now)))
}

fn refused(what: &str, source: io::Error) -> Error {
    Error::new(ErrorKind::Machine, what, "raise the limit of threads, or start fewer shards")
        .with_source(source)
}

/// All that a core's thread starts from.
struct Seed {
    index: usize,
    cpu: Option<usize>,
    shared: Arc<CoreShared>,
    beat: Arc<Beat>,
    stop: StopSeen,
    main: CoreMain,
}

/// Marks the core as ended whatever ends its thread, or the watchdog would wait for its answers for ever.
struct EndMark(Arc<Beat>);

impl Drop for EndMark {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Seed {
    /// Made before the thread, so that a refusal is an error of the start.
    fn into_runtime(self) -> io::Result<(Self, Runtime)> {
        let (parked, unparked) = (Arc::clone(&self.beat), Arc::clone(&self.beat));
        let runtime = Builder::new_current_thread()
            .enable_time()
            .on_thread_park(move || parked.park(super::now()))
            .on_thread_unpark(move || unparked.unpark(super::now()))
            .build()?;
        Ok((self, runtime))
    }

    fn run(self, runtime: Runtime, end: oneshot::Sender<Result<(), CorePanic>>) {
        let mark = EndMark(Arc::clone(&self.beat));
        self.beat.on_this_thread();
        if let Some(cpu) = self.cpu {
            pin(self.index, cpu);
        }
        let local = LocalSet::new();
        let core = Core::new(self.index, self.shared, Box::new(TokioCore), Arc::clone(&self.beat), self.stop);
        let answer = Answer(self.beat);
        let main = self.main;
        let result = local.block_on(&runtime, async move {
            let answer = tokio::task::spawn_local(answer);
            let result = core.run_main(main).await;
            answer.abort();
            result
        });
        // Every task is dropped before the end is told: whoever joined may rely on it.
        drop(local);
        drop(runtime);
        drop(mark);
        drop(end.send(result));
    }
}

/// Pinning is for speed, so a refusal is told and survived.
fn pin(core: usize, cpu: usize) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use rustix::thread::{CpuSet, sched_setaffinity};
        let mut set = CpuSet::new();
        if cpu >= CpuSet::MAX_CPU {
            tracing::warn!(core, cpu, "cannot pin to a CPU of that number");
            return;
        }
        set.set(cpu);
        if let Err(error) = sched_setaffinity(None, &set) {
            tracing::warn!(core, cpu, %error, "cannot pin");
        }
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    tracing::debug!(core, cpu, "this system cannot pin");
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
