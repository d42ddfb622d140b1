//! The threads of a set of cores, whatever executor drives them: started, named, pinned, watched, and their ends told.
//! Lives on: one thread per core, and the watchdog's.
//! Owns: those threads.     Talks to: a backend's executor.
//! Invariants: a core that could not start stops the others; when an end is told, every task of that core is dropped.

use crate::beat::{Answer, Beat};
use crate::core_handle::CoreBackend;
use crate::cores::{CoreShared, abort_process};
use crate::stop::StopSeen;
use crate::task::message_of;
use crate::{Core, CoreMain, CorePanic, Cores, CoresConfig, Error, ErrorKind, Watchdog};
use futures::channel::oneshot;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};

/// What drives one core. Made, run and dropped on the core's thread.
pub(crate) trait Executor: Sized {
    /// Whether it never parks a core that has something to run. If not, the watchdog posts to every core at every look.
    const PARKS_ARE_SOUND: bool;

    /// # Errors
    /// What the system refused.
    fn new(beat: &Arc<Beat>) -> Result<Self, Error>;

    /// The core's side of it.
    fn backend(&self) -> Box<dyn CoreBackend>;

    /// Runs `main` until it returns, and `answer` beside it. Every task has been dropped when this returns.
    fn run(self, core: Core, main: CoreMain, answer: Answer) -> Result<(), CorePanic>;
}

/// Starts the cores and waits until each has its executor.
///
/// # Errors
/// [`ErrorKind::Machine`] when the system refuses a thread or an executor.
pub(crate) fn start<E: Executor>(config: CoresConfig, main: &CoreMain) -> Result<Cores, Error> {
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
        if let Err(error) = seed.start::<E>(config.name, sender) {
            shared.stop();
            return Err(error);
        }
        ends.push(end);
    }
    let watched = Arc::clone(&beats);
    let watchdog = std::thread::Builder::new()
        .name("mink-watchdog".to_owned())
        .spawn(move || crate::watchdog::watch(&watched, E::PARKS_ARE_SOUND));
    if let Err(source) = watchdog {
        shared.stop();
        return Err(refused("cannot start the watchdog", source));
    }
    Ok(Cores::new(shared, ends, Watchdog::new(beats, crate::clock::boot_now)))
}

pub(crate) fn refused(what: &str, source: io::Error) -> Error {
    // An executor on io_uring takes a ring and an event: where files run out, threads are not what is lacking.
    let remedy = if lacks_files(&source) {
        "raise the limit of open files (ulimit -n), or start fewer shards"
    } else {
        "raise the limit of threads (ulimit -u), or start fewer shards"
    };
    Error::new(ErrorKind::Machine, what, remedy).with_source(source)
}

fn lacks_files(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(rustix::io::Errno::from_raw_os_error);
    matches!(errno, Some(rustix::io::Errno::MFILE | rustix::io::Errno::NFILE))
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

type Ended = oneshot::Sender<Result<(), CorePanic>>;

impl Seed {
    fn start<E: Executor>(self, name: &str, end: Ended) -> Result<(), Error> {
        let index = self.index;
        let (made, is_made) = sync_channel(1);
        let failed = |source| refused(&format!("cannot start core {index}"), source);
        std::thread::Builder::new()
            .name(format!("{name}-{index}"))
            .spawn(move || self.run::<E>(&made, end))
            .map_err(failed)?;
        // A sender that is gone without a word panicked on its thread, which has told why.
        is_made.recv().unwrap_or_else(|_| Err(failed(io::Error::other("its thread ended at once"))))
    }

    fn run<E: Executor>(self, made: &SyncSender<Result<(), Error>>, end: Ended) {
        let mark = EndMark(Arc::clone(&self.beat));
        self.beat.on_this_thread();
        if let Some(cpu) = self.cpu {
            pin(self.index, cpu);
        }
        let executor = match E::new(&self.beat) {
            Ok(executor) => executor,
            Err(error) => {
                drop(made.send(Err(error)));
                return;
            }
        };
        drop(made.send(Ok(())));
        let shared = Arc::clone(&self.shared);
        let core = Core::new(self.index, self.shared, executor.backend(), Arc::clone(&self.beat), self.stop);
        let index = self.index;
        let run = AssertUnwindSafe(|| executor.run(core, self.main, Answer(self.beat)));
        // No task's panic comes here. One of the executor leaves the shard's state as suspect as one of its pump.
        let result = catch_unwind(run).unwrap_or_else(|payload| {
            let panic = CorePanic { core: index, task: "executor", message: message_of(&*payload) };
            shared.fatal(panic.clone());
            Err(panic)
        });
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
