//! The simulator's loop: takes in what was spawned, draws a runnable task, polls it once.
//! Lives on: the simulation's thread.
//! Owns: the futures of all tasks.     Talks to: the shared state.

use crate::beat::Answer;
use crate::core_handle::CoreBackend;
use crate::sim::process::WORLD;
use crate::sim::state::{Arrival, CoreSeed, Next, Shared, Sleep, TaskId, TaskWaker};
use crate::sim::{ProcessId, SimFailure};
use crate::{Class, Core, CorePanic, Instant, WallTime};
use futures::channel::oneshot;
use futures::future::{FutureExt as _, LocalBoxFuture};
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

const ROOT: TaskId = 0;

/// A started core of the simulation. Sets of cores may share indices, so this has a number of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    process: ProcessId,
    number: u64,
    index: usize,
}

struct SimTask {
    name: &'static str,
    process: ProcessId,
    place: Option<Place>,
    /// Set on the task whose end is the end of its core.
    ends_core: Option<CoreEnd>,
    future: LocalBoxFuture<'static, ()>,
    waker: Waker,
}

struct CoreEnd {
    result: Rc<RefCell<Option<Result<(), CorePanic>>>>,
    sender: oneshot::Sender<Result<(), CorePanic>>,
}

/// Tasks spawned by cores; they may not be `Send`, so they come by another way than the services'.
type LocalArrivals = Rc<RefCell<VecDeque<(Place, &'static str, LocalBoxFuture<'static, ()>)>>>;

pub(super) struct Executor {
    shared: Arc<Shared>,
    tasks: BTreeMap<TaskId, SimTask>,
    next_id: TaskId,
    places: u64,
    local_arrivals: LocalArrivals,
}

impl Executor {
    pub(super) fn new(shared: Arc<Shared>, root: LocalBoxFuture<'static, ()>) -> Self {
        let mut executor = Self {
            shared,
            tasks: BTreeMap::new(),
            next_id: ROOT,
            places: 0,
            local_arrivals: LocalArrivals::default(),
        };
        executor.admit("root", WORLD, None, None, root);
        executor
    }

    /// Polls until the root has completed.
    pub(super) fn run(&mut self) -> Result<(), SimFailure> {
        let seed = self.shared.seed();
        while self.tasks.contains_key(&ROOT) {
            self.take_arrivals();
            match self.shared.next() {
                Next::Poll(id) => self.poll(id),
                Next::Stuck => {
                    let waiting = self.tasks.iter().map(|(id, task)| label(*id, task)).collect();
                    return Err(SimFailure::Deadlock { seed, waiting });
                }
                Next::TooLong(ready) => {
                    let name = |id: TaskId| self.tasks.get(&id).map(|task| label(id, task));
                    let runnable = ready.into_iter().filter_map(name).collect();
                    return Err(SimFailure::TooLong { seed, steps: self.shared.totals().1, runnable });
                }
            }
            if let Some(panic) = self.shared.failed() {
                return Err(SimFailure::Pump { seed, panic });
            }
        }
        Ok(())
    }

    fn poll(&mut self, id: TaskId) {
        // A wake may come for a task that has ended since.
        let Some(task) = self.tasks.get_mut(&id) else {
            return;
        };
        let waker = task.waker.clone();
        let Poll::Ready(()) = task.future.as_mut().poll(&mut Context::from_waker(&waker)) else {
            return;
        };
        let Some(ended) = self.tasks.remove(&id) else {
            return;
        };
        self.shared.forget(id, ended.process);
        let SimTask { place, ends_core, future, .. } = ended;
        drop(future);
        if let (Some(place), Some(end)) = (place, ends_core) {
            self.end_core(place, end);
        }
    }

    /// Every task of the core is dropped before its end is told.
    fn end_core(&mut self, place: Place, end: CoreEnd) {
        self.take_arrivals();
        let left: Vec<TaskId> =
            self.tasks.iter().filter(|(_, task)| task.place == Some(place)).map(|(id, _)| *id).collect();
        for id in left {
            self.shared.forget(id, place.process);
            drop(self.tasks.remove(&id));
        }
        let lost = || CorePanic { core: place.index, task: "executor", message: "no result".to_owned() };
        let result = end.result.borrow_mut().take().unwrap_or_else(|| Err(lost()));
        drop(end.sender.send(result));
    }

