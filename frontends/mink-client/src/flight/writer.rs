//! Writes rows: told apart by partition and bucket, collected into batches, several on their way at once, sent again until they are acked.
//!
//! Lives on: any tokio runtime; one task for each partition and bucket that is written to.
//! Owns: the bound on rows that have not ended.     Talks to: its lanes.
//! Invariants: rows of one bucket are stored in the order in which they were written; I6, I7, I20 as in the module above.
mod builder;
mod collected;
mod encode;
mod lane;
mod link;
mod past;
mod placed;
mod route;
mod streams;
#[cfg(test)]
mod tests;

pub use builder::WriterBuilder;
pub use placed::{Placed, Receipt, Stored};
pub(super) use streams::Streams;

use super::FlightError;
use arrow_array::RecordBatch;
pub(crate) use encode::bytes_of;
use encode::{Encoding, plain};
use lane::{Lane, Order, Pace};
use link::Link;
use mink_types::{Sequence, TablePath};
use past::{Generation, Member, Past, Standing};
use placed::{Flushed, add, gone};
use route::{Partition, Place, Route};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Batches that an idempotent writer may have on their way: so many a server remembers, to know a repeat.
pub const IN_FLIGHT_IDEMPOTENT_MAX: usize = 5;
/// Batches that any writer may have on their way.
const IN_FLIGHT_MAX: usize = 64;
/// Buckets that rows which may go to any are dealt out to.
const BUCKETS_MAX: u32 = 64;
/// Partitions and buckets that one writer writes to at a time, each by a task of its own. When rows go to more, all tasks end and begin anew.
const LANES_MAX: usize = 4_096;
/// Writes that wait for a lane to look at them.
const ORDERS_MAX: usize = 256;
/// Largest bound on bytes that are not acked.
const UNACKED_BYTES_MAX: usize = 1 << 30;

/// The name of an idempotent writer, by which another process goes on where it stopped.
///
/// ```
/// use mink_client::flight::WriterId;
/// let noted = WriterId(17).to_string();
/// assert_eq!(noted.parse().map(WriterId), Ok(WriterId(17)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct WriterId(pub i64);

impl std::fmt::Display for WriterId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}
/// What all lanes of a writer are made from.
#[derive(Debug)]
struct Setup {
    path: TablePath,
    link: Link,
    pace: Pace,
    encoding: Encoding,
    known: Known,
    /// What is known to be stored is written again, and passed over.
    replays: bool,
}

/// What was stored under the writer's name before it was opened.
#[derive(Debug, Default)]
struct Known {
    /// By number of the partition and bucket: the next row's sequence.
    stored: BTreeMap<(u64, u32), Sequence>,
    /// The numbers of partitions.
    partitions: BTreeMap<Partition, u64>,
    /// The number of the one that is named, of a partitioned table.
    only: Option<u64>,
}

impl Known {
    /// The number of a place's partition; that of a table without partitions is 0.
    fn partition(&self, place: &Place) -> Option<u64> {
        if !place.partition.is_empty() {
            self.partitions.get(&place.partition).copied()
        } else if self.partitions.is_empty() {
            Some(0)
        } else {
            self.only
        }
    }

    /// The sequence of the next row of a place.
    fn next(&self, place: &Place) -> Option<Sequence> {
        self.stored.get(&(self.partition(place)?, place.bucket?)).copied()
    }
}

/// Writes rows to a table. Many tasks may write at once; the rows of one call stay together.
///
/// Dropped without `close`, it still delivers what was written, for as long as the runtime lives.
///
/// ```no_run
/// use mink_client::flight::{FlightClient, FlightError, WriterId};
/// # async fn example(client: FlightClient, all: Vec<arrow_array::RecordBatch>, noted: i64) -> Result<(), FlightError> {
/// // Goes on where a writer stopped that had read the same source: what it has stored is passed over.
/// let writer = client.writer("sales.orders").replay(WriterId(noted)).open().await?;
/// for batch in all {
///     drop(writer.write(batch).await?);
/// }
/// writer.close().await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Writer {
    id: Option<WriterId>,
    setup: Setup,
    room: Arc<Semaphore>,
    room_bytes: usize,
    /// None: rows go where the writer says.
    route: Option<Route>,
    /// Of rows that do not say theirs; none: it is the server's to say.
    buckets: Vec<Option<u32>>,
    lanes: Mutex<Lanes>,
    lanes_max: usize,
    past: Arc<Past>,
}

#[derive(Debug)]
struct Lanes {
    running: BTreeMap<Place, Running>,
    /// All those that run.
    generation: Generation,
    /// Those that ran before: no place has two lanes, so none is started until they have ended.
    ending: Option<Generation>,
    turn: Turn,
}

/// Lanes for the parts of a write, or whose end it has to wait for.
enum Found {
    Lanes(Vec<Target>),
    Ending(Generation, Vec<(Place, RecordBatch)>),
}

#[derive(Debug)]
struct Running {
    orders: mpsc::Sender<Order>,
    task: JoinHandle<()>,
    /// Rows that come again, and are stored.
    to_pass: Arc<AtomicU64>,
}

