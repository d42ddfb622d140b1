//! Producing under load.
//!
//! Lives on: per connection one task that offers records or batches and one that counts acks; see `Producer` for those that send.
//! Invariants: the clock is read once for a record, and an ack's time is taken where the ack comes in, so that counting late does not
//! lengthen a latency.
use super::acks::{Group, Offered, count};
use super::batches::{Batches, FRAMING_MAX};
use super::contents::{Contents, Keys, Values};
use super::pace::{Clock, Pace, Schedule};
use super::tally::{Lateness, Tally};
use super::{LoadResult, Progress, Span, check_connections, finish};
use crate::client::Client;
use crate::error::{ClientError, ErrorKind};
use crate::partition::partition_of_key;
use crate::producer::{Gathering, Producer, ProducerConfig, RECORD_OVERHEAD, Record};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// Batches that one connection's counter may be behind.
const UNCOUNTED_MAX: usize = 1 << 14;
/// About what a batch takes for a record beside key and value, in bytes.
const FRAMING: usize = 8;
/// What is outstanding in a closed loop, over all connections, however many batches that makes.
const WINDOW_BYTES_MAX: usize = 256 << 20;
/// How long after its end an open loop still offers what was due before.
const OVERTIME_MAX: Duration = Duration::from_secs(10);

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
        let producer = Producer::start(client, &load.topic, load.config(partitions.len())).await?;
        shares.push((producer, partitions));
    }
    let begun = Instant::now();
    let span = Span::new(begun, load.warmup, load.duration);
    let tally = Arc::new(Tally::new(span.measured_from)?);
    let mut tasks = JoinSet::new();
    for (index, (producer, partitions)) in shares.into_iter().enumerate() {
        let share = Share {
            producer: Arc::new(producer),
            partitions,
            at: 0,
            records: share_of(load.records, index, connections),
            linger: matches!(load.pace, Pace::Rate { .. }).then_some(load.producer.linger),
            batch_bytes: load.producer.batch_bytes,
            span,
            is_keyless: matches!(load.keys, Keys::None),
            gathering: BTreeMap::new(),
            gathered: Vec::new(),
        };
        let contents = Contents::new(&load.values, &load.keys, index, connections);
        let schedule = Schedule::new(load.pace, index, connections, begun);
        let batches = load.has_whole_batches().then(|| Batches {
            partitions: share.partitions.clone(),
            records: share.records,
            batch_bytes: load.producer.batch_bytes,
            room_bytes: load.batch_room_bytes(),
            value_bytes_max: load.values.bytes_max(),
            span,
        });
        let (tally, progress) = (Arc::clone(&tally), Arc::clone(progress));
        tasks.spawn(async move {
            let (groups, acked) = mpsc::channel(UNCOUNTED_MAX);
            let counter = tokio::spawn(count(acked, Arc::clone(&tally), progress));
            let producer = Arc::clone(&share.producer);
            let offered = match batches {
                Some(batches) => batches.offer(&producer, contents, &groups, &tally).await,
                None => share.offer(contents, schedule, &groups, &tally).await,
            };
            drop(groups);
            // Errors of deliveries are counted one by one.
            drop(producer.close().await);
            counter.await.map_err(|error| ClientError::new(ErrorKind::Misuse, error.to_string()))?;
            offered
        });
    }
    finish(tasks, span, progress).await?;
    tally.result(false)
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

/// What one connection produces.
struct Share {
    producer: Arc<Producer>,
    partitions: Vec<i32>,
    /// The partition, by its place among them, whose batch is being filled; records without keys go there.
    at: usize,
    records: u64,
    /// Age at which a batch is sent, in an open loop.
    linger: Option<Duration>,
    batch_bytes: usize,
    span: Span,
    is_keyless: bool,
    /// Batches that are being gathered, by partition.
    gathering: BTreeMap<i32, Group>,
    /// Batches that get no more records.
    gathered: Vec<Group>,
}

impl Share {
    async fn offer(
        mut self,
        mut contents: Contents,
        mut schedule: Option<Schedule>,
        groups: &mpsc::Sender<Group>,
        tally: &Tally,
    ) -> Result<(), ClientError> {
        let (clock, mut late, mut unsent) = (Clock::now(), Lateness::new()?, 0);
        while self.records > 0 {
            let mut now = Instant::now();
            let since = schedule.as_mut().map_or(now, Schedule::next);
            if self.span.until.is_some_and(|until| since >= until) {
                break;
            }
            if since > now {
                sleep_until(since).await;
                now = Instant::now();
            }
            if let (Some(schedule), Some(until)) = (&schedule, self.span.until)
                && now > until + OVERTIME_MAX
            {
                unsent = schedule.left(until) + 1;
                break;
            }
            let counts = tally.counts(since);
            if counts && schedule.is_some() {
                late.note(now - since);
            }
            self.records -= u64::from(counts);
            let (key, value) = contents.next();
            let partition = self.partition(key, now);
            let record = Record { timestamp: Some(clock.ms(now)), ..Record::new(key, Some(value)) };
            let gathering = self.producer.gather(partition, record).await?;
            let bytes = (key.map_or(0, <[u8]>::len) + value.len()) as u64;
            self.note(partition, &gathering, now, Offered { since, records: 1, bytes, counts });
            while let Some(group) = self.gathered.pop() {
                // It ends early only by a fault, which whoever waits for it tells.
                drop(groups.send(group).await);
            }
        }
        for group in std::mem::take(&mut self.gathering).into_values() {
            drop(groups.send(group).await);
        }
        if schedule.is_some() {
            tally.paced(&late.0, unsent);
        }
        Ok(())
    }

    /// Where the next record goes.
    fn partition(&mut self, key: Option<&[u8]>, now: Instant) -> i32 {
        let count = self.partitions.len().max(1);
        let named = |at: usize| self.partitions.get(at % count).copied().unwrap_or(0);
        if let Some(key) = key {
            let count = i32::try_from(count).unwrap_or(i32::MAX);
            return named(usize::try_from(partition_of_key(key, count)).unwrap_or(0));
        }
        let partition = named(self.at);
        let has_lingered = |group: &Group| self.linger.is_some_and(|linger| group.opened + linger <= now);
        if count == 1 || !self.gathering.get(&partition).is_some_and(has_lingered) {
            return partition;
        }
        let next = named(self.at + 1);
        self.at += 1;
        self.gathered.extend(self.gathering.remove(&partition));
        next
    }

    /// Keeps a record with its batch.
    fn note(&mut self, partition: i32, gathering: &Gathering, now: Instant, offered: Offered) {
        let new = || Group::new(gathering.delivery.clone(), now);
        let group = self.gathering.entry(partition).or_insert_with(new);
        if !group.delivery.is_with(&gathering.delivery) {
            self.gathered.push(std::mem::replace(group, new()));
        }
        group.add(offered);
        // Without keys, a batch of one partition is filled after that of the other, as other clients do it.
        let next_bytes = usize::try_from(offered.bytes).unwrap_or(0) + FRAMING_MAX;
        if self.is_keyless && gathering.batch_bytes + next_bytes > self.batch_bytes {
            self.producer.seal(partition);
            self.at += 1;
            self.gathered.extend(self.gathering.remove(&partition));
        }
    }
}
