//! Durable entries become stream objects, and one commit names them all (several, if they have very many ranges).
//!
//! Lives on: service runtime, one flush at a time.
//! Owns: the counter of the incarnation's stream objects.     Talks to: the store, metadata through [`crate::Commits`].
//! Invariants: I1, P-2, P-3: a flush takes *all* entries of the numbers from the trim to a durable one, so the commit's
//! trim counts applied commits and itself only; I14: an object is deleted only once its commit's refusal is applied;
//! T-20: an object whose PUT fails is repeated under its own key, so no byte range is stored twice.
//!
//! What it holds (I20): the entries' bytes are those of the log's own chunks, counted there; of each of its entries, which are
//! bounded in number, a place in the list of an object's parts and the index; and of its buckets the producers, which the book
//! holds too, twice more (as the state after the flush, and in the footer).
pub(crate) mod book;
pub(crate) mod plan;
mod shelf;
mod zeros;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::StreamExt as _;
use mink_types::{BucketId, ClusterName, ClusterUuid, ObjectId, ObjectKey, WalChain, WalNumber, Witness};

use crate::commit::{CommitEnd, Commits, CommittedObject, ProducerFold};
use crate::create::{Created, Creator, Frozen};
use crate::entry::Entry;
use crate::format::{Header, Nonce, ObjectKind, Part, build, by_bucket};
use crate::takeover::in_commits;
use book::{Book, BucketState};

/// PUTs of stream objects at a time.
const PUTS_MAX: usize = 4;

/// What a flush takes: the entries of whole WAL objects, in chain order.
#[derive(Debug)]
pub(crate) struct FlushWork {
    pub(crate) entries: Vec<Arc<Vec<Entry>>>,
    /// The number after the last of them: the trim once this is committed.
    pub(crate) trim: WalNumber,
}

/// How a flush ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum FlushEnd {
    Applied {
        trim: WalNumber,
    },
    /// `partly`: commits before the refused one were applied, so the same work cannot be tried again.
    Refused {
        fenced: bool,
        partly: bool,
        reason: String,
    },
    /// The metadata driver has stopped.
    CommitsStopped,
    /// Something else lies under a key of ours.
    Foreign {
        object: ObjectId,
        what: String,
    },
}

/// Who flushes.
pub(crate) struct Flusher {
    pub(crate) creator: Creator,
    pub(crate) cluster: ClusterName,
    pub(crate) uuid: ClusterUuid,
    pub(crate) chain: WalChain,
    pub(crate) commits: Arc<dyn Commits>,
    pub(crate) fold: Arc<dyn ProducerFold>,
    pub(crate) witness: Arc<dyn Fn() -> Witness + Send + Sync>,
    pub(crate) book: Arc<Book>,
    /// The next stream object's; never given twice, also not for one that was refused.
    pub(crate) counter: AtomicU64,
}

/// A stream object whose bytes are settled, and what a commit says of them.
pub(crate) struct FrozenStream {
    pub(crate) object: Frozen,
    pub(crate) footer_length: u32,
    pub(crate) checksum: u32,
}

struct Made {
    frozen: Frozen,
    committed: CommittedObject,
    after: Vec<(BucketId, Option<BucketState>)>,
}

impl Flusher {
    /// Writes and commits what `work` holds.
    pub(crate) async fn flush(&self, work: FlushWork) -> FlushEnd {
        let made = self.make(&work);
        drop(work.entries);
        if let Some((object, what)) = self.put(made.iter().map(|made| made.frozen.clone())).await {
            return FlushEnd::Foreign { object, what };
        }
        let mut commits = in_commits(self.chain, made.iter().map(|made| made.committed.clone()));
        // Only the last one may trim: it alone has all of the work applied before it.
        if let Some(last) = commits.last_mut() {
            last.trim = Some(work.trim);
        }
        let mut applied = 0;
        for commit in commits {
            let objects = commit.objects.len();
            match self.commits.commit(commit).await {
                Err(_) => return FlushEnd::CommitsStopped,
                Ok(CommitEnd::Applied) => applied += objects,
                Ok(CommitEnd::Refused { fenced, reason }) => {
                    let refused = made.get(applied..).unwrap_or_default();
                    self.discard(refused.iter().map(|made| made.frozen.key.clone()).collect()).await;
                    return FlushEnd::Refused { fenced, partly: applied > 0, reason };
                }
            }
        }
        self.book.committed(made.into_iter().flat_map(|made| made.after).collect());
        FlushEnd::Applied { trim: work.trim }
    }

