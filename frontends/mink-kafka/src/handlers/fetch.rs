//! Fetch: reads, waits for more without polling, answers with the stored bytes as they are.
//!
//! Lives on: the service runtime.
//! Invariants: I3 (only what a bucket shows below its high watermark), I20 (an answer's memory is held by a permit until the
//! client has taken it, a batch beyond it too), P-18 and P-25 (whole batches, partitions in the order asked, or of the session, one
//! batch for the request and not for each partition: both kept by the log source).
use super::fetch_rows::{Answers, Reading, STORED_PART, to_records};
use super::{Call, encode};
use crate::answer_permits::{AnswerMemory, AnswerShare};
use crate::connection::{Answer, Answering, later};
use crate::fetch_sessions::{Asking, FetchContext, Told, Wanted};
use crate::leaders::Leaders;
use crate::node::Node;
use crate::topic::TopicRef;
use crate::{error_code, topic};
use futures::FutureExt;
use mink_api::Broker;
use mink_kafka_wire::messages::fetch::{
    FetchPartition, FetchRequest, FetchResponse, FetchableTopicResponse, LeaderIdAndEpoch, NodeEndpoint,
    PartitionData,
};
use mink_kafka_wire::{ErrorCode, Records};
use mink_metadata::Table;
use mink_router::{Read, ReadAnswer, ReadsAnswer, WatchedOffset};
use mink_types::Offset;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Frames that hold less than this beyond what is needed of them are kept until the answer.
const LET_GO_FROM: u64 = 8 << 10;

/// Longest wait that a client may ask for.
const WAIT_MAX: Duration = Duration::from_mins(5);

const READ_COMMITTED: i8 = 1;
/// Replica id of a consumer, and of a debugging tool; others would be brokers.
const CONSUMER: i32 = -1;
const DEBUGGING: i32 = -2;
/// First version that has an error code, and sessions.
const SESSIONS_FROM: i16 = 7;
/// First version that names topics by id.
const BY_ID_FROM: i16 = 13;
/// First version in which a replica says who it is in a struct of its own.
const REPLICA_STATE_FROM: i16 = 15;
/// First version whose clients are told where else to go.
const LEADERS_FROM: i16 = 16;

/// A request, resolved.
struct Asked {
    context: FetchContext,
    /// Partitions in the order of the answer.
    partitions: Vec<(TopicRef, i32, Place)>,
    reads: Vec<Reading>,
    bytes_max: u32,
    bytes_min: usize,
    deadline: Instant,
    read_committed: bool,
    /// Whether nothing of it lies in the frame any more.
    detached: bool,
}

impl Asked {
    /// Lets go of the frame, in which names lie, and of what was read with it: it may be long until the answer.
    fn detach(&mut self) {
        // A session's names are its own.
        if std::mem::replace(&mut self.detached, true)
            || matches!(self.context, FetchContext::Incremental { .. })
        {
            return;
        }
        let mut last: Option<TopicRef> = None;
        for (topic, _, _) in &mut self.partitions {
            let detached = last.take().filter(|last| last == topic).unwrap_or_else(|| topic.detached());
            topic.clone_from(&detached);
            last = Some(detached);
        }
    }
}

/// Where a partition's answer comes from: a read by its place among them, or at once.
#[derive(Clone, Copy)]
enum Place {
    Read(usize),
    Refused(ErrorCode),
}

pub(super) fn fetch(call: &mut Call<'_>, request: FetchRequest) -> Answering {
    if let Err(code) = judge(call.version, &request) {
        return refuse(call, request, code);
    }
    let node = Arc::clone(call.node);
    let limits = Limits::of(&node, call.answers, &request);
    let (context, wanted) = match begin(call, request) {
        Ok(begun) => begun,
        Err(code) => {
            return call.answer(&FetchResponse { error_code: code.code(), ..FetchResponse::default() });
        }
    };
    let wanted = let_go(call, wanted);
    let mut asked = resolve(&node, context, wanted, limits);
    let (version, correlation, ends) = (call.version, call.correlation, call.ends.clone());
    let share = call.answers.clone();
    later(async move {
        let mut ends = ends;
        match read(&node, &share, &mut asked, &mut ends).await {
            Some((answers, memory)) => {
                let response = respond(&node, version, asked, answers);
                match encode(version, correlation, &response) {
                    Answer::Send { frame, .. } => Answer::Send { frame, memory: Some(memory) },
                    other => other,
                }
            }
            // The connection ends while there is no memory for its answer.
            None => Answer::Nothing,
        }
    })
}

