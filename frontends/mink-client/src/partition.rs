//! Which partition a record goes to when nobody says: the rule of Kafka's Java client, so that one key has one partition whoever sends it.
//!
//! Lives on: anywhere (pure).

/// The partition of a key among `count`, by Kafka's murmur2. `count` is at least 1.
pub fn partition_of_key(key: &[u8], count: i32) -> i32 {
    // The Java client masks the sign away instead of taking the absolute value.
    (murmur2(key).cast_signed() & i32::MAX) % count.max(1)
}

/// 32-bit murmur2 with the seed that Kafka uses.
fn murmur2(bytes: &[u8]) -> u32 {
    const SEED: u32 = 0x9747_b28c;
    const MULTIPLIER: u32 = 0x5bd1_e995;
    // Lengths beyond 4 GiB are beyond any record.
    let mut hash = SEED ^ u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let (words, rest) = bytes.as_chunks::<4>();
    for word in words {
        let mut word = u32::from_le_bytes(*word).wrapping_mul(MULTIPLIER);
        word = (word ^ (word >> 24)).wrapping_mul(MULTIPLIER);
        hash = hash.wrapping_mul(MULTIPLIER) ^ word;
    }
    if !rest.is_empty() {
        let mut last = [0; 4];
        for (to, from) in last.iter_mut().zip(rest) {
            *to = *from;
        }
        hash = (hash ^ u32::from_le_bytes(last)).wrapping_mul(MULTIPLIER);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(MULTIPLIER);
    hash ^ (hash >> 15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_hash_as_in_the_java_client() {
        for (key, hash) in [
            ("21", -973_932_308),
            ("foobar", -790_332_482),
            ("a-little-bit-long-string", -985_981_536),
            ("a-little-bit-longer-string", -1_486_304_829),
            ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            ("abc", 479_470_107),
        ] {
            assert_eq!(murmur2(key.as_bytes()).cast_signed(), hash, "{key}");
        }
    }

    #[test]
    fn a_key_has_a_partition_of_the_topic() {
        for key in [&b""[..], b"a", b"foobar"] {
            assert!((0..7).contains(&partition_of_key(key, 7)));
            assert_eq!(partition_of_key(key, 1), 0);
        }
    }
}
