//! The task of one bucket: collects rows, sends them in order, several batches in flight, and repeats them in order until each has ended.
//!
//! Lives on: one task per bucket that a writer writes to.
//! Owns: the queue of batches that have not ended, their sequences, the stream they are sent on.
//! Invariants: one stream at a time; what is sent again is sent from the first batch that was not acked on, under the same sequences, with
//! the same bytes (I6). Batches that may be stored are a prefix of the queue, for a call is read in order and ends with the first that is
//! refused; so a refused batch that was sent once leaves its sequences to those behind it. I7: an end that is not sure is `Unknown`; an
//! idempotent writer does not go on behind one. A stream that others need the place of is given up with nothing on its way.
use super::collected::Collected;
use super::encode::{Encoded, Encoding, encode};
use super::link::{Link, PutStream};
use super::past::Standing;
use super::placed::{Deliveries, Ended, Flushed, Placed};
use super::streams::TURN_BATCHES;
use crate::flight::backoff::Backoff;
use crate::flight::error::{Attempt, attempt};
use crate::flight::{FlightError, FlightErrorKind};
use arrow_array::RecordBatch;
use arrow_flight::{FlightData, PutResult};
use arrow_schema::SchemaRef;
use bytes::Bytes;
use mink_proto::{PutAck, PutBatch};
use mink_types::Sequence;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};
use tokio::time::Instant;
use tonic::Status;

/// What a lane is asked to do.
#[derive(Debug)]
pub(super) enum Order {
    Rows { batch: RecordBatch, told: oneshot::Sender<Ended>, room: Arc<OwnedSemaphorePermit> },
    Flush(oneshot::Sender<Flushed>),
}

/// How a lane collects and sends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub(super) linger: Duration,
    pub(super) batch_bytes: usize,
    pub(super) delivery_timeout: Duration,
}

/// A batch that has not ended.
#[derive(Debug)]
struct Flight {
    schema: SchemaRef,
    metadata: Bytes,
    body: Bytes,
    rows: u64,
    /// Of an idempotent writer: the number of the first row, since it was sent first.
    sequence: Option<Sequence>,
    deadline: Instant,
    /// An attempt may have stored it.
    unknown: bool,
    /// Rows that are no message. They end when what was written before them has.
    dead: Option<FlightError>,
}

impl Flight {
    fn message(&self) -> FlightData {
        let told = PutBatch { sequence: self.sequence.map(|sequence| sequence.0) };
        FlightData {
            flight_descriptor: None,
            data_header: self.metadata.clone(),
            app_metadata: mink_proto::encode(&told).into(),
            data_body: self.body.clone(),
        }
    }
}

#[derive(Debug)]
pub(super) struct Lane {
    link: Link,
    pace: Pace,
    encoding: Encoding,
    orders: mpsc::Receiver<Order>,
    closed: bool,
    collected: Option<Collected>,
    deliveries: Deliveries,
    /// In order; those that are on their way come first.
    queue: VecDeque<Flight>,
    stream: Option<PutStream>,
    /// Of an idempotent writer: the number of the next row.
    sequence: Option<Sequence>,
    backoff: Backoff,
    /// No stream is opened before.
    retry_at: Option<Instant>,
    /// The owner could not be reached where the cluster says it is.
    at_home: bool,
    last_error: Option<FlightError>,
    /// Why nothing more is taken.
    failed: Option<FlightError>,
}

impl Lane {
    pub(super) fn new(
        link: Link,
        pace: Pace,
        encoding: Encoding,
        orders: mpsc::Receiver<Order>,
        Standing { sequence, failed, .. }: Standing,
    ) -> Lane {
        Lane {
            link,
            pace,
            encoding,
            orders,
            closed: false,
            collected: None,
            deliveries: Deliveries::default(),
            queue: VecDeque::new(),
            stream: None,
            sequence,
            backoff: Backoff::default(),
            retry_at: None,
            at_home: false,
            last_error: None,
            failed,
        }
    }

