//! Which bucket of the internal table coordinates a group.
//!
//! Lives on: anywhere (pure).
//! Invariants: the place of a group never changes while the number of buckets does not: offsets lie where this says.
use crate::GroupId;

/// The coordinator bucket of a group, of `buckets` in all: FNV-1a of 64 bits over the id's UTF-8 bytes (Fowler, Noll and Vo; the
/// IETF's draft-eastlake-fnv), folded to 32 bits by xor as its authors advise, modulo the number of buckets. 0 when there is none.
pub fn coordinator_bucket(group: &GroupId, buckets: u32) -> u32 {
    let hash = fnv1a(group.as_str().as_bytes());
    let folded = (hash >> 32) ^ (hash & 0xffff_ffff);
    folded.checked_rem(u64::from(buckets)).and_then(|bucket| u32::try_from(bucket).ok()).unwrap_or(0)
}

fn fnv1a(bytes: &[u8]) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    bytes.iter().fold(BASIS, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_gives_the_published_vectors() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    /// Never to be changed: stored offsets lie where these numbers say.
    #[test]
    fn the_places_of_groups_are_golden() {
        let place = |id, buckets| coordinator_bucket(&GroupId::new(id).expect("an id"), buckets);
        assert_eq!([place("a", 16), place("foobar", 16), place("foobar", 50)], [0, 9, 33]);
        assert_eq!(place("anything", 1), 0);
        assert_eq!(place("anything", 0), 0);
    }

    #[test]
    fn groups_spread_over_the_buckets() {
        let mut counts = [0_u32; 16];
        for n in 0..16_000 {
            let group = GroupId::new(&format!("group-{n}")).expect("an id");
            counts[coordinator_bucket(&group, 16) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (800..1_200).contains(count)), "{counts:?}");
    }
}
