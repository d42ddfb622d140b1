//! DoPut: rows to append.
//!
//! Lives on: the service runtime; a task for each call, which ends with its answers' stream.
//! Owns: the batches of the call that are not durable yet.
//! Invariants: I6 and I7: a batch follows its predecessor only once that one is ordered, and the call ends with the first that is
//! refused; so nothing behind a refused batch is stored. Acks come in order. I20: a batch holds what its message paid until it is durable.
mod target;

use crate::address::{self, Meant};
use crate::node::Node;
use crate::paid_body::Paid;
use crate::route::{self, Part};
use crate::status::{IntoStatus, OrStatus};
use arrow_flight::{FlightData, PutResult};
use bytes::Bytes;
use futures::stream::{FuturesOrdered, Stream, StreamExt};
use mink_proto::{Append, Placed, PutAck, PutBatch, command};
use mink_record::RecordError;
use mink_record::arrow::{EncodeOptions, Intake, IpcMessage, Received, StatedSchema};
use mink_record::kafka::{BatchHeader, ProducedLimits};
use mink_router::{
    AppendError, AppendTicket, BatchBytes, BytePermit, FirstSequence, Lost, Position, WatchedOffset,
};
use mink_rt::Task;
use mink_types::{BucketId, PartitionId, ProducerId, Sequence, TimestampType};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use target::Target;
use tokio::sync::mpsc;
use tonic::{Status, Streaming};

/// Acks that a client has not taken; a call that has so many reads no more.
const ACKS_MAX: usize = 16_384;

/// Batches of a call that are ordered and not yet durable.
const IN_FLIGHT_MAX: usize = 64;

/// Messages from this size on are looked at off the runtime's own threads, so that a large one holds up nobody.
const LARGE_BYTES: usize = 256 << 10;

/// The answers of a call. Dropped, they end it: what was handed over is appended all the same.
pub(crate) struct Acks {
    acks: mpsc::Receiver<Option<Result<PutResult, Status>>>,
    task: Task,
}

impl Stream for Acks {
    type Item = Result<PutResult, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match ready!(self.acks.poll_recv(cx)) {
            Some(Some(ack)) => Poll::Ready(Some(ack)),
            // The task says when it is through; one that ends without a word was cut off.
            Some(None) => Poll::Ready(None),
            None => Poll::Ready(Some(Err(Lost.into_status()))),
        }
    }
}

impl Drop for Acks {
    fn drop(&mut self) {
        self.task.cancel();
    }
}

/// One batch of the call, on its way.
struct Put {
    node: Arc<Node>,
    messages: Streaming<FlightData>,
    paid: Paid,
    target: Target,
    intake: Intake,
    acks: mpsc::Sender<Option<Result<PutResult, Status>>>,
}

/// Begins a call: its first message says where the rows go and what columns they have.
pub(crate) async fn put(
    node: &Arc<Node>,
    mut messages: Streaming<FlightData>,
    paid: Paid,
) -> Result<Acks, Status> {
    let first = messages.message().await?;
    drop(paid.next());
    let first = first.ok_or_else(|| {
        Status::invalid_argument("the call has no message; begin with descriptor and schema")
    })?;
    let descriptor = first.flight_descriptor.as_ref().ok_or_else(|| {
        Status::invalid_argument(
            "the first message has no descriptor; give the path [database, table], or a mink.v1.Command",
        )
    })?;
    let append = match address::meant(descriptor)? {
        Meant::Table(path) => {
            Append { database: path.database.to_string(), table: path.table.to_string(), ..Append::default() }
        }
        Meant::Command(command::Command::Append(append)) => append,
        Meant::Command(command::Command::Scan(_)) => {
            return Err(Status::invalid_argument("a scan cannot be put; use DoGet, or give mink.v1.Append"));
        }
    };
    let target = Target::of(node, &append)?;
    let writer = crate::rows::schema_of(&first)?;
    let intake = intake(&target, &writer)?;
    let (sender, acks) = mpsc::channel(ACKS_MAX);
    let put = Put { node: Arc::clone(node), messages, paid, target, intake, acks: sender };
    Ok(Acks { acks, task: node.service.spawn("flight-put", put.run()) })
}

fn intake(target: &Target, writer: &StatedSchema) -> Result<Intake, Status> {
    Intake::stated(&target.schema, writer)
        .map_err(|error| address::quoted(&format!("table {}", target.table.path), error))
}

