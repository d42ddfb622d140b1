//! Text as Kafka sends it: checked UTF-8 that still lies in its frame.
//!
//! Lives on: anywhere (pure).
//! Owns: the check. Invariant: the bytes of a [`KafkaString`] are UTF-8 from the moment it exists.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{Hash, Hasher};

use bytes::Bytes;

/// UTF-8 text without a copy: a slice of the frame it came in, a static, or bytes of its own.
///
/// It has no `Display` on purpose: names come from strangers, and `Debug` escapes them for logs.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct KafkaString(Bytes);

impl KafkaString {
    /// Checks the bytes; gives them back when they are not UTF-8.
    pub fn from_utf8(bytes: Bytes) -> Result<Self, Bytes> {
        if std::str::from_utf8(&bytes).is_ok() { Ok(Self(bytes)) } else { Err(bytes) }
    }

    pub const fn from_static(text: &'static str) -> Self {
        Self(Bytes::from_static(text.as_bytes()))
    }

    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("checked when this value was made")
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub const fn as_bytes(&self) -> &Bytes {
        &self.0
    }

    /// A value that shares no memory with the frame this one came in.
    #[must_use]
    pub fn detached(&self) -> Self {
        Self(Bytes::copy_from_slice(&self.0))
    }
}

impl fmt::Debug for KafkaString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

// Equal to `str`'s, as `Borrow<str>` demands.
impl Hash for KafkaString {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl Borrow<str> for KafkaString {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for KafkaString {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl From<&str> for KafkaString {
    fn from(text: &str) -> Self {
        Self(Bytes::copy_from_slice(text.as_bytes()))
    }
}

impl From<String> for KafkaString {
    fn from(text: String) -> Self {
        Self(Bytes::from(text))
    }
}

impl PartialEq<str> for KafkaString {
    fn eq(&self, other: &str) -> bool {
        self.0 == other.as_bytes()
    }
}

impl PartialEq<&str> for KafkaString {
    fn eq(&self, other: &&str) -> bool {
        self.0 == other.as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_utf8_are_given_back() {
        let bytes = Bytes::from_static(b"ab\xff");
        assert_eq!(KafkaString::from_utf8(bytes.clone()), Err(bytes));
    }

    #[test]
    fn debug_escapes_what_would_break_a_log_line() {
        assert_eq!(format!("{:?}", KafkaString::from("a\n\"b")), r#""a\n\"b""#);
    }

    #[test]
    fn a_map_keyed_by_it_is_asked_with_a_str() {
        let map = std::collections::BTreeMap::from([(KafkaString::from_static("topic"), 1)]);
        assert_eq!(map.get("topic"), Some(&1));
    }

    #[test]
    fn detached_text_lies_elsewhere() {
        let frame = Bytes::from(vec![b'x'; 8]);
        let text = KafkaString::from_utf8(frame.slice(0..4)).unwrap();
        assert_eq!(text.as_bytes().as_ptr(), frame.as_ptr());
        assert_ne!(text.detached().as_bytes().as_ptr(), frame.as_ptr());
        assert_eq!(text.detached(), text);
    }
}
