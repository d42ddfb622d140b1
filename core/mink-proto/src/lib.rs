//! Tickets and commands of the native protocol: what Mink puts into Arrow Flight's own messages.
//!
//! Lives on: anywhere (pure).
//! Owns: nothing.     Talks to: no one; frontends and the client share it.
//! Invariants: I19 (a message of foreign bytes is a value or a typed error; prost bounds nesting, and nothing is sized by a count),
//! fields and numbers are those of `proto/mink/v1/flight.proto`, which docs/flight.md explains; a golden test holds the two together.
#![forbid(unsafe_code)]

mod messages;
#[cfg(test)]
mod tests;

pub use messages::{
    Append, BatchInfo, Command, Comparison, DescribeTable, Earliest, FindWriter, Latest, NodeDescription,
    OpenWriter, Operator, PartitionValue, Placed, Position, PutAck, PutBatch, Scan, TableDescription,
    TableOption, Ticket, Writer, WriterState, command, position, ticket,
};
use prost::Message;

/// Longest ticket or command, in bytes. Real ones have a few hundred.
pub const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// Bytes that are not the message they should be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ProtoError {
    #[error("{what} has {bytes} bytes; at most {MESSAGE_BYTES_MAX} are accepted")]
    TooLong { what: &'static str, bytes: usize },
    #[error("{what} is not a mink.v1.{what} ({why}); see proto/mink/v1/flight.proto")]
    Malformed { what: &'static str, why: String },
    #[error("{what} says nothing; set one of {accepted}")]
    Empty { what: &'static str, accepted: &'static str },
}

/// Reads a message of foreign bytes. `what` is its name.
pub fn decode<M: Message + Default>(what: &'static str, bytes: &[u8]) -> Result<M, ProtoError> {
    if bytes.len() > MESSAGE_BYTES_MAX {
        return Err(ProtoError::TooLong { what, bytes: bytes.len() });
    }
    M::decode(bytes).map_err(|error| ProtoError::Malformed { what, why: error.to_string() })
}

/// The bytes of a message.
pub fn encode<M: Message>(message: &M) -> Vec<u8> {
    message.encode_to_vec()
}

impl Command {
    /// Reads `FlightDescriptor.cmd`.
    pub fn read(bytes: &[u8]) -> Result<command::Command, ProtoError> {
        let read: Command = decode("Command", bytes)?;
        read.command.ok_or(ProtoError::Empty { what: "Command", accepted: "append, scan" })
    }
}

impl Ticket {
    /// Reads `Ticket.ticket`.
    pub fn read(bytes: &[u8]) -> Result<ticket::Ticket, ProtoError> {
        let read: Ticket = decode("Ticket", bytes)?;
        read.ticket.ok_or(ProtoError::Empty { what: "Ticket", accepted: "scan" })
    }
}