/// One batch that was handed over.
struct Handed {
    bucket: BucketId,
    rows: u64,
    state: State,
}

/// How far it is.
enum State {
    /// It has its offset.
    Ordered(AppendTicket),
    /// It repeats what its writer sent so long ago that only its sequences are known: it is stored once readers see the last of them.
    Repeats { writer: ProducerId, last: Sequence },
}

/// What of one message was handed over.
struct Pending {
    batch: u64,
    parts: Vec<Handed>,
    /// What the message paid beyond its parts.
    rest: BytePermit,
}

impl Put {
    async fn run(mut self) {
        let mut pending = FuturesOrdered::new();
        let mut stopped = std::pin::pin!(self.node.stopped());
        // The number of the next batch, until the client has said all or something is wrong.
        let mut reads = Some(0);
        while reads.is_some() || !pending.is_empty() {
            tokio::select! {
                biased;
                () = self.acks.closed() => return,
                Some(settled) = pending.next(), if !pending.is_empty() => {
                    let failed = Result::is_err(&settled);
                    if self.acks.send(Some(settled)).await.is_err() || failed {
                        break;
                    }
                }
                () = &mut stopped, if reads.is_some() => {
                    reads = None;
                    pending.push_back(settle(Arc::clone(&self.node), Err(Status::unavailable(
                        "this node stops; what was acked is stored, send the rest again to another or later",
                    ))));
                }
                message = self.messages.message(), if reads.is_some() && pending.len() < IN_FLIGHT_MAX => {
                    let batch = reads.unwrap_or_default();
                    // What was handed over before is acked before the call ends with an error.
                    let (end, taken) = match message {
                        Ok(None) => (None, None),
                        Ok(Some(message)) => match self.take(batch, message).await {
                            Ok(Some(taken)) => (Some(batch + 1), Some(Ok(taken))),
                            Ok(None) => (Some(batch), None),
                            Err(status) => (None, Some(Err(status))),
                        },
                        Err(status) => (None, Some(Err(status))),
                    };
                    reads = end;
                    if let Some(taken) = taken {
                        pending.push_back(settle(Arc::clone(&self.node), taken));
                    }
                }
            }
        }
        // A client that is gone need not be told that this is all.
        drop(self.acks.send(None).await);
    }

