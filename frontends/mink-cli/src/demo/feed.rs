//! The demo's producer: sends all flights in a task of its own, counts acks as they come, and draws progress.
//!
//! Lives on: one task that sends, one that counts.
//! Invariants: partition of a flight is a function of the flight alone, so that whoever reads back knows what to expect where.
use super::flights::Flight;
use crate::failure::Failure;
use hdrhistogram::Histogram;
use indicatif::{ProgressBar, ProgressStyle};
use mink_client::{ClientError, Delivery, Producer, Record, partition_of_key};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// Acks that the counter may be behind.
const UNCOUNTED_MAX: usize = 100_000;
/// Longest latency that is told apart, in us.
const LATENCY_US_MAX: u64 = 600_000_000;

/// Where a flight goes. Those without a plane go by their carrier.
pub(super) fn partition(flight: &Flight, partitions: i32) -> i32 {
    partition_of_key(flight.key.as_deref().unwrap_or(&flight.carrier).as_bytes(), partitions)
}

/// What feeding came to.
#[derive(Debug)]
pub(super) struct Fed {
    pub(super) latency: Histogram<u64>,
    pub(super) took: Duration,
}

/// Flights on their way.
pub(super) struct Feed {
    sender: JoinHandle<Result<(), ClientError>>,
    counter: JoinHandle<Result<Histogram<u64>, ClientError>>,
    acked: watch::Receiver<u64>,
    bar: ProgressBar,
    begun: Instant,
}

impl Feed {
    pub(super) fn start(producer: Producer, flights: Arc<Vec<Flight>>, partitions: i32) -> Feed {
        let bar = ProgressBar::new(flights.len() as u64);
        if let Ok(style) =
            ProgressStyle::with_template("producing {bar:40} {human_pos}/{human_len} acked  {per_sec}")
        {
            bar.set_style(style);
        }
        let (deliveries, deliver) = mpsc::channel(UNCOUNTED_MAX);
        let (count, acked) = watch::channel(0);
        let sender = tokio::spawn(send(producer, flights, partitions, deliveries));
        let counter = tokio::spawn(count_acks(deliver, count, bar.clone()));
        Feed { sender, counter, acked, bar, begun: Instant::now() }
    }

    /// Waits until so many are acked.
    pub(super) async fn acked(&mut self, enough: u64) -> Result<(), Failure> {
        let waited = self.acked.wait_for(|acked| *acked >= enough).await;
        waited.map(drop).map_err(|_| Failure::failed("producing ended early; the node's log says why"))
    }

    pub(super) fn count(&self) -> u64 {
        *self.acked.borrow()
    }

    /// Prints without the bar in between.
    pub(super) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.bar.suspend(print)
    }

    /// Waits until all are acked.
    pub(super) async fn finish(self) -> Result<Fed, ClientError> {
        let sent = self.sender.await;
        let counted = self.counter.await;
        self.bar.finish_and_clear();
        let (Ok(sent), Ok(counted)) = (sent, counted) else {
            return Err(ClientError::misread("a task of the demo failed"));
        };
        sent?;
        Ok(Fed { latency: counted?, took: self.begun.elapsed() })
    }
}

async fn send(
    producer: Producer,
    flights: Arc<Vec<Flight>>,
    partitions: i32,
    deliveries: mpsc::Sender<(Instant, Delivery)>,
) -> Result<(), ClientError> {
    for flight in flights.iter() {
        let headers = flight.headers();
        let record = Record {
            timestamp: Some(flight.timestamp),
            key: flight.key.as_deref().map(str::as_bytes),
            value: Some(flight.value.as_bytes()),
            headers: &headers,
        };
        let delivery = producer.send(partition(flight, partitions), record).await?;
        if deliveries.send((Instant::now(), delivery)).await.is_err() {
            break;
        }
    }
    producer.close().await
}

async fn count_acks(
    mut deliveries: mpsc::Receiver<(Instant, Delivery)>,
    acked: watch::Sender<u64>,
    bar: ProgressBar,
) -> Result<Histogram<u64>, ClientError> {
    let latency = Histogram::new_with_bounds(1, LATENCY_US_MAX, 3);
    let mut latency = latency.map_err(|error| ClientError::misread(error.to_string()))?;
    while let Some((since, delivery)) = deliveries.recv().await {
        delivery.await?;
        latency.saturating_record(u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX).max(1));
        acked.send_modify(|acked| *acked += 1);
        bar.inc(1);
    }
    Ok(latency)
}
