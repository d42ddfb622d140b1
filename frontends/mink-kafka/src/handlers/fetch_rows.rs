//! What was read of tables with columns becomes records: JSON objects, in Kafka's batches.
//!
//! Lives on: the service runtime; larger reads are decoded off its threads.
//! Invariants: I2: a record for each row from the offset asked for on, at the row's offset; a batch that cannot be read is an error, it is
//! never passed over; I20: records keep within the answer's bytes, but for the first of it, and what rows are decoded to is taken from the
//! node's budget for what batches inflate to.
use crate::error_code;
use crate::node::Node;
use bytes::Bytes;
use mink_kafka_wire::ErrorCode;
use mink_metadata::{State, Table};
use mink_record::RecordError;
use mink_record::arrow::{ArrowBatch, Mapping};
use mink_record::json::{RecordsRoom, RecordsWriter};
use mink_record::kafka::batches;
use mink_router::{BytePermit, Read, ReadAnswer};
use mink_types::schema::{Schema, SchemaId};
use mink_types::{Offset, TableId};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;

/// Rows are stored smaller than they are as JSON: this part of what is asked for is read.
pub(super) const STORED_PART: u32 = 4;

/// Rows are decoded at once if what they inflate to is no more than this: in about a millisecond.
const SMALL_BYTES: usize = 128 << 10;

/// What decoding and mapping hold, by what a batch inflates to.
const DECODED_FACTOR: u64 = 2;

/// Batches of one read that are looked at before others have their turn.
const BATCHES_PER_TURN: usize = 16;

/// With less than this part of an answer's bytes left, no rows are decoded for it any more.
const LEAST_PART: usize = 16;

/// A read, and its table if that has columns.
pub(super) type Reading = (Read, Option<TableId>);

/// One answer for each read, as its partition is answered.
pub(super) type Answers = Vec<Result<ReadAnswer, ErrorCode>>;

/// How rows of one table become records.
struct Columns {
    newest: Arc<Schema>,
    writer: Arc<RecordsWriter>,
    mappings: BTreeMap<SchemaId, (Arc<Schema>, Arc<Mapping>)>,
}

/// A stored batch with what it takes to read it.
struct Stored {
    batch: ArrowBatch,
    schema: Arc<Schema>,
    mapping: Arc<Mapping>,
}

/// The work on what one read has found.
struct Work {
    stored: Vec<Stored>,
    /// What the largest of the batches inflates to, and all of them. One after the other is decoded.
    largest_bytes: usize,
    inflated_bytes: usize,
    from: Offset,
    writer: Arc<RecordsWriter>,
    room: RecordsRoom,
}

/// Puts records in the place of the rows among the answers: `bytes_max` for all answers together. None when the connection ends before
/// there was memory for it.
pub(super) async fn to_records(
    node: &Node,
    reads: &[Reading],
    mut answers: Answers,
    bytes_max: usize,
    ends: &mut watch::Receiver<bool>,
) -> Option<Answers> {
    let state = node.admin.state();
    let mut tables: BTreeMap<TableId, Columns> = BTreeMap::new();
    let of_records = |((_, table), answer): (&Reading, &Result<ReadAnswer, ErrorCode>)| match (table, answer)
    {
        (None, Ok(found)) => found.bytes(),
        _ => 0,
    };
    let mut left = bytes_max.saturating_sub(reads.iter().zip(&answers).map(of_records).sum());
    let mut is_first = true;
    for ((read, table), answer) in reads.iter().zip(&mut answers) {
        let Ok(found) = answer else { continue };
        if found.batches.is_empty() {
            continue;
        }
        let first_anyway = std::mem::replace(&mut is_first, false);
        let Some(table) = *table else { continue };
        let own = usize::try_from(read.bytes_max).unwrap_or(usize::MAX);
        let room = RecordsRoom { bytes: left.min(own), first_anyway };
        let pieces = std::mem::take(&mut found.batches);
        if !first_anyway && left < bytes_max / LEAST_PART {
            continue;
        }
        let work = match begin(&state, &mut tables, table, pieces, read.from, room).await {
            Ok(work) => work,
            Err(code) => {
                *answer = Err(code);
                continue;
            }
        };
        let memory = tokio::select! {
            biased;
            memory = node.source.inflating(DECODED_FACTOR.saturating_mul(work.largest_bytes as u64)) => memory,
            _ = ends.wait_for(|ends| *ends) => return None,
        };
        match run(node, table, work, memory).await {
            Ok(records) => {
                left = left.saturating_sub(records.iter().map(Bytes::len).sum());
                found.batches = records;
            }
            Err(code) => *answer = Err(code),
        }
    }
    Some(answers)
}

