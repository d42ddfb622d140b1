//! A reader over borrowed bytes that can run out but never past the end, and the varints of Kafka's record format.
//!
//! Lives on: anywhere (pure).
//! Invariants: I19: every read is checked against the bytes that remain; a varint has at most 5 or 10 bytes.

/// Reads from the front of a slice; `None` means the bytes do not hold what was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounded<'a> {
    rest: &'a [u8],
}

impl<'a> Bounded<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.rest.split_at_checked(count)?;
        self.rest = tail;
        Some(head)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.rest.split_first_chunk::<N>()?;
        self.rest = tail;
        Some(*head)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn i8(&mut self) -> Option<i8> {
        self.array().map(i8::from_be_bytes)
    }

    pub(crate) fn i16(&mut self) -> Option<i16> {
        self.array().map(i16::from_be_bytes)
    }

    pub(crate) fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn i64(&mut self) -> Option<i64> {
        self.array().map(i64::from_be_bytes)
    }

    /// A zigzag varint of at most 5 bytes.
    pub(crate) fn varint(&mut self) -> Option<i32> {
        let raw = u32::try_from(self.unsigned(VARINT_BYTES_MAX)?).ok()?;
        Some((raw >> 1).cast_signed() ^ -((raw & 1).cast_signed()))
    }

    /// A zigzag varint of at most 10 bytes.
    pub(crate) fn varlong(&mut self) -> Option<i64> {
        let raw = self.unsigned(VARLONG_BYTES_MAX)?;
        Some((raw >> 1).cast_signed() ^ -((raw & 1).cast_signed()))
    }

    fn unsigned(&mut self, bytes_max: u32) -> Option<u64> {
        let mut value = 0_u64;
        for index in 0..bytes_max {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            let shift = index * 7;
            // The last byte of ten holds one bit only; more would be lost off the top.
            if bits << shift >> shift != bits {
                return None;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }
}

const VARINT_BYTES_MAX: u32 = 5;
const VARLONG_BYTES_MAX: u32 = 10;

/// Appends a zigzag varint. The encodings of an `i32` and of the same value as `i64` are the same bytes.
pub(crate) fn put_varlong(out: &mut Vec<u8>, value: i64) {
    let mut rest = zigzag(value);
    while rest >= 0x80 {
        out.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    out.push((rest & 0x7f) as u8);
}

/// Bytes that [`put_varlong`] appends for this value: 1 to 10.
pub(crate) fn varlong_size(value: i64) -> usize {
    let bits = 64 - (zigzag(value) | 1).leading_zeros();
    bits.div_ceil(7) as usize
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn i19_overlong_or_cut_varints_are_refused() {
        assert_eq!(Bounded::new(&[0xff; 5]).varint(), None);
        assert_eq!(Bounded::new(&[0xff, 0xff, 0xff, 0xff, 0x1f]).varint(), None, "35 bits");
        assert_eq!(Bounded::new(&[0xff, 0xff, 0xff, 0xff, 0x0f]).varint(), Some(i32::MIN));
        assert_eq!(Bounded::new(&[0xff; 10]).varlong(), None);
        let mut widest = [0xff; 10];
        widest[9] = 0x03;
        assert_eq!(Bounded::new(&widest).varlong(), None, "65 bits");
        widest[9] = 0x01;
        assert_eq!(Bounded::new(&widest).varlong(), Some(i64::MIN));
        assert_eq!(Bounded::new(&[0x80]).varint(), None);
        assert_eq!(Bounded::new(&[]).varlong(), None);
    }

    #[test]
    fn the_protocols_own_examples_of_zigzag() {
        for (value, bytes) in [
            (0, vec![0]),
            (-1, vec![1]),
            (1, vec![2]),
            (63, vec![126]),
            (-65, vec![0x81, 1]),
            (300, vec![0xd8, 4]),
        ] {
            let mut out = Vec::new();
            put_varlong(&mut out, value);
            assert_eq!(out, bytes);
        }
    }

    proptest! {
        #[test]
        fn varints_round_trip_at_their_stated_size(value: i64, narrow: i32) {
            let mut out = Vec::new();
            put_varlong(&mut out, value);
            prop_assert_eq!(out.len(), varlong_size(value));
            prop_assert_eq!(Bounded::new(&out).varlong(), Some(value));
            out.clear();
            put_varlong(&mut out, narrow.into());
            prop_assert_eq!(Bounded::new(&out).varint(), Some(narrow));
        }
    }
}
