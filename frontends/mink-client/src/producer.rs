//! Producing: records are gathered into batches per partition, sent pipelined, and repeated in order until they are acked.
//!
//! Lives on: one task per partition, on any tokio runtime.
//! Owns: a client of its own, so that nobody's long poll holds up acks.
//! Invariants: what is gathered and not yet acked is bounded by `buffer_bytes`; a batch that is sent again has the same bytes and the same
//! sequences, in the same order (I6); an error says whether the record may have been stored (I7).
mod accumulator;
mod delivery;
mod flight;
mod lane;

#[cfg(test)]
mod tests;

pub(crate) use accumulator::Gathering;
pub use delivery::Delivery;

use crate::client::Client;
use crate::error::{ClientError, ErrorKind};
use accumulator::Accumulator;
use lane::{Identity, Lane};
use mink_record::kafka::{BatchBuilder, Codec, HeaderRef, RecordRef};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinHandle;

/// Requests in flight per partition beyond which a server no longer knows a repeat: Kafka's servers remember five batches.
pub const IN_FLIGHT_MAX: usize = 5;
/// Counted for a record beside its key, value and headers, in bytes.
pub(crate) const RECORD_OVERHEAD: usize = 32;

/// How a producer gathers and sends.
#[derive(Clone, Debug)]
pub struct ProducerConfig {
    pub codec: Codec,
    /// Each record is stored once, whatever is retried. Without it a record whose answer was lost may be stored twice, and a retry may
    /// come behind a later record: at least once.
    pub idempotent: bool,
    /// A batch is sent at this size, before compression. A larger record travels alone.
    pub batch_bytes: usize,
    /// A batch is sent at this age at the latest.
    pub linger: Duration,
    /// Batches of one partition that wait for their ack, 1 to 5.
    pub in_flight_max: usize,
    /// Bytes of records gathered and not yet acked, in all partitions; `send` waits for room.
    pub buffer_bytes: usize,
    /// A record that is not acked at this age is given up.
    pub delivery_timeout: Duration,
}

impl Default for ProducerConfig {
    fn default() -> ProducerConfig {
        ProducerConfig {
            codec: Codec::None,
            idempotent: true,
            batch_bytes: 512 << 10,
            linger: Duration::from_millis(5),
            in_flight_max: IN_FLIGHT_MAX,
            buffer_bytes: 32 << 20,
            delivery_timeout: Duration::from_mins(2),
        }
    }
}

/// A record to be sent; everything borrowed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Record<'a> {
    /// Ms since 1970; none for now.
    pub timestamp: Option<i64>,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    /// In this order; names may repeat.
    pub headers: &'a [HeaderRef<'a>],
}

impl<'a> Record<'a> {
    /// A record of now, without headers.
    pub fn new(key: Option<&'a [u8]>, value: Option<&'a [u8]>) -> Record<'a> {
        Record { key, value, ..Record::default() }
    }

    fn bytes(&self) -> usize {
        let headers =
            self.headers.iter().map(|header| header.key.len() + header.value.map_or(0, <[u8]>::len));
        RECORD_OVERHEAD
            + self.key.map_or(0, <[u8]>::len)
            + self.value.map_or(0, <[u8]>::len)
            + headers.sum::<usize>()
    }
}

/// Sends records to the partitions of one topic. Share it by reference or `Arc`.
#[derive(Debug)]
pub struct Producer {
    topic: String,
    partitions: BTreeMap<i32, Partition>,
    room: Arc<Semaphore>,
    buffer_bytes: usize,
}

#[derive(Debug)]
struct Partition {
    records: Arc<Accumulator>,
    /// Number below which every batch has ended; closes when the lane is gone.
    settled: watch::Receiver<u64>,
    lane: Mutex<Option<JoinHandle<()>>>,
}

impl Producer {
    /// Begins to produce to a topic, which is made if the server makes topics on first use.
    ///
    /// # Errors
    /// `Misuse` for a configuration that cannot work; what the server or the connection says.
    pub async fn start(
        client: &Client,
        topic: &str,
        config: ProducerConfig,
    ) -> Result<Producer, ClientError> {
        Producer::start_at(client, topic, config, 0).await
    }

    /// As `start`, with another first sequence than 0.
    async fn start_at(
        client: &Client,
        topic: &str,
        config: ProducerConfig,
        sequence: i32,
    ) -> Result<Producer, ClientError> {
        if !(1..=IN_FLIGHT_MAX).contains(&config.in_flight_max) {
            return Err(misuse(format!(
                "in_flight_max is {}; use 1 to {IN_FLIGHT_MAX}",
                config.in_flight_max
            )));
        }
        if config.buffer_bytes < RECORD_OVERHEAD || config.buffer_bytes > Semaphore::MAX_PERMITS {
            return Err(misuse(format!("buffer_bytes is {}, out of range", config.buffer_bytes)));
        }
        let client = client.apart();
        let described = client.topic(topic).await?;
        let identity = if config.idempotent { Some(Identity::ask(&client).await?) } else { None };
        let room = Arc::new(Semaphore::new(config.buffer_bytes));
        let buffer_bytes = config.buffer_bytes;
        let config = Arc::new(config);
        let partitions = described.partitions.iter().map(|partition| {
            let records = Arc::new(Accumulator::new(config.batch_bytes, config.linger));
            let (config, start) = (Arc::clone(&config), (identity, sequence));
            let (lane, settled) =
                Lane::new(&client, topic, partition.index, config, Arc::clone(&records), start);
            let lane = Mutex::new(Some(tokio::spawn(lane.run())));
            (partition.index, Partition { records, settled, lane })
        });
        Ok(Producer { topic: topic.into(), partitions: partitions.collect(), room, buffer_bytes })
    }

