//! The load generator: how fast records go in and out, and how long acks and reads take.
//!
//! Lives on: one task per connection and one that counts acks, on any tokio runtime.
//! Owns: producers and readers with connections of their own.
//! Invariants: with a rate, latency counts from the moment a record was due, so that a server that stalls cannot hide it; without, from the
//! moment the record had room in the producer.
use crate::client::Client;
use crate::error::{ClientError, ErrorKind};
use crate::offsets::Position;
use crate::producer::{Delivery, Producer, ProducerConfig, Record};
use crate::reader::Reader;
use hdrhistogram::Histogram;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Acks that one connection's counter may be behind.
const UNCOUNTED_MAX: usize = 1 << 16;
/// Payloads are slices of this many random bytes.
const PAYLOAD_BYTES: usize = 1 << 20;
/// Longest latency that is told apart, in us.
const LATENCY_US_MAX: u64 = 3_600_000_000;
/// Slowest rate, in records per second.
const RATE_MIN: f64 = 1e-3;
/// How long one read waits for records.
const READ_WAIT: Duration = Duration::from_millis(500);

/// What to produce.
#[derive(Clone, Debug)]
pub struct ProduceLoad {
    pub topic: String,
    /// Bytes of each value; they do not compress.
    pub record_bytes: usize,
    /// Records in all.
    pub records: u64,
    /// Ends earlier, after this time.
    pub duration: Option<Duration>,
    /// Records per second over all connections; none for as fast as it goes.
    pub rate: Option<f64>,
    /// Producers with a connection each, to which the partitions are dealt out.
    pub connections: usize,
    pub producer: ProducerConfig,
}

/// What to consume: everything that the topic holds when it begins.
#[derive(Clone, Debug)]
pub struct ConsumeLoad {
    pub topic: String,
    /// Ends earlier, after this time.
    pub duration: Option<Duration>,
    /// Connections to which the partitions are dealt out.
    pub connections: usize,
    /// Bytes of one read.
    pub read_bytes: i32,
}

/// How far a load has come; may be looked at while it runs.
#[derive(Debug, Default)]
pub struct Progress {
    pub records: AtomicU64,
    pub bytes: AtomicU64,
}