    /// Runs until nobody writes any more and all that was written has ended: where it stands then, and what it has not told.
    pub(super) async fn run(mut self) -> (Standing, Flushed) {
        let streams = Arc::clone(self.link.streams());
        loop {
            self.give_up();
            let rings = streams.rings();
            self.transmit(streams.is_short());
            if self.closed && self.collected.is_none() && self.queue.is_empty() {
                let Lane { sequence, failed, link, .. } = self;
                let partition = link.counted();
                return (Standing { sequence, partition, failed, to_pass: 0 }, self.deliveries.untold());
            }
            let (moment, room) = (self.next_moment(), self.queue.len() <= self.link.in_flight);
            let is_idle = self.stream.as_ref().is_some_and(PutStream::is_idle);
            tokio::select! {
                biased;
                ack = acked(self.stream.as_mut()) => self.hear(ack),
                () = until(moment) => {}
                () = rings, if is_idle => {}
                order = self.orders.recv(), if room && !self.closed => self.obey(order),
            }
            if self.collected.as_ref().is_some_and(|rows| rows.due(self.pace.linger) <= Instant::now()) {
                self.cut();
            }
        }
    }

    fn next_moment(&self) -> Option<Instant> {
        let due = self.collected.as_ref().map(|rows| rows.due(self.pace.linger));
        let late = self.queue.front().map(|first| first.deadline);
        let retry = self.retry_at.filter(|_| !self.queue.is_empty());
        [due, late, retry].into_iter().flatten().min()
    }

    fn obey(&mut self, order: Option<Order>) {
        match order {
            Some(Order::Rows { batch, told, room }) => {
                let rows = batch.num_rows() as u64;
                self.deliveries.promise(rows, told, room);
                match self.failed.clone() {
                    Some(error) => self.deliveries.failed(rows, &error),
                    None => self.collect(batch),
                }
            }
            Some(Order::Flush(told)) => {
                self.cut();
                self.deliveries.flush(told);
            }
            None => {
                self.closed = true;
                self.cut();
            }
        }
    }

    fn collect(&mut self, batch: RecordBatch) {
        let apart = match &mut self.collected {
            Some(collected) => collected.add(batch),
            None => Some(batch),
        };
        if let Some(batch) = apart {
            self.cut();
            self.collected = Some(Collected::new(batch, Instant::now()));
        }
        if self.collected.as_ref().is_some_and(|rows| rows.is_full(self.pace.batch_bytes)) {
            self.cut();
        }
    }

    /// What was collected becomes batches of the queue.
    fn cut(&mut self) {
        let Some(Collected { schema, batches, rows, since, .. }) = self.collected.take() else { return };
        let deadline = since + self.pace.delivery_timeout;
        let flight = |encoded: Encoded, dead| Flight {
            schema: SchemaRef::clone(&schema),
            metadata: encoded.metadata,
            body: encoded.body,
            rows: encoded.rows.into(),
            sequence: None,
            deadline,
            unknown: false,
            dead,
        };
        match encode(&schema, &batches, self.encoding) {
            Ok(messages) => self.queue.extend(messages.into_iter().map(|message| flight(message, None))),
            Err(error) => {
                let nothing = Encoded { metadata: Bytes::new(), body: Bytes::new(), rows: 0 };
                self.queue.push_back(Flight { rows, ..flight(nothing, Some(error)) });
            }
        }
    }

    /// Sends what of the queue may be on its way and is not. `short`: another lane waits for the place of this one's stream.
    fn transmit(&mut self, short: bool) {
        if let Some(stream) = self.stream.as_ref().filter(|_| short) {
            let has_had_its_turn = stream.acked >= TURN_BATCHES || self.queue.is_empty();
            match (has_had_its_turn, stream.is_idle()) {
                (true, true) => self.stream = None,
                (true, false) => return,
                (false, _) => {}
            }
        }
        if self.retry_at.is_some_and(|at| at > Instant::now()) {
            return;
        }
        self.retry_at = None;
        loop {
            let sent = self.stream.as_ref().map_or(0, |stream| stream.sent);
            let Some(flight) = self.queue.get_mut(sent).filter(|_| sent < self.link.in_flight) else {
                return;
            };
            // A stream has one schema, and what is no message ends in its turn.
            let other = self.stream.as_ref().is_some_and(|stream| stream.schema != flight.schema);
            if sent > 0 && (other || flight.dead.is_some()) {
                return;
            }
            if let Some(error) = flight.dead.take() {
                self.deliveries.failed(flight.rows, &error);
                self.queue.pop_front();
                continue;
            }
            if other {
                self.stream = None;
            }
            let stream = self.stream.get_or_insert_with(|| self.link.open(&flight.schema, self.at_home));
            if let (Some(next), None) = (&mut self.sequence, flight.sequence) {
                flight.sequence = Some(*next);
                *next = next.plus(u32::try_from(flight.rows).unwrap_or(u32::MAX));
            }
            if !stream.send(flight.message()) {
                if sent > 0 {
                    return;
                }
                // It ended while it was idle.
                self.stream = None;
            }
        }
    }

