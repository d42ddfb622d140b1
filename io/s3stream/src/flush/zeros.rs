//! Bytes without their zeros: of small numbers in wide fields, which is what the states of buckets are, less than half is left.
//!
//! Lives on: anywhere (pure).
//! Invariants: what was left out is put back, up to zeros at the very end; at most one byte in eight is added.

/// Writes `bytes`: of each eight, a byte that tells which of them are not zero, then those.
pub(super) fn leave_out(bytes: &[u8], out: &mut Vec<u8>) {
    for eight in bytes.chunks(8) {
        let at = out.len();
        out.push(0);
        let mut there = 0_u8;
        for (place, byte) in eight.iter().enumerate().filter(|(_, byte)| **byte != 0) {
            there |= 1 << place;
            out.push(*byte);
        }
        if let Some(tag) = out.get_mut(at) {
            *tag = there;
        }
    }
}

/// The bytes again, and zeros up to the next multiple of eight.
pub(super) fn put_back(mut packed: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(packed.len() * 2);
    while let Some((there, rest)) = packed.split_first() {
        packed = rest;
        for place in 0..8 {
            let byte = if there >> place & 1 == 1 { packed.split_off_first() } else { None };
            out.push(byte.copied().unwrap_or(0));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_was_left_out_is_put_back(bytes in proptest::collection::vec(prop_oneof![Just(0_u8), any::<u8>()], 0..100)) {
            let mut packed = Vec::new();
            leave_out(&bytes, &mut packed);
            let zeros: usize = bytes.iter().map(|byte| usize::from(*byte == 0)).sum();
            prop_assert_eq!(packed.len(), bytes.len() - zeros + bytes.len().div_ceil(8));
            let mut whole = bytes.clone();
            whole.resize(bytes.len().next_multiple_of(8), 0);
            prop_assert_eq!(put_back(&packed), whole);
        }
    }
}
