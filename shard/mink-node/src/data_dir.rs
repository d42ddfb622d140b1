//! The node's directory: its lock, held for life, the lives that the lock proves dead (decision 0003), and whose directory it is.
//!
//! Lives on: the service runtime, at start.
//! Owns: `<data-dir>/lock`, `<data-dir>/lives` and `<data-dir>/cluster`.
//! Invariants: I3, I13: whoever holds the lock knows that every life noted under this very lock file has ended, so it need not wait
//! for their leases. A copied directory has another lock file (another inode), and proves nothing. A directory is one cluster's.
use crate::context::Context;
use crate::error::NodeEnd;
use mink_rt::Service;
use mink_types::ClusterName;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Most lives kept: only those that crashed before their successor had taken them over.
const LIVES_MAX: usize = 64;

/// Longest file of lives that is read, in bytes.
const LIVES_BYTES_MAX: u64 = 8 * 1024;

/// Longest file of the cluster's name that is read, in bytes.
const CLUSTER_BYTES_MAX: u64 = 1024;

/// How long a start waits for a lock that is held: after a kill -9 the kernel holds the lock of the dead until it has taken the
/// process down, which takes long where its memory is large.
const LOCK_WAIT: Duration = Duration::from_secs(5);

/// From when on a start that waits says so.
const LOCK_WAIT_SILENT: Duration = Duration::from_millis(500);

/// Between two attempts to take the lock.
const LOCK_POLL: Duration = Duration::from_millis(20);
const _: () = assert!(LOCK_POLL.as_millis() < LOCK_WAIT_SILENT.as_millis());
const _: () = assert!(LOCK_WAIT_SILENT.as_millis() < LOCK_WAIT.as_millis());

/// Why the directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DataDirError {
    #[error("{path} is in use by another mink process; stop that one, or give this one another --data-dir", path = .path.display())]
    Locked { path: PathBuf },
    #[error("cannot use {path}: {source}; check that it exists and is writable, or give another --data-dir", path = .path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error(
        "{path} is the data directory of cluster {holds}, not of cluster {asked}; start with --cluster {holds}, or give cluster {asked} another --data-dir (a store and a database may be shared by clusters, a data directory not)",
        path = .path.display()
    )]
    OtherCluster { path: PathBuf, holds: ClusterName, asked: ClusterName },
}

