//! Reads of flushed data: the seam to s3stream's reader.
//!
//! Lives on: called on the service runtime only; a core never waits for a store.
//! Invariants: P-14: an error names one object; what lies elsewhere is not touched by it.
use bytes::Bytes;
use futures::future::{BoxFuture, FutureExt as _};
use mink_types::{BucketId, LogIndex, ObjectId, Offset, Timestamp};
use s3stream::{EntryKind, Error, ErrorKind, ObjectRange, ReadRequest, Reader};
use std::fmt;

/// A search for the first batch that may hold a record of a time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ObjectFind {
    pub bucket: BucketId,
    /// In offset order.
    pub objects: Vec<ObjectRange>,
    /// Batches that end at or below it are passed over.
    pub from: Offset,
    pub at_or_after: Timestamp,
}

/// Why an object read failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ObjectReadError {
    /// Not in the store: read again by a newer view; if that names it too, it is lost.
    #[error("{object} is missing")]
    Missing { object: ObjectId },
    /// Its bytes are not what was written, or are known to be lost. No retry helps.
    #[error("{object} is damaged: {what}")]
    Damaged { object: ObjectId, what: String },
    /// The store does not answer now.
    #[error("{object}: {what}")]
    Unavailable { object: ObjectId, what: String },
}

/// Reads what was flushed. `planned` is the row of the view that named the objects: what a later row gave up must stay in the store until
/// the read has ended (P-16).
pub trait ObjectReads: Send + Sync + fmt::Debug {
    /// Whole batches in order, one in each piece, from the one that holds `from`: at least one, however large.
    fn read(
        &self,
        planned: LogIndex,
        read: ReadRequest,
    ) -> BoxFuture<'static, Result<Vec<Bytes>, ObjectReadError>>;

    /// The first batch whose largest timestamp is at or after the one sought; none if there is no such batch.
    fn find(
        &self,
        planned: LogIndex,
        find: ObjectFind,
    ) -> BoxFuture<'static, Result<Option<Bytes>, ObjectReadError>>;
}

/// A reader does not care when its reads were planned: whoever deletes objects keeps account of that.
impl ObjectReads for Reader {
    fn read(
        &self,
        _planned: LogIndex,
        read: ReadRequest,
    ) -> BoxFuture<'static, Result<Vec<Bytes>, ObjectReadError>> {
        read_batches(self.clone(), read).boxed()
    }

    fn find(
        &self,
        _planned: LogIndex,
        find: ObjectFind,
    ) -> BoxFuture<'static, Result<Option<Bytes>, ObjectReadError>> {
        find_batch(self.clone(), find).boxed()
    }
}

async fn read_batches(reader: Reader, read: ReadRequest) -> Result<Vec<Bytes>, ObjectReadError> {
    let answer = reader.read(&read).await.map_err(|error| told(&error, &read.objects))?;
    let batches = answer.batches.into_iter().filter(|batch| batch.kind == EntryKind::Batch);
    Ok(batches.map(|batch| batch.bytes).collect())
}

async fn find_batch(reader: Reader, find: ObjectFind) -> Result<Option<Bytes>, ObjectReadError> {
    let ObjectFind { bucket, objects, from, at_or_after } = find;
    let found = reader.find_by_time(bucket, &objects, from, at_or_after).await;
    let Some(from) = found.map_err(|error| told(&error, &objects))? else {
        return Ok(None);
    };
    // One byte: the first batch comes however large, and nothing behind it.
    let batches = read_batches(reader, ReadRequest { bucket, objects, from, bytes_max: 1 }).await?;
    Ok(batches.into_iter().next())
}

fn told(error: &Error, objects: &[ObjectRange]) -> ObjectReadError {
    let what = error.to_string();
    match error.kind() {
        ErrorKind::Missing { object } => ObjectReadError::Missing { object: *object },
        ErrorKind::Corrupt { object } | ErrorKind::Lost { object } => {
            ObjectReadError::Damaged { object: *object, what }
        }
        kind => {
            if !matches!(kind, ErrorKind::Retry) {
                tracing::error!(%error, "object read that should not have been asked for");
            }
            // A read is only asked for with at least one object; which of them it was does not matter to who retries.
            let object = objects.first().map(|first| first.object);
            ObjectReadError::Unavailable { object: object.unwrap_or(NO_OBJECT), what }
        }
    }
}

const NO_OBJECT: ObjectId = ObjectId::Stream {
    chain: mink_types::WalChain {
        node: mink_types::NodeId(0),
        incarnation: mink_types::Incarnation(0),
        tag: 0,
    },
    counter: 0,
};