fn judge(version: i16, request: &FetchRequest) -> Result<(), ErrorCode> {
    let replica =
        if version >= REPLICA_STATE_FROM { request.replica_state.replica_id } else { request.replica_id };
    if replica == CONSUMER || replica == DEBUGGING { Ok(()) } else { Err(ErrorCode::InvalidRequest) }
}

/// Refuses a request as a whole. Before sessions it has no error code of its own.
fn refuse(call: &Call<'_>, request: FetchRequest, code: ErrorCode) -> Answering {
    if call.version >= SESSIONS_FROM {
        return call.answer(&FetchResponse { error_code: code.code(), ..FetchResponse::default() });
    }
    let topics = request.topics.into_iter();
    let responses = topics.map(|topic| FetchableTopicResponse {
        topic: topic.topic,
        partitions: topic
            .partitions
            .iter()
            .map(|partition| refused(partition.partition, code, false))
            .collect(),
        ..FetchableTopicResponse::default()
    });
    call.answer(&FetchResponse { responses: responses.collect(), ..FetchResponse::default() })
}

/// The partitions that are to be fetched: those of the request, or of its session.
fn begin(call: &Call<'_>, request: FetchRequest) -> Result<(FetchContext, Vec<Wanted>), ErrorCode> {
    let node = call.node;
    let asking = Asking {
        by_id: call.version >= BY_ID_FROM,
        session_id: request.session_id,
        session_epoch: request.session_epoch,
        topics: request.topics,
        forgotten: request.forgotten_topics_data,
    };
    let begun = node.sessions.begin(asking, || node.service.random_u64());
    if request.session_epoch <= 0 || begun.is_err() {
        node.counters.fetch_sessions(node.sessions.counts());
    }
    begun
}

/// Lets go of a frame of which little is still needed: it may be long until the answer. Names lie in the frame until then.
fn let_go(call: &mut Call<'_>, wanted: Vec<Wanted>) -> Vec<Wanted> {
    let names = wanted.iter().map(|wanted| wanted.topic.name_bytes()).sum::<usize>();
    let kept = (names + wanted.len() * size_of::<Wanted>()) as u64;
    let held = call.permit.bytes();
    if held < 2 * kept + LET_GO_FROM {
        return wanted;
    }
    drop(call.permit.split(held - kept));
    let detach = |wanted: Wanted| Wanted { topic: wanted.topic.detached(), ..wanted };
    wanted.into_iter().map(detach).collect()
}

/// What a request as a whole allows.
#[derive(Clone, Copy)]
struct Limits {
    bytes_max: u32,
    bytes_min: usize,
    deadline: Instant,
    read_committed: bool,
}

impl Limits {
    fn of(node: &Node, share: &AnswerShare, request: &FetchRequest) -> Limits {
        let budget = share.answer_bytes_max();
        let bytes_max = u32::try_from(request.max_bytes)
            .unwrap_or(0)
            .min(node.config.limits.fetch_bytes_max)
            .min(u32::try_from(budget).unwrap_or(u32::MAX));
        let wait = Duration::from_millis(u64::try_from(request.max_wait_ms).unwrap_or(0)).min(WAIT_MAX);
        Limits {
            bytes_max,
            // More than may be sent will never be there.
            bytes_min: usize::try_from(request.min_bytes)
                .unwrap_or(0)
                .min(usize::try_from(bytes_max).unwrap_or(usize::MAX)),
            deadline: Instant::now() + wait,
            read_committed: request.isolation_level == READ_COMMITTED,
        }
    }
}

fn resolve(node: &Node, context: FetchContext, wanted: Vec<Wanted>, limits: Limits) -> Asked {
    let state = node.admin.state();
    let mut reads = Vec::with_capacity(wanted.len());
    let mut partitions = Vec::with_capacity(wanted.len());
    // Neighbours mostly belong to one topic.
    let mut last: Option<(TopicRef, Result<&Table, ErrorCode>)> = None;
    for Wanted { topic, partition } in wanted {
        let table = match &last {
            Some((known, table)) if *known == topic => *table,
            _ => topic.table(&state, &node.config.kafka_database),
        };
        let place = match table.and_then(|table| read_of(table, &partition)) {
            Ok(read) => {
                reads.push(read);
                Place::Read(reads.len() - 1)
            }
            Err(code) => Place::Refused(code),
        };
        partitions.push((topic.clone(), partition.partition, place));
        last = Some((topic, table));
    }
    let Limits { bytes_max, bytes_min, deadline, read_committed } = limits;
    let detached = false;
    Asked { context, partitions, reads, bytes_max, bytes_min, deadline, read_committed, detached }
}

