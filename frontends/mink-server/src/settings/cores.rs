//! How many cores a node drives, and with what.
//!
//! Lives on: anywhere.
use super::{Settings, SettingsError};
use mink_rt::{Backend, shards_by_default};
use std::num::NonZeroUsize;

/// Most shards for each core.
const SHARDS_PER_CORE_MAX: usize = 4;
/// Most shards of a machine with few cores.
const SHARDS_MAX_LEAST: usize = 64;

impl Settings {
    /// Whether `--runtime uring` may start here, or why it may not: the same question that `auto` asks.
    ///
    /// # Errors
    /// With the remedy.
    pub fn probe_uring() -> Result<(), mink_rt::Error> {
        Backend::Uring.probe()
    }
}

/// Each takes a thread, lanes and a part of the memory: more than a few for a core only cost (I20).
pub(super) fn shards(asked: Option<NonZeroUsize>) -> Result<NonZeroUsize, SettingsError> {
    let cores = shards_by_default();
    let most = cores.get().saturating_mul(SHARDS_PER_CORE_MAX).max(SHARDS_MAX_LEAST);
    match asked {
        None => Ok(cores),
        Some(asked) if asked.get() <= most => Ok(asked),
        Some(asked) => Err(SettingsError::Shards { asked: asked.get(), most }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i20_shards_have_a_bound_that_is_told() {
        let asked = |count| shards(NonZeroUsize::new(count));
        assert_eq!(asked(SHARDS_MAX_LEAST).expect("on any machine").get(), SHARDS_MAX_LEAST);
        assert_eq!(shards(None).expect("the default"), shards_by_default());
        let words = asked(1_000_000).expect_err("too many").to_string();
        assert!(words.contains("--shards 1000000") && words.contains("4 for each core, or 64"), "{words}");
    }
}
