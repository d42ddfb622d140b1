//! `cargo xtask fuzz`: builds the fuzz targets with coverage counters, and runs each under libFuzzer for a time.
//!
//! Lives on: a developer's machine with a C++ compiler.
//! Owns: a build folder of its own, where what a run has found lies for the next one, too.
//! Invariants: none.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// What makes the compiler count edges and tell of comparisons, as libFuzzer reads it.
const COVERAGE: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1";

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  cargo xtask fuzz --seconds 600\n  cargo xtask fuzz --target request --seconds 60"
)]
pub(crate) struct Options {
    /// Time for each target, in seconds
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u32,
    /// Targets at once
    #[arg(long, value_name = "N", default_value_t = 1)]
    jobs: usize,
    /// Only the targets whose name contains this text
    #[arg(long, value_name = "TEXT", default_value = "")]
    target: String,
    /// Where to build, and to keep what was found
    #[arg(long, value_name = "FOLDER", default_value = "target/guided")]
    folder: PathBuf,
}

pub(crate) fn run(options: &Options) -> Result<(), String> {
    let host = output(Command::new("rustc").arg("-vV"))?;
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).ok_or("rustc names no host")?;
    // With a target named, build scripts and macros are built without the counters.
    done(
        Command::new("cargo")
            .args([
                "build",
                "-p",
                "mink-fuzz",
                "--bin",
                "mink-fuzz-guided",
                "--features",
                "guided",
                "--target",
                host,
            ])
            .env("RUSTFLAGS", COVERAGE)
            .env("CARGO_TARGET_DIR", &options.folder),
    )?;
    // The plain program knows the targets and their seeds; it can't be linked with the counters.
    let plain = || {
        let mut command = Command::new("cargo");
        command.args(["run", "--quiet", "-p", "mink-fuzz", "--bin", "mink-fuzz", "--"]);
        command
    };
    let listed = output(plain().arg("--list"))?;
    let (corpus, seeds) = (options.folder.join("corpus"), options.folder.join("seeds"));
    done(plain().arg("--seeds").arg(&seeds))?;
    let program = options.folder.join(host).join("debug/mink-fuzz-guided");
    let left = Mutex::new(listed.lines().filter(|name| name.contains(&options.target)));
    let failed = Mutex::new(Vec::new());
    let next = || left.lock().ok().and_then(|mut left| left.next());
    let work = || {
        while let Some(name) = next() {
            let passed = one(&program, options, name, &corpus.join(name), &seeds.join(name));
            if let (Err(error), Ok(mut failed)) = (passed, failed.lock()) {
                failed.push(error);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..options.jobs.max(1) {
            scope.spawn(work);
        }
    });
    let failed = failed.into_inner().map_err(|error| error.to_string())?;
    if failed.is_empty() { Ok(()) } else { Err(failed.join("; ")) }
}

/// One target under libFuzzer, whose own lines go into a file: only its last ones, which sum up, are shown.
fn one(program: &Path, options: &Options, name: &str, corpus: &Path, seeds: &Path) -> Result<(), String> {
    let failed =
        |why: String| format!("{name}: {why}; its input and log lie in {}", options.folder.display());
    std::fs::create_dir_all(corpus).map_err(|error| failed(error.to_string()))?;
    let log = options.folder.join(format!("{name}.log"));
    let file = std::fs::File::create(&log).map_err(|error| failed(error.to_string()))?;
    let ended = Command::new(program)
        .env("MINK_FUZZ_TARGET", name)
        .args([format!("-max_total_time={}", options.seconds), "-print_final_stats=1".into()])
        .args(["-use_value_profile=1", "-max_len=65536", "-timeout=10", "-rss_limit_mb=1024"])
        .arg(format!("-artifact_prefix={}/{name}-", options.folder.display()))
        .args([corpus, seeds])
        .stdout(Stdio::null())
        .stderr(file)
        .status()
        .map_err(|error| failed(error.to_string()))?;
    let said = std::fs::read(&log).map_err(|error| failed(error.to_string()))?;
    let said = String::from_utf8_lossy(&said);
    let last =
        |what: &str| said.lines().rev().find(|line| line.contains(what)).unwrap_or_default().to_owned();
    println!("{name}: {}; {}", last("DONE"), last("number_of_executed_units"));
    if ended.success() { Ok(()) } else { Err(failed(ended.to_string())) }
}

fn output(command: &mut Command) -> Result<String, String> {
    let ended = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if !ended.status.success() {
        return Err(format!("{command:?}: {}: {}", ended.status, String::from_utf8_lossy(&ended.stderr)));
    }
    String::from_utf8(ended.stdout).map_err(|error| format!("{command:?}: {error}"))
}

fn done(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("{command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}")) }
}