/// Whose turn it is: a bucket gets a batch's worth before the next one does.
#[derive(Debug)]
struct Turn {
    at: usize,
    bytes: usize,
    since: Instant,
}

/// Rows, and the lane that they go to.
struct Target {
    orders: mpsc::Sender<Order>,
    to_pass: Arc<AtomicU64>,
    batch: RecordBatch,
}

/// Rows, and the place of theirs in a lane's queue.
struct Ready {
    order: mpsc::OwnedPermit<Order>,
    to_pass: Arc<AtomicU64>,
    batch: RecordBatch,
}

impl Writer {
    fn new(
        id: Option<WriterId>,
        setup: Setup,
        room_bytes: usize,
        route: Option<Route>,
        buckets: Vec<Option<u32>>,
    ) -> Writer {
        let turn = Turn { at: 0, bytes: 0, since: Instant::now() };
        let lanes = Lanes { running: BTreeMap::new(), generation: Generation::new(), ending: None, turn };
        Writer {
            id,
            setup,
            room: Arc::new(Semaphore::new(room_bytes)),
            room_bytes,
            route,
            buckets,
            lanes: Mutex::new(lanes),
            lanes_max: LANES_MAX,
            past: Arc::default(),
        }
    }

    /// An idempotent writer's name.
    pub fn id(&self) -> Option<WriterId> {
        self.id
    }

    /// How many rows this writer had stored in a bucket when it was opened, modulo 2^31. A source that can be read again passes over them.
    /// Of a table with partitions it is the one that was named; see [`WriterBuilder::replay`] for rows that go to several.
    pub fn stored_rows(&self, bucket: u32) -> u32 {
        self.stored_at(&Place { partition: Partition::new(), bucket: Some(bucket) })
    }

    fn stored_at(&self, place: &Place) -> u32 {
        self.setup.known.next(place).and_then(|next| u32::try_from(next.0).ok()).unwrap_or(0)
    }

    /// Hands rows over; waits for room. Columns are found by name, whatever their order. What is returned tells where the rows lie, once
    /// they are durable. A call that is given up while it waits has handed nothing over.
    ///
    /// # Errors
    /// `Refused` for rows that cannot be sent; the receipt's: `Refused` and what else is surely not stored, `Unknown` for what may be.
    pub async fn write(&self, batch: RecordBatch) -> Result<Receipt, FlightError> {
        if batch.num_rows() == 0 {
            return Ok(Receipt::empty());
        }
        let batch = plain(batch)?;
        let bytes = bytes_of(&batch);
        let permits = u32::try_from(bytes.min(self.room_bytes)).unwrap_or(u32::MAX);
        let room = Arc::clone(&self.room).acquire_many_owned(permits).await.map_err(|_| gone())?;
        let parts = match &self.route {
            None => vec![(Place::default(), batch)],
            Some(route) => route.parts(&batch)?,
        };
        let mut ready = Vec::with_capacity(parts.len());
        for Target { orders, to_pass, batch } in self.lanes_of(self.dealt_out(parts, bytes)).await? {
            let order = orders.reserve_owned().await;
            let order = order.map_err(|_| FlightError::refused("the writer's task has ended"))?;
            ready.push(Ready { order, to_pass, batch });
        }
        Ok(hand_over(ready, room))
    }

    /// Waits until all that was written has ended: what has been stored since the last flush.
    ///
    /// # Errors
    /// The first error of any row since the last flush.
    pub async fn flush(&self) -> Flushed {
        let (lanes, ending) = {
            let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
            let running: Vec<_> = lanes.running.values().map(|lane| lane.orders.clone()).collect();
            (running, lanes.ending.clone())
        };
        if let Some(ending) = ending {
            ending.ended().await;
        }
        let mut waiting = Vec::with_capacity(lanes.len());
        for lane in lanes {
            let (told, flushed) = oneshot::channel();
            lane.send(Order::Flush(told)).await.map_err(|_| gone())?;
            waiting.push(flushed);
        }
        let (mut stored, mut first_error) = (BTreeMap::new(), None);
        let mut tell = |flushed: Flushed| match flushed {
            Ok(more) => more.into_iter().for_each(|more| add(&mut stored, more)),
            Err(error) => drop(first_error.get_or_insert(error)),
        };
        tell(self.past.flush());
        for flushed in waiting {
            tell(flushed.await.map_err(|_| gone()).flatten());
        }
        first_error.map_or(Ok(stored.into_values().collect()), Err)
    }

    /// As `flush`; then the writer is gone.
    ///
    /// # Errors
    /// Those of `flush`.
    pub async fn close(self) -> Flushed {
        let flushed = self.flush().await;
        let lanes = self.lanes.into_inner().unwrap_or_else(PoisonError::into_inner);
        for Running { orders, task, .. } in lanes.running.into_values() {
            drop(orders);
            task.await.map_err(|_| gone())?;
        }
        flushed
    }

