//! Histories over many seeds, and that one seed is one history.

#[cfg(feature = "mutants")]
mod mutants;

use crate::{Options, Report, run};
use std::time::Duration;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs `seeds`, in threads of their own; the first report with a violation, if any.
fn first_violation(seeds: std::ops::Range<u64>, options: Options) -> (u64, Option<Report>) {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let next = std::sync::atomic::AtomicU64::new(seeds.start);
    let found = std::sync::Mutex::new(None::<Report>);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    if seed >= seeds.end || found.lock().unwrap().is_some() {
                        return;
                    }
                    let report = run(seed, options);
                    if !report.violations.is_empty() {
                        found.lock().unwrap().get_or_insert(report);
                    }
                }
            });
        }
    });
    let ran = next.into_inner().min(seeds.end) - seeds.start;
    (ran, found.into_inner().unwrap())
}

#[test]
fn i1_to_i7_i12_i14_i20_hold_over_many_seeds() {
    hold_over(100, Options::default());
}

#[test]
fn i18_holds_over_many_seeds_with_a_group() {
    hold_over(60, WITH_GROUP);
}

/// I1 to I7 for tables with columns: what is stored and read are batches of Arrow.
#[test]
fn i1_to_i7_hold_over_many_seeds_with_rows_of_arrow() {
    hold_over(40, WITH_ROWS);
}

/// With members of a group that come and go.
const WITH_GROUP: Options = Options { duration: Duration::from_secs(40), group: true, typed: false };

/// With tables that have columns.
const WITH_ROWS: Options = Options { duration: Duration::from_secs(40), group: false, typed: true };

fn hold_over(seeds: u64, options: Options) {
    let seeds = number("MINK_SEEDS").unwrap_or(seeds);
    let first = number("MINK_SEED_FIRST").unwrap_or(0);
    let began = std::time::Instant::now();
    let (ran, found) = first_violation(first..first + seeds, options);
    println!("{ran} seeds in {:.1} s", began.elapsed().as_secs_f64());
    if let Some(report) = found {
        panic!("{report}");
    }
}

#[test]
fn one_seed() {
    let _report = one(Options::default());
}

#[test]
fn one_seed_with_a_group() {
    let _report = one(WITH_GROUP);
}

#[test]
fn one_seed_with_rows() {
    let report = one(WITH_ROWS);
    assert!(report.counts.of_rows > 0, "no table has columns: {report}");
}

fn one(options: Options) -> Report {
    let seed = number("MINK_SEED").unwrap_or(1);
    let report = run(seed, options);
    println!("{report}");
    println!("trace {:016x}, {} steps, {:?} virtual", report.trace, report.steps, report.elapsed);
    assert!(report.violations.is_empty(), "{report}");
    report
}

#[test]
fn the_same_seed_gives_the_same_history() {
    for seed in 1..4 {
        let (first, second) = (run(seed, Options::default()), run(seed, Options::default()));
        assert_eq!(first, second, "seed {seed}");
        assert_ne!(first.trace, run(seed + 100, Options::default()).trace);
        assert_eq!(run(seed, WITH_ROWS), run(seed, WITH_ROWS), "seed {seed}, with rows");
    }
}
