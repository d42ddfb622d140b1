//! Produce: checks each batch, hands it to its bucket, lets the connection go on once all are ordered, answers once all are
//! durable.
//!
//! Lives on: the service runtime.
//! Invariants: I7: a batch that was handed over is acked, refused before it was ordered, or its connection closes; only if its topic
//! was deleted is it refused later, for then nobody will ever read it (K-26). Time-outs end only the wait for room. I7: what was sent behind a curable refusal of the same partition fails too. K-9 and its kin
//! are the log's.
use super::produce_rows::Asked;
use super::record_errors::RecordErrors;
use super::{Call, encode, keyless, produce_rows};
use crate::connection::{Answer, Answering, later, ready};
use crate::counters::Closed;
use crate::leaders::Leaders;
use crate::node::Node;
use crate::refusals::Refusals;
use crate::topic::{Refusal, TopicRef};
use crate::{error_code, topic};
use futures::future::join_all;
use mink_api::Broker;
use mink_kafka_wire::ErrorCode;
use mink_kafka_wire::messages::produce::{
    BatchIndexAndErrorMessage, LeaderIdAndEpoch, NodeEndpoint, PartitionProduceData,
    PartitionProduceResponse, ProduceRequest, ProduceResponse, TopicProduceResponse,
};
use mink_metadata::Table;
use mink_record::kafka::{BatchHeader, Codec, ProducedLimits, TimestampType, check_produced};
use mink_router::{AppendTicket, Appended, BatchBytes, BytePermit, FirstSequence, Lost};
use mink_types::BucketId;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// First version whose clients understand zstd.
const ZSTD_FROM: i16 = 7;

/// First version whose clients are told where else to go.
const LEADERS_FROM: i16 = 10;

/// First version that names topics by id.
const BY_ID_FROM: i16 = 13;

/// Batches from this size on are checked with a pause between them, so that a large request does not hold its thread.
const PAUSE_BYTES: usize = 256 << 10;

/// A batch that may be appended.
pub(super) struct Checked {
    pub(super) bucket: BucketId,
    pub(super) timestamps: TimestampType,
    pub(super) header: BatchHeader,
    pub(super) batch: BatchBytes,
    /// What its bytes have paid; none if the request's frame has paid for them.
    pub(super) paid: Option<BytePermit>,
}

/// Which time an answer tells.
#[derive(Clone, Copy)]
struct Times {
    timestamps: TimestampType,
    /// The largest of the batch, as its producer states it.
    stated: i64,
}

impl Times {
    /// As Kafka answers: the time of appending where records bear it, and for a repeat the largest time of the batch that is there.
    fn answered(self, appended: &Appended) -> i64 {
        match self.timestamps {
            TimestampType::LogAppendTime => appended.commit_time.0,
            TimestampType::CreateTime if appended.duplicate => self.stated,
            TimestampType::CreateTime => -1,
        }
    }
}

/// What becomes of one partition of the request.
enum Outcome {
    Refused(Refused),
    /// The batch was handed over and has its offset.
    Ordered(Ordered),
}

/// A batch that waits to be durable.
struct Ordered {
    ticket: AppendTicket,
    bucket: BucketId,
    bytes: usize,
    times: Times,
}

/// A partition of the request, in its order.
struct Partition {
    topic: usize,
    index: i32,
    outcome: Outcome,
}

/// Why a partition is refused, and whether its successors must be too.
pub(super) struct Refused {
    pub(super) refusal: Refusal,
    curable: bool,
    /// What is wrong with single records of the batch.
    records: Vec<BatchIndexAndErrorMessage>,
}

impl Refused {
    pub(super) fn for_records(refusal: Refusal, records: Vec<BatchIndexAndErrorMessage>) -> Refused {
        Refused { refusal, curable: false, records }
    }

    pub(super) fn curable(refusal: Refusal) -> Refused {
        Refused { refusal, curable: true, records: Vec::new() }
    }
}

pub(super) fn for_good(code: ErrorCode, why: impl Into<String>) -> Refused {
    Refused { refusal: Refusal::new(code, why), curable: false, records: Vec::new() }
}

