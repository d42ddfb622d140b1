//! Which shard of a node a bucket is pinned to.
//!
//! Lives on: anywhere (pure).
//! Invariants: the same answer for the node's whole life: a bucket never changes its core.
use mink_types::BucketId;
use std::fmt;

/// A shard of this node, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ShardIndex(pub usize);

impl fmt::Display for ShardIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The shard of a bucket among `shards`: neighbours lie on neighbouring shards, so that a table spreads evenly; where a table
/// begins depends on its id, so that tables of one bucket spread too.
pub fn shard_of(bucket: BucketId, shards: usize) -> ShardIndex {
    // Fibonacci hashing: ids that follow each other end far apart.
    let start =
        (bucket.table.0 ^ bucket.partition.0.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    let place = start.wrapping_add(u64::from(bucket.bucket.0)) % (shards.max(1) as u64);
    ShardIndex(usize::try_from(place).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mink_types::{BucketIndex, TableId};

    #[test]
    fn buckets_of_a_table_spread_evenly() {
        for table in 1..50 {
            let mut count = [0; 4];
            for bucket in 0..16 {
                let id = BucketId::unpartitioned(TableId(table << 16), BucketIndex(bucket));
                count[shard_of(id, 4).0] += 1;
            }
            assert_eq!(count, [4; 4]);
        }
    }

    #[test]
    fn tables_of_one_bucket_spread_too() {
        let mut count = [0_u32; 4];
        for table in 0..4_000 {
            count[shard_of(BucketId::unpartitioned(TableId(table << 16), BucketIndex(0)), 4).0] += 1;
        }
        assert!(count.iter().all(|&n| n > 800), "{count:?}");
    }
}
