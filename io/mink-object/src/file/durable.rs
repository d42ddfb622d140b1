//! What is known to be durable, what can no longer become so, and whether there is room.
//!
//! Lives on: the blocking pool; `/readyz` reads it.
//! Owns: the sets of synced and of lost directories, the store's health.
//! Invariants: I1: a directory's entries count as durable only after this process synced it (another process may have made
//! the entry and died before its sync). After a failed sync the kernel forgets what it could not write and reports success
//! next time, so a directory whose sync failed is never synced again.
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use mink_rt::Instant;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;

use super::Disk;
use super::root::{DIRECTORY_MODE, Root, open_child_dir};
use super::steps::DiskStep;
use crate::store::{PUT_BYTES_MAX, StoreHealth};

/// Directories remembered as durable; past that all are forgotten, which costs syncs, not safety.
const KNOWN_MAX: usize = 8_192;
/// Directories remembered as lost; past that every directory counts as lost.
const LOST_MAX: usize = 1_024;
/// Free bytes at which a full disk counts as healed before a write has shown it.
const HEALED_BYTES: u64 = 2 * PUT_BYTES_MAX;
/// A disk takes writes again once it has done so for this long: at its last bytes small writes find room that large ones do not.
const HEALED_AFTER: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct Durable {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Directories that were reached through durable entries only.
    known: BTreeSet<String>,
    /// Directories whose sync failed.
    lost: BTreeSet<String>,
    lost_since: Option<Instant>,
    full: Option<Full>,
    spell: Spell,
}

/// A time in which writes found no room, as the log tells it: once that it begins, once that it is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Spell {
    #[default]
    None,
    /// The last write found no room.
    Full,
    /// Writes have found room since then.
    Healing(Instant),
}

impl Spell {
    /// A write found no room. True if that is to be told.
    fn full(&mut self, now: Instant) -> bool {
        let begins = match *self {
            Spell::None => true,
            Spell::Full => false,
            // It had healed and nobody has written since.
            Spell::Healing(since) => now - since >= HEALED_AFTER,
        };
        *self = Spell::Full;
        begins
    }

    /// A write found room. True if it is to be told that they do.
    fn room(&mut self, now: Instant) -> bool {
        match *self {
            Spell::None => false,
            Spell::Full => {
                *self = Spell::Healing(now);
                false
            }
            Spell::Healing(since) => {
                let is_over = now - since >= HEALED_AFTER;
                if is_over {
                    *self = Spell::None;
                }
                is_over
            }
        }
    }
}

#[derive(Debug)]
struct Full {
    since: Instant,
    reason: String,
    /// A quota does not show in the file system's free space: only a write can tell that it healed.
    quota: bool,
}

impl Durable {
    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is one assignment, so a panic elsewhere leaves it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_known(&self, dir: &str) -> bool {
        dir.is_empty() || self.state().known.contains(dir)
    }

    fn know(&self, dir: &str) {
        let mut state = self.state();
        if state.known.len() >= KNOWN_MAX {
            state.known.clear();
        }
        state.known.insert(dir.to_owned());
    }

    fn forget_all(&self) {
        self.state().known.clear();
    }

    fn is_lost(&self, dir: &str) -> bool {
        let state = self.state();
        state.lost.len() >= LOST_MAX || state.lost.contains(dir)
    }

    fn lose(&self, dir: &str, now: Instant) {
        let mut state = self.state();
        if state.lost.len() < LOST_MAX {
            state.lost.insert(dir.to_owned());
        }
        state.lost_since.get_or_insert(now);
    }

    /// A write found no room.
    pub(super) fn note_full(&self, errno: Errno, now: Instant) {
        let mut state = self.state();
        let since = state.full.as_ref().map_or(now, |full| full.since);
        if state.spell.full(now) {
            tracing::error!(error = %errno, "the object store's disk is full: make room; writes wait until then");
        }
        state.full = Some(Full { since, reason: errno.to_string(), quota: errno == Errno::DQUOT });
    }