    /// Says the bucket of rows that may go to any: the one whose turn it is.
    fn dealt_out(&self, mut parts: Vec<(Place, RecordBatch)>, bytes: usize) -> Vec<(Place, RecordBatch)> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let in_turn = self.buckets.get(lanes.turn.next(self.setup.pace, bytes, self.buckets.len()));
        let in_turn = in_turn.copied().flatten();
        for (place, _) in &mut parts {
            place.bucket = place.bucket.or(in_turn);
        }
        parts
    }

    /// The lane of each part, started if need be. If that were too many, all that run end first, when what was written to them has.
    async fn lanes_of(&self, mut parts: Vec<(Place, RecordBatch)>) -> Result<Vec<Target>, FlightError> {
        let (places, most) = (parts.len(), self.lanes_max);
        if places > most {
            return Err(FlightError::refused(format!(
                "the rows of one write go to {places} partitions and buckets, and may go to {most}; write fewer at once"
            )));
        }
        loop {
            match self.find(parts) {
                Found::Lanes(lanes) => return Ok(lanes),
                Found::Ending(ending, left) => {
                    ending.ended().await;
                    parts = left;
                }
            }
        }
    }

    fn find(&self, parts: Vec<(Place, RecordBatch)>) -> Found {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let lanes = &mut *lanes;
        lanes.ending = lanes.ending.take().filter(|ending| !ending.has_ended());
        if let Some(ending) = lanes.ending.clone() {
            return Found::Ending(ending, parts);
        }
        let new = parts.iter().filter(|(place, _)| !lanes.running.contains_key(place)).count();
        if lanes.running.len() + new > self.lanes_max {
            // Whoever writes to one of them right now still holds it.
            lanes.running.clear();
            let ending = std::mem::replace(&mut lanes.generation, Generation::new());
            lanes.ending = Some(ending.clone());
            return Found::Ending(ending, parts);
        }
        let mut found = Vec::with_capacity(parts.len());
        for (place, batch) in parts {
            let running = match lanes.running.entry(place) {
                Entry::Occupied(running) => running.into_mut(),
                Entry::Vacant(free) => {
                    let running = self.start(free.key(), lanes.generation.join());
                    free.insert(running)
                }
            };
            let (orders, to_pass) = (running.orders.clone(), Arc::clone(&running.to_pass));
            found.push(Target { orders, to_pass, batch });
        }
        Found::Lanes(found)
    }

    fn start(&self, place: &Place, member: Member) -> Running {
        let Setup { path, link, pace, encoding, .. } = &self.setup;
        let standing = self.past.standing(place).unwrap_or_else(|| self.beginning(place));
        let to_pass = Arc::new(AtomicU64::new(standing.to_pass));
        let (orders, receiver) = mpsc::channel(ORDERS_MAX);
        let link = link.to(path, place, standing.partition);
        let lane = Lane::new(link, *pace, *encoding, receiver, standing);
        let (past, place, left_to_pass) = (Arc::clone(&self.past), place.clone(), Arc::clone(&to_pass));
        let task = async move {
            let (standing, untold) = lane.run().await;
            let to_pass = left_to_pass.load(Ordering::Relaxed);
            past.note(place, Standing { to_pass, ..standing }, untold);
            drop(member);
        };
        Running { orders, task: tokio::spawn(task), to_pass }
    }

    /// Where the first lane of a place begins.
    fn beginning(&self, place: &Place) -> Standing {
        // A writer that starts at a bucket begins with 0 there.
        let sequence = self.id.map(|_| self.setup.known.next(place).unwrap_or(Sequence(0)));
        let to_pass = if self.setup.replays { self.stored_at(place).into() } else { 0 };
        let partition = self.setup.known.partition(place).unwrap_or(0);
        Standing { sequence, partition, failed: None, to_pass }
    }
}

impl Turn {
    /// Whose turn it is now, of so many.
    fn next(&mut self, pace: Pace, bytes: usize, of: usize) -> usize {
        let over = self.bytes >= pace.batch_bytes || self.since.elapsed() >= pace.linger;
        if over && self.bytes > 0 {
            *self = Turn { at: (self.at + 1) % of.max(1), bytes: 0, since: Instant::now() };
        }
        self.bytes = self.bytes.saturating_add(bytes);
        self.at
    }
}

/// Gives each part to its lane. Nothing waits here: all rows of a call are handed over, or none.
fn hand_over(ready: Vec<Ready>, room: OwnedSemaphorePermit) -> Receipt {
    let (told, receipt) = Receipt::new(ready.len());
    let room = Arc::new(room);
    for (Ready { order, to_pass, batch }, told) in ready.into_iter().zip(told) {
        let rows = batch.num_rows() as u64;
        let pass = |left: u64| Some(left - left.min(rows));
        let left = to_pass.fetch_update(Ordering::Relaxed, Ordering::Relaxed, pass).unwrap_or(0);
        let passed = usize::try_from(left.min(rows)).unwrap_or(usize::MAX);
        if passed >= batch.num_rows() {
            // They are stored, and nobody knows where.
            drop(told.send(Ok(Vec::new())));
            continue;
        }
        let batch = batch.slice(passed, batch.num_rows() - passed);
        drop(order.send(Order::Rows { batch, told, room: Arc::clone(&room) }));
    }
    receipt
}