/// The locked directory. The lock is given up when this is dropped, or when the process ends in whatever way.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    lock: File,
    /// Whether the file system counts the names of the lock file.
    has_names: bool,
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
        let has_names = lock.metadata().map_err(io_error)?.nlink() > 0;
        let mut dir = DataDir { path: path.to_owned(), lock, has_names, known_dead: Vec::new() };
        dir.known_dead = dir.read_lives().map_err(io_error)?;
        Ok(dir)
    }

    /// As [`DataDir::open`], but a directory in use is tried again for five seconds: its process may be dead and not yet taken down.
    pub async fn open_patiently(path: &Path, service: &Service) -> Result<DataDir, DataDirError> {
        let (begun, mut told) = (service.now(), false);
        loop {
            let waited = service.now().duration_since(begun);
            match DataDir::open(path) {
                Err(DataDirError::Locked { .. }) if waited < LOCK_WAIT => {}
                ended => return ended,
            }
            if !told && waited >= LOCK_WAIT_SILENT {
                tracing::info!(path = %path.display(), limit = ?LOCK_WAIT, "waiting for the data directory, which is in use");
                told = true;
            }
            service.sleep(LOCK_POLL).await;
        }
    }

    /// Refuses a directory that is another cluster's. Nothing is written.
    ///
    /// # Errors
    /// [`DataDirError::OtherCluster`]; what reading the directory gives.
    pub fn check_cluster(&self, cluster: &ClusterName) -> Result<(), DataDirError> {
        match self.holds(cluster)? {
            Some(holds) if holds != *cluster => {
                Err(DataDirError::OtherCluster { path: self.path.clone(), holds, asked: cluster.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Notes whose directory it is: once, when its cluster is known to be there. Durable when this returns.
    pub fn note_cluster(&self, cluster: &ClusterName) -> Result<(), DataDirError> {
        let path = self.cluster_path();
        let noted = || match self.read_cluster()? {
            Some(noted) if noted == *cluster => Ok(()),
            _ => self.replace(&path, &format!("cluster {cluster}\n")),
        };
        noted().map_err(|source| DataDirError::Io { path: path.clone(), source })
    }

    /// The cluster whose directory it is; none if it is nobody's yet. Directories of before the note tell by their embedded store.
    fn holds(&self, asked: &ClusterName) -> Result<Option<ClusterName>, DataDirError> {
        let noted = self.read_cluster();
        if let Some(noted) = noted.map_err(|source| DataDirError::Io { path: self.cluster_path(), source })? {
            return Ok(Some(noted));
        }
        let objects = self.path.join("objects");
        let found = embedded(&objects, asked).map_err(|source| DataDirError::Io { path: objects, source })?;
        Ok(found)
    }

    fn cluster_path(&self) -> PathBuf {
        self.path.join("cluster")
    }

    /// A file that is missing or damaged names nobody.
    fn read_cluster(&self) -> io::Result<Option<ClusterName>> {
        let text = read_bounded(&self.cluster_path(), CLUSTER_BYTES_MAX)?.unwrap_or_default();
        let name = text.strip_prefix("cluster ").and_then(|rest| rest.strip_suffix('\n'));
        Ok(name.and_then(|name| ClusterName::new(name).ok()))
    }

    /// Whether the lock file has been removed: who makes the directory anew gets a lock of his own then, and ours keeps nobody out.
    /// A directory that was moved is still ours, and so is a lock file of which its file system does not say how many names it has.
    fn is_removed(&self) -> bool {
        self.has_names && self.lock.metadata().is_ok_and(|metadata| metadata.nlink() == 0)
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
        let text = read_bounded(&self.lives_path(), LIVES_BYTES_MAX)?.unwrap_or_default();
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
            self.replace(&self.lives_path(), &lines.join("\n"))
        };
        write().map_err(|source| DataDirError::Io { path: self.lives_path(), source })
    }

    /// Replaces a file as a whole, by renaming `<file>.new`.
    fn replace(&self, path: &Path, text: &str) -> io::Result<()> {
        let temporary = path.with_extension("new");
        let mut file = File::create(&temporary)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        File::open(&self.path)?.sync_all()
    }
}

/// Ends the node when its directory is removed while it runs: looks as often as it renews its lease.
pub(crate) async fn watch(context: Arc<Context>, dir: Arc<DataDir>) {
    while !dir.is_removed() {
        context.service.sleep(context.lease_times().renew_every()).await;
    }
    context.lease.end();
    let what = format!(
        "the data directory {} was removed while the node ran: its lock keeps no other process out any more; put it back, or start anew with another --data-dir (without its working copies a node starts as after a crash; what lay in it alone is lost)",
        dir.path.display()
    );
    context.end(NodeEnd::Failed { what });
}

/// The text of a small file; none if it is not there, larger than `bytes_max`, or no text.
fn read_bounded(path: &Path, bytes_max: u64) -> io::Result<Option<String>> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.len() <= bytes_max => {}
        Ok(_) => return Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    }
    Ok(String::from_utf8(fs::read(path)?).ok())
}

/// A cluster in the embedded store, told by its identity: `asked` if that is there, else the first by name.
fn embedded(objects: &Path, asked: &ClusterName) -> io::Result<Option<ClusterName>> {
    if objects.join(asked.as_str()).join("identity").is_file() {
        return Ok(Some(asked.clone()));
    }
    let entries = match fs::read_dir(objects) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut first: Option<ClusterName> = None;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().to_str().and_then(|name| ClusterName::new(name).ok());
        let Some(name) = name.filter(|_| entry.path().join("identity").is_file()) else { continue };
        first = Some(first.map_or_else(|| name.clone(), |first| first.min(name.clone())));
    }
    Ok(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mink_rt::{SimConfig, simulate_world};
    use std::cell::RefCell;
    use std::rc::Rc;

    fn name(text: &str) -> ClusterName {
        ClusterName::new(text).expect("valid")
    }

    /// How long a patient start took, and how it ended, in a directory whose holder goes after `held`.
    fn waits_for_a_holder(held: Duration) -> (Duration, bool) {
        let seen = Rc::new(RefCell::new(None));
        let told = Rc::clone(&seen);
        let ended = simulate_world(SimConfig::seeded(7), move |world| async move {
            let dir = tempfile::tempdir().expect("a directory");
            let service = world.runtime().service();
            let holder = DataDir::open(dir.path()).expect("free");
            let later = service.clone();
            let task = service.spawn("holder", async move {
                later.sleep(held).await;
                drop(holder);
            });
            let begun = service.now();
            let opened = DataDir::open_patiently(dir.path(), &service).await;
            let waited = service.now().duration_since(begun);
            assert!(matches!(opened, Ok(_) | Err(DataDirError::Locked { .. })), "{opened:?}");
            task.cancel();
            *told.borrow_mut() = Some((waited, opened.is_ok()));
        });
        ended.expect("completes");
        seen.take().expect("told")
    }

    #[test]
    fn a_start_waits_a_bounded_time_for_a_lock_that_is_given_up() {
        for held in [Duration::ZERO, Duration::from_millis(300), Duration::from_secs(4)] {
            let (waited, opened) = waits_for_a_holder(held);
            assert!(opened && waited <= held + 2 * LOCK_POLL, "held for {held:?}, opened after {waited:?}");
        }
        let (waited, opened) = waits_for_a_holder(LOCK_WAIT * 2);
        assert!(!opened && waited >= LOCK_WAIT && waited <= LOCK_WAIT + 2 * LOCK_POLL, "{waited:?}");
    }

    #[test]
    fn a_free_directory_is_opened_without_waiting() {
        let ended = simulate_world(SimConfig::seeded(7), |world| async move {
            let dir = tempfile::tempdir().expect("a directory");
            let service = world.runtime().service();
            let begun = service.now();
            DataDir::open_patiently(dir.path(), &service).await.expect("free");
            assert_eq!(service.now(), begun);
        });
        ended.expect("completes");
    }

    #[test]
    fn i13_a_directory_is_one_clusters() {
        let dir = tempfile::tempdir().expect("a directory");
        let open = DataDir::open(dir.path()).expect("free");
        open.check_cluster(&name("mink")).expect("nobody's");
        open.check_cluster(&name("other")).expect("a start that fails leaves it nobody's");
        for _ in 0..2 {
            open.note_cluster(&name("mink")).expect("written");
            open.check_cluster(&name("mink")).expect("its own");
        }
        let refused = open.check_cluster(&name("other")).expect_err("another's").to_string();
        for word in ["cluster mink", "cluster other", "--cluster mink", "--data-dir"] {
            assert!(refused.contains(word), "{refused}");
        }
        // A damaged note names nobody, and is written anew.
        fs::write(dir.path().join("cluster"), "cluster mi").expect("torn");
        open.check_cluster(&name("other")).expect("nobody's");
        open.note_cluster(&name("mink")).expect("written");
        assert!(open.check_cluster(&name("other")).is_err());
    }

    #[test]
    fn i13_a_directory_without_a_note_is_told_by_its_embedded_store() {
        let dir = tempfile::tempdir().expect("a directory");
        let open = DataDir::open(dir.path()).expect("free");
        let identity = |cluster: &str| {
            let folder = dir.path().join("objects").join(cluster);
            fs::create_dir_all(&folder).expect("made");
            fs::write(folder.join("identity"), "").expect("written");
        };
        fs::create_dir_all(dir.path().join("objects").join("no-cluster")).expect("made");
        open.check_cluster(&name("other")).expect("nobody's");
        identity("mink");
        open.check_cluster(&name("mink")).expect("its own");
        let refused = open.check_cluster(&name("other"));
        assert!(matches!(refused, Err(DataDirError::OtherCluster { holds, .. }) if holds == name("mink")));
        // Two that shared it by mistake: whoever starts first keeps it.
        identity("other");
        open.check_cluster(&name("other")).expect("there, too");
    }

    #[test]
    fn i3_a_directory_that_is_removed_is_noticed_and_one_that_is_moved_is_not() {
        let root = tempfile::tempdir().expect("a directory");
        let [here, there] = ["here", "there"].map(|name| root.path().join(name));
        let open = DataDir::open(&here).expect("free");
        open.begin_life(7).expect("written");
        assert!(!open.is_removed());
        fs::rename(&here, &there).expect("moved");
        assert!(!open.is_removed());
        fs::remove_dir_all(&there).expect("removed");
        assert!(open.is_removed());
        let anew = DataDir::open(&there).expect("nobody's lock");
        assert!(open.is_removed() && !anew.is_removed());
    }

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