pub(super) async fn produce(call: &mut Call<'_>, request: ProduceRequest) -> Answering {
    let acks = request.acks;
    let timeout = Duration::from_millis(u64::try_from(request.timeout_ms).unwrap_or(0));
    let now = Instant::now();
    let deadline = now.checked_add(timeout).unwrap_or(now);
    let by_id = call.version >= BY_ID_FROM;
    let named = request.topic_data.iter();
    let mut topics: Vec<TopicRef> =
        named.map(|topic| TopicRef::new(by_id, topic.name.clone(), topic.topic_id)).collect();
    let frame_goes = have_rows(call.node, &topics);
    if frame_goes {
        for topic in &mut topics {
            *topic = topic.detached();
        }
    }
    let judged = judge(call, &topics, request, Asked { deadline, frame_goes }).await;
    let handed = hand_over(call, judged, deadline).await;
    let Ok(partitions) = ordered(call, &topics, handed).await else {
        return ready(Answer::Close(Closed::Lost));
    };
    if acks == 0 {
        return unacknowledged(call, &partitions);
    }
    let (version, correlation) = (call.version, call.correlation);
    let settling =
        Settling { node: Arc::clone(call.node), refusals: Arc::clone(call.refusals), request: call.number };
    later(async move {
        let mut answers: Vec<Vec<PartitionProduceResponse>> = topics.iter().map(|_| Vec::new()).collect();
        for Partition { topic, index, outcome } in partitions {
            let answer = match outcome {
                Outcome::Refused(why) => {
                    settling.node.counters.partition_error();
                    refused(index, why.refusal, why.records)
                }
                Outcome::Ordered(ordered) => {
                    let Some(answer) = settling.settle(ordered, topics.get(topic), index).await else {
                        return Answer::Close(Closed::Lost);
                    };
                    answer
                }
            };
            if let Some(topic) = answers.get_mut(topic) {
                topic.push(answer);
            }
        }
        let node_endpoints = if version >= LEADERS_FROM {
            name_leaders(&settling.node, &topics, &mut answers)
        } else {
            Vec::new()
        };
        let responses = topics.into_iter().zip(answers).map(|(topic, partition_responses)| {
            let (name, topic_id) = topic.into_parts();
            TopicProduceResponse { name, topic_id, partition_responses }
        });
        let response =
            ProduceResponse { responses: responses.collect(), node_endpoints, ..ProduceResponse::default() };
        encode(version, correlation, &response)
    })
}

/// Whether the records of all these topics become rows.
fn have_rows(node: &Node, topics: &[TopicRef]) -> bool {
    let state = node.admin.state();
    let has_rows = |topic: &TopicRef| {
        topic.table(&state, &node.config.kafka_database).is_ok_and(|table| topic::has_rows(&table.options))
    };
    !topics.is_empty() && topics.iter().all(has_rows)
}

/// Tells in each refusal for want of a leader where that one is, and gives their addresses.
fn name_leaders(
    node: &Node,
    topics: &[TopicRef],
    answers: &mut [Vec<PartitionProduceResponse>],
) -> Vec<NodeEndpoint> {
    let mut leaders = Leaders::new(node);
    for (topic, answers) in topics.iter().zip(answers) {
        for answer in answers {
            let code = ErrorCode::from_code(answer.error_code).unwrap_or(ErrorCode::None);
            if let Some(leader) = leaders.instead(code, topic, answer.index) {
                answer.current_leader = LeaderIdAndEpoch { leader_id: leader.id, leader_epoch: leader.epoch };
            }
        }
    }
    let endpoint = |(node_id, broker): (i32, &Broker)| NodeEndpoint {
        node_id,
        host: broker.host.as_str().into(),
        port: i32::from(broker.port),
        rack: None,
    };
    leaders.endpoints().map(endpoint).collect()
}

/// What an answer needs once its request is no longer at hand.
struct Settling {
    node: Arc<Node>,
    refusals: Arc<Mutex<Refusals>>,
    /// The request's number on its connection.
    request: u64,
}

impl Settling {
    /// The answer for a batch that was ordered; none if nobody knows what became of it.
    async fn settle(
        &self,
        ordered: Ordered,
        topic: Option<&TopicRef>,
        index: i32,
    ) -> Option<PartitionProduceResponse> {
        if let Ok(appended) = ordered.ticket.durable().await {
            self.node.counters.produced(ordered.bytes);
            return Some(acked(index, &appended, ordered.times));
        }
        let refusal = deleted(&self.node, ordered.bucket, topic)?;
        if let Some(topic) = topic {
            // What is behind it must not get into a new topic of the name before it.
            let mut refusals = self.refusals.lock().unwrap_or_else(PoisonError::into_inner);
            refusals.note(topic, index, refusal.code, self.request);
        }
        self.node.counters.partition_error();
        Some(refused(index, refusal, Vec::new()))
    }
}

/// The refusal of a batch whose fate nobody told, if its topic was deleted: as this view of the log has no such table, none later has
/// (K-26), and no reader will ever see the batch.
fn deleted(node: &Node, bucket: BucketId, topic: Option<&TopicRef>) -> Option<Refusal> {
    let gone = node.admin.state().table(bucket.table).is_none();
    let why = "the topic was deleted before the batch was durable; nothing of it is kept";
    let code = topic.map_or(ErrorCode::UnknownTopicOrPartition, TopicRef::unknown);
    gone.then(|| Refusal::new(code, why))
}