    /// Builds all objects. Nothing waits in here, so the plan may borrow the entries.
    fn make(&self, work: &FlushWork) -> Vec<Made> {
        let entries = work.entries.iter().flat_map(|entries| entries.iter());
        let objects = plan::plan(&self.creator.config, by_bucket(entries), &self.book, self.fold.as_ref());
        objects
            .into_iter()
            .map(|pieces| self.freeze(pieces, work.trim.0.checked_sub(1).map(WalNumber)))
            .collect()
    }

    /// Settles the bytes of one object under the next counter.
    fn freeze(&self, pieces: Vec<plan::Piece<'_>>, durable_through: Option<WalNumber>) -> Made {
        let frozen = self.frozen(pieces.iter().map(|piece| (piece.bucket, piece.part())), durable_through);
        let committed = CommittedObject {
            id: frozen.object.id,
            length: frozen.object.payload.len(),
            footer_length: frozen.footer_length,
            checksum: frozen.checksum,
            ranges: pieces.iter().flat_map(plan::Piece::ranges).collect(),
        };
        let after = pieces.into_iter().map(|piece| (piece.bucket, piece.after)).collect();
        Made { frozen: frozen.object, committed, after }
    }

    /// A stream object under the next counter of this incarnation; compaction's come from the same one.
    pub(crate) fn frozen<'a>(
        &self,
        parts: impl IntoIterator<Item = (BucketId, Part<'a>)>,
        durable_through: Option<WalNumber>,
    ) -> FrozenStream {
        let counter = self.counter.fetch_add(1, Ordering::Relaxed);
        let random = || self.creator.service.random_u64();
        let header = Header {
            kind: ObjectKind::Stream,
            cluster: self.uuid,
            chain: self.chain,
            number: counter,
            nonce: Nonce::of(random(), random()),
            witness: (self.witness)(),
            durable_through,
        };
        let id = header.object();
        let built = build(&header, parts);
        let key = ObjectKey::object(&self.cluster, id);
        FrozenStream {
            object: Frozen { id, key, payload: built.payload, nonce: header.nonce },
            footer_length: built.footer_length,
            checksum: built.checksum,
        }
    }

    /// Creates all objects; gives the first that something else was found under.
    pub(crate) async fn put(&self, objects: impl Iterator<Item = Frozen>) -> Option<(ObjectId, String)> {
        // A list: the stream below must not borrow from the caller.
        let objects: Vec<Frozen> = objects.collect();
        let puts =
            objects.into_iter().map(|object| async move { (object.id, self.creator.create(&object).await) });
        let mut puts = std::pin::pin!(futures::stream::iter(puts).buffered(PUTS_MAX));
        while let Some((object, created)) = puts.next().await {
            match created {
                Created::Ours => {}
                Created::Sealed(_) => {
                    return Some((object, "a seal where a stream object belongs".to_owned()));
                }
                Created::Foreign { what } => return Some((object, what)),
            }
        }
        None
    }

    /// Deletes the objects of a refused commit. What fails here is garbage of an incarnation that will be fenced one day;
    /// the collector's sweep of its prefix takes it then.
    pub(crate) async fn discard(&self, keys: Vec<ObjectKey>) {
        for (key, outcome) in self.creator.store.delete(&keys).await {
            if !outcome.is_done() {
                tracing::info!(%key, ?outcome, "object of a refused commit not deleted, left to the sweep");
            }
        }
    }
}
