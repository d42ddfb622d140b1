//! The environment: variables that look like settings and are none, and where a value that cannot be taken came from.
//!
//! Lives on: anywhere.
//! Invariants: a misspelt setting is refused by name and never passed over, since the default in its place may be anything: another
//! directory, another store.
use clap::Command;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue};
use mink_types::closest;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};

const PREFIX: &str = "MINK_";

/// What Mink's own tests and build tasks are told by: not for the binary, but there when a test starts it. `MINK_FAILPOINTS` is for the
/// binary: tests make it stop, fail and die at chosen points.
const OF_TESTS: [&str; 10] = [
    mink_rt::FAIL_POINTS_VARIABLE,
    "MINK_BIN",
    "MINK_BLESS",
    "MINK_FLIGHTS_CSV",
    "MINK_GOLDEN",
    "MINK_GOLDEN_RECORD",
    "MINK_NODE_MODULES",
    "MINK_PARTS",
    "MINK_PARTS_OWNER",
    "MINK_PYTHON",
];
const PREFIXES_OF_TESTS: [&str; 7] =
    ["MINK_BENCH_", "MINK_E2E_", "MINK_RT_TEST_", "MINK_SEED", "MINK_SIM_", "MINK_TEST_", "MINK_TESTKIT_"];

/// A variable that is no setting.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the environment variable {name} is no setting of Mink; {remedy}")]
pub struct UnknownVariable {
    pub name: String,
    /// The setting that may have been meant.
    pub remedy: String,
}

/// Every environment variable that a command or one of its subcommands takes a value from.
pub fn known_variables(command: &Command) -> BTreeSet<String> {
    let own = command.get_arguments().filter_map(|argument| argument.get_env());
    let mut known: BTreeSet<String> = own.map(|name| name.to_string_lossy().into_owned()).collect();
    for sub in command.get_subcommands() {
        known.extend(known_variables(sub));
    }
    known
}

