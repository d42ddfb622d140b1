//! Skips by name: a test that lacks a part says so, and `MINK_TEST_STRICT=1` makes that a failure.
//! Lives on: anywhere.
//! Owns: nothing.
//! Invariants: nothing is skipped without a line that names it.

use crate::{ErrorKind, Result};

/// Whether a missing part fails the test (`MINK_TEST_STRICT=1`) instead of skipping it.
pub fn is_strict() -> bool {
    std::env::var_os("MINK_TEST_STRICT").is_some_and(|value| value == "1")
}

/// Gives the part, or says on stderr which part is missing and gives `None`: then the test returns.
///
/// ```no_run
/// # async fn test() {
/// use mink_testkit::{parts::SeaweedFs, skip};
/// let Some(store) = skip::available("seaweedfs", SeaweedFs::shared().await) else { return };
/// # }
/// ```
///
/// # Panics
/// On every error that is not [`ErrorKind::Unavailable`], and on that too when [`is_strict`].
pub fn available<T>(part: &str, answer: Result<T>) -> Option<T> {
    decide(part, answer, is_strict())
}

fn decide<T>(part: &str, answer: Result<T>, strict: bool) -> Option<T> {
    match answer {
        Ok(part) => Some(part),
        Err(error) if error.kind() == ErrorKind::Unavailable && !strict => {
            eprintln!("skip {part}: {error}");
            None
        }
        Err(error) => panic!("{part}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn a_part_that_is_there_is_handed_on() {
        assert_eq!(decide("part", Ok(7), true), Some(7));
    }

    #[test]
    fn a_missing_part_skips() {
        assert_eq!(decide::<()>("part", Err(Error::new(ErrorKind::Unavailable, "no apt")), false), None);
    }

    #[test]
    #[should_panic(expected = "part: no apt")]
    fn a_missing_part_fails_a_strict_run() {
        decide::<()>("part", Err(Error::new(ErrorKind::Unavailable, "no apt")), true);
    }

    #[test]
    #[should_panic(expected = "part: broken")]
    fn a_broken_part_always_fails() {
        decide::<()>("part", Err(Error::new(ErrorKind::Failed, "broken")), false);
    }
}