/// A partition of the request with the verdict on its batch.
struct Judged {
    topic: usize,
    name: TopicRef,
    index: i32,
    verdict: Result<Checked, Refused>,
}

async fn judge(call: &Call<'_>, topics: &[TopicRef], request: ProduceRequest, asked: Asked) -> Vec<Judged> {
    let state = call.node.admin.state();
    let whole = judge_request(&request);
    let mut seen = BTreeSet::new();
    let mut errors = RecordErrors::default();
    let mut judged = Vec::new();
    for (at, (name, topic)) in topics.iter().zip(request.topic_data).enumerate() {
        let table = name.table(&state, &call.node.config.kafka_database);
        for partition in topic.partition_data {
            let index = partition.index;
            let bytes = partition.records.as_ref().map_or(0, mink_kafka_wire::Records::len);
            let held = call.refusals().held(name, index);
            let verdict = match (&whole, held) {
                (Err((code, why)), _) => Err(for_good(*code, *why)),
                (Ok(()), Some(code)) => Err(Refused::curable(Refusal::new(
                    code,
                    "a batch before this one was refused; send both again",
                ))),
                (Ok(()), None) => judge_batch(call, table, &mut seen, partition),
            };
            let verdict = match (verdict, table) {
                (Ok(checked), Ok(table)) if table.options.cleanup.compacts() => {
                    keyless::with_keys(call.node, table, index, checked, &mut errors).await
                }
                (Ok(checked), Ok(table)) if topic::has_rows(&table.options) => {
                    produce_rows::rows(call.node, table, index, checked, &mut errors, asked).await
                }
                (verdict, _) => verdict,
            };
            if let (Err(refused), Ok(table)) = (&verdict, table) {
                produce_rows::tell_of_refusal(call.node, table, index, &refused.refusal);
            }
            judged.push(Judged { topic: at, name: name.clone(), index, verdict });
            if bytes >= PAUSE_BYTES {
                tokio::task::yield_now().await;
            }
        }
    }
    judged
}

/// What refuses the request as a whole.
fn judge_request(request: &ProduceRequest) -> Result<(), (ErrorCode, &'static str)> {
    if !matches!(request.acks, -1..=1) {
        return Err((ErrorCode::InvalidRequiredAcks, "acks is neither 0, 1 nor -1 (all)"));
    }
    if request.transactional_id.is_some() {
        return Err((
            ErrorCode::InvalidRequest,
            "transactions are not supported; use an idempotent producer without transactional.id",
        ));
    }
    Ok(())
}

fn judge_batch(
    call: &Call<'_>,
    table: Result<&Table, ErrorCode>,
    seen: &mut BTreeSet<BucketId>,
    partition: PartitionProduceData,
) -> Result<Checked, Refused> {
    let found = table.and_then(|table| {
        let bucket = topic::bucket(table, partition.index);
        bucket.map(|bucket| (table, bucket)).ok_or(ErrorCode::UnknownTopicOrPartition)
    });
    // It may be about to exist, and clients ask again: so what is behind it must wait too.
    let (table, bucket) =
        found.map_err(|code| Refused::curable(Refusal::new(code, "there is no such topic or partition")))?;
    let records = partition
        .records
        .ok_or_else(|| for_good(ErrorCode::InvalidRequest, "the partition has no records"))?;
    if !seen.insert(bucket) {
        return Err(for_good(
            ErrorCode::InvalidRequest,
            "the request names this partition twice; send one batch for each",
        ));
    }
    let limits = ProducedLimits {
        batch_bytes_max: usize::try_from(table.options.batch_bytes_max).unwrap_or(usize::MAX),
        inflated_bytes_max: usize::try_from(call.node.config.limits.inflated_bytes_max).unwrap_or(usize::MAX),
    };
    // One piece as it comes off the wire: nothing is copied.
    let batch = records.into_bytes();
    let header = check_produced(&batch, limits)
        .map_err(|error| for_good(error_code::of_record(error.kind()), error.message()))?;
    if header.attributes.codec() == Codec::Zstd && call.version < ZSTD_FROM {
        return Err(for_good(
            ErrorCode::UnsupportedCompressionType,
            "zstd needs Produce version 7 or later; use a newer client or another codec",
        ));
    }
    Ok(Checked {
        bucket,
        timestamps: topic::timestamps(&table.options),
        header,
        batch: batch.into(),
        paid: None,
    })
}

/// A batch on its way, with what is needed to answer for it.
struct Handed {
    topic: usize,
    name: TopicRef,
    index: i32,
    bytes: usize,
    /// Where it went, its times, and the ticket, unless that was lost on the way.
    ticket: Result<(BucketId, Times, Result<AppendTicket, Lost>), Refused>,
}

