//! The service runtime on tokio's multi-thread runtime.
//! Lives on: service runtime.

use crate::service::ServiceBackend;
use crate::{Instant, WallTime};
use futures::future::{BoxFuture, FutureExt as _};
use std::time::Duration;
use tokio::runtime::Handle;

pub(super) struct TokioService {
    handle: Handle,
}

impl TokioService {
    pub(super) fn new(handle: Handle) -> Self {
        Self { handle }
    }
}

impl ServiceBackend for TokioService {
    fn now(&self) -> Instant {
        super::now()
    }

    fn wall(&self) -> WallTime {
        super::wall()
    }

    fn random_u64(&self) -> u64 {
        rand::random()
    }

    fn spawn(&self, _name: &'static str, future: BoxFuture<'static, ()>) {
        // The end is told by the task itself; tokio's own handle has nothing to add.
        drop(self.handle.spawn(future));
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        // A timer binds to the runtime it is made in; so this one works wherever it is polled, on a core too.
        let _within = self.handle.enter();
        tokio::time::sleep(duration).boxed()
    }

    fn spawn_blocking(&self, _name: &'static str, work: Box<dyn FnOnce() + Send>) {
        drop(self.handle.spawn_blocking(work));
    }
}