    /// What the server says.
    fn hear(&mut self, said: Option<Result<PutResult, Status>>) {
        let Some(stream) = &mut self.stream else { return };
        let ended = match said {
            Some(Ok(result)) => match read_ack(&result, stream.acked) {
                Ok(ack) if stream.sent > 0 => {
                    stream.sent -= 1;
                    stream.acked += 1;
                    return self.stored(&ack);
                }
                Ok(_) => Err(FlightError::protocol("an ack of what was not sent")),
                Err(error) => Err(error),
            },
            Some(Err(status)) => Ok(status),
            None => Err(FlightError::new(FlightErrorKind::Unknown, "the server has ended the stream")),
        };
        let Some(stream) = self.stream.take() else { return };
        if let Some(partition) = stream.anew() {
            return self.begin_anew(partition);
        }
        let (error, left) = match ended {
            Ok(status) => {
                let left = stream.has_begun() && attempt(&status) != Attempt::NeverSent;
                (FlightError::from_status(&status), left)
            }
            Err(error) => (error, true),
        };
        if stream.sent == 0 {
            // Nothing was under way: the next batch opens another.
            tracing::debug!(%error, "an idle stream has ended");
            return;
        }
        if error.kind() == FlightErrorKind::NotFound && self.link.is_gone() {
            // Nothing was stored by this attempt; the next one makes the partition.
            return self.later(error);
        }
        self.judge(stream.sent, left, error);
    }

    fn stored(&mut self, ack: &Ack) {
        let Some(flight) = self.queue.pop_front() else { return };
        (self.backoff, self.at_home) = (Backoff::default(), false);
        let placed = ack.placed.iter().fold(0_u64, |rows, run| rows.saturating_add(run.rows));
        let rows = placed.saturating_add(ack.repeated_rows);
        if rows == flight.rows {
            // What was stored before came before.
            self.deliveries.repeated(ack.repeated_rows);
            self.deliveries.placed(&ack.placed);
        } else {
            let error = format!("a batch of {} rows is acked as {rows}; they are stored", flight.rows);
            self.deliveries.failed(flight.rows, &FlightError::protocol(error));
        }
    }

    /// A stream ended with an error; `sent` batches were on their way, and have `left` this process if it was sure to have begun.
    fn judge(&mut self, sent: usize, left: bool, error: FlightError) {
        match error.kind() {
            FlightErrorKind::Retry | FlightErrorKind::Unknown | FlightErrorKind::Protocol => {
                self.again(sent, left, error);
            }
            // Only writers that are fenced by their like are in somebody's way.
            FlightErrorKind::Conflict if self.sequence.is_none() => self.again(sent, left, error),
            FlightErrorKind::Conflict => self.fail(&error),
            FlightErrorKind::Refused
            | FlightErrorKind::NotFound
            | FlightErrorKind::Exists
            | FlightErrorKind::OutOfRange
            | FlightErrorKind::Damaged => self.refuse(&error),
        }
    }

    /// The partition was dropped with all that was stored in it, and another has its values: there the writer begins with 0, and what has
    /// not ended goes there.
    fn begin_anew(&mut self, partition: u64) {
        self.link.count_anew(partition);
        self.sequence = self.sequence.map(|_| Sequence(0));
        for flight in &mut self.queue {
            (flight.sequence, flight.unknown) = (None, false);
        }
    }

    /// What was on its way is sent again, after a while.
    fn again(&mut self, sent: usize, left: bool, error: FlightError) {
        tracing::debug!(%error, sent, "batches are sent again");
        if left {
            self.queue.iter_mut().take(sent).for_each(|flight| flight.unknown = true);
        }
        self.at_home = !left && !self.at_home;
        self.later(error);
    }

