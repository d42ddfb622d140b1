//! One batch between being gathered and being acked.
//!
//! Lives on: the partition's task.
//! Invariants: the bytes are made once; only a batch that is known not to be stored may get another identity.
use super::accumulator::Gathered;
use super::delivery::{BatchEnd, Ended};
use super::misuse;
use crate::connection::Pending;
use crate::error::{ClientError, ErrorKind};
use bytes::Bytes;
use mink_kafka_wire::ErrorCode;
use mink_kafka_wire::messages::produce::ProduceRequest;
use mink_record::RecordError;
use mink_record::kafka::{BatchBuilder, BatchHeader, Codec, HeaderRef, ProducerStamp, RecordRef, records};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::Instant;

/// A batch that is being sent.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) number: u64,
    pub(super) body: Body,
    pub(super) count: i32,
    pub(super) deadline: Instant,
    pub(super) sent: Option<Sent>,
    /// An attempt has ended without telling whether the batch was stored, and nothing since has told.
    pub(super) unknown: bool,
    end: oneshot::Sender<Ended>,
    _room: OwnedSemaphorePermit,
}

/// What is sent.
#[derive(Debug)]
pub(super) enum Body {
    /// Not built yet: it has no sequence.
    Records(BatchBuilder),
    /// The bytes of every attempt.
    Batch(Bytes),
    /// The bytes under an identity that the server no longer takes; they were not stored.
    Orphan(Bytes),
    /// Nothing: the codec failed.
    Broken,
}

/// An attempt that waits for its answer.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) answer: Pending<ProduceRequest>,
    pub(super) at: Instant,
}

/// What an answer means for a batch.
#[derive(Debug)]
pub(super) enum Verdict {
    Stored(i64),
    /// To be sent again, for this reason.
    Again(ClientError),
    Failed(ClientError),
}

impl Flight {
    pub(super) fn new(gathered: Gathered, delivery_timeout: Duration) -> Flight {
        Flight {
            number: gathered.number,
            count: gathered.records.record_count(),
            body: Body::Records(gathered.records),
            deadline: gathered.opened + delivery_timeout,
            sent: None,
            unknown: false,
            end: gathered.end,
            _room: gathered.room,
        }
    }

    /// Tells everyone who waits, and gives the room back.
    pub(super) fn end(self, ended: BatchEnd) {
        drop(self.end.send(Ended::now(ended)));
    }

    /// Makes the bytes, under this stamp, unless they are made.
    pub(super) fn build(&mut self, codec: Codec, stamp: Option<ProducerStamp>) -> Result<Bytes, ClientError> {
        let built = match std::mem::replace(&mut self.body, Body::Broken) {
            Body::Batch(bytes) => Ok(bytes),
            Body::Records(records) => records.build(codec, stamp),
            Body::Orphan(bytes) => rebuild(&bytes, stamp),
            Body::Broken => return Err(misuse("the batch could not be built")),
        };
        let bytes = built.map_err(|error| misuse(format!("the batch cannot be built: {error}")))?;
        self.body = Body::Batch(bytes.clone());
        Ok(bytes)
    }

    /// Judges the end of an attempt. `behind`: a batch before this one was not stored, so a server that watches
    /// sequences refuses this one for that alone.
    pub(super) fn judge(&mut self, ended: BatchEnd, behind: bool) -> Verdict {
        let error = match ended {
            Ok(offset) => return Verdict::Stored(offset),
            Err(error) => error,
        };
        match error.kind() {
            ErrorKind::Connection | ErrorKind::Timeout => self.unknown = true,
            // It was appended, but the server cannot say that it is safe.
            ErrorKind::Server(ErrorCode::RequestTimedOut | ErrorCode::NotEnoughReplicasAfterAppend) => {
                self.unknown = true;
            }
            // A batch that is stored would have been answered as a repeat: this one is not.
            ErrorKind::Server(ErrorCode::OutOfOrderSequenceNumber) if behind => self.unknown = false,
            ErrorKind::Server(code) if code.retriable() => {}
            ErrorKind::Server(_) | ErrorKind::Protocol | ErrorKind::Misuse if self.unknown => {
                return Verdict::Failed(self.given_up(&error));
            }
            ErrorKind::Server(_) | ErrorKind::Protocol | ErrorKind::Misuse => return Verdict::Failed(error),
        }
        Verdict::Again(error)
    }

    /// Why the batch is given up, with what is known of its fate (I7).
    pub(super) fn given_up(&self, last: &ClientError) -> ClientError {
        let (kind, fate) = match (self.unknown, last.kind()) {
            (true, _) => (ErrorKind::Timeout, "it may have been stored"),
            (false, kind) => (kind, "it was not stored"),
        };
        ClientError::new(kind, format!("given up without an ack, {fate}; the last attempt said: {last}"))
    }
}

/// The same records as a batch of another identity.
fn rebuild(bytes: &Bytes, stamp: Option<ProducerStamp>) -> Result<Bytes, RecordError> {
    let header = BatchHeader::parse(bytes)?;
    let mut builder = BatchBuilder::with_capacity(bytes.len());
    // We have made these bytes ourselves: what they inflate to was in memory before.
    for record in records(&header, bytes.clone(), usize::MAX)? {
        let record = record?;
        let owned: Vec<_> = record.headers.iter().collect();
        let headers: Vec<_> = owned
            .iter()
            .map(|header| HeaderRef {
                key: std::str::from_utf8(&header.key).unwrap_or_default(),
                value: header.value.as_deref(),
            })
            .collect();
        builder.push(RecordRef {
            timestamp: record.timestamp,
            key: record.key.as_deref(),
            value: record.value.as_deref(),
            headers: &headers,
        })?;
    }
    builder.build(header.attributes.codec(), stamp)
}
