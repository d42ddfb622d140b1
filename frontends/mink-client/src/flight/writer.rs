//! Writes rows: collected into batches, several on their way at once, sent again until they are acked.
//!
//! Lives on: any tokio runtime; one task for each bucket that is written to.
//! Owns: the bound on rows that have not ended.     Talks to: its lanes.
//! Invariants: rows of one bucket are stored in the order in which they were written; I6, I7, I20 as in the module above.
mod collected;
mod encode;
mod lane;
mod link;
mod placed;
#[cfg(test)]
mod tests;

pub use placed::{Placed, Receipt, Stored};

use super::client::table_path;
use super::{FlightClient, FlightError};
use arrow_array::RecordBatch;
use encode::{Encoding, bytes_of, plain};
use lane::{Lane, Order, Pace};
use link::Link;
use mink_proto::{Append, FindWriter, OpenWriter, PartitionValue, TableDescription, WriterState};
use mink_types::{ArrowCompression, Sequence, TablePath};
use placed::{Flushed, gone};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Batches that an idempotent writer may have on their way: so many a server remembers, to know a repeat.
pub const IN_FLIGHT_IDEMPOTENT_MAX: usize = 5;
/// Batches that any writer may have on their way.
const IN_FLIGHT_MAX: usize = 64;
/// Buckets that one writer writes to, each by a stream of its own.
const BUCKETS_MAX: u32 = 64;
/// Writes that wait for a lane to look at them.
const ORDERS_MAX: usize = 256;
/// Largest bound on bytes that are not acked.
const UNACKED_BYTES_MAX: usize = 1 << 30;
/// A message's part that is not rows, and what the server adds, in bytes and as a part of the whole.
const ENVELOPE_BYTES: usize = 4 << 10;
const ENVELOPE_PART: usize = 8;

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

#[derive(Clone, Copy, Debug)]
enum Identity {
    None,
    New,
    Resumed(WriterId),
}

/// A writer that is being set up. What is not said: any bucket, not idempotent, a linger of 5 ms, batches of 1 MiB, 5 of them on their way,
/// 64 MiB that are not acked, two minutes for a delivery.
///
/// ```no_run
/// use std::time::Duration;
/// # async fn example(client: mink_client::flight::FlightClient) -> Result<(), mink_client::flight::FlightError> {
/// let writer = client.writer("sales.orders").bucket(2).idempotent().linger(Duration::from_millis(20)).open().await?;
/// println!("resume me as {:?}", writer.id());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing is opened before `open`"]
pub struct WriterBuilder {
    client: FlightClient,
    table: String,
    bucket: Option<u32>,
    partition: Vec<PartitionValue>,
    identity: Identity,
    pace: Pace,
    in_flight: usize,
    unacked_bytes: usize,
}

impl WriterBuilder {
    pub(super) fn new(client: FlightClient, table: &str) -> WriterBuilder {
        WriterBuilder {
            client,
            table: table.into(),
            bucket: None,
            partition: Vec::new(),
            identity: Identity::None,
            pace: Pace {
                linger: Duration::from_millis(5),
                batch_bytes: 1 << 20,
                delivery_timeout: Duration::from_mins(2),
            },
            in_flight: IN_FLIGHT_IDEMPOTENT_MAX,
            unacked_bytes: 64 << 20,
        }
    }

    /// All rows go to this bucket. Without it a writer fills the table's buckets in turn, a batch each.
    pub fn bucket(mut self, bucket: u32) -> WriterBuilder {
        self.bucket = Some(bucket);
        self
    }

    /// All rows go to the partition with this value of this column; one call for each column that the table is partitioned by.
    pub fn partition(mut self, column: &str, value: &str) -> WriterBuilder {
        self.partition.push(PartitionValue { column: column.into(), value: value.into() });
        self
    }

    /// Each batch is stored once, whatever is sent again. Without it a batch whose ack is lost is sent again all the same, and may be
    /// stored twice.
    pub fn idempotent(mut self) -> WriterBuilder {
        self.identity = Identity::New;
        self
    }

