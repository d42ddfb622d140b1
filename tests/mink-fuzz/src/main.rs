//! Gives the decoders of outside bytes inputs that are almost sound, and watches what they hold in memory.
//!
//! Lives on: a developer's machine and CI; one thread per process.
//! Owns: nothing.
//! Invariants: the same `--seed` gives the same inputs. It needs the compiler alone: there is no feedback of coverage, so seeds and
//! mutations that know about lengths and checksums take its place (`guided.rs` has that feedback). A panic or an allocation beyond the
//! budget ends it with the target's name; with `--keep FILE` the input that did it lies there.

mod mutate;

use clap::Parser;
use mink_fuzz::{Capped, TARGETS, Target, seeds};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: Capped = Capped;

/// Longest input.
const INPUT_BYTES_MAX: usize = 256 << 10;
/// The clock is looked at after so many inputs.
const BETWEEN_LOOKS: u32 = 64;
/// An input descends from its seed by so many generations at most.
const GENERATIONS: u32 = 4;

#[derive(Debug, Parser)]
#[command(about = "Fuzzes the decoders of outside bytes", disable_version_flag = true)]
struct Options {
    /// Time for each target, in seconds
    #[arg(long, value_name = "N", default_value_t = 20)]
    seconds: u64,
    /// Only the targets whose name contains this text
    #[arg(long, value_name = "TEXT")]
    target: Option<String>,
    /// The same seed gives the same inputs
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Writes each input here before it is tried
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,
    /// Tries the input of this file alone
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// Prints the names of all targets, a line each
    #[arg(long)]
    list: bool,
    /// Writes the seeds of each target into a folder of its name below this one
    #[arg(long, value_name = "FOLDER")]
    seeds: Option<PathBuf>,
}

/// What was tried of a target.
#[derive(Default)]
struct Tried {
    inputs: u64,
    held_most: usize,
    took_most: Duration,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let chosen: Vec<&Target> = TARGETS
        .iter()
        .filter(|target| options.target.as_ref().is_none_or(|text| target.name.contains(text.as_str())))
        .collect();
    if chosen.is_empty() {
        eprintln!(
            "no such target; there are {:?}",
            TARGETS.iter().map(|target| target.name).collect::<Vec<_>>()
        );
        return ExitCode::FAILURE;
    }
    for target in chosen {
        if options.list {
            println!("{}", target.name);
            continue;
        }
        if let Some(folder) = &options.seeds {
            if let Err(error) = write_seeds(target, &folder.join(target.name)) {
                eprintln!("{}: {}: {error}", target.name, folder.display());
                return ExitCode::FAILURE;
            }
            continue;
        }
        println!("{}: seed {}", target.name, options.seed);
        match fuzz(target, &options) {
            Ok(tried) => println!(
                "{}: {} inputs, at most {} bytes held and {:?} for one",
                target.name, tried.inputs, tried.held_most, tried.took_most
            ),
            Err(error) => {
                eprintln!("{}: {error}", target.name);
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

fn write_seeds(target: &Target, folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    seeds(target.name)
        .iter()
        .enumerate()
        .try_for_each(|(number, seed)| std::fs::write(folder.join(format!("seed-{number}")), seed))
}

fn fuzz(target: &Target, options: &Options) -> std::io::Result<Tried> {
    let mut tried = Tried::default();
    if let Some(path) = &options.replay {
        attempt(target, std::fs::read(path)?, &mut tried);
        return Ok(tried);
    }
    let seeds = seeds(target.name);
    for seed in &seeds {
        attempt(target, seed.clone(), &mut tried);
    }
    let mut random = ChaCha8Rng::seed_from_u64(options.seed);
    let ends = Instant::now() + Duration::from_secs(options.seconds);
    while Instant::now() < ends {
        for _ in 0..BETWEEN_LOOKS {
            let pick = |random: &mut ChaCha8Rng| seeds.get(random.random_range(0..seeds.len()));
            let (seed, other) = (pick(&mut random), pick(&mut random));
            let mut input = seed.cloned().unwrap_or_default();
            for _ in 0..random.random_range(1..=GENERATIONS) {
                let other = other.map(Vec::as_slice).unwrap_or_default();
                mutate::mutate(&mut random, &mut input, other, target.fixed, INPUT_BYTES_MAX);
                if let Some(path) = &options.keep {
                    std::fs::write(path, &input)?;
                }
                attempt(target, input.clone(), &mut tried);
            }
        }
    }
    Ok(tried)
}

fn attempt(target: &Target, input: Vec<u8>, tried: &mut Tried) {
    let began = Instant::now();
    let held = target.attempt(input);
    tried.inputs += 1;
    tried.held_most = tried.held_most.max(held);
    tried.took_most = tried.took_most.max(began.elapsed());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k_28_every_target_takes_its_seeds_and_a_thousand_mutations_of_them() {
        for target in TARGETS {
            let seeds = seeds(target.name);
            assert!(seeds.iter().any(|seed| !seed.is_empty()), "{} has no seeds", target.name);
            let (mut random, mut tried) = (ChaCha8Rng::seed_from_u64(7), Tried::default());
            for seed in seeds.iter().cycle().take(1_000) {
                let mut input = seed.clone();
                mutate::mutate(&mut random, &mut input, seed, target.fixed, INPUT_BYTES_MAX);
                attempt(target, input, &mut tried);
            }
            assert_eq!(tried.inputs, 1_000);
        }
    }
}
