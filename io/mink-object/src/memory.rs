//! The `memory://` store: objects in a map, gone with the process.
//!
//! Lives on: service runtime.
//! Owns: the objects.
//! Invariants: create-only like every store; it keeps its own copy of what it is given (a slice would pin a shard's arena).
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

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
        let own = Bytes::from(payload.parts().concat());
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
