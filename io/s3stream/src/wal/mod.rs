//! The node's WAL: chunks of all shards become one chain of create-only objects (decisions 0003, 0004).
//!
//! Lives on: the handle anywhere; the writer is one task on the service runtime.
//! Owns: the chain's next number, the linger timer, the PUTs in flight, the order of acks, the durable data that is not yet
//! committed.     Talks to: shards by [`ChunkSender`] and completions, the store, metadata through [`crate::Commits`].
//! Invariants: I1, I5: a chunk is told durable only when its object and every one before it are known to hold our bytes;
//! I20: untrimmed WAL, lanes and PUTs are bounded, and a store that is gone stops the shards instead of failing them.
mod behind;
#[cfg(test)]
mod bill;
pub(crate) mod budget;
mod chain;
mod config;
mod cut;
#[cfg(test)]
mod hedged;
mod jobs;
mod lane;
#[cfg(test)]
mod outage;
#[cfg(test)]
mod requests;
#[cfg(test)]
mod tests;
mod waiting;
mod writer;

pub use config::{WalConfig, WalConfigError};
pub use lane::{ChunkSender, LaneClosed, PushError};

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use futures::SinkExt as _;
use futures::channel::{mpsc, oneshot};
use futures::future::{FutureExt as _, Shared};
use mink_object::ObjectStore;
use mink_rt::{Service, Task};
use mink_types::{BucketId, ClusterName, ClusterUuid, ObjectId, WalChain, WalNumber, Witness};

use crate::commit::{Commits, OpenedBucket, ProducerFold};
use crate::flush::Flusher;
use crate::flush::book::Book;
use crate::format::Sealer;

/// Requests to the writer that may wait.
const CONTROLS_MAX: usize = 64;

/// What a WAL is made of.
pub struct WalParts {
    pub service: Service,
    /// Where WAL objects go.
    pub wal_store: Arc<dyn ObjectStore>,
    /// Where stream objects go; the same, unless the WAL lives elsewhere.
    pub stream_store: Arc<dyn ObjectStore>,
    pub cluster: ClusterName,
    pub uuid: ClusterUuid,
    /// This incarnation's chain. It must be new: a restart registers anew and takes its old chain over.
    pub chain: WalChain,
    pub config: WalConfig,
    pub commits: Arc<dyn Commits>,
    pub fold: Arc<dyn ProducerFold>,
    /// How far this node has applied the command log.
    pub witness: Arc<dyn Fn() -> Witness + Send + Sync>,
}

impl fmt::Debug for WalParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WalParts")
            .field("chain", &self.chain)
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

/// Why the writer ended. Chunks that were not durable by then are told [`crate::ChunkEnd::Fenced`].
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum WalEnd {
    /// All is committed and the chain sealed by ourselves, as [`Wal::drain`] asked.
    Drained(Drained),
    /// Another took the chain over, or the command log says that we are fenced. Drop all buckets; rejoin as a new
    /// incarnation or exit.
    Fenced { by: Option<Sealer> },
    /// Something lies under a key that only we may write. Stop; a person must look at the object.
    Foreign { object: ObjectId, what: String },
    /// Commits are refused though nobody fenced us: our view of the buckets is wrong. Stop; a takeover recovers.
    Refused { reason: String },
    /// The metadata driver has stopped.
    CommitsStopped,
    /// [`Wal::stop`] was called, or the last handle was dropped.
    Stopped,
    /// A task of the WAL panicked; the log has the message. Its state is suspect: stop.
    Panicked,
}

/// The end of a chain that its own node closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Drained {
    /// The seal's number. Everything below is committed: it is the trim, too.
    pub seal: WalNumber,
}

impl fmt::Display for WalEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WalEnd::Drained(drained) => write!(f, "drained, sealed at {}", drained.seal),
            WalEnd::Fenced { by: None } => f.write_str("fenced by the command log"),
            WalEnd::Fenced { by: Some(by) } => {
                write!(f, "fenced: sealed by node {} incarnation {}", by.chain.node, by.chain.incarnation)
            }
            WalEnd::Foreign { object, what } => write!(f, "{object}: {what}"),
            WalEnd::Refused { reason } => write!(f, "commits are refused: {reason}"),
            WalEnd::CommitsStopped => f.write_str("the metadata driver has stopped"),
            WalEnd::Stopped => f.write_str("stopped"),
            WalEnd::Panicked => f.write_str("a task of the WAL panicked"),
        }
    }
}

impl std::error::Error for WalEnd {}

