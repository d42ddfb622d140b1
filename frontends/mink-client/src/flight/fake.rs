//! A node in memory for tests: one table with one column, idempotent writers, and faults by script.
//!
//! Lives on: the test's runtime.
//! Invariants: a writer's sequences are judged as a real node judges them; what the script says happens once each, to the next batch.
mod calls;
mod connections;

use crate::flight::FlightClient;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::SchemaRef;
use mink_proto::{PartitionValue, Placed, Scan, Writer};
use mink_types::Sequence;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::{Notify, watch};
use tonic::{Code, Status};

/// What happens to a batch that is put.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// It is taken as usual.
    Take,
    /// All connections break before it is looked at.
    LoseBatch,
    /// It is stored, then all connections break.
    LoseAck,
    /// It is refused with this code and not stored.
    Refuse(Code),
    /// It is stored, and answered with this code.
    StoreAndRefuse(Code),
}

/// A batch of a bucket's log.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) base_offset: u64,
    pub(crate) batch: RecordBatch,
}

/// A batch that a writer has stored.
#[derive(Clone, Copy, Debug)]
struct Seen {
    sequence: Sequence,
    rows: u32,
    base_offset: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Table {
    pub(crate) buckets: u32,
    pub(crate) bucket_key: Vec<String>,
    pub(crate) partitioned_by: Vec<String>,
    /// By the value of the one column; a table without partitions has number 0 alone.
    pub(crate) partitions: BTreeMap<String, u64>,
    partition_ids: u64,
    pub(crate) faults: VecDeque<Fault>,
    /// By partition and bucket.
    pub(crate) logs: BTreeMap<(u64, u32), Vec<Entry>>,
    /// Every batch that was looked at: bucket, sequence, and rows.
    pub(crate) attempts: Vec<(u32, Option<i32>, usize)>,
    /// Streams of DoPut that were opened.
    pub(crate) streams: usize,
    /// Calls of GetFlightInfo.
    pub(crate) infos: usize,
    /// Calls of DoGet and DoExchange.
    pub(crate) scans: usize,
    /// After so many messages with rows all connections break, once each.
    pub(crate) break_scans_after: VecDeque<usize>,
    /// Rows that come to the bucket when such a break happens, once each.
    pub(crate) grows_at_break: VecDeque<std::ops::Range<i64>>,
    /// From this offset on rows have schema 2, which schema 1 cannot hold.
    pub(crate) altered_at: Option<u64>,
    /// What DoGet sends instead of the rows' own bytes.
    pub(crate) damaged_body: Option<Vec<u8>>,
    writers: BTreeMap<(u64, u32, i64), (i32, Vec<Seen>)>,
    writer_ids: i64,
}

/// The node, and the strings by which a test pulls it.
#[derive(Debug)]
pub(crate) struct Fake {
    table: Mutex<Table>,
    /// Acks are held back while it is false.
    pub(crate) acks: watch::Sender<bool>,
    /// Each new number breaks all connections.
    cut: watch::Sender<u64>,
    grown: Notify,
    closing: Notify,
    closed: AtomicBool,
    address: String,
}

impl Fake {
    /// A node that listens, with a table of so many buckets, `sales.orders`.
    pub(crate) async fn start(buckets: u32) -> Arc<Fake> {
        connections::listen(Table { buckets, ..Table::default() }).await
    }

    /// `HOST:PORT`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) async fn client(&self) -> FlightClient {
        FlightClient::connect(&format!("grpc://{}", self.address)).await.expect("the fake listens")
    }

    pub(crate) fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().expect("no test panics with it")
    }

    pub(crate) fn script(&self, faults: impl IntoIterator<Item = Fault>) {
        self.table().faults.extend(faults);
    }

    pub(crate) fn cut_connections(&self) {
        self.cut.send_modify(|cut| *cut += 1);
    }

    /// Nobody listens any more.
    pub(crate) fn close(&self) {
        self.closing.notify_one();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Appends rows without a writer.
    pub(crate) fn append(&self, bucket: u32, values: std::ops::Range<i64>) {
        self.append_to((0, bucket), values);
    }

    /// Appends rows to a bucket of a partition.
    pub(crate) fn append_to(&self, place: (u64, u32), values: std::ops::Range<i64>) {
        self.table().append(place, batch(values));
        self.grown.notify_waiters();
    }

    /// Drops a partition with its rows.
    pub(crate) fn drop_partition(&self, value: &str) {
        let mut table = self.table();
        let id = table.partitions.remove(value).expect("it is there");
        table.logs.retain(|(partition, _), _| *partition != id);
        drop(table);
        self.grown.notify_waiters();
    }

    /// Makes a partition, and gives its id.
    pub(crate) fn make_partition(&self, value: &str) -> u64 {
        let mut table = self.table();
        table.make_partition(value);
        table.partitions[value]
    }

    /// All values of a bucket.
    pub(crate) fn values(&self, bucket: u32) -> Vec<i64> {
        self.values_in(0, bucket)
    }

    /// All values of a bucket of a partition.
    pub(crate) fn values_in(&self, partition: u64, bucket: u32) -> Vec<i64> {
        let table = self.table();
        table
            .logs
            .get(&(partition, bucket))
            .into_iter()
            .flatten()
            .flat_map(|entry| values(&entry.batch))
            .collect()
    }
}

