//! The records of one partition in a Produce or Fetch message: raw bytes, possibly in several pieces.
//!
//! Lives on: anywhere (pure).
//! Owns: nothing; the pieces are shared, immutable memory of whoever made them.

use std::fmt;

use bytes::{Bytes, BytesMut};

/// Record batches one after another, not decoded, as one piece or several.
///
/// A decoded message has one piece, a slice of its frame. A Fetch answer may name as many as it likes (one per stored
/// batch); they are sent one after another and never copied together. Equality is that of the bytes, not the pieces.
#[derive(Clone, Default)]
pub struct Records {
    // The first piece lies inline, so that the usual case of one piece allocates nothing.
    first: Bytes,
    rest: Vec<Bytes>,
}

impl Records {
    /// Total length in bytes.
    pub fn len(&self) -> usize {
        self.segments().map(Bytes::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.segments().all(Bytes::is_empty)
    }

    /// Adds a piece at the end.
    pub fn push(&mut self, segment: Bytes) {
        if segment.is_empty() {
            return;
        }
        if self.first.is_empty() {
            self.first = segment;
        } else {
            self.rest.push(segment);
        }
    }

    /// The pieces in order.
    pub fn segments(&self) -> impl Iterator<Item = &Bytes> {
        std::iter::once(&self.first).chain(&self.rest)
    }

    /// All bytes in one piece: no copy if they already are, one if not.
    pub fn into_bytes(self) -> Bytes {
        if self.rest.is_empty() {
            return self.first;
        }
        let mut whole = BytesMut::with_capacity(self.len());
        self.segments().for_each(|segment| whole.extend_from_slice(segment));
        whole.freeze()
    }
}

impl From<Bytes> for Records {
    fn from(first: Bytes) -> Self {
        Self { first, rest: Vec::new() }
    }
}

impl FromIterator<Bytes> for Records {
    fn from_iter<I: IntoIterator<Item = Bytes>>(segments: I) -> Self {
        let mut records = Self::default();
        segments.into_iter().for_each(|segment| records.push(segment));
        records
    }
}

impl PartialEq for Records {
    fn eq(&self, other: &Self) -> bool {
        if self.rest.is_empty() && other.rest.is_empty() {
            return self.first == other.first;
        }
        self.len() == other.len() && self.segments().flatten().eq(other.segments().flatten())
    }
}

impl Eq for Records {}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Record bytes belong in no log.
        write!(f, "Records({} bytes)", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_piece_is_given_back_without_a_copy() {
        let bytes = Bytes::from(vec![1, 2, 3]);
        let records = Records::from(bytes.clone());
        assert_eq!(records.into_bytes().as_ptr(), bytes.as_ptr());
    }

    #[test]
    fn equality_is_of_the_bytes_not_the_pieces() {
        let whole = Records::from(Bytes::from_static(b"abcd"));
        let pieces: Records = [&b""[..], b"ab", b"", b"cd"].into_iter().map(Bytes::from_static).collect();
        assert_eq!(whole, pieces);
        assert_eq!(pieces.segments().count(), 2);
        assert_eq!(pieces.into_bytes(), "abcd");
        assert_ne!(whole, Records::from(Bytes::from_static(b"abcx")));
    }
}
