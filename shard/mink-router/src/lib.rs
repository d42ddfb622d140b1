//! What crosses between frontends, node and shards: messages, bounded lanes, byte permits, replies, the place of a bucket; and
//! whose turn it is: who may connect to a frontend, who of those that wait for memory is next.
//!
//! Lives on: anywhere; a lane's receiver lives on the core that owns it.
//! Owns: no state of the node.     Talks to: nobody; it is what others talk through.
//! Invariants: every lane is bounded (I20); an append is never refused for lack of room, its sender waits; a completion has
//! its room reserved before the work begins, so it is never refused; bytes cross as they lie, never copied here.
#![forbid(unsafe_code)]

mod admission;
mod batch;
mod error;
mod lane;
mod message;
mod permits;
mod place;
mod reply;
mod turns;

pub use admission::{Admission, Admitted, TurnedAway};
pub use batch::BatchBytes;
pub use error::{AppendError, ReadError};
pub use lane::{Closed, Full, Receiver, Reserved, Sender, lane};
pub use message::{
    Append, EpochEnd, FirstSequence, Located, Position, ProducerState, Read, ReadAnswer, Reads, ReadsAnswer,
    Request, Watch, WatchedOffset,
};
pub use permits::{BytePermit, BytePermits};
pub use place::{ShardIndex, shard_of};
pub use reply::{
    AppendReply, AppendTicket, Appended, DurableReply, Lost, Ordered, ReplyTo, Waiting, append_reply, reply,
};
pub use turns::{Turn, Turns};
