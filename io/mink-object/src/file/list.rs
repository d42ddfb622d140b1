//! List: the tree walked in the byte order of whole keys, a page at a time.
//!
//! Lives on: the blocking pool.
//! Invariants: I20: a page holds `limit` names and each directory on the way as many more, however many files there are.
//! A page costs one scan of each directory that it touches.
use std::collections::BTreeSet;

use mink_types::ObjectKey;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType};
use rustix::io::Errno;

use super::read::refusal;
use super::root::open_child_dir;
use super::{Disk, scratch};
use crate::store::{GetError, ListCursor, ListEntry, ListPage};

/// Deepest directory that is looked into; keys have six parts.
const DEPTH_MAX: usize = 32;

/// What a page asks for.
struct Asked<'a> {
    prefix: &'a str,
    after: &'a str,
    limit: usize,
}

impl Disk {
    /// The keys that begin with `prefix` and come after `after`.
    pub(super) fn list(&self, prefix: &str, after: &str, limit: usize) -> Result<ListPage, GetError> {
        let asked = Asked { prefix, after, limit };
        let mut page = ListPage::default();
        // All keys with the prefix lie below its last slash.
        let start = prefix.rsplit_once('/').map_or("", |(dir, _)| dir);
        if start.split('/').next() == Some(scratch::FOLDER) {
            return Ok(page);
        }
        let dir = match self.root.open_dir(start) {
            Ok(dir) => dir,
            Err(errno) => {
                return match refusal(errno) {
                    GetError::NotFound => Ok(page),
                    error => Err(error),
                };
            }
        };
        let path = if start.is_empty() { String::new() } else { format!("{start}/") };
        let full = walk(&dir, &path, &asked, 0, &mut page).map_err(refusal)?;
        if full {
            page.next = page.entries.last().map(|last| ListCursor::after(&last.key));
        }
        Ok(page)
    }
}

/// Adds what lies below `dir`, whose path is `path` (with a closing slash), to the page; true when the page is full and
/// there may be more.
fn walk(
    dir: &OwnedFd,
    path: &str,
    asked: &Asked<'_>,
    depth: usize,
    page: &mut ListPage,
) -> Result<bool, Errno> {
    let mut floor = String::new();
    loop {
        let room = asked.limit.saturating_sub(page.entries.len()) + 1;
        let (batch, complete) = smallest(dir, path, asked, &floor, room)?;
        for name in &batch {
            if page.entries.len() >= asked.limit {
                return Ok(true);
            }
            match name.strip_suffix('/') {
                None => add(dir, path, name, page)?,
                Some(_) if depth >= DEPTH_MAX => page.foreign += 1,
                Some(below) => match open_child_dir(dir.as_fd(), below) {
                    Ok(child) => {
                        if walk(&child, &format!("{path}{name}"), asked, depth + 1, page)? {
                            return Ok(true);
                        }
                    }
                    Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => {}
                    Err(errno) => return Err(errno),
                },
            }
        }
        match batch.last() {
            Some(last) if !complete => floor.clone_from(last),
            _ => return Ok(false),
        }
    }
}

/// The `room` smallest names in `dir` past `floor` that can matter, directories with a closing slash, as that is how
/// their keys sort; and whether those are all.
fn smallest(
    dir: &OwnedFd,
    path: &str,
    asked: &Asked<'_>,
    floor: &str,
    room: usize,
) -> Result<(BTreeSet<String>, bool), Errno> {
    let mut names = BTreeSet::new();
    let mut complete = true;
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        // A name that is not text is none of ours.
        let Ok(name) = entry.file_name().to_str() else {
            continue;
        };
        if name == "." || name == ".." || (path.is_empty() && name == scratch::FOLDER) {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(errno),
            },
            kind => kind,
        };
        let name = match kind {
            FileType::RegularFile => name.to_owned(),
            FileType::Directory => format!("{name}/"),
            _ => continue,
        };
        if name.as_str() <= floor || !matters(&format!("{path}{name}"), asked) {
            continue;
        }
        names.insert(name);
        if names.len() > room {
            names.pop_last();
            complete = false;
        }
    }
    Ok((names, complete))
}

/// Whether a file of this path, or one below a directory of this path, can be on the page.
fn matters(path: &str, asked: &Asked<'_>) -> bool {
    let below = path.ends_with('/');
    let prefixed = path.starts_with(asked.prefix) || (below && asked.prefix.starts_with(path));
    let later = path > asked.after || (below && asked.after.starts_with(path));
    prefixed && later
}

fn add(dir: &OwnedFd, path: &str, name: &str, page: &mut ListPage) -> Result<(), Errno> {
    let Ok(key) = ObjectKey::parse(&format!("{path}{name}")) else {
        page.foreign += 1;
        return Ok(());
    };
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => page.entries.push(ListEntry { key, len: u64::try_from(stat.st_size).unwrap_or(0) }),
        // Deleted since the scan.
        Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno),
    }
    Ok(())
}
