//! A bounded lane: many senders, one receiver that wakes only when there is something to take.
//!
//! Lives on: senders anywhere, the receiver on the core (or task) that owns it.
//! Owns: the ring and the count of free places.
//! Invariants: places taken or reserved never exceed the capacity; a reserved place is always there for its message; a sender
//! that waits for room is woken by each take; nobody waits for ever on a lane whose other end is gone.
use crossbeam_queue::{ArrayQueue, SegQueue};
use futures::task::AtomicWaker;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

/// The lane has no free place; the message comes back.
#[derive(Debug)]
pub struct Full<T>(pub T);

/// The receiver is gone; the message comes back.
#[derive(Debug)]
pub struct Closed<T>(pub T);

#[derive(Debug)]
struct Shared<T> {
    ring: ArrayQueue<T>,
    /// Places that are neither taken nor reserved.
    free: AtomicUsize,
    receiver: AtomicWaker,
    /// Senders that wait for room. A waker may stand here twice; a spurious wake only tries again.
    waiting: SegQueue<Waker>,
    senders: AtomicUsize,
    closed: AtomicBool,
    refused: AtomicUsize,
}

impl<T> Shared<T> {
    fn take_place(&self) -> bool {
        self.free.fetch_update(Ordering::AcqRel, Ordering::Acquire, |free| free.checked_sub(1)).is_ok()
    }

    fn free_place(&self) {
        self.free.fetch_add(1, Ordering::AcqRel);
        self.wake_senders();
    }

    fn wake_senders(&self) {
        while let Some(waker) = self.waiting.pop() {
            waker.wake();
        }
    }

    /// Pushes into a place that is ours. The ring has as many places as the count, so it cannot be full.
    fn push(&self, message: T) {
        let pushed = self.ring.push(message);
        debug_assert!(pushed.is_ok(), "a place was taken before the push");
        // A receiver that went away between our look and this push has emptied the ring already: nobody else would.
        if self.closed.load(Ordering::Acquire) {
            while self.ring.pop().is_some() {}
        }
        self.receiver.wake();
    }
}

/// The sending end; cloned for each sender.
#[derive(Debug)]
pub struct Sender<T>(Arc<Shared<T>>);

/// The receiving end; there is one.
#[derive(Debug)]
pub struct Receiver<T>(Arc<Shared<T>>);

/// A place kept for one message; dropping it gives the place back.
#[derive(Debug)]
pub struct Reserved<T>(Option<Arc<Shared<T>>>);

/// A lane for `capacity` messages (at least one).
pub fn lane<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    let capacity = capacity.max(1);
    let shared = Arc::new(Shared {
        ring: ArrayQueue::new(capacity),
        free: AtomicUsize::new(capacity),
        receiver: AtomicWaker::new(),
        waiting: SegQueue::new(),
        senders: AtomicUsize::new(1),
        closed: AtomicBool::new(false),
        refused: AtomicUsize::new(0),
    });
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

impl<T> Sender<T> {
    /// Sends if there is room now. A refusal is counted.
    pub fn try_send(&self, message: T) -> Result<(), Full<T>> {
        if self.0.closed.load(Ordering::Acquire) || !self.0.take_place() {
            self.0.refused.fetch_add(1, Ordering::Relaxed);
            return Err(Full(message));
        }
        self.0.push(message);
        Ok(())
    }

    /// Sends, waiting for room as long as it takes: back-pressure, not refusal.
    pub async fn send(&self, message: T) -> Result<(), Closed<T>> {
        match self.reserve().await {
            Some(place) => {
                place.send(message);
                Ok(())
            }
            None => Err(Closed(message)),
        }
    }

    /// Waits for a place and keeps it; none when the receiver is gone.
    pub async fn reserve(&self) -> Option<Reserved<T>> {
        poll_fn(|context| self.poll_reserve(context)).await
    }

    /// Keeps a place if there is one now.
    pub fn try_reserve(&self) -> Option<Reserved<T>> {
        let open = !self.0.closed.load(Ordering::Acquire);
        (open && self.0.take_place()).then(|| Reserved(Some(Arc::clone(&self.0))))
    }

    /// Polls for a place: registers the waker before the last look, so that no freed place is missed.
    pub fn poll_reserve(&self, context: &mut Context<'_>) -> Poll<Option<Reserved<T>>> {
        for registered in [false, true] {
            if self.0.closed.load(Ordering::Acquire) {
                return Poll::Ready(None);
            }
            if let Some(place) = self.try_reserve() {
                return Poll::Ready(Some(place));
            }
            if !registered {
                self.0.waiting.push(context.waker().clone());
            }
        }
        Poll::Pending
    }

    /// Messages refused so far for lack of room.
    pub fn refused(&self) -> usize {
        self.0.refused.load(Ordering::Relaxed)
    }

    /// Messages that wait to be taken.
    pub fn waiting(&self) -> usize {
        self.0.ring.len()
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Sender<T> {
        self.0.senders.fetch_add(1, Ordering::AcqRel);
        Sender(Arc::clone(&self.0))
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        if self.0.senders.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.0.receiver.wake();
        }
    }
}

