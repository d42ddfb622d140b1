//! Runs a scan: one bucket after the other, or all side by side when it follows.
//!
//! Lives on: the service runtime; a task for each call, which ends once the connection has written all that it was given.
//! Invariants: I2: rows come in the order of their offsets within a bucket, none left out and none twice; I3: only what the source
//! gives, which is acked; I20: what was read and not yet written is paid for. Nothing is read ahead of a client while memory is scarce, and
//! while others wait for it, a client that takes too little of what it was sent is cut off, with a reason; if it then takes nothing of
//! what its connection has, that goes too. A node that stops waits for such a client no longer than others would.
mod follow;

use crate::counters::Closed;
use crate::line::Line;
use crate::node::Node;
use crate::outbox::Outbox;
use crate::rows::{Cut, Sent};
use crate::scan::{From, Plan};
use crate::status::{OrStatus, of_bucket};
use arrow_flight::FlightData;
use futures::stream::Stream;
use mink_record::kafka::batches;
use mink_router::{BytePermit, Position, Read, ReadAnswer};
use mink_rt::Task;
use mink_types::{BucketId, Offset};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Instant;
use tonic::Status;

/// Permits are given in steps of so many bytes.
const PERMIT_BYTES: u64 = 1 << 10;

/// Messages that wait for the client; each is about what one batch holds.
const MESSAGES_MAX: usize = 8;

/// How often it is looked at whether a client takes what others wait for.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How long a connection may write nothing of a scan that is over or cut off, while others wait for the little that it holds.
const CONNECTION_PATIENCE: Duration = Duration::from_secs(15);
/// The same once the node stops.
const STOPPING_PATIENCE: Duration = Duration::from_secs(1);

/// What a call sends. Dropped, it ends the scan.
pub(crate) struct Messages {
    outbox: Outbox,
    watched: Watched,
    task: Task,
}

impl Messages {
    /// Where the bytes lie: the body of the answer takes them from there.
    pub(crate) fn outbox(&self) -> Outbox {
        self.outbox.clone()
    }
}

impl Stream for Messages {
    type Item = Result<FlightData, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.outbox.poll_message(cx)
    }
}

impl Drop for Messages {
    fn drop(&mut self) {
        if self.outbox.has_ended() {
            // The task looks after what the connection still has.
            return;
        }
        self.task.cancel();
        if !self.outbox.is_taken() {
            let watched = self.watched.clone();
            drop(self.watched.node.service.spawn("flight-drain", async move { watched.drain().await }));
        }
    }
}

/// Starts a scan for a call of a connection.
pub(crate) fn start(node: &Arc<Node>, plan: Plan, line: Line) -> Messages {
    let outbox = Outbox::new(node.answers.total_bytes());
    let watched = Watched { node: Arc::clone(node), outbox: outbox.clone(), line };
    let left = plan.limit.unwrap_or(u64::MAX);
    let scan = Scan { left, plan, watched: watched.clone() };
    Messages { outbox, watched, task: node.service.spawn("flight-scan", scan.run()) }
}

/// The bytes of a scan, and whose they keep waiting.
#[derive(Clone)]
struct Watched {
    node: Arc<Node>,
    outbox: Outbox,
    line: Line,
}

struct Scan {
    plan: Plan,
    /// Rows that may still be sent.
    left: u64,
    watched: Watched,
}

/// One bucket, and how far it has been read.
#[derive(Clone, Copy)]
struct Place {
    bucket: BucketId,
    next: Offset,
    /// Where it ends; none if it has no end.
    until: Option<Offset>,
    /// What readers could see when it was last looked at.
    seen: Offset,
}

/// What one read has taken, and what its messages owe of it: permits are of whole units, messages may be far smaller.
struct Paid {
    permit: BytePermit,
    owed: u64,
}

impl Paid {
    /// The whole units that are owed.
    fn part(&mut self) -> BytePermit {
        let part = self.permit.split(self.owed / PERMIT_BYTES * PERMIT_BYTES);
        self.owed %= PERMIT_BYTES;
        part
    }
}

/// The client was told an error, or will be: the scan ends.
#[derive(Debug)]
struct Ended;

impl Drop for Scan {
    /// A scan that panicked or was stopped with its runtime has not said how it ended.
    fn drop(&mut self) {
        self.watched.outbox.end(Err(Status::internal(
            "the scan was cut off; go on behind the last row, see the node's log",
        )));
    }
}

