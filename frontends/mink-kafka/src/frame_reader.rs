//! Reads one frame after the other from a connection's socket.
//!
//! Lives on: the service runtime, one per connection.
//! Owns: the bytes that were read ahead, at most [`READ_AHEAD_BYTES`].
//! Invariants: K-30: a length is checked before anything else; who only declares a frame holds nothing: byte permits for the whole of it
//! are taken once [`PROOF_BYTES`] of it have come, and held before the rest is read into memory. A buffer begins at no more than
//! [`BODY_BYTES_FIRST`] and grows as bytes arrive. A frame has its time from its first byte, in which waiting for our own permits does
//! not count; one that holds permits keeps its pace, and goes soon when it stalls while others wait for them.
use crate::counters::KafkaCounters;
use bytes::{BufMut, Bytes, BytesMut};
use mink_kafka_wire::{ApiKey, DecodeError, FRAME_PREFIX_LEN, Fault, frame_length};
use mink_router::{BytePermit, BytePermits};
use mink_types::Limits;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::net::tcp::ReadHalf;
use tokio::time::{Instant, timeout, timeout_at};

/// Bytes read at once while it is not known what comes: the prefix and, as a rule, whole small frames. Not covered by permits.
const READ_AHEAD_BYTES: usize = 8 << 10;

/// Bytes read ahead behind a frame of at least [`SPARSE_FROM`]: as a rule its like follows, and what is read ahead of a frame that has
/// a buffer of its own is copied into it.
const READ_AHEAD_SPARSE_BYTES: usize = 512;
const SPARSE_FROM: usize = 64 << 10;

/// What a body's buffer begins with at most.
const BODY_BYTES_FIRST: usize = 2 << 20;

/// So many bytes of a longer frame must have come, here or to the system, before it gets permits.
const PROOF_BYTES: usize = READ_AHEAD_BYTES;

/// A frame with permits must keep arriving at its rate after a moment's grace: whoever declares much and sends little would else hold
/// what others need until the frame's deadline.
const PACE_GRACE: Duration = Duration::from_secs(2);

/// A frame of which nothing comes for so long goes when others wait for permits.
const STALLED_AFTER: Duration = Duration::from_millis(500);

/// Largest frame of anything but Produce. No client sends more, and what a decoded request and its answer take is a multiple
/// of the frame, which the permits do not cover.
const OTHER_BYTES_MAX: usize = 4 << 20;

/// How far a connection has got; written by its two halves, read by both.
#[derive(Debug)]
pub(crate) struct Count {
    pub(crate) asked: AtomicU64,
    answered: AtomicU64,
    /// Bytes read from the socket.
    pub(crate) bytes_read: AtomicU64,
    began: Instant,
    /// When it last read or wrote, in ms since it began.
    touched: AtomicU64,
}

impl Count {
    pub(crate) fn new(began: Instant) -> Count {
        Count {
            asked: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            bytes_read: AtomicU64::new(0),
            began,
            touched: AtomicU64::new(0),
        }
    }

    /// Since when nothing was asked or answered; none while an answer is owed.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let since = self.began + Duration::from_millis(self.touched.load(Ordering::Acquire));
        (!self.is_busy()).then_some(since)
    }

    /// So many requests have their answers.
    pub(crate) fn note_answered(&self, answered: u64) {
        self.answered.store(answered, Ordering::Release);
        self.touch();
    }

    fn touch(&self) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.touched.store(now, Ordering::Release);
    }

    pub(crate) fn answered(&self) -> u64 {
        self.answered.load(Ordering::Acquire)
    }

    fn is_busy(&self) -> bool {
        self.asked.load(Ordering::Acquire) != self.answered()
    }
}

/// A whole frame.
#[derive(Debug)]
pub(crate) struct ReadFrame {
    /// Without its length.
    pub(crate) body: Bytes,
    /// Stands for its bytes.
    pub(crate) permit: BytePermit,
    /// Bytes of the connection before it.
    pub(crate) position: u64,
}