impl<T> Reserved<T> {
    /// Sends into the place kept; never refused.
    pub fn send(mut self, message: T) {
        if let Some(shared) = self.0.take() {
            shared.push(message);
        }
    }
}

impl<T> Drop for Reserved<T> {
    fn drop(&mut self) {
        if let Some(shared) = self.0.take() {
            shared.free_place();
        }
    }
}

impl<T> Receiver<T> {
    /// The next message if one is there.
    pub fn try_recv(&mut self) -> Option<T> {
        let message = self.0.ring.pop()?;
        self.0.free_place();
        Some(message)
    }

    /// Polls for the next message; `Ready(None)` once all senders are gone and the ring is empty. A place that is still
    /// reserved counts as a sender that may yet send.
    pub fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Option<T>> {
        for registered in [false, true] {
            if let Some(message) = self.try_recv() {
                return Poll::Ready(Some(message));
            }
            let none_reserved = self.0.free.load(Ordering::Acquire) == self.0.ring.capacity();
            if self.0.senders.load(Ordering::Acquire) == 0 && none_reserved {
                return Poll::Ready(None);
            }
            if !registered {
                self.0.receiver.register(context.waker());
            }
        }
        Poll::Pending
    }

    /// Waits for the next message.
    pub async fn recv(&mut self) -> Option<T> {
        poll_fn(|context| self.poll_recv(context)).await
    }

    /// Messages that wait to be taken.
    pub fn waiting(&self) -> usize {
        self.0.ring.len()
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.0.closed.store(true, Ordering::Release);
        while self.0.ring.pop().is_some() {}
        self.0.wake_senders();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::executor::block_on;
    use futures::task::noop_waker;

    #[test]
    fn i20_a_full_lane_refuses_and_counts() {
        let (sender, mut receiver) = lane(2);
        assert!(sender.try_send(1).is_ok() && sender.try_send(2).is_ok());
        assert!(matches!(sender.try_send(3), Err(Full(3))));
        assert_eq!(sender.refused(), 1);
        assert_eq!(receiver.try_recv(), Some(1));
        assert!(sender.try_send(3).is_ok());
    }

    #[test]
    fn a_reserved_place_is_never_refused_and_comes_back_when_dropped() {
        let (sender, mut receiver) = lane(1);
        let place = sender.try_reserve().expect("room");
        assert!(sender.try_send(1).is_err());
        place.send(2);
        assert_eq!(receiver.try_recv(), Some(2));
        drop(sender.try_reserve().expect("room"));
        assert!(sender.try_send(3).is_ok());
    }

    #[test]
    fn a_waiting_sender_goes_on_when_a_message_is_taken() {
        let (sender, mut receiver) = lane(1);
        sender.try_send(0).expect("room");
        let handle = std::thread::spawn(move || {
            block_on(async {
                for n in 1..10_000 {
                    sender.send(n).await.expect("open");
                }
            });
        });
        let taken: Vec<i32> = block_on(async {
            let mut taken = Vec::new();
            while let Some(n) = receiver.recv().await {
                taken.push(n);
            }
            taken
        });
        handle.join().expect("no panic");
        assert_eq!(taken, (0..10_000).collect::<Vec<_>>());
    }

    #[test]
    fn many_senders_lose_nothing_at_a_tight_lane() {
        let (sender, mut receiver) = lane(3);
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let sender = sender.clone();
                std::thread::spawn(move || {
                    block_on(async {
                        for n in 0..2_500 {
                            sender.send((thread, n)).await.expect("open");
                        }
                    });
                })
            })
            .collect();
        drop(sender);
        let mut next = [0; 4];
        block_on(async {
            while let Some((thread, n)) = receiver.recv().await {
                assert_eq!(next[thread], n, "order of one sender");
                next[thread] += 1;
            }
        });
        for thread in threads {
            thread.join().expect("no panic");
        }
        assert_eq!(next, [2_500; 4]);
    }

    #[test]
    fn nobody_waits_on_a_lane_whose_other_end_is_gone() {
        let (sender, receiver) = lane::<u8>(1);
        sender.try_send(1).expect("room");
        drop(receiver);
        assert!(block_on(sender.send(2)).is_err());
        let (sender, mut receiver) = lane::<u8>(1);
        drop(sender);
        assert_eq!(block_on(receiver.recv()), None);
    }

    #[test]
    fn a_reserved_place_keeps_the_receiver_waiting() {
        let (sender, mut receiver) = lane::<u8>(1);
        let place = sender.try_reserve().expect("room");
        drop(sender);
        let waker = noop_waker();
        assert!(receiver.poll_recv(&mut Context::from_waker(&waker)).is_pending());
        place.send(7);
        assert_eq!(block_on(receiver.recv()), Some(7));
        assert_eq!(block_on(receiver.recv()), None);
    }
}
