//! How many files the process may have open: as many as the system lets it ask for.
//!
//! Lives on: the main thread, before anything is opened.
//! Owns: nothing.
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit to the hard one: many systems begin with 1,024 for programs that use `select`, of which this is none.
pub(crate) fn raise_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return;
    }
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        tracing::info!(%error, current, "the limit of open files stays as it is");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i20_the_soft_limit_becomes_the_hard_one() {
        let before = getrlimit(Resource::Nofile);
        raise_limit();
        let after = getrlimit(Resource::Nofile);
        assert_eq!((after.current, after.maximum), (before.maximum, before.maximum));
    }
}
