//! The `file://` store: immutable objects as files, durable before they are answered for.
//!
//! Lives on: service runtime; its system calls on the blocking pool.
//! Owns: the root directory's handle, this process's temporaries.     Talks to: mink-rt (blocking work).
//! Invariants: I1: a put is answered only after fdatasync of the bytes, the link to the final name and fsync of its
//! directory, in that order; a file or directory whose sync failed is never synced again. Nothing outside of the root is
//! reached, no symbolic link below it is followed.
//!
//! Assumed of the file system: hard links, and fsync of directories; both are tried out when the store is opened.

mod delete;
mod durable;
mod list;
mod put;
mod read;
mod root;
mod scratch;
mod steps;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use mink_rt::{BlockingError, Service};
use mink_types::{ObjectKey, Outcome};

pub use steps::{DiskFaults, DiskStep};

use crate::stats::StoreStats;
use crate::store::{
    DeleteRefused, GetError, LIST_PAGE_MAX, ListCursor, ListPage, ObjectMeta, ObjectStore, PUT_BYTES_MAX,
    Payload, PutRefused, Span, StoreHealth,
};
use durable::Durable;
use root::Root;
use scratch::Scratch;
use steps::Steps;

/// A store in a directory. Wrap it in [`crate::Counted`] to count and to inject faults.
#[derive(Debug)]
pub struct FileStore {
    disk: Arc<Disk>,
    service: Service,
}

/// What the verbs work on, shared with the blocking pool.
#[derive(Debug)]
struct Disk {
    path: PathBuf,
    root: Root,
    scratch: Scratch,
    durable: Durable,
    steps: Steps,
    service: Service,
}

/// Why a directory cannot be a store. The message holds the remedy.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileOpenError {
    #[error("cannot {what} in {path}: {source}")]
    Io { what: &'static str, path: PathBuf, source: std::io::Error },
    #[error("the file system of {path} has no {what}, which durable create-only writes need: {source}")]
    Unfit { what: &'static str, path: PathBuf, source: std::io::Error },
}

impl FileStore {
    /// Opens the store in `path`, which is made if need be, tries the file system out and removes what dead processes left.
    /// Blocks for a few system calls; `faults` is asked before each step that writes.
    pub(crate) fn open(
        path: &Path,
        service: &Service,
        faults: Option<Arc<dyn DiskFaults>>,
    ) -> Result<FileStore, FileOpenError> {
        let root = Root::open(path)?;
        let scratch = Scratch::open(path, &root, service)?;
        scratch.try_out(path)?;
        let disk = Disk {
            path: path.to_owned(),
            root,
            scratch,
            durable: Durable::default(),
            steps: Steps::new(faults),
            service: service.clone(),
        };
        Ok(FileStore { disk: Arc::new(disk), service: service.clone() })
    }

    async fn blocking<T: Send + 'static>(
        &self,
        name: &'static str,
        work: impl FnOnce(&Disk) -> T + Send + 'static,
    ) -> Result<T, BlockingError> {
        let disk = Arc::clone(&self.disk);
        self.service.blocking(name, move || work(&disk)).await
    }
}

fn unavailable(error: &BlockingError) -> GetError {
    GetError::Unavailable { reason: error.to_string() }
}

#[async_trait]
impl ObjectStore for FileStore {
    async fn put(&self, key: &ObjectKey, payload: &Payload) -> Outcome<(), PutRefused> {
        if payload.len() > PUT_BYTES_MAX {
            return Outcome::Refused(PutRefused::TooLarge { len: payload.len() });
        }
        let (key, payload) = (key.clone(), payload.clone());
        match self.blocking("file-put", move |disk| disk.put(&key, &payload)).await {
            Ok(outcome) => outcome,
            Err(error) => Outcome::unknown(error.to_string()),
        }
    }

    async fn get(&self, key: &ObjectKey, span: Span) -> Result<Bytes, GetError> {
        let key = key.clone();
        self.blocking("file-get", move |disk| disk.get(&key, &span))
            .await
            .map_err(|error| unavailable(&error))?
    }

    async fn head(&self, key: &ObjectKey) -> Result<ObjectMeta, GetError> {
        let key = key.clone();
        self.blocking("file-head", move |disk| disk.head(&key)).await.map_err(|error| unavailable(&error))?
    }

    async fn list(
        &self,
        prefix: &ObjectKey,
        cursor: Option<&ListCursor>,
        limit: usize,
    ) -> Result<ListPage, GetError> {
        let prefix = prefix.as_str().to_owned();
        let after = cursor.and_then(|cursor| cursor.after.clone()).unwrap_or_default();
        let limit = limit.clamp(1, LIST_PAGE_MAX);
        self.blocking("file-list", move |disk| disk.list(&prefix, &after, limit))
            .await
            .map_err(|error| unavailable(&error))?
    }

    async fn delete(&self, keys: &[ObjectKey]) -> Vec<(ObjectKey, Outcome<(), DeleteRefused>)> {
        let owned = keys.to_vec();
        match self.blocking("file-delete", move |disk| disk.delete(&owned)).await {
            Ok(results) => results,
            Err(error) => keys.iter().map(|key| (key.clone(), Outcome::unknown(error.to_string()))).collect(),
        }
    }

    fn health(&self) -> StoreHealth {
        self.disk.durable.health(&self.disk.root, self.service.now())
    }

    fn stats(&self) -> StoreStats {
        StoreStats::default()
    }

    fn address(&self) -> String {
        format!("file://{}", self.disk.path.display())
    }

    fn needs_put_budget(&self) -> bool {
        false
    }
}

/// `a/b/c` is `c` in the directory `a/b`. A key without a slash lies in the root, one that ends in a slash is none.
fn split(key: &ObjectKey) -> Option<(&str, &str)> {
    let (dir, leaf) = key.as_str().rsplit_once('/').unwrap_or(("", key.as_str()));
    let hidden = key.as_str().split('/').next() == Some(scratch::FOLDER);
    (!leaf.is_empty() && !hidden).then_some((dir, leaf))
}
