//! Durable entries become stream objects, and one commit names them all (several, if they have very many ranges).
//!
//! Lives on: service runtime, one flush at a time.
//! Owns: the counter of the incarnation's stream objects.     Talks to: the store, metadata through [`crate::Commits`].
//! Invariants: I1, P-2, P-3: a flush takes *all* entries of the numbers from the trim to the durable point, so the commit's
//! trim counts applied commits and itself only; I14: an object is deleted only once its commit's refusal is applied;
//! T-20: an object whose PUT fails is repeated under its own key, so no byte range is stored twice.
pub(crate) mod book;
pub(crate) mod plan;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::StreamExt as _;
use mink_types::{BucketId, ClusterName, ClusterUuid, ObjectId, ObjectKey, WalChain, WalNumber, Witness};

use crate::commit::{CommitEnd, Commits, CommittedObject, ProducerFold};
use crate::create::{Created, Creator, Frozen};
use crate::entry::Entry;
use crate::format::{Header, Nonce, ObjectKind, build, by_bucket};
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
        if let Some((object, what)) = self.put(&made).await {
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
                    self.discard(made.get(applied..).unwrap_or_default()).await;
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
        let mut all = Vec::with_capacity(objects.len());
        for pieces in objects {
            let counter = self.counter.fetch_add(1, Ordering::Relaxed);
            let id = ObjectId::Stream { chain: self.chain, counter };
            let random = || self.creator.service.random_u64();
            let header = Header {
                kind: ObjectKind::Stream,
                cluster: self.uuid,
                chain: self.chain,
                number: counter,
                nonce: Nonce::of(random(), random()),
                witness: (self.witness)(),
                durable_through: work.trim.0.checked_sub(1).map(WalNumber),
            };
            let built = build(&header, pieces.iter().map(|piece| (piece.bucket, piece.part())));
            let ranges = pieces.iter().flat_map(plan::Piece::ranges).collect();
            let committed = CommittedObject {
                id,
                length: built.payload.len(),
                footer_length: built.footer_length,
                checksum: built.checksum,
                ranges,
            };
            let key = ObjectKey::object(&self.cluster, id);
            let after = pieces.into_iter().map(|piece| (piece.bucket, piece.after)).collect();
            all.push(Made {
                frozen: Frozen { id, key, payload: built.payload, nonce: header.nonce },
                committed,
                after,
            });
        }
        all
    }

    /// Creates all objects; gives the first that something else was found under.
    async fn put(&self, made: &[Made]) -> Option<(ObjectId, String)> {
        let objects: Vec<Frozen> = made.iter().map(|made| made.frozen.clone()).collect();
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
    async fn discard(&self, made: &[Made]) {
        let keys: Vec<ObjectKey> = made.iter().map(|made| made.frozen.key.clone()).collect();
        for (key, outcome) in self.creator.store.delete(&keys).await {
            if !outcome.is_done() {
                tracing::info!(%key, ?outcome, "object of a refused commit not deleted, left to the sweep");
            }
        }
    }
}
