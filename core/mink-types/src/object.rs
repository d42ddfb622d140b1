//! Names of the objects Mink keeps in the store (docs/format.md).
//!
//! Lives on: anywhere (pure).
//! Invariants: a key is made of numbers, hashes and fixed words, never of a user's name, and no key is ever used for two
//! contents: (node, incarnation, number or counter) is part of each.
use crate::{ClusterName, Incarnation, LogIndex, NodeId, RowHash, WalNumber};
use std::fmt;

/// Where the WAL objects of one incarnation lie.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct WalChain {
    pub node: NodeId,
    pub incarnation: Incarnation,
    /// Drawn by the node before it registers: two processes that both believe to be one incarnation never share a key.
    pub tag: u64,
}

/// What an object is, by numbers alone. Metadata and footers speak of objects in these terms.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ObjectId {
    /// An object of a WAL chain: data, or the seal that ends the chain.
    Wal { chain: WalChain, number: WalNumber },
    /// A stream object: flushed data. The counter is the incarnation's own.
    Stream { chain: WalChain, counter: u64 },
}

/// The full key of an object, relative to the prefix in the storage URL.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey(String);

/// Text that is not a key of ours.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{text:?} is not a key that Mink makes")]
pub struct KeyError {
    pub text: String,
}

impl ObjectKey {
    /// `<cluster>/identity`: whose store this is.
    pub fn identity(cluster: &ClusterName) -> ObjectKey {
        ObjectKey(format!("{cluster}/identity"))
    }

    /// The key of a WAL or stream object.
    pub fn object(cluster: &ClusterName, id: ObjectId) -> ObjectKey {
        match id {
            ObjectId::Wal { chain, number } => {
                ObjectKey(format!("{}{number:020}", Self::wal_prefix(cluster, chain).0, number = number.0))
            }
            ObjectId::Stream { chain, counter } => {
                ObjectKey(format!("{}{counter:020}", Self::stream_prefix(cluster, chain).0))
            }
        }
    }

    /// Prefix of all objects of a WAL chain, with the closing slash. The hash spreads chains over the store's partitions.
    pub fn wal_prefix(cluster: &ClusterName, chain: WalChain) -> ObjectKey {
        ObjectKey(format!("{cluster}/wal/{}", chain_path(chain)))
    }

    /// Prefix of all stream objects of an incarnation, with the closing slash.
    pub fn stream_prefix(cluster: &ClusterName, chain: WalChain) -> ObjectKey {
        ObjectKey(format!("{cluster}/stream/{}", chain_path(chain)))
    }

    /// A snapshot of the metadata at `index`, made by `incarnation`; the newest sorts last.
    pub fn snapshot(
        cluster: &ClusterName,
        index: LogIndex,
        hash: RowHash,
        incarnation: Incarnation,
    ) -> ObjectKey {
        ObjectKey(format!("{cluster}/meta/{:020}-{hash}-{incarnation}", index.0))
    }

    /// Prefix of all snapshots.
    pub fn snapshot_prefix(cluster: &ClusterName) -> ObjectKey {
        ObjectKey(format!("{cluster}/meta/"))
    }

    /// The key of one contest of the create-only probe; `tag` is drawn anew for each probe.
    pub fn probe(cluster: &ClusterName, tag: u64, round: u32) -> ObjectKey {
        ObjectKey(format!("{cluster}/probe/{tag:016x}-{round}"))
    }

    /// A key that the store listed. Refuses what Mink never makes: empty parts, dots, control characters, a leading slash.
    pub fn parse(text: &str) -> Result<ObjectKey, KeyError> {
        let part = |part: &str| {
            !part.is_empty()
                && part != "."
                && part != ".."
                && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_' || b == b'.')
        };
        if text.len() <= 1024 && text.split('/').all(part) {
            Ok(ObjectKey(text.into()))
        } else {
            Err(KeyError { text: text.chars().take(200).collect() })
        }
    }

    /// The key as text, without the storage URL's prefix.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What follows the last slash.
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// The index and row hash in a snapshot's key, which is what makes its name a witness (I13).
    pub fn snapshot_witness(&self) -> Option<crate::Witness> {
        let mut parts = self.file_name().split('-');
        let index = parts.next()?.parse().ok()?;
        let text = parts.next()?;
        let mut hash = [0u8; 32];
        if text.len() != 64 || !text.is_ascii() {
            return None;
        }
        for (at, byte) in hash.iter_mut().enumerate() {
            *byte = u8::from_str_radix(text.get(at * 2..at * 2 + 2)?, 16).ok()?;
        }
        Some(crate::Witness { index: LogIndex(index), hash: RowHash(hash) })
    }
}

/// `<4 hex>/<node>/<incarnation>-<tag>/`.
fn chain_path(chain: WalChain) -> String {
    let WalChain { node, incarnation, tag } = chain;
    format!("{:04x}/{node}/{incarnation}-{tag:016x}/", spread(chain))
}

/// Sixteen bits of FNV-1a over (node, incarnation): stores split their key space by prefix, so chains should not share one.
fn spread(chain: WalChain) -> u16 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in chain.node.0.to_le_bytes().into_iter().chain(chain.incarnation.0.to_le_bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    let folded = hash ^ (hash >> 32);
    u16::try_from((folded ^ (folded >> 16)) & 0xffff).unwrap_or(0)
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ObjectKey({})", self.0)
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ObjectId::Wal { chain, number } => {
                write!(f, "WAL object {number} of node {} incarnation {}", chain.node, chain.incarnation)
            }
            ObjectId::Stream { chain, counter } => {
                write!(f, "stream object {counter} of node {} incarnation {}", chain.node, chain.incarnation)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain() -> WalChain {
        WalChain { node: NodeId(1), incarnation: Incarnation(7), tag: 0xabc }
    }

    #[test]
    fn keys_are_numbers_and_fixed_words() {
        let cluster = ClusterName::new("mink").expect("valid");
        let key = ObjectKey::object(&cluster, ObjectId::Wal { chain: chain(), number: WalNumber(12) });
        let (head, tail) = key.as_str().split_at("mink/wal/".len());
        assert_eq!(head, "mink/wal/");
        assert!(tail.ends_with("/1/7-0000000000000abc/00000000000000000012"), "{tail}");
        assert_eq!(ObjectKey::parse(key.as_str()), Ok(key));
    }

    #[test]
    fn foreign_text_is_no_key() {
        for bad in ["", "/a", "a//b", "a/../b", "a/./b", "a\nb", "a/", "a b", &"a".repeat(1025)] {
            assert!(ObjectKey::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn i13_a_snapshot_key_is_a_witness() {
        let cluster = ClusterName::new("mink").expect("valid");
        let hash = RowHash([0xa5; 32]);
        let key = ObjectKey::snapshot(&cluster, LogIndex(42), hash, Incarnation(3));
        let witness = key.snapshot_witness().expect("a witness");
        assert_eq!((witness.index, witness.hash), (LogIndex(42), hash));
        assert!(ObjectKey::identity(&cluster).snapshot_witness().is_none());
    }
}
