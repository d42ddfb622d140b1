//! The stop signal of one core: set once from anywhere, seen by every task of the core.
//! Lives on: the sender anywhere, the listener on its core.

use futures::channel::oneshot;
use futures::future::{FutureExt as _, Shared};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The core's side.
#[derive(Clone, Debug)]
pub(crate) struct StopSeen {
    set: Arc<AtomicBool>,
    signal: Shared<oneshot::Receiver<()>>,
}

/// The side of whoever stops the core. Dropping it stops the core too.
#[derive(Debug)]
pub(crate) struct Stopper {
    set: Arc<AtomicBool>,
    sender: Mutex<Option<oneshot::Sender<()>>>,
}

pub(crate) fn stop_signal() -> (Stopper, StopSeen) {
    let (sender, receiver) = oneshot::channel();
    let set = Arc::new(AtomicBool::new(false));
    let stopper = Stopper { set: Arc::clone(&set), sender: Mutex::new(Some(sender)) };
    (stopper, StopSeen { set, signal: receiver.shared() })
}

impl Stopper {
    pub(crate) fn stop(&self) {
        self.set.store(true, Ordering::Release);
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(sender) = sender {
            // Refused by a core that has ended: it is what was asked for.
            let _ = sender.send(());
        }
    }
}

impl Drop for Stopper {
    fn drop(&mut self) {
        self.stop();
    }
}

impl StopSeen {
    pub(crate) fn is_stopping(&self) -> bool {
        self.set.load(Ordering::Acquire)
    }

    pub(crate) fn stopped(&self) -> impl Future<Output = ()> + use<> {
        self.signal.clone().map(|_| ())
    }
}