fn read_of(table: &Table, partition: &FetchPartition) -> Result<Reading, ErrorCode> {
    let bucket = topic::bucket(table, partition.partition).ok_or(ErrorCode::UnknownTopicOrPartition)?;
    let read = Read {
        bucket,
        from: Offset::from_kafka(partition.fetch_offset).ok_or(ErrorCode::OffsetOutOfRange)?,
        bytes_max: u32::try_from(partition.partition_max_bytes).unwrap_or(0),
        leader_epoch: (partition.current_leader_epoch >= 0).then_some(partition.current_leader_epoch),
    };
    Ok((read, topic::has_rows(&table.options).then_some(table.id)))
}

/// Bytes that a read has found: records, and rows that become records.
#[derive(Clone, Copy, Default)]
struct Found {
    records: usize,
    stored: usize,
}

impl Found {
    fn of(reads: &[Reading], answers: &ReadsAnswer) -> Found {
        let mut found = Found::default();
        for ((_, table), answer) in reads.iter().zip(answers) {
            let bytes = answer.as_ref().map_or(0, ReadAnswer::bytes);
            match table {
                Some(_) => found.stored += bytes,
                None => found.records += bytes,
            }
        }
        found
    }

    /// As records, about.
    fn likely(self) -> usize {
        let factor = usize::try_from(STORED_PART).unwrap_or(1);
        self.records.saturating_add(self.stored.saturating_mul(factor))
    }

    /// Memory for an answer of `most` bytes that is made of it, or of as many as there are.
    fn memory(self, most: u32) -> u32 {
        let narrow = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
        narrow(self.records).max(most).saturating_add(narrow(self.stored))
    }
}

/// How much is asked for in all: bytes of records, and of what is stored.
fn room(asked: &Asked) -> (u32, u32) {
    let most = asked.reads.iter().fold(0_u32, |sum, (read, _)| sum.saturating_add(read.bytes_max));
    let most = most.min(asked.bytes_max);
    let all_rows = asked.reads.iter().all(|(_, table)| table.is_some());
    (most, if all_rows { most / STORED_PART } else { asked.bytes_max })
}

/// Reads until there is enough, something failed, the time is over or the connection ends; with the permit for what was read.
/// None when the connection ends before there was memory for an answer.
async fn read(
    node: &Node,
    share: &AnswerShare,
    asked: &mut Asked,
    ends: &mut watch::Receiver<bool>,
) -> Option<(Answers, AnswerMemory)> {
    let refused = asked.partitions.iter().any(|(_, _, place)| matches!(place, Place::Refused(_)));
    let (most, stored_max) = room(asked);
    let has_rows = asked.reads.iter().any(|(_, table)| table.is_some());
    let mut taken = if has_rows { most.saturating_add(most / STORED_PART) } else { most };
    let mut grown = false;
    loop {
        let memory = memory(share, taken, asked, ends).await?;
        let last = Instant::now() >= asked.deadline || *ends.borrow();
        let found = match asked.reads.as_slice() {
            [] => Vec::new(),
            reads => {
                let reads = reads.iter().map(|(read, _)| read.clone());
                node.source.read(reads.collect(), stored_max).await
            }
        };
        let bytes = Found::of(&asked.reads, &found);
        let failed = refused || found.iter().any(Result::is_err);
        // A batch larger than all that may be sent comes alone: once it is known, its memory is taken before it is read again.
        if bytes.memory(most) > taken && !grown {
            grown = true;
            taken = bytes.memory(most);
            continue;
        }
        if last || failed || bytes.likely() >= asked.bytes_min {
            let code = |error| {
                tracing::debug!(%error, "a read was refused");
                error_code::of_read(&error)
            };
            let answers: Answers = found.into_iter().map(|answer| answer.map_err(code)).collect();
            let room = usize::try_from(most).unwrap_or(usize::MAX);
            let answers = to_records(node, &asked.reads, answers, room, ends).await?;
            let bytes: usize = answers.iter().flatten().map(ReadAnswer::bytes).sum();
            return Some((answers, memory.keep(bytes as u64)));
        }
        // Nothing is held while it waits.
        drop(memory);
        let watched = watched(asked, &found);
        drop(found);
        asked.detach();
        wait(node, watched, asked.deadline, ends).await;
    }
}

/// Waits for memory; none when the connection ends before there was any.
async fn memory(
    share: &AnswerShare,
    bytes: u32,
    asked: &mut Asked,
    ends: &mut watch::Receiver<bool>,
) -> Option<AnswerMemory> {
    let mut taking = pin!(share.take(bytes.into()));
    if let Some(memory) = taking.as_mut().now_or_never() {
        return Some(memory);
    }
    asked.detach();
    tokio::select! {
        biased;
        memory = taking => Some(memory),
        _ = ends.wait_for(|ends| *ends) => None,
    }
}

