//! Compares what the hot paths take, in instructions and allocations, with what `counts.tsv` says.
//!
//! Lives on: a developer's machine and CI (`cargo xtask test --only counts`); runs itself under callgrind.
//! Invariants: never a time: counts are the same however busy the machine is. A case that the table lacks, and one that takes less than
//! it says, fail too: a table that is behind would let the next step back pass.

use clap::Parser;
use mink_bench::allocations::Counting;
use mink_bench::batch::SIZES;
use mink_bench::meter::Meter;
use mink_bench::{light, plumbing, porcelain};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How far a count may be from the table, in parts of a thousand. Repeated runs of one build differ by less than one; another minor version of
/// the compiler, a dependency's patch or feature make it inline otherwise, which has moved a case by 44.
const TOLERANCE: u64 = 60;

/// The same for an incremental build, in which the compiler inlines otherwise than in the one that CI makes and the table is of.
const TOLERANCE_INCREMENTAL: u64 = 200;

/// Counted in hundredths of an allocation, since what grows now and then is shared by many operations; so much is no difference.
const ALLOCATIONS_SLACK: u64 = 5;

/// What the C library may use of the processor, so that one machine counts as another: what every x86-64 server of the last ten years has.
/// A copy by `rep movsb` would be counted byte by byte.
const TUNABLES: &str = "glibc.cpu.hwcaps=-ERMS,-FSRM,-AVX512F,-AVX512VL,-AVX512BW,-AVX512_VBMI2";

#[derive(Debug, Parser)]
#[command(about = "Counts what the hot paths take", disable_version_flag = true)]
struct Options {
    /// Writes what this build takes into the table, instead of comparing
    #[arg(long)]
    bless: bool,
    /// Only the cases whose name contains this text
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Keeps callgrind's files here, one for each case, for callgrind_annotate
    #[arg(long, value_name = "FOLDER")]
    keep: Option<PathBuf>,
    /// Runs the cases (for the process under callgrind)
    #[arg(long, hide = true)]
    measure: bool,
}

/// What an operation of a case takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Count {
    instructions: u64,
    /// Hundredths.
    allocations: u64,
}

fn main() -> ExitCode {
    let options = Options::parse();
    if options.measure {
        return measure(options.only);
    }
    if !cfg!(target_arch = "x86_64") {
        return skip("counts are pinned for x86-64");
    }
    if Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_err() {
        return skip("valgrind is not installed (apt-get install valgrind)");
    }
    match check(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("counts: {why}");
            ExitCode::FAILURE
        }
    }
}

