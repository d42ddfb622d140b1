//! CRC-32C as what it is, the remainder of a polynomial: what two checksums say of the bytes one after another, without looking at them.
//!
//! Lives on: anywhere (pure). Costs the same for bytes of any number, about as much as the checksum of four KiB.

/// The polynomial of CRC-32C without its highest power; the power 0 is the top bit, as in the checksum itself.
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// Digits of a length, and the values of one: what a length moves is the product of what its digits move.
const DIGITS: usize = 16;
const VALUES: usize = 16;
const DIGIT_BITS: usize = 4;

/// By digit and its value: the power 8 x value x 16^digit of the variable, which moves a checksum so many bytes on.
const MOVES: [[u32; VALUES]; DIGITS] = {
    let mut moves = [[1 << 31; VALUES]; DIGITS];
    // One byte on.
    let mut unit = 1 << (31 - 8);
    let mut digit = 0;
    while digit < DIGITS {
        let mut value = 1;
        #[expect(clippy::indexing_slicing, reason = "evaluated when compiled")]
        {
            while value < VALUES {
                moves[digit][value] = times(moves[digit][value - 1], unit);
                value += 1;
            }
            unit = times(moves[digit][VALUES - 1], unit);
        }
        digit += 1;
    }
    moves
};

const _: () = assert!(VALUES == 1 << DIGIT_BITS && DIGITS * DIGIT_BITS == 64);

/// The product of two polynomials modulo that of the checksum.
const fn times(a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    let mut bit = 32;
    while bit > 0 {
        bit -= 1;
        // No branch that depends on the bits: half of them would be guessed wrong.
        product ^= b & 0_u32.wrapping_sub((a >> bit) & 1);
        b = (b >> 1) ^ (POLYNOMIAL & 0_u32.wrapping_sub(b & 1));
    }
    product
}

/// A remainder moved `bytes` bytes on: that of its bytes with so many zeros behind them.
pub(crate) fn moved(remainder: u32, bytes: usize) -> u32 {
    let (mut moved, mut left) = (remainder, bytes);
    for values in &MOVES {
        if left == 0 {
            break;
        }
        if let Some(by) = values.get(left % VALUES).filter(|_| !left.is_multiple_of(VALUES)) {
            moved = times(*by, moved);
        }
        left >>= DIGIT_BITS;
    }
    moved
}

/// The CRC-32C of bytes whose first part has the checksum `first`, and whose second part, `second_bytes` long, has `second`.
///
/// ```
/// let (first, second) = (crc32c::crc32c(b"one, "), crc32c::crc32c(b"two"));
/// assert_eq!(mink_record::joined_checksum(first, second, 3), crc32c::crc32c(b"one, two"));
/// ```
#[must_use]
pub fn joined_checksum(first: u32, second: u32, second_bytes: usize) -> u32 {
    moved(first, second_bytes) ^ second
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_long_run_is_joined_as_a_short_one() {
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| n.to_le_bytes()[0] ^ n.to_le_bytes()[1]).collect();
        for at in [0, 1, 15, 16, 17, 255, 65_536, 1_048_575, 2_999_999, 3_000_000] {
            let (first, second) = bytes.split_at(at);
            let joined = joined_checksum(crc32c::crc32c(first), crc32c::crc32c(second), second.len());
            assert_eq!(joined, crc32c::crc32c(&bytes), "{at}");
        }
    }

    proptest! {
        #[test]
        fn two_checksums_give_that_of_the_whole(
            first in proptest::collection::vec(any::<u8>(), 0..300),
            second in proptest::collection::vec(any::<u8>(), 0..5_000),
        ) {
            let whole = crc32c::crc32c_append(crc32c::crc32c(&first), &second);
            let joined = joined_checksum(crc32c::crc32c(&first), crc32c::crc32c(&second), second.len());
            prop_assert_eq!(joined, whole);
        }
    }
}