    fn take_arrivals(&mut self) {
        loop {
            let local = self.local_arrivals.borrow_mut().pop_front();
            if let Some((place, name, future)) = local {
                if self.shared.is_alive(place.process) {
                    self.admit(name, place.process, Some(place), None, future);
                }
                continue;
            }
            match self.shared.next_arrival() {
                // What was spawned before its process was killed is dropped here.
                Some(Arrival::Task { process, .. }) if !self.shared.is_alive(process) => {}
                Some(Arrival::Core(seed)) if !self.shared.is_alive(seed.process) => {}
                Some(Arrival::Task { process, name, future }) => {
                    self.admit(name, process, None, None, future);
                }
                Some(Arrival::Core(seed)) => self.start_core(seed),
                Some(Arrival::Kill(process)) => self.kill(process),
                None => return,
            }
        }
    }

    /// All tasks of the process vanish where they wait, in the order of spawning; what their destructors spawn is refused.
    fn kill(&mut self, process: ProcessId) {
        let dead: Vec<TaskId> =
            self.tasks.iter().filter(|(_, task)| task.process == process).map(|(id, _)| *id).collect();
        for id in dead {
            self.shared.forget(id, process);
            drop(self.tasks.remove(&id));
        }
    }

    fn start_core(&mut self, seed: CoreSeed) {
        self.places += 1;
        let process = seed.process;
        let place = Place { process, number: self.places, index: seed.index };
        let backend = SimCore {
            shared: Arc::clone(&self.shared),
            place,
            local_arrivals: Rc::clone(&self.local_arrivals),
        };
        let core = Core::new(seed.index, seed.cores, Box::new(backend), Arc::clone(&seed.beat), seed.stop);
        self.admit("beat", process, Some(place), None, Answer(seed.beat).boxed_local());
        let result = Rc::new(RefCell::new(None));
        let kept = Rc::clone(&result);
        let main = seed.main;
        let future = async move {
            let ended = core.run_main(main).await;
            *kept.borrow_mut() = Some(ended);
        };
        let end = CoreEnd { result, sender: seed.end };
        self.admit("core", process, Some(place), Some(end), future.boxed_local());
    }

    fn admit(
        &mut self,
        name: &'static str,
        process: ProcessId,
        place: Option<Place>,
        ends_core: Option<CoreEnd>,
        future: LocalBoxFuture<'static, ()>,
    ) {
        let id = self.next_id;
        self.next_id += 1;
        let waker = Waker::from(Arc::new(TaskWaker { id, process, shared: Arc::clone(&self.shared) }));
        self.tasks.insert(id, SimTask { name, process, place, ends_core, future, waker });
        self.shared.wake(id, process);
    }
}

/// What is left is dropped in the order of spawning; what its destructors spawn is refused.
impl Drop for Executor {
    fn drop(&mut self) {
        self.shared.close();
        while let Some((_, task)) = self.tasks.pop_first() {
            drop(task);
        }
        // Dropping one may have spawned another.
        loop {
            let arrival = self.local_arrivals.borrow_mut().pop_front();
            if arrival.is_none() {
                break;
            }
        }
    }
}

fn label(id: TaskId, task: &SimTask) -> String {
    match task.place {
        Some(place) => format!("core{}/{}#{id}", place.index, task.name),
        None => format!("{}#{id}", task.name),
    }
}

struct SimCore {
    shared: Arc<Shared>,
    place: Place,
    local_arrivals: LocalArrivals,
}

impl CoreBackend for SimCore {
    fn now(&self) -> Instant {
        self.shared.now_of(self.place.process)
    }

    fn wall(&self) -> WallTime {
        self.shared.wall_of(self.place.process)
    }

    fn spawn(&self, _class: Class, name: &'static str, future: LocalBoxFuture<'static, ()>) {
        self.local_arrivals.borrow_mut().push_back((self.place, name, future));
    }

    fn sleep(&self, duration: Duration) -> LocalBoxFuture<'static, ()> {
        Sleep::new(Arc::clone(&self.shared), self.place.process, duration).boxed_local()
    }

    fn yield_now(&self) -> LocalBoxFuture<'static, ()> {
        let mut yielded = false;
        futures::future::poll_fn(move |cx| {
            if std::mem::replace(&mut yielded, true) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .boxed_local()
    }

    fn budget_spent(&self, _since: Instant) -> bool {
        self.shared.draws_a_yield()
    }
}
