//! One connection: a half that reads requests and orders them, and a half that writes their answers, in one task.
//!
//! Lives on: the service runtime, one task per connection.
//! Owns: the socket, the queue of answers.
//! Invariants: K-13: the place of an answer is taken before its request is dispatched, and answers leave in that order; at most
//! `requests_in_flight_max` wait, then the socket is not read. What a client asks in order happens in order: a Produce
//! holds its successors until it is ordered, an OffsetCommit until it is durable or slow, a Fetch, a JoinGroup and a SyncGroup until they are
//! answered, any other request until it is done. So who waits for others is the first of its connection, and what it needs is held by none behind it.
use crate::answer_permits::{AnswerMemory, AnswerShare};
use crate::counters::Closed;
use crate::frame_reader::{Count, FrameReader, ReadEnd, ReadFrame};
use crate::frame_writer::{WriteError, write_all};
use crate::handlers;
use crate::idle::Listed;
use crate::limits_met::Limit;
use crate::node::Node;
use crate::refusals::Refusals;
use crate::untaken::{Patience, is_taken, untaken_bytes};
use bytes::Bytes;
use futures::future::{BoxFuture, Either, Ready};
use futures::stream::{FuturesOrdered, StreamExt};
use futures::{FutureExt, future};
use mink_kafka_wire::{ApiKey, Fault, Frame, RequestHeader};
use mink_router::BytePermit;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::net::tcp::WriteHalf;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::task::yield_now;
use tokio::time::Instant;

/// How long a connection that has sent many requests at once is served before others have their turn: a thousand such ones keep
/// the next waiting for a tenth of a second at most.
const TURN: Duration = Duration::from_micros(50);

/// Requests that wait for others than this connection: nothing behind them is read until they are answered, as from Kafka. What stands
/// behind a waiting request would hold memory, of frames or answers, for as long as it waits, and a fetch the very memory that the one before
/// it needs to be answered.
const MUTES: [i16; 3] = [ApiKey::Fetch.code(), ApiKey::JoinGroup.code(), ApiKey::SyncGroup.code()];

/// What becomes of a request.
#[derive(Debug)]
pub(crate) enum Answer {
    /// Sent; the permit stands for the memory of the answer until it has been taken.
    Send { frame: Frame, memory: Option<AnswerMemory> },
    /// The client did not ask for an answer.
    Nothing,
    /// No answer can be right: the connection ends here, after the answers before.
    Close(Closed),
}

/// An answer that is there or comes.
pub(crate) type Answering = Either<Ready<Answer>, BoxFuture<'static, Answer>>;

/// An answer that is there.
pub(crate) fn ready(answer: Answer) -> Answering {
    Either::Left(future::ready(answer))
}

/// An answer that comes.
pub(crate) fn later(answer: impl Future<Output = Answer> + Send + 'static) -> Answering {
    Either::Right(answer.boxed())
}

/// The place of one answer.
struct Slot {
    answering: Answering,
    /// Its place among those in flight.
    place: OwnedSemaphorePermit,
    /// What is left of the permit for the request's bytes.
    request: BytePermit,
}

impl Slot {
    async fn wait(self) -> (Answer, OwnedSemaphorePermit) {
        let answer = self.answering.await;
        drop(self.request);
        (answer, self.place)
    }
}