    /// As `idempotent`, going on behind the last row that this writer has stored. The writer that had the id before must be gone: of two at
    /// once, each has its batches taken for repeats of the other's.
    pub fn resume(mut self, id: WriterId) -> WriterBuilder {
        self.identity = Identity::Resumed(id);
        self
    }

    /// How long rows may wait for others to travel with them.
    pub fn linger(mut self, linger: Duration) -> WriterBuilder {
        self.pace.linger = linger;
        self
    }

    /// From how many bytes on rows travel at once.
    pub fn batch_bytes(mut self, bytes: usize) -> WriterBuilder {
        self.pace.batch_bytes = bytes;
        self
    }

    /// How many batches may be on their way to a bucket at once: 1 to 64, of an idempotent writer 1 to 5.
    pub fn in_flight(mut self, batches: usize) -> WriterBuilder {
        self.in_flight = batches;
        self
    }

    /// How many bytes of rows may wait for their acks; `write` waits for room. Rows that are more by themselves go alone.
    pub fn unacked_bytes(mut self, bytes: usize) -> WriterBuilder {
        self.unacked_bytes = bytes;
        self
    }

    /// How long rows are sent again before they are given up: as `Unknown` if they were sent, else as `Refused`.
    pub fn delivery_timeout(mut self, timeout: Duration) -> WriterBuilder {
        self.pace.delivery_timeout = timeout;
        self
    }

    /// Opens the writer.
    ///
    /// # Errors
    /// `NotFound` for a table that does not exist; `Refused` for what cannot be had; those of the connection.
    pub async fn open(self) -> Result<Writer, FlightError> {
        let path = table_path(&self.table)?;
        self.check()?;
        let description = self.client.describe(&self.table).await?;
        let (identity, stored) = self.identify(&path, &description).await?;
        let append = Append {
            database: path.database.to_string(),
            table: path.table.to_string(),
            bucket: None,
            partition: self.partition.clone(),
            writer: identity,
        };
        let setup = Setup {
            link: Link { client: self.client.clone(), append, in_flight: self.in_flight },
            pace: self.pace,
            encoding: encoding(&description),
            stored,
        };
        let buckets = self.buckets(&description, identity.map(|writer| writer.id));
        let room = self.unacked_bytes.clamp(1, UNACKED_BYTES_MAX);
        let turn = Turn { at: 0, bytes: 0, since: Instant::now() };
        Ok(Writer {
            id: identity.map(|writer| WriterId(writer.id)),
            setup,
            room: Arc::new(Semaphore::new(room)),
            room_bytes: room,
            buckets,
            lanes: Mutex::new(Lanes { running: BTreeMap::new(), turn }),
        })
    }

    fn check(&self) -> Result<(), FlightError> {
        let most = match self.identity {
            Identity::None => IN_FLIGHT_MAX,
            Identity::New | Identity::Resumed(_) => IN_FLIGHT_IDEMPOTENT_MAX,
        };
        if !(1..=most).contains(&self.in_flight) {
            let asked = self.in_flight;
            return Err(FlightError::refused(format!(
                "in_flight is {asked}; such a writer takes 1 to {most}"
            )));
        }
        Ok(())
    }

    /// The buckets that are written to in turn; none: it is the server's to say.
    fn buckets(&self, table: &TableDescription, id: Option<i64>) -> Vec<Option<u32>> {
        let keyed =
            !table.bucket_key.is_empty() || (!table.partitioned_by.is_empty() && self.partition.is_empty());
        if self.bucket.is_some() || (keyed && table.buckets > 1) || table.buckets == 0 {
            return vec![self.bucket];
        }
        // Writers of a wide table begin at different places.
        let seed = id.and_then(|id| u64::try_from(id).ok()).unwrap_or_else(random);
        let first = u32::try_from(seed % u64::from(table.buckets)).unwrap_or(0);
        (0..table.buckets.min(BUCKETS_MAX))
            .map(|at| u32::try_from((u64::from(first) + u64::from(at)) % u64::from(table.buckets)).ok())
            .collect()
    }

