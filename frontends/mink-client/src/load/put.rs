//! Putting Arrow batches under load.
//!
//! Lives on: per connection one task that offers batches and one that counts acks; see `flight::Writer` for those that send.
//! Invariants: every batch that was offered is counted, as acked, as failed, or as one without an ack; a batch's time is that of its due, in an
//! open loop, and of its offer in a closed one.
use super::ending::Ending;
use super::pace::{Pace, Schedule};
use super::produce::share_of;
use super::share::{Due, next_due, out_of_room, unsent};
use super::tally::{Came, Lateness, Tally};
use super::{LoadResult, Progress, Span, check_connections, finish};
use crate::error::{ClientError, ErrorKind};
use crate::flight::{FlightClient, FlightError, FlightErrorKind, Receipt, Writer, bytes_of};
use arrow_array::RecordBatch;
use futures::stream::{FuturesUnordered, StreamExt};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Batches of an open loop that may be outstanding on one connection; more of them wait, and are late.
const OPEN_WINDOW: usize = 1 << 10;
/// Bytes of rows that one connection may have outstanding, whatever else is asked for.
const UNACKED_BYTES_MAX: usize = 256 << 20;

/// What to put.
#[derive(Clone, Debug)]
pub struct PutLoad {
    /// `DATABASE.TABLE`.
    pub table: String,
    /// Sent in turn, again and again; each is a message.
    pub batches: Vec<RecordBatch>,
    /// Rows in all, after the warm-up.
    pub rows: u64,
    /// Time for which rows are sent and not counted.
    pub warmup: Duration,
    /// Ends earlier, so long after the warm-up.
    pub duration: Option<Duration>,
    /// A rate is of rows; what is due is a batch.
    pub pace: Pace,
    /// Decides when the batches of Poisson arrivals are due.
    pub seed: u64,
    /// Writers with a connection each.
    pub connections: usize,
    /// Batches in flight per connection and bucket.
    pub in_flight: usize,
    pub idempotent: bool,
}

/// Puts to the table at a Flight listener. An error of a batch is counted, not returned; the first one ends its connection's part.
///
/// # Errors
/// What keeps the load from starting.
pub async fn put(address: &str, load: &PutLoad, progress: &Arc<Progress>) -> Result<LoadResult, ClientError> {
    let connections = check_connections(load.connections)?;
    let rows_per_batch = rows_per_batch(&load.batches)?;
    let mut writers = Vec::new();
    for _ in 0..connections {
        let opened = tokio::select! {
            opened = open(address, load) => opened,
            // Those that there are will find it over.
            _ = progress.stopped() => break,
        };
        writers.push(opened.map_err(|error| client_error(&error))?);
    }
    let (begun, used) = (Instant::now(), writers.len());
    let span = Span::new(begun, load.warmup, load.duration);
    let tally = Arc::new(Tally::new(span.measured_from, span.until)?);
    let ending = Ending::new(span.until, progress);
    let pace = per_batch(load.pace, rows_per_batch);
    let mut tasks = JoinSet::new();
    for (index, (writer, buckets)) in writers.into_iter().enumerate() {
        let window = match load.pace {
            Pace::AsFastAsItGoes => load.in_flight.saturating_mul(buckets.max(1)),
            Pace::Rate { .. } => OPEN_WINDOW,
        };
        let part = Part {
            writer,
            batches: load.batches.clone(),
            at: index,
            rows: share_of(load.rows, index, connections),
            rows_per_batch,
            window: Arc::new(Semaphore::new(window.clamp(1, OPEN_WINDOW))),
            schedule: Schedule::new(pace, (index, connections), begun, load.seed),
            ending: ending.clone(),
            tally: Arc::clone(&tally),
            failed: Arc::default(),
        };
        tasks.spawn(part.run());
    }
    finish(tasks, span, &ending).await?;
    Ok(LoadResult { connections: used, ..tally.result(false)? })
}

/// A writer, and how many buckets its table has.
async fn open(address: &str, load: &PutLoad) -> Result<(Writer, usize), FlightError> {
    let client = FlightClient::connect(address).await?;
    let buckets = client.describe(&load.table).await?.buckets;
    // Each batch is a message of its own.
    let writer = client.writer(&load.table).batch_bytes(1).linger(Duration::ZERO).in_flight(load.in_flight);
    let writer = writer.unacked_bytes(UNACKED_BYTES_MAX);
    let writer = if load.idempotent { writer.idempotent() } else { writer };
    Ok((writer.open().await?, usize::try_from(buckets).unwrap_or(1)))
}