    /// The partitions of the topic, in order.
    pub fn partitions(&self) -> impl Iterator<Item = i32> + '_ {
        self.partitions.keys().copied()
    }

    /// Gathers a record for a partition; waits for room. Records of one partition keep the order in which calls return.
    ///
    /// # Errors
    /// `Misuse` if there is no such partition, the record is larger than the buffer, or the producer is closed. Whether
    /// the record was stored is what the [`Delivery`] says.
    pub async fn send(&self, partition: i32, record: Record<'_>) -> Result<Delivery, ClientError> {
        self.gather(partition, record).await.map(|gathering| gathering.delivery)
    }

    /// As `send`, for those who mind where batches end.
    pub(crate) async fn gather(&self, partition: i32, record: Record<'_>) -> Result<Gathering, ClientError> {
        let found = self.partitions.get(&partition);
        let found = found.ok_or_else(|| misuse(format!("{} has no partition {partition}", self.topic)))?;
        let bytes = u32::try_from(record.bytes()).ok().filter(|bytes| *bytes as usize <= self.buffer_bytes);
        let bytes = bytes.ok_or_else(|| {
            misuse(format!("a record of {} bytes; the buffer has {}", record.bytes(), self.buffer_bytes))
        })?;
        let room = Arc::clone(&self.room).acquire_many_owned(bytes).await.map_err(|_| misuse("closed"))?;
        let timestamp = record.timestamp.unwrap_or_else(now);
        let record = RecordRef { timestamp, key: record.key, value: record.value, headers: record.headers };
        found.records.push(&record, room)
    }

    /// Waits for room for so many bytes.
    pub(crate) async fn room(&self, bytes: usize) -> Result<OwnedSemaphorePermit, ClientError> {
        let bytes = u32::try_from(bytes).ok().filter(|bytes| *bytes as usize <= self.buffer_bytes);
        let bytes = bytes.ok_or_else(|| misuse(format!("the buffer has {} bytes", self.buffer_bytes)))?;
        Arc::clone(&self.room).acquire_many_owned(bytes).await.map_err(|_| misuse("closed"))
    }

    /// Sends a batch that the caller has gathered; it goes after what the partition has gathered itself.
    pub(crate) fn send_batch(
        &self,
        partition: i32,
        records: BatchBuilder,
        room: OwnedSemaphorePermit,
    ) -> Result<Delivery, ClientError> {
        let found = self.partitions.get(&partition);
        let found = found.ok_or_else(|| misuse(format!("{} has no partition {partition}", self.topic)))?;
        found.records.push_batch(records, room)
    }

    /// Sends what a partition has gathered without lingering.
    pub(crate) fn seal(&self, partition: i32) {
        if let Some(partition) = self.partitions.get(&partition) {
            partition.records.seal();
        }
    }

    /// Sends what is gathered without lingering and waits until all of it has ended.
    ///
    /// # Errors
    /// The first error of a delivery since the last flush.
    pub async fn flush(&self) -> Result<(), ClientError> {
        let marks: Vec<u64> = self.partitions.values().map(|partition| partition.records.flush()).collect();
        for (partition, mark) in self.partitions.values().zip(marks) {
            let mut settled = partition.settled.clone();
            settled.wait_for(|below| *below >= mark).await.map_err(|_| gone())?;
        }
        let errors = self.partitions.values().filter_map(|partition| partition.records.take_error());
        errors.collect::<Vec<_>>().into_iter().next().map_or(Ok(()), Err)
    }

    /// Flushes and ends the producer: later calls of `send` are refused.
    ///
    /// # Errors
    /// As `flush`.
    pub async fn close(&self) -> Result<(), ClientError> {
        self.partitions.values().for_each(|partition| partition.records.close());
        let flushed = self.flush().await;
        for partition in self.partitions.values() {
            if let Some(lane) = partition.lane.lock().await.take() {
                lane.await.map_err(|_| gone())?;
            }
        }
        flushed
    }
}

impl Drop for Producer {
    /// Without `close` the tasks still send what was gathered, unless the runtime ends first.
    fn drop(&mut self) {
        self.partitions.values().for_each(|partition| partition.records.close());
    }
}

fn misuse(what: impl Into<String>) -> ClientError {
    ClientError::new(ErrorKind::Misuse, what)
}

/// The task of a partition has ended without being asked to: only a fault of this crate does that.
fn gone() -> ClientError {
    ClientError::new(
        ErrorKind::Connection,
        "the producer's task ended early; what it had sent may have been stored",
    )
}

fn now() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
