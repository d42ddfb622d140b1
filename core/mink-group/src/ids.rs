//! The names that groups and members go by, where a committed offset belongs, and the two clocks of a step.
//!
//! Lives on: anywhere (pure).
//! Invariants: a [`GroupId`] that exists is not empty and fits a record's key. Clones share their bytes.
use crate::GroupError;
use mink_types::{BucketIndex, CommitTime, TableId};
use std::fmt;
use std::sync::Arc;

/// Longest id of a group, in bytes.
pub const GROUP_ID_BYTES_MAX: usize = 1_024;

const _: () = assert!(GROUP_ID_BYTES_MAX <= u16::MAX as usize, "a key holds the length in two bytes");

macro_rules! text {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text! {
    /// The id of a group: 1 to [`GROUP_ID_BYTES_MAX`] bytes of any text.
    GroupId
}
text! {
    /// The id of a member, given by the coordinator. Clients send the empty one before they have any.
    MemberId
}
text! {
    /// The `group.instance.id` of a static member.
    InstanceId
}

impl GroupId {
    /// # Errors
    /// [`GroupError::InvalidGroupId`] when it is empty or too long.
    pub fn new(id: &str) -> Result<GroupId, GroupError> {
        if id.is_empty() || id.len() > GROUP_ID_BYTES_MAX {
            return Err(GroupError::InvalidGroupId);
        }
        Ok(GroupId(id.into()))
    }
}

impl MemberId {
    pub fn new(id: &str) -> MemberId {
        MemberId(id.into())
    }

    /// Whether it is the one that clients send before they have any.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The id of a new member: the name it goes by, and 16 random bytes in the form of a UUID.
    pub(crate) fn fresh(name: &str, unique: [u8; 16]) -> MemberId {
        let all = u128::from_be_bytes(unique);
        let part = |shift: u32, bits: u32| (all >> shift) & ((1 << bits) - 1);
        let middle = [part(80, 16), part(64, 16), part(48, 16)].map(|part| format!("{part:04x}")).join("-");
        MemberId(format!("{name}-{:08x}-{middle}-{:012x}", part(96, 32), part(0, 48)).into())
    }
}

impl InstanceId {
    pub fn new(id: &str) -> InstanceId {
        InstanceId(id.into())
    }
}

/// One partition of a topic, as offsets are kept by: the table's id, not its name, so that a topic that is deleted and made again
/// inherits nothing (K-18).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TopicKey {
    pub table: TableId,
    pub bucket: BucketIndex,
}

/// When a step happens.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Now {
    /// A clock that never goes back, in ms. Deadlines go by it; it means nothing to another process.
    pub monotonic_ms: u64,
    /// A wall clock that takes no large jump over and does not lag after a rest: the one that ages of records go by. What is stored goes
    /// by it.
    pub wall: CommitTime,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_member_id_has_the_form_of_its_name_and_a_uuid() {
        let id = MemberId::fresh("app", *b"\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f");
        assert_eq!(id.as_str(), "app-00010203-0405-0607-0809-0a0b0c0d0e0f");
    }

    #[test]
    fn i19_a_group_id_is_neither_empty_nor_longer_than_a_key_takes() {
        assert_eq!(GroupId::new(""), Err(GroupError::InvalidGroupId));
        assert!(GroupId::new(&"g".repeat(GROUP_ID_BYTES_MAX)).is_ok());
        assert_eq!(GroupId::new(&"g".repeat(GROUP_ID_BYTES_MAX + 1)), Err(GroupError::InvalidGroupId));
    }
}
