//! The seam itself: what every backend is to the rest of Mink.
//! Lives on: anywhere.

use crate::{CoreMain, Cores, CoresConfig, Error, Service};
use std::fmt;

/// A backend. Held as `Arc<dyn Runtime>`; no type of the executor underneath shows.
pub trait Runtime: Send + Sync + fmt::Debug {
    /// The name in the ready line: `epoll` or `uring`; `sim` in the simulator.
    fn name(&self) -> &'static str;

    /// Starts the cores, one thread each (tasks of the one thread in the simulator), and runs `main` on each.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Machine`] when the system refuses a thread; the cores started until then are stopped.
    fn start_cores(&self, config: CoresConfig, main: CoreMain) -> Result<Cores, Error>;

    /// The handle of the service runtime.
    fn service(&self) -> Service;
}
