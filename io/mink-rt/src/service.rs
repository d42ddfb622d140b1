//! The handle of the service runtime, where our own tasks live that are no shard: WAL writer, flusher, SQL driver.
//! Lives on: anywhere; its tasks on the service runtime (in the simulator: on the one simulated thread).
//! Owns: nothing.     Talks to: a backend.
//! Invariants: no type of the runtime underneath shows in a signature.

use crate::task::{Contained, Task, message_of};
use crate::{Instant, WallTime};
use futures::channel::oneshot;
use futures::future::{BoxFuture, FutureExt as _};
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// What a backend does for [`Service`].
pub(crate) trait ServiceBackend: Send + Sync {
    fn now(&self) -> Instant;
    fn wall(&self) -> WallTime;
    fn random_u64(&self) -> u64;
    fn spawn(&self, name: &'static str, future: BoxFuture<'static, ()>);
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;
    fn spawn_blocking(&self, name: &'static str, work: Box<dyn FnOnce() + Send>);
}

/// Handle of the service runtime. Cheap to clone; may be used from any thread, the cores included.
#[derive(Clone)]
pub struct Service {
    backend: Arc<dyn ServiceBackend>,
}

/// The time given to [`Service::timeout`] ran out; the future was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no result within {0:?}")]
pub struct Elapsed(pub Duration);

/// Work given to [`Service::blocking`] left no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BlockingError {
    /// It panicked; what it had done until then is done.
    #[error("blocking work {name:?} panicked: {message}")]
    Panicked {
        /// The name given to [`Service::blocking`].
        name: &'static str,
        /// The panic's message.
        message: String,
    },
    /// The runtime ended before it began.
    #[error("blocking work {name:?} did not run: the runtime has stopped")]
    Stopped {
        /// The name given to [`Service::blocking`].
        name: &'static str,
    },
}

impl Service {
    pub(crate) fn new(backend: Arc<dyn ServiceBackend>) -> Self {
        Self { backend }
    }

    /// Spawns a task. Its panics are contained, logged as an error, and told by [`Task::join`].
    pub fn spawn(&self, name: &'static str, future: impl Future<Output = ()> + Send + 'static) -> Task {
        let on_panic = Box::new(move |message: &str| {
            tracing::error!(task = name, panic = message, "service task panicked");
        });
        let (contained, link) = Contained::new(name, future.boxed(), on_panic);
        self.backend.spawn(name, contained.boxed());
        Task::new(link)
    }

    /// Completes `duration` from now at the earliest (the real backend rounds up to whole milliseconds). The
    /// sleep itself does not count time in which the machine was suspended; compare [`Service::now`] for that.
    pub fn sleep(&self, duration: Duration) -> impl Future<Output = ()> + Send + use<> {
        self.backend.sleep(duration)
    }

    /// Completes at `deadline` or soon after; at once when it has passed.
    pub fn sleep_until(&self, deadline: Instant) -> impl Future<Output = ()> + Send + use<> {
        self.backend.sleep(deadline.duration_since(self.now()))
    }

    /// Monotonic time, counted through suspends.
    pub fn now(&self) -> Instant {
        self.backend.now()
    }

    /// The wall clock; see [`WallTime`] for what it may not decide.
    pub fn wall(&self) -> WallTime {
        self.backend.wall()
    }

    /// A random number: from the operating system's generator, or from the seed in the simulator.
    pub fn random_u64(&self) -> u64 {
        self.backend.random_u64()
    }

    /// The result of `future`, or [`Elapsed`] after `duration`; the future is dropped then. A future that is ready
    /// when the time runs out wins.
    ///
    /// # Errors
    /// [`Elapsed`]. The future's work may have been done or not: its outcome is indeterminate.
    pub async fn timeout<F: Future>(&self, duration: Duration, future: F) -> Result<F::Output, Elapsed> {
        let sleep = self.backend.sleep(duration);
        match futures::future::select(std::pin::pin!(future), sleep).await {
            futures::future::Either::Left((output, _)) => Ok(output),
            futures::future::Either::Right(((), _)) => Err(Elapsed(duration)),
        }
    }

    /// Runs `work` off the runtime's threads (as a step of its own in the simulator). It starts at once, whether or
    /// not the returned future is polled, and is not cancelled when that is dropped.
    ///
    /// # Errors
    /// [`BlockingError`] when the work panicked or never ran.
    pub fn blocking<T, F>(
        &self,
        name: &'static str,
        work: F,
    ) -> impl Future<Output = Result<T, BlockingError>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: FnOnce() -> T + Send + 'static,
    {
        let (sender, receiver) = oneshot::channel();
        let job = move || {
            let result = catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
                let message = message_of(&*payload);
                tracing::error!(task = name, panic = message, "blocking work panicked");
                BlockingError::Panicked { name, message }
            });
            // The asker may have gone; the work is done all the same.
            drop(sender.send(result));
        };
        self.backend.spawn_blocking(name, Box::new(job));
        receiver.map(move |received| received.unwrap_or(Err(BlockingError::Stopped { name })))
    }
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").finish_non_exhaustive()
    }
}