/// The buckets to watch, each with the high watermark that was seen.
fn watched(asked: &Asked, answers: &ReadsAnswer) -> Vec<WatchedOffset> {
    asked
        .reads
        .iter()
        .zip(answers)
        .filter_map(|((read, _), answer)| {
            Some(WatchedOffset { bucket: read.bucket, seen: answer.as_ref().ok()?.high_watermark })
        })
        .collect()
}

async fn wait(node: &Node, watched: Vec<WatchedOffset>, deadline: Instant, ends: &mut watch::Receiver<bool>) {
    let over = sleep_until(deadline);
    if watched.is_empty() {
        tokio::select! {
            () = over => {}
            _ = ends.wait_for(|ends| *ends) => {}
        }
        return;
    }
    tokio::select! {
        biased;
        _ = ends.wait_for(|ends| *ends) => {}
        () = node.source.watch(watched) => {}
        () = over => {}
    }
}

fn respond(node: &Node, version: i16, asked: Asked, answers: Answers) -> FetchResponse {
    let Asked { context, partitions, read_committed, .. } = asked;
    let mut answers: Vec<Option<Result<ReadAnswer, ErrorCode>>> = answers.into_iter().map(Some).collect();
    let mut leaders = Leaders::new(node);
    let mut responses: Vec<FetchableTopicResponse> = Vec::new();
    let mut current: Option<TopicRef> = None;
    for (topic, index, place) in partitions {
        let answer = match place {
            Place::Refused(code) => Err(code),
            Place::Read(at) => match answers.get_mut(at).and_then(Option::take) {
                Some(answer) => answer,
                // One answer per read is the source's promise; without it there is nothing to say about the partition.
                None => Err(ErrorCode::UnknownServerError),
            },
        };
        if !tell(&context, &topic, index, &answer) {
            continue;
        }
        let mut data = match answer {
            Ok(answer) => {
                node.counters.fetched(answer.bytes());
                found(index, answer, read_committed)
            }
            Err(code) => {
                node.counters.partition_error();
                refused(index, code, read_committed)
            }
        };
        if version >= LEADERS_FROM {
            let code = ErrorCode::from_code(data.error_code).unwrap_or(ErrorCode::None);
            if let Some(leader) = leaders.instead(code, &topic, index) {
                data.current_leader = LeaderIdAndEpoch { leader_id: leader.id, leader_epoch: leader.epoch };
            }
        }
        if let Some(last) = responses.last_mut().filter(|_| current.as_ref() == Some(&topic)) {
            last.partitions.push(data);
        } else {
            current = Some(topic.clone());
            let (topic, topic_id) = topic.into_parts();
            responses.push(FetchableTopicResponse { topic, topic_id, partitions: vec![data] });
        }
    }
    let node_endpoints = leaders.endpoints().map(endpoint).collect();
    FetchResponse { session_id: context.session_id(), responses, node_endpoints, ..FetchResponse::default() }
}

/// Notes in the session what a partition is answered; false if the answer needs not name it.
fn tell(
    context: &FetchContext,
    topic: &TopicRef,
    index: i32,
    answer: &Result<ReadAnswer, ErrorCode>,
) -> bool {
    let told = answer.as_ref().ok().map(|answer| Told {
        high_watermark: answer.high_watermark.kafka(),
        log_start: answer.log_start.kafka(),
    });
    let has_records = answer.as_ref().is_ok_and(|answer| !answer.batches.is_empty());
    context.answers(topic, index, told, has_records)
}

fn endpoint((node_id, broker): (i32, &Broker)) -> NodeEndpoint {
    NodeEndpoint { node_id, host: broker.host.as_str().into(), port: i32::from(broker.port), rack: None }
}

fn found(partition_index: i32, answer: ReadAnswer, read_committed: bool) -> PartitionData {
    let high_watermark = answer.high_watermark.kafka();
    PartitionData {
        partition_index,
        high_watermark,
        // Without transactions everything below the high watermark is stable.
        last_stable_offset: high_watermark,
        log_start_offset: answer.log_start.kafka(),
        aborted_transactions: read_committed.then(Vec::new),
        records: Some(answer.batches.into_iter().collect()),
        ..PartitionData::default()
    }
}

fn refused(partition_index: i32, code: ErrorCode, read_committed: bool) -> PartitionData {
    PartitionData {
        partition_index,
        error_code: code.code(),
        high_watermark: -1,
        aborted_transactions: read_committed.then(Vec::new),
        // Not null: some clients do not expect that.
        records: Some(Records::default()),
        ..PartitionData::default()
    }
}