/// Serves a connection to its end. `stopping` becomes true when the listener stops.
pub(crate) async fn serve(
    mut stream: TcpStream,
    peer: SocketAddr,
    node: Arc<Node>,
    stopping: watch::Receiver<bool>,
    listed: Listed,
) {
    let limits = &node.config.limits;
    let in_flight_max =
        usize::try_from(limits.requests_in_flight_max).unwrap_or(usize::MAX).clamp(1, Semaphore::MAX_PERMITS);
    let patience = Duration::from_millis(limits.frame_deadline_ms);
    let count = Arc::clone(&listed.presence.count);
    let refusals = Arc::new(Mutex::new(Refusals::default()));
    let ending = watch::Sender::new(false);
    let (slots, queue) = mpsc::channel(in_flight_max);
    let (read, write) = stream.split();
    let requests = Requests {
        reader: FrameReader::new(
            read,
            Arc::clone(&count),
            node.config.request_permits.clone(),
            node.config.large_request_permits.clone(),
            limits,
            node.counters.clone(),
        ),
        places: Arc::new(Semaphore::new(in_flight_max)),
        slots,
        refusals: Arc::clone(&refusals),
        count: Arc::clone(&count),
        leave: Arc::clone(&listed.presence.leave),
        ending: &ending,
        answers: node.config.answer_permits.share(false),
        node: Arc::clone(&node),
        peer,
    };
    let mut writing = write_answers(write, queue, count, refusals, patience).boxed();
    let reading = requests.run(stopping).boxed();
    let closed = match future::select(reading, &mut writing).await {
        // The client may have closed one direction only: what was asked is answered, but nothing waits for more to come.
        Either::Left((read, _)) => {
            ending.send_replace(true);
            match read {
                Some(ReadEnd::Broken(error)) => {
                    tracing::debug!(%peer, %error, "kafka connection broke");
                    None
                }
                // It would take no answer either.
                Some(ReadEnd::Untaken) => Some(Closed::WriteDeadline),
                end => writing.await.or(end.as_ref().and_then(|end| note_end(end, peer))),
            }
        }
        Either::Right((closed, _)) => closed,
    };
    if let Some(why) = closed
        && let Some(held_back) = node.counters.closed(why)
    {
        tracing::warn!(%peer, reason = why.name(), held_back, "kafka connection closed");
    }
}

fn note_end(end: &ReadEnd, peer: SocketAddr) -> Option<Closed> {
    match end {
        ReadEnd::Closed | ReadEnd::Broken(_) => None,
        ReadEnd::MadeRoom => Some(Closed::MadeRoom),
        ReadEnd::Idle => Some(Closed::Idle),
        ReadEnd::Untaken => Some(Closed::WriteDeadline),
        ReadEnd::Deadline => Some(Closed::FrameDeadline),
        ReadEnd::Refused(error) => {
            tracing::debug!(%peer, %error, "kafka frame refused");
            Some(match error.fault {
                Fault::FrameLength { length, .. } if is_of_other_protocol(length) => Closed::OtherProtocol,
                Fault::FrameLength { .. } => Closed::FrameLength,
                _ => Closed::Malformed,
            })
        }
    }
}

/// Whether the length of a first frame is how TLS or HTTP begins.
fn is_of_other_protocol(length: i32) -> bool {
    /// A TLS record that carries a handshake: kind 22, version 3.x, then its length.
    const TLS: [u8; 2] = [22, 3];
    const HTTP: [&[u8; 4]; 5] = [b"GET ", b"POST", b"PUT ", b"HEAD", b"OPTI"];
    let begin = length.to_be_bytes();
    begin.starts_with(&TLS) || HTTP.contains(&&begin)
}

/// The reading half.
struct Requests<'a> {
    reader: FrameReader<'a>,
    places: Arc<Semaphore>,
    slots: mpsc::Sender<Slot>,
    refusals: Arc<Mutex<Refusals>>,
    count: Arc<Count>,
    /// Room is needed: an idle connection goes.
    leave: Arc<Notify>,
    /// Becomes true when nobody waits for more to come.
    ending: &'a watch::Sender<bool>,
    node: Arc<Node>,
    /// What this connection's answers may hold of the memory for answers.
    answers: AnswerShare,
    peer: SocketAddr,
}

