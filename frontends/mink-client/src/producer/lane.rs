//! The task of one partition: sends batches in order, several in flight, and repeats them in order until each has ended.
//!
//! Lives on: one task per partition.
//! Owns: the window of batches that have not ended, their sequences, the identity they were made under.
//! Invariants: nothing is sent again before everything in flight has been answered or its connection has broken, so no attempt
//! overtakes an earlier one; a repeat has the bytes of the first attempt (I6). A batch is made anew, under a new identity, only when the
//! server has said that it is not stored.
use super::accumulator::{Accumulator, Next};
use super::delivery::BatchEnd;
use super::flight::{Body, Flight, Sent, Verdict};
use super::{ProducerConfig, misuse};
use crate::client::{Client, PAUSE_FIRST, PAUSE_MAX, check};
use crate::connection::{ANSWER_TIMEOUT, Connection};
use crate::error::{ClientError, ErrorKind};
use bytes::Bytes;
use mink_kafka_wire::messages::init_producer_id::InitProducerIdRequest;
use mink_kafka_wire::messages::produce::{
    PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData,
};
use mink_kafka_wire::{ErrorCode, KafkaString, Records};
use mink_record::kafka::ProducerStamp;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// What a server may take before it answers that it could not store a batch, in ms.
const PRODUCE_TIMEOUT_MS: i32 = 30_000;
/// All copies, which is what an ack of Mink means in any case.
const ACKS_ALL: i16 = -1;

/// An idempotent producer's name at the server.
#[derive(Clone, Copy, Debug)]
pub(super) struct Identity {
    id: i64,
    epoch: i16,
}

impl Identity {
    pub(super) async fn ask(client: &Client) -> Result<Identity, ClientError> {
        let request = InitProducerIdRequest {
            transactional_id: None,
            transaction_timeout_ms: 0,
            producer_id: -1,
            producer_epoch: -1,
            ..InitProducerIdRequest::default()
        };
        let request = &request;
        client
            .retrying(|| async move {
                let answer = client.ask(request).await?;
                check(answer.error_code, "a producer id", None)?;
                Ok(Identity { id: answer.producer_id, epoch: answer.producer_epoch })
            })
            .await
    }
}

/// Sequences go from 0 to the greatest `i32`, then from 0 again.
fn sequence_after(sequence: i32, count: i32) -> i32 {
    (i64::from(sequence) + i64::from(count)).rem_euclid(1 << 31).try_into().unwrap_or(0)
}

pub(super) struct Lane {
    client: Client,
    topic: String,
    partition: i32,
    config: Arc<ProducerConfig>,
    records: Arc<Accumulator>,
    /// None until it is asked for (again); never used by a producer that is not idempotent.
    identity: Option<Identity>,
    sequence: i32,
    /// The server has acked a batch of this identity. Before that one batch is in flight at a time: a server that does not know a producer
    /// takes whatever sequence comes first, and would take the second batch where it refuses the first.
    known: bool,
    /// A batch of this identity was given up: those after it may be refused for the gap it leaves.
    gap: bool,
    /// In order of their numbers.
    window: VecDeque<Flight>,
    /// What the window's batches were sent on.
    connection: Option<Arc<Connection>>,
    pause: Duration,
    settled: watch::Sender<u64>,
}

impl Lane {
    pub(super) fn new(
        client: &Client,
        topic: &str,
        partition: i32,
        config: Arc<ProducerConfig>,
        records: Arc<Accumulator>,
        start: (Option<Identity>, i32),
    ) -> (Lane, watch::Receiver<u64>) {
        let (settled, receiver) = watch::channel(0);
        let lane = Lane {
            client: client.clone(),
            topic: topic.into(),
            partition,
            config,
            records,
            identity: start.0,
            sequence: start.1,
            known: false,
            gap: false,
            window: VecDeque::new(),
            connection: None,
            pause: PAUSE_FIRST,
            settled,
        };
        (lane, receiver)
    }

    /// Runs until the producer is closed and everything gathered has ended.
    pub(super) async fn run(mut self) {
        loop {
            let next = self.admit();
            if self.window.is_empty() && matches!(next, Next::Closed) {
                return;
            }
            if let Err(error) = self.transmit().await {
                self.recover(&error).await;
                continue;
            }
            let records = Arc::clone(&self.records);
            let ended = tokio::select! {
                biased;
                ended = answer(self.window.front_mut()) => Some(ended),
                () = due(&next) => None,
                () = records.changed() => None,
            };
            match ended {
                None => {}
                Some(Ok(offset)) => self.stored(offset),
                Some(Err(error)) => self.recover_from(error).await,
            }
        }
    }