/// Refuses the first variable, in the order of names, that begins as settings do and is none.
pub fn check_environment(
    known: &BTreeSet<String>,
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> Result<(), UnknownVariable> {
    let named = variables.map(|(name, value)| (name.to_string_lossy().into_owned(), value));
    let ours: BTreeSet<(String, OsString)> = named.filter(|(name, _)| name.starts_with(PREFIX)).collect();
    let unknown = ours.into_iter().find(|(name, value)| {
        !known.contains(name) && !is_of_tests(name) && !is_of_orchestrator(name, value)
    });
    let Some((name, _)) = unknown else {
        return Ok(());
    };
    // Only what they do not have in common is compared.
    let known = known.iter().filter_map(|known| known.strip_prefix(PREFIX));
    let remedy = match closest(name.trim_start_matches(PREFIX), known) {
        Some(meant) => format!("did you mean {PREFIX}{meant}? Unset it if not"),
        None => {
            "unset it; settings are named as the flags of `mink serve --help`: --wal-linger is MINK_WAL_LINGER".into()
        }
    };
    Err(UnknownVariable { name, remedy })
}

fn is_of_tests(name: &str) -> bool {
    OF_TESTS.contains(&name) || PREFIXES_OF_TESTS.iter().any(|prefix| name.starts_with(prefix))
}

/// Kubernetes tells every container where the services of its namespace are, as Docker's links did: a service `mink` gives
/// `MINK_SERVICE_HOST`, `MINK_PORT=tcp://10.0.0.1:9092`, `MINK_PORT_9092_TCP_ADDR` and so on. Nobody has typed those.
fn is_of_orchestrator(name: &str, value: &OsStr) -> bool {
    let protocol = |rest: &str| {
        let mut parts = rest.split('_');
        let port = parts.next().is_some_and(|port| port.parse::<u16>().is_ok());
        port && parts.next().is_some_and(|protocol| ["TCP", "UDP", "SCTP"].contains(&protocol))
    };
    name.ends_with("_SERVICE_HOST")
        || name.contains("_SERVICE_PORT")
        || (name.ends_with("_PORT") && value.to_string_lossy().contains("://"))
        || name.rsplit_once("_PORT_").is_some_and(|(_, rest)| protocol(rest))
        || name.split_once("_PORT_").is_some_and(|(_, rest)| protocol(rest))
}

/// Adds to an error about a value where that value came from, unless it stands on the command line: in `file` (the file's name and its
/// `--key=value`s), or in the environment.
pub(crate) fn tell_place(
    mut error: clap::Error,
    command: &Command,
    arguments: &[OsString],
    file: Option<(&str, &[String])>,
) -> clap::Error {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let (Some(argument), Some(value)) = (text(ContextKind::InvalidArg), text(ContextKind::InvalidValue))
    else {
        return error;
    };
    let flag = argument.split_whitespace().next().unwrap_or_default();
    let joined = format!("{flag}={value}");
    if arguments.iter().any(|typed| *typed == *value || *typed == *joined) {
        return error;
    }
    let key = flag.trim_start_matches('-');
    let place = match file {
        Some((name, flags)) if flags.contains(&joined) => Some(format!("key {key:?} of {name}")),
        _ => variable_of(command, key, &value).map(|name| format!("the environment variable {name}")),
    };
    if let Some(place) = place {
        let tip = StyledStr::from(format!("the value comes from {place}"));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
    error
}

/// As [`tell_place`] for a command line that reads no file.
pub fn tell_variable(error: clap::Error, command: &Command, arguments: &[OsString]) -> clap::Error {
    tell_place(error, command, arguments, None)
}

/// The variable by which a flag of the command, or of a command below it, has got this value.
fn variable_of(command: &Command, flag: &str, value: &str) -> Option<String> {
    let own = command.get_arguments().filter(|argument| argument.get_long() == Some(flag));
    let mut own = own.filter_map(|argument| argument.get_env());
    let found = own.find(|name| std::env::var_os(name).is_some_and(|set| *set == *value));
    match found {
        Some(name) => Some(name.to_string_lossy().into_owned()),
        None => command.get_subcommands().find_map(|sub| variable_of(sub, flag, value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::ServeArgs;
    use clap::Args;

    fn check(name: &str, value: &str) -> Result<(), UnknownVariable> {
        let known = known_variables(&ServeArgs::augment_args(Command::new("serve")));
        check_environment(&known, [(name.into(), value.into())].into_iter())
    }

    #[test]
    fn a_misspelt_setting_is_refused_with_the_nearest_one() {
        for (name, meant) in [
            ("MINK_NODEID", "MINK_NODE_ID"),
            ("MINK_STORGE", "MINK_STORAGE"),
            ("MINK_KAFKA_LISTENER", "MINK_KAFKA_LISTEN"),
            ("MINK_DATADIR", "MINK_DATA_DIR"),
            ("MINK_CONNECTION_MAX", "MINK_CONNECTIONS_MAX"),
        ] {
            let words = check(name, "1").expect_err("no setting").to_string();
            assert!(words.contains(name) && words.contains(&format!("did you mean {meant}?")), "{words}");
        }
        let words = check("MINK_WHATEVER_ELSE", "1").expect_err("no setting").to_string();
        assert!(words.contains("mink serve --help") && !words.contains("did you mean"), "{words}");
        assert!(check("MINK_PORT", "9092").is_err(), "typed by a person");
    }

    #[test]
    fn settings_tests_and_what_orchestrators_set_are_left_alone() {
        for (name, value) in [
            ("MINK_STORAGE", "memory://"),
            ("MINK_PRODUCER_EXPIRY", "1h"),
            ("MINK_FAILPOINTS", "x"),
            ("MINK_TEST_STRICT", "1"),
            ("MINK_E2E_ROUNDS", "1"),
            ("MINK_SEEDS", "600"),
            ("MINK_SERVICE_HOST", "10.0.0.1"),
            ("MINK_SERVICE_PORT", "9092"),
            ("MINK_SERVICE_PORT_KAFKA", "9092"),
            ("MINK_PORT", "tcp://10.0.0.1:9092"),
            ("MINK_PORT_9092_TCP", "tcp://10.0.0.1:9092"),
            ("MINK_KAFKA_PORT_9092_TCP_ADDR", "10.0.0.1"),
            ("MINK_KAFKA_PORT_9092_TCP_PORT", "9092"),
            ("MINKOWSKI", "1"),
            ("PATH", "/bin"),
        ] {
            assert_eq!(check(name, value), Ok(()), "{name}");
        }
    }
}
