//! The two times a record has: when its producer says it happened, and when its bucket took it in.
//!
//! Lives on: anywhere (pure). Clocks themselves are mink-rt's.
use std::fmt;

/// A record's time as its producer gave it, in ms since 1970; may be anything. What ListOffsets by time looks at.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Timestamp(pub i64);

/// When a bucket ordered a batch, in ms since 1970: the maximum of the clock and the batch before, so it never goes back.
/// Retention and the expiry of producers go by it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct CommitTime(pub i64);

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

impl fmt::Display for CommitTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}