/// Why no further frame comes.
#[derive(Debug)]
pub(crate) enum ReadEnd {
    /// The client closed, between two frames or within one.
    Closed,
    /// The client was silent for too long.
    Idle,
    /// The frame did not arrive in its time.
    Deadline,
    /// The frame's length or API is not accepted.
    Refused(DecodeError),
    /// It was idle, and room was needed.
    MadeRoom,
    /// The socket broke: nothing can be sent either.
    Broken(io::Error),
}

/// The reading half of a connection.
#[derive(Debug)]
pub(crate) struct FrameReader<'a> {
    half: ReadHalf<'a>,
    ahead: BytesMut,
    count: Arc<Count>,
    permits: BytePermits,
    large_permits: BytePermits,
    bytes_max: u32,
    bytes_per_second_min: u64,
    frame_deadline: Duration,
    idle_deadline: Duration,
    /// Bytes of the frames given so far, with their lengths.
    given: u64,
    /// How much to read ahead of the next frame.
    ahead_bytes: usize,
    counters: KafkaCounters,
}

impl<'a> FrameReader<'a> {
    pub(crate) fn new(
        half: ReadHalf<'a>,
        count: Arc<Count>,
        permits: BytePermits,
        large_permits: BytePermits,
        limits: &Limits,
        counters: KafkaCounters,
    ) -> FrameReader<'a> {
        FrameReader {
            half,
            ahead: BytesMut::new(),
            count,
            permits,
            large_permits,
            bytes_max: limits.frame_bytes_max,
            bytes_per_second_min: u64::from(limits.frame_bytes_per_second_min.max(1)),
            frame_deadline: Duration::from_millis(limits.frame_deadline_ms),
            idle_deadline: Duration::from_millis(limits.idle_deadline_ms),
            given: 0,
            ahead_bytes: READ_AHEAD_BYTES,
            counters,
        }
    }

    /// The next frame. Not to be called again after it was dropped halfway: what was read of a frame may be gone.
    pub(crate) async fn next(&mut self) -> Result<ReadFrame, ReadEnd> {
        if self.ahead.is_empty() {
            self.first_bytes().await?;
        }
        let begun = Instant::now();
        let deadline = begun + self.frame_deadline;
        let prefix = loop {
            if let Some(prefix) = self.ahead.first_chunk::<FRAME_PREFIX_LEN>() {
                break *prefix;
            }
            let read = timeout_at(deadline, read_some(&self.half, &mut self.ahead, self.ahead_bytes)).await;
            self.note(read.map_err(|_elapsed| ReadEnd::Deadline)?)?;
        };
        let length = frame_length(prefix, self.bytes_max).map_err(ReadEnd::Refused)?;
        let bytes = u64::from(length) + FRAME_PREFIX_LEN as u64;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        self.proof(length, deadline).await?;
        let left = deadline.saturating_duration_since(Instant::now());
        // Large frames have a budget of their own: however many are declared, ordinary requests go on.
        let permits = if length > BODY_BYTES_FIRST { &self.large_permits } else { &self.permits }.clone();
        let permit = permits.take(bytes).await;
        let body = self.body(length, Instant::now() + left, &permits).await?;
        let position = self.given;
        self.given += (length + FRAME_PREFIX_LEN) as u64;
        self.ahead_bytes = if length < SPARSE_FROM { READ_AHEAD_BYTES } else { READ_AHEAD_SPARSE_BYTES };
        Ok(ReadFrame { body, permit, position })
    }

    /// Waits for the first bytes of a frame, without memory of its own while there are none.
    async fn first_bytes(&mut self) -> Result<(), ReadEnd> {
        // Dropping it frees the read-ahead of an idle connection.
        self.ahead = BytesMut::new();
        loop {
            let answered = self.count.answered();
            let mut ahead = BytesMut::with_capacity(self.ahead_bytes);
            match self.half.try_read_buf(&mut ahead) {
                Ok(read) => {
                    self.ahead = ahead;
                    return self.note(Ok(read));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(ReadEnd::Broken(error)),
            }
            drop(ahead);
            match timeout(self.idle_deadline, self.half.readable()).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => return Err(ReadEnd::Broken(error)),
                // A client that waits for us is not idle.
                Err(_elapsed) if self.count.is_busy() || self.count.answered() != answered => {}
                Err(_elapsed) => return Err(ReadEnd::Idle),
            }
        }
    }

    /// Waits until enough of the frame has come that its client may be believed.
    async fn proof(&mut self, length: usize, deadline: Instant) -> Result<(), ReadEnd> {
        let enough = length.min(PROOF_BYTES) + FRAME_PREFIX_LEN;
        while self.ahead.len() < enough {
            check_size(self.ahead.get(FRAME_PREFIX_LEN..).unwrap_or_default(), length)?;
            let socket: &TcpStream = self.half.as_ref();
            // What the system holds need not be copied through the read-ahead. A socket that cannot say is read.
            let unread = rustix::io::ioctl_fionread(socket).unwrap_or(0);
            if self.ahead.len() as u64 + unread >= enough as u64 {
                break;
            }
            let room = enough - self.ahead.len();
            let read = timeout_at(deadline, read_some(&self.half, &mut self.ahead, room)).await;
            self.note(read.map_err(|_elapsed| ReadEnd::Deadline)?)?;
        }
        Ok(())
    }

    async fn body(
        &mut self,
        length: usize,
        deadline: Instant,
        permits: &BytePermits,
    ) -> Result<Bytes, ReadEnd> {
        let _prefix = self.ahead.split_to(FRAME_PREFIX_LEN);
        if self.ahead.len() >= length {
            let body = self.ahead.split_to(length).freeze();
            return check_size(&body, length).map(|()| body);
        }
        let mut body = BytesMut::with_capacity(length.min(BODY_BYTES_FIRST));
        let ahead = self.ahead.split();
        body.extend_from_slice(&ahead);
        self.counters.copied(ahead.len());
        drop(ahead);
        check_size(&body, length)?;
        let begun = Instant::now();
        while body.len() < length {
            let pace = Duration::from_millis(body.len() as u64 * 1000 / self.bytes_per_second_min);
            let deadline = deadline.min(begun + PACE_GRACE + pace);
            let missing = length - body.len();
            if body.len() == body.capacity() {
                // The allocator may move what is there.
                self.counters.copied(body.len());
                body.reserve(missing.min(body.len().max(1)));
            }
            let room = missing.min(body.capacity() - body.len());
            let next = read_some(&self.half, &mut body, room);
            let read = match timeout_at(deadline.min(Instant::now() + STALLED_AFTER), next).await {
                Ok(read) => read,
                Err(_elapsed) if Instant::now() < deadline && !permits.is_short() => continue,
                Err(_elapsed) => return Err(ReadEnd::Deadline),
            };
            self.note(read)?;
            check_size(&body, length)?;
        }
        Ok(body.freeze())
    }

    /// Counts what a read gave; nothing read is the end of the stream.
    fn note(&self, read: io::Result<usize>) -> Result<(), ReadEnd> {
        match read {
            Ok(0) => Err(ReadEnd::Closed),
            Ok(bytes) => {
                self.count.bytes_read.fetch_add(bytes as u64, Ordering::AcqRel);
                self.count.touch();
                Ok(())
            }
            Err(error) => Err(ReadEnd::Broken(error)),
        }
    }
}

/// Reads what is there, at most `bytes_max`, waiting until something is.
async fn read_some(half: &ReadHalf<'_>, into: &mut BytesMut, bytes_max: usize) -> io::Result<usize> {
    loop {
        match half.try_read_buf(&mut (&mut *into).limit(bytes_max)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => half.readable().await?,
            read => return read,
        }
    }
}

/// Refuses a large frame as soon as its first two bytes tell that it is not a Produce.
fn check_size(begin: &[u8], length: usize) -> Result<(), ReadEnd> {
    let Some(key) = begin.first_chunk::<2>() else {
        return Ok(());
    };
    if length <= OTHER_BYTES_MAX || i16::from_be_bytes(*key) == ApiKey::Produce.code() {
        return Ok(());
    }
    let fault = Fault::FrameLength {
        length: i32::try_from(length).unwrap_or(i32::MAX),
        max: u32::try_from(OTHER_BYTES_MAX).unwrap_or(u32::MAX),
    };
    Err(ReadEnd::Refused(DecodeError { message: "frame", field: "length", fault }))
}
