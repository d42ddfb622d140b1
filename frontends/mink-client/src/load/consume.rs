//! Reading under load.
//!
//! Lives on: per partition one task that reads and one that looks at what it read, so that the next read is on its way meanwhile.
//! Invariants: every batch that is counted was checked against its checksum, every record was decoded.
use super::ending::Ending;
use super::tally::{Came, Tally};
use super::{LoadResult, Progress, Span, check_connections, finish};
use crate::client::Client;
use crate::error::{ClientError, ErrorKind};
use crate::offsets::Position;
use crate::reader::{Fetched, Reader};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// How long one read waits for records.
const READ_WAIT: Duration = Duration::from_millis(500);
/// How long after the end of a load's time a read that is under way is waited for.
const READ_OVERTIME_MAX: Duration = Duration::from_secs(1);
/// Answers of a partition that wait to be looked at, beside the one that is.
const UNSEEN_MAX: usize = 1;

/// What to consume: everything that the topic holds when it begins, or what comes from then on.
#[derive(Clone, Debug)]
pub struct ConsumeLoad {
    pub topic: String,
    /// Ends earlier, after about so many records, warm-up included.
    pub records: Option<u64>,
    /// Time for which reads are not counted.
    pub warmup: Duration,
    /// Ends earlier, so long after the warm-up.
    pub duration: Option<Duration>,
    /// Connections to which the partitions are dealt out, at most one for each of them. A load that follows has one for each partition, since a read that waits for
    /// records holds up those behind it.
    pub connections: usize,
    /// Bytes of one read.
    pub read_bytes: i32,
    /// Begins at the end and goes on until `duration` or `records`, and tells how old records are when they come.
    pub follow: bool,
}

/// Consumes.
///
/// # Errors
/// `Misuse` if there is no such topic, or a load that follows has no end; what keeps the load from starting. The first error of a read ends
/// the load and stands in its result.
pub async fn consume(
    client: &Client,
    load: &ConsumeLoad,
    progress: &Arc<Progress>,
) -> Result<LoadResult, ClientError> {
    let misuse = |what: String| ClientError::new(ErrorKind::Misuse, what);
    let connections = check_connections(load.connections)?;
    if load.follow && load.duration.is_none() && load.records.is_none() {
        return Err(misuse("a load that follows needs a time or a number of records to end at".into()));
    }
    let topic = client.find_topic(&load.topic).await?;
    let topic =
        topic.ok_or_else(|| misuse(format!("there is no topic {}; produce to it first", load.topic)))?;
    let partitions = topic.partitions.len();
    let connections = if load.follow { partitions } else { connections.min(partitions) };
    let clients: Vec<Client> = (0..connections).map(|_| client.apart()).collect();
    let mut places = Vec::new();
    for partition in &topic.partitions {
        let at = |position| client.offset(&load.topic, partition.index, position);
        let end = at(Position::Latest).await?.offset.unwrap_or(0);
        let from = if load.follow { end } else { at(Position::Earliest).await?.offset.unwrap_or(0) };
        places.push((partition.index, from, if load.follow { i64::MAX } else { end }));
    }
    let span = Span::new(Instant::now(), load.warmup, load.duration);
    let tally = Arc::new(Tally::new(span.measured_from, span.until)?);
    let ending = Ending::new(span.until, progress);
    let mut tasks = JoinSet::new();
    for ((partition, from, end), client) in places.into_iter().zip(clients.iter().cycle()) {
        let reader = Reader::new(client, &load.topic, partition).bytes_max(load.read_bytes);
        let records = load.records.unwrap_or(u64::MAX);
        let place = Place { reader, from, end, records, ending: ending.clone(), tally: Arc::clone(&tally) };
        let (answers, unseen) = mpsc::channel(UNSEEN_MAX);
        tasks.spawn(look(unseen, load.follow, Arc::clone(&tally), Arc::clone(progress)));
        tasks.spawn(place.read(answers));
    }
    if let Err(error) = finish(tasks, span, &ending).await {
        tally.failed(Instant::now(), 0, error);
    }
    Ok(LoadResult { connections, ..tally.result(load.follow)? })
}

/// Where one partition is read.
struct Place {
    reader: Reader,
    from: i64,
    end: i64,
    /// Of all partitions together.
    records: u64,
    ending: Ending,
    tally: Arc<Tally>,
}

/// An answer that brought something.
struct Answer {
    fetched: Fetched,
    from: i64,
    asked: Instant,
    came: Instant,
}

impl Place {
    async fn read(self, answers: mpsc::Sender<Answer>) -> Result<(), ClientError> {
        let (mut from, read_before) = (self.from, &self.ending.progress().records);
        while from < self.end && read_before.load(Ordering::Relaxed) < self.records {
            let asked = Instant::now();
            if let Some(over) = self.ending.over_since(asked) {
                self.tally.over(over);
                break;
            }
            let until = self.ending.until();
            let wait = until.map_or(READ_WAIT, |until| until.saturating_duration_since(asked).min(READ_WAIT));
            // Whoever stops it waits for no read; a server that is gone is asked again and again, also when the time is over.
            let fetched = tokio::select! {
                biased;
                fetched = self.reader.read_batches(from, wait) => fetched?,
                over = self.over_in_a_read() => {
                    self.tally.over(over);
                    break;
                }
            };
            let next = fetched.next(from);
            if !fetched.is_empty() {
                let answer = Answer { fetched, from, asked, came: Instant::now() };
                if answers.send(answer).await.is_err() {
                    // Whoever looks has failed, and says why.
                    break;
                }
            }
            from = next;
        }
        Ok(())
    }

    /// Resolves when a read that is under way is given up.
    async fn over_in_a_read(&self) -> Instant {
        let over = self.ending.over().await;
        if !self.ending.progress().is_stopped() {
            sleep_until(over + READ_OVERTIME_MAX).await;
        }
        over
    }
}

async fn look(
    mut answers: mpsc::Receiver<Answer>,
    with_ages: bool,
    tally: Arc<Tally>,
    progress: Arc<Progress>,
) -> Result<(), ClientError> {
    let mut ages_ms = Vec::new();
    while let Some(Answer { fetched, from, asked, came }) = answers.recv().await {
        let now_ms = if with_ages { now_ms() } else { 0 };
        let (mut records, mut bytes) = (0, 0);
        ages_ms.clear();
        fetched.visit(from, |record| {
            let length = |field: &Option<bytes::Bytes>| field.as_ref().map_or(0, bytes::Bytes::len);
            records += 1;
            bytes += (length(&record.key) + length(&record.value)) as u64;
            if with_ages {
                // Below zero if the producer's clock is ahead of ours.
                ages_ms.push(u64::try_from(now_ms - record.timestamp).unwrap_or(0));
            }
        })?;
        if tally.counts(asked) {
            tally.came(came, &Came { records, bytes, batches: 0, since: &[(asked, 1)], ages_ms: &ages_ms });
        }
        progress.add(records, bytes);
    }
    Ok(())
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
