//! Searches scopes of the model by hand: `cargo run --release -p mink-model -- large`.
//!
//! Lives on: a developer's machine.
use std::process::ExitCode;

use mink_model::{Config, Expect, LARGE, MET, Options, Report, SMALL, Scope, mutants, search};

const USAGE: &str = "\
mink-model SCOPE [key=value ...]   searches one scope; `list` lists them
mink-model small | large           searches all of these
mink-model mutants                 shows what becomes of each mutant
keys: numbers objects offsets epochs in_flight tasks incarnations buckets release leave, and producer both resurrect adopt rewrite
collect strays tidy probe coordinator full (0 or 1); limit=STATES; drive=N lets every live node finish from each Nth state";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((what, settings)) = arguments.split_first() else {
        println!("{USAGE}");
        return ExitCode::FAILURE;
    };
    if what == "mutants" {
        return if try_mutants() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    let scopes: Vec<&Scope> = match what.as_str() {
        "small" => SMALL.iter().collect(),
        "large" => LARGE.iter().collect(),
        name => SMALL.iter().chain(LARGE).filter(|scope| scope.name == name).collect(),
    };
    if scopes.is_empty() {
        SMALL.iter().chain(LARGE).for_each(|scope| println!("{:<11} {}", scope.name, scope.about));
        return ExitCode::FAILURE;
    }
    let mut whole = true;
    for scope in scopes {
        let (mut config, mut options) =
            (scope.config, Options { traces: true, progress: true, ..Options::default() });
        for setting in settings {
            if let Err(what) = set(&mut config, &mut options, setting) {
                eprintln!("{setting}: {what}");
                return ExitCode::FAILURE;
            }
        }
        println!("{}: {}", scope.name, scope.about);
        let report = search(&config, options);
        print(&report);
        whole &= report.found.is_none();
    }
    if whole { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn print(r: &Report) {
    let end = if r.complete { "all of them" } else { "cut off at the limit" };
    println!(
        "  {:>12} states ({end}), {} steps, depth {}, {} ends, {:.0} s",
        r.states, r.steps, r.depth, r.ends, r.seconds
    );
    println!("  {:>12} metadata states, {} transitions: {:?}", r.metadata.0, r.metadata.1, r.judged);
    if r.driven > 0 {
        println!("  {:>12} states from which every live node was let finish", r.driven);
    }
    for (what, count) in MET.iter().zip(r.met).filter(|(_, count)| *count > 0) {
        println!("  {count:>12} states: {what}");
    }
    if let Some(found) = &r.found {
        println!("  BROKEN: {}", found.what);
        for (at, step) in found.trace.iter().enumerate() {
            println!("  {:3}. {step}", at + 1);
        }
    }
}

/// Whether each did as it should.
fn try_mutants() -> bool {
    let mut all = true;
    for trial in mutants() {
        let r = search(&trial.config, Options { traces: true, ..Options::default() });
        let (states, depth, seconds) = (r.states, r.depth, r.seconds);
        let what = match (&r.found, trial.expect) {
            (Some(found), Expect::Caught) => found.what,
            (None, Expect::HeldByApply { .. }) => "held: apply refuses it",
            (None, Expect::Needless(why)) => why,
            _ => {
                all = false;
                "NOT AS EXPECTED"
            }
        };
        println!(
            "{:<19} {states:>8} states, depth {depth:>2}, {seconds:.2} s: {what}",
            format!("{:?}", trial.mutant)
        );
    }
    all
}

fn set(config: &mut Config, options: &mut Options, setting: &str) -> Result<(), &'static str> {
    let (key, value) = setting.split_once('=').ok_or("a setting is key=value")?;
    let number = || value.parse::<usize>().map_err(|_| "not a number");
    let small = || value.parse::<u8>().map_err(|_| "not a small number");
    let yes = || Ok(small()? == 1);
    let three = || {
        let all: Result<Vec<u8>, _> = value.split(',').map(str::parse).collect();
        <[u8; 3]>::try_from(all.map_err(|_| "not small numbers")?).map_err(|_| "not three numbers")
    };
    match key {
        "numbers" => config.numbers = three()?,
        "objects" => config.objects = three()?,
        "offsets" => config.offsets = small()?,
        "epochs" => config.epochs = small()?,
        "in_flight" => config.in_flight = number()?,
        "tasks" => config.tasks = number()?,
        "incarnations" => config.incarnations = number()?,
        "buckets" => config.buckets = number()?,
        "release" => config.release = number()?,
        "leave" => config.leave = number()?,
        "producer" => config.producer = yes()?,
        "both" => config.both = yes()?,
        "resurrect" => config.resurrect = yes()?,
        "adopt" => config.adopt = yes()?,
        "rewrite" => config.rewrite = yes()?,
        "collect" => config.collect = yes()?,
        "strays" => config.strays = yes()?,
        "tidy" => config.tidy = yes()?,
        "probe" => config.probe = yes()?,
        "coordinator" => config.coordinator = yes()?,
        "full" => config.full = yes()?,
        "limit" => options.limit = number()?,
        "drive" => options.drive = number()? as u64,
        _ => return Err("no such key"),
    }
    Ok(())
}
