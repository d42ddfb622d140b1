//! A store over another one, of which only what differs is written down.
//!
//! Lives on: as the store below.
//! Owns: nothing.
//! Invariants: what a layer does not say itself, the store below does, unchanged.
use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;
use mink_types::{ObjectKey, Outcome};

use crate::stats::StoreStats;
use crate::store::{
    DeleteRefused, GetError, ListCursor, ListPage, ObjectMeta, ObjectStore, Payload, PutRefused, Span,
    StoreHealth,
};

/// An [`ObjectStore`] by way of another; each method means what it means there.
#[async_trait]
pub trait StoreLayer: Send + Sync + fmt::Debug {
    /// The store below.
    fn below(&self) -> &dyn ObjectStore;

    /// See [`ObjectStore::put`].
    async fn put(&self, key: &ObjectKey, payload: &Payload) -> Outcome<(), PutRefused> {
        self.below().put(key, payload).await
    }

    /// See [`ObjectStore::get`].
    async fn get(&self, key: &ObjectKey, span: Span) -> Result<Bytes, GetError> {
        self.below().get(key, span).await
    }

    /// See [`ObjectStore::head`].
    async fn head(&self, key: &ObjectKey) -> Result<ObjectMeta, GetError> {
        self.below().head(key).await
    }

    /// See [`ObjectStore::list`].
    async fn list(
        &self,
        prefix: &ObjectKey,
        cursor: Option<&ListCursor>,
        limit: usize,
    ) -> Result<ListPage, GetError> {
        self.below().list(prefix, cursor, limit).await
    }

    /// See [`ObjectStore::delete`].
    async fn delete(&self, keys: &[ObjectKey]) -> Vec<(ObjectKey, Outcome<(), DeleteRefused>)> {
        self.below().delete(keys).await
    }
}

#[async_trait]
impl<L: StoreLayer> ObjectStore for L {
    async fn put(&self, key: &ObjectKey, payload: &Payload) -> Outcome<(), PutRefused> {
        StoreLayer::put(self, key, payload).await
    }

    async fn get(&self, key: &ObjectKey, span: Span) -> Result<Bytes, GetError> {
        StoreLayer::get(self, key, span).await
    }

    async fn head(&self, key: &ObjectKey) -> Result<ObjectMeta, GetError> {
        StoreLayer::head(self, key).await
    }

    async fn list(
        &self,
        prefix: &ObjectKey,
        cursor: Option<&ListCursor>,
        limit: usize,
    ) -> Result<ListPage, GetError> {
        StoreLayer::list(self, prefix, cursor, limit).await
    }

    async fn delete(&self, keys: &[ObjectKey]) -> Vec<(ObjectKey, Outcome<(), DeleteRefused>)> {
        StoreLayer::delete(self, keys).await
    }

    fn health(&self) -> StoreHealth {
        self.below().health()
    }

    fn stats(&self) -> StoreStats {
        self.below().stats()
    }

    fn address(&self) -> String {
        self.below().address()
    }

    fn needs_put_budget(&self) -> bool {
        self.below().needs_put_budget()
    }
}