impl Table {
    fn append(&mut self, place: (u64, u32), batch: RecordBatch) -> u64 {
        let log = self.logs.entry(place).or_default();
        let base_offset = log.last().map_or(0, |last| last.base_offset + last.batch.num_rows() as u64);
        log.push(Entry { base_offset, batch });
        base_offset
    }

    /// Appends a batch, or finds it again.
    fn put(
        &mut self,
        (partition, bucket): (u64, u32),
        batch: RecordBatch,
        stamp: Option<(Writer, Sequence)>,
    ) -> Result<Placed, Status> {
        let rows = u32::try_from(batch.num_rows()).expect("tests write few rows");
        let placed = |base_offset| Placed { partition, bucket, base_offset, rows: rows.into() };
        let place = (partition, bucket);
        let Some((writer, sequence)) = stamp else { return Ok(placed(self.append(place, batch))) };
        let of_writer = (partition, bucket, writer.id);
        let (epoch, seen) = self.writers.get(&of_writer).cloned().unwrap_or_default();
        if writer.epoch < epoch {
            return Err(Status::aborted("fenced"));
        }
        if let Some(again) = seen.iter().find(|seen| seen.sequence == sequence && seen.rows == rows) {
            return Ok(placed(again.base_offset));
        }
        let expected = seen.last().map_or(Sequence(0), |last| last.sequence.plus(last.rows));
        if sequence != expected {
            return Err(Status::failed_precondition(format!("sequence {sequence:?}, expected {expected:?}")));
        }
        let base_offset = self.append(place, batch);
        let (known, seen) = self.writers.entry(of_writer).or_default();
        *known = writer.epoch;
        seen.push(Seen { sequence, rows, base_offset });
        if seen.len() > 5 {
            seen.remove(0);
        }
        Ok(placed(base_offset))
    }

    /// Offset behind the last row of a bucket.
    pub(crate) fn end_of(&self, place: (u64, u32)) -> u64 {
        let last = self.logs.get(&place).and_then(|log| log.last());
        last.map_or(0, |last| last.base_offset + last.batch.num_rows() as u64)
    }

    /// As if a younger life of the writer had been here.
    pub(crate) fn fence(&mut self, bucket: u32, id: i64) {
        self.writers.entry((0, bucket, id)).or_default().0 = i32::MAX;
    }

    /// The number of the partition that a call names; a table without partitions has one.
    fn partition_of(&self, named: &[PartitionValue]) -> Result<u64, Status> {
        match named {
            [] => Ok(0),
            [only] => self
                .partitions
                .get(&only.value)
                .copied()
                .ok_or_else(|| Status::not_found("no such partition")),
            _ => Err(Status::invalid_argument("the fake has one column")),
        }
    }

    /// Makes a partition, unless it is there.
    fn make_partition(&mut self, value: &str) {
        if !self.partitions.contains_key(value) {
            // No id is given twice.
            self.partition_ids += 1;
            self.partitions.insert(value.to_owned(), self.partition_ids);
        }
    }

    /// The partitions that a scan means, with their values as a ticket has them.
    fn partitions_of(&self, scan: &Scan) -> Result<Vec<(u64, Vec<PartitionValue>)>, Status> {
        let Some(column) = self.partitioned_by.first() else { return Ok(vec![(0, Vec::new())]) };
        let only = if scan.partition.is_empty() { None } else { Some(self.partition_of(&scan.partition)?) };
        let named = |(value, id): (&String, &u64)| {
            (*id, vec![PartitionValue { column: column.clone(), value: value.clone() }])
        };
        let meant = self.partitions.iter().filter(|(_, id)| only.is_none_or(|only| only == **id));
        Ok(meant.map(named).collect())
    }

    /// The table as SQL.
    fn statement(&self) -> String {
        let list = |names: &[String]| names.join(",");
        let partitioned = if self.partitioned_by.is_empty() {
            String::new()
        } else {
            format!(" PARTITIONED BY ({})", list(&self.partitioned_by))
        };
        let key = if self.bucket_key.is_empty() {
            String::new()
        } else {
            format!(" WITH ('bucket.key' = '{}')", list(&self.bucket_key))
        };
        format!("CREATE TABLE sales.orders (id BIGINT){partitioned}{key}")
    }
}

/// Rows with these numbers.
pub(crate) fn batch(numbers: std::ops::Range<i64>) -> RecordBatch {
    let numbers = Arc::new(Int64Array::from_iter_values(numbers)) as ArrayRef;
    RecordBatch::try_from_iter_with_nullable([("id", numbers, true)]).expect("one column")
}

pub(crate) fn values(batch: &RecordBatch) -> Vec<i64> {
    batch.column(0).as_primitive::<Int64Type>().values().to_vec()
}

pub(crate) fn columns() -> SchemaRef {
    batch(0..0).schema()
}

/// Until it is so; a test that waits for ever has failed.
pub(crate) async fn eventually(what: &str, so: impl Fn() -> bool) {
    for _ in 0..2_000 {
        if so() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    panic!("it was never so that {what}");
}
