//! Each mutant is noticed: seeds are run until the checker speaks.

use crate::{Options, Report, run};
use mink_rt::with_mutant;

/// Seeds that a mutant may take before it counts as unnoticed.
const SEEDS_MAX: u64 = 200;

/// Runs seeds with a mutant until one has a violation: how many it took.
fn caught(name: &'static str) -> Option<(u64, Report)> {
    let options = if name.starts_with("group-") { super::WITH_GROUP } else { Options::default() };
    let first = std::env::var("MINK_SEED_FIRST").ok().and_then(|text| text.parse().ok()).unwrap_or(0_u64);
    (first..first + SEEDS_MAX).find_map(|seed| {
        let report = with_mutant(Some(name), || run(seed, options));
        (!report.violations.is_empty()).then_some((seed - first + 1, report))
    })
}

macro_rules! mutants {
    ($($test:ident: $name:literal),* $(,)?) => {
        $(#[test]
        fn $test() {
            let Some((seeds, report)) = caught($name) else {
                panic!("the mutant {} was not noticed in {SEEDS_MAX} seeds", $name);
            };
            println!("mutant {}: {seeds} seeds; {}", $name, report.violations.first().map_or("", String::as_str));
        })*
    };
}

mutants! {
    no_seal: "no-seal",
    seal_collected: "seal-collected",
    ack_out_of_order: "ack-out-of-order",
    ack_before_durable: "ack-before-durable",
    nonce_unchecked: "nonce-unchecked",
    retry_regroups: "retry-regroups",
    trim_before_commit: "trim-before-commit",
    no_grace: "no-grace",
    stale_trim: "stale-trim",
    producers_dropped: "producers-dropped",
    lease_ignored: "lease-ignored",
    lease_not_awaited: "lease-not-awaited",
    request_renamed: "request-renamed",
    double_compaction: "double-compaction",
    group_ack_before_durable: "group-ack-before-durable",
    group_generation_unchecked: "group-generation-unchecked",
    group_log_unread: "group-log-unread",
}
