//! Which name somebody meant who typed another.
//!
//! Lives on: anywhere (pure).
//! Invariants: I20: a long name is compared with nothing.

/// Longest name that is compared, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// The name that is most alike, if any is alike at all: a third of the letters may differ.
pub fn closest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    let bound = (name.len() / 3).max(1);
    let distances = known.map(|candidate| (distance(name, candidate), candidate));
    distances.min().filter(|(distance, _)| *distance <= bound).map(|(_, candidate)| candidate)
}

/// Letters to insert, delete or replace (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    // One row of the table at a time: `row[j]` is the distance between what was read of `a` and the first j letters of `b`.
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, from) in a.chars().enumerate() {
        let (mut diagonal, mut left) = (i, i + 1);
        for (slot, to) in row.iter_mut().skip(1).zip(b.chars()) {
            let above = *slot;
            left = (diagonal + usize::from(from != to)).min(above + 1).min(left + 1);
            (*slot, diagonal) = (left, above);
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_and_none_for_what_is_like_nothing() {
        let known = ["retention.ms", "retention.bytes", "bucket.num"];
        let near = |name: &str| closest(name, known.into_iter());
        assert_eq!(near("retention.msec"), Some("retention.ms"));
        assert_eq!(near("bucket.mun"), Some("bucket.num"));
        assert_eq!((near(""), near("nonsense")), (None, None));
        assert_eq!(near(&"retention.ms".repeat(100_000)), None);
    }

    #[test]
    fn letters_to_change_are_counted() {
        for (a, b, expected) in [("", "abc", 3), ("abc", "abc", 0), ("kitten", "sitting", 3), ("ab", "ba", 2)]
        {
            assert_eq!((distance(a, b), distance(b, a)), (expected, expected), "{a} {b}");
        }
    }
}
