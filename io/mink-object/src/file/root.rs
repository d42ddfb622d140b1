//! Opening names below the root, and never beside it.
//!
//! Lives on: the blocking pool.
//! Owns: the root directory's handle.
//! Invariants: every name is resolved from the handle; a symbolic link below the root is an error, wherever it leads.
use std::path::Path;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::FileOpenError;

/// Mode of made directories, before the umask.
pub(super) const DIRECTORY_MODE: Mode = Mode::from_raw_mode(0o755);
/// Mode of objects, before the umask. Nothing ever writes to one again.
pub(super) const OBJECT_MODE: Mode = Mode::from_raw_mode(0o444);
/// `openat2` may say "again" while a directory is renamed elsewhere.
const AGAIN_MAX: usize = 16;

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

#[derive(Debug)]
pub(super) struct Root {
    dir: OwnedFd,
    /// Whether the kernel resolves whole paths safely for us (`openat2`; containers may forbid it).
    beneath: bool,
}

impl Root {
    /// Opens the root and makes it with its parents if need be, each durably. Links on the way to the root are the user's own.
    pub(super) fn open(path: &Path) -> Result<Root, FileOpenError> {
        let failed =
            |what, source: Errno| FileOpenError::Io { what, path: path.to_owned(), source: source.into() };
        make_durably(path).map_err(|source| FileOpenError::Io {
            what: "make the directory",
            path: path.to_owned(),
            source,
        })?;
        let dir =
            rustix::fs::open(path, DIRECTORY, Mode::empty()).map_err(|e| failed("open the directory", e))?;
        let probe = rustix::fs::openat2(&dir, ".", DIRECTORY, Mode::empty(), ResolveFlags::BENEATH);
        Ok(Root { dir, beneath: probe.is_ok() })
    }

    /// The root itself.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// The directory at `path` (`a/b`, or nothing for the root).
    pub(super) fn open_dir(&self, path: &str) -> Result<OwnedFd, Errno> {
        self.open_at(if path.is_empty() { "." } else { path }, DIRECTORY)
    }

    /// The file at `path`. Never waits, whatever it turns out to be.
    pub(super) fn open_file(&self, path: &str) -> Result<OwnedFd, Errno> {
        self.open_at(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC)
    }

    fn open_at(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        if !self.beneath {
            return self.walk(path, flags);
        }
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        for _ in 0..AGAIN_MAX {
            match rustix::fs::openat2(&self.dir, path, flags, Mode::empty(), resolve) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                result => return result,
            }
        }
        Err(Errno::AGAIN)
    }

    /// The same, one component at a time. Keys hold no `..`, so only links could lead out.
    fn walk(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let (parents, leaf) = path.rsplit_once('/').unwrap_or(("", path));
        let mut at = open_child(self.dir.as_fd(), ".", DIRECTORY)?;
        for part in parents.split('/').filter(|part| !part.is_empty()) {
            at = open_child(at.as_fd(), part, DIRECTORY)?;
        }
        open_child(at.as_fd(), leaf, flags)
    }
}

/// One component below `at`, itself no link.
fn open_child(at: BorrowedFd<'_>, name: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(at, name, flags | OFlags::NOFOLLOW, Mode::empty())
}

/// The directory `name` in `at`.
pub(super) fn open_child_dir(at: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno> {
    open_child(at, name, DIRECTORY)
}

/// Makes `path` and its missing parents; syncs the parent of each that was made.
fn make_durably(path: &Path) -> std::io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let parent = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Path::new("."),
        Some(parent) => parent,
        None => return Ok(()),
    };
    make_durably(parent)?;
    match std::fs::create_dir(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    std::fs::File::open(parent)?.sync_all()
}

#[cfg(test)]
impl Root {
    /// As on a kernel, or in a container, without `openat2`.
    pub(super) fn forbid_openat2(&mut self) {
        self.beneath = false;
    }
}