    /// Hands the rows of one message over, part by part, each once the one before it is ordered. None: the message was not a batch.
    async fn take(&mut self, batch: u64, message: FlightData) -> Result<Option<Pending>, Status> {
        let mut permit = self.paid.next();
        let told: PutBatch = mink_proto::decode("PutBatch", &message.app_metadata).or_status()?;
        let stamp = self.target.stamp(&told)?;
        let options = EncodeOptions { compression: self.target.table.options.arrow_compression };
        let limits = self.limits();
        let (metadata, body) = (message.data_header, message.data_body);
        let batches = match self.target.route.clone() {
            None => {
                let work = move |intake: &mut Intake, message: IpcMessage<'_>| {
                    intake.receive(message, limits, options, stamp)
                };
                match self.look(metadata, body, work).await? {
                    Received::Batches(frames) if frames.is_empty() => Vec::new(),
                    Received::Batches(frames) => vec![(self.target.next_bucket()?, frames)],
                    Received::Dictionary => return Ok(None),
                }
            }
            Some(route) => {
                let work = move |intake: &mut Intake, message: IpcMessage<'_>| {
                    let rows = intake.receive_rows(message, limits)?;
                    let parts = rows.map(|rows| route.parts(&rows)).transpose()?.unwrap_or_default();
                    let batches =
                        |part: Part| Ok((intake.batches_of(&part.rows, limits, options, stamp)?, part));
                    parts.into_iter().map(batches).collect::<Result<Vec<_>, RecordError>>()
                };
                let packed = self.look(metadata, body, work).await?;
                self.place(packed).await?
            }
        };
        let mut parts = Vec::with_capacity(batches.len());
        for (bucket, frames) in batches {
            for frame in frames {
                let part = permit.split(frame.len() as u64);
                match self.append(bucket, frame, part).await {
                    Ok(handed) => parts.push(handed),
                    Err(status) if parts.is_empty() => return Err(status),
                    Err(status) => return Err(in_part(&status)),
                }
            }
        }
        let rows: u64 = parts.iter().map(|part| part.rows).sum();
        self.target.passed(stamp, u32::try_from(rows).unwrap_or(u32::MAX));
        Ok(Some(Pending { batch, parts, rest: permit }))
    }

    fn limits(&self) -> ProducedLimits {
        let limits = &self.node.config.limits;
        let whole = |bytes: u32| usize::try_from(bytes).unwrap_or(usize::MAX);
        ProducedLimits {
            batch_bytes_max: whole(self.target.table.options.batch_bytes_max),
            inflated_bytes_max: whole(limits.inflated_bytes_max),
        }
    }

    /// Lets `work` look at a message with the call's intake: off the runtime's threads if it is large.
    async fn look<T: Send + 'static>(
        &mut self,
        metadata: Bytes,
        body: Bytes,
        work: impl FnOnce(&mut Intake, IpcMessage<'_>) -> Result<T, RecordError> + Send + 'static,
    ) -> Result<T, Status> {
        let path = self.target.table.path.clone();
        let refused = |error| address::quoted(&format!("table {path}"), error);
        if metadata.len() + body.len() < LARGE_BYTES {
            return work(&mut self.intake, IpcMessage { metadata: &metadata, body: &body }).map_err(refused);
        }
        // The intake is the task's own again when the work is done.
        let mut intake = self.intake.clone();
        let work = move || {
            let looked = work(&mut intake, IpcMessage { metadata: &metadata, body: &body });
            (intake, looked)
        };
        match self.node.service.blocking("flight-receive", work).await {
            Ok((intake, looked)) => {
                self.intake = intake;
                looked.map_err(refused)
            }
            Err(error) => {
                tracing::error!(table = %path, %error, "a message was not looked at");
                Err(Status::internal("the message was not looked at; see the node's log"))
            }
        }
    }

    /// Where the parts of a message go, whose partitions are made if they are not there.
    async fn place(
        &mut self,
        packed: Vec<(Vec<Bytes>, Part)>,
    ) -> Result<Vec<(BucketId, Vec<Bytes>)>, Status> {
        let (frames, parts): (Vec<_>, Vec<_>) = packed.into_iter().unzip();
        if let Some((named, other)) = self.target.bucket.and_then(|named| {
            parts
                .iter()
                .find_map(|part| part.bucket.filter(|bucket| *bucket != named))
                .map(|other| (named, other))
        }) {
            return Err(Status::invalid_argument(format!(
                "table {}: a row's bucket key belongs to bucket {other}, and the call names bucket {named}",
                self.target.table.path
            )));
        }
        let named = self.target.route.as_ref().and_then(|route| route.named.as_ref());
        if named.is_some() && parts.iter().any(|part| part.partition.as_ref() != named) {
            return Err(Status::invalid_argument(format!(
                "table {}: a row has other values in its partition columns ({}) than the partition that the call names",
                self.target.table.path,
                address::partition_columns(&self.target.table)
            )));
        }
        let partitions = route::partitions(&self.node, &self.target.table, &parts).await?;
        let mut placed = Vec::with_capacity(frames.len());
        for ((frames, part), partition) in frames.into_iter().zip(parts).zip(partitions) {
            let partition = partition.or(self.target.partition).unwrap_or(PartitionId(0));
            let bucket = part.bucket.or(self.target.bucket).unwrap_or_else(|| self.target.next_turn());
            placed.push((route::bucket_id(&self.target.table, partition, bucket), frames));
        }
        Ok(placed)
    }

    /// Appends one batch, and returns once it is ordered.
    async fn append(&self, bucket: BucketId, frame: Bytes, permit: BytePermit) -> Result<Handed, Status> {
        let header = BatchHeader::parse(&frame).or_status()?;
        let (count, bytes) = (u32::try_from(header.record_count).unwrap_or(0), frame.len() as u64);
        let own = BatchBytes::Own(frame);
        let (times, first) = (TimestampType::LogAppendTime, FirstSequence::Zero);
        let appended = self.node.source.append(bucket, header, own, times, first, permit);
        let mut ticket = appended.await.or_status()?;
        let rows = u64::from(count);
        match ticket.ordered().await.or_status()? {
            Ok(_) => {
                self.node.counters.batch_in(rows, bytes, self.intake.is_same_layout());
                Ok(Handed { bucket, rows, state: State::Ordered(ticket) })
            }
            Err(AppendError::OutOfOrder { producer, expected: Some(expected), found, .. })
                if lies_before(found, count, expected) =>
            {
                let last = found.plus(count.saturating_sub(1));
                Ok(Handed { bucket, rows, state: State::Repeats { writer: producer, last } })
            }
            Err(AppendError::OutOfOrder { expected: Some(Sequence(0)), found, .. }) => {
                Err(self.target.unknown_writer(&self.node, bucket, found))
            }
            Err(refused) => Err(self.target.refused(&self.node, bucket, refused)),
        }
    }
}