fn rows_per_batch(batches: &[RecordBatch]) -> Result<u64, ClientError> {
    let rows = batches.first().map_or(0, RecordBatch::num_rows) as u64;
    if rows == 0 || batches.iter().any(|batch| batch.num_rows() as u64 != rows) {
        return Err(ClientError::new(ErrorKind::Misuse, "batches of one number of rows are needed"));
    }
    Ok(rows)
}

#[expect(clippy::cast_precision_loss, reason = "rows of a batch are few")]
fn per_batch(pace: Pace, rows: u64) -> Pace {
    match pace {
        Pace::AsFastAsItGoes => Pace::AsFastAsItGoes,
        Pace::Rate { per_second, arrivals } => Pace::Rate { per_second: per_second / rows as f64, arrivals },
    }
}

/// The same error in the words of loads.
pub(super) fn client_error(error: &FlightError) -> ClientError {
    let kind = match error.kind() {
        FlightErrorKind::Refused | FlightErrorKind::NotFound | FlightErrorKind::Exists => ErrorKind::Misuse,
        FlightErrorKind::Retry | FlightErrorKind::Unknown => ErrorKind::Connection,
        _ => ErrorKind::Protocol,
    };
    ClientError::new(kind, error.message())
}

/// What one connection sends.
struct Part {
    writer: Writer,
    batches: Vec<RecordBatch>,
    /// Which of them is next.
    at: usize,
    rows: u64,
    rows_per_batch: u64,
    /// A place for each batch that may be outstanding.
    window: Arc<Semaphore>,
    schedule: Option<Schedule>,
    ending: Ending,
    tally: Arc<Tally>,
    /// A batch has failed: nothing more is offered.
    failed: Arc<AtomicBool>,
}

/// A batch that the writer has, since when it had a place.
struct Handed {
    receipt: Receipt,
    place: OwnedSemaphorePermit,
    offered: Instant,
}

/// The same, on its way to be counted.
struct Sent {
    receipt: Receipt,
    what: What,
    place: OwnedSemaphorePermit,
}

/// What is counted of it.
#[derive(Clone, Copy)]
struct What {
    since: Instant,
    rows: u64,
    bytes: u64,
    /// It is not of the warm-up.
    counts: bool,
}

impl Part {
    /// Offers, and counts acks, until all have come or nothing more is waited for.
    async fn run(mut self) -> Result<(), ClientError> {
        let (batches, sent) = mpsc::channel(OPEN_WINDOW);
        let counter = Counter {
            tally: Arc::clone(&self.tally),
            ending: self.ending.clone(),
            failed: Arc::clone(&self.failed),
            outstanding: BTreeMap::new(),
        };
        let counting = tokio::spawn(counter.count(sent));
        let offered = self.offer(&batches).await;
        drop(batches);
        counting.await.map_err(|error| ClientError::new(ErrorKind::Misuse, error.to_string()))?;
        offered
    }

    async fn offer(&mut self, batches: &mpsc::Sender<Sent>) -> Result<(), ClientError> {
        let (mut late, mut left_out) = (Lateness::new()?, Vec::new());
        let (ending, tally) = (self.ending.clone(), Arc::clone(&self.tally));
        let is_open = self.schedule.is_some();
        while self.rows > 0 && !self.failed.load(Ordering::Relaxed) {
            let (since, now) = match next_due(&ending, &mut self.schedule).await {
                Due::Now { since, now } => (since, now),
                Due::Never { over } => {
                    tally.over(over);
                    break;
                }
                Due::TooLate { since, over } => {
                    tally.over(over);
                    left_out = self.unsent(since, over);
                    break;
                }
            };
            let counts = tally.counts(since);
            let batch = self.next(counts);
            let (rows, bytes) = (batch.num_rows() as u64, bytes_of(&batch) as u64);
            let handed = tokio::select! {
                biased;
                handed = self.hand_over(batch) => handed,
                over = out_of_room(&ending, is_open) => {
                    tally.over(over);
                    left_out = self.unsent(since, over);
                    break;
                }
            };
            match handed {
                Ok(Handed { receipt, place, offered }) => {
                    // In a closed loop the wait for a place is the loop's own.
                    let since = if is_open { since } else { offered };
                    let what = What { since, rows, bytes, counts };
                    // It ends early only by a fault, which whoever waits for it tells.
                    drop(batches.send(Sent { receipt, what, place }).await);
                }
                Err(error) => {
                    tally.failed(Instant::now(), rows, error);
                    break;
                }
            }
            if counts && is_open {
                late.note(now - since);
            }
            self.rows -= if counts { rows } else { 0 };
        }
        if is_open {
            tally.paced(&late.0, &left_out);
        }
        Ok(())
    }