impl Requests<'_> {
    /// Reads until the end; none when the listener stops, or when the other half has closed the connection. The queue closes
    /// with it.
    async fn run(mut self, mut stopping: watch::Receiver<bool>) -> Option<ReadEnd> {
        let mut turn = Instant::now();
        loop {
            let waits = !self.reader.has_more();
            if !waits && turn.elapsed() >= TURN {
                yield_now().await;
                turn = Instant::now();
            }
            let stop = stopping.wait_for(|stop| *stop);
            let (place, frame) = tokio::select! {
                biased;
                // A stop is looked at between requests only: what is being ordered is finished.
                _ = stop => return None,
                // Were something asked just now, its answer would still be sent.
                () = self.leave.notified() => return Some(ReadEnd::MadeRoom),
                next = next_frame(&self.places, &mut self.reader, &self.node) => match next {
                    Ok(next) => next,
                    Err(end) => return Some(end),
                },
            };
            if waits {
                turn = Instant::now();
                // It asks for more, and nothing is owed to it, by us or by the system.
                if !self.answers.is_known()
                    && self.count.has_taken()
                    && untaken_bytes(self.reader.socket()) == 0
                {
                    self.answers = self.node.config.answer_permits.share(true);
                }
            }
            self.count.asked.fetch_add(1, Ordering::AcqRel);
            if let Err(end) = self.held_back(frame.api_key(), &mut stopping).await {
                return end;
            }
            let next = match self.request(frame, place).await {
                Ok(key) if MUTES.contains(&key) => self.muted(&mut stopping).await,
                next => next.map(|_key| ()),
            };
            if let Err(end) = next {
                return end;
            }
        }
    }

    /// Holds a request back while memory for its answer is scarce and its client has not taken what it was sent before.
    async fn held_back(
        &mut self,
        api_key: Option<i16>,
        stopping: &mut watch::Receiver<bool>,
    ) -> Result<(), Option<ReadEnd>> {
        /// What its answer needs is little, and others may depend on it.
        const PRODUCE: Option<i16> = Some(ApiKey::Produce.code());
        let part = self.answers.part(api_key == Some(ApiKey::Fetch.code()));
        if api_key == PRODUCE || !part.is_scarce() {
            return Ok(());
        }
        self.reader.rest();
        let long = Duration::from_millis(self.node.config.limits.frame_deadline_ms);
        let patience = Patience { short: self.answers.patience(), long };
        tokio::select! {
            biased;
            _ = stopping.wait_for(|stop| *stop) => Err(None),
            taken = is_taken(self.reader.socket(), part, patience) => {
                if taken { Ok(()) } else { Err(Some(ReadEnd::Untaken)) }
            }
        }
    }

    /// Reads nothing until all is answered. A client that has closed is not waited with.
    async fn muted(&mut self, stopping: &mut watch::Receiver<bool>) -> Result<(), Option<ReadEnd>> {
        let mut listens = true;
        self.reader.rest();
        loop {
            tokio::select! {
                biased;
                _ = stopping.wait_for(|stop| *stop) => return Err(None),
                () = self.count.all_answered() => return Ok(()),
                closes = self.reader.closes(), if listens => {
                    listens = false;
                    if closes {
                        self.ending.send_replace(true);
                    }
                }
            }
        }
    }

    /// Begins a request; gives its API key.
    async fn request(
        &mut self,
        frame: ReadFrame,
        place: OwnedSemaphorePermit,
    ) -> Result<i16, Option<ReadEnd>> {
        let ReadFrame { body, mut permit, position } = frame;
        let refused = |error| Some(ReadEnd::Refused(error));
        let (header, body) = RequestHeader::decode(body).map_err(refused)?;
        tracing::trace!(
            peer = %self.peer, api = header.api_key, version = header.api_version,
            correlation = header.correlation_id, client = ?header.client_id, "kafka request"
        );
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner).advance(position);
        let (key, ends) = (header.api_key, self.ending.subscribe());
        // It lies in the frame, which goes where its records are stored in another form: nobody asks who produces.
        let client_id = header.client_id.filter(|_| key != ApiKey::Produce.code());
        let mut call = handlers::Call {
            node: &self.node,
            version: header.api_version,
            correlation: header.correlation_id,
            number: self.count.asked.load(Ordering::Acquire),
            refusals: &self.refusals,
            permit: &mut permit,
            ends: &ends,
            answers: &self.answers,
            client_id: client_id.as_ref(),
            peer: self.peer,
        };
        let answering = handlers::dispatch(&mut call, key, body).await.map_err(refused)?;
        let (answering, request) = self.weigh(answering, permit).await;
        let slot = Slot { answering, place, request };
        // There is room: the queue is as long as there are places.
        self.slots.try_send(slot).map_err(|_closed| None)?;
        Ok(key)
    }

    /// An answer that is there stands in the memory of answers from now on, not in that of requests: were its client never to take
    /// it, requests of others would wait for it.
    async fn weigh(&self, answering: Answering, request: BytePermit) -> (Answering, BytePermit) {
        let Either::Left(there) = answering else {
            return (answering, request);
        };
        drop(request);
        let answer = match there.into_inner() {
            Answer::Send { frame, memory: None } => {
                let memory = self.answers.take_for_other(frame.len() as u64).await;
                Answer::Send { frame, memory: Some(memory) }
            }
            other => other,
        };
        (ready(answer), BytePermit::default())
    }
}

