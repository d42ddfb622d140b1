//! What a bucket's log may forget by age and by size.
//!
//! Lives on: anywhere (pure).
//! Invariants: goes by commit times alone (P-9: a range without one is young), and by whole ranges.
use mink_metadata::Bucket;
use mink_types::{CommitTime, Offset, TableOptions};

/// The offset that the bucket's log should begin at, if that is further than now. Ranges go from the front: those whose last
/// batch was committed longer ago than `table.log.ttl`, and those beyond `table.log.retention-bytes`.
pub fn expired_start(bucket: &Bucket, options: &TableOptions, now: CommitTime) -> Option<Offset> {
    let mut bytes: u64 = bucket.ranges.values().fold(0, |sum, range| sum.saturating_add(range.bytes));
    let mut start = bucket.start;
    for range in bucket.ranges.values() {
        let aged = options.log_ttl_ms.is_some_and(|ttl| {
            let age = now.0.saturating_sub(range.last_commit_time.0);
            range.last_commit_time.0 > 0 && u64::try_from(age).is_ok_and(|age| age > ttl)
        });
        // As Kafka: a range goes only if what stays is still enough.
        let rest = bytes.saturating_sub(range.bytes);
        let beyond = options.retention_bytes.is_some_and(|most| rest >= most);
        if !aged && !beyond {
            break;
        }
        bytes = rest;
        start = range.end;
    }
    (start > bucket.start).then_some(start)
}