    /// The next batch; the last one may be shorter.
    fn next(&mut self, counts: bool) -> RecordBatch {
        let most = if counts { usize::try_from(self.rows).unwrap_or(usize::MAX) } else { usize::MAX };
        let at = self.at % self.batches.len().max(1);
        self.at = self.at.wrapping_add(1);
        let Some(batch) = self.batches.get(at) else { unreachable!("a load without batches is not begun") };
        batch.slice(0, batch.num_rows().min(most))
    }

    async fn hand_over(&self, batch: RecordBatch) -> Result<Handed, ClientError> {
        let place = Arc::clone(&self.window).acquire_owned().await;
        let place = place.map_err(|error| ClientError::new(ErrorKind::Misuse, error.to_string()))?;
        let offered = Instant::now();
        let receipt = self.writer.write(batch).await.map_err(|error| client_error(&error))?;
        Ok(Handed { receipt, place, offered })
    }

    /// Rows of an open loop that were due and are not offered any more.
    fn unsent(&self, since: Instant, over: Instant) -> Vec<(Instant, u64)> {
        let batches = self.rows.div_ceil(self.rows_per_batch);
        let mut rows = self.rows;
        let left = unsent(batches, self.schedule.as_ref(), (since, over), &self.tally);
        let in_rows = left.into_iter().map(|(since, batches)| {
            let count = (batches * self.rows_per_batch).min(rows);
            rows -= count;
            (since, count)
        });
        in_rows.collect()
    }
}

/// Counts how batches end.
struct Counter {
    tally: Arc<Tally>,
    ending: Ending,
    failed: Arc<AtomicBool>,
    /// By number, in the order of their offers.
    outstanding: BTreeMap<u64, What>,
}

impl Counter {
    async fn count(mut self, mut sent: mpsc::Receiver<Sent>) {
        let (ending, mut waiting, mut number) = (self.ending.clone(), FuturesUnordered::new(), 0);
        let mut given_up = std::pin::pin!(ending.given_up());
        let mut all_sent = false;
        while !all_sent || !waiting.is_empty() {
            tokio::select! {
                biased;
                Some((number, ended)) = waiting.next(), if !waiting.is_empty() => self.ended(number, ended),
                next = sent.recv(), if !all_sent => match next {
                    Some(Sent { receipt, what, place }) => {
                        self.outstanding.insert(number, what);
                        waiting.push(async move {
                            let ended = receipt.await;
                            drop(place);
                            (number, ended.map(drop))
                        });
                        number += 1;
                    }
                    None => all_sent = true,
                },
                () = &mut given_up => break,
            }
        }
        sent.close();
        let last = std::iter::from_fn(|| sent.try_recv().ok()).map(|sent| sent.what);
        let without_ack: Vec<_> = self.outstanding.values().copied().chain(last).collect();
        self.unacked(&without_ack);
    }

    fn ended(&mut self, number: u64, ended: Result<(), FlightError>) {
        let Some(what) = self.outstanding.remove(&number) else { return };
        let (at, What { since, rows, bytes, counts }) = (Instant::now(), what);
        match ended {
            Ok(()) => {
                if counts {
                    let since = [(since, rows)];
                    self.tally
                        .came(at, &Came { records: rows, bytes, batches: 1, since: &since, ages_ms: &[] });
                }
                self.ending.progress().add(rows, bytes);
            }
            Err(error) => {
                self.failed.store(true, Ordering::Relaxed);
                self.unacked(&[what]);
                self.tally.failed(at, rows, client_error(&error));
            }
        }
    }

