//! Delete: unlink, then one fsync per directory, then answer.
//!
//! Lives on: the blocking pool.
//! Invariants: I14: `Done` means that the object stays gone after a power cut (else it would be an orphan that nobody knows).
use std::collections::BTreeMap;

use mink_types::{ObjectKey, Outcome};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::AtFlags;
use rustix::io::Errno;

use super::steps::DiskStep;
use super::{Disk, split};
use crate::store::DeleteRefused;

type Deleted = Outcome<(), DeleteRefused>;

impl Disk {
    /// Removes the objects; outcomes in the order of `keys`.
    pub(super) fn delete(&self, keys: &[ObjectKey]) -> Vec<(ObjectKey, Deleted)> {
        let mut touched: BTreeMap<String, OwnedFd> = BTreeMap::new();
        let unlinked: Vec<Deleted> = keys.iter().map(|key| self.unlink(key, &mut touched)).collect();
        let unsynced: BTreeMap<&str, Errno> = touched
            .iter()
            .filter_map(|(dir, fd)| self.sync_dir(dir, fd.as_fd()).err().map(|errno| (dir.as_str(), errno)))
            .collect();
        keys.iter()
            .zip(unlinked)
            .map(|(key, outcome)| {
                let failed = split(key).and_then(|(dir, _)| unsynced.get(dir));
                let outcome = match (outcome, failed) {
                    (Outcome::Done(()), Some(errno)) => {
                        Outcome::unknown(format!("unlinked, but the directory's sync failed: {errno}"))
                    }
                    (outcome, _) => outcome,
                };
                (key.clone(), outcome)
            })
            .collect()
    }

    fn unlink(&self, key: &ObjectKey, touched: &mut BTreeMap<String, OwnedFd>) -> Deleted {
        let Some((dir, leaf)) = split(key) else {
            return Outcome::Refused(DeleteRefused::Other {
                status: None,
                reason: "not the name of an object".into(),
            });
        };
        if !touched.contains_key(dir) {
            match self.root.open_dir(dir) {
                Ok(fd) => touched.insert(dir.to_owned(), fd),
                Err(Errno::NOENT) => return Outcome::Done(()),
                Err(errno) => return failed(errno),
            };
        }
        let Some(fd) = touched.get(dir) else {
            return Outcome::unknown("the directory's handle is gone");
        };
        let unlink = || rustix::fs::unlinkat(fd, leaf, AtFlags::empty());
        match self.steps.run(DiskStep::Unlink, key.as_str(), unlink) {
            // A name that is gone may be gone only until the power is: it counts once the directory is synced.
            Ok(()) | Err(Errno::NOENT) => Outcome::Done(()),
            Err(errno) => failed(errno),
        }
    }
}

fn failed(errno: Errno) -> Deleted {
    let reason = errno.to_string();
    match errno {
        Errno::ACCESS | Errno::PERM | Errno::ROFS => Outcome::Refused(DeleteRefused::Denied { reason }),
        Errno::ISDIR | Errno::LOOP | Errno::NOTDIR | Errno::NAMETOOLONG => {
            Outcome::Refused(DeleteRefused::Other { status: None, reason })
        }
        _ => Outcome::unknown(reason),
    }
}
