//! Runs a scan: one bucket after the other, or all side by side when it follows.
//!
//! Lives on: the service runtime; a task for each call, which ends with its answers' stream.
//! Invariants: I2: rows come in the order of their offsets within a bucket, none left out and none twice; I3: only what the source
//! gives, which is acked; I20: what was read and not yet taken is paid for.
use crate::node::Node;
use crate::rows::{Cut, Sent};
use crate::scan::{From, Plan};
use crate::status::OrStatus;
use arrow_flight::FlightData;
use futures::stream::Stream;
use mink_record::kafka::batches;
use mink_router::{BytePermit, Position, Read, ReadAnswer, WatchedOffset};
use mink_rt::Task;
use mink_types::{BucketId, Offset};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::sync::mpsc;
use tonic::Status;

/// Bytes that a scan asks a bucket for at once: so many scans have room side by side, and each asks for no less and no more.
const SIDE_BY_SIDE: u64 = 64;
const READ_BYTES_MIN: u64 = 64 << 10;
const READ_BYTES_MAX: u64 = 1 << 20;

/// Messages that wait for the client; each is about what one batch holds.
const MESSAGES_MAX: usize = 8;

/// A client that takes nothing for so long must go, if others wait for what its scan holds.
const STALLED_AFTER: Duration = Duration::from_secs(1);

/// What a call sends. Dropped, it ends the scan.
pub(crate) struct Messages {
    items: mpsc::Receiver<Item>,
    /// Why the scan was cut off, if it was.
    cut: Arc<OnceLock<Status>>,
    task: Task,
}

/// What the scan says: its task always ends with an `End`, unless it is cut off.
enum Item {
    Data(Paid),
    End(Result<(), Status>),
}

/// A message, and what its bytes have paid.
struct Paid {
    data: FlightData,
    permit: BytePermit,
}

impl Stream for Messages {
    type Item = Result<FlightData, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Messages { items, cut, .. } = &mut *self;
        Poll::Ready(match ready!(items.poll_recv(cx)) {
            Some(Item::Data(Paid { data, permit })) => {
                // The connection's own window bounds what is sent from here on.
                drop(permit);
                Some(Ok(data))
            }
            Some(Item::End(end)) => end.err().map(Err),
            None => {
                let cut_off = || {
                    Status::internal("the scan was cut off; go on behind the last row, see the node's log")
                };
                Some(Err(cut.get().cloned().unwrap_or_else(cut_off)))
            }
        })
    }
}

impl Drop for Messages {
    fn drop(&mut self) {
        self.task.cancel();
    }
}

/// Starts a scan.
pub(crate) fn start(node: &Arc<Node>, plan: Plan) -> Messages {
    let (sender, items) = mpsc::channel(MESSAGES_MAX);
    let cut = Arc::default();
    let left = plan.limit.unwrap_or(u64::MAX);
    let scan = Scan { node: Arc::clone(node), left, plan, sender, cut: Arc::clone(&cut) };
    Messages { items, cut, task: node.service.spawn("flight-scan", scan.run()) }
}

