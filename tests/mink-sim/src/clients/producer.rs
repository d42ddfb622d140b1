//! Producers: idempotent ones that repeat until they know, plain ones that do not. To tables with columns they send batches of Arrow.
//!
//! Lives on: the simulation's thread.
//! Owns: its batches that are not acked, in order.
//! Invariants checked: I6 (the first unacked batch of an idempotent producer is never out of order), I7 (by the history).
use crate::clients::Clients;
use crate::history::{BatchId, RECORDS_MAX, Sender};
use crate::machine::Serving;
use futures::future::select;
use mink_record::kafka::{BatchFormat, BatchHeader, Codec};
use mink_router::{AppendError, AppendTicket, FirstSequence, Lost};
use mink_types::{BucketId, TimestampType};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Batches in flight, as Kafka's clients have.
const IN_FLIGHT_MAX: usize = 5;

/// A client hangs up when a batch takes longer.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);

/// A listener waits so long for room before it says that a batch was not taken.
const ROOM_TIMEOUT: Duration = Duration::from_secs(2);

/// Pause before a client connects again.
const RECONNECT: Duration = Duration::from_millis(200);

/// Times that a client connects to get its last batches acked, once it is told to stop.
const LAST_TRIES_MAX: u32 = 300;

/// How a batch was received.
enum Handed {
    Ordered(AppendTicket),
    Refused(AppendError),
    NoRoom,
    Lost,
}

/// Hands a batch over as a listener does: checks, takes bytes, waits for room and for the offset.
async fn hand(clients: &Clients, serving: &Serving, id: BatchId, bucket: BucketId) -> Handed {
    let history = &clients.site.history;
    let bytes = history.bytes(id);
    let Ok(header) = BatchHeader::parse(&bytes) else { return Handed::Lost };
    let before = history.sending(id, clients.site.service.now());
    let (source, permits) = (Arc::clone(&serving.source), serving.permits.clone());
    // As the listeners do: rows have the time of their commit.
    let times = match header.format {
        BatchFormat::Kafka => TimestampType::CreateTime,
        BatchFormat::Arrow => TimestampType::LogAppendTime,
    };
    let service = serving.process.runtime().service();
    let handed = serving.call(async move {
        let permit = permits.take(bytes.len() as u64).await;
        let handing = source.append(bucket, header, bytes.into(), times, FirstSequence::Any, permit);
        let Ok(ticket) = service.timeout(ROOM_TIMEOUT, handing).await else {
            return Handed::NoRoom;
        };
        let Ok(mut ticket) = ticket else { return Handed::Lost };
        match ticket.ordered().await {
            Ok(Ok(_)) => Handed::Ordered(ticket),
            Ok(Err(error)) => Handed::Refused(error),
            Err(Lost) => Handed::Lost,
        }
    });
    let service = &clients.site.service;
    let handed = service.timeout(REQUEST_TIMEOUT, handed).await.ok().flatten().unwrap_or(Handed::Lost);
    match &handed {
        Handed::Ordered(_) => {}
        Handed::Lost => history.count(|counts| counts.lost += 1),
        Handed::Refused(_) | Handed::NoRoom => history.refused(id, before),
    }
    handed
}

/// Waits until a batch is durable, and tells the history.
async fn wait(clients: &Clients, serving: &Serving, id: BatchId, ticket: AppendTicket) -> bool {
    let service = &clients.site.service;
    let durable = serving.call(ticket.durable());
    if let Ok(Some(Ok(appended))) = service.timeout(REQUEST_TIMEOUT, durable).await {
        clients.site.history.acked(id, appended.base_offset, appended.duplicate);
        return true;
    }
    clients.site.history.count(|counts| counts.lost += 1);
    false
}

fn new_batch(clients: &Clients, bucket: BucketId, idempotent: Option<(i64, i32)>) -> BatchId {
    let (dice, plan) = (&clients.site.dice, &clients.site.plan);
    let count = u32::try_from(1 + dice.below(RECORDS_MAX)).unwrap_or(1);
    let bytes = usize::try_from(dice.below(plan.record_bytes)).unwrap_or(0);
    if let Some(id) = clients.site.history.make_rows(Sender { bucket, idempotent }, count, bytes) {
        return id;
    }
    let codec = if dice.one_in(4) { Codec::Lz4 } else { Codec::None };
    clients.site.history.make(Sender { bucket, idempotent }, count, bytes, codec).0
}

/// An idempotent producer of one bucket.
struct Idempotent<'a> {
    clients: &'a Clients,
    bucket: BucketId,
    producer: i64,
    next_sequence: i32,
    /// Not acked, in the order of their sequences.
    unacked: VecDeque<BatchId>,
    /// The log has lost what it knew of this producer, with an object that was damaged.
    forgotten: bool,
}

/// Runs idempotent producers one after another on random buckets until the clients stop, and then until all is acked.
pub(crate) async fn idempotent(clients: Clients) {
    while !clients.stopping() {
        let service = &clients.site.service;
        let (Some(bucket), Some(serving)) = (clients.some_bucket(), clients.site.pick()) else {
            service.sleep(RECONNECT).await;
            continue;
        };
        let admin = Arc::clone(&serving.admin);
        let Some(Ok(producer)) = serving.call(async move { admin.producer_id() }).await else {
            service.sleep(RECONNECT).await;
            continue;
        };
        let unacked = VecDeque::new();
        let mut producer = Idempotent {
            clients: &clients,
            bucket,
            producer: producer.0,
            next_sequence: 0,
            unacked,
            forgotten: false,
        };
        producer.live(20 + clients.site.dice.below(200)).await;
    }
}

