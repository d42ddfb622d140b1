//! Rows of the command log: groups of commands, chained by hash.
//!
//! Lives on: anywhere (pure).
//! Invariants: I13 (a row's hash covers the hash before it, its index and its payload); a row's payload is the canonical
//! encoding of its commands, at most [`PAYLOAD_BYTES_MAX`] bytes, with at most one registration.
use mink_types::{LogIndex, RequestId, RowHash, Witness};
use prost::Message as _;
use sha2::{Digest as _, Sha256};

use crate::wire::{self, WireError};
use crate::{Command, GroupError};

/// Longest payload of a row, in bytes.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 20;

/// Most commands of a row.
pub const ROW_COMMANDS_MAX: usize = 1024;

/// A command's place in its row becomes the low bits of the ids it makes.
const _: () = assert!(ROW_COMMANDS_MAX <= 1 << crate::apply::PLACE_BITS);

/// A row of the command log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Row {
    pub index: LogIndex,
    /// [`row_hash`] of the row before, this index and this payload.
    pub hash: RowHash,
    /// Versioned protobuf of the row's commands.
    pub payload: Vec<u8>,
}

impl Row {
    /// Index and hash: how far the log has got with this row.
    pub fn witness(&self) -> Witness {
        Witness { index: self.index, hash: self.hash }
    }

    /// The request ids and commands of the row, without applying them.
    pub fn commands(&self) -> Result<Vec<(RequestId, Command)>, crate::ApplyError> {
        decode(&self.payload).map_err(|error| error.at(self.index))
    }
}

/// SHA-256 over the hash before, the index (8 bytes, little-endian) and the payload.
pub fn row_hash(previous: RowHash, index: LogIndex, payload: &[u8]) -> RowHash {
    let mut hash = Sha256::new();
    hash.update(previous.0);
    hash.update(index.0.to_le_bytes());
    hash.update(payload);
    RowHash(hash.finalize().into())
}

/// Commands that go into one row together.
#[derive(Clone, Debug, Default)]
pub struct Group {
    commands: wire::Group,
    bytes: usize,
    registers: bool,
}

impl Group {
    /// A group without commands.
    pub fn new() -> Group {
        Group {
            commands: wire::Group { version: wire::GROUP_VERSION, commands: Vec::new() },
            bytes: GROUP_HEAD_BYTES,
            registers: false,
        }
    }

    /// Adds a command, or says why it must go elsewhere; the group is as before then.
    pub fn push(&mut self, request: RequestId, command: &Command) -> Result<(), GroupError> {
        let registers = matches!(command, Command::Register(_));
        let envelope = wire::envelope(request, command);
        let bytes = envelope.encoded_len() + COMMAND_HEAD_BYTES;
        if bytes + GROUP_HEAD_BYTES > PAYLOAD_BYTES_MAX {
            return Err(GroupError::TooLarge { bytes, max: PAYLOAD_BYTES_MAX - GROUP_HEAD_BYTES });
        }
        let full = self.bytes + bytes > PAYLOAD_BYTES_MAX || self.commands.commands.len() >= ROW_COMMANDS_MAX;
        if full || (registers && self.registers) {
            return Err(GroupError::Full);
        }
        self.commands.commands.push(envelope);
        self.bytes += bytes;
        self.registers |= registers;
        Ok(())
    }

    /// Number of commands.
    pub fn len(&self) -> usize {
        self.commands.commands.len()
    }

    /// Whether there are no commands.
    pub fn is_empty(&self) -> bool {
        self.commands.commands.is_empty()
    }

    /// The row that follows `previous` with these commands.
    pub fn row(&self, previous: Witness) -> Row {
        let payload = self.commands.encode_to_vec();
        debug_assert!(payload.len() <= PAYLOAD_BYTES_MAX, "push counts at least what encoding takes");
        let index = previous.index.next();
        Row { index, hash: row_hash(previous.hash, index, &payload), payload }
    }
}

/// Most bytes that the group's version takes.
const GROUP_HEAD_BYTES: usize = 6;
/// Most bytes that a command's tag and length take: a length below 2^28.
const COMMAND_HEAD_BYTES: usize = 5;

/// The commands of a payload. Whatever this program would write differently was written by a newer one, or damaged.
pub(crate) fn decode(payload: &[u8]) -> Result<Vec<(RequestId, Command)>, WireError> {
    if payload.len() > PAYLOAD_BYTES_MAX {
        return Err(WireError::Malformed("the payload is longer than a row may be"));
    }
    let group =
        wire::Group::decode(payload).map_err(|_| WireError::Malformed("the payload is no protobuf"))?;
    if group.version != wire::GROUP_VERSION {
        return Err(WireError::Unsupported(format!("row format {}", group.version)));
    }
    if group.commands.len() > ROW_COMMANDS_MAX {
        return Err(WireError::Malformed("the row has too many commands"));
    }
    let canonical = group.encode_to_vec() == payload;
    let commands = group.commands.into_iter().map(wire::command).collect::<Result<Vec<_>, _>>()?;
    if !canonical {
        return Err(WireError::Unsupported("a command with parts that this version does not know".into()));
    }
    Ok(commands)
}
