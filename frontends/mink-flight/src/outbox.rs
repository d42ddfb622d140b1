//! What a scan has made and its client has not taken: messages, the rest of the one that is being sent, and what lies in the connection.
//!
//! Lives on: the service runtime; one per scan, shared by its task, its stream of messages and the body of its answer.
//! Owns: the bytes of the answer, and what they have paid.
//! Invariants: I20: bytes hold what they have paid until the connection has written them, and a connection is given a small piece of them at a
//! time; so a scan whose client takes nothing gives back all but a piece or two when it is cut off. An answer that was cut off never ends as
//! if it were whole: its body ends with the reason.
use arrow_flight::FlightData;
use bytes::Bytes;
use mink_router::BytePermit;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use tonic::Status;

/// While others wait for memory a client must take so much in a second, or all there is.
const TAKEN_BYTES_MIN: u64 = 128 << 10;
const SECOND: Duration = Duration::from_secs(1);

/// How long it may take nothing: one that has taken less than [`KNOWN_BYTES`] of its scan, and another. Windows and sockets take
/// megabytes before it shows whether anybody reads.
const PATIENCE_NEW: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(1);
const KNOWN_BYTES: u64 = 16 << 20;

/// What a connection is given of an answer at a time: a part of the memory for answers, within bounds.
const PIECES: u64 = 512;
const PIECE_BYTES_MIN: u64 = 16 << 10;
const PIECE_BYTES_MAX: u64 = 64 << 10;

/// What lies there of one scan; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Outbox(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// The client took something, or is gone.
    changed: Notify,
    piece_bytes: usize,
}

#[derive(Debug)]
struct State {
    messages: VecDeque<Message>,
    /// What those have paid whose bytes the encoder has and has not given on.
    encoding: BytePermit,
    /// Encoded, and not yet given to the connection.
    rest: Bytes,
    rest_permit: BytePermit,
    /// Bytes that the connection has and has not written.
    sending: u64,
    /// Bytes that it has written.
    taken: u64,
    /// When something was taken, or came after there was nothing to take.
    moved: Instant,
    /// When a second began, and what had been taken by then.
    second: (Instant, u64),
    end: Option<Result<(), Status>>,
    cut_off: Option<Status>,
    /// Nobody will take anything any more.
    is_abandoned: bool,
    /// The answer's body, when it waits for a message.
    reader: Option<Waker>,
}

#[derive(Debug)]
struct Message {
    data: FlightData,
    permit: BytePermit,
}

/// Bytes that a connection has; dropped once it has written them, or is gone.
struct Piece {
    bytes: Bytes,
    outbox: Outbox,
    _permit: BytePermit,
}

