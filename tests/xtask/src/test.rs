//! `cargo xtask test`: everything that CI checks, step by step, with the time each took.
//!
//! Lives on: a developer's machine and CI.
//! Invariants: the first step that fails ends the run with its name; a part that the machine cannot have is skipped by name, and
//! with `MINK_TEST_STRICT=1` a skip is a failure.

use mink_rt::Backend;
use mink_testkit::ports::PortBlock;
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
    needs: Needs,
}

/// What a step's tests find when they begin.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    /// A real S3 server, named by variables.
    S3,
    /// That nodes run on epoll, which they do not by themselves where this process may have an io_uring.
    Epoll,
}

const STEPS: &[Step] = &[
    Step { name: "format", program: "cargo", arguments: &["fmt", "--all", "--check"], needs: Needs::Nothing },
    Step {
        name: "lint",
        program: "cargo",
        arguments: &["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"],
        needs: Needs::Nothing,
    },
    Step {
        name: "build",
        program: "cargo",
        arguments: &["build", "--workspace", "--all-targets"],
        needs: Needs::Nothing,
    },
    Step { name: "parts", program: "tests/parts/install", arguments: &[], needs: Needs::Nothing },
    // All packages at once, as in the build: another selection would give the libraries other features and build them anew.
    Step {
        name: "tests",
        program: "cargo",
        arguments: &["test", "--workspace", "--no-fail-fast"],
        needs: Needs::S3,
    },
    // The paths on which a core waits, is woken or dies, once more on the other backend. By hand: all of mink-e2e with that variable.
    Step {
        name: "epoll",
        program: "cargo",
        arguments: &[
            "test",
            "--workspace",
            "--lib",
            "--quiet",
            "--",
            "kill9::",
            "groups::",
            "clients::",
            "takeover::",
        ],
        needs: Needs::Epoll,
    },
    // Instructions and allocations of the hot paths, under callgrind; never times.
    Step {
        name: "counts",
        program: "cargo",
        arguments: &["test", "--workspace", "--test", "counts"],
        needs: Needs::Nothing,
    },
    // Five minutes for all targets together.
    Step {
        name: "fuzz",
        program: "cargo",
        arguments: &["run", "--quiet", "-p", "mink-fuzz", "--", "--seconds", "20"],
        needs: Needs::Nothing,
    },
    // Another feature of the lowest crates: what lies above them is built once more, for this step alone.
    Step {
        name: "mutants",
        program: "cargo",
        arguments: &["test", "-p", "mink-sim", "--features", "mutants", "--lib", "mutants"],
        needs: Needs::Nothing,
    },
];

/// The S3 server that the store's conformance tests use. Stopped, with its folder, when this process is gone.
fn start_s3(ports: &PortBlock) -> Result<Vec<(&'static str, String)>, String> {
    let folder = std::env::temp_dir().join(format!("mink-xtask-{}", std::process::id()));
    let port = ports.port(0);
    let started = Command::new("tests/parts/seaweedfs-up")
        .arg(&folder)
        .arg(port.to_string())
        .env("MINK_PARTS_OWNER", std::process::id().to_string())
        .status()
        .map_err(|error| error.to_string())?;
    match started.code() {
        Some(0) => {}
        // It has said what it lacks; the tests that need it skip by name.
        Some(SKIPPED) => return Ok(Vec::new()),
        _ => return Err(format!("the S3 server did not start: {started}")),
    }
    let endpoint = format!("http://127.0.0.1:{port}");
    let ready = Command::new("tests/parts/s3-tool").args([&endpoint, "ready", "conformance"]).status();
    match ready {
        Ok(status) if status.success() => Ok(vec![
            ("MINK_TEST_S3_URL", "s3://conformance/tests".into()),
            ("AWS_ENDPOINT_URL", endpoint),
            ("AWS_ACCESS_KEY_ID", "ci".into()),
            ("AWS_SECRET_ACCESS_KEY", "ci-secret-key".into()),
            ("AWS_REGION", "us-east-1".into()),
        ]),
        other => Err(format!("the S3 server is not ready: {other:?}")),
    }
}

/// Exit code of a part that this machine cannot have.
const SKIPPED: i32 = 77;

/// What `cargo run` tells this process of its own package. Build scripts of libraries watch such variables: handed on, they would make
/// cargo build those, and all above them, once for `cargo xtask` and once for everything else.
fn of_this_package() -> impl Iterator<Item = std::ffi::OsString> {
    let of_package = |name: &std::ffi::OsString| {
        let name = name.to_string_lossy();
        name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
    };
    std::env::vars_os().map(|(name, _)| name).filter(of_package)
}

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let started = Instant::now();
    let mut times = Vec::new();
    // The S3 server's, until all steps are done.
    let ports = PortBlock::reserve().map_err(|error| error.to_string())?;
    for step in STEPS {
        if options.only.as_ref().is_some_and(|text| !step.name.contains(text.as_str())) {
            continue;
        }
        let variables = match step.needs {
            Needs::Nothing => Vec::new(),
            Needs::S3 => start_s3(&ports).map_err(|error| failure(step.name, &error, &times))?,
            Needs::Epoll => match Backend::Uring.probe() {
                Ok(()) => vec![("MINK_RUNTIME", Backend::Epoll.name().into())],
                // Then they have run on it already.
                Err(error) => {
                    skip(step.name, &error).map_err(|error| failure(step.name, &error, &times))?;
                    continue;
                }
            },
        };
        println!("== {}: {} {}", step.name, step.program, step.arguments.join(" "));
        let began = Instant::now();
        let mut command = Command::new(step.program);
        for name in of_this_package() {
            command.env_remove(name);
        }
        let ended = command.args(step.arguments).envs(variables).status();
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

/// Tells that a step is left out on this machine.
///
/// # Errors
/// Under `MINK_TEST_STRICT=1`.
fn skip(step: &str, why: &dyn std::fmt::Display) -> Result<(), String> {
    if std::env::var_os("MINK_TEST_STRICT").is_some_and(|value| value == "1") {
        return Err(format!("cannot be had here: {why}"));
    }
    println!("skip {step}: {why}");
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
