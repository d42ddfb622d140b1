//! Appending to buckets and reading from them, wherever they are.
//!
//! Lives on: the service runtime.
//! Invariants: I3 (a read's answer is given only while the read lease holds), I7 (`Lost` means unknown, never "not written").
use async_trait::async_trait;
use bytes::Bytes;
use mink_record::RecordError;
use mink_record::kafka::{BatchHeader, Keyless};
use mink_router::{
    AppendTicket, BatchBytes, BytePermit, EpochEnd, FirstSequence, Lost, Position, ProducerState, Read,
    ReadError, ReadsAnswer, WatchedOffset,
};
use mink_types::{BucketEpoch, BucketId, Offset, ProducerId, Timestamp, TimestampType};
use std::fmt::Debug;

/// What a search by position found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Found {
    /// The offset, or none when no record fits.
    pub offset: Option<Offset>,
    /// The timestamp of the record found by time.
    pub timestamp: Option<Timestamp>,
    pub epoch: BucketEpoch,
}

/// The logs of this node's buckets.
#[async_trait]
pub trait LogSource: Send + Sync + Debug {
    /// Sends a checked batch on its way and waits only for room towards its shard: back-pressure, never a refusal for lack of
    /// room. The ticket tells when the batch is ordered and when it is durable. `timestamps` says which time its records
    /// are to bear, `first` how a producer may begin that the log does not know. A future that is dropped before it is ready has
    /// not handed the batch over and never will: on that a listener may tell its client "not written" (I7). The batch's checksum is
    /// trusted: those of the objects it will lie in are made of it.
    async fn append(
        &self,
        bucket: BucketId,
        header: BatchHeader,
        batch: BatchBytes,
        timestamps: TimestampType,
        first: FirstSequence,
        permit: BytePermit,
    ) -> Result<AppendTicket, Lost>;

    /// Looks for records without a key in a batch that is to go to a compacted table; at most `most` are listed. The batch is inflated if
    /// need be, under the node's cap and budget, and off the threads that wait for clients.
    async fn keyless(
        &self,
        header: BatchHeader,
        batch: Bytes,
        most: usize,
    ) -> Result<Result<Keyless, RecordError>, Lost>;

    /// Waits for memory of the node's budget for what batches inflate to (`inflated-bytes-max`), for whoever decodes one; more than all of
    /// it is all of it, alone. Whoever holds some waits for nothing that may wait for it.
    async fn inflating(&self, bytes: u64) -> BytePermit;

    /// Reads up to `bytes_max` bytes, buckets in the order given; one answer each. The first bucket that has anything gives at
    /// least one batch.
    async fn read(&self, reads: Vec<Read>, bytes_max: u32) -> ReadsAnswer;

    /// Returns when one of the buckets has more than was seen, moved away or closed. Dropping the future ends the watch.
    async fn watch(&self, offsets: Vec<WatchedOffset>);

    /// Finds an offset by position or time. `leader_epoch` is the epoch the client believes in.
    async fn locate(
        &self,
        bucket: BucketId,
        position: Position,
        leader_epoch: Option<i32>,
    ) -> Result<Found, ReadError>;

    /// Where `epoch` of a bucket ended: the largest epoch that wrote and is not above it, and the offset behind its last record;
    /// none if it has not begun. `leader_epoch` is the epoch the client believes in.
    async fn epoch_end(
        &self,
        bucket: BucketId,
        epoch: BucketEpoch,
        leader_epoch: Option<i32>,
    ) -> Result<Option<EpochEnd>, ReadError>;

    /// The idempotent producers that a bucket remembers, in the order of their ids from `from` on: up to `most` of them. Fewer than
    /// that are the last.
    async fn producers(
        &self,
        bucket: BucketId,
        from: ProducerId,
        most: usize,
    ) -> Result<Vec<ProducerState>, ReadError>;
}
