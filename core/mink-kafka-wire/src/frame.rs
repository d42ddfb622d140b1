//! One frame: the four bytes of length before it, and the segments that it is sent as.
//!
//! Lives on: anywhere (pure).
//! Owns: nothing. Invariants: I19, I20: a length is checked before anyone allocates for it (K-30).

use bytes::{Bytes, BytesMut};

use crate::error::{DecodeError, Fault};

/// The bytes of length before each frame.
pub const FRAME_PREFIX_LEN: usize = 4;

/// The length of the frame that follows `prefix`, in bytes and without the prefix.
///
/// Refuses what is negative or above `length_max` before a byte is allocated. The caller still lets its buffer grow as
/// bytes arrive: a declared length is not a reason to allocate.
pub fn frame_length(prefix: [u8; FRAME_PREFIX_LEN], length_max: u32) -> Result<u32, DecodeError> {
    let length = i32::from_be_bytes(prefix);
    match u32::try_from(length) {
        Ok(allowed) if allowed <= length_max => Ok(allowed),
        _ => Err(DecodeError {
            message: "frame",
            field: "length",
            fault: Fault::FrameLength { length, max: length_max },
        }),
    }
}

/// A whole frame to be sent, length in front: segments one after another, of which record batches are the memory they
/// were given as. Write it with vectored writes; nothing was copied together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    segments: Vec<Bytes>,
    len: usize,
}

impl Frame {
    pub(crate) fn new(segments: Vec<Bytes>, len: usize) -> Self {
        debug_assert_eq!(
            segments.iter().map(Bytes::len).sum::<usize>(),
            len,
            "the length counts every segment"
        );
        Self { segments, len }
    }

    /// In sending order; none is empty.
    pub fn segments(&self) -> &[Bytes] {
        &self.segments
    }

    pub fn into_segments(self) -> Vec<Bytes> {
        self.segments
    }

    /// In bytes, with the length prefix.
    #[expect(clippy::len_without_is_empty, reason = "a frame has at least its length prefix")]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// All bytes in one piece: a copy, unless there is one segment. For tests and for small frames only.
    pub fn to_bytes(&self) -> Bytes {
        if let [only] = self.segments.as_slice() {
            return only.clone();
        }
        let mut whole = BytesMut::with_capacity(self.len);
        self.segments.iter().for_each(|segment| whole.extend_from_slice(segment));
        whole.freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k_30_a_frame_length_below_0_or_above_the_limit_is_refused() {
        let max = 104_857_600;
        assert_eq!(frame_length(0i32.to_be_bytes(), max), Ok(0));
        assert_eq!(frame_length(104_857_600i32.to_be_bytes(), max), Ok(max));
        for length in [104_857_601, i32::MAX, -1, i32::MIN] {
            let fault = frame_length(length.to_be_bytes(), max).unwrap_err().fault;
            assert_eq!(fault, Fault::FrameLength { length, max });
        }
    }
}