/// Hands every accepted batch to its bucket, waiting for room until the request's time is over. A batch that found no room by
/// then was not handed over, so it may be refused.
async fn hand_over(call: &mut Call<'_>, judged: Vec<Judged>, deadline: Instant) -> Vec<Handed> {
    let source = &call.node.source;
    let handing = judged.into_iter().map(|judged| {
        let Judged {
            topic,
            name,
            index,
            verdict,
        } = judged;
        let verdict = verdict.map(|mut checked| {
            let of_frame = || call.permit.split(checked.batch.len() as u64);
            let permit = checked.paid.take().unwrap_or_else(of_frame);
            (checked, permit)
        });
        async move {
            let (bytes, ticket) = match verdict {
                Err(refused) => (0, Err(refused)),
                Ok((checked, permit)) => {
                    let Checked { bucket, timestamps, header, batch, .. } = checked;
                    let bytes = batch.len();
                    let times = Times { timestamps, stated: header.max_timestamp };
                    let append = source.append(bucket, header, batch, timestamps, FirstSequence::Any, permit);
                    let ticket = timeout_at(deadline, append).await.map_err(|_elapsed| {
                        Refused::curable(Refusal::new(
                            ErrorCode::RequestTimedOut,
                            "the partition had no room for the batch within the request's time; nothing of it was written",
                        ))
                    });
                    (bytes, ticket.map(|ticket| (bucket, times, ticket)))
                }
            };
            Handed {
                topic,
                name,
                index,
                bytes,
                ticket,
            }
        }
    });
    join_all(handing).await
}

/// Waits until every batch that was handed over has its offset or was refused.
async fn ordered(
    call: &mut Call<'_>,
    topics: &[TopicRef],
    handed: Vec<Handed>,
) -> Result<Vec<Partition>, Lost> {
    let mut partitions = Vec::with_capacity(handed.len());
    let mut lost = false;
    for handed in handed {
        debug_assert!(topics.get(handed.topic) == Some(&handed.name), "a partition keeps its topic");
        let outcome = match handed.ticket {
            Ok((bucket, times, Ok(mut ticket))) => match ticket.ordered().await {
                Ok(Ok(_offset)) => {
                    Ok(Outcome::Ordered(Ordered { ticket, bucket, bytes: handed.bytes, times }))
                }
                Ok(Err(error)) => Err(Some(Refused {
                    refusal: Refusal::new(error_code::of_append(&error), error.to_string()),
                    curable: error_code::append_is_curable(&error),
                    records: Vec::new(),
                })),
                Err(Lost) => Err(deleted(call.node, bucket, Some(&handed.name)).map(Refused::curable)),
            },
            Ok((bucket, _, Err(Lost))) => {
                Err(deleted(call.node, bucket, Some(&handed.name)).map(Refused::curable))
            }
            Err(refused) => Err(Some(refused)),
        };
        let outcome = match outcome {
            Ok(outcome) => Ok(outcome),
            Err(Some(refused)) => Err(refused),
            Err(None) => {
                lost = true;
                continue;
            }
        };
        let outcome = outcome.unwrap_or_else(|refused| {
            if refused.curable {
                call.refusals().note(&handed.name, handed.index, refused.refusal.code, call.number);
            }
            Outcome::Refused(refused)
        });
        partitions.push(Partition { topic: handed.topic, index: handed.index, outcome });
    }
    if lost { Err(Lost) } else { Ok(partitions) }
}

/// A request without acks has no answer; as from Kafka, a client learns of a refusal by the end of its connection.
fn unacknowledged(call: &Call<'_>, partitions: &[Partition]) -> Answering {
    let mut failed = false;
    for partition in partitions {
        match &partition.outcome {
            Outcome::Ordered(ordered) => call.node.counters.produced(ordered.bytes),
            Outcome::Refused(Refused { refusal, .. }) => {
                failed = true;
                call.node.counters.partition_error();
                tracing::debug!(code = refusal.code.name(), why = %refusal.why, "a batch without acks was refused");
            }
        }
    }
    ready(if failed { Answer::Close(Closed::Unacknowledged) } else { Answer::Nothing })
}

fn acked(index: i32, appended: &Appended, times: Times) -> PartitionProduceResponse {
    PartitionProduceResponse {
        index,
        base_offset: appended.base_offset.kafka(),
        log_append_time_ms: times.answered(appended),
        log_start_offset: appended.log_start.kafka(),
        ..PartitionProduceResponse::default()
    }
}

fn refused(
    index: i32,
    refusal: Refusal,
    record_errors: Vec<BatchIndexAndErrorMessage>,
) -> PartitionProduceResponse {
    PartitionProduceResponse {
        index,
        error_code: refusal.code.code(),
        base_offset: -1,
        record_errors,
        error_message: Some(refusal.why.into()),
        ..PartitionProduceResponse::default()
    }
}
