//! Ports that stay ours over a restart of the server that uses them.
//! Lives on: anywhere.
//! Owns: a lock file per block of ports, for as long as the block lives.
//! Invariants: two test processes never hold one block.
//!
//! A server that takes port 0 needs none of this. It is for servers that come back on their port (clients reconnect to it) or
//! that take a row of ports: the kernel could hand a port it chose once to somebody else in between, so these lie below the
//! range that it chooses from.

use std::fs::{self, File, OpenOptions};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::{Error, ErrorKind, Result};

/// Ports in a block.
pub const BLOCK_PORTS: u16 = 20;
const FIRST_PORT: u16 = 20_000;
const BLOCKS: u16 = 600;
const _: () = assert!(
    FIRST_PORT as u32 + BLOCKS as u32 * BLOCK_PORTS as u32 <= 32_768,
    "stay below the kernel's range"
);

/// [`BLOCK_PORTS`] neighbouring ports on 127.0.0.1, free when they were reserved, and reserved by no other test until dropped.
#[derive(Debug)]
pub struct PortBlock {
    base: u16,
    /// Holds the lock; the kernel lets go of it when this process ends, however it ends.
    _lock: File,
}

impl PortBlock {
    /// Reserves a block.
    ///
    /// # Errors
    /// [`ErrorKind::Failed`] if no block is free, [`ErrorKind::Io`] if the lock files can't be made.
    pub fn reserve() -> Result<Self> {
        let folder = lock_folder();
        fs::create_dir_all(&folder)
            .map_err(|error| Error::io(format_args!("making {}", folder.display()), &error))?;
        // Start at another place than other processes do, so that the first try usually succeeds.
        let start = std::process::id() % u32::from(BLOCKS);
        for step in 0..u32::from(BLOCKS) {
            let block = u16::try_from((start + step) % u32::from(BLOCKS)).unwrap_or_default();
            let base = FIRST_PORT + block * BLOCK_PORTS;
            if let Some(lock) = lock(&folder, base)?
                && is_free(base)
            {
                return Ok(Self { base, _lock: lock });
            }
        }
        Err(Error::new(ErrorKind::Failed, "no free block of ports between 20000 and 32000"))
    }

    /// The port `at` places after the first.
    ///
    /// # Panics
    /// If `at` is not below [`BLOCK_PORTS`].
    pub fn port(&self, at: u16) -> u16 {
        assert!(at < BLOCK_PORTS, "port {at} of a block of {BLOCK_PORTS}");
        self.base + at
    }
}

/// One folder per user: files of another one could not be locked.
fn lock_folder() -> PathBuf {
    std::env::temp_dir().join(format!("mink-test-ports-{}", rustix::process::getuid().as_raw()))
}

/// The lock of a block, or `None` while another holds it.
fn lock(folder: &Path, base: u16) -> Result<Option<File>> {
    let path = folder.join(base.to_string());
    let file = OpenOptions::new().create(true).append(true).open(&path);
    let file = file.map_err(|error| Error::io(format_args!("opening {}", path.display()), &error))?;
    Ok(flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok().then_some(file))
}

fn is_free(base: u16) -> bool {
    (base..base + BLOCK_PORTS).all(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_blocks_never_overlap() {
        let first = PortBlock::reserve().unwrap();
        let second = PortBlock::reserve().unwrap();
        assert!(first.port(0).abs_diff(second.port(0)) >= BLOCK_PORTS);
    }

    #[test]
    fn a_block_is_free_again_when_its_holder_lets_go() {
        let folder = tempfile::tempdir().unwrap();
        let held = lock(folder.path(), 20_000).unwrap();
        assert!(held.is_some());
        assert!(lock(folder.path(), 20_000).unwrap().is_none());
        assert!(lock(folder.path(), 20_020).unwrap().is_some());
        drop(held);
        assert!(lock(folder.path(), 20_000).unwrap().is_some());
    }

    #[test]
    fn a_block_with_a_taken_port_is_passed_over() {
        let block = PortBlock::reserve().unwrap();
        let _taken = TcpListener::bind((Ipv4Addr::LOCALHOST, block.port(BLOCK_PORTS - 1))).unwrap();
        assert!(!is_free(block.port(0)));
    }
}
