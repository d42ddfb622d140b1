//! The steps of a put or delete by name, so that a test can make any of them fail.
//!
//! Lives on: the blocking pool.
//! Invariants: none of its own; production has no faults here.
use std::fmt::Debug;
use std::sync::Arc;

use rustix::io::Errno;

/// A system call that writes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DiskStep {
    /// Making the temporary.
    CreateTemporary,
    /// Writing the bytes into it.
    Write,
    /// fdatasync of the temporary.
    SyncFile,
    /// Making a directory of the key.
    MakeDirectory,
    /// Linking the temporary to the object's name.
    Link,
    /// fsync of a directory.
    SyncDirectory,
    /// Removing an object's name.
    Unlink,
}

/// Somebody who is asked before each step; `Some` makes it fail with that error number, undone.
pub trait DiskFaults: Send + Sync + Debug {
    /// `path` is the object's key, or the directory's path below the root.
    fn before(&self, step: DiskStep, path: &str) -> Option<i32>;
}

#[derive(Debug)]
pub(super) struct Steps {
    faults: Option<Arc<dyn DiskFaults>>,
}

impl Steps {
    pub(super) fn new(faults: Option<Arc<dyn DiskFaults>>) -> Steps {
        Steps { faults }
    }

    /// Runs `call`, unless a fault stands in for it.
    pub(super) fn run<T>(
        &self,
        step: DiskStep,
        path: &str,
        call: impl FnOnce() -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        match self.faults.as_ref().and_then(|faults| faults.before(step, path)) {
            Some(number) => Err(Errno::from_raw_os_error(number)),
            None => call(),
        }
    }
}