impl Scan {
    async fn run(mut self) {
        let end = match self.scan().await {
            // Whoever is cut off is told so by its outbox.
            Ok(Ok(()) | Err(Ended)) => Ok(()),
            Err(status) => Err(status),
        };
        self.watched.outbox.end(end);
        self.watched.drain().await;
    }

    async fn scan(&mut self) -> Result<Result<(), Ended>, Status> {
        let schema = crate::rows::schema_message(&self.plan.schema());
        self.watched.outbox.push(schema, BytePermit::default());
        let mut places = Vec::with_capacity(self.plan.buckets.len());
        for bucket in self.plan.buckets.clone() {
            places.push(self.place(bucket, self.plan.from).await?);
        }
        if self.plan.follow {
            return self.follow(places).await;
        }
        for place in &mut places {
            while self.left > 0 && place.until.is_none_or(|until| place.next < until) {
                match self.read(place).await? {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(ended) => return Ok(Err(ended)),
                }
            }
        }
        Ok(Ok(()))
    }

    /// Where to begin and end in a bucket.
    async fn place(&self, bucket: BucketId, from: From) -> Result<Place, Status> {
        self.locate(bucket, from).await.map_err(|status| of_bucket(&self.plan.table, &bucket, status))
    }

    async fn locate(&self, bucket: BucketId, from: From) -> Result<Place, Status> {
        let locate = |position| self.watched.node.source.locate(bucket, position, None);
        let latest = || async {
            Ok::<_, Status>(locate(Position::Latest).await.or_status()?.offset.unwrap_or_default())
        };
        let end = latest().await?;
        let next = match from {
            From::Offset(offset) => offset,
            From::Latest => end,
            From::Earliest => locate(Position::Earliest).await.or_status()?.offset.unwrap_or_default(),
            From::Time(time) => locate(Position::at_or_after(time)).await.or_status()?.offset.unwrap_or(end),
        };
        let until =
            if self.plan.follow { None } else { Some(self.plan.until.map_or(end, |until| until.min(end))) };
        // A place beyond the end, or below the start, is the source's to refuse: it knows both.
        let until = if matches!(from, From::Offset(_)) && next > end { None } else { until };
        Ok(Place { bucket, next, until, seen: end })
    }

    /// Reads on in one bucket; tells whether there was anything.
    async fn read(&mut self, place: &mut Place) -> Result<Result<bool, Ended>, Status> {
        self.read_on(place).await.map_err(|status| of_bucket(&self.plan.table, &place.bucket, status))
    }

    async fn read_on(&mut self, place: &mut Place) -> Result<Result<bool, Ended>, Status> {
        let node = Arc::clone(&self.watched.node);
        let bytes = node.answers.read_bytes();
        let bytes_max = u32::try_from(bytes).unwrap_or(u32::MAX);
        let Ok(permit) = self.watched.room(bytes).await else { return Ok(Err(Ended)) };
        let mut paid = Paid { permit, owed: 0 };
        let read = Read { bucket: place.bucket, from: place.next, bytes_max, leader_epoch: None };
        let reading = node.source.read(vec![read], bytes_max);
        let Ok(mut answer) = self.watched.during(reading, 0).await else { return Ok(Err(Ended)) };
        let ReadAnswer { batches: pieces, high_watermark, .. } =
            answer.pop().ok_or_else(|| Status::internal("a read without an answer"))?.or_status()?;
        place.seen = high_watermark;
        let found = !pieces.is_empty();
        for piece in pieces {
            for batch in batches(piece) {
                let (header, batch) = batch.or_status()?;
                loop {
                    let cut = Cut { from: place.next, until: place.until, rows: self.left };
                    let columns = &mut self.plan.columns;
                    let sent = columns.message(&node, &place.bucket, header, batch.clone(), cut).await?;
                    let Sent { data, rows, next, more } = sent;
                    place.next = next;
                    self.left = self.left.saturating_sub(rows);
                    if let Some(data) = data
                        && self.watched.send(data, &mut paid).await.is_err()
                    {
                        return Ok(Err(Ended));
                    }
                    if self.left == 0 || place.until.is_some_and(|until| place.next >= until) {
                        return Ok(Ok(true));
                    }
                    if !more {
                        break;
                    }
                }
            }
        }
        Ok(Ok(found))
    }
}

