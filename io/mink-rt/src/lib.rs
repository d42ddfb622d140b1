//! The runtime seam: the only crate that names an executor for the cores.
//! Lives on: the cores (`Core`) and the service runtime (`Service`).
//! Owns: the threads, the clocks, the watchdog.     Talks to: nobody of ours.
//! Invariants: no executor's type shows in a signature; a panic in a pump ends the process, any other is contained;
//! the simulator gives the same trace for the same seed.     See: docs/architecture.md
//!
//! A backend is an `Arc<dyn Runtime>`: [`EpollRuntime`], [`Backend::Uring`] beside it, or the one that [`simulate`] hands to its root. It starts
//! pinned [`Cores`], each of which runs a main future with its [`Core`]; and it has one [`Service`] for our own
//! tasks that are no shard. Only messages cross between them.

mod beat;
mod clock;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod core_handle;
mod cores;
mod epoll;
mod error;
mod fail_point;
mod kind;
pub mod machine;
mod mutant;
mod runtime;
mod service;
mod sim;
mod stop;
mod task;
mod threads;
#[cfg(target_os = "linux")]
mod uring;
mod watchdog;

pub use beat::CoreStats;
pub use clock::{Instant, WallTime};
pub use core_handle::{Class, Core, TASK_BUDGET, YieldIfDue};
pub use cores::{CoreMain, CorePanic, Cores, CoresConfig, FatalHook, Watchdog, core_main};
pub use epoll::{EpollRuntime, ServiceConfig};
pub use error::{Error, ErrorKind};
pub use fail_point::{FAIL_POINTS_VARIABLE, fail_point};
pub use kind::{Backend, RuntimeKind};
pub use machine::{allowed_cores, cpu_quota, memory_limit, shards_by_default};
pub use mutant::mutant;
#[cfg(feature = "mutants")]
pub use mutant::with_mutant;
pub use runtime::Runtime;
pub use service::{BlockingError, Elapsed, Service};
pub use sim::{
    ProcessId, SimClock, SimConfig, SimFailure, SimOutcome, SimProcess, SimWorld, simulate, simulate_world,
};
pub use task::{LocalTask, Task, TaskEnd};
#[cfg(target_os = "linux")]
pub use uring::UringRuntime;