    /// Takes batches that are due, as far as the window has room.
    fn admit(&mut self) -> Next {
        while self.window.len() < self.config.in_flight_max {
            match self.records.next(Instant::now()) {
                Next::Batch(batch) => self.window.push_back(Flight::new(batch, self.config.delivery_timeout)),
                next => return next,
            }
        }
        Next::Nothing
    }

    /// Sends what of the window has not been sent.
    async fn transmit(&mut self) -> Result<(), ClientError> {
        let mut at = 0;
        while let Some(flight) = self.window.get(at) {
            if at > 0 && self.config.idempotent && !self.known {
                break;
            }
            if flight.sent.is_some() {
                at += 1;
                continue;
            }
            let Some(bytes) = self.built(at).await? else { continue };
            let connection = self.connection().await?;
            let request = self.request(bytes);
            let answer = connection.begin(&request).await?;
            if let Some(flight) = self.window.get_mut(at) {
                flight.sent = Some(Sent { answer, at: Instant::now() });
            }
        }
        Ok(())
    }

    /// The bytes of a batch of the window. None: it could not be built, has failed for that, and the next took its place.
    async fn built(&mut self, at: usize) -> Result<Option<Bytes>, ClientError> {
        if self.config.idempotent && self.identity.is_none() {
            self.identity = Some(Identity::ask(&self.client).await?);
        }
        let (sequence, codec) = (self.sequence, self.config.codec);
        let stamp = self.identity.filter(|_| self.config.idempotent).map(|identity| ProducerStamp {
            id: identity.id,
            epoch: identity.epoch,
            base_sequence: sequence,
        });
        let Some(flight) = self.window.get_mut(at) else { return Ok(None) };
        let new = !matches!(flight.body, Body::Batch(_));
        match flight.build(codec, stamp) {
            Ok(bytes) => {
                if new {
                    self.sequence = sequence_after(sequence, flight.count);
                }
                Ok(Some(bytes))
            }
            Err(error) => {
                // It has taken no sequence, so it leaves no gap.
                if let Some(flight) = self.window.remove(at) {
                    self.records.note_error(&error);
                    flight.end(Err(error));
                    self.settle();
                }
                Ok(None)
            }
        }
    }

    async fn connection(&mut self) -> Result<Arc<Connection>, ClientError> {
        if let Some(connection) = &self.connection {
            return Ok(Arc::clone(connection));
        }
        let connection = self.client.leader(&self.topic, self.partition).await?;
        self.connection = Some(Arc::clone(&connection));
        Ok(connection)
    }

    fn request(&self, bytes: Bytes) -> ProduceRequest {
        let records = Some(Records::from(bytes));
        let partition = PartitionProduceData { index: self.partition, records };
        ProduceRequest {
            transactional_id: None,
            acks: ACKS_ALL,
            timeout_ms: PRODUCE_TIMEOUT_MS,
            topic_data: vec![TopicProduceData {
                name: KafkaString::from(self.topic.as_str()),
                partition_data: vec![partition],
                ..TopicProduceData::default()
            }],
        }
    }

    fn stored(&mut self, offset: i64) {
        if let Some(flight) = self.window.pop_front() {
            flight.end(Ok(offset));
        }
        self.known = true;
        self.pause = PAUSE_FIRST;
        self.settle();
    }

    /// Tells those who flush how far everything has ended.
    fn settle(&self) {
        let below = self.window.front().map_or_else(|| self.records.taken_below(), |flight| flight.number);
        self.settled.send_replace(below);
    }

    /// As `recover`, when it is the answer to the first batch of the window that was bad.
    async fn recover_from(&mut self, error: ClientError) {
        if matches!(error.kind(), ErrorKind::Timeout | ErrorKind::Protocol)
            && let Some(connection) = &self.connection
        {
            connection.close();
        }
        if let Some(flight) = self.window.front_mut() {
            flight.sent = None;
        }
        self.judge_all(Some(error)).await;
    }

    /// An attempt could not be made.
    async fn recover(&mut self, error: &ClientError) {
        self.judge_all(None).await;
        self.pause_after(error).await;
    }

