//! The 16 bytes by which Kafka names a topic beside its name.
//!
//! Lives on: anywhere (pure).
//! Owns: nothing.

use std::fmt;

/// A UUID in network order; all zeroes means "none".
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// What stands for the absence of an id.
    pub const ZERO: Self = Self([0; 16]);

    pub fn is_zero(self) -> bool {
        self == Self::ZERO
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, byte) in self.0.iter().enumerate() {
            if matches!(at, 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_as_a_uuid() {
        let id = Uuid(*b"\x01\x23\x45\x67\x89\xab\xcd\xef\x00\x11\x22\x33\x44\x55\x66\x77");
        assert_eq!(format!("{id:?}"), "01234567-89ab-cdef-0011-223344556677");
        assert!(Uuid::default().is_zero() && !id.is_zero());
    }
}
