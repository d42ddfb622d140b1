//! The backend on io_uring: an executor with rings of its own per pinned core, beside the service runtime of `epoll`.
//! Lives on: the cores' threads.
//! Owns: those threads.     Talks to: the kernel's io_uring, and nobody else does so.
//! Invariants: no executor starts before the probe has passed.

#[cfg(not(feature = "glommio"))]
mod compio;
#[cfg(feature = "glommio")]
mod glommio;
mod probe;
#[cfg(not(feature = "glommio"))]
mod timers;

use crate::{CoreMain, Cores, CoresConfig, EpollRuntime, Error, Runtime, Service, threads};
pub(crate) use probe::probe;
use std::sync::Arc;

#[cfg(not(feature = "glommio"))]
use compio::CompioExecutor as UringExecutor;
#[cfg(feature = "glommio")]
use glommio::GlommioExecutor as UringExecutor;

/// The `uring` backend.
#[derive(Debug)]
pub struct UringRuntime {
    services: Arc<EpollRuntime>,
}

impl UringRuntime {
    /// A backend whose cores run on io_uring and whose services on those of `services`, which goes on to own them.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Option`] with the remedy where io_uring is not to be had.
    pub fn beside(services: Arc<EpollRuntime>) -> Result<Arc<Self>, Error> {
        probe()?;
        Ok(Arc::new(Self { services }))
    }
}

impl Runtime for UringRuntime {
    fn name(&self) -> &'static str {
        crate::Backend::Uring.name()
    }

    fn start_cores(&self, config: CoresConfig, main: CoreMain) -> Result<Cores, Error> {
        threads::start::<UringExecutor>(config, &main)
    }

    fn service(&self) -> Service {
        self.services.service()
    }
}

#[cfg(test)]
mod tests;
