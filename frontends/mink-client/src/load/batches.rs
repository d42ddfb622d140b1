//! A closed loop of whole batches: what is outstanding is a number of them, and the next one is gathered when there is room for it.
//!
//! Lives on: one task per connection.
//! Invariants: a record costs its encoding and no more, so that this command is not what is measured.
use super::acks::{Group, Offered};
use super::contents::Contents;
use super::ending::Ending;
use super::pace::Clock;
use super::tally::Tally;
use crate::error::{ClientError, ErrorKind};
use crate::producer::Producer;
use mink_record::kafka::{BatchBuilder, RecordRef};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// What a record without key and headers takes in a batch beside its value, at most.
pub(super) const FRAMING_MAX: usize = 24;

/// What one connection sends, to one partition after the other.
#[derive(Debug)]
pub(super) struct Batches {
    pub(super) partitions: Vec<i32>,
    pub(super) records: u64,
    pub(super) batch_bytes: usize,
    /// Of the producer's buffer, for each batch.
    pub(super) room_bytes: usize,
    /// The longest.
    pub(super) value_bytes_max: usize,
    pub(super) ending: Ending,
}

impl Batches {
    pub(super) async fn offer(
        mut self,
        producer: &Producer,
        mut contents: Contents,
        groups: &mpsc::Sender<Group>,
        tally: &Tally,
    ) -> Result<(), ClientError> {
        let clock = Clock::now();
        let partitions = std::mem::take(&mut self.partitions);
        for partition in partitions.into_iter().cycle() {
            let since = Instant::now();
            if self.records == 0 {
                break;
            }
            if let Some(over) = self.ending.over_since(since) {
                tally.over(over);
                break;
            }
            // A server that takes nothing leaves no room; the load's time ends all the same.
            let room = tokio::select! {
                biased;
                room = producer.room(self.room_bytes) => room?,
                over = self.ending.over() => {
                    tally.over(over);
                    break;
                }
            };
            let counts = tally.counts(since);
            let most = if counts { self.records } else { u64::MAX };
            let (batch, records, bytes) = self.fill(&mut contents, clock.ms(since), most)?;
            self.records -= if counts { records } else { 0 };
            let mut group = Group::new(producer.send_batch(partition, batch, room)?, since);
            group.add(Offered { since, records, bytes, counts });
            // It ends early only by a fault, which whoever waits for it tells.
            drop(groups.send(group).await);
        }
        Ok(())
    }

    /// A batch, the number of its records and the bytes of their values.
    fn fill(
        &self,
        contents: &mut Contents,
        timestamp: i64,
        most: u64,
    ) -> Result<(BatchBuilder, u64, u64), ClientError> {
        let mut batch = BatchBuilder::with_capacity(self.batch_bytes);
        let (mut records, mut bytes) = (0, 0);
        loop {
            let (_, value) = contents.next();
            let record = RecordRef { timestamp, value: Some(value), ..RecordRef::default() };
            batch.push(record).map_err(|error| ClientError::new(ErrorKind::Misuse, error.to_string()))?;
            records += 1;
            bytes += value.len() as u64;
            if records >= most || batch.size() + self.value_bytes_max + FRAMING_MAX > self.batch_bytes {
                return Ok((batch, records, bytes));
            }
        }
    }
}
