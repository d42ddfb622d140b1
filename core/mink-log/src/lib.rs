//! The rules of a log tablet, as pure steps: which batch gets which offset and when, who may read how far.
//!
//! Lives on: anywhere (pure); a shard keeps one [`Tablet`] for each bucket it serves.
//! Owns: offsets, commit times, the producer table, the high watermark of one bucket. It holds no record bytes.
//! Talks to: nobody. A step changes the tablet and returns what its caller has to do.
//! Invariants: I2 offsets are dense and never move; I3 the high watermark never goes back and never passes what is durable;
//! I6 one idempotent producer's batch is stored once; I19 a refused step changes nothing.
#![forbid(unsafe_code)]

mod clock;
mod epochs;
mod error;
mod producers;
mod remembered;
mod snapshot;
mod tablet;

pub use clock::{CLOCK_JUMP_MS_MAX, ClockJump, CommitClock};
pub use epochs::{EPOCHS_REMEMBERED_MAX, EpochStart};
pub use error::{AppendRefused, OutOfRange, RecoverError, SnapshotError};
pub use producers::{ActiveProducer, EVICTABLE_IDLE_MS, LoggedBatch, ProducerLimits, Stamp, WINDOW_BATCHES};
pub use snapshot::{
    SNAPSHOT_PRODUCERS_MAX, SNAPSHOT_VERSION, SnapshotInfo, fold_producers, lost_below, snapshot_info,
};
pub use tablet::{AppendStep, ReadStep, Recovered, Tablet, TabletLimits};
