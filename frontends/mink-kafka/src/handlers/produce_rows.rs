//! Records for a table with columns: their JSON becomes one batch of rows, or all are refused, each with what is wrong.
//!
//! Lives on: the service runtime; larger batches are looked at off its threads.
//! Invariants: I6: one batch becomes one, with its producer's sequence, so a repeat is told as one and nothing leaves a hole; I19: a batch
//! that is refused changes nothing; I20: memory for the work is taken from the node's budget for what batches inflate to, within the request's
//! time; so is memory for rows that take more than their records did, if that of requests is short.
use super::produce::{Checked, Refused, for_good};
use super::record_errors::RecordErrors;
use crate::error_code;
use crate::node::Node;
use crate::topic::{self, Refusal};
use bytes::Bytes;
use mink_kafka_wire::{ErrorCode, KafkaString};
use mink_metadata::Table;
use mink_record::arrow::EncodeOptions;
use mink_record::json::{RecordsIntake, RefusedRecords, SentTo, rows_of_records};
use mink_record::kafka::{BatchHeader, Codec};
use mink_record::{RecordError, RecordErrorKind};
use mink_router::{BatchBytes, BytePermit};
use mink_types::schema::Schema;
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};

/// Batches up to this size are looked at at once, if they need no more room than the second says: in about a millisecond.
const SMALL_BYTES: usize = 16 << 10;
const SMALL_ROOM: u64 = 1 << 20;

/// What the work on a batch mostly takes, by its size: as it is, and compressed. One that takes more gets all there is.
const GROWTH: u64 = 8;
const GROWTH_COMPRESSED: u64 = 32;
const ROOM_MIN: u64 = 512 << 10;

/// What of the request bears on its batches.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// When nothing is waited for any more.
    pub(super) deadline: Instant,
    /// Whether the frame goes once its batches are rows: then what it has paid stands for them.
    pub(super) frame_goes: bool,
}

/// The work on one batch.
#[derive(Clone)]
struct Work {
    header: BatchHeader,
    batch: Bytes,
    schema: Arc<Schema>,
    intake: RecordsIntake,
}

type Looked = Result<Result<Bytes, RefusedRecords>, RecordError>;

/// The batch of rows in the place of the records'.
pub(super) async fn rows(
    node: &Node,
    table: &Table,
    index: i32,
    checked: Checked,
    errors: &mut RecordErrors,
    asked: Asked,
) -> Result<Checked, Refused> {
    let Some(schema) = table.schema() else {
        return Err(for_good(ErrorCode::UnknownServerError, "the table has no columns"));
    };
    let narrow = |bytes: u32| usize::try_from(bytes).unwrap_or(usize::MAX);
    let intake = RecordsIntake {
        room_bytes: 0,
        batch_bytes_max: narrow(table.options.batch_bytes_max),
        options: EncodeOptions { compression: table.options.arrow_compression },
        sent_to: SentTo { bucket: u32::try_from(index).unwrap_or(u32::MAX), buckets: table.buckets },
        refused_max: errors.most(),
    };
    let Checked { bucket, timestamps, header, batch, .. } = checked;
    let sent_bytes = batch.len() as u64;
    let work = Work { header, batch: batch.into_shared(), schema: Arc::clone(schema), intake };
    let stored = match look(node, work, asked.deadline).await? {
        Ok(Ok(stored)) => stored,
        Ok(Err(RefusedRecords { count, first })) => {
            let first = first.into_iter().map(|(place, why)| (place, KafkaString::from(why)));
            return Err(errors.refuse(count, first.collect()));
        }
        Err(error) => return Err(for_good(error_code::of_record(error.kind()), error.message())),
    };
    let header = BatchHeader::parse(&stored)
        .map_err(|error| for_good(error_code::of_record(error.kind()), error.message()))?;
    let bytes = stored.len() as u64;
    let paid = if asked.frame_goes && bytes <= sent_bytes {
        None
    } else {
        match node.config.request_permits.spare(bytes) {
            Some(spare) => Some(spare),
            // Held until they are durable, which waits for nobody's memory.
            None => Some(room(node, bytes, asked.deadline).await?),
        }
    };
    Ok(Checked { bucket, timestamps, header, batch: BatchBytes::Own(stored), paid })
}

/// Looks at a batch with as much memory as such a batch mostly takes, and if that does not do with all there is.
async fn look(node: &Node, mut work: Work, deadline: Instant) -> Result<Looked, Refused> {
    let growth = if work.header.attributes.codec() == Codec::None { GROWTH } else { GROWTH_COMPRESSED };
    let all = u64::from(node.config.limits.inflated_bytes_max);
    let mut bytes = (work.batch.len() as u64).saturating_mul(growth).max(ROOM_MIN).min(all);
    loop {
        let memory = room(node, bytes, deadline).await?;
        work.intake.room_bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let looked = run(node, work.clone(), memory).await?;
        match &looked {
            Err(error) if bytes < all && wants_room(error) => bytes = all,
            _ => return Ok(looked),
        }
    }
}

/// Says in the log why records for a table with columns were refused: some clients show no more than the code.
pub(super) fn tell_of_refusal(node: &Node, table: &Table, partition: i32, refusal: &Refusal) {
    if !topic::has_rows(&table.options) {
        return;
    }
    if let Some(held_back) = node.counters.may_tell_of_rows(&table.path, refusal.code) {
        tracing::info!(
            table = %table.path, partition, code = refusal.code.name(), why = refusal.why.as_str(), held_back,
            "records were refused for a table with columns"
        );
    }
}

fn wants_room(error: &RecordError) -> bool {
    matches!(error.kind(), RecordErrorKind::TooLarge | RecordErrorKind::InflatedTooLarge)
}

async fn room(node: &Node, bytes: u64, deadline: Instant) -> Result<BytePermit, Refused> {
    timeout_at(deadline, node.source.inflating(bytes)).await.map_err(|_elapsed| {
        let why = "the node had no memory for the batch within the request's time; nothing of it was written";
        Refused::curable(Refusal::new(ErrorCode::RequestTimedOut, why))
    })
}

async fn run(node: &Node, work: Work, memory: BytePermit) -> Result<Looked, Refused> {
    let is_small = work.batch.len() <= SMALL_BYTES && memory.bytes() <= SMALL_ROOM;
    let work = move || {
        let _memory = memory;
        rows_of_records(&work.header, work.batch, &work.schema, work.intake)
    };
    if is_small {
        return Ok(work());
    }
    node.service.blocking("kafka-rows-in", work).await.map_err(|error| {
        tracing::error!(%error, "records were not looked at");
        for_good(ErrorCode::UnknownServerError, "the records were not looked at; see the node's log")
    })
}
