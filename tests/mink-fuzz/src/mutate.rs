//! Mutations of an input: bits, bytes, lengths, pieces of other inputs. The same seed gives the same inputs.
//!
//! Lives on: anywhere (pure).
use rand::Rng;
use rand_chacha::ChaCha8Rng;

/// Mutations of one input at most.
const STEPS_MAX: usize = 6;

/// Numbers at which lengths and counts go wrong.
const EDGES: [i64; 14] =
    [0, 1, -1, 2, 127, 128, 255, 32_767, 65_535, 1 << 20, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff, i64::MAX];

/// Changes `input`, whose first `fixed` bytes say what it is and stay; it grows to `bytes_max` at most.
pub(crate) fn mutate(
    random: &mut ChaCha8Rng,
    input: &mut Vec<u8>,
    other: &[u8],
    fixed: usize,
    bytes_max: usize,
) {
    for _ in 0..random.random_range(1..=STEPS_MAX) {
        step(random, input, other, fixed);
        input.truncate(bytes_max);
    }
}

fn step(random: &mut ChaCha8Rng, input: &mut Vec<u8>, other: &[u8], fixed: usize) {
    let at = random.random_range(fixed..=input.len().max(fixed)).min(input.len());
    let rest = input.len() - at;
    match random.random_range(0..9) {
        0 => {
            if let Some(byte) = input.get_mut(at) {
                *byte ^= 1 << random.random_range(0..8);
            }
        }
        1 => {
            if let Some(byte) = input.get_mut(at) {
                *byte = random.random();
            }
        }
        2 => input.truncate(at),
        3 => input.insert(at, random.random()),
        4 => drop(input.drain(at..at + random.random_range(0..=rest.min(16)))),
        5 => number(random, input, at),
        6 => {
            // A varint of many sevens, as long as it may be and longer.
            let length = random.random_range(1..=11);
            let varint: Vec<u8> = (0..length).map(|n| if n + 1 < length { 0xff } else { 0x0f }).collect();
            drop(input.splice(at..at, varint));
        }
        7 => {
            let from = random.random_range(0..=other.len());
            let to = (from + random.random_range(0..=64)).min(other.len());
            drop(input.splice(at..at, other.get(from..to).unwrap_or_default().iter().copied()));
        }
        _ => {
            let piece: Vec<u8> = input.iter().skip(at).take(random.random_range(0..=32)).copied().collect();
            drop(input.splice(at..at, piece));
        }
    }
}

/// Writes an edge over 2, 4 or 8 bytes, in either order.
fn number(random: &mut ChaCha8Rng, input: &mut [u8], at: usize) {
    let edge = EDGES.get(random.random_range(0..EDGES.len())).copied().unwrap_or(0);
    let width = [2, 4, 8].get(random.random_range(0..3)).copied().unwrap_or(4);
    let mut bytes = edge.to_le_bytes();
    let bytes = bytes.get_mut(..width).unwrap_or_default();
    if random.random() {
        bytes.reverse();
    }
    for (place, byte) in input.iter_mut().skip(at).zip(bytes) {
        *place = *byte;
    }
}
