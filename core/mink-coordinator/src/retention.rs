//! What a bucket's log may forget by age and by size, when to look again, and when it may forget its producers at last.
//!
//! Lives on: anywhere (pure).
//! Invariants: goes by commit times alone, and by whole ranges; P-9: a range of unknown time is young, unless one behind it is old, for
//! then it is older still; P-12: only ranges of the metadata count, each once, whatever was tried to be uploaded; what is not committed
//! is never dropped; I6: producers are known for as long as they are anywhere, however short a log's records are kept.
use mink_metadata::Bucket;
use mink_types::{CommitTime, Offset, TableOptions};

/// What retention has to do with one bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Expiry {
    /// The offset that the log should begin at, if that is further than now.
    pub start: Option<Offset>,
    /// When more of it expires by age, if nothing else happens. Size needs no time: only a commit changes it.
    pub due: Option<CommitTime>,
}

/// Whether [`expiry`] may say otherwise by `new` than by `old`.
pub fn expires_otherwise(old: &TableOptions, new: &TableOptions) -> bool {
    let goes_by =
        |options: &TableOptions| (options.cleanup.deletes(), options.log_ttl_ms, options.retention_bytes);
    goes_by(old) != goes_by(new)
}

/// What of a bucket's log has expired at `now`: nothing where the policy deletes nothing. Ranges go from the front: those whose last batch was committed longer ago than
/// `table.log.ttl`, and those beyond `table.log.retention-bytes`.
pub fn expiry(bucket: &Bucket, options: &TableOptions, now: CommitTime) -> Expiry {
    if !options.cleanup.deletes() {
        return Expiry::default();
    }
    // Nothing is summed up where nothing is bounded: most buckets have no bound by size.
    let ranges = || bucket.ranges_from(bucket.start).map(|(_, range)| range);
    let mut bytes: u64 = match options.retention_bytes {
        Some(_) => ranges().fold(0, |sum, range| sum.saturating_add(range.bytes)),
        None => 0,
    };
    let mut start = bucket.start;
    for range in ranges() {
        // As Kafka: a range goes only if what stays is still enough.
        bytes = bytes.saturating_sub(range.bytes);
        let beyond = options.retention_bytes.is_some_and(|most| bytes >= most);
        let known = range.last_commit_time.0 > 0;
        let dies = options.log_ttl_ms.map(|ttl| dies(range.last_commit_time, ttl));
        if beyond || (known && dies.is_some_and(|dies| dies <= now)) {
            start = range.end;
        } else if known && dies.is_some() {
            return Expiry { start: (start > bucket.start).then_some(start), due: dies };
        }
        // Of unknown time, or kept for ever: what lies behind it decides, by age or by size.
    }
    Expiry { start: (start > bucket.start).then_some(start), due: None }
}

/// The offset that the bucket's log should begin at, if that is further than now.
pub fn expired_start(bucket: &Bucket, options: &TableOptions, now: CommitTime) -> Option<Offset> {
    expiry(bucket, options, now).start
}

/// When a log without records may forget its producers: the last of them has been idle for `producer_expiry_ms` then. None if it has
/// records, whose objects tell of the producers anyway, or if nothing is kept for them.
pub fn producers_expire(bucket: &Bucket, producer_expiry_ms: u64) -> Option<CommitTime> {
    if bucket.start < bucket.end {
        return None;
    }
    // What is lost tells of nobody, and has no time either.
    let last = bucket.unread().map(|(_, range)| range.last_commit_time).max()?;
    Some(dies(last, producer_expiry_ms))
}

/// The first moment at which a range is older than `ttl_ms`.
fn dies(last_commit: CommitTime, ttl_ms: u64) -> CommitTime {
    CommitTime(last_commit.0.saturating_add_unsigned(ttl_ms).saturating_add(1))
}
