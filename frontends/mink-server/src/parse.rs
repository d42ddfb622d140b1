//! From what was typed, the environment and the file to the flags of `mink serve`.
//!
//! Lives on: anywhere.
//! Invariants: what is typed goes before the file; an error about a value names the place that it came from.
use crate::args::ServeArgs;
use crate::environment::tell_place;
use crate::file;
use crate::origins::Origins;
use crate::settings::SettingsError;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use std::collections::BTreeSet;
use std::ffi::OsString;

/// Parses the flags of `mink serve` (without the words `mink serve`), with the file they name.
pub fn parse(arguments: &[OsString]) -> Result<ServeArgs, SettingsError> {
    let typed = command().try_get_matches_from(arguments);
    let typed = typed.map_err(|error| tell_place(error, &command(), arguments, None))?;
    let mut first = ServeArgs::from_arg_matches(&typed)?;
    let Some(path) = &first.config else {
        first.origins = Origins::of(&command(), &typed, None);
        return Ok(first);
    };
    parse_with_file(arguments, &typed, &path.display().to_string(), &file::read(path)?)
}

/// The flags that the text of a file gives, as [`parse`] takes it: for whoever has the text and no file.
pub fn parse_text(name: &str, text: &str) -> Result<ServeArgs, SettingsError> {
    let none: [&str; 0] = [];
    parse_with_file(&[], &command().try_get_matches_from(none)?, name, text)
}

/// Nothing but flags and their values.
fn command() -> Command {
    ServeArgs::augment_args(Command::new("serve").no_binary_name(true)).args_override_self(true)
}

/// What was typed, before it what stands in the file `name`.
fn parse_with_file(
    arguments: &[OsString],
    typed: &ArgMatches,
    name: &str,
    text: &str,
) -> Result<ServeArgs, SettingsError> {
    let known: BTreeSet<String> =
        command().get_arguments().filter_map(|argument| argument.get_long().map(String::from)).collect();
    let flags = file::flags(name, text, &known, |name| std::env::var_os(name).is_some())?;
    let file = Some((name, flags.as_slice()));
    let all = flags.iter().map(OsString::from).chain(arguments.iter().cloned());
    let both = command().try_get_matches_from(all);
    let both = both.map_err(|error| tell_place(error, &command(), arguments, file))?;
    let mut args = ServeArgs::from_arg_matches(&both)?;
    args.origins = Origins::of(&command(), typed, file);
    Ok(args)
}
