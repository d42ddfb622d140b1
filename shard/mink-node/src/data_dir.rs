//! The node's directory: its lock, held for life, and the lives that the lock proves dead (decision 0003).
//!
//! Lives on: the service runtime, at start.
//! Owns: `<data-dir>/lock` and `<data-dir>/lives`.
//! Invariants: I3, I13: whoever holds the lock knows that every life noted under this very lock file has ended, so it need not wait
//! for their leases. A copied directory has another lock file (another inode), and proves nothing.
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Most lives kept: only those that crashed before their successor had taken them over.
const LIVES_MAX: usize = 64;

/// Longest file of lives that is read, in bytes.
const LIVES_BYTES_MAX: u64 = 8 * 1024;

/// Why the directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    #[error("{path} is in use by another mink process; stop that one, or give this one another --data-dir", path = .path.display())]
    Locked { path: PathBuf },
    #[error("cannot use {path}: {source}; check that it exists and is writable, or give another --data-dir", path = .path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// The locked directory. The lock is given up when this is dropped, or when the process ends in whatever way.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    lock: File,
    known_dead: Vec<u64>,
}

impl DataDir {
    /// Makes the directory if need be and takes its lock.
    pub fn open(path: &Path) -> Result<DataDir, DataDirError> {
        let io_error = |source| DataDirError::Io { path: path.to_owned(), source };
        fs::create_dir_all(path).map_err(io_error)?;
        let lock_path = path.join("lock");
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&lock_path)
            .map_err(|source| DataDirError::Io { path: lock_path.clone(), source })?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                return Err(DataDirError::Locked { path: path.to_owned() });
            }
            Err(error) => return Err(io_error(error.into())),
        }
        let mut dir = DataDir { path: path.to_owned(), lock, known_dead: Vec::new() };
        dir.known_dead = dir.read_lives().map_err(io_error)?;
        Ok(dir)
    }

    /// Tags of the lives that are known to have ended.
    pub(crate) fn known_dead(&self) -> &[u64] {
        &self.known_dead
    }

    /// Notes, before it registers, the life that begins: durable when this returns.
    pub(crate) fn begin_life(&self, tag: u64) -> Result<(), DataDirError> {
        let mut lives = self.known_dead.clone();
        lives.push(tag);
        let surplus = lives.len().saturating_sub(LIVES_MAX);
        self.write_lives(lives.get(surplus..).unwrap_or_default())
    }

    /// Forgets all lives but `tag`: its predecessors are fenced, and nobody will ask about them.
    pub(crate) fn forget_others(&self, tag: u64) -> Result<(), DataDirError> {
        self.write_lives(&[tag])
    }

    fn lives_path(&self) -> PathBuf {
        self.path.join("lives")
    }

    /// What ties the lives to this very lock file.
    fn lock_line(&self) -> io::Result<String> {
        let metadata = self.lock.metadata()?;
        Ok(format!("lock {} {}", metadata.dev(), metadata.ino()))
    }

    /// A file that is missing, torn or written under another lock file proves nothing, which costs a wait and no more.
    fn read_lives(&self) -> io::Result<Vec<u64>> {
        let path = self.lives_path();
        match fs::metadata(&path) {
            Ok(metadata) if metadata.len() <= LIVES_BYTES_MAX => {}
            Ok(_) => return Ok(Vec::new()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        }
        let text = String::from_utf8(fs::read(&path)?).unwrap_or_default();
        let mut lines = text.lines();
        if lines.next() != Some(self.lock_line()?.as_str()) {
            return Ok(Vec::new());
        }
        let lives =
            lines.take_while(|line| *line != "end").map(|line| u64::from_str_radix(line, 16).ok()).collect();
        let whole = text.ends_with("end\n");
        Ok(if whole { lives } else { None }.unwrap_or_default())
    }

    fn write_lives(&self, lives: &[u64]) -> Result<(), DataDirError> {
        let write = || -> io::Result<()> {
            let mut lines = vec![self.lock_line()?];
            lines.extend(lives.iter().map(|tag| format!("{tag:016x}")));
            lines.push("end\n".into());
            let text = lines.join("\n");
            let temporary = self.path.join("lives.new");
            let mut file = File::create(&temporary)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&temporary, self.lives_path())?;
            File::open(&self.path)?.sync_all()
        };
        write().map_err(|source| DataDirError::Io { path: self.lives_path(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_one_process_at_a_time() {
        let dir = tempfile::tempdir().expect("a directory");
        let first = DataDir::open(dir.path()).expect("free");
        assert!(matches!(DataDir::open(dir.path()), Err(DataDirError::Locked { .. })));
        drop(first);
        DataDir::open(dir.path()).expect("free again");
    }

    #[test]
    fn the_next_process_knows_which_lives_have_ended() {
        let dir = tempfile::tempdir().expect("a directory");
        for expected in [vec![], vec![7], vec![7, 7]] {
            let open = DataDir::open(dir.path()).expect("free");
            assert_eq!(open.known_dead(), expected);
            open.begin_life(7).expect("written");
        }
        let open = DataDir::open(dir.path()).expect("free");
        open.forget_others(9).expect("written");
        drop(open);
        assert_eq!(DataDir::open(dir.path()).expect("free").known_dead(), [9]);
    }

    #[test]
    fn i3_a_copied_or_torn_directory_proves_nothing() {
        let (dir, copy) = (tempfile::tempdir().expect("a"), tempfile::tempdir().expect("b"));
        DataDir::open(dir.path()).expect("free").begin_life(7).expect("written");
        for name in ["lock", "lives"] {
            fs::copy(dir.path().join(name), copy.path().join(name)).expect("copied");
        }
        assert!(DataDir::open(copy.path()).expect("free").known_dead().is_empty());
        let lives = fs::read_to_string(dir.path().join("lives")).expect("text");
        fs::write(dir.path().join("lives"), &lives[..lives.len() - 3]).expect("torn");
        assert!(DataDir::open(dir.path()).expect("free").known_dead().is_empty());
    }
}
