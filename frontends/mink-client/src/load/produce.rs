//! Producing under load.
//!
//! Lives on: per connection one task that offers records or batches and one that counts acks; see `Producer` for those that send.
//! Invariants: an ack's time is taken where the ack comes in, so that counting late does not lengthen a latency.
use super::acks::count;
use super::batches::Batches;
use super::contents::{Contents, Keys, Values};
use super::ending::Ending;
use super::pace::{Pace, Schedule};
use super::share::Share;
use super::tally::Tally;
use super::{LoadResult, Progress, Span, check_connections, finish};
use crate::client::Client;
use crate::error::{ClientError, ErrorKind};
use crate::producer::{Producer, ProducerConfig, RECORD_OVERHEAD};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Batches that one connection's counter may be behind.
const UNCOUNTED_MAX: usize = 1 << 14;
/// About what a batch takes for a record beside key and value, in bytes.
const FRAMING: usize = 8;
/// What is outstanding in a closed loop, over all connections, however many batches that makes.
const WINDOW_BYTES_MAX: usize = 256 << 20;

/// What to produce.
#[derive(Clone, Debug)]
pub struct ProduceLoad {
    pub topic: String,
    pub values: Values,
    pub keys: Keys,
    /// Records in all, after the warm-up.
    pub records: u64,
    /// Time for which records are sent and not counted.
    pub warmup: Duration,
    /// Ends earlier, so long after the warm-up.
    pub duration: Option<Duration>,
    pub pace: Pace,
    /// Decides when the records of Poisson arrivals are due.
    pub seed: u64,
    /// Producers with a connection each, to which the partitions are dealt out.
    pub connections: usize,
    /// In a closed loop `buffer_bytes` is not looked at: what is outstanding is `in_flight_max` batches and the one that is being
    /// gathered, per partition and connection, up to 256 MiB in all.
    pub producer: ProducerConfig,
}

impl ProduceLoad {
    /// Whether one batch is offered after the other, and not records.
    fn has_whole_batches(&self) -> bool {
        matches!((&self.keys, self.pace), (Keys::None, Pace::AsFastAsItGoes))
    }

    /// Room in the producer's buffer for a batch.
    fn batch_room_bytes(&self) -> usize {
        if self.has_whole_batches() {
            return self.producer.batch_bytes.max(self.values.bytes_max() + RECORD_OVERHEAD);
        }
        let mean = self.values.bytes_mean() + self.keys.bytes_mean();
        let records = self.producer.batch_bytes / (mean + FRAMING) + 1;
        records.saturating_mul(mean + RECORD_OVERHEAD)
    }

    /// Room for so many batches and the next.
    fn window_bytes(&self, partitions: usize) -> usize {
        let batches = (self.producer.in_flight_max + 1).saturating_mul(partitions.max(1));
        let window = self.batch_room_bytes().saturating_mul(batches);
        window.min(WINDOW_BYTES_MAX / self.connections.max(1))
    }