impl Outbox {
    /// Of a scan whose answers come out of `memory_bytes`.
    pub(crate) fn new(memory_bytes: u64) -> Outbox {
        let piece = (memory_bytes / PIECES).clamp(PIECE_BYTES_MIN, PIECE_BYTES_MAX);
        let state = State {
            messages: VecDeque::new(),
            encoding: BytePermit::default(),
            rest: Bytes::new(),
            rest_permit: BytePermit::default(),
            sending: 0,
            taken: 0,
            moved: Instant::now(),
            second: (Instant::now(), 0),
            end: None,
            cut_off: None,
            is_abandoned: false,
            reader: None,
        };
        Outbox(Arc::new(Shared {
            state: Mutex::new(state),
            changed: Notify::new(),
            piece_bytes: usize::try_from(piece).unwrap_or(usize::MAX),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what lies there, and wakes the body if it waits.
    fn change(&self, change: impl FnOnce(&mut State)) {
        let waker = {
            let mut state = self.lock();
            change(&mut state);
            state.reader.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Adds a message and what it has paid.
    pub(crate) fn push(&self, data: FlightData, permit: BytePermit) {
        self.change(|state| {
            if state.is_abandoned || state.cut_off.is_some() {
                return;
            }
            if !state.holds() {
                state.moved = Instant::now();
                state.second = (state.moved, state.taken);
            }
            state.messages.push_back(Message { data, permit });
        });
    }

    /// Says how the scan ended, unless that is said.
    pub(crate) fn end(&self, end: Result<(), Status>) {
        self.change(|state| {
            state.end.get_or_insert(end);
        });
    }

    /// Gives back all but what lies in the connection; the client is told `why` if it reads on. False if that has happened before, or the
    /// client has all and lacks only the end.
    pub(crate) fn cut_off(&self, why: Status) -> bool {
        let mut is_news = false;
        self.change(|state| {
            is_news = state.cut_off.is_none() && (state.lies() || state.end.is_none());
            if is_news {
                state.cut_off = Some(why);
                state.clear();
            }
        });
        is_news
    }

    /// The answer's body is gone: so is the client.
    pub(crate) fn abandon(&self) {
        {
            let mut state = self.lock();
            state.is_abandoned = true;
            state.clear();
        }
        self.0.changed.notify_one();
    }

    /// Whether the scan has said how it ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.lock().end.is_some()
    }

    /// Completes after the client took something.
    pub(crate) async fn changed(&self) {
        self.0.changed.notified().await;
    }

    /// Messages that are not begun.
    pub(crate) fn messages(&self) -> usize {
        self.lock().messages.len()
    }

    /// Whether the connection has all there is.
    pub(crate) fn is_hungry(&self) -> bool {
        !self.lock().lies()
    }

    /// Whether the connection has written all there is.
    pub(crate) fn is_taken(&self) -> bool {
        !self.lock().holds()
    }

    /// Whether the client takes too little of what there is to take.
    pub(crate) fn stalls(&self, now: Instant) -> bool {
        let mut state = self.lock();
        if !state.holds() {
            return false;
        }
        let patience = if state.taken < KNOWN_BYTES { PATIENCE_NEW } else { PATIENCE };
        if now >= state.moved + patience {
            return true;
        }
        if now < state.second.0 + SECOND {
            return false;
        }
        let took = state.taken - state.second.1;
        // What was looked at long ago says little of this second.
        let is_recent = now < state.second.0 + SECOND * 2;
        state.second = (now, state.taken);
        is_recent && took < TAKEN_BYTES_MIN
    }

    /// The next message, or the end.
    pub(crate) fn poll_message(&self, context: &mut Context<'_>) -> Poll<Option<Result<FlightData, Status>>> {
        let mut state = self.lock();
        if let Some(why) = &state.cut_off {
            return Poll::Ready(Some(Err(why.clone())));
        }
        if let Some(Message { data, permit }) = state.messages.pop_front() {
            state.encoding.join(permit);
            drop(state);
            self.0.changed.notify_one();
            return Poll::Ready(Some(Ok(data)));
        }
        if let Some(end) = &mut state.end {
            return Poll::Ready(std::mem::replace(end, Ok(())).err().map(Err));
        }
        state.reader = Some(context.waker().clone());
        Poll::Pending
    }

    /// Takes what the encoder has made of the messages that it was given.
    pub(crate) fn encoded(&self, bytes: Bytes) {
        let mut state = self.lock();
        debug_assert!(state.rest.is_empty(), "the rest is given on before more is encoded");
        // It may have been cut off while its message was encoded.
        if bytes.is_empty() || state.is_abandoned || state.cut_off.is_some() {
            return;
        }
        state.rest = bytes;
        state.rest_permit = std::mem::take(&mut state.encoding);
    }

    /// The next piece for the connection.
    pub(crate) fn piece(&self) -> Option<Bytes> {
        let mut state = self.lock();
        if state.rest.is_empty() {
            return None;
        }
        let length = state.rest.len().min(self.0.piece_bytes);
        let bytes = state.rest.split_to(length);
        let permit = if state.rest.is_empty() {
            state.rest = Bytes::new();
            std::mem::take(&mut state.rest_permit)
        } else {
            state.rest_permit.split(length as u64)
        };
        state.sending += length as u64;
        drop(state);
        self.0.changed.notify_one();
        Some(Bytes::from_owner(Piece { bytes, outbox: self.clone(), _permit: permit }))
    }

    /// Why the scan was cut off, if it was.
    pub(crate) fn why_cut_off(&self) -> Option<Status> {
        self.lock().cut_off.clone()
    }
}

impl State {
    /// Whether there is something that the connection does not have.
    fn lies(&self) -> bool {
        !self.messages.is_empty() || !self.rest.is_empty() || self.encoding.bytes() > 0
    }

    /// Whether there is something that is not written.
    fn holds(&self) -> bool {
        self.sending > 0 || self.lies()
    }

    fn clear(&mut self) {
        self.messages = VecDeque::new();
        self.encoding = BytePermit::default();
        self.rest = Bytes::new();
        self.rest_permit = BytePermit::default();
    }
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        let bytes = self.bytes.len() as u64;
        let mut state = self.outbox.lock();
        state.sending = state.sending.saturating_sub(bytes);
        state.taken += bytes;
        state.moved = Instant::now();
        drop(state);
        self.outbox.0.changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mink_router::BytePermits;

    const MEMORY: u64 = 1 << 20;

    fn message(bytes: usize) -> FlightData {
        FlightData { data_body: vec![7; bytes].into(), ..FlightData::default() }
    }

    fn next(outbox: &Outbox) -> Poll<Option<Result<FlightData, Status>>> {
        outbox.poll_message(&mut Context::from_waker(futures::task::noop_waker_ref()))
    }

    /// A message that is on its way, of which the connection was given nothing yet.
    fn encoded(bytes: usize, memory: &BytePermits) -> Outbox {
        let outbox = Outbox::new(MEMORY);
        outbox.push(message(bytes), memory.try_take(bytes as u64).expect("room"));
        let Poll::Ready(Some(Ok(data))) = next(&outbox) else { panic!("there is a message") };
        outbox.encoded(data.data_body);
        outbox
    }

    /// I20
    #[test]
    fn i20_bytes_hold_their_memory_until_the_connection_has_written_them() {
        let memory = BytePermits::new(MEMORY);
        let outbox = encoded(100 << 10, &memory);
        let mut pieces = Vec::new();
        while let Some(piece) = outbox.piece() {
            assert!(piece.len() as u64 <= PIECE_BYTES_MIN);
            pieces.push(piece);
        }
        assert!(outbox.is_hungry() && !outbox.is_taken());
        assert_eq!(pieces.iter().map(Bytes::len).sum::<usize>(), 100 << 10);
        assert_eq!(memory.free_bytes(), MEMORY - (100 << 10));
        drop(pieces.remove(0));
        assert_eq!(memory.free_bytes(), MEMORY - (84 << 10));
        // A part of a piece holds all of it.
        let part = pieces.remove(0).split_off(1);
        assert_eq!(memory.free_bytes(), MEMORY - (84 << 10));
        drop((part, pieces));
        assert_eq!(memory.free_bytes(), MEMORY);
        assert!(outbox.is_taken());
    }

    /// I20: all but what the connection has comes back, and the answer does not end as if it were whole.
    #[test]
    fn i20_a_scan_that_is_cut_off_gives_back_what_lies_and_says_so() {
        let memory = BytePermits::new(MEMORY);
        let outbox = encoded(100 << 10, &memory);
        let piece = outbox.piece().expect("a first piece");
        outbox.push(message(1000), memory.try_take(1000).expect("room"));
        outbox.end(Ok(()));
        assert!(outbox.cut_off(Status::resource_exhausted("take more")));
        assert_eq!(memory.free_bytes(), MEMORY - piece.len() as u64);
        assert!(outbox.piece().is_none());
        let Poll::Ready(Some(Err(why))) = next(&outbox) else { panic!("the answer is not whole") };
        assert_eq!(why.code(), tonic::Code::ResourceExhausted);
        assert!(!outbox.cut_off(Status::internal("again")), "once is enough");
        drop(piece);
        assert_eq!(memory.free_bytes(), MEMORY);
    }

    #[test]
    fn an_answer_that_lies_wholly_in_the_connection_is_not_cut_off() {
        let memory = BytePermits::new(MEMORY);
        let outbox = encoded(1000, &memory);
        let piece = outbox.piece().expect("all of it");
        outbox.end(Ok(()));
        assert!(!outbox.cut_off(Status::resource_exhausted("take more")));
        assert!(matches!(next(&outbox), Poll::Ready(None)));
        drop(piece);
    }

    #[test]
    fn a_client_stalls_that_takes_nothing_or_too_little() {
        let memory = BytePermits::new(MEMORY);
        let outbox = encoded(400 << 10, &memory);
        let take = |pieces| drop(std::iter::from_fn(|| outbox.piece()).take(pieces).collect::<Vec<_>>());
        let begun = Instant::now();
        assert!(!outbox.stalls(begun), "it has a moment");
        assert!(outbox.stalls(begun + PATIENCE_NEW + SECOND / 100), "it took nothing");
        // Each look below comes right after something was taken.
        let look = |after: Duration| {
            outbox.lock().moved = begun + after;
            outbox.stalls(begun + after)
        };
        take(8);
        assert!(!look(SECOND), "it took 128 KiB");
        take(1);
        assert!(!look(SECOND * 3 / 2), "the second is not over");
        assert!(look(SECOND * 2), "it took 16 KiB");
        assert!(!look(SECOND * 30), "nobody looked for long");
        take(100);
        assert!(!outbox.stalls(begun + SECOND * 100), "it has taken all");
        // Time in which there was nothing to take is not its own.
        outbox.push(message(1), BytePermit::default());
        assert!(!outbox.stalls(Instant::now()));
    }
}
