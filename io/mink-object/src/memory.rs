//! The `memory://` store: objects in a map, gone with the process.
//!
//! Lives on: service runtime.
//! Owns: the objects.
//! Invariants: create-only like every store; it keeps its own copy of what it is given (a slice would pin a shard's arena).
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use async_trait::async_trait;
use bytes::Bytes;
use mink_types::{ObjectKey, Outcome};

use crate::stats::StoreStats;
use crate::store::{
    DeleteRefused, GetError, LIST_PAGE_MAX, ListCursor, ListEntry, ListPage, ObjectMeta, ObjectStore,
    PUT_BYTES_MAX, Payload, PutRefused, Span, StoreHealth,
};

/// A store in memory. Wrap it in [`crate::Counted`] to count and to inject faults.
#[derive(Default)]
pub struct MemoryStore {
    objects: Mutex<BTreeMap<ObjectKey, Bytes>>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> MemoryStore {
        MemoryStore::default()
    }

    /// The map. Each change is one call on the map, so a panic elsewhere leaves it whole.
    fn objects(&self) -> MutexGuard<'_, BTreeMap<ObjectKey, Bytes>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "MemoryStore({} objects)", self.objects().len())
    }
}

/// Bytes that are copied at a stretch: a large object takes tens of milliseconds, in which others want their turn.
const STRETCH: usize = 1 << 20;

/// The payload in one piece of memory of its own.
async fn copied(payload: &Payload) -> Bytes {
    let mut own = Vec::with_capacity(payload.parts().iter().map(Bytes::len).sum());
    let mut stretch = 0;
    for piece in payload.parts().iter().flat_map(|part| part.chunks(STRETCH)) {
        if stretch + piece.len() > STRETCH {
            stretch = 0;
            give_way().await;
        }
        stretch += piece.len();
        own.extend_from_slice(piece);
    }
    own.into()
}

/// Lets every other task that is ready have its turn.
async fn give_way() {
    let mut gave = false;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut gave, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Cuts what `span` asks for out of a whole object.
fn cut(object: &Bytes, span: &Span) -> Result<Bytes, GetError> {
    let len = object.len() as u64;
    match span {
        Span::Whole { max } if len > *max => Err(GetError::TooLarge { len, max: *max }),
        Span::Whole { .. } => Ok(object.clone()),
        Span::Range(asked) => {
            let out_of_it = || GetError::Range { asked: asked.clone() };
            let start = usize::try_from(asked.start).map_err(|_| out_of_it())?;
            let end = usize::try_from(asked.end).map_err(|_| out_of_it())?;
            if start >= end || end > object.len() {
                return Err(out_of_it());
            }
            Ok(object.slice(start..end))
        }
    }
}

#[async_trait]
impl ObjectStore for MemoryStore {
    async fn put(&self, key: &ObjectKey, payload: &Payload) -> Outcome<(), PutRefused> {
        if payload.len() > PUT_BYTES_MAX {
            return Outcome::Refused(PutRefused::TooLarge { len: payload.len() });
        }
        if key.as_str().ends_with('/') {
            let reason = "not the name of an object".into();
            return Outcome::Refused(PutRefused::Other { status: None, reason });
        }
        let own = copied(payload).await;
        match self.objects().entry(key.clone()) {
            std::collections::btree_map::Entry::Occupied(_) => Outcome::Refused(PutRefused::Exists),
            std::collections::btree_map::Entry::Vacant(free) => {
                free.insert(own);
                Outcome::Done(())
            }
        }
    }

    async fn get(&self, key: &ObjectKey, span: Span) -> Result<Bytes, GetError> {
        self.objects().get(key).ok_or(GetError::NotFound).and_then(|object| cut(object, &span))
    }

    async fn head(&self, key: &ObjectKey) -> Result<ObjectMeta, GetError> {
        self.objects()
            .get(key)
            .map(|object| ObjectMeta { len: object.len() as u64 })
            .ok_or(GetError::NotFound)
    }

    async fn list(
        &self,
        prefix: &ObjectKey,
        cursor: Option<&ListCursor>,
        limit: usize,
    ) -> Result<ListPage, GetError> {
        let limit = limit.clamp(1, LIST_PAGE_MAX);
        let after =
            cursor.and_then(|cursor| cursor.after.as_ref()).and_then(|text| ObjectKey::parse(text).ok());
        let from = match &after {
            Some(after) if after >= prefix => Bound::Excluded(after),
            _ => Bound::Included(prefix),
        };
        let objects = self.objects();
        let mut found = objects
            .range((from, Bound::Unbounded))
            .take_while(|(key, _)| key.as_str().starts_with(prefix.as_str()))
            .map(|(key, object)| ListEntry { key: key.clone(), len: object.len() as u64 });
        let entries: Vec<ListEntry> = found.by_ref().take(limit).collect();
        let next = found.next().and(entries.last()).map(|last| ListCursor::after(&last.key));
        Ok(ListPage { entries, next, foreign: 0 })
    }

    async fn delete(&self, keys: &[ObjectKey]) -> Vec<(ObjectKey, Outcome<(), DeleteRefused>)> {
        let mut objects = self.objects();
        keys.iter()
            .map(|key| {
                objects.remove(key);
                (key.clone(), Outcome::Done(()))
            })
            .collect()
    }

    fn health(&self) -> StoreHealth {
        StoreHealth::Well
    }

    fn stats(&self) -> StoreStats {
        StoreStats::default()
    }

    fn address(&self) -> String {
        "memory://".into()
    }

    fn needs_put_budget(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Context;

    #[test]
    fn a_large_object_gives_way_while_it_is_copied_and_comes_out_whole() {
        let store = MemoryStore::new();
        let (large, small) = (ObjectKey::parse("large").unwrap(), ObjectKey::parse("small").unwrap());
        let parts: Vec<Bytes> = (1..=3).map(|n| Bytes::from(vec![n; STRETCH - 7])).collect();
        let payload = Payload::from(parts.clone());
        let mut put = std::pin::pin!(store.put(&large, &payload));
        let mut context = Context::from_waker(std::task::Waker::noop());
        assert!(put.as_mut().poll(&mut context).is_pending(), "others have their turn");
        let short = Payload::from(vec![Bytes::from_static(b"short")]);
        let other = std::pin::pin!(store.put(&small, &short)).poll(&mut context);
        assert_eq!(other, Poll::Ready(Outcome::Done(())), "a short one goes at once");
        let turns = (0..10).take_while(|_| put.as_mut().poll(&mut context).is_pending()).count();
        assert!(turns <= 3, "{turns}");
        assert_eq!(store.objects().get(&large).cloned(), Some(Bytes::from(parts.concat())));
    }
}
