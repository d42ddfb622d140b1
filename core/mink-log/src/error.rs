//! Why a tablet refuses a step. Frontends give each kind its protocol's code; nothing has changed when one is returned.
//!
//! Lives on: anywhere (pure).
use mink_types::{Offset, ProducerEpoch, ProducerId, Sequence};

/// Why a batch gets no offset (I19: the tablet is as it was).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum AppendRefused {
    /// Larger than the table takes. A retry of the same batch is refused again.
    #[error("the batch has {bytes} bytes, the table takes {bytes_max}")]
    TooLarge { bytes: u64, bytes_max: u64 },
    /// A gap before the batch, a repeat older than the window, or a first batch of a log that begins later than 0.
    #[error("producer {producer} sent sequence {found}, expected {expected:?}")]
    OutOfOrder { producer: ProducerId, expected: Option<Sequence>, found: Sequence },
    /// A newer epoch of the same producer id has written here.
    #[error("producer {producer} is at epoch {current}, the batch has {found}")]
    ProducerFenced { producer: ProducerId, current: ProducerEpoch, found: ProducerEpoch },
    /// The table of producers is full of ones that were active within the last hour.
    #[error("{producers} producers are remembered and none is idle; retry later")]
    TooManyProducers { producers: u32 },
}

/// A read outside the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("offset {offset} is outside {start}..={end}")]
pub struct OutOfRange {
    pub offset: Offset,
    /// First offset that is kept.
    pub start: Offset,
    /// The high watermark.
    pub end: Offset,
}

/// Why recovered state is no tablet. The bucket must not open: its metadata or its objects contradict each other.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RecoverError {
    #[error("the log starts at {start}, behind its end {end}; the bucket stays closed, check its metadata")]
    StartBehindEnd { start: Offset, end: Offset },
    #[error("the log ends at {end}, beyond any offset that can be served; the bucket stays closed")]
    EndTooLarge { end: Offset },
    #[error(
        "the producer state is as of offset {as_of}, beyond the log's end {end}; the bucket stays closed, as it would take \
         batches for repeats that are not stored"
    )]
    ProducersAhead { as_of: Offset, end: Offset },
    #[error("a recovered batch at offset {offset} lies outside {from}..{end} or behind its successor")]
    BatchOutOfPlace { offset: Offset, from: Offset, end: Offset },
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
}

/// Why bytes are no snapshot of a producer table.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SnapshotError {
    #[error("producer snapshot: {bytes} bytes are too few, or not as many as its count says")]
    Length { bytes: usize },
    #[error("producer snapshot: version {version} is not known to this release; start a newer one")]
    Version { version: u16 },
    #[error("producer snapshot: the checksum is {computed:08x}, {stated:08x} was written")]
    Checksum { stated: u32, computed: u32 },
    #[error("producer snapshot: {what}")]
    Content { what: &'static str },
}
