//! Snapshots and digests of a state.
//!
//! Lives on: anywhere (pure).
//! Invariants: I11 (the digest is the hash of the canonical snapshot), P-8 (a restored state is the snapshot, nothing more).
//!
//! A snapshot is: 8 bytes of magic, version (4, little-endian), length of the body (8), body, SHA-256 of the body (32).
use sha2::{Digest as _, Sha256};

use crate::{SnapshotError, State, wire};

const MAGIC: &[u8; 8] = b"MINKMETA";
const VERSION: u32 = 1;
const HEAD_BYTES: usize = 8 + 4 + 8;
const DIGEST_BYTES: usize = 32;

impl State {
    /// SHA-256 of the canonical encoding: equal for equal states. Walks the whole state.
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(wire::encode_state(self)).into()
    }

    /// The canonical snapshot. Walks the whole state.
    pub fn snapshot(&self) -> Vec<u8> {
        let body = wire::encode_state(self);
        let mut bytes = Vec::with_capacity(HEAD_BYTES + body.len() + DIGEST_BYTES);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&(body.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&body);
        bytes.extend_from_slice(&Sha256::digest(&body));
        bytes
    }

    /// The state of a snapshot. Whatever was known before is to be dropped: the result is the snapshot alone (P-8).
    pub fn restore(bytes: &[u8]) -> Result<State, SnapshotError> {
        let damaged = |what| SnapshotError::Damaged { what };
        let rest = bytes.strip_prefix(MAGIC.as_slice()).ok_or(damaged("it does not begin as one"))?;
        let (version, rest) = rest.split_first_chunk::<4>().ok_or(damaged("it is cut off"))?;
        match u32::from_le_bytes(*version) {
            VERSION => {}
            version => {
                return Err(SnapshotError::Unsupported { what: format!("snapshot format {version}") });
            }
        }
        let (length, rest) = rest.split_first_chunk::<8>().ok_or(damaged("it is cut off"))?;
        let (body, digest) = rest.split_last_chunk::<DIGEST_BYTES>().ok_or(damaged("it is cut off"))?;
        if u64::from_le_bytes(*length) != body.len() as u64 {
            return Err(damaged("its length is not the one it states"));
        }
        if <[u8; 32]>::from(Sha256::digest(body)) != *digest {
            return Err(damaged("its checksum does not match"));
        }
        let state = wire::decode_state(body)?;
        if state.digest() != *digest {
            // A newer program may know parts that this one has skipped.
            return Err(SnapshotError::Unsupported { what: "parts that this version does not know".into() });
        }
        Ok(state)
    }
}