impl Watched {
    /// Waits for room for what is read next: ahead of the client only where memory is plentiful.
    async fn room(&self, bytes: u64) -> Result<BytePermit, Ended> {
        loop {
            if self.outbox.is_hungry() {
                return self.during(self.node.answers.take(bytes), 1).await;
            }
            if self.node.answers.is_plenty()
                && self.outbox.messages() < MESSAGES_MAX
                && let Some(permit) = self.node.answers.try_take(bytes)
            {
                return Ok(permit);
            }
            self.during(self.outbox.changed(), 0).await?;
        }
    }

    /// Gives a message on, once it has paid: of what was taken for the read, and more if that does not do.
    async fn send(&self, data: FlightData, paid: &mut Paid) -> Result<(), Ended> {
        while self.outbox.messages() >= MESSAGES_MAX {
            self.during(self.outbox.changed(), 0).await?;
        }
        paid.owed += (data.data_header.len() + data.app_metadata.len() + data.data_body.len()) as u64;
        let missing = paid.owed.saturating_sub(paid.permit.bytes());
        if missing > 0 {
            if let Some(more) = self.node.answers.try_take(missing) {
                paid.permit.join(more);
            } else {
                // Who waits holds nothing: two that hold a part each would wait for each other.
                paid.permit = BytePermit::default();
                while !self.outbox.is_hungry() {
                    self.during(self.outbox.changed(), 0).await?;
                }
                // Enough for the small ones behind it, too: each would wait for its own turn.
                let bytes = paid.owed.max(self.node.answers.read_bytes());
                paid.permit = self.during(self.node.answers.take(bytes), 1).await?;
            }
        }
        self.outbox.push(data, paid.part());
        Ok(())
    }

    /// Waits for `event`. Meanwhile a client that does not take what others wait for, beside `own` waiters of its own, is cut off.
    async fn during<T>(&self, event: impl Future<Output = T>, own: usize) -> Result<T, Ended> {
        let mut event = std::pin::pin!(event);
        loop {
            if let Ok(done) = tokio::time::timeout(LOOK_EVERY, &mut event).await {
                return Ok(done);
            }
            let is_wanted = self.node.answers.is_wanted(own) || self.node.stops();
            if is_wanted && self.outbox.stalls(Instant::now()) && self.cut_off() {
                return Err(Ended);
            }
        }
    }

    /// Waits until the connection has written what it was given. A connection that writes nothing, while others wait, goes with all its calls.
    async fn drain(&self) {
        let mut wanted_since = None;
        while !self.outbox.is_taken() {
            let moved = tokio::time::timeout(LOOK_EVERY, self.outbox.changed()).await.is_ok();
            if moved || !(self.node.answers.is_wanted(0) || self.node.stops()) {
                wanted_since = None;
                continue;
            }
            let now = Instant::now();
            if self.outbox.stalls(now) {
                self.cut_off();
            }
            let patience = if self.node.stops() { STOPPING_PATIENCE } else { CONNECTION_PATIENCE };
            if now >= *wanted_since.get_or_insert(now) + patience {
                if self.line.cut() {
                    self.node.counters.closed(Closed::WriteDeadline);
                    tracing::debug!("a connection of Flight took nothing while others waited for it");
                }
                return;
            }
        }
    }

    /// Gives back what lies there; the connection keeps a piece or two. False if that is all there was.
    fn cut_off(&self) -> bool {
        let why = if self.node.stops() {
            stopping()
        } else {
            Status::resource_exhausted(
                "the client took too little while others waited for memory; go on behind the last row",
            )
        };
        let is_news = self.outbox.cut_off(why);
        if is_news {
            self.node.counters.cut_off();
        }
        is_news
    }
}

/// What a scan is told that the node does not finish.
fn stopping() -> Status {
    Status::unavailable("this node stops; go on behind the last row at another or later")
}

#[cfg(test)]
mod tests {
    use super::*;
    use mink_router::BytePermits;

    /// I20: a thousand small messages hold what their bytes take, and not a unit each.
    #[test]
    fn i20_small_messages_pay_together() {
        let memory = BytePermits::new(1 << 20);
        let mut paid = Paid { permit: memory.try_take(64 << 10).expect("room"), owed: 0 };
        let mut parts = Vec::new();
        for _ in 0..1_000 {
            paid.owed += 65;
            assert!(paid.owed <= paid.permit.bytes(), "there is enough for all of them");
            parts.push(paid.part());
        }
        let held: u64 = parts.iter().map(BytePermit::bytes).sum();
        assert_eq!(held, 65_000 / PERMIT_BYTES * PERMIT_BYTES);
        assert_eq!(paid.owed, 65_000 % PERMIT_BYTES);
    }
}
