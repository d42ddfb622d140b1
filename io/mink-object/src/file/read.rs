//! Get and head.
//!
//! Lives on: the blocking pool.
//! Invariants: I20: nothing is allocated before the file's length and the caller's bound were compared.
use bytes::Bytes;
use mink_types::ObjectKey;
use rustix::fd::OwnedFd;
use rustix::fs::FileType;
use rustix::io::Errno;

use super::{Disk, split};
use crate::store::{GetError, ObjectMeta, Span};

impl Disk {
    /// The bytes of `span`.
    pub(super) fn get(&self, key: &ObjectKey, span: &Span) -> Result<Bytes, GetError> {
        let (file, len) = self.open_object(key)?;
        let asked = match span {
            Span::Whole { max } if len > *max => return Err(GetError::TooLarge { len, max: *max }),
            Span::Whole { .. } => 0..len,
            Span::Range(asked) if asked.start >= asked.end || asked.end > len => {
                return Err(GetError::Range { asked: asked.clone() });
            }
            Span::Range(asked) => asked.clone(),
        };
        read_exactly(&file, asked.start, asked.end - asked.start)
    }

    /// The length of an object.
    pub(super) fn head(&self, key: &ObjectKey) -> Result<ObjectMeta, GetError> {
        self.open_object(key).map(|(_, len)| ObjectMeta { len })
    }

    fn open_object(&self, key: &ObjectKey) -> Result<(OwnedFd, u64), GetError> {
        split(key).ok_or(GetError::NotFound)?;
        let file = self.root.open_file(key.as_str()).map_err(refusal)?;
        let stat = rustix::fs::fstat(&file).map_err(refusal)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            // The folder of longer keys, as no object of this name exists.
            FileType::Directory => return Err(GetError::NotFound),
            other => {
                return Err(GetError::Denied { reason: format!("the name of an object is a {other:?}") });
            }
        }
        let len = u64::try_from(stat.st_size).map_err(|_| unavailable(&"a negative length"))?;
        Ok((file, len))
    }
}

fn unavailable(reason: &dyn std::fmt::Display) -> GetError {
    GetError::Unavailable { reason: reason.to_string() }
}

/// Why a read failed. Only a plain "no such file" is proof that an object is missing: the kernel calls a symbolic link
/// that it may not follow "not a directory" too.
pub(super) fn refusal(errno: Errno) -> GetError {
    match errno {
        Errno::NOENT => GetError::NotFound,
        Errno::ACCESS | Errno::PERM => GetError::Denied { reason: errno.to_string() },
        Errno::LOOP | Errno::XDEV | Errno::NOTDIR => {
            GetError::Denied { reason: "a symbolic link or a file stands where a directory belongs".into() }
        }
        _ => unavailable(&errno),
    }
}

/// `len` bytes from `start`; the file was seen to hold them.
fn read_exactly(file: &OwnedFd, start: u64, len: u64) -> Result<Bytes, GetError> {
    let want = usize::try_from(len).map_err(|error| unavailable(&error))?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(want).map_err(|error| unavailable(&error))?;
    while bytes.len() < want {
        let at = start + bytes.len() as u64;
        // The spare room is at least what is missing; what is read past that is cut off below.
        match rustix::io::pread(file, rustix::buffer::spare_capacity(&mut bytes), at) {
            Ok(0) => {
                return Err(GetError::WrongLength { asked: len, got: bytes.len() as u64 });
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(refusal(errno)),
        }
    }
    bytes.truncate(want);
    Ok(bytes.into())
}
