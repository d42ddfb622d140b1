//! Reads one frame after the other from a connection's socket.
//!
//! Lives on: the service runtime, one per connection.
//! Owns: the bytes that were read ahead, at most [`READ_AHEAD_BYTES`].
//! Invariants: K-30: a length is checked before anything else; who only declares a frame holds nothing: its first permits are taken once
//! [`PROOF_BYTES`] of it have come, the others as its bytes come (see `frame_permits`), each before what it stands for is read into
//! memory. What is read ahead has permits too, but for [`READ_AHEAD_LEAST`]; while nothing more is read it holds those of its bytes. A frame
//! has its time from its first byte, in which waiting for our own permits does not count; one that holds permits keeps its pace, and goes
//! soon when it is slow while others wait for them.
use crate::counters::KafkaCounters;
use crate::frame_permits::FramePermits;
use bytes::{BufMut, Bytes, BytesMut};
use mink_kafka_wire::{ApiKey, DecodeError, FRAME_PREFIX_LEN, Fault, frame_length};
use mink_router::BytePermit;
use mink_types::Limits;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::net::tcp::ReadHalf;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout, timeout_at};

/// Bytes read at once while it is not known what comes: the prefix and, as a rule, whole small frames.
const READ_AHEAD_BYTES: usize = 8 << 10;

/// So many are read without a permit, when there is none.
const READ_AHEAD_LEAST: usize = 512;

/// Bytes read ahead behind a frame of at least [`SPARSE_FROM`]: as a rule its like follows, and what is read ahead of a frame that has
/// a buffer of its own is copied into it.
const READ_AHEAD_SPARSE_BYTES: usize = 512;
const SPARSE_FROM: usize = 64 << 10;

/// Frames above this have a budget of their own: however many are declared, ordinary requests go on.
pub(crate) const ORDINARY_BYTES_MAX: usize = 2 << 20;

/// So many bytes of a longer frame must have come, here or to the system, before it gets permits.
const PROOF_BYTES: usize = READ_AHEAD_BYTES;

/// A frame with permits must keep arriving at its rate after a moment's grace: whoever declares much and sends little would else hold
/// what others need until the frame's deadline.
const PACE_GRACE: Duration = Duration::from_secs(2);

/// When others wait for permits a frame goes of which, in so long a time, less than a fourth of what its rate would bring has come.
const SLOW_AFTER: Duration = Duration::from_millis(500);
const SLOW_PART: u64 = 4;

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
    /// An answer with memory of its own was taken.
    taken: AtomicBool,
    /// Something was answered.
    change: Notify,
}

