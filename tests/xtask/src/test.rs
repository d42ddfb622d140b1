//! `cargo xtask test`: everything that CI checks, step by step, with the time each took.
//!
//! Lives on: a developer's machine and CI.
//! Invariants: the first step that fails ends the run with its name; a part that the machine cannot have is skipped by name, and
//! with `MINK_TEST_STRICT=1` a skip is a failure.

use std::process::Command;
use std::time::{Duration, Instant};

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Only the steps whose name contains this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
}

/// A step: its name and the command that carries it out.
struct Step {
    name: &'static str,
    program: &'static str,
    arguments: &'static [&'static str],
}

const STEPS: &[Step] = &[
    Step { name: "format", program: "cargo", arguments: &["fmt", "--all", "--check"] },
    Step {
        name: "lint",
        program: "cargo",
        arguments: &["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"],
    },
    Step { name: "build", program: "cargo", arguments: &["build", "--workspace", "--all-targets"] },
    Step { name: "parts", program: "tests/parts/install", arguments: &[] },
    // All packages at once, as in the build: another selection would give the libraries other features and build them anew.
    Step { name: "tests", program: "cargo", arguments: &["test", "--workspace", "--no-fail-fast"] },
];

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let started = Instant::now();
    let mut times = Vec::new();
    for step in STEPS {
        if options.only.as_ref().is_some_and(|text| !step.name.contains(text.as_str())) {
            continue;
        }
        println!("== {}: {} {}", step.name, step.program, step.arguments.join(" "));
        let began = Instant::now();
        let ended = Command::new(step.program).args(step.arguments).status();
        times.push((step.name, began.elapsed()));
        match ended {
            Ok(status) if status.success() => {}
            Ok(status) => return Err(failure(step.name, &status.to_string(), &times)),
            Err(error) => return Err(failure(step.name, &error.to_string(), &times)),
        }
    }
    report(&times);
    println!("all steps passed in {}", seconds(started.elapsed()));
    Ok(())
}

fn failure(step: &str, why: &str, times: &[(&str, Duration)]) -> String {
    report(times);
    format!("step '{step}' failed: {why}; run it alone with: cargo xtask test --only '{step}'")
}

fn report(times: &[(&str, Duration)]) {
    for (name, time) in times {
        println!("{:>9}  {name}", seconds(*time));
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