/// What a refusal means once rows of the same message have their offsets: they will be stored, so none of the codes that say "nothing is".
fn in_part(status: &Status) -> Status {
    Status::unknown(format!(
        "{}: rows of the same message were taken before and are stored; an idempotent writer sends the message again under the same sequence",
        status.message()
    ))
}

/// Whether `count` sequences from `found` on all lie before `expected`, where a log's next one is; they wrap, so half of all are before.
fn lies_before(found: Sequence, count: u32, expected: Sequence) -> bool {
    const HALF: i64 = 1 << 30;
    let behind = (i64::from(expected.0) - i64::from(found.0)) & i64::from(i32::MAX);
    (i64::from(count)..HALF).contains(&behind) && count > 0
}

/// Waits until readers see the sequence `last` of a writer; false if the bucket does not know the writer any more.
async fn seen(node: &Node, bucket: BucketId, writer: ProducerId, last: Sequence) -> Result<bool, Status> {
    loop {
        let located = node.source.locate(bucket, Position::Latest, None).await.or_status()?;
        let writers = node.source.producers(bucket, writer, 1).await.or_status()?;
        let Some(known) = writers.into_iter().find(|known| known.producer == writer) else {
            return Ok(false);
        };
        if lies_before(last, 1, known.last_sequence.plus(1)) {
            return Ok(true);
        }
        let seen = located.offset.unwrap_or_default();
        node.source.watch(vec![WatchedOffset { bucket, seen }]).await;
    }
}

/// The ack of a batch, once all its rows are durable.
async fn settle(node: Arc<Node>, taken: Result<Pending, Status>) -> Result<PutResult, Status> {
    let Pending { batch, parts, rest } = taken?;
    let (mut placed, mut repeated_rows): (Vec<Placed>, u64) = (Vec::with_capacity(1), 0);
    for Handed { bucket, rows, state } in parts {
        let ticket = match state {
            State::Ordered(ticket) => ticket,
            State::Repeats { writer, last } if seen(&node, bucket, writer, last).await? => {
                repeated_rows += rows;
                continue;
            }
            State::Repeats { .. } => {
                return Err(Status::failed_precondition(format!(
                    "{bucket} has forgotten this writer; open a new one by the action writer.open"
                )));
            }
        };
        let base_offset = ticket.durable().await.map_err(Lost::into_status)?.base_offset.0;
        match placed.last_mut() {
            Some(last) if last.base_offset + last.rows == base_offset => last.rows += rows,
            _ => placed.push(Placed {
                partition: bucket.partition.0,
                bucket: bucket.bucket.0,
                base_offset,
                rows,
            }),
        }
    }
    drop(rest);
    let ack = PutAck { batch, placed, repeated_rows };
    Ok(PutResult { app_metadata: mink_proto::encode(&ack).into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I7
    #[test]
    fn a_message_that_is_refused_in_part_is_not_told_as_refused() {
        let status = in_part(&Status::unavailable("the bucket moved"));
        assert_eq!(status.code(), tonic::Code::Unknown);
        assert!(status.message().contains("the bucket moved"), "{status}");
    }

    /// I6
    #[test]
    fn a_repeat_lies_wholly_before_the_next_sequence_also_when_sequences_wrap() {
        let before = |found, count, expected| lies_before(Sequence(found), count, Sequence(expected));
        assert!(before(0, 5, 5) && before(0, 1, 5) && before(i32::MAX - 1, 2, 0) && before(i32::MAX, 3, 2));
        assert!(!before(0, 6, 5), "it goes beyond what is stored");
        assert!(!before(5, 1, 5) && !before(6, 1, 5) && !before(0, 1, i32::MAX), "it lies ahead");
        assert!(!before(0, 0, 5));
    }
}
