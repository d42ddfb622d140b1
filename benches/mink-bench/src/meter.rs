//! Runs cases and counts what they take.
//!
//! Lives on: one thread.
//! Invariants: what a case prepares, and its first operations, which fill caches and lists, are not counted.
use crate::{allocations, callgrind};
use std::hint::black_box;
use std::io::Write;

/// Operations before the counted ones.
const WARM_UP: u64 = 4;

/// What a case took.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Taken {
    pub name: String,
    pub operations: u64,
    pub allocations: u64,
}

/// Runs the cases that it is asked for.
#[derive(Debug, Default)]
pub struct Meter {
    only: Option<String>,
    taken: Vec<Taken>,
    began: u64,
}

impl Meter {
    /// Runs cases whose name contains `only`.
    #[must_use]
    pub fn new(only: Option<String>) -> Meter {
        Meter { only, ..Meter::default() }
    }

    /// Whether a case of this name is to run.
    #[must_use]
    pub fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|text| name.contains(text.as_str()))
    }

    /// Counts from here.
    pub fn begin(&mut self) {
        self.began = allocations::count();
        callgrind::begin();
    }

    /// Counts no more; `operations` were done.
    pub fn end(&mut self, name: &str, operations: u64) {
        let allocations = allocations::count() - self.began;
        callgrind::end(name);
        self.taken.push(Taken { name: name.to_owned(), operations, allocations });
    }

    /// Counts `operations` runs of what `prepare` gives.
    pub fn case<T, F: FnMut() -> T>(&mut self, name: &str, operations: u64, prepare: impl FnOnce() -> F) {
        if !self.wants(name) {
            return;
        }
        let mut operation = prepare();
        for _ in 0..WARM_UP {
            black_box(operation());
        }
        self.begin();
        for _ in 0..operations {
            black_box(operation());
        }
        self.end(name, operations);
    }

    /// What all took, a line each: name, operations, allocations.
    pub fn print(&self, mut out: impl Write) -> std::io::Result<()> {
        for Taken { name, operations, allocations } in &self.taken {
            writeln!(out, "{name}\t{operations}\t{allocations}")?;
        }
        Ok(())
    }
}