/// Takes a place for the answer, then reads the request.
async fn next_frame(
    places: &Arc<Semaphore>,
    reader: &mut FrameReader<'_>,
    node: &Node,
) -> Result<(OwnedSemaphorePermit, ReadFrame), ReadEnd> {
    if places.available_permits() == 0 {
        node.counters.limits().note(Limit::RequestsInFlight);
    }
    // Never closed; were it, nothing could be answered.
    let place = Arc::clone(places).acquire_owned().await.map_err(|_closed| ReadEnd::Closed)?;
    Ok((place, reader.next().await?))
}

/// The writing half: answers in the order of their places. Ends when the queue is closed and empty, or with the reason for
/// which the connection must end before that.
async fn write_answers(
    half: WriteHalf<'_>,
    mut queue: mpsc::Receiver<Slot>,
    count: Arc<Count>,
    refusals: Arc<Mutex<Refusals>>,
    patience: Duration,
) -> Option<Closed> {
    let mut waiting = FuturesOrdered::new();
    let mut open = true;
    loop {
        let first = tokio::select! {
            biased;
            Some(answer) = waiting.next(), if !waiting.is_empty() => answer,
            slot = queue.recv(), if open => {
                match slot {
                    Some(slot) => waiting.push_back(slot.wait()),
                    None => open = false,
                }
                continue;
            }
            else => return None,
        };
        // What is ready already goes out in the same write.
        let mut batch = Batch::default();
        let mut next = Some(first);
        while let Some((answer, place)) = next.take() {
            batch.add(answer, place);
            if batch.has_room() && !waiting.is_empty() {
                next = waiting.next().now_or_never().flatten();
            }
        }
        let answered = count.answered() + batch.answers;
        note_written(&half, &count, &refusals, answered);
        let held = batch.held.iter().filter_map(|(_, held)| held.as_ref());
        let memory = held.max_by_key(|memory| memory.is_of_fetch());
        match write_all(&half, batch.segments, patience, memory).await {
            Ok(()) => count.note_taken(memory.is_some_and(AnswerMemory::is_of_fetch)),
            Err(WriteError::Deadline) => return Some(Closed::WriteDeadline),
            Err(WriteError::Broken(error)) => {
                tracing::debug!(%error, "a kafka answer was not taken");
                return None;
            }
        }
        count.note_answered(answered);
        if batch.close.is_some() {
            return batch.close;
        }
    }
}

/// Tells the refusals, before their answers are written, how much of the connection has arrived.
fn note_written(half: &WriteHalf<'_>, count: &Count, refusals: &Mutex<Refusals>, answered: u64) {
    let mut refusals = refusals.lock().unwrap_or_else(PoisonError::into_inner);
    if refusals.is_empty() {
        return;
    }
    let socket: &TcpStream = half.as_ref();
    // The system knows of bytes that the runtime has not seen yet. A socket that cannot say is broken.
    let unread = rustix::io::ioctl_fionread(socket).unwrap_or(0);
    refusals.note_written(answered, count.bytes_read.load(Ordering::Acquire) + unread);
}

/// Most bytes collected for one write before it begins.
const BATCH_BYTES_MAX: usize = 256 << 10;

/// Answers that are written together.
#[derive(Default)]
struct Batch {
    segments: VecDeque<Bytes>,
    bytes: usize,
    answers: u64,
    /// Places and memory, held until the write is done.
    held: Vec<(OwnedSemaphorePermit, Option<AnswerMemory>)>,
    close: Option<Closed>,
}

impl Batch {
    fn add(&mut self, answer: Answer, place: OwnedSemaphorePermit) {
        self.answers += 1;
        match answer {
            Answer::Send { frame, memory } => {
                self.bytes += frame.len();
                self.segments.extend(frame.into_segments());
                self.held.push((place, memory));
            }
            Answer::Nothing => self.held.push((place, None)),
            Answer::Close(why) => self.close = Some(why),
        }
    }

    fn has_room(&self) -> bool {
        self.close.is_none() && self.bytes < BATCH_BYTES_MAX
    }
}
