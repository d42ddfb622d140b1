//! What Mink asks of an object store, and how each call may end.
//!
//! Lives on: service runtime.
//! Owns: nothing; the trait and its words.
//! Invariants: I1 (`Done` means durable), I20 (every read names the most bytes it takes).
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use mink_types::{ObjectKey, Outcome};

use crate::stats::StoreStats;

/// Most bytes of one put: one PUT, never multipart, which has no create condition.
pub const PUT_BYTES_MAX: u64 = 64 << 20;
/// Most keys that one page of a listing holds (S3's own bound).
pub const LIST_PAGE_MAX: usize = 1_000;
/// Most keys that go into one delete request (S3's own bound); longer lists are cut.
pub const DELETE_KEYS_MAX: usize = 1_000;

/// A store of immutable objects. All methods may be called at the same time from many tasks.
///
/// A call that is dropped before it ends (a time-out of the caller) may still happen: treat it as `Unknown`.
#[async_trait]
pub trait ObjectStore: Send + Sync + fmt::Debug {
    /// Creates `key` with `payload`, or is refused: nothing is ever overwritten. One attempt, no retries inside.
    /// After `Unknown` the caller repeats with the same payload, and reads back when that says [`PutRefused::Exists`].
    async fn put(&self, key: &ObjectKey, payload: &Payload) -> Outcome<(), PutRefused>;

    /// The bytes of `span`, exactly as many as were asked for.
    async fn get(&self, key: &ObjectKey, span: Span) -> Result<Bytes, GetError>;

    /// The length of an object, without its bytes.
    async fn head(&self, key: &ObjectKey) -> Result<ObjectMeta, GetError>;

    /// One page of the keys whose text begins with `prefix`, after `cursor`; at most `limit` (capped at
    /// [`LIST_PAGE_MAX`]) keys. A page may be short, even empty, while [`ListPage::next`] is there: go on until it is not
    /// (K-8). All pages together hold each key once. A page is in byte order; over pages stores differ (SeaweedFS goes
    /// folder by folder, S3 Express in no order), so who looks for the newest takes the greatest of all.
    async fn list(
        &self,
        prefix: &ObjectKey,
        cursor: Option<&ListCursor>,
        limit: usize,
    ) -> Result<ListPage, GetError>;

    /// Removes objects, in as few requests as the store allows. One outcome per key, in the order of `keys`; a key that
    /// was not there is `Done`.
    async fn delete(&self, keys: &[ObjectKey]) -> Vec<(ObjectKey, Outcome<(), DeleteRefused>)>;

    /// Whether the store can take writes as far as is known now; `/readyz` shows it. Heals by itself.
    fn health(&self) -> StoreHealth;

    /// Requests and bytes so far.
    fn stats(&self) -> StoreStats;

    /// Where this is, for logs and registrations. Holds no credentials.
    fn address(&self) -> String;

    /// Whether puts cost money or quota, so that the WAL's budget of puts applies.
    fn needs_put_budget(&self) -> bool;
}

/// The content of a put: a list of parts that are never joined. Clones share the parts, so every attempt sends the whole
/// payload from its first byte (P-1).
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Payload {
    parts: Arc<[Bytes]>,
    len: u64,
}

impl Payload {
    /// A payload of these parts, in order.
    pub fn new(parts: impl IntoIterator<Item = Bytes>) -> Payload {
        let parts: Arc<[Bytes]> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let len = parts.iter().map(|part| part.len() as u64).sum();
        Payload { parts, len }
    }

    /// Length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is not one byte.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The parts; none is empty.
    pub fn parts(&self) -> &[Bytes] {
        &self.parts
    }

    /// Whether the payload begins with `head`.
    pub fn starts_with(&self, head: &[u8]) -> bool {
        let mut rest = head;
        for part in self.parts.iter() {
            let n = part.len().min(rest.len());
            let (now, later) = rest.split_at(n);
            if !part.starts_with(now) {
                return false;
            }
            rest = later;
            if rest.is_empty() {
                return true;
            }
        }
        rest.is_empty()
    }

    /// The whole payload in one piece. Copies unless there is one part: for media that hold their own copy, and tests.
    pub fn to_bytes(&self) -> Bytes {
        match self.parts.as_ref() {
            [] => Bytes::new(),
            [one] => one.clone(),
            many => many.concat().into(),
        }
    }
}

impl From<Bytes> for Payload {
    fn from(bytes: Bytes) -> Payload {
        Payload::new([bytes])
    }
}

impl From<Vec<Bytes>> for Payload {
    fn from(parts: Vec<Bytes>) -> Payload {
        Payload::new(parts)
    }
}

impl From<&'static [u8]> for Payload {
    fn from(bytes: &'static [u8]) -> Payload {
        Payload::new([Bytes::from_static(bytes)])
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({} bytes in {} parts)", self.len, self.parts.len())
    }
}

