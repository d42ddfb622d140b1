//! What GETs have brought and somebody still holds: counted from the arrival of the bytes to the end of their last slice.
//!
//! Lives on: anywhere.
//! Owns: the count.
//! Invariants: I20: a slice of a long GET pins all of it, so the whole counts until nobody has a slice of it.
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

/// Bytes that are held, by the cache or by anybody else.
#[derive(Debug, Default)]
pub(super) struct Held(AtomicUsize);

/// The bytes of one GET, which leave the count when the last slice goes.
struct Kept {
    bytes: Bytes,
    size: usize,
    held: Arc<Held>,
}

impl Held {
    /// Counts `bytes` and `beside` bytes of book-keeping until the last slice of the result is gone.
    pub(super) fn keep(self: &Arc<Self>, bytes: Bytes, beside: usize) -> Bytes {
        let size = bytes.len() + beside;
        self.0.fetch_add(size, Ordering::Relaxed);
        Bytes::from_owner(Kept { bytes, size, held: Arc::clone(self) })
    }

    pub(super) fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.held.0.fetch_sub(self.size, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i20_a_slice_counts_as_all_that_it_pins() {
        let held = Arc::new(Held::default());
        let whole = held.keep(Bytes::from(vec![7; 1_000]), 24);
        let slice = whole.slice(990..);
        drop(whole);
        assert_eq!((held.bytes(), slice.len()), (1_024, 10));
        drop(slice);
        assert_eq!(held.bytes(), 0);
    }
}