impl Count {
    pub(crate) fn new(began: Instant) -> Count {
        Count {
            asked: AtomicU64::new(0),
            answered: AtomicU64::new(0),
            bytes_read: AtomicU64::new(0),
            began,
            touched: AtomicU64::new(0),
            taken: AtomicBool::new(false),
            change: Notify::new(),
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
        self.change.notify_one();
    }

    /// Waits until all that was asked has its answer. One may wait at a time.
    pub(crate) async fn all_answered(&self) {
        while self.is_busy() {
            self.change.notified().await;
        }
    }

    /// The client took what was written; whether that had memory of its own.
    pub(crate) fn note_taken(&self, memory: bool) {
        if memory {
            self.taken.store(true, Ordering::Release);
        }
    }

    /// Whether the client has all that it asked for, and that was more than a little.
    pub(crate) fn has_taken(&self) -> bool {
        self.taken.load(Ordering::Acquire) && !self.is_busy()
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

impl ReadFrame {
    /// What it says it asks for.
    pub(crate) fn api_key(&self) -> Option<i16> {
        self.body.first_chunk::<2>().copied().map(i16::from_be_bytes)
    }
}

/// Why no further frame comes.
#[derive(Debug)]
pub(crate) enum ReadEnd {
    /// The client closed, between two frames or within one.
    Closed,
    /// The client was silent for too long.
    Idle,
    /// The client did not take what it was sent.
    Untaken,
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
    /// Stands for the memory of `ahead`; without it that is at most [`READ_AHEAD_LEAST`].
    ahead_permit: Option<BytePermit>,
    count: Arc<Count>,
    permits: FramePermits,
    large_permits: FramePermits,
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
        permits: FramePermits,
        large_permits: FramePermits,
        limits: &Limits,
        counters: KafkaCounters,
    ) -> FrameReader<'a> {
        FrameReader {
            half,
            ahead: BytesMut::new(),
            ahead_permit: None,
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

    /// Whether something of the next frame is there already.
    pub(crate) fn has_more(&self) -> bool {
        !self.ahead.is_empty()
    }

    /// The next frame. Not to be called again after it was dropped halfway: what was read of a frame may be gone.
    pub(crate) async fn next(&mut self) -> Result<ReadFrame, ReadEnd> {
        if self.ahead.is_empty() {
            self.first_bytes().await?;
        }
        let deadline = Instant::now() + self.frame_deadline;
        let prefix = loop {
            if let Some(prefix) = self.ahead.first_chunk::<FRAME_PREFIX_LEN>() {
                break *prefix;
            }
            let room = self.room_ahead();
            let read = timeout_at(deadline, read_some(&self.half, &mut self.ahead, room)).await;
            self.note(read.map_err(|_elapsed| ReadEnd::Deadline)?)?;
        };
        let length = frame_length(prefix, self.bytes_max).map_err(ReadEnd::Refused)?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        self.proof(length, deadline).await?;
        let (body, permit) = if self.ahead.len() >= length + FRAME_PREFIX_LEN {
            check_size(self.ahead.get(FRAME_PREFIX_LEN..).unwrap_or_default(), length)?;
            let permit = self.permits.take_small((length + FRAME_PREFIX_LEN) as u64).await;
            let _prefix = self.ahead.split_to(FRAME_PREFIX_LEN);
            (self.ahead.split_to(length).freeze(), permit)
        } else {
            self.body(length, deadline).await?
        };
        let position = self.given;
        self.given += (length + FRAME_PREFIX_LEN) as u64;
        self.ahead_bytes = if length < SPARSE_FROM { READ_AHEAD_BYTES } else { READ_AHEAD_SPARSE_BYTES };
        Ok(ReadFrame { body, permit, position })
    }

    /// Its socket.
    pub(crate) fn socket(&self) -> &TcpStream {
        self.half.as_ref()
    }

    /// Gives back what is held beyond the bytes that are there: it may be long until they are looked at.
    pub(crate) fn rest(&mut self) {
        if self.ahead.is_empty() {
            self.ahead = BytesMut::new();
            self.ahead_permit = None;
        }
        let Some(permit) = &mut self.ahead_permit else {
            return;
        };
        // Not for each of many small frames that came together.
        if permit.bytes() <= 2 * self.ahead.len() as u64 {
            return;
        }
        // The frame before them lies in the same memory, but lets go of it while it waits.
        self.ahead = BytesMut::from(&*self.ahead);
        let kept = if self.ahead.len() <= READ_AHEAD_LEAST { 0 } else { self.ahead.len() as u64 };
        let kept = permit.split(kept);
        self.ahead_permit = (kept.bytes() > 0).then_some(kept);
    }

    /// Waits until the client sends or closes; true if it has closed.
    pub(crate) async fn closes(&mut self) -> bool {
        !matches!(self.half.peek(&mut [0]).await, Ok(1))
    }

    /// How much may be read ahead now.
    fn room_ahead(&self) -> usize {
        let paid = self.ahead_permit.as_ref().map_or(0, BytePermit::bytes);
        self.ahead_bytes.min(usize::try_from(paid).unwrap_or(usize::MAX).max(READ_AHEAD_LEAST))
    }

    /// Waits for the first bytes of a frame, without memory of its own while there are none.
    async fn first_bytes(&mut self) -> Result<(), ReadEnd> {
        // Dropping it frees the read-ahead of an idle connection.
        self.ahead = BytesMut::new();
        loop {
            let answered = self.count.answered();
            self.ahead_permit = self.permits.ahead(self.ahead_bytes as u64);
            let mut ahead = BytesMut::with_capacity(self.room_ahead());
            match self.half.try_read_buf(&mut ahead) {
                Ok(read) => {
                    self.ahead = ahead;
                    return self.note(Ok(read));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(ReadEnd::Broken(error)),
            }
            drop(ahead);
            self.ahead_permit = None;
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
        let proof = if self.ahead_permit.is_some() { PROOF_BYTES } else { READ_AHEAD_LEAST };
        let enough = length.min(proof) + FRAME_PREFIX_LEN;
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

    /// The rest of a frame that is not there yet, in a buffer that never holds more than its permit.
    async fn body(&mut self, length: usize, deadline: Instant) -> Result<(Bytes, BytePermit), ReadEnd> {
        let permits = if length > ORDINARY_BYTES_MAX { &self.large_permits } else { &self.permits }.clone();
        let whole = (length + FRAME_PREFIX_LEN) as u64;
        let left = deadline.saturating_duration_since(Instant::now());
        let mut permit = BytePermit::default();
        let socket: &TcpStream = self.half.as_ref();
        let unread = rustix::io::ioctl_fionread(socket).unwrap_or(0);
        let mut covered = if self.ahead.len() as u64 + unread >= whole {
            // The system has all of it: it waits for nothing but its memory.
            permit = permits.take_small(whole).await;
            whole
        } else {
            permits.grow(&mut permit, 0, whole).await
        };
        let room = |covered: u64| usize::try_from(covered).unwrap_or(usize::MAX) - FRAME_PREFIX_LEN;
        let _prefix = self.ahead.split_to(FRAME_PREFIX_LEN);
        let mut body = BytesMut::with_capacity(room(covered));
        let ahead = self.ahead.split();
        body.extend_from_slice(&ahead);
        self.counters.copied(ahead.len());
        drop(ahead);
        self.ahead_permit = None;
        check_size(&body, length)?;
        let mut pace = Pace::new(left, body.len(), self.bytes_per_second_min);
        let mut seen = BytesMut::new();
        while body.len() < length {
            let free = room(covered) - body.len();
            let is_full = free == 0;
            // Who sends no more gets no more: a byte of what comes next is seen before there is room for it.
            let (into, free) = if is_full { (&mut seen, 1) } else { (&mut body, free) };
            let next = read_some(&self.half, into, free);
            if let Ok(read) = timeout_at(pace.look_at(), next).await {
                self.note(read)?;
                if is_full {
                    let began = Instant::now();
                    covered = permits.grow(&mut permit, covered, whole).await;
                    pace.pause(began.elapsed());
                    // The allocator may move what is there.
                    self.counters.copied(body.len() + seen.len());
                    body.reserve(room(covered) - body.len());
                    body.extend_from_slice(&seen.split());
                }
                check_size(&body, length)?;
            }
            if body.len() < length && pace.is_over(body.len(), Instant::now(), || permits.is_short()) {
                return Err(ReadEnd::Deadline);
            }
        }
        Ok((body.freeze(), permit))
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

/// How fast a frame that holds permits must come.
struct Pace {
    bytes_per_second_min: u64,
    begun: Instant,
    deadline: Instant,
    /// When it is told whether the frame is slow, and what of it had come when that time began.
    slow_at: Instant,
    slow_from: usize,
    /// When the frame is behind its rate.
    behind_at: Instant,
}

impl Pace {
    fn new(left: Duration, come: usize, bytes_per_second_min: u64) -> Pace {
        let begun = Instant::now();
        let mut pace = Pace {
            bytes_per_second_min,
            begun,
            deadline: begun + left,
            slow_at: begun + SLOW_AFTER,
            slow_from: come,
            behind_at: begun,
        };
        pace.advance(come);
        pace
    }

    fn advance(&mut self, come: usize) {
        self.behind_at =
            self.begun + PACE_GRACE + Duration::from_millis(come as u64 * 1000 / self.bytes_per_second_min);
    }

    /// The frame waited for us.
    fn pause(&mut self, time: Duration) {
        for at in [&mut self.begun, &mut self.deadline, &mut self.slow_at, &mut self.behind_at] {
            *at += time;
        }
    }

    /// When it must be looked at again, if nothing comes.
    fn look_at(&self) -> Instant {
        self.deadline.min(self.slow_at).min(self.behind_at)
    }

    /// Whether the frame, of which so much has come, must go.
    fn is_over(&mut self, come: usize, now: Instant, others_wait: impl Fn() -> bool) -> bool {
        self.advance(come);
        if now >= self.deadline.min(self.behind_at) {
            return true;
        }
        if now < self.slow_at {
            return false;
        }
        let within = u64::try_from(SLOW_AFTER.as_millis()).unwrap_or(u64::MAX);
        let least = self.bytes_per_second_min.saturating_mul(within) / 1000 / SLOW_PART;
        let is_slow = ((come - self.slow_from) as u64) < least.max(1);
        (self.slow_at, self.slow_from) = (now + SLOW_AFTER, come);
        is_slow && others_wait()
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
