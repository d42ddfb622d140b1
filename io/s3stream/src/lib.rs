//! The stream engine: the WAL chain of a node, its stream objects, flush and trim, takeover, reads of committed data.
//!
//! Lives on: service runtime, but for [`Batcher`] and [`ChunkSender`], which live on the cores.
//! Owns: the format of WAL and stream objects, the chain's numbers, durable data that is not yet committed.
//! Talks to: the object store; metadata only through [`Commits`], which mink-node implements.
//! Invariants: I1, I2, I5, I14.     See: docs/format.md
//!
//! The way of a write: a shard's [`Batcher`] collects ordered [`Entry`]s, seals them into a [`Chunk`] and pushes that through
//! a [`ChunkSender`]; the [`Wal`]'s writer joins the chunks of all shards into numbered, create-only objects and tells each
//! chunk's [`Completion`] in chain order. Behind it, durable data is flushed into stream objects by one commit that also
//! moves the trim. After a crash a [`Takeover`] walks the dead chain to its seal, and [`Recovered::adopt`] says what to commit
//! before its buckets open. A [`Reader`] reads what is committed.
#![forbid(unsafe_code)]

mod batcher;
mod commit;
mod compact;
mod create;
mod entry;
mod error;
mod flush;
pub mod format;
mod hedge;
#[cfg(test)]
mod history;
mod read;
mod sweep;
mod takeover;
#[cfg(test)]
mod testing;
mod trim;
mod wal;

pub use batcher::{
    Batcher, CHUNK_BYTES, CHUNK_BYTES_MAX, CHUNK_ENTRIES_MAX, Chunk, ChunkEnd, Completion, EntryTooLarge,
};
pub use commit::{
    CommitEnd, Commits, CommitsStopped, CommittedObject, CommittedRange, FoldError, OpenedBucket,
    ProducerFold, StreamCommit, StreamRewrite,
};
pub use compact::{
    CompactionEnd, CompactionJob, CompactionMove, CompactionParts, CompactionStats, Compactor, RangesBefore,
};
pub use entry::{ENTRY_BYTES_MAX, Entry, EntryKind, EpochStart, IndexEntry, KnownChecksum, ProducerStamp};
pub use error::{Error, ErrorKind};
pub use format::{FORMAT_VERSION, Footer, FooterBucket, Header, ObjectKind, Sealer};
pub use read::{
    BucketRecovery, ObjectRange, ReadAnswer, ReadBatch, ReadRequest, ReadStats, Reader, ReaderParts,
    Unreadable,
};
pub use sweep::{Swept, sweep_stream, sweep_wal};
pub use takeover::{
    Adoption, BucketView, Damaged, Found, Gap, LostRange, RANGES_PER_COMMIT, Recovered, RecoveredObject,
    Step, Takeover, Walk,
};
pub use wal::{
    ChunkSender, Drained, LaneClosed, PushError, Wal, WalConfig, WalConfigError, WalEnd, WalParts, WalStats,
};
