//! Which settings came from the environment or from the file, so that a refusal can say so: who is told that `--lease-ttl` is out of
//! range looks for it on a command line where it does not stand.
//!
//! Lives on: anywhere (pure).
use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use std::collections::BTreeMap;

/// Flags that were not typed, by name, and where their values stand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origins(BTreeMap<String, String>);

impl Origins {
    /// `typed` is the command line parsed without the file; of the file there are its name and its `--key=value`s.
    pub(crate) fn of(command: &Command, typed: &ArgMatches, file: Option<(&str, &[String])>) -> Origins {
        let from_file = |flag: &str| {
            let (name, flags) = file?;
            let mut keys = flags.iter().filter_map(|given| given.trim_start_matches('-').split_once('='));
            keys.any(|(key, _)| key == flag).then(|| format!("key {flag:?} of {name}"))
        };
        let mut origins = BTreeMap::new();
        for argument in command.get_arguments() {
            let Some(flag) = argument.get_long() else { continue };
            let place = match typed.value_source(argument.get_id().as_str()) {
                Some(ValueSource::CommandLine) => None,
                Some(ValueSource::EnvVariable) => {
                    let variable = argument.get_env().map(|name| name.to_string_lossy());
                    variable.map(|name| format!("the environment variable {name}"))
                }
                _ => from_file(flag),
            };
            origins.extend(place.map(|place| (flag.to_owned(), place)));
        }
        Origins(origins)
    }

    /// What to add to a message about these flags; nothing for those that were typed or left alone.
    pub(crate) fn tell(&self, flags: &[&str]) -> String {
        let told =
            flags.iter().filter_map(|flag| Some(format!(" (--{flag} is set by {})", self.0.get(*flag)?)));
        told.collect::<Vec<_>>().concat()
    }
}