impl Idempotent<'_> {
    /// Sends about `batches` batches, and ends when all are acked; sometimes it crashes before.
    async fn live(&mut self, batches: u64) {
        let (site, mut left, mut last_tries) = (&self.clients.site, batches, 0);
        let crashes = site.dice.one_in(4);
        while (left > 0 && !self.clients.stopping()) || !self.unacked.is_empty() {
            if self.forgotten || !self.clients.lives(self.bucket) || (crashes && left < batches / 2) {
                return;
            }
            last_tries += u32::from(self.clients.stopping());
            if last_tries > LAST_TRIES_MAX {
                let waits = self.unacked.len();
                let what = format!("{}: {waits} batches are not acked though all is well", self.bucket);
                return site.history.violated(what);
            }
            if let Some(serving) = site.pick() {
                self.connection(&serving, &mut left).await;
            }
            site.service.sleep(site.dice.between(Duration::ZERO, RECONNECT)).await;
        }
    }

    /// One connection: sends again what is not acked, then new batches, until something goes wrong.
    async fn connection(&mut self, serving: &Serving, left: &mut u64) {
        let site = &self.clients.site;
        let mut flying: VecDeque<(BatchId, AppendTicket)> = VecDeque::new();
        let mut sent = 0;
        loop {
            let hangs_up = site.dice.one_in(200);
            if hangs_up || !self.clients.lives(self.bucket) {
                return;
            }
            let stopping = self.clients.stopping();
            let may_send =
                flying.len() < IN_FLIGHT_MAX && (sent < self.unacked.len() || (*left > 0 && !stopping));
            if may_send && (flying.is_empty() || site.dice.one_in(2)) {
                if sent == self.unacked.len() {
                    self.new_one();
                    *left -= 1;
                    site.service.sleep(site.dice.between(Duration::ZERO, site.plan.pause)).await;
                }
                let Some(id) = self.unacked.get(sent).copied() else { return };
                match hand(self.clients, serving, id, self.bucket).await {
                    Handed::Ordered(ticket) => {
                        flying.push_back((id, ticket));
                        sent += 1;
                    }
                    Handed::Refused(error) => {
                        self.judge(&error, sent == 0);
                        return self.last_acks(serving, flying).await;
                    }
                    Handed::NoRoom => return self.last_acks(serving, flying).await,
                    Handed::Lost => return,
                }
            } else if let Some((id, ticket)) = flying.pop_front() {
                if !wait(self.clients, serving, id, ticket).await {
                    return;
                }
                self.unacked.pop_front();
                sent -= 1;
            } else {
                return;
            }
        }
    }

    fn new_one(&mut self) {
        let id = new_batch(self.clients, self.bucket, Some((self.producer, self.next_sequence)));
        let records = self.clients.site.history.records(id);
        self.next_sequence += i32::try_from(records).unwrap_or(0);
        self.unacked.push_back(id);
    }

    /// What was sent before a refusal is still acked.
    async fn last_acks(&mut self, serving: &Serving, flying: VecDeque<(BatchId, AppendTicket)>) {
        for (id, ticket) in flying {
            if !wait(self.clients, serving, id, ticket).await {
                return;
            }
            self.unacked.pop_front();
        }
    }

    /// A refusal that no client could cure. `first`: everything before this batch was acked.
    fn judge(&mut self, error: &AppendError, first: bool) {
        let fatal = match error {
            AppendError::NotOwner { .. }
            | AppendError::Opening { .. }
            | AppendError::Draining
            | AppendError::TooManyProducers { .. } => false,
            // Where it is lost and the batch behind it is not, it cannot be told from one that was left out.
            AppendError::OutOfOrder { .. } => {
                let history = &self.clients.site.history;
                self.forgotten = first && self.unacked.len() > 1 && history.may_forget_producers(self.bucket);
                first && !self.forgotten
            }
            AppendError::TooLarge { .. } | AppendError::ProducerFenced { .. } => true,
        };
        if fatal {
            self.clients.site.history.violated(format!("I6: {}: {error}", self.bucket));
        }
    }
}

/// Sends batches without a producer id to random buckets until the clients stop: each once.
pub(crate) async fn plain(clients: Clients) {
    let site = &clients.site;
    while !clients.stopping() {
        site.service.sleep(site.dice.between(Duration::ZERO, site.plan.pause * 2)).await;
        let (Some(bucket), Some(serving)) = (clients.some_bucket(), site.pick()) else { continue };
        let id = new_batch(&clients, bucket, None);
        if let Handed::Ordered(ticket) = hand(&clients, &serving, id, bucket).await {
            let hangs_up =
                Box::pin(site.service.sleep(site.dice.between(Duration::ZERO, Duration::from_secs(5))));
            let waits = Box::pin(wait(&clients, &serving, id, ticket));
            drop(select(waits, hangs_up).await);
        }
    }
}