    /// Who it is, and for each bucket how many rows are stored under that name.
    async fn identify(
        &self,
        path: &TablePath,
        table: &TableDescription,
    ) -> Result<(Option<mink_proto::Writer>, BTreeMap<u32, Sequence>), FlightError> {
        let id = match self.identity {
            Identity::None => return Ok((None, BTreeMap::new())),
            Identity::New => {
                let opened = self.client.action("writer.open", mink_proto::encode(&OpenWriter {})).await?;
                let first = opened.first().ok_or_else(|| FlightError::protocol("no writer in it"))?;
                return Ok((Some(mink_proto::decode("Writer", first)?), BTreeMap::new()));
            }
            Identity::Resumed(id) => id.0,
        };
        if !table.partitioned_by.is_empty() {
            return Err(FlightError::refused(format!(
                "table {path} is partitioned: a writer of it cannot be resumed yet, for its state does not name partitions"
            )));
        }
        let (database, name) = (path.database.to_string(), path.table.to_string());
        let asked = FindWriter { database, table: name, id };
        let (mut epoch, mut stored) = (0, BTreeMap::new());
        for state in self.client.action("writer.state", mink_proto::encode(&asked)).await? {
            let state: WriterState = mink_proto::decode("WriterState", &state)?;
            if state.last_sequence < 0 || state.epoch < 0 {
                return Err(FlightError::protocol("a writer's state below 0"));
            }
            epoch = epoch.max(state.epoch);
            stored.insert(state.bucket, Sequence(state.last_sequence).plus(1));
        }
        Ok((Some(mink_proto::Writer { id, epoch }), stored))
    }
}

/// How the table wants its batches.
fn encoding(table: &TableDescription) -> Encoding {
    let option = |name: &str| {
        table.options.iter().find(|option| option.name == name).map(|option| option.value.as_str())
    };
    let compression = match option("table.log.arrow.compression") {
        Some("zstd") => ArrowCompression::Zstd,
        Some("lz4") => ArrowCompression::Lz4,
        _ => ArrowCompression::None,
    };
    let most: usize = option("max.message.bytes").and_then(|bytes| bytes.parse().ok()).unwrap_or(1 << 20);
    let message_bytes_max = most.saturating_sub(most / ENVELOPE_PART + ENVELOPE_BYTES).max(1);
    Encoding { compression, message_bytes_max }
}

fn random() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::hash::RandomState::new().build_hasher().finish()
}

/// What all lanes of a writer are made from.
#[derive(Debug)]
struct Setup {
    link: Link,
    pace: Pace,
    encoding: Encoding,
    stored: BTreeMap<u32, Sequence>,
}

/// Writes rows to a table. Many tasks may write at once; the rows of one call stay together.
///
/// Dropped without `close`, it still delivers what was written, for as long as the runtime lives.
///
/// ```no_run
/// use mink_client::flight::{FlightClient, FlightError, WriterId};
/// # async fn example(client: FlightClient, all: Vec<arrow_array::RecordBatch>, noted: i64) -> Result<(), FlightError> {
/// // Goes on where a writer stopped that had read the same source.
/// let writer = client.writer("sales.orders").bucket(0).resume(WriterId(noted)).open().await?;
/// let mut stored = writer.stored_rows(0) as usize;
/// for batch in all {
///     let passed = stored.min(batch.num_rows());
///     stored -= passed;
///     writer.write(batch.slice(passed, batch.num_rows() - passed)).await?;
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
    buckets: Vec<Option<u32>>,
    lanes: Mutex<Lanes>,
}

#[derive(Debug)]
struct Lanes {
    /// By their place among the writer's buckets.
    running: BTreeMap<usize, Running>,
    turn: Turn,
}

