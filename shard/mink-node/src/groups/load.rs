//! Reads a coordinator bucket's log from its start to its high watermark and folds it.
//!
//! Lives on: one task on the service runtime per coordinator that opens.
//! Invariants: I18, I20: what is folded is all that is durable; the bytes of one read and the fold are what it holds. A part of the log
//! that is lost with its object is passed over (decision 0016: the alarm was told when the bucket opened); a record that is none stops
//! the coordinator: it would forget what was committed.
use crate::context::Context;
use crate::source::NodeSource;
use mink_api::LogSource as _;
use mink_group::Fold;
use mink_record::kafka::{batches, records};
use mink_router::{Position, Read, ReadError};
use mink_rt::mutant;
use mink_types::{BucketId, Offset};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of one read.
const READ_BYTES: u32 = 1 << 20;
/// Pause after a read that gave nothing: the store, the database or the lease is away.
const PAUSE: Duration = Duration::from_millis(500);

/// What a log held.
#[derive(Debug)]
pub(super) struct Loaded {
    pub(super) fold: Fold,
    /// Bytes of the batches that were read.
    pub(super) bytes: u64,
    /// Behind the last record.
    pub(super) end: Offset,
}

/// Why a reading ended early.
enum Halt {
    /// It begins again.
    Again(String),
    /// The log holds what no coordinator wrote.
    Broken(String),
}

/// Reads until it has succeeded.
///
/// # Errors
/// When the log holds what no coordinator of this release wrote.
pub(super) async fn load(context: &Arc<Context>, bucket: BucketId) -> Result<Loaded, String> {
    let mut told = false;
    loop {
        match read_all(context, bucket).await {
            Ok(loaded) => return Ok(loaded),
            Err(Halt::Broken(what)) => return Err(what),
            Err(Halt::Again(what)) => {
                if !told {
                    tracing::info!(%bucket, %what, "the log of consumer groups cannot be read yet");
                    told = true;
                }
                context.service.sleep(PAUSE).await;
            }
        }
    }
}

async fn read_all(context: &Arc<Context>, bucket: BucketId) -> Result<Loaded, Halt> {
    let source = NodeSource(Arc::clone(context));
    let again = |error: ReadError| Halt::Again(error.to_string());
    let start = source.locate(bucket, Position::Earliest, None).await.map_err(again)?.offset;
    let mut from = start.ok_or_else(|| Halt::Again("its start is not known".into()))?;
    let mut loaded = Loaded { fold: Fold::default(), bytes: 0, end: from };
    loop {
        let read = Read { bucket, from, bytes_max: READ_BYTES, leader_epoch: None };
        let answer = match source.read(vec![read], READ_BYTES).await.pop() {
            Some(Ok(answer)) => answer,
            Some(Err(ReadError::Damaged { offset, .. })) => {
                let behind = behind_lost(context, bucket, offset);
                from = behind.ok_or_else(|| Halt::Again(format!("offset {offset} is not readable")))?;
                continue;
            }
            Some(Err(error)) => return Err(again(error)),
            None => return Err(Halt::Again("no answer".into())),
        };
        let before = from;
        for run in answer.batches {
            from = fold_run(context, run, from, &mut loaded)?;
        }
        if from >= answer.high_watermark {
            loaded.end = from;
            return Ok(loaded);
        }
        if from == before {
            return Err(Halt::Again(format!("offset {from} is not readable yet")));
        }
    }
}

/// Folds whole batches and gives the offset behind them.
fn fold_run(context: &Context, run: bytes::Bytes, from: Offset, loaded: &mut Loaded) -> Result<Offset, Halt> {
    let inflated_max = usize::try_from(context.config.limits.inflated_bytes_max).unwrap_or(usize::MAX);
    let mut next = from;
    for batch in batches(run) {
        let (header, batch) = batch.map_err(|error| Halt::Broken(error.to_string()))?;
        loaded.bytes += batch.len() as u64;
        for record in
            records(&header, batch, inflated_max).map_err(|error| Halt::Broken(error.to_string()))?
        {
            let record = record.map_err(|error| Halt::Broken(error.to_string()))?;
            if record.offset < from.kafka() {
                continue;
            }
            if mutant("group-log-unread") {
                continue;
            }
            let Some(key) = record.key else {
                return Err(Halt::Broken(format!("the record at offset {} has no key", record.offset)));
            };
            let folded = loaded.fold.apply(&key, record.value.as_deref());
            folded.map_err(|error| Halt::Broken(format!("offset {}: {error}", record.offset)))?;
        }
        let behind = u64::try_from(header.last_offset().saturating_add(1)).unwrap_or(0);
        next = next.max(Offset(behind));
    }
    Ok(next)
}

/// Where the range ends that holds an offset nobody can read.
fn behind_lost(context: &Context, bucket: BucketId, offset: Offset) -> Option<Offset> {
    let state = context.state();
    let found = state.objects_of(&bucket).find(|(range, ..)| range.start <= offset && offset < range.end);
    found.map(|(range, ..)| range.end)
}