    fn unacked(&self, batches: &[What]) {
        let counted = batches.iter().filter(|what| what.counts).map(|what| (what.since, what.rows));
        self.tally.unacked(&counted.collect::<Vec<_>>());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flight::fake::{Fake, Fault, batch, eventually};
    use crate::load::{Arrivals, ScanLoad, scan};
    use tonic::Code;

    fn load(rows: u64) -> PutLoad {
        PutLoad {
            table: "sales.orders".into(),
            batches: vec![batch(0..10), batch(10..20)],
            rows,
            warmup: Duration::ZERO,
            duration: None,
            pace: Pace::AsFastAsItGoes,
            seed: 1,
            connections: 2,
            in_flight: 3,
            idempotent: true,
        }
    }

    fn stored(fake: &Fake, buckets: u32) -> usize {
        (0..buckets).map(|bucket| fake.values(bucket).len()).sum()
    }

    #[tokio::test]
    async fn all_rows_are_put_over_all_buckets_and_scanned_again() {
        let fake = Fake::start(2).await;
        let result = put(fake.address(), &load(95), &Arc::default()).await.unwrap();
        assert_eq!((result.records, result.errors, result.unacked), (95, 0, 0));
        assert_eq!((result.batches, result.connections), (10, 2), "the last of each connection is shorter");
        assert_eq!((result.bytes, result.latency.len()), (95 * 8, 95));
        assert_eq!(stored(&fake, 2), 95);
        let reading = ScanLoad {
            table: "sales.orders".into(),
            columns: Vec::new(),
            filter: Vec::new(),
            rows: None,
            warmup: Duration::ZERO,
            duration: None,
            connections: 4,
        };
        let result = scan(fake.address(), &reading, &Arc::default()).await.unwrap();
        assert_eq!(
            (result.records, result.bytes, result.connections),
            (95, 95 * 8, 2),
            "one for each bucket"
        );
    }

    #[tokio::test]
    async fn in_a_closed_loop_no_more_is_outstanding_than_was_asked_for() {
        let fake = Fake::start(2).await;
        fake.acks.send_replace(false);
        let (progress, load) = (Arc::<Progress>::default(), PutLoad { connections: 1, ..load(1_000) });
        let putting = put(fake.address(), &load, &progress);
        let watching = async {
            eventually("three of each bucket are there", || fake.table().attempts.len() == 6).await;
            progress.stop();
        };
        let (result, ()) = tokio::join!(putting, watching);
        let result = result.unwrap();
        assert_eq!((result.records, result.unacked, result.latency.len()), (0, 60, 60));
        assert_eq!(fake.table().attempts.len(), 6);
    }

    #[tokio::test]
    async fn an_open_loop_offers_what_is_due_and_tells_how_late_it_was() {
        let fake = Fake::start(1).await;
        let pace = Pace::Rate { per_second: 2_000.0, arrivals: Arrivals::Even };
        let load = PutLoad { pace, ..load(200) };
        let result = put(fake.address(), &load, &Arc::default()).await.unwrap();
        assert_eq!((result.records, result.late.len(), stored(&fake, 1)), (200, 20, 200));
        // The last batch is due 95 ms after the first one.
        assert!(result.elapsed >= Duration::from_millis(90), "{:?}", result.elapsed);
    }

    #[tokio::test]
    async fn a_batch_that_is_refused_is_counted_and_ends_its_connections_part() {
        let fake = Fake::start(1).await;
        fake.script([Fault::Take, Fault::Refuse(Code::InvalidArgument)]);
        let load = PutLoad { connections: 1, in_flight: 1, ..load(1_000_000) };
        let result = put(fake.address(), &load, &Arc::default()).await.unwrap();
        assert!(result.errors >= 10 && result.first_error.is_some(), "{result:?}");
        assert!(result.records < 1_000, "{result:?}");
    }

    #[tokio::test]
    async fn what_cannot_be_put_is_told_before_it_begins() {
        let fake = Fake::start(1).await;
        let kind =
            async |load: PutLoad| put(fake.address(), &load, &Arc::default()).await.unwrap_err().kind();
        assert_eq!(kind(PutLoad { table: "sales.nothing".into(), ..load(1) }).await, ErrorKind::Misuse);
        assert_eq!(kind(PutLoad { batches: Vec::new(), ..load(1) }).await, ErrorKind::Misuse);
        assert_eq!(kind(PutLoad { connections: 0, ..load(1) }).await, ErrorKind::Misuse);
    }
}