/// Takes apart what was read.
async fn begin(
    state: &State,
    tables: &mut BTreeMap<TableId, Columns>,
    id: TableId,
    pieces: Vec<Bytes>,
    from: Offset,
    room: RecordsRoom,
) -> Result<Work, ErrorCode> {
    // It was dropped meanwhile.
    let table = state.table(id).ok_or(ErrorCode::UnknownTopicOrPartition)?;
    let columns = match tables.entry(id) {
        std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
        std::collections::btree_map::Entry::Vacant(new) => new.insert(Columns::of(table)?),
    };
    let mut stored = Vec::with_capacity(pieces.len());
    let (mut largest_bytes, mut inflated_bytes) = (0_usize, 0_usize);
    for piece in pieces {
        for batch in batches(piece) {
            let (_, bytes) = batch.map_err(|error| unreadable(id, &error))?;
            let batch = ArrowBatch::parse(&bytes).map_err(|error| unreadable(id, &error))?;
            let (schema, mapping) = columns.mapping(table, batch.schema())?;
            let bytes = batch.inflated_bytes(&schema).map_err(|error| unreadable(id, &error))?;
            largest_bytes = largest_bytes.max(bytes);
            inflated_bytes = inflated_bytes.saturating_add(bytes);
            stored.push(Stored { batch, schema, mapping });
            if stored.len().is_multiple_of(BATCHES_PER_TURN) {
                tokio::task::yield_now().await;
            }
        }
    }
    let writer = Arc::clone(&columns.writer);
    Ok(Work { stored, largest_bytes, inflated_bytes, from, writer, room })
}

fn unreadable(table: TableId, error: &RecordError) -> ErrorCode {
    tracing::error!(%table, %error, "stored rows cannot be read");
    error_code::of_stored(error.kind())
}

async fn run(node: &Node, table: TableId, work: Work, memory: BytePermit) -> Result<Vec<Bytes>, ErrorCode> {
    let is_small = work.inflated_bytes <= SMALL_BYTES;
    let work = move || {
        let _memory = memory;
        work.run()
    };
    let made = if is_small { Ok(work()) } else { node.service.blocking("kafka-rows-out", work).await };
    match made {
        Ok(Ok(records)) => Ok(records),
        Ok(Err(error)) => Err(unreadable(table, &error)),
        Err(error) => {
            tracing::error!(%table, %error, "stored rows were not looked at");
            Err(ErrorCode::UnknownServerError)
        }
    }
}

impl Columns {
    fn of(table: &Table) -> Result<Columns, ErrorCode> {
        let newest = table.schema().ok_or(ErrorCode::UnknownTopicOrPartition)?;
        let writer = RecordsWriter::new(newest).map_err(|error| unreadable(table.id, &error))?;
        Ok(Columns { newest: Arc::clone(newest), writer: Arc::new(writer), mappings: BTreeMap::new() })
    }

    /// The schema of this id, and the way from it to the newest.
    fn mapping(&mut self, table: &Table, id: SchemaId) -> Result<(Arc<Schema>, Arc<Mapping>), ErrorCode> {
        if let Some(known) = self.mappings.get(&id) {
            return Ok(known.clone());
        }
        // Another node has written by a schema that this one will learn of in a moment: clients ask again.
        let schema = table.schema_by_id(id).ok_or(ErrorCode::NotLeaderOrFollower)?;
        let mapping =
            Mapping::new(schema, &self.newest, None).map_err(|error| unreadable(table.id, &error))?;
        let found = (Arc::clone(schema), Arc::new(mapping));
        self.mappings.insert(id, found.clone());
        Ok(found)
    }
}

impl Work {
    fn run(self) -> Result<Vec<Bytes>, RecordError> {
        let Work { stored, from, writer, mut room, .. } = self;
        let mut records = Vec::with_capacity(stored.len());
        for Stored { batch, schema, mapping } in stored {
            let written = writer.write_stored(&batch, &schema, &mapping, from.kafka(), room)?;
            room.bytes = room.bytes.saturating_sub(written.bytes());
            room.first_anyway &= written.rows == 0;
            records.extend(written.batches);
            if !written.is_whole {
                break;
            }
        }
        Ok(records)
    }
}
