//! Appends to a coordinator bucket's log, in order, many records to a batch.
//!
//! Lives on: the task of an opening.
//! Invariants: write-ahead and in order: a chunk is handed over when the one before it was; outcomes are told in the same order, so
//! that a refusal comes before anything behind it is durable. I20: so many batches, and so many bytes, are on their way at most.
use super::log::{Chunk, LogParts, Stored, What};
use crate::source::NodeSource;
use bytes::Bytes;
use futures::channel::oneshot;
use futures::future::{join, select};
use mink_api::LogSource as _;
use mink_group::{AppendRefused, Handle, KeyedRecord};
use mink_record::RecordError;
use mink_record::kafka::{BatchBuilder, BatchHeader, Codec, RecordRef};
use mink_router::{AppendError, AppendTicket, FirstSequence, Lost, Receiver, Sender, lane};
use mink_rt::mutant;
use mink_types::{Offset, TimestampType};
use std::pin::pin;
use std::sync::Arc;

/// Batches of one opening whose outcome is awaited.
const BATCHES_IN_FLIGHT_MAX: usize = 64;
/// What a record costs in a batch beside its key and value, at most.
const RECORD_OVERHEAD_BYTES: usize = 32;

/// A chunk that was handed over, or not.
struct HandedOver {
    handles: Vec<Handle>,
    records: u64,
    bytes: u64,
    how: Result<AppendTicket, NotHanded>,
}

enum NotHanded {
    Refused(AppendRefused),
    Unknown,
}

/// Runs until `stop` is dropped and every batch on its way has its outcome.
pub(super) async fn append(parts: &LogParts, stop: oneshot::Receiver<()>, chunks: Receiver<Chunk>) {
    let (to, from) = lane(BATCHES_IN_FLIGHT_MAX);
    let handing = async move {
        // A batch whose hand-over is broken off here never was, nor will be (mink-api).
        let handing = pin!(hand_over(parts, chunks, to));
        drop(select(stop, handing).await);
    };
    join(handing, resolve(parts, from)).await;
}

async fn hand_over(parts: &LogParts, mut chunks: Receiver<Chunk>, outcomes: Sender<HandedOver>) {
    let source = NodeSource(Arc::clone(&parts.context));
    while let Some(chunk) = chunks.recv().await {
        let encoded = encode(&chunk);
        let bytes = encoded.as_ref().map_or(0, |(batch, _)| batch.len());
        let how = match encoded {
            Ok((batch, header)) if bytes <= parts.batch_bytes_max => {
                let permit = parts.permits.take(bytes as u64).await;
                let timestamps = TimestampType::CreateTime;
                let handed = source
                    .append(parts.bucket, header, batch.into(), timestamps, FirstSequence::Any, permit)
                    .await;
                handed.map_err(|Lost| NotHanded::Unknown)
            }
            Ok(_) | Err(_) => Err(NotHanded::Refused(AppendRefused::TooLarge)),
        };
        let (records, bytes) = (chunk.records.len() as u64, bytes as u64);
        let handed = HandedOver { handles: chunk.handles, records, bytes, how };
        if outcomes.send(handed).await.is_err() {
            return;
        }
        parts.tell(What::Handed).await;
    }
}

/// What a record takes in a batch, at most.
pub(super) fn record_bytes(record: &KeyedRecord) -> usize {
    record.key.len() + record.value.as_ref().map_or(0, Bytes::len) + RECORD_OVERHEAD_BYTES
}

fn encode(chunk: &Chunk) -> Result<(Bytes, BatchHeader), RecordError> {
    let mut batch = BatchBuilder::with_capacity(chunk.records.iter().map(record_bytes).sum());
    for record in &chunk.records {
        batch.push(RecordRef {
            timestamp: chunk.time.0,
            key: Some(&record.key),
            value: record.value.as_deref(),
            ..RecordRef::default()
        })?;
    }
    let batch = batch.build(Codec::None, None)?;
    let header = BatchHeader::parse(&batch)?;
    Ok((batch, header))
}

async fn resolve(parts: &LogParts, mut outcomes: Receiver<HandedOver>) {
    while let Some(HandedOver { handles, records, bytes, how }) = outcomes.recv().await {
        let offset = match how {
            Ok(ticket) => outcome(ticket).await,
            Err(not) => Err(not),
        };
        parts
            .tell(match offset {
                Ok(base_offset) => What::Stored(Stored { handles, base_offset, records, bytes }),
                Err(NotHanded::Refused(why)) => What::Refused { handles, why },
                Err(NotHanded::Unknown) => What::Unknown,
            })
            .await;
    }
}

/// The first offset of a batch that is durable.
async fn outcome(mut ticket: AppendTicket) -> Result<Offset, NotHanded> {
    let unknown = |Lost| NotHanded::Unknown;
    match ticket.ordered().await.map_err(unknown)? {
        Ok(ordered) if mutant("group-ack-before-durable") => Ok(ordered.base_offset),
        Ok(_) => ticket.durable().await.map(|appended| appended.base_offset).map_err(unknown),
        Err(error) => Err(NotHanded::Refused(refused(&error))),
    }
}

fn refused(error: &AppendError) -> AppendRefused {
    match error {
        AppendError::NotOwner { .. } | AppendError::Draining => AppendRefused::NotOwner,
        AppendError::TooLarge { .. } => AppendRefused::TooLarge,
        // The others are about idempotent producers, which a coordinator is none of.
        AppendError::Opening { .. }
        | AppendError::OutOfOrder { .. }
        | AppendError::ProducerFenced { .. }
        | AppendError::TooManyProducers { .. } => AppendRefused::Retriable,
    }
}
