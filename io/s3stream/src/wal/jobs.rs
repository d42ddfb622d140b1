//! The writer's tasks beside itself: each ends in one event for the writer, and is cancelled with it.
//!
//! Lives on: service runtime.
//! Owns: the tasks. A writer that ends stops sending: a fenced process's attempts go no further.
use std::future::Future;

use futures::channel::oneshot;
use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{FuturesUnordered, StreamExt as _};
use mink_rt::{Service, Task};

/// Tasks that each give one `E`.
pub(super) struct Jobs<E> {
    service: Service,
    running: FuturesUnordered<BoxFuture<'static, Result<E, JobLost>>>,
}

/// A task ended without its event: it panicked, or the runtime ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct JobLost(pub(super) &'static str);

impl<E: Send + 'static> Jobs<E> {
    pub(super) fn new(service: Service) -> Jobs<E> {
        Jobs { service, running: FuturesUnordered::new() }
    }

    pub(super) fn start(&mut self, name: &'static str, work: impl Future<Output = E> + Send + 'static) {
        let (tell, event) = oneshot::channel();
        let task = CancelOnDrop(self.service.spawn(name, async move {
            let event = work.await;
            // The writer may have ended meanwhile.
            drop(tell.send(event));
        }));
        let watched = async move {
            let event = event.await.map_err(|_| JobLost(name));
            drop(task);
            event
        };
        self.running.push(watched.boxed());
    }

    /// The next event; waits for ever while no task runs. May be dropped and called again.
    pub(super) async fn next(&mut self) -> Result<E, JobLost> {
        match self.running.next().await {
            Some(event) => event,
            None => std::future::pending().await,
        }
    }
}

struct CancelOnDrop(Task);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}
