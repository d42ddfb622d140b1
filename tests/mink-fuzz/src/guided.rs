//! The same targets under libFuzzer, which keeps the inputs that reach new code: built and started by `cargo xtask fuzz`.
//!
//! Lives on: a developer's machine; one target per process, named by `MINK_FUZZ_TARGET`.
//! Owns: nothing.
//! Invariants: as of `main.rs`; the input that ends it is written where libFuzzer's `-artifact_prefix` says.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mink_fuzz::{Capped, TARGETS, Target};
use std::sync::LazyLock;

#[global_allocator]
static ALLOCATOR: Capped = Capped;

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("MINK_FUZZ_TARGET").unwrap_or_default();
    let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
    let found = TARGETS.iter().find(|target| target.name == name);
    found.unwrap_or_else(|| panic!("MINK_FUZZ_TARGET names no target; there are {names:?}"))
});

fuzz_target!(|input: &[u8]| {
    TARGET.attempt(input.to_vec());
});
