//! Put: write a temporary, fdatasync it, link it to its name, fsync the directory, then answer.
//!
//! Lives on: the blocking pool.
//! Invariants: I1. Whatever fails before the link has not happened; whatever fails from the link on is unknown. Each
//! attempt has a temporary of its own, so a file whose write or sync failed is never synced again.
use std::io::IoSlice;

use mink_types::{ObjectKey, Outcome};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;

use super::scratch::Temporary;
use super::steps::DiskStep;
use super::{Disk, split};
use crate::store::{Payload, PutRefused};

/// Most parts of one `writev` (Linux's `IOV_MAX`).
const PARTS_PER_WRITE: usize = 1_024;

impl Disk {
    /// Creates `key` durably.
    pub(super) fn put(&self, key: &ObjectKey, payload: &Payload) -> Outcome<(), PutRefused> {
        let Some((dir, leaf)) = split(key) else {
            return Outcome::Refused(PutRefused::Other {
                status: None,
                reason: "not the name of an object".into(),
            });
        };
        let temporary = match self.written(key, payload) {
            Ok(temporary) => temporary,
            Err((what, errno)) => return self.before_link(what, errno),
        };
        let dir_fd = match self.durable_dir(dir) {
            Ok(dir_fd) => dir_fd,
            Err(errno) => return self.before_link("open the directory", errno),
        };
        let outcome = self.link(key, &temporary, &dir_fd, leaf, dir);
        if outcome.is_done() {
            self.durable.note_room(self.service.now());
        }
        outcome
    }

    /// A temporary that holds the payload durably.
    fn written(&self, key: &ObjectKey, payload: &Payload) -> Result<Temporary<'_>, (&'static str, Errno)> {
        let name = key.as_str();
        let temporary = self
            .steps
            .run(DiskStep::CreateTemporary, name, || self.scratch.create())
            .map_err(|errno| ("make a temporary", errno))?;
        self.steps
            .run(DiskStep::Write, name, || write_all(&temporary.fd, payload))
            .map_err(|errno| ("write", errno))?;
        self.steps
            .run(DiskStep::SyncFile, name, || rustix::fs::fdatasync(&temporary.fd))
            .map_err(|errno| ("sync", errno))?;
        Ok(temporary)
    }

    /// The moment of creation, and what makes it last.
    fn link(
        &self,
        key: &ObjectKey,
        temporary: &Temporary<'_>,
        dir_fd: &OwnedFd,
        leaf: &str,
        dir: &str,
    ) -> Outcome<(), PutRefused> {
        let linked = self.steps.run(DiskStep::Link, key.as_str(), || temporary.link(dir_fd, leaf));
        match linked {
            Ok(()) => match self.sync_dir(dir, dir_fd.as_fd()) {
                Ok(()) => Outcome::Done(()),
                Err(errno) => Outcome::unknown(format!("linked, but the directory's sync failed: {errno}")),
            },
            // Whoever made it may have died before its sync: what we decide on must not vanish with the power.
            Err(Errno::EXIST) => match self.sync_dir(dir, dir_fd.as_fd()) {
                Ok(()) => Outcome::Refused(PutRefused::Exists),
                Err(errno) => Outcome::unknown(format!("exists, but the directory's sync failed: {errno}")),
            },
            Err(errno @ (Errno::NOSPC | Errno::DQUOT)) => self.before_link("link", errno),
            Err(errno) => Outcome::unknown(format!("link: {errno}")),
        }
    }

    /// What a failure before the link means: the object was not made. Only what a repeat cannot cure is a refusal, and a
    /// full disk, so that it can be told.
    fn before_link(&self, what: &str, errno: Errno) -> Outcome<(), PutRefused> {
        let reason = format!("{what}: {errno}");
        match errno {
            Errno::NOSPC | Errno::DQUOT => {
                self.durable.note_full(errno, self.service.now());
                Outcome::Refused(PutRefused::Full { reason })
            }
            Errno::ACCESS | Errno::PERM | Errno::ROFS => Outcome::Refused(PutRefused::Denied { reason }),
            Errno::LOOP | Errno::NOTDIR | Errno::NAMETOOLONG | Errno::FBIG => {
                Outcome::Refused(PutRefused::Other { status: None, reason })
            }
            _ => Outcome::unknown(reason),
        }
    }
}

/// Writes every part, however few bytes the kernel takes at a time.
fn write_all(fd: &OwnedFd, payload: &Payload) -> Result<(), Errno> {
    let mut parts = payload.parts();
    let mut offset = 0;
    while let Some((first, later)) = parts.split_first() {
        let rest = first.get(offset..).unwrap_or_default();
        let slices: Vec<IoSlice<'_>> = std::iter::once(IoSlice::new(rest))
            .chain(later.iter().take(PARTS_PER_WRITE - 1).map(|part| IoSlice::new(part)))
            .collect();
        let mut wrote = match rustix::io::writev(fd, &slices) {
            Ok(0) => return Err(Errno::IO),
            Ok(wrote) => wrote,
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno),
        };
        while let Some((first, later)) = parts.split_first() {
            let left = first.len() - offset;
            if wrote < left {
                offset += wrote;
                break;
            }
            wrote -= left;
            offset = 0;
            parts = later;
        }
    }
    Ok(())
}