/// The writer's numbers, for metrics and tests.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct WalStats {
    /// The number that the next object gets: so many were cut.
    pub next: u64,
    /// All numbers below are durable.
    pub durable_below: u64,
    /// All numbers below are committed.
    pub trim: u64,
    /// Bytes of all objects cut, at most: an object's index is counted by its bound.
    pub bytes_cut: u64,
    /// Chunks and bytes that wait to be cut.
    pub waiting_chunks: usize,
    pub waiting_bytes: u64,
    /// Objects cut and not yet durable in order.
    pub in_flight: usize,
    /// Objects and (at most) bytes that a takeover would have to read.
    pub untrimmed_objects: usize,
    pub untrimmed_bytes: u64,
    /// Whether cutting waits for a trim.
    pub full: bool,
    /// Attempts of PUTs beyond the first of their object, stream objects included.
    pub repeats: u64,
    /// Second PUTs of WAL objects whose first was late, and how many of them ended first.
    pub hedges: u64,
    pub hedges_won: u64,
    /// Commits applied and refused.
    pub flushes: u64,
    pub refusals: u64,
}

/// Handle of a node's WAL. Clones are handles of the same.
#[derive(Clone)]
pub struct Wal {
    control: mpsc::Sender<Control>,
    lane: ChunkSender,
    end: Shared<oneshot::Receiver<WalEnd>>,
    stats: Arc<Mutex<WalStats>>,
    book: Arc<Book>,
    /// What compaction shares with the flusher: above all the counter of stream objects.
    flusher: Arc<Flusher>,
    /// The writer's task; whoever waits for the end of the WAL waits through `end`, which it sends last.
    _task: Arc<Task>,
}

enum Control {
    Flush(oneshot::Sender<()>),
    Drain,
    Stop,
}

impl Wal {
    /// Starts the writer. Nothing is sent to the store before the first chunk.
    pub fn start(parts: WalParts) -> Result<Wal, WalConfigError> {
        parts.config.check()?;
        let (control, controls) = mpsc::channel(CONTROLS_MAX);
        let (lane, chunks) = lane::lane(parts.config.lane_chunks);
        let (tell_end, end) = oneshot::channel();
        let stats = Arc::new(Mutex::new(WalStats::default()));
        let book = Arc::new(Book::default());
        let service = parts.service.clone();
        let writer = writer::Writer::new(parts, controls, chunks, Arc::clone(&stats), Arc::clone(&book));
        let flusher = writer.flusher();
        let task = service.spawn("wal-writer", async move {
            let end = writer.run().await;
            // Nobody listens any more when all handles are gone.
            drop(tell_end.send(end));
        });
        Ok(Wal { control, lane, end: end.shared(), stats, book, flusher, _task: Arc::new(task) })
    }

    /// Who writes this incarnation's stream objects.
    pub(crate) fn flusher(&self) -> Arc<Flusher> {
        Arc::clone(&self.flusher)
    }

    /// A lane for one more shard.
    pub fn sender(&self) -> ChunkSender {
        self.lane.clone()
    }

    /// Tells what a bucket looks like at its committed end. Call it when the `Open` is applied, before the bucket's first
    /// chunk: else its objects carry no producer snapshot, and its next recovery has more to read.
    pub fn open_bucket(&self, opened: OpenedBucket) {
        self.book.open(opened);
    }

    /// Forgets a bucket that was released.
    pub fn close_bucket(&self, bucket: &BucketId) {
        self.book.close(bucket);
    }

    /// Waits until everything that is durable now is committed.
    pub async fn flush_now(&self) -> Result<(), WalEnd> {
        let (tell, done) = oneshot::channel();
        let asked = self.control.clone().send(Control::Flush(tell)).await.is_ok();
        match done.await {
            Ok(()) if asked => Ok(()),
            _ => Err(self.ended().await),
        }
    }

    /// Takes no more chunks, makes all durable, commits all, seals the chain. For a node that leaves; its buckets must have
    /// stopped accepting.
    pub async fn drain(&self) -> Result<Drained, WalEnd> {
        // A writer that has ended says why below.
        drop(self.control.clone().send(Control::Drain).await);
        match self.ended().await {
            WalEnd::Drained(drained) => Ok(drained),
            end => Err(end),
        }
    }

    /// Stops at once, as a crash would: what is not durable is told [`crate::ChunkEnd::Fenced`].
    pub async fn stop(&self) {
        drop(self.control.clone().send(Control::Stop).await);
        self.ended().await;
    }

    /// Waits for the end of the writer.
    pub async fn ended(&self) -> WalEnd {
        self.end.clone().map(|end| end.unwrap_or(WalEnd::Panicked)).await
    }

    /// The writer's numbers, as of its last step.
    pub fn stats(&self) -> WalStats {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for Wal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wal").field("stats", &self.stats()).finish_non_exhaustive()
    }
}
