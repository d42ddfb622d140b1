//! The bytes of a batch on its way to its shard, and whether it may keep them.
//!
//! Lives on: made on the service runtime, taken apart on a core.
//! Invariants: I20: memory that a shard keeps is what it counts: nothing else lies in it, and nobody else holds it.
use bytes::{Bytes, BytesMut};
use std::ops::Deref;

/// A batch that is to be appended.
#[derive(Clone, Debug)]
pub enum BatchBytes {
    /// A part of what a client sent, in which other things lie: the shard copies it.
    Part(Bytes),
    /// Made for the log, in memory of its own: the shard keeps a large one as it lies, without a copy.
    Own(Bytes),
}

impl BatchBytes {
    /// The memory itself, to be changed and kept, if it is the batch's own, nobody else holds it, and at most a quarter of it is unused.
    ///
    /// # Errors
    /// The batch, which must be copied.
    pub fn into_own(self) -> Result<BytesMut, Bytes> {
        match self {
            BatchBytes::Part(bytes) => Err(bytes),
            BatchBytes::Own(bytes) => {
                let own = bytes.try_into_mut()?;
                if own.capacity() - own.len() > own.capacity() / 4 { Err(own.freeze()) } else { Ok(own) }
            }
        }
    }

    /// The bytes, for whoever only reads them.
    pub fn into_shared(self) -> Bytes {
        match self {
            BatchBytes::Part(bytes) | BatchBytes::Own(bytes) => bytes,
        }
    }
}

impl From<Bytes> for BatchBytes {
    /// A part of something, for all that is known.
    fn from(bytes: Bytes) -> BatchBytes {
        BatchBytes::Part(bytes)
    }
}

impl Deref for BatchBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            BatchBytes::Part(bytes) | BatchBytes::Own(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I20
    #[test]
    fn only_memory_that_a_batch_has_to_itself_is_kept() {
        let bytes = || Bytes::from(vec![7; 1000]);
        assert!(BatchBytes::Part(bytes()).into_own().is_err(), "other things may lie in it");
        assert_eq!(BatchBytes::Own(bytes()).into_own().expect("its own").len(), 1000);
        let held = bytes();
        assert!(BatchBytes::Own(held.clone()).into_own().is_err(), "somebody else holds it");
        let mut roomy = BytesMut::with_capacity(2000);
        roomy.extend_from_slice(&held);
        assert!(BatchBytes::Own(roomy.freeze()).into_own().is_err(), "half of it lies idle");
    }
}
