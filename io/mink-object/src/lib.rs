//! The object-store seam: create-only put, ranged get, list, delete, with outcomes, counters, a fault seam and a probe.
//!
//! Lives on: service runtime (never on a core: a shard reaches it through the WAL writer and the flusher).
//! Owns: every connection to a store, the counts of requests and bytes.     Talks to: mink-rt (blocking work, sleep).
//! Invariants: nothing is ever overwritten (a put creates or is refused); an outcome that is not known is `Unknown`, never
//! a failure (I1, I7); `Done` means durable; no read allocates more than the caller allowed (I20).
//!
//! Only this crate names the `object_store` library. `open` turns a storage URL into an [`ObjectStore`].
#![forbid(unsafe_code)]

mod answers;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod counted;
mod exactly;
mod faults;
mod file;
mod latency;
mod layer;
mod memory;
mod open;
mod probe;
mod s3;
mod stats;
mod store;
#[cfg(test)]
mod tests;

pub use counted::Counted;
pub use exactly::{CreateError, Created, Existing, create_exactly, decide_exists};
pub use faults::{FaultAnswer, FaultSeam, Request};
pub use file::{DiskFaults, DiskStep, FileStore};
pub use layer::StoreLayer;
pub use memory::MemoryStore;
pub use open::{OpenContext, OpenError, OpenErrorKind, open};
pub use probe::{ProbeVerdict, probe};
pub use stats::{Op, RequestOutcome, StoreStats};
pub use store::{
    DELETE_KEYS_MAX, DeleteRefused, GetError, LIST_PAGE_MAX, ListCursor, ListEntry, ListPage, ObjectMeta,
    ObjectStore, PUT_BYTES_MAX, Payload, PutRefused, Span, StoreHealth, list_all,
};

/// How a call may end; see [`mink_types::Outcome`].
pub use mink_types::{Indeterminate, ObjectKey, Outcome};