/// What part of an object to read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Span {
    /// All of it, if it is at most `max` bytes long; else [`GetError::TooLarge`].
    Whole { max: u64 },
    /// Bytes `start..end` of it, all of which must exist; else [`GetError::Range`]. `end - start` is what may be allocated.
    Range(Range<u64>),
}

/// What is known of an object without reading it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ObjectMeta {
    /// Length in bytes.
    pub len: u64,
}

/// One page of a listing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListPage {
    /// Keys in byte order, relative to the store's prefix.
    pub entries: Vec<ListEntry>,
    /// Where the next page begins; `None` once the listing is complete (K-8).
    pub next: Option<ListCursor>,
    /// Names under the prefix that Mink does not make; they were skipped.
    pub foreign: usize,
}

/// An object of a listing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListEntry {
    /// Its key.
    pub key: ObjectKey,
    /// Its length in bytes.
    pub len: u64,
}

/// A place in a listing.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListCursor {
    /// Keys up to this text, relative to the store's prefix, are left out.
    pub(crate) after: Option<String>,
    /// What the store gave to go on with.
    pub(crate) token: Option<String>,
}

impl ListCursor {
    /// The keys greater than `key`, whether it exists or not. All keys of the listing must lie in the folder of `key`
    /// (a chain's numbers do): over folders stores disagree about what comes after what.
    pub fn after(key: &ObjectKey) -> ListCursor {
        ListCursor { after: Some(key.as_str().to_owned()), token: None }
    }
}

/// Every key that begins with `prefix`, page after page (K-8), at most `max` of them; the flag says that there are more.
pub async fn list_all(
    store: &dyn ObjectStore,
    prefix: &ObjectKey,
    max: usize,
) -> Result<(Vec<ListEntry>, bool), GetError> {
    let mut found = Vec::new();
    let mut cursor = None;
    while found.len() < max {
        let page = store.list(prefix, cursor.as_ref(), (max - found.len()).min(LIST_PAGE_MAX)).await?;
        found.extend(page.entries);
        if page.next.is_none() {
            return Ok((found, false));
        }
        if page.next == cursor {
            return Err(GetError::Unavailable { reason: "the listing does not advance".into() });
        }
        cursor = page.next;
    }
    Ok((found, true))
}

/// Why a put did not happen, for certain.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PutRefused {
    /// 412: decided, an object is there. After an earlier `Unknown` it may be our own: read back (K-3).
    #[error("an object is there already")]
    Exists,
    /// 409: nothing was decided between contenders; try again (K-4).
    #[error("contended, nothing was decided")]
    Conflict,
    /// No room. Retry once there is; [`ObjectStore::health`] shows it.
    #[error("the store is full: {reason}")]
    Full { reason: String },
    /// The credentials or file permissions do not allow it.
    #[error("not allowed: {reason}")]
    Denied { reason: String },
    /// Longer than [`PUT_BYTES_MAX`] or than the store takes.
    #[error("{len} bytes are more than one put can hold")]
    TooLarge { len: u64 },
    /// Anything else that is certain not to have happened; the status where there was one.
    #[error("refused{}: {reason}", .status.map(|s| format!(" with status {s}")).unwrap_or_default())]
    Other { status: Option<u16>, reason: String },
}

/// Why a delete did not happen, for certain.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DeleteRefused {
    /// The credentials or file permissions do not allow it.
    #[error("not allowed: {reason}")]
    Denied { reason: String },
    /// Anything else that is certain not to have happened; the status where there was one.
    #[error("refused{}: {reason}", .status.map(|s| format!(" with status {s}")).unwrap_or_default())]
    Other { status: Option<u16>, reason: String },
}

/// Why a read gave nothing. Reads change nothing, so there is no `Unknown`.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GetError {
    /// The store says that there is no such object.
    #[error("no such object")]
    NotFound,
    /// The object exists but does not hold the range, or the range is empty.
    #[error("the object does not hold bytes {}..{}", .asked.start, .asked.end)]
    Range { asked: Range<u64> },
    /// The object is longer than the caller takes.
    #[error("the object is {len} bytes long, more than the {max} that were allowed")]
    TooLarge { len: u64, max: u64 },
    /// The credentials or file permissions do not allow it.
    #[error("not allowed: {reason}")]
    Denied { reason: String },
    /// The store answered, but with other bytes than were asked for. A person must look.
    #[error("the store gave {got} bytes where {asked} were asked for")]
    WrongLength { asked: u64, got: u64 },
    /// No useful answer now: time-out, 5xx, lost connection, failed read. Try again later.
    #[error("the store does not answer: {reason}")]
    Unavailable { reason: String },
}

/// Whether a store takes writes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StoreHealth {
    /// As far as is known, yes.
    Well,
    /// No room, for this long.
    Full { since: Duration, reason: String },
    /// A sync failed: what lies in these places may not be durable, and writes to them stay undecided until the process
    /// starts anew (a second sync would report success for bytes that the kernel has dropped).
    SyncFailed { since: Duration, reason: String },
}