    fn later(&mut self, error: FlightError) {
        self.retry_at = Some(Instant::now() + self.backoff.next());
        self.last_error = Some(error);
    }

    /// The first batch is refused: nothing of it was stored by this attempt, nor of those behind it.
    fn refuse(&mut self, error: &FlightError) {
        let Some(first) = self.queue.pop_front() else { return };
        if !first.unknown {
            self.deliveries.failed(first.rows, error);
            self.pass_over(&first);
            return;
        }
        let unsure = maybe_stored(error);
        self.deliveries.failed(first.rows, &unsure);
        if self.sequence.is_some() {
            self.fail(&unsure);
        }
    }

    /// A batch that is surely not stored leaves its sequences to those behind it, of which none is then stored either.
    fn pass_over(&mut self, passed: &Flight) {
        if let Some(sequence) = passed.sequence {
            self.sequence = Some(sequence);
            self.queue.iter_mut().for_each(|flight| flight.sequence = None);
        }
    }

    /// Ends what is too old.
    fn give_up(&mut self) {
        let now = Instant::now();
        if self.queue.front().is_none_or(|first| first.deadline > now) {
            return;
        }
        // Acks are told by their place on the stream: without its first batch it is of no use.
        if let Some(stream) = self.stream.take().filter(PutStream::has_begun) {
            self.queue.iter_mut().take(stream.sent).for_each(|flight| flight.unknown = true);
        }
        let why = self.last_error.as_ref().map_or("no answer", FlightError::message).to_owned();
        while let Some(first) = self.queue.pop_front_if(|first| first.deadline <= now) {
            let timeout = self.pace.delivery_timeout;
            if !first.unknown {
                let late = format!("not sent within {timeout:?}; the last attempt said: {why}");
                let error = first.dead.clone().unwrap_or_else(|| FlightError::refused(late));
                self.deliveries.failed(first.rows, &error);
                self.pass_over(&first);
                continue;
            }
            let error = FlightError::new(
                FlightErrorKind::Unknown,
                format!("not acked within {timeout:?}, it may be stored; the last attempt said: {why}"),
            );
            self.deliveries.failed(first.rows, &error);
            if self.sequence.is_some() {
                self.fail(&error);
            }
        }
    }

    /// Nothing more can be written under this identity: what waits ends, and so does what comes.
    fn fail(&mut self, error: &FlightError) {
        let ended = ended_before(error);
        for flight in std::mem::take(&mut self.queue) {
            match (flight.unknown, error.kind()) {
                (true, _) => self.deliveries.failed(flight.rows, &maybe_stored(error)),
                (false, FlightErrorKind::Conflict) => self.deliveries.failed(flight.rows, error),
                (false, _) => self.deliveries.failed(flight.rows, &ended),
            }
        }
        if let Some(collected) = self.collected.take() {
            self.deliveries.failed(collected.rows, &ended);
        }
        self.stream = None;
        self.failed = Some(ended);
    }
}

fn maybe_stored(error: &FlightError) -> FlightError {
    let text = format!("an earlier attempt may have stored the rows; the last one said: {error}");
    FlightError::new(FlightErrorKind::Unknown, text)
}

fn ended_before(error: &FlightError) -> FlightError {
    FlightError::refused(format!(
        "the rows were not stored, for the writer had ended; resume it, or open another. It ended because: {error}"
    ))
}

/// Where the rows of a batch lie.
struct Ack {
    placed: Vec<Placed>,
    /// Of earlier attempts, of which the server knows only that they are stored.
    repeated_rows: u64,
}

/// The ack of the batch with this number.
fn read_ack(result: &PutResult, number: u64) -> Result<Ack, FlightError> {
    let ack: PutAck = mink_proto::decode("PutAck", &result.app_metadata)?;
    if ack.batch != number {
        return Err(FlightError::protocol(format_args!("batch {} is acked, not {number}", ack.batch)));
    }
    Ok(Ack { placed: ack.placed.iter().map(Placed::from).collect(), repeated_rows: ack.repeated_rows })
}

/// The next word of the server; never, without a stream.
async fn acked(stream: Option<&mut PutStream>) -> Option<Result<PutResult, Status>> {
    match stream {
        Some(stream) => stream.ack().await,
        None => std::future::pending().await,
    }
}

/// Until this moment; for ever, without one.
async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
