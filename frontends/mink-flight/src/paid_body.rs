//! Pays for the messages of a call before they are read.
//!
//! Lives on: the service runtime; one per call, polled by tonic.
//! Owns: the bytes of the body that were read and not yet given on.
//! Invariants: I20: a message's declared length is taken from the budget before its first byte is given on, and what lies behind it in
//! the same piece waits in turn; so a message never waits for bytes that the one before it holds. I19: a length beyond the limit ends
//! the call before anything of the message is kept.
use crate::FlightCounters;
use bytes::{Buf, Bytes};
use futures::future::BoxFuture;
use http_body::{Body, Frame, SizeHint};
use mink_router::{BytePermit, BytePermits};
use mink_types::Limits;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};
use tonic::Status;

/// A message is held as it came, and as the batches that are made of it.
const HELD_TIMES: u64 = 2;

/// A message of which nothing comes for so long must go, if others wait for what it has paid.
const STALLED_AFTER: Duration = Duration::from_millis(500);

/// What a large message may take longer.
const BYTES_PER_SECOND_MIN: u64 = 256 << 10;

/// Flag and length before each message of gRPC.
const PREFIX_BYTES: usize = 5;

/// What was paid for the messages of a call, in their order. A handler takes one with each message it is given.
#[derive(Clone, Debug, Default)]
pub(crate) struct Paid(Arc<Mutex<VecDeque<BytePermit>>>);

impl Paid {
    fn put(&self, permit: BytePermit) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(permit);
    }

    /// What the next message has paid.
    pub(crate) fn next(&self) -> BytePermit {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop_front().unwrap_or_default()
    }
}

/// A body whose messages are paid for.
pub(crate) struct PaidBody<B> {
    body: B,
    /// Read, and not yet given on.
    rest: Bytes,
    prefix: [u8; PREFIX_BYTES],
    prefix_bytes: usize,
    /// Bytes of the present message that are still to come.
    message_left: u64,
    taking: Option<BoxFuture<'static, BytePermit>>,
    /// Runs while a message that has paid is still to come.
    watch: Pin<Box<Sleep>>,
    /// When the present message, or the last bytes of it, came.
    begun: Instant,
    moved: Instant,
    deadline: Duration,
    paid: Paid,
    permits: BytePermits,
    message_bytes_max: u32,
    counters: FlightCounters,
}

impl<B> PaidBody<B> {
    pub(crate) fn new(
        body: B,
        paid: Paid,
        permits: BytePermits,
        limits: &Limits,
        counters: FlightCounters,
    ) -> PaidBody<B> {
        let (begun, message_bytes_max) = (Instant::now(), limits.flight_message_bytes_max);
        PaidBody {
            body,
            rest: Bytes::new(),
            prefix: [0; PREFIX_BYTES],
            prefix_bytes: 0,
            message_left: 0,
            taking: None,
            watch: Box::pin(tokio::time::sleep_until(begun)),
            begun,
            moved: begun,
            deadline: Duration::from_millis(limits.frame_deadline_ms),
            paid,
            permits,
            message_bytes_max,
            counters,
        }
    }

    /// How long the present message may take: as a request of Kafka's, and longer if it is large.
    fn allowed(&self) -> Duration {
        self.deadline + Duration::from_secs(self.message_left / BYTES_PER_SECOND_MIN)
    }

    /// The next piece of what was read, which ends where a prefix or a message does.
    fn piece(&mut self) -> Result<Bytes, Status> {
        if self.message_left > 0 {
            let left = usize::try_from(self.message_left).unwrap_or(usize::MAX);
            let piece = self.rest.split_to(left.min(self.rest.len()));
            self.message_left -= piece.len() as u64;
            return Ok(piece);
        }
        let piece = self.rest.split_to((PREFIX_BYTES - self.prefix_bytes).min(self.rest.len()));
        for (place, byte) in self.prefix.iter_mut().skip(self.prefix_bytes).zip(&piece) {
            *place = *byte;
        }
        self.prefix_bytes += piece.len();
        if self.prefix_bytes == PREFIX_BYTES {
            self.prefix_bytes = 0;
            let length = (&self.prefix[1..]).get_u32();
            if length > self.message_bytes_max {
                self.counters.too_large();
                return Err(Status::invalid_argument(format!(
                    "a message of {length} bytes; at most {} are accepted: send fewer rows in each, or raise flight-message-bytes-max",
                    self.message_bytes_max
                )));
            }
            self.message_left = u64::from(length);
            self.begun = Instant::now();
            let permits = self.permits.clone();
            self.taking = Some(Box::pin(async move { permits.take(u64::from(length) * HELD_TIMES).await }));
        }
        Ok(piece)
    }
}