    /// Waits for everything in flight, judges each, and leaves in the window, unsent, what is to be sent again.
    async fn judge_all(&mut self, first: Option<ClientError>) {
        let mut first = first.map(Err);
        let (mut again, mut gap_seen) = (None, false);
        for mut flight in std::mem::take(&mut self.window) {
            let ended = match (first.take(), flight.sent.take()) {
                (Some(ended), _) => ended,
                (None, Some(mut sent)) => self.drain(&mut sent).await,
                (None, None) => {
                    self.window.push_back(flight);
                    continue;
                }
            };
            let behind = self.config.idempotent && (self.gap || !self.window.is_empty());
            let out_of_order =
                |error: &ClientError| error.code() == Some(ErrorCode::OutOfOrderSequenceNumber);
            match flight.judge(ended, behind) {
                Verdict::Stored(offset) => {
                    self.known = true;
                    flight.end(Ok(offset));
                }
                Verdict::Failed(error) => self.give_up(flight, error),
                Verdict::Again(error) => {
                    gap_seen |= self.gap && out_of_order(&error);
                    again.get_or_insert(error);
                    self.window.push_back(flight);
                }
            }
        }
        self.settle();
        if gap_seen && self.window.iter().all(|flight| !flight.unknown) {
            self.begin_anew();
        } else if let Some(error) = again {
            self.pause_after(&error).await;
        }
    }

    /// The end of an attempt whose predecessors have ended.
    async fn drain(&self, sent: &mut Sent) -> BatchEnd {
        let ended = answered(sent).await;
        if let (Err(ErrorKind::Timeout), Some(connection)) =
            (ended.as_ref().map_err(ClientError::kind), &self.connection)
        {
            connection.close();
        }
        ended
    }

    /// A batch has failed for good. Its sequences stay unused, which a server may hold against those after it.
    fn give_up(&mut self, flight: Flight, error: ClientError) {
        self.gap = self.config.idempotent;
        self.records.note_error(&error);
        flight.end(Err(error));
    }

    /// Nothing in the window is stored, and under the old identity nothing ever will be.
    fn begin_anew(&mut self) {
        (self.identity, self.sequence, self.known, self.gap) = (None, 0, false, false);
        for flight in &mut self.window {
            if let Body::Batch(bytes) = &flight.body {
                flight.body = Body::Orphan(bytes.clone());
            }
        }
    }

    /// Gives up what is too old, forgets who leads, and waits a little.
    async fn pause_after(&mut self, error: &ClientError) {
        let now = Instant::now();
        let hopeless = !error.is_retriable() && error.code() != Some(ErrorCode::OutOfOrderSequenceNumber);
        while let Some(flight) = self.window.pop_front() {
            if flight.deadline > now && !hopeless {
                self.window.push_front(flight);
                break;
            }
            let error = flight.given_up(error);
            self.give_up(flight, error);
        }
        self.settle();
        self.connection = None;
        self.client.forget(&self.topic).await;
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.records.abandon();
    }
}

/// The answer to the first batch of the window; never, if there is none.
async fn answer(flight: Option<&mut Flight>) -> BatchEnd {
    match flight.and_then(|flight| flight.sent.as_mut()) {
        Some(sent) => answered(sent).await,
        None => std::future::pending().await,
    }
}

async fn answered(sent: &mut Sent) -> BatchEnd {
    match tokio::time::timeout_at(sent.at + ANSWER_TIMEOUT, sent.answer.answer()).await {
        Ok(answer) => base_offset(&answer?),
        Err(_) => Err(ClientError::new(ErrorKind::Timeout, format!("no answer within {ANSWER_TIMEOUT:?}"))),
    }
}

fn base_offset(answer: &ProduceResponse) -> BatchEnd {
    let topic = answer.responses.first();
    let partition = topic.and_then(|topic| topic.partition_responses.first());
    let partition = partition
        .ok_or_else(|| ClientError::new(ErrorKind::Protocol, "an answer to produce without a partition"))?;
    let words = partition.error_message.as_ref().map(KafkaString::as_str);
    check(partition.error_code, "produce", words)?;
    if partition.base_offset < 0 {
        return Err(misuse("the server gave no offset"));
    }
    Ok(partition.base_offset)
}

/// Until the batch that lingers is due; for ever, if none lingers.
async fn due(next: &Next) {
    match next {
        Next::At(at) => tokio::time::sleep_until(*at).await,
        Next::Batch(_) | Next::Nothing | Next::Closed => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_wrap_after_the_greatest_to_0() {
        assert_eq!(sequence_after(0, 7), 7);
        assert_eq!(sequence_after(i32::MAX, 1), 0);
        assert_eq!(sequence_after(i32::MAX - 2, 5), 2);
    }
}
