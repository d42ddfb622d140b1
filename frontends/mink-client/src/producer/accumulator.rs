//! Where records of one partition gather: encoded at once into the batch that will be sent.
//!
//! Lives on: shared by those who send and the partition's task; its lock is held for one record at a time.
//! Owns: the open batch and those that wait to be sent.
//! Invariants: batches are numbered in the order they are sent; every batch that was opened is taken or abandoned, never forgotten.
use super::delivery::{Delivery, Ended, channel};
use super::{gone, misuse};
use crate::error::ClientError;
use futures::future::Shared;
use mink_record::kafka::{BatchBuilder, RecordRef};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit, oneshot};
use tokio::time::Instant;

/// Room that the first batch takes at first; it grows as records come. Later ones take what the one before them came to.
const BATCH_BYTES_FIRST: usize = 16 << 10;

/// Beside its contents a record and each of its headers take no more: lengths of up to 10 bytes each.
const RECORD_BYTES_MAX: usize = 64;
const HEADER_BYTES_MAX: usize = 20;

#[derive(Debug)]
pub(super) struct Accumulator {
    batch_bytes: usize,
    linger: Duration,
    state: Mutex<State>,
    wake: Notify,
}

#[derive(Debug, Default)]
struct State {
    open: Option<Gathered>,
    sealed: VecDeque<Gathered>,
    /// Number of the next batch.
    next: u64,
    /// Batches below this number do not linger.
    flush_below: u64,
    closed: bool,
    error: Option<ClientError>,
    /// Of the batch that was opened last, when it was left.
    batch_bytes_last: usize,
}

/// A batch as it was gathered.
#[derive(Debug)]
pub(super) struct Gathered {
    pub(super) number: u64,
    pub(super) records: BatchBuilder,
    pub(super) opened: Instant,
    pub(super) end: oneshot::Sender<Ended>,
    ends: Shared<oneshot::Receiver<Ended>>,
    /// Given back when the batch has ended.
    pub(super) room: OwnedSemaphorePermit,
}

/// A record that is in a batch now.
#[derive(Debug)]
pub(crate) struct Gathering {
    pub(crate) delivery: Delivery,
    /// It opened its batch.
    pub(crate) first: bool,
    /// Size of its batch so far, before compression.
    pub(crate) batch_bytes: usize,
}

/// What the partition's task finds here.
#[derive(Debug)]
pub(super) enum Next {
    Batch(Gathered),
    /// The open batch lingers until then.
    At(Instant),
    Nothing,
    /// Nothing, and nothing will come.
    Closed,
}

