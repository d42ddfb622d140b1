//! Seams where a test has the code do the wrong thing, to see that the checkers notice.
//! Lives on: anywhere. Without the feature `mutants` there is nothing here but a constant `false`.
//! Owns: which mutant this thread has chosen.
//! Invariants: no release build has the feature; a mutant is chosen for one thread and one piece of work at a time.

#[cfg(all(feature = "mutants", not(debug_assertions)))]
compile_error!(
    "the feature `mutants` makes Mink lose data on purpose: it is for tests alone, never for a release build"
);

#[cfg(feature = "mutants")]
std::thread_local! {
    static CHOSEN: std::cell::Cell<Option<&'static str>> = const { std::cell::Cell::new(None) };
}

/// Whether the mutant `name` is chosen on this thread. All of a simulation runs on one thread.
#[cfg(feature = "mutants")]
#[must_use]
pub fn mutant(name: &str) -> bool {
    CHOSEN.get() == Some(name)
}

/// Whether the mutant `name` is chosen: never, without the feature `mutants`.
#[cfg(not(feature = "mutants"))]
#[must_use]
#[inline]
pub const fn mutant(_name: &str) -> bool {
    false
}

/// Runs `work` with the mutant `name`, or with none, chosen on this thread.
#[cfg(feature = "mutants")]
pub fn with_mutant<T>(name: Option<&'static str>, work: impl FnOnce() -> T) -> T {
    struct Restore(Option<&'static str>);
    impl Drop for Restore {
        fn drop(&mut self) {
            CHOSEN.set(self.0);
        }
    }
    let _restore = Restore(CHOSEN.replace(name));
    work()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(not(feature = "mutants"))]
    #[test]
    fn without_the_feature_no_mutant_exists() {
        const NONE: bool = mutant("no-seal");
        const { assert!(!NONE) };
    }

    #[cfg(feature = "mutants")]
    #[test]
    fn a_mutant_is_chosen_for_one_thread_and_one_piece_of_work() {
        assert!(!mutant("a"));
        with_mutant(Some("a"), || {
            assert!(mutant("a") && !mutant("b"));
            assert!(!std::thread::spawn(|| mutant("a")).join().unwrap());
            with_mutant(None, || assert!(!mutant("a")));
            assert!(mutant("a"));
        });
        assert!(!mutant("a"));
    }
}
