//! The first bytes of an object: what it is, whose, and its place.
//!
//! Lives on: anywhere (pure).
//! Invariants: a header that decodes is of our format and undamaged; whether it is the expected object is the caller's to
//! compare, field by field.
use mink_types::{
    ClusterUuid, Incarnation, LogIndex, NodeId, ObjectId, RowHash, WalChain, WalNumber, Witness,
};

use super::codec::{Cursor, FormatError, check};
use crate::FORMAT_VERSION;

/// Length of a header in bytes.
pub const HEADER_BYTES: usize = 160;
const HEADER_LENGTH: u32 = 160;
const _: () = assert!(HEADER_LENGTH as usize == HEADER_BYTES);
const MAGIC: [u8; 8] = *b"MINKSOBJ";
const RESERVED_BYTES: usize = 12;
const PART: &str = "object header";

/// Drawn for each object when its bytes are frozen: a read-back tells our object from another's by it (K-3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Nonce(pub [u8; 16]);

impl Nonce {
    /// A nonce of two random words.
    pub fn of(high: u64, low: u64) -> Nonce {
        Nonce(((u128::from(high) << 64) | u128::from(low)).to_le_bytes())
    }
}

/// Which kind of object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ObjectKind {
    /// WAL data.
    Data,
    /// The end of a chain. A chain's own node writes one when it leaves.
    Seal { by: Sealer },
    /// A stream object: flushed data.
    Stream,
}

/// Who ended a chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sealer {
    pub chain: WalChain,
}

/// The header of an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    pub kind: ObjectKind,
    pub cluster: ClusterUuid,
    /// Whose key the object lies under.
    pub chain: WalChain,
    /// WAL number, or the counter of a stream object.
    pub number: u64,
    pub nonce: Nonce,
    /// How far the writer had applied the command log when the bytes were frozen (I13).
    pub witness: Witness,
    /// All numbers up to this one were durable when the bytes were frozen: a proof that they existed.
    pub durable_through: Option<WalNumber>,
}

impl Header {
    /// The object's name.
    pub fn object(&self) -> ObjectId {
        match self.kind {
            ObjectKind::Data | ObjectKind::Seal { .. } => {
                ObjectId::Wal { chain: self.chain, number: WalNumber(self.number) }
            }
            ObjectKind::Stream => ObjectId::Stream { chain: self.chain, counter: self.number },
        }
    }

    /// The header's bytes.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut out = Vec::with_capacity(HEADER_BYTES);
        let (kind, sealer) = match self.kind {
            ObjectKind::Data => (1u8, None),
            ObjectKind::Seal { by } => (2, Some(by.chain)),
            ObjectKind::Stream => (3, None),
        };
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        out.extend_from_slice(&[kind, 0]);
        out.extend_from_slice(&HEADER_LENGTH.to_le_bytes());
        out.extend_from_slice(&self.cluster.0);
        put_chain(&mut out, Some(self.chain));
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&self.nonce.0);
        out.extend_from_slice(&self.witness.index.0.to_le_bytes());
        out.extend_from_slice(&self.witness.hash.0);
        // Stored as "numbers below this", so that none is zero.
        let durable_below = self.durable_through.map_or(0, |number| number.0.saturating_add(1));
        out.extend_from_slice(&durable_below.to_le_bytes());
        put_chain(&mut out, sealer);
        out.extend_from_slice(&[0; RESERVED_BYTES]);
        let crc = crc32c::crc32c(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        debug_assert_eq!(out.len(), HEADER_BYTES);
        out.first_chunk().copied().unwrap_or([0; HEADER_BYTES])
    }

    /// Reads a header from the first bytes of an object.
    pub fn decode(object: &[u8]) -> Result<Header, FormatError> {
        let bytes = object.get(..HEADER_BYTES).ok_or(FormatError::Short { part: PART })?;
        let mut at = Cursor::new(bytes, PART);
        if at.array::<8>()? != MAGIC {
            return Err(FormatError::Magic { part: PART });
        }
        let version = at.u16()?;
        if version != FORMAT_VERSION {
            return Err(FormatError::Version { version });
        }
        let (body, crc) = bytes.split_at(HEADER_BYTES - 4);
        check(PART, body, Cursor::new(crc, PART).u32()?)?;
        let kind = at.u8()?;
        at.zeros(1)?;
        if at.u32()? != HEADER_LENGTH {
            return Err(at.value("its own length"));
        }
        let cluster = ClusterUuid(at.array()?);
        let chain = take_chain(&mut at)?;
        let number = at.u64()?;
        let nonce = Nonce(at.array()?);
        let witness = Witness { index: LogIndex(at.u64()?), hash: RowHash(at.array()?) };
        let durable_through = at.u64()?.checked_sub(1).map(WalNumber);
        let sealer = take_chain(&mut at)?;
        at.zeros(RESERVED_BYTES)?;
        let unsealed = WalChain { node: NodeId(0), incarnation: Incarnation(0), tag: 0 };
        let kind = match kind {
            1 if sealer == unsealed => ObjectKind::Data,
            2 => ObjectKind::Seal { by: Sealer { chain: sealer } },
            3 if sealer == unsealed => ObjectKind::Stream,
            _ => return Err(at.value("its kind")),
        };
        Ok(Header { kind, cluster, chain, number, nonce, witness, durable_through })
    }
}

fn put_chain(out: &mut Vec<u8>, chain: Option<WalChain>) {
    let (node, incarnation, tag) = chain.map_or((0, 0, 0), |c| (c.node.0, c.incarnation.0, c.tag));
    out.extend_from_slice(&node.to_le_bytes());
    out.extend_from_slice(&incarnation.to_le_bytes());
    out.extend_from_slice(&tag.to_le_bytes());
}

fn take_chain(at: &mut Cursor<'_>) -> Result<WalChain, FormatError> {
    Ok(WalChain { node: NodeId(at.u32()?), incarnation: Incarnation(at.u64()?), tag: at.u64()? })
}
