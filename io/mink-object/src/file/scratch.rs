//! Temporaries: where bytes lie until they are durable and get their name.
//!
//! Lives on: the blocking pool.
//! Owns: `<root>/.mink-tmp/<tag>/`, this process's own folder, and the lock beside it that says that the process lives.
//! Invariants: a temporary is written and synced by one attempt only; listings never show one; the folder of a dead process
//! is removed when the next one starts, that of a living one never is (several processes may share a store).
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use mink_rt::Service;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::FileOpenError;
use super::root::{DIRECTORY_MODE, OBJECT_MODE, Root, open_child_dir};

/// Name of the folder in the root. No key begins with it.
pub(super) const FOLDER: &str = ".mink-tmp";
/// Draws of a tag before the start gives up.
const TAG_DRAWS_MAX: usize = 16;

const NEW_FILE: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

#[derive(Debug)]
pub(super) struct Scratch {
    dir: OwnedFd,
    next: AtomicU64,
    /// `.mink-tmp` and our tag in it, to tidy up at the end.
    folder: OwnedFd,
    tag: String,
    /// Held for life; the kernel gives it up with the process.
    _lock: OwnedFd,
}

/// A file without a lasting name; it goes when this is dropped.
#[derive(Debug)]
pub(super) struct Temporary<'a> {
    scratch: &'a Scratch,
    name: String,
    pub(super) fd: OwnedFd,
}

impl Scratch {
    /// Makes this process's folder and removes those of dead processes.
    pub(super) fn open(path: &Path, root: &Root, service: &Service) -> Result<Scratch, FileOpenError> {
        let failed =
            |what, errno: Errno| FileOpenError::Io { what, path: path.to_owned(), source: errno.into() };
        match rustix::fs::mkdirat(root.fd(), FOLDER, DIRECTORY_MODE) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(failed("make the folder for temporaries", errno)),
        }
        let folder =
            open_child_dir(root.fd(), FOLDER).map_err(|e| failed("open the folder for temporaries", e))?;
        clean(&folder);
        for _ in 0..TAG_DRAWS_MAX {
            let tag = format!("{:016x}", service.random_u64());
            if let Some(lock) =
                claim(&folder, &tag).map_err(|e| failed("lock a folder for temporaries", e))?
            {
                rustix::fs::mkdirat(&folder, &tag, DIRECTORY_MODE)
                    .map_err(|e| failed("make a folder for temporaries", e))?;
                let dir = open_child_dir(folder.as_fd(), &tag)
                    .map_err(|e| failed("open a folder for temporaries", e))?;
                return Ok(Scratch { dir, next: AtomicU64::new(0), folder, tag, _lock: lock });
            }
        }
        Err(failed("lock a folder for temporaries", Errno::AGAIN))
    }

    /// A new, empty temporary.
    pub(super) fn create(&self) -> Result<Temporary<'_>, Errno> {
        let name = format!("{:x}", self.next.fetch_add(1, Ordering::Relaxed));
        let fd = rustix::fs::openat(&self.dir, &name, NEW_FILE, OBJECT_MODE)?;
        Ok(Temporary { scratch: self, name, fd })
    }

    /// Finds out whether the file system can do what a put needs, with words for the one that cannot.
    pub(super) fn try_out(&self, path: &Path) -> Result<(), FileOpenError> {
        let unfit =
            |what, errno: Errno| FileOpenError::Unfit { what, path: path.to_owned(), source: errno.into() };
        let temporary = self.create().map_err(|errno| FileOpenError::Io {
            what: "write",
            path: path.to_owned(),
            source: errno.into(),
        })?;
        let second = "linked";
        temporary.link(&self.dir, second).map_err(|e| unfit("hard links", e))?;
        let again = temporary.link(&self.dir, second);
        rustix::fs::unlinkat(&self.dir, second, AtFlags::empty()).map_err(|e| unfit("unlink", e))?;
        match again {
            Err(Errno::EXIST) => {}
            Err(errno) => return Err(unfit("create-only hard links", errno)),
            Ok(()) => return Err(unfit("create-only hard links", Errno::EXIST)),
        }
        rustix::fs::fdatasync(&temporary.fd).map_err(|e| unfit("fdatasync", e))?;
        rustix::fs::fsync(&self.dir).map_err(|e| unfit("fsync of directories", e))
    }
}

impl Temporary<'_> {
    /// Gives the file its lasting name in `dir`, unless that is taken.
    pub(super) fn link(&self, dir: impl AsFd, leaf: &str) -> Result<(), Errno> {
        rustix::fs::linkat(&self.scratch.dir, &self.name, dir, leaf, AtFlags::empty())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if let Err(errno) = rustix::fs::unlinkat(&self.scratch.dir, &self.name, AtFlags::empty()) {
            tracing::warn!(error = %errno, "a temporary of the object store stays until the next start");
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left, the next start removes; so a failure here needs no words.
        let removed = rustix::fs::unlinkat(&self.folder, &self.tag, AtFlags::REMOVEDIR);
        if removed.is_ok() {
            let lock = lock_name(&self.tag);
            rustix::fs::unlinkat(&self.folder, lock.as_str(), AtFlags::empty()).unwrap_or_default();
        }
    }
}

fn lock_name(tag: &str) -> String {
    format!("{tag}.lock")
}

/// Makes and takes the lock of `tag`; `None` if it is taken, or a starting process has just swept it away.
fn claim(folder: &OwnedFd, tag: &str) -> Result<Option<OwnedFd>, Errno> {
    let fd = match rustix::fs::openat(folder, lock_name(tag), NEW_FILE, Mode::from_raw_mode(0o644)) {
        Ok(fd) => fd,
        Err(Errno::EXIST) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    match rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(None),
        Err(errno) => return Err(errno),
    }
    Ok((rustix::fs::fstat(&fd)?.st_nlink > 0).then_some(fd))
}

/// Removes the folders whose locks nobody holds. Failures leave garbage for the next start, no more.
fn clean(folder: &OwnedFd) {
    for name in names(folder) {
        let Some(tag) = name.strip_suffix(".lock") else {
            continue;
        };
        if let Err(errno) = clean_one(folder, tag) {
            tracing::warn!(folder = tag, error = %errno, "temporaries of a dead process stay until the next start");
        }
    }
}

fn clean_one(folder: &OwnedFd, tag: &str) -> Result<(), Errno> {
    let lock = match rustix::fs::openat(
        folder,
        lock_name(tag),
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC,
        Mode::empty(),
    ) {
        Ok(lock) => lock,
        Err(Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(errno),
    };
    match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(()),
        Err(errno) => return Err(errno),
    }
    match open_child_dir(folder.as_fd(), tag) {
        Ok(dir) => {
            for name in names(&dir) {
                rustix::fs::unlinkat(&dir, name.as_str(), AtFlags::empty())?;
            }
            rustix::fs::unlinkat(folder, tag, AtFlags::REMOVEDIR)?;
        }
        Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno),
    }
    rustix::fs::unlinkat(folder, lock_name(tag), AtFlags::empty())
}

/// The names in a directory that are text.
fn names(dir: &OwnedFd) -> Vec<String> {
    let Ok(entries) = Dir::read_from(dir) else {
        return Vec::new();
    };
    entries
        .filter_map(Result::ok)
        .filter_map(|entry| entry.file_name().to_str().ok().map(str::to_owned))
        .filter(|name| name != "." && name != "..")
        .collect()
}
