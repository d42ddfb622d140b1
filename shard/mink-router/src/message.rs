//! The messages that frontends send to a shard.
//!
//! Lives on: made on the service runtime, taken on the core that owns the bucket.
use crate::{AppendReply, BatchBytes, ReadError, ReplyTo};
use bytes::Bytes;
use mink_record::kafka::BatchHeader;
use mink_types::{
    BucketEpoch, BucketId, CommitTime, Offset, ProducerEpoch, ProducerId, Sequence, Timestamp, TimestampType,
};

/// With which sequence a producer may begin that its log does not know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FirstSequence {
    /// With any: it may have been forgotten, and would be refused for ever (Kafka's producers).
    Any,
    /// With 0, from which its sequences are counted: all below its last one are stored then (Flight's writers).
    Zero,
}

/// One batch for one bucket. It was checked against its CRC and the rules for a batch before it was sent.
#[derive(Debug)]
pub struct Append {
    pub bucket: BucketId,
    pub header: BatchHeader,
    /// The batch as the client sent it, or as it was made of what was sent. The shard copies it once, unless it may keep it.
    pub batch: BatchBytes,
    /// Whether the records keep the producer's times, or all get the commit time: once, when the batch gets its offset.
    pub timestamps: TimestampType,
    pub first: FirstSequence,
    pub reply: AppendReply,
}

/// Everything a shard is asked but appends, which have a lane of their own: it is not read while the WAL has no room.
#[derive(Debug)]
pub enum Request {
    Reads(Reads),
    Watch(Watch),
    Locate {
        bucket: BucketId,
        position: Position,
        leader_epoch: Option<i32>,
        reply: ReplyTo<Result<Located, ReadError>>,
    },
    /// Asks where an epoch of the bucket ended; none if it has not begun.
    EpochEnd {
        bucket: BucketId,
        epoch: BucketEpoch,
        leader_epoch: Option<i32>,
        reply: ReplyTo<Result<Option<EpochEnd>, ReadError>>,
    },
    /// Asks for idempotent producers by id, from `from` on: `most` at a time.
    Producers {
        bucket: BucketId,
        from: ProducerId,
        most: usize,
        reply: ReplyTo<Result<Vec<ProducerState>, ReadError>>,
    },
}

/// An idempotent producer by the last of its batches that readers see.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProducerState {
    pub producer: ProducerId,
    pub epoch: ProducerEpoch,
    /// Sequence of its last record.
    pub last_sequence: Sequence,
    /// When that was taken into the log.
    pub last_commit_time: CommitTime,
}

/// The largest epoch that wrote and is not above the one asked for, and the offset behind its last record that readers see.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EpochEnd {
    pub epoch: BucketEpoch,
    pub end: Offset,
}

/// Reads of one fetch that lie on one shard, answered together and in order.
#[derive(Debug)]
pub struct Reads {
    pub reads: Vec<Read>,
    /// Bytes for all of them. The first read that finds anything gives at least one batch, however large (KIP-74).
    pub bytes_max: u32,
    pub reply: ReplyTo<ReadsAnswer>,
}

/// One answer per read, in the order asked.
pub type ReadsAnswer = Vec<Result<ReadAnswer, ReadError>>;

/// A read of one bucket from one offset.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Read {
    pub bucket: BucketId,
    pub from: Offset,
    pub bytes_max: u32,
    /// The leader epoch that the reader believes in, if it says one.
    pub leader_epoch: Option<i32>,
}

/// Whole batches from the one that holds the offset asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadAnswer {
    /// Batches as stored, in order; each piece holds whole batches.
    pub batches: Vec<Bytes>,
    pub high_watermark: Offset,
    pub log_start: Offset,
    pub epoch: BucketEpoch,
}

impl ReadAnswer {
    /// Bytes of all batches.
    pub fn bytes(&self) -> usize {
        self.batches.iter().map(Bytes::len).sum()
    }
}

/// Asks to be told once when one of the buckets has more than the reader has seen, moves away or closes.
#[derive(Debug)]
pub struct Watch {
    pub offsets: Vec<WatchedOffset>,
    pub reply: ReplyTo<()>,
}

/// A bucket and the high watermark its reader knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WatchedOffset {
    pub bucket: BucketId,
    pub seen: Offset,
}

/// What a `Locate` looks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Position {
    /// The first offset that is kept.
    Earliest,
    /// The high watermark.
    Latest,
    /// The first record whose timestamp is at or after `time`. Batches that end at or below `from` are passed over: a search goes on
    /// behind a batch whose header promised what it does not hold.
    AtOrAfter { time: Timestamp, from: Offset },
    /// The record with the largest timestamp.
    MaxTimestamp,
}

impl Position {
    /// The first record of the whole log whose timestamp is at or after `time`.
    pub fn at_or_after(time: Timestamp) -> Position {
        Position::AtOrAfter { time, from: Offset(0) }
    }
}

/// What a `Locate` found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Located {
    /// An offset.
    Offset { offset: Offset, epoch: BucketEpoch },
    /// The batch that holds the record looked for, if its header tells the truth: the one who asked decodes it, off the core.
    Batch { batch: Bytes, log_start: Offset, epoch: BucketEpoch },
    /// No such record.
    Nothing { epoch: BucketEpoch },
}