    pub(super) fn config(&self, partitions: usize) -> ProducerConfig {
        let window = match self.pace {
            Pace::AsFastAsItGoes => self.window_bytes(partitions),
            Pace::Rate { .. } => self.producer.buffer_bytes,
        };
        let record = self.values.bytes_max() + self.keys.bytes_max() + RECORD_OVERHEAD;
        let least = if self.has_whole_batches() { self.batch_room_bytes() } else { record };
        ProducerConfig { buffer_bytes: window.max(least), ..self.producer.clone() }
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
    let all: Vec<i32> = client.topic(&load.topic).await?.partitions.iter().map(|found| found.index).collect();
    let mut shares = Vec::new();
    for index in 0..connections {
        let partitions = match load.keys {
            Keys::None => dealt(&all, index, connections),
            Keys::Random { .. } | Keys::Given(_) => all.clone(),
        };
        let started = tokio::select! {
            started = Producer::start(client, &load.topic, load.config(partitions.len())) => started,
            // Those that there are will find it over.
            _ = progress.stopped() => break,
        };
        let producer = started.map_err(|error| not_connected(&error, index, connections))?;
        shares.push((producer, partitions));
    }
    let (begun, used) = (Instant::now(), shares.len());
    let span = Span::new(begun, load.warmup, load.duration);
    let tally = Arc::new(Tally::new(span.measured_from, span.until)?);
    let ending = Ending::new(span.until, progress);
    let mut tasks = JoinSet::new();
    for (index, (producer, partitions)) in shares.into_iter().enumerate() {
        let part = Part {
            producer,
            partitions,
            records: share_of(load.records, index, connections),
            contents: Contents::new(&load.values, &load.keys, index, connections),
            schedule: Schedule::new(load.pace, (index, connections), begun, load.seed),
        };
        tasks.spawn(part.run(load, Arc::clone(&tally), ending.clone()));
    }
    finish(tasks, span, &ending).await?;
    Ok(LoadResult { connections: used, ..tally.result(false)? })
}

/// What one connection sends.
struct Part {
    producer: Producer,
    partitions: Vec<i32>,
    records: u64,
    contents: Contents,
    schedule: Option<Schedule>,
}

impl Part {
    /// Offers, and counts acks, until all have come or nothing more is waited for.
    fn run(
        self,
        load: &ProduceLoad,
        tally: Arc<Tally>,
        ending: Ending,
    ) -> impl Future<Output = Result<(), ClientError>> + Send + use<> {
        let Part { producer, partitions, records, contents, schedule } = self;
        let producer = Arc::new(producer);
        let offering = if load.has_whole_batches() {
            Offering::Batches(Batches {
                partitions,
                records,
                batch_bytes: load.producer.batch_bytes,
                room_bytes: load.batch_room_bytes(),
                value_bytes_max: load.values.bytes_max(),
                ending: ending.clone(),
            })
        } else {
            let linger = matches!(load.pace, Pace::Rate { .. }).then_some(load.producer.linger);
            Offering::Records(Share {
                producer: Arc::clone(&producer),
                partitions,
                at: 0,
                records,
                linger,
                batch_bytes: load.producer.batch_bytes,
                ending: ending.clone(),
                is_keyless: matches!(load.keys, Keys::None),
                gathering: BTreeMap::new(),
                gathered: Vec::new(),
            })
        };
        async move {
            let (groups, acked) = mpsc::channel(UNCOUNTED_MAX);
            let counter = tokio::spawn(count(acked, Arc::clone(&tally), ending.clone()));
            let offered = match offering {
                Offering::Batches(batches) => batches.offer(&producer, contents, &groups, &tally).await,
                Offering::Records(share) => share.offer(contents, schedule, &groups, &tally).await,
            };
            drop(groups);
            tokio::select! {
                // Errors of deliveries are counted one by one.
                ended = producer.close() => drop(ended),
                () = ending.given_up() => {}
            }
            counter.await.map_err(|error| ClientError::new(ErrorKind::Misuse, error.to_string()))?;
            offered
        }
    }
}

/// How records are offered.
enum Offering {
    Batches(Batches),
    Records(Share),
}

/// Why a connection was not made where others were.
fn not_connected(error: &ClientError, index: usize, connections: usize) -> ClientError {
    if index == 0 {
        return error.clone();
    }
    let what = format!(
        "connection {} of {connections}: {error}; the server may be at its limit of connections (Mink's are connections-per-address-max and connections-max), or this process at its limit of open files",
        index + 1
    );
    ClientError::new(error.kind(), what)
}

/// Partitions of one of several connections; with more connections than partitions, some share one.
pub(super) fn dealt(partitions: &[i32], index: usize, connections: usize) -> Vec<i32> {
    let mine: Vec<i32> = partitions.iter().copied().skip(index).step_by(connections).collect();
    if mine.is_empty() { partitions.iter().copied().cycle().skip(index).take(1).collect() } else { mine }
}

pub(super) fn share_of(records: u64, index: usize, connections: usize) -> u64 {
    let (index, connections) = (index as u64, connections as u64);
    records / connections + u64::from(index < records % connections)
}