impl Progress {
    fn add(&self, records: u64, bytes: u64) {
        self.records.fetch_add(records, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// What a load came to.
#[derive(Clone, Debug)]
pub struct LoadResult {
    /// Acked, or read.
    pub records: u64,
    /// Of keys and values.
    pub bytes: u64,
    /// Records that were not acked.
    pub errors: u64,
    pub first_error: Option<ClientError>,
    pub elapsed: Duration,
    /// Of an ack, or of a read that brought records, in us.
    pub latency: Histogram<u64>,
}

impl LoadResult {
    fn new() -> Result<LoadResult, ClientError> {
        let latency = Histogram::new_with_bounds(1, LATENCY_US_MAX, 3);
        let latency = latency.map_err(|error| ClientError::new(ErrorKind::Misuse, error.to_string()))?;
        Ok(LoadResult {
            records: 0,
            bytes: 0,
            errors: 0,
            first_error: None,
            elapsed: Duration::ZERO,
            latency,
        })
    }

    fn merge(&mut self, other: &LoadResult) {
        self.records += other.records;
        self.bytes += other.bytes;
        self.errors += other.errors;
        self.first_error = self.first_error.take().or_else(|| other.first_error.clone());
        // Both have the same bounds, which is all that adding can fail for.
        self.latency.add(&other.latency).unwrap_or_default();
    }

    fn note(&mut self, latency: Duration) {
        self.latency.saturating_record(u64::try_from(latency.as_micros()).unwrap_or(u64::MAX).max(1));
    }

    /// Records per second.
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    pub fn records_per_second(&self) -> f64 {
        self.records as f64 / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// MiB of keys and values per second.
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    pub fn mib_per_second(&self) -> f64 {
        self.bytes as f64 / f64::from(1 << 20) / self.elapsed.as_secs_f64().max(1e-9)
    }

    /// Latency below which so many percent stay.
    pub fn percentile(&self, percent: f64) -> Duration {
        Duration::from_micros(self.latency.value_at_percentile(percent))
    }
}

/// Produces. An error of a record is counted, not returned.
///
/// # Errors
/// What keeps the load from starting.
pub async fn produce(
    client: &Client,
    load: &ProduceLoad,
    progress: &Arc<Progress>,
) -> Result<LoadResult, ClientError> {
    let connections = check_connections(load.connections)?;
    let interval =
        load.rate.map(|rate| Duration::from_secs_f64(1.0 / rate.max(RATE_MIN)) * count_of(connections));
    let mut producers = Vec::new();
    for _ in 0..connections {
        producers.push(Producer::start(client, &load.topic, load.producer.clone()).await?);
    }
    let begun = Instant::now();
    let until = load.duration.map(|duration| begun + duration);
    let mut tasks = JoinSet::new();
    for (index, producer) in producers.into_iter().enumerate() {
        let partitions: Vec<i32> = producer.partitions().collect();
        let share = Share {
            partitions: dealt(&partitions, index, connections),
            records: load.records / connections as u64
                + u64::from((index as u64) < load.records % connections as u64),
            record_bytes: load.record_bytes,
            interval,
            until,
            seed: index as u64,
        };
        tasks.spawn(produce_share(producer, share, Arc::clone(progress)));
    }
    joined(tasks, begun).await
}

/// Partitions of one of several connections; with more connections than partitions, some share one.
fn dealt(partitions: &[i32], index: usize, connections: usize) -> Vec<i32> {
    let mine: Vec<i32> = partitions.iter().copied().skip(index).step_by(connections).collect();
    if mine.is_empty() { partitions.iter().copied().cycle().skip(index).take(1).collect() } else { mine }
}

fn count_of(connections: usize) -> u32 {
    u32::try_from(connections).unwrap_or(u32::MAX)
}

fn check_connections(connections: usize) -> Result<usize, ClientError> {
    if connections == 0 {
        return Err(ClientError::new(ErrorKind::Misuse, "a load needs at least one connection"));
    }
    Ok(connections)
}

async fn joined(
    mut tasks: JoinSet<Result<LoadResult, ClientError>>,
    begun: Instant,
) -> Result<LoadResult, ClientError> {
    let mut all = LoadResult::new()?;
    while let Some(ended) = tasks.join_next().await {
        let ended = ended.map_err(|error| ClientError::new(ErrorKind::Misuse, error.to_string()))?;
        all.merge(&ended?);
    }
    all.elapsed = begun.elapsed();
    Ok(all)
}

/// What one connection produces.
struct Share {
    partitions: Vec<i32>,
    records: u64,
    record_bytes: usize,
    interval: Option<Duration>,
    until: Option<Instant>,
    seed: u64,
}

async fn produce_share(
    producer: Producer,
    share: Share,
    progress: Arc<Progress>,
) -> Result<LoadResult, ClientError> {
    let (acks, deliveries) = mpsc::channel(UNCOUNTED_MAX);
    let counter = tokio::spawn(count(deliveries, share.record_bytes as u64, progress));
    let payload = random_bytes(PAYLOAD_BYTES + share.record_bytes, share.seed);
    let mut due = Instant::now();
    let mut partitions = share.partitions.iter().copied().cycle();
    for number in 0..share.records {
        if let Some(interval) = share.interval {
            tokio::time::sleep_until(due).await;
            due += interval;
        }
        let Some(partition) =
            partitions.next().filter(|_| share.until.is_none_or(|until| Instant::now() < until))
        else {
            break;
        };
        let value = slice(&payload, number, share.record_bytes);
        let delivery = producer.send(partition, Record::new(None, Some(value))).await?;
        let since = share.interval.map_or_else(Instant::now, |interval| due - interval);
        if acks.send((since, delivery)).await.is_err() {
            break;
        }
    }
    drop(acks);
    // Errors of deliveries were counted one by one.
    drop(producer.close().await);
    counter.await.map_err(|error| ClientError::new(ErrorKind::Misuse, error.to_string()))?
}

/// Some bytes of the payload, others for each record.
fn slice(payload: &[u8], number: u64, bytes: usize) -> &[u8] {
    let at = usize::try_from(number.wrapping_mul(4099) % PAYLOAD_BYTES as u64).unwrap_or(0);
    payload.get(at..at + bytes).unwrap_or(payload)
}

async fn count(
    mut deliveries: mpsc::Receiver<(Instant, Delivery)>,
    record_bytes: u64,
    progress: Arc<Progress>,
) -> Result<LoadResult, ClientError> {
    let mut result = LoadResult::new()?;
    while let Some((since, delivery)) = deliveries.recv().await {
        match delivery.await {
            Ok(_) => {
                result.records += 1;
                result.bytes += record_bytes;
                result.note(since.elapsed());
                progress.add(1, record_bytes);
            }
            Err(error) => {
                result.errors += 1;
                result.first_error.get_or_insert(error);
            }
        }
    }
    Ok(result)
}

/// Bytes that look random and are the same for one seed (splitmix64).
fn random_bytes(count: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut bytes = Vec::with_capacity(count + 8);
    while bytes.len() < count {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bytes.extend_from_slice(&(mixed ^ (mixed >> 31)).to_le_bytes());
    }
    bytes.truncate(count);
    bytes
}

/// Consumes what the topic holds.
///
/// # Errors
/// The first error of any read.
pub async fn consume(
    client: &Client,
    load: &ConsumeLoad,
    progress: &Arc<Progress>,
) -> Result<LoadResult, ClientError> {
    let connections = check_connections(load.connections)?;
    let topic = client.find_topic(&load.topic).await?;
    let topic = topic
        .ok_or_else(|| ClientError::new(ErrorKind::Misuse, format!("there is no topic {}", load.topic)))?;
    let begun = Instant::now();
    let until = load.duration.map(|duration| begun + duration);
    let clients: Vec<Client> = (0..connections).map(|_| client.apart()).collect();
    let mut tasks = JoinSet::new();
    for (partition, client) in topic.partitions.iter().zip(clients.iter().cycle()) {
        let reader = Reader::new(client, &load.topic, partition.index).bytes_max(load.read_bytes);
        let (client, topic, partition) = (client.clone(), load.topic.clone(), partition.index);
        let progress = Arc::clone(progress);
        tasks.spawn(async move {
            let from = client.offset(&topic, partition, Position::Earliest).await?.offset.unwrap_or(0);
            let end = client.offset(&topic, partition, Position::Latest).await?.offset.unwrap_or(0);
            consume_partition(&reader, from, end, until, &progress).await
        });
    }
    joined(tasks, begun).await
}

async fn consume_partition(
    reader: &Reader,
    mut at: i64,
    end: i64,
    until: Option<Instant>,
    progress: &Progress,
) -> Result<LoadResult, ClientError> {
    let mut result = LoadResult::new()?;
    while at < end && until.is_none_or(|until| Instant::now() < until) {
        let asked = Instant::now();
        let read = reader.read(at, READ_WAIT).await?;
        at = read.next;
        if read.records.is_empty() {
            continue;
        }
        result.note(asked.elapsed());
        let bytes = read.records.iter().map(|record| {
            record.key.as_ref().map_or(0, bytes::Bytes::len)
                + record.value.as_ref().map_or(0, bytes::Bytes::len)
        });
        let (records, bytes) = (read.records.len() as u64, bytes.sum::<usize>() as u64);
        result.records += records;
        result.bytes += bytes;
        progress.add(records, bytes);
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_dealt_out_and_every_connection_has_one() {
        assert_eq!(dealt(&[0, 1, 2, 3, 4], 1, 2), [1, 3]);
        assert_eq!(dealt(&[0, 1], 2, 5), [0]);
        assert_eq!(dealt(&[0, 1], 3, 5), [1]);
    }

    #[test]
    fn payloads_do_not_compress_and_repeat_for_one_seed() {
        let bytes = random_bytes(1000, 7);
        assert_eq!((bytes.len(), &bytes), (1000, &random_bytes(1000, 7)));
        assert_ne!(bytes, random_bytes(1000, 8));
        assert_eq!(slice(&random_bytes(PAYLOAD_BYTES + 10, 1), u64::MAX, 10).len(), 10);
    }
}