struct Scan {
    node: Arc<Node>,
    plan: Plan,
    /// Rows that may still be sent.
    left: u64,
    sender: mpsc::Sender<Item>,
    cut: Arc<OnceLock<Status>>,
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

/// The client is gone, or has been told an error: the scan ends.
struct Ended;

impl Scan {
    async fn run(mut self) {
        let end = match self.scan().await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(Ended)) => return,
            Err(status) => Err(status),
        };
        // A client that is gone needs no end.
        drop(self.sender.send(Item::End(end)).await);
    }

    async fn scan(&mut self) -> Result<Result<(), Ended>, Status> {
        let schema = crate::rows::schema_message(&self.plan.schema());
        if let Err(ended) = self.send(schema, BytePermit::default()).await {
            return Ok(Err(ended));
        }
        let mut places = Vec::with_capacity(self.plan.buckets.len());
        for bucket in self.plan.buckets.clone() {
            places.push(self.place(bucket).await?);
        }
        if !self.plan.follow {
            for place in &mut places {
                while self.left > 0 && place.until.is_none_or(|until| place.next < until) {
                    match self.read(place).await? {
                        Ok(true) => {}
                        Ok(false) => break,
                        Err(ended) => return Ok(Err(ended)),
                    }
                }
            }
            return Ok(Ok(()));
        }
        let node = Arc::clone(&self.node);
        let mut stopped = std::pin::pin!(node.stopped());
        while self.left > 0 {
            let mut found = false;
            for place in &mut places {
                if self.left == 0 {
                    break;
                }
                match self.read(place).await? {
                    Ok(more) => found |= more,
                    Err(ended) => return Ok(Err(ended)),
                }
            }
            if !found {
                let watched =
                    places.iter().map(|place| WatchedOffset { bucket: place.bucket, seen: place.seen });
                tokio::select! {
                    () = self.node.source.watch(watched.collect()) => {}
                    () = self.sender.closed() => return Ok(Err(Ended)),
                    () = &mut stopped => {
                        return Err(Status::unavailable("this node stops; go on behind the last row at another or later"));
                    }
                }
            }
        }
        Ok(Ok(()))
    }

    /// Where to begin and end in a bucket.
    async fn place(&self, bucket: BucketId) -> Result<Place, Status> {
        let locate = |position| self.node.source.locate(bucket, position, None);
        let latest = || async {
            Ok::<_, Status>(locate(Position::Latest).await.or_status()?.offset.unwrap_or_default())
        };
        let end = latest().await?;
        let next = match self.plan.from {
            From::Offset(offset) => offset,
            From::Latest => end,
            From::Earliest => locate(Position::Earliest).await.or_status()?.offset.unwrap_or_default(),
            From::Time(time) => locate(Position::at_or_after(time)).await.or_status()?.offset.unwrap_or(end),
        };
        let until =
            if self.plan.follow { None } else { Some(self.plan.until.map_or(end, |until| until.min(end))) };
        // A place beyond the end, or below the start, is the source's to refuse: it knows both.
        let until = if matches!(self.plan.from, From::Offset(_)) && next > end { None } else { until };
        Ok(Place { bucket, next, until, seen: end })
    }

    /// Reads on in one bucket; tells whether there was anything.
    async fn read(&mut self, place: &mut Place) -> Result<Result<bool, Ended>, Status> {
        let bytes = self.node.config.answer_permits.total_bytes() / SIDE_BY_SIDE;
        let bytes = bytes.clamp(READ_BYTES_MIN, READ_BYTES_MAX);
        let bytes_max = u32::try_from(bytes).unwrap_or(u32::MAX);
        let Ok(mut permit) = self.room(bytes).await else { return Ok(Err(Ended)) };
        let read = Read { bucket: place.bucket, from: place.next, bytes_max, leader_epoch: None };
        let answer = self.node.source.read(vec![read], bytes_max).await.pop();
        let ReadAnswer { batches: pieces, high_watermark, .. } =
            answer.ok_or_else(|| Status::internal("a read without an answer"))?.or_status()?;
        place.seen = high_watermark;
        let found = !pieces.is_empty();
        for piece in pieces {
            for batch in batches(piece) {
                let (header, batch) = batch.or_status()?;
                let cut = Cut { from: place.next, until: place.until, rows: self.left };
                let sent = self.plan.columns.message(&self.node, &place.bucket, header, batch, cut).await?;
                let Sent { data, rows, next } = sent;
                place.next = next;
                self.left = self.left.saturating_sub(rows);
                if let Some(data) = data {
                    let bytes = (data.data_header.len() + data.data_body.len()) as u64;
                    if self.send(data, permit.split(bytes)).await.is_err() {
                        return Ok(Err(Ended));
                    }
                }
                if self.left == 0 || place.until.is_some_and(|until| place.next >= until) {
                    return Ok(Ok(true));
                }
            }
        }
        Ok(Ok(found))
    }

    /// Waits for room for what is read next. A client that leaves what it was sent lying meanwhile must go.
    async fn room(&self, bytes: u64) -> Result<BytePermit, Ended> {
        let mut taking = std::pin::pin!(self.node.config.answer_permits.take(bytes));
        let mut lying = self.lying();
        loop {
            match tokio::time::timeout(STALLED_AFTER, &mut taking).await {
                Ok(permit) => return Ok(permit),
                Err(_) if lying > 0 && self.lying() >= lying => return Err(self.cut_off()),
                Err(_) => lying = self.lying(),
            }
        }
    }

    /// Messages that the client has not taken.
    fn lying(&self) -> usize {
        self.sender.max_capacity() - self.sender.capacity()
    }

    fn cut_off(&self) -> Ended {
        drop(self.cut.set(Status::resource_exhausted(
            "the client took nothing for a second while others waited for memory; go on behind the last row",
        )));
        Ended
    }

    /// Gives a message on. While others wait for what it has paid, a client has a second to take something.
    async fn send(&self, data: FlightData, permit: BytePermit) -> Result<(), Ended> {
        loop {
            match tokio::time::timeout(STALLED_AFTER, self.sender.reserve()).await {
                Ok(Ok(place)) => {
                    place.send(Item::Data(Paid { data, permit }));
                    return Ok(());
                }
                Ok(Err(_)) => return Err(Ended),
                Err(_) if self.node.config.answer_permits.is_short() => return Err(self.cut_off()),
                Err(_) => {}
            }
        }
    }
}