fn skip(why: &str) -> ExitCode {
    let strict = std::env::var_os("MINK_TEST_STRICT").is_some_and(|value| value == "1");
    println!("{}: counts: {why}", if strict { "missing" } else { "skipped" });
    if strict { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// All cases, in a fixed order.
fn measure(only: Option<String>) -> ExitCode {
    let mut meter = Meter::new(only);
    for (size, bytes) in SIZES {
        meter.case(&format!("light/copy/{size}"), 16, || light::copy(bytes));
        meter.case(&format!("light/crc32c/{size}"), 16, || light::checksum(bytes));
        meter.case(&format!("plumbing/check/{size}"), 16, || plumbing::check(bytes));
    }
    meter.case("plumbing/offset-and-epoch", 64, || plumbing::place(16 << 10));
    meter.case("plumbing/append-time/128KiB", 64, || plumbing::stamp(128 << 10));
    meter.case("plumbing/tablet-append", 256, plumbing::tablet);
    for partitions in [1, 64] {
        let name = |what: &str| format!("plumbing/{what}/x{partitions}");
        meter.case(&name("decode-produce"), 16, || plumbing::decode_produce(partitions, 1 << 10));
        meter.case(&name("encode-produce"), 16, || plumbing::encode_produce(partitions));
        meter.case(&name("decode-fetch"), 16, || plumbing::decode_fetch(partitions));
        meter.case(&name("encode-fetch-of-8"), 16, || plumbing::encode_fetch(partitions, 8, 1 << 10));
    }
    let meter = porcelain::flushed(porcelain::nodes(porcelain::wals(porcelain::shards(meter))));
    if meter.print(std::io::stdout().lock()).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn check(options: &Options) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let dumps = options.keep.as_deref().unwrap_or(folder.path());
    std::fs::create_dir_all(dumps).map_err(|error| format!("{}: {error}", dumps.display()))?;
    let now = count(options, dumps)?;
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("counts.tsv");
    let text = std::fs::read_to_string(&table).map_err(|error| format!("{}: {error}", table.display()))?;
    let pinned = parse(&text)?;
    let wanted = |name: &str| options.only.as_ref().is_none_or(|text| name.contains(text.as_str()));
    println!("{:<40} {:>26}  {:>7}  {:>18}", "an operation of", "instructions", "", "allocations");
    let names = pinned.keys().filter(|name| wanted(name)).chain(now.keys());
    let mut off = 0;
    for name in names.collect::<std::collections::BTreeSet<_>>() {
        off += usize::from(!compare(name, pinned.get(name), now.get(name)));
    }
    if options.bless {
        let mut all = pinned;
        all.retain(|name, _| !wanted(name));
        all.extend(now);
        std::fs::write(&table, write(&text, &all)).map_err(|error| error.to_string())?;
        println!("{off} counts changed in {}", table.display());
        return Ok(());
    }
    if off == 0 {
        return Ok(());
    }
    Err(format!(
        "{off} counts are more than {}.{} % away from {}. Where a case spends it: cargo test --workspace --test counts -- --only CASE \
         --keep FOLDER, then callgrind_annotate. If it is meant so, accept it: CARGO_INCREMENTAL=0 cargo test --workspace --test counts \
         -- --bless",
        tolerance() / 10,
        tolerance() % 10,
        table.display()
    ))
}

/// Runs all cases under callgrind.
fn tolerance() -> u64 {
    if option_env!("CARGO_INCREMENTAL") == Some("0") { TOLERANCE } else { TOLERANCE_INCREMENTAL }
}

fn count(options: &Options, dumps: &Path) -> Result<BTreeMap<String, Count>, String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut valgrind = Command::new("valgrind");
    valgrind
        // Each file names its functions in full: one alone would lack what the ones before it have named.
        .args(["--tool=callgrind", "--instr-atstart=no", "--compress-strings=no", "--quiet"])
        .arg(format!("--callgrind-out-file={}", dumps.join("out").display()))
        .arg(this)
        .arg("--measure")
        .env("GLIBC_TUNABLES", TUNABLES)
        .stderr(Stdio::inherit());
    if let Some(only) = &options.only {
        valgrind.args(["--only", only]);
    }
    let ran = valgrind.output().map_err(|error| format!("valgrind: {error}"))?;
    if !ran.status.success() {
        return Err(format!("valgrind: {}", ran.status));
    }
    let instructions = totals(dumps)?;
    let mut counts = BTreeMap::new();
    for line in String::from_utf8_lossy(&ran.stdout).lines() {
        let [name, operations, allocations] = line.split('\t').collect::<Vec<_>>()[..] else {
            return Err(format!("not a line of a case: {line}"));
        };
        let [operations, allocations] =
            [operations, allocations].map(|text| text.parse::<u64>().unwrap_or(0));
        let total = instructions.get(name).ok_or_else(|| format!("callgrind wrote no counts of {name}"))?;
        let count = Count {
            instructions: total / operations.max(1),
            allocations: 100 * allocations / operations.max(1),
        };
        counts.insert(name.to_owned(), count);
    }
    if counts.is_empty() { Err("no case of that name".into()) } else { Ok(counts) }
}

/// Instructions by the name of the dump.
fn totals(dumps: &Path) -> Result<BTreeMap<String, u64>, String> {
    const NAME: &str = "desc: Trigger: Client Request: ";
    let mut totals = BTreeMap::new();
    for entry in std::fs::read_dir(dumps).map_err(|error| error.to_string())? {
        let path = entry.map_err(|error| error.to_string())?.path();
        // Names of functions are whatever a compiler makes them.
        let text = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let text = String::from_utf8_lossy(&text);
        let name = text.lines().find_map(|line| line.strip_prefix(NAME));
        // Not its `summary`, which counts from the dump before and not from where counting began.
        let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
        if let (Some(name), Some(total)) = (name, total) {
            totals.insert(name.trim().to_owned(), total.trim().parse().unwrap_or(0));
        }
    }
    Ok(totals)
}

/// Prints a case; whether it is as the table has it.
fn compare(name: &str, pinned: Option<&Count>, now: Option<&Count>) -> bool {
    let instructions =
        |count: Option<&Count>| count.map_or_else(|| "-".into(), |c| c.instructions.to_string());
    let allocations = |count: Option<&Count>| count.map_or_else(|| "-".into(), |c| hundredths(c.allocations));
    let same = match (pinned, now) {
        (Some(pinned), Some(now)) => {
            is_close(pinned.instructions, now.instructions, 0)
                && is_close(pinned.allocations, now.allocations, ALLOCATIONS_SLACK)
        }
        _ => false,
    };
    let change = match (pinned, now) {
        (Some(pinned), Some(now)) => per_mille(pinned.instructions, now.instructions),
        _ => String::new(),
    };
    println!(
        "{name:<40} {:>12} {:>13}  {change:>7}  {:>8} {:>9}{}",
        instructions(pinned),
        instructions(now),
        allocations(pinned),
        allocations(now),
        if same { "" } else { "  <-- not as pinned" }
    );
    same
}

fn is_close(pinned: u64, now: u64, slack: u64) -> bool {
    pinned.abs_diff(now) <= (pinned * tolerance() / 1000).max(slack)
}

fn per_mille(pinned: u64, now: u64) -> String {
    let parts = pinned.abs_diff(now) * 1000 / pinned.max(1);
    let sign = if now < pinned { '-' } else { '+' };
    format!("{sign}{}.{}%", parts / 10, parts % 10)
}

fn hundredths(count: u64) -> String {
    format!("{}.{:02}", count / 100, count % 100)
}

fn parse(text: &str) -> Result<BTreeMap<String, Count>, String> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines
        .map(|line| {
            let bad = || format!("counts.tsv: not a case, instructions and allocations: {line}");
            let [name, instructions, allocations] = line.split('\t').collect::<Vec<_>>()[..] else {
                return Err(bad());
            };
            let (whole, part) = allocations.split_once('.').ok_or_else(bad)?;
            let number = |text: &str| text.parse::<u64>().map_err(|_| bad());
            let count = Count {
                instructions: number(instructions)?,
                allocations: 100 * number(whole)? + number(part)?,
            };
            Ok((name.to_owned(), count))
        })
        .collect()
}

/// The table anew, its head kept.
fn write(text: &str, counts: &BTreeMap<String, Count>) -> String {
    let head = text.lines().filter(|line| line.starts_with('#')).map(|line| format!("{line}\n"));
    let lines = counts
        .iter()
        .map(|(name, count)| format!("{name}\t{}\t{}\n", count.instructions, hundredths(count.allocations)));
    head.chain(lines).collect()
}
