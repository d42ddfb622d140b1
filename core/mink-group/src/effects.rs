//! What a step leaves for its caller to do: answers to send, records to append.
//!
//! Lives on: anywhere (pure).
//! Invariants: each token that was handed in comes out in exactly one reply.
use crate::{GroupId, Reply};
use bytes::Bytes;

/// Names one append until its outcome is reported. Grows with each append of one [`crate::Groups`]; another `Groups` counts anew.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Handle(pub u64);

/// A record as it is stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyedRecord {
    pub key: Bytes,
    /// None is a tombstone: what the key held is gone.
    pub value: Option<Bytes>,
}

/// Records that are stored together or not at all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Append {
    pub handle: Handle,
    /// Whose records they are, for logs.
    pub group: GroupId,
    /// In log order.
    pub records: Vec<KeyedRecord>,
}

/// Why an append certainly did not happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AppendRefused {
    /// A later one may succeed.
    Retriable,
    /// The bucket has another owner.
    NotOwner,
    /// The records fit no batch, now or later.
    TooLarge,
}

/// What steps leave to do. A caller may use one again for the next step once it has drained it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Effects<T> {
    /// Answers, to be sent now.
    pub replies: Vec<(T, Reply)>,
    /// What to append, in this order.
    pub appends: Vec<Append>,
}

impl<T> Default for Effects<T> {
    fn default() -> Effects<T> {
        Effects { replies: Vec::new(), appends: Vec::new() }
    }
}

impl<T> Effects<T> {
    pub(crate) fn reply(&mut self, token: T, reply: Reply) {
        self.replies.push((token, reply));
    }
}
