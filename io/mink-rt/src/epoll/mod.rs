//! The backend that works everywhere, and the service runtime of every other: a current-thread executor per pinned core, and one multi-thread runtime for services.
//! Lives on: the cores' threads and the service runtime's.
//! Owns: those threads.     Talks to: tokio, and nobody else does so for the cores.
//! Invariants: the cores have no I/O driver, so a socket or a file on a core panics at once instead of blocking it.

mod cores;
mod service;

use crate::{CoreMain, Cores, CoresConfig, Error, ErrorKind, Instant, Runtime, Service, WallTime, threads};
use std::fmt;
use std::future::Future;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::{Builder, Handle};

/// Most threads that blocking work may take at once; more of it waits.
const BLOCKING_THREADS_MAX: usize = 64;

/// How the service runtime is made.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServiceConfig {
    /// Worker threads; `None` for one per CPU that the process may use. Never more than that many.
    pub workers: Option<NonZeroUsize>,
}

/// The `epoll` backend.
pub struct EpollRuntime {
    handle: Handle,
    /// Absent when attached to a runtime of somebody else, and after `shutdown`.
    own: Mutex<Option<tokio::runtime::Runtime>>,
}

impl EpollRuntime {
    /// Starts a service runtime of its own, with threads called `mink-service-<n>`.
    ///
    /// # Errors
    /// [`ErrorKind::Machine`] when the system refuses a thread or its event queue.
    pub fn start(config: ServiceConfig) -> Result<Arc<Self>, Error> {
        let most = crate::machine::shards_by_default();
        let workers = config.workers.map_or(most, |workers| workers.min(most));
        if let Some(asked) = config.workers.filter(|asked| *asked > workers) {
            tracing::info!(
                asked,
                taken = workers,
                "--service-threads is cut to the cores that the process may run on"
            );
        }
        let next = AtomicUsize::new(0);
        let runtime = Builder::new_multi_thread()
            .worker_threads(workers.get())
            .max_blocking_threads(BLOCKING_THREADS_MAX)
            .thread_name_fn(move || format!("mink-service-{}", next.fetch_add(1, Ordering::Relaxed)))
            .enable_all()
            .build()
            .map_err(|source| {
                Error::new(
                    ErrorKind::Machine,
                    "cannot start the service runtime",
                    "raise the limits of threads and open files",
                )
                .with_source(source)
            })?;
        let handle = runtime.handle().clone();
        Ok(Arc::new(Self { handle, own: Mutex::new(Some(runtime)) }))
    }

    /// Uses the tokio runtime that the caller runs on as the service runtime. It must have its timers enabled.
    ///
    /// # Errors
    /// [`ErrorKind::Misuse`] outside of a tokio runtime.
    pub fn attach() -> Result<Arc<Self>, Error> {
        let handle = Handle::try_current().map_err(|_| {
            Error::new(
                ErrorKind::Misuse,
                "there is no tokio runtime to attach to",
                "call it within one, or start one with EpollRuntime::start",
            )
        })?;
        Ok(Arc::new(Self { handle, own: Mutex::new(None) }))
    }

    /// Runs `future` on the calling thread, within the service runtime, until it completes. Panics within a runtime.
    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.handle.block_on(future)
    }

    /// Ends an own service runtime: drops its tasks and waits at most `patience` for blocking work. Without this
    /// call, dropping the backend ends it without waiting. Panics within a runtime. The second call does nothing.
    pub fn shutdown(&self, patience: Duration) {
        if let Some(runtime) = self.take() {
            runtime.shutdown_timeout(patience);
        }
    }

    fn take(&self) -> Option<tokio::runtime::Runtime> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Runtime for EpollRuntime {
    fn name(&self) -> &'static str {
        crate::Backend::Epoll.name()
    }

    fn start_cores(&self, config: CoresConfig, main: CoreMain) -> Result<Cores, Error> {
        threads::start::<cores::TokioExecutor>(config, &main)
    }

    fn service(&self) -> Service {
        Service::new(Arc::new(service::TokioService::new(self.handle.clone())))
    }
}

impl Drop for EpollRuntime {
    fn drop(&mut self) {
        // The plain drop of a runtime panics when it happens on one of its own threads.
        if let Some(runtime) = self.take() {
            runtime.shutdown_background();
        }
    }
}

impl fmt::Debug for EpollRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EpollRuntime").finish_non_exhaustive()
    }
}

/// The clocks of both halves.
fn now() -> Instant {
    crate::clock::boot_now()
}

fn wall() -> WallTime {
    crate::clock::wall_now()
}

#[cfg(test)]
mod tests;