    /// A write found room.
    pub(super) fn note_room(&self, now: Instant) {
        let mut state = self.state();
        state.full = None;
        if state.spell.room(now) {
            tracing::info!("the object store's disk takes writes again");
        }
    }

    /// What `/readyz` shows.
    pub(super) fn health(&self, root: &Root, now: Instant) -> StoreHealth {
        let mut state = self.state();
        if let Some(since) = state.lost_since {
            let places: Vec<&str> = state.lost.iter().take(3).map(String::as_str).collect();
            let reason = format!("{} directories, first of them {places:?}", state.lost.len());
            return StoreHealth::SyncFailed { since: now - since, reason };
        }
        let healed = state.full.as_ref().is_some_and(|full| !full.quota && has_room(root));
        if healed {
            state.full = None;
        }
        match &state.full {
            Some(full) => StoreHealth::Full { since: now - full.since, reason: full.reason.clone() },
            None => StoreHealth::Well,
        }
    }
}

/// Whether the file system has free space and free inodes (some report no inodes at all).
fn has_room(root: &Root) -> bool {
    rustix::fs::fstatvfs(root.fd()).is_ok_and(|stat| {
        stat.f_bavail.saturating_mul(stat.f_frsize) >= HEALED_BYTES
            && (stat.f_files == 0 || stat.f_favail > 0)
    })
}

impl Disk {
    /// Makes the entries of the directory at `path` durable, or says that they may not be. Never syncs again after a failure.
    pub(super) fn sync_dir(&self, path: &str, dir: BorrowedFd<'_>) -> Result<(), Errno> {
        if self.durable.is_lost(path) {
            return Err(Errno::IO);
        }
        self.steps.run(DiskStep::SyncDirectory, path, || rustix::fs::fsync(dir)).inspect_err(|errno| {
            tracing::error!(directory = path, error = %errno, "sync failed; writes there stay undecided until a restart");
            self.durable.lose(path, self.service.now());
        })
    }

    /// Opens the directory at `path`, making what is missing; every entry on the way is durable when this returns.
    pub(super) fn durable_dir(&self, path: &str) -> Result<OwnedFd, Errno> {
        if self.durable.is_known(path) {
            match self.root.open_dir(path) {
                // Somebody removed it: nothing that was known holds any more.
                Err(Errno::NOENT) => self.durable.forget_all(),
                result => return result,
            }
        }
        let mut at = self.root.open_dir("")?;
        let mut reached = String::with_capacity(path.len());
        for part in path.split('/').filter(|part| !part.is_empty()) {
            let parent = reached.clone();
            if !reached.is_empty() {
                reached.push('/');
            }
            reached.push_str(part);
            if !self.durable.is_known(&reached) {
                let made = self.steps.run(DiskStep::MakeDirectory, &reached, || {
                    rustix::fs::mkdirat(&at, part, DIRECTORY_MODE)
                });
                match made {
                    Ok(()) | Err(Errno::EXIST) => self.sync_dir(&parent, at.as_fd())?,
                    Err(errno) => return Err(errno),
                }
            }
            at = open_child_dir(at.as_fd(), part)?;
            self.durable.know(&reached);
        }
        Ok(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_full_disk_is_told_once_and_healed_only_after_it_has_held() {
        let mut spell = Spell::default();
        assert!(!spell.room(at(0)) && spell.full(at(10)));
        // The last bytes: small writes fit, large ones do not.
        for round in 0..20 {
            assert!(!spell.room(at(100 + round * 400)) && !spell.full(at(300 + round * 400)), "{round}");
        }
        assert!(!spell.room(at(9_000)) && !spell.room(at(13_999)));
        assert!(spell.room(at(14_000)) && !spell.room(at(14_001)));
        assert!(spell.full(at(15_000)), "another time");
        assert!(!spell.room(at(15_100)) && spell.full(at(20_100)), "it had healed before it was full again");
    }
}