impl<B> Body for PaidBody<B>
where
    B: Body<Data = Bytes, Error = Status> + Unpin,
{
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        let this = &mut *self;
        if let Some(taking) = &mut this.taking {
            let permit = ready!(taking.as_mut().poll(cx));
            this.taking = None;
            this.paid.put(permit);
        }
        loop {
            if !this.rest.is_empty() {
                return Poll::Ready(Some(this.piece().map(Frame::data)));
            }
            let polled = Pin::new(&mut this.body).poll_frame(cx);
            if polled.is_pending() && this.message_left > 0 {
                ready!(this.watch.as_mut().poll(cx));
                let now = Instant::now();
                if now >= this.moved + STALLED_AFTER && this.permits.is_short()
                    || now >= this.begun + this.allowed()
                {
                    this.counters.stalled();
                    return Poll::Ready(Some(Err(Status::deadline_exceeded(
                        "a message that was begun does not come; send it whole, at the rate frame-bytes-per-second-min and within frame-deadline",
                    ))));
                }
                this.watch.as_mut().reset(now + STALLED_AFTER);
                continue;
            }
            match ready!(polled) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => {
                        this.rest = data;
                        this.moved = Instant::now();
                    }
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.taking.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pieces, as a connection may cut them.
    struct Pieces(VecDeque<Bytes>);

    impl Body for Pieces {
        type Data = Bytes;
        type Error = Status;
        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
            Poll::Ready(self.0.pop_front().map(|piece| Ok(Frame::data(piece))))
        }
    }

    fn message(bytes: usize) -> Vec<u8> {
        let length = u32::try_from(bytes).expect("small").to_be_bytes();
        [&[0][..], &length, &vec![7; bytes]].concat()
    }

    fn body(wire: &[u8], piece: usize, permits: &BytePermits, most: u32) -> (PaidBody<Pieces>, Paid) {
        let pieces = wire.chunks(piece).map(Bytes::copy_from_slice).collect();
        let paid = Paid::default();
        let limits = Limits { flight_message_bytes_max: most, ..Limits::default() };
        (
            PaidBody::new(Pieces(pieces), paid.clone(), permits.clone(), &limits, FlightCounters::default()),
            paid,
        )
    }

    /// What comes next, if it is there.
    fn next(body: &mut PaidBody<Pieces>) -> Poll<Option<Result<Bytes, Status>>> {
        let mut context = Context::from_waker(futures::task::noop_waker_ref());
        let frame = Pin::new(body).poll_frame(&mut context);
        frame.map(|frame| frame.map(|frame| frame.map(|frame| frame.into_data().expect("data"))))
    }

    fn ready(next: Poll<Option<Result<Bytes, Status>>>) -> Option<Result<Bytes, Status>> {
        match next {
            Poll::Ready(next) => next,
            Poll::Pending => panic!("there are permits enough"),
        }
    }

    #[tokio::test]
    async fn whatever_the_pieces_the_same_bytes_come_out_and_each_message_is_paid_once() {
        let wire = [message(10), message(0), message(3000), message(1)].concat();
        for piece in [1, 2, 5, 7, 100, wire.len()] {
            let permits = BytePermits::new(1 << 20);
            let (mut body, paid) = body(&wire, piece, &permits, 4096);
            let mut out = Vec::new();
            while let Some(bytes) = ready(next(&mut body)) {
                out.extend_from_slice(&bytes.expect("sound"));
            }
            assert_eq!(out, wire);
            let held: Vec<u64> = (0..5).map(|_| paid.next().bytes()).collect();
            assert_eq!(held, [1024, 1024, 6144, 1024, 0]);
        }
    }

    /// I20
    #[tokio::test]
    async fn a_message_waits_for_its_bytes_and_the_one_before_it_passes_whole() {
        let wire = [message(1000), message(1000)].concat();
        let permits = BytePermits::new(2048);
        let (mut body, paid) = body(&wire, wire.len(), &permits, 4096);
        let mut out = 0;
        while let Poll::Ready(frame) = next(&mut body) {
            out += frame.expect("more").expect("sound").len();
        }
        assert_eq!(out, 1000 + 2 * PREFIX_BYTES, "the second message's prefix is read, nothing of it");
        drop(paid.next());
        assert_eq!(ready(next(&mut body)).expect("more").expect("sound").len(), 1000);
    }

    /// I19
    #[tokio::test]
    async fn a_length_beyond_the_limit_ends_the_call() {
        let permits = BytePermits::new(1 << 20);
        for stated in [5, u32::MAX] {
            let wire = [&[0][..], &stated.to_be_bytes()].concat();
            let (mut body, _) = body(&wire, wire.len(), &permits, 4);
            let refused = ready(next(&mut body)).expect("an end").expect_err("too long");
            assert!(refused.message().contains("flight-message-bytes-max"), "{refused}");
        }
    }
}
