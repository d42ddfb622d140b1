//! The topics that a member of protocol type `consumer` subscribes to, read from its metadata.
//!
//! Lives on: anywhere (pure).
//! Invariants: the bytes are a client's; whatever they are, nothing panics and no count sizes an allocation (I19).
use std::collections::BTreeSet;
use std::sync::Arc;

/// The protocol type of Kafka's own consumers.
pub(crate) const CONSUMER: &str = "consumer";

/// Adds the topics of one subscription; None when the bytes are none. A subscription begins, big-endian, with a version (2 bytes)
/// and an array (4 bytes of count) of strings (2 bytes of length); what follows differs by version and names no topic.
pub(crate) fn add_topics(metadata: &[u8], topics: &mut BTreeSet<Arc<str>>) -> Option<()> {
    let (version, rest) = metadata.split_first_chunk::<2>()?;
    if i16::from_be_bytes(*version) < 0 {
        return None;
    }
    let (count, mut rest) = rest.split_first_chunk::<4>()?;
    for _ in 0..u32::try_from(i32::from_be_bytes(*count)).ok()? {
        let (length, after) = rest.split_first_chunk::<2>()?;
        let length = usize::try_from(i16::from_be_bytes(*length)).ok()?;
        let (name, after) = after.split_at_checked(length)?;
        let name = std::str::from_utf8(name).ok()?;
        if !topics.contains(name) {
            topics.insert(name.into());
        }
        rest = after;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_are_read_and_what_follows_is_let_be() {
        let mut topics = BTreeSet::new();
        let metadata = b"\0\x01\0\0\0\x02\0\x01b\0\x02aa\xff\xff\xff\xff";
        assert_eq!(add_topics(metadata, &mut topics), Some(()));
        assert_eq!(topics.iter().map(|t| &**t).collect::<Vec<_>>(), ["aa", "b"]);
    }

    #[test]
    fn i19_bytes_that_are_no_subscription_are_refused() {
        let mut topics = BTreeSet::new();
        for bad in [
            &b""[..],
            b"\0\x01",
            b"\xff\xff\0\0\0\0",
            b"\0\0\xff\xff\xff\xff",
            b"\0\0\x7f\xff\xff\xff",
            b"\0\0\0\0\0\x01\xff\xff",
            b"\0\0\0\0\0\x01\0\x05aa",
            b"\0\0\0\0\0\x01\0\x01\xff",
        ] {
            assert_eq!(add_topics(bad, &mut topics), None, "{bad:?}");
        }
    }
}
