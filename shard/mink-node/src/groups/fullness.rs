//! Tells an operator that consumer groups have filled their part of the memory.
//!
//! Lives on: within the task that coordinates.
//! Owns: whether it was told.
//! Invariants: it is told once, and again only after there was room in between.

/// Whether the groups' memory is full.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Fullness {
    told: bool,
}

impl Fullness {
    /// All groups hold so many of so many bytes. True when that is told now.
    pub(super) fn note(&mut self, bytes: usize, bytes_max: usize) -> bool {
        let (full, room) = (bytes_max - bytes_max / 32, bytes_max - bytes_max / 8);
        if bytes >= full && !self.told {
            self.told = true;
            tracing::warn!(
                bytes,
                bytes_max,
                "consumer groups fill their part of the memory: more members and commits are refused; give more --memory, or delete \
                 groups that nobody needs"
            );
            return true;
        }
        self.told &= bytes >= room;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i20_a_full_memory_is_told_once_until_there_is_room_again() {
        let mut fullness = Fullness::default();
        let mut told = |bytes| fullness.note(bytes, 3_200);
        assert_eq!([3_099, 3_100, 3_200, 2_900, 3_150].map(&mut told), [false, true, false, false, false]);
        assert_eq!([2_799, 3_100].map(&mut told), [false, true]);
    }
}
