//! A spawned task: its name, its end, and how it is cancelled; the same over every backend.
//! Lives on: anywhere.
//! Owns: the task's future until it ends.     Talks to: whoever joins it.
//! Invariants: a task's future is dropped before its end is told; a panic never leaves its task unseen.

use futures::channel::oneshot;
use futures::task::AtomicWaker;
use std::any::Any;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskEnd {
    /// Its future completed.
    Finished,
    /// It panicked with this message; the panic went no further.
    Panicked(String),
    /// It was cancelled, or its runtime ended first. Its future has been dropped.
    Cancelled,
}

/// A task of the service runtime. Dropping the handle lets the task run on unwatched; someone should await its
/// end, with [`Task::join`] or by polling the handle itself, which is a future of the [`TaskEnd`].
#[must_use = "someone must await the end of a task"]
#[derive(Debug)]
pub struct Task {
    link: Link,
}

/// A task of a core; it cannot leave its core. Otherwise as [`Task`].
#[must_use = "someone must await the end of a task"]
#[derive(Debug)]
pub struct LocalTask {
    link: Link,
    stays_on_its_core: PhantomData<*const ()>,
}

macro_rules! handle {
    ($handle:ident) => {
        impl $handle {
            /// The name it was spawned with.
            pub fn name(&self) -> &'static str {
                self.link.name
            }

            /// Asks the task to end. Its future is dropped at its next turn, at the latest; never within this call.
            pub fn cancel(&self) {
                self.link.cancel.set();
            }

            /// Waits for the end. The task's future has been dropped by then.
            pub async fn join(self) -> TaskEnd {
                self.await
            }
        }

        impl Future for $handle {
            type Output = TaskEnd;

            fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<TaskEnd> {
                self.get_mut().link.poll_end(cx)
            }
        }
    };
}

handle!(Task);
handle!(LocalTask);

impl Task {
    pub(crate) fn new(link: Link) -> Self {
        Self { link }
    }
}

impl LocalTask {
    pub(crate) fn new(link: Link) -> Self {
        Self { link, stays_on_its_core: PhantomData }
    }
}

/// The joiner's side of a task.
#[derive(Debug)]
pub(crate) struct Link {
    name: &'static str,
    end: oneshot::Receiver<TaskEnd>,
    cancel: Arc<Cancel>,
    told: Option<TaskEnd>,
}

impl Link {
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<TaskEnd> {
        if let Some(end) = &self.told {
            return Poll::Ready(end.clone());
        }
        // A sender that is gone means that the runtime dropped the task: it will never run again.
        let end = ready!(Pin::new(&mut self.end).poll(cx)).unwrap_or(TaskEnd::Cancelled);
        self.told = Some(end.clone());
        Poll::Ready(end)
    }
}

#[derive(Debug, Default)]
struct Cancel {
    asked: AtomicBool,
    waker: AtomicWaker,
}

impl Cancel {
    fn set(&self) {
        self.asked.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// Registers before it looks, so that no `set` falls between.
    fn is_asked(&self, cx: &Context<'_>) -> bool {
        self.waker.register(cx.waker());
        self.asked.load(Ordering::Acquire)
    }
}

/// Called with the panic's message, before the task's end is told.
pub(crate) type OnPanic = Box<dyn FnOnce(&str) + Send>;

/// A task's future with its panics contained. `B` is a boxed future.
pub(crate) struct Contained<B> {
    name: &'static str,
    inner: Option<B>,
    end: Option<oneshot::Sender<TaskEnd>>,
    cancel: Arc<Cancel>,
    on_panic: Option<OnPanic>,
}

impl<B> Contained<B> {
    pub(crate) fn new(name: &'static str, inner: B, on_panic: OnPanic) -> (Self, Link) {
        let (sender, receiver) = oneshot::channel();
        let cancel = Arc::new(Cancel::default());
        let link = Link { name, end: receiver, cancel: Arc::clone(&cancel), told: None };
        (Self { name, inner: Some(inner), end: Some(sender), cancel, on_panic: Some(on_panic) }, link)
    }

    /// Drops the future, then tells the end. A panic while dropping counts as the task's panic.
    fn finish(&mut self, end: TaskEnd) {
        let inner = self.inner.take();
        let dropped = catch_unwind(AssertUnwindSafe(move || drop(inner)));
        let end = match (end, dropped) {
            (TaskEnd::Finished | TaskEnd::Cancelled, Err(payload)) => {
                TaskEnd::Panicked(message_of(&*payload))
            }
            (end, _) => end,
        };
        if let (TaskEnd::Panicked(message), Some(on_panic)) = (&end, self.on_panic.take()) {
            on_panic(message);
        }
        if let Some(sender) = self.end.take() {
            // Nobody listens when the handle was dropped; that is the owner's choice.
            drop(sender.send(end));
        }
    }
}

impl<B: Future<Output = ()> + Unpin> Future for Contained<B> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let Some(inner) = this.inner.as_mut() else {
            return Poll::Ready(());
        };
        if this.cancel.is_asked(cx) {
            this.finish(TaskEnd::Cancelled);
            return Poll::Ready(());
        }
        match catch_unwind(AssertUnwindSafe(|| Pin::new(inner).poll(cx))) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(())) => this.finish(TaskEnd::Finished),
            Err(payload) => this.finish(TaskEnd::Panicked(message_of(&*payload))),
        }
        Poll::Ready(())
    }
}

/// A runtime that ends drops its tasks: a destructor that panics then must not take the thread along.
impl<B> Drop for Contained<B> {
    fn drop(&mut self) {
        if self.inner.is_some() {
            self.finish(TaskEnd::Cancelled);
        }
    }
}

impl<B> fmt::Debug for Contained<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Contained").field("name", &self.name).finish_non_exhaustive()
    }
}

/// What a panic said.
pub(crate) fn message_of(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&'static str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "a panic without a message".to_owned()
    }
}