#[derive(Debug)]
struct Running {
    orders: mpsc::Sender<Order>,
    task: JoinHandle<()>,
}

/// Whose turn it is: a bucket gets a batch's worth before the next one does.
#[derive(Debug)]
struct Turn {
    at: usize,
    bytes: usize,
    since: Instant,
}

impl Writer {
    /// An idempotent writer's name.
    pub fn id(&self) -> Option<WriterId> {
        self.id
    }

    /// How many rows this writer had stored in a bucket when it was opened, modulo 2^31. A source that can be read again passes over them.
    pub fn stored_rows(&self, bucket: u32) -> u32 {
        let stored = self.setup.stored.get(&bucket).map_or(0, |sequence| sequence.0);
        u32::try_from(stored).unwrap_or(0)
    }

    /// Hands rows over; waits for room. Columns are found by name, whatever their order. What is returned tells where the rows lie, once
    /// they are durable.
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
        let lane = self.lane(bytes);
        let (told, receipt) = Receipt::new();
        let order = Order::Rows { batch, told, room };
        lane.send(order).await.map_err(|_| FlightError::refused("the writer's task has ended"))?;
        Ok(receipt)
    }

    /// Waits until all that was written has ended: what has been stored since the last flush.
    ///
    /// # Errors
    /// The first error of any row since the last flush.
    pub async fn flush(&self) -> Flushed {
        let lanes: Vec<_> = {
            let lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
            lanes.running.values().map(|lane| lane.orders.clone()).collect()
        };
        let mut waiting = Vec::with_capacity(lanes.len());
        for lane in lanes {
            let (told, flushed) = oneshot::channel();
            lane.send(Order::Flush(told)).await.map_err(|_| gone())?;
            waiting.push(flushed);
        }
        let (mut stored, mut first_error) = (Vec::new(), None);
        for flushed in waiting {
            match flushed.await.map_err(|_| gone()).flatten() {
                Ok(more) => stored.extend(more),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        stored.sort_by_key(|stored| (stored.partition, stored.bucket));
        first_error.map_or(Ok(stored), Err)
    }

    /// As `flush`; then the writer is gone.
    ///
    /// # Errors
    /// Those of `flush`.
    pub async fn close(self) -> Flushed {
        let flushed = self.flush().await;
        let lanes = self.lanes.into_inner().unwrap_or_else(PoisonError::into_inner);
        for Running { orders, task } in lanes.running.into_values() {
            drop(orders);
            task.await.map_err(|_| gone())?;
        }
        flushed
    }

    /// The lane whose turn it is, started if need be.
    fn lane(&self, bytes: usize) -> mpsc::Sender<Order> {
        let mut lanes = self.lanes.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = &mut lanes.turn;
        let over =
            turn.bytes >= self.setup.pace.batch_bytes || turn.since.elapsed() >= self.setup.pace.linger;
        if over && turn.bytes > 0 {
            *turn = Turn { at: (turn.at + 1) % self.buckets.len().max(1), bytes: 0, since: Instant::now() };
        }
        turn.bytes = turn.bytes.saturating_add(bytes);
        let at = turn.at;
        let running = lanes.running.entry(at).or_insert_with(|| self.start(at));
        running.orders.clone()
    }

    fn start(&self, at: usize) -> Running {
        let Setup { link, pace, encoding, stored } = &self.setup;
        let bucket = self.buckets.get(at).copied().flatten();
        let mut link = link.clone();
        link.append.bucket = bucket;
        // A writer that starts at a bucket begins with 0 there.
        let known = bucket.and_then(|bucket| stored.get(&bucket)).copied();
        let sequence = self.id.map(|_| known.unwrap_or(Sequence(0)));
        let (orders, receiver) = mpsc::channel(ORDERS_MAX);
        let lane = Lane::new(link, *pace, *encoding, receiver, sequence);
        Running { orders, task: tokio::spawn(lane.run()) }
    }
}