impl Accumulator {
    pub(super) fn new(batch_bytes: usize, linger: Duration) -> Accumulator {
        Accumulator { batch_bytes, linger, state: Mutex::default(), wake: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code that runs under the lock leaves the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a record.
    pub(super) fn push(
        &self,
        record: &RecordRef<'_>,
        room: OwnedSemaphorePermit,
    ) -> Result<Gathering, ClientError> {
        let mut state = self.state();
        if state.closed {
            return Err(misuse("the producer is closed"));
        }
        // Only near its end is it worth to know the size to the byte.
        let full = |open: &Gathered| {
            open.records.size() + bytes_at_most(record) > self.batch_bytes
                && open.records.size_with(record) > self.batch_bytes
        };
        if state.open.as_ref().is_some_and(full) {
            state.seal();
        }
        let appended = state.append(record, room).or_else(|room| {
            // A timestamp too far from the others' fits into a batch of its own.
            state.seal();
            state.append(record, room)
        });
        drop(state);
        let gathering = appended.map_err(|_| misuse("the record is larger than a batch can be"))?;
        // Only a new batch, and with it perhaps one that is full, changes what the task is to do.
        if gathering.first {
            self.wake.notify_one();
        }
        Ok(gathering)
    }

    /// Takes a batch that was gathered elsewhere; it does not linger.
    pub(super) fn push_batch(
        &self,
        records: BatchBuilder,
        room: OwnedSemaphorePermit,
    ) -> Result<Delivery, ClientError> {
        let mut state = self.state();
        if state.closed {
            return Err(misuse("the producer is closed"));
        }
        state.seal();
        let (gathered, delivery) = state.number(records, room);
        state.sealed.push_back(gathered);
        drop(state);
        self.wake.notify_one();
        Ok(delivery)
    }

    /// The open batch gets no more records and does not linger.
    pub(super) fn seal(&self) {
        self.state().seal();
        self.wake.notify_one();
    }

    /// What is to be sent next.
    pub(super) fn next(&self, now: Instant) -> Next {
        let mut state = self.state();
        if let Some(batch) = state.sealed.pop_front() {
            return Next::Batch(batch);
        }
        let Some(open) = state.open.take() else {
            return if state.closed { Next::Closed } else { Next::Nothing };
        };
        let due = open.opened + self.linger;
        if due <= now || open.number < state.flush_below || state.closed {
            state.batch_bytes_last = open.records.size();
            return Next::Batch(open);
        }
        state.open = Some(open);
        Next::At(due)
    }

    /// Resolves when `next` may say something else.
    pub(super) async fn changed(&self) {
        self.wake.notified().await;
    }

    /// Ends all lingering; the number below which batches are to be waited for.
    pub(super) fn flush(&self) -> u64 {
        let mut state = self.state();
        state.flush_below = state.next;
        self.wake.notify_one();
        state.next
    }

    /// No record comes any more.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.wake.notify_one();
    }

    /// Number below which every batch was taken.
    pub(super) fn taken_below(&self) -> u64 {
        let state = self.state();
        state.sealed.front().or(state.open.as_ref()).map_or(state.next, |batch| batch.number)
    }

    pub(super) fn note_error(&self, error: &ClientError) {
        self.state().error.get_or_insert_with(|| error.clone());
    }

    pub(super) fn take_error(&self) -> Option<ClientError> {
        self.state().error.take()
    }

    /// The task is gone: whoever waits is told.
    pub(super) fn abandon(&self) {
        let mut state = self.state();
        state.closed = true;
        let open = state.open.take();
        for batch in state.sealed.drain(..).chain(open) {
            drop(batch.end.send(Ended::now(Err(gone()))));
        }
    }
}

/// What a record takes in a batch at most.
fn bytes_at_most(record: &RecordRef<'_>) -> usize {
    let headers = record.headers.iter();
    let headers =
        headers.map(|header| HEADER_BYTES_MAX + header.key.len() + header.value.map_or(0, <[u8]>::len));
    RECORD_BYTES_MAX
        + record.key.map_or(0, <[u8]>::len)
        + record.value.map_or(0, <[u8]>::len)
        + headers.sum::<usize>()
}

impl State {
    fn seal(&mut self) {
        if let Some(open) = self.open.take() {
            self.batch_bytes_last = open.records.size();
            self.sealed.push_back(open);
        }
    }

    /// Appends to the open batch, or opens one; gives the room back if the record does not fit.
    fn append(
        &mut self,
        record: &RecordRef<'_>,
        room: OwnedSemaphorePermit,
    ) -> Result<Gathering, OwnedSemaphorePermit> {
        if let Some(open) = &mut self.open {
            let index = open.records.record_count();
            if open.records.push(*record).is_err() {
                return Err(room);
            }
            open.room.merge(room);
            let delivery = Delivery::new(&open.ends, index);
            return Ok(Gathering { delivery, first: false, batch_bytes: open.records.size() });
        }
        let mut records = BatchBuilder::with_capacity(self.batch_bytes_last.max(BATCH_BYTES_FIRST));
        if records.push(*record).is_err() {
            return Err(room);
        }
        let batch_bytes = records.size();
        let (gathered, delivery) = self.number(records, room);
        self.open = Some(gathered);
        Ok(Gathering { delivery, first: true, batch_bytes })
    }

    /// The next batch, and the delivery of its first record.
    fn number(&mut self, records: BatchBuilder, room: OwnedSemaphorePermit) -> (Gathered, Delivery) {
        let (end, ends) = channel();
        let delivery = Delivery::new(&ends, 0);
        let number = self.next;
        self.next += 1;
        (Gathered { number, records, opened: Instant::now(), end, ends, room }, delivery)
    }
}
