//! The TOML file: its keys become flags that stand before those of the command line.
//!
//! Lives on: anywhere.
//! Invariants: a key that is no flag is an error that names it; a flag goes before the environment, the environment before the file, the
//! file before the default.
use mink_types::closest;
use std::collections::BTreeSet;
use std::path::Path;

/// A file that cannot be taken.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FileError {
    #[error("cannot read {path}: {why}")]
    Read { path: String, why: String },
    #[error("{path}: {why}")]
    Syntax { path: String, why: String },
    #[error("{path}: unknown key {key:?}; {remedy}")]
    Unknown { path: String, key: String, remedy: String },
    #[error("{path}: key {key:?} has a value that is neither text, number, bool nor a list of texts")]
    Kind { path: String, key: String },
}

/// The text of a file.
pub(crate) fn read(path: &Path) -> Result<String, FileError> {
    std::fs::read_to_string(path)
        .map_err(|error| FileError::Read { path: path.display().to_string(), why: error.to_string() })
}

/// The values of the file `name`, whose text is given, as `--key=value`, without those whose environment variable is set.
pub(crate) fn flags(
    name: &str,
    text: &str,
    known: &BTreeSet<String>,
    environment: impl Fn(&str) -> bool,
) -> Result<Vec<String>, FileError> {
    let table: toml::Table = text
        .parse()
        .map_err(|error: toml::de::Error| FileError::Syntax { path: name.into(), why: error.to_string() })?;
    let mut flags = Vec::new();
    flatten("", &table, name, known, &environment, &mut flags)?;
    Ok(flags)
}

fn flatten(
    prefix: &str,
    table: &toml::Table,
    path: &str,
    known: &BTreeSet<String>,
    environment: &impl Fn(&str) -> bool,
    flags: &mut Vec<String>,
) -> Result<(), FileError> {
    for (key, value) in table {
        let key = format!("{prefix}{}", key.replace(['.', '_'], "-"));
        if let toml::Value::Table(inner) = value {
            flatten(&format!("{key}-"), inner, path, known, environment, flags)?;
            continue;
        }
        if !known.contains(&key) || key == "config" {
            let remedy = match closest(&key, known.iter().map(String::as_str)) {
                Some(meant) if meant != key => format!("did you mean {meant:?}?"),
                _ => "keys are the long flags of `mink serve --help`".into(),
            };
            return Err(FileError::Unknown { path: path.into(), key, remedy });
        }
        let variable = format!("MINK_{}", key.replace('-', "_").to_ascii_uppercase());
        if environment(&variable) {
            continue;
        }
        let text = scalar(value).ok_or_else(|| FileError::Kind { path: path.into(), key: key.clone() })?;
        flags.push(format!("--{key}={text}"));
    }
    Ok(())
}

fn scalar(value: &toml::Value) -> Option<String> {
    match value {
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Float(number) => Some(number.to_string()),
        toml::Value::Boolean(flag) => Some(flag.to_string()),
        toml::Value::Array(list) => {
            let texts: Option<Vec<&str>> = list.iter().map(toml::Value::as_str).collect();
            texts.map(|texts| texts.join(","))
        }
        toml::Value::Datetime(_) | toml::Value::Table(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, set: &str) -> Result<Vec<String>, FileError> {
        let known = ["wal-linger", "wal-batch-bytes", "node-id", "kafka-auto-create", "http-hosts", "config"];
        flags("mink.toml", text, &known.map(String::from).into(), |name| name == set)
    }

    #[test]
    fn keys_are_flags_with_dots_or_dashes() {
        let text = "node-id = 7\nkafka-auto-create = false\nhttp-hosts = [\"a\", \"b\"]\n[wal]\nlinger = \"5ms\"\nbatch.bytes = \"1MiB\"\n";
        let mut flags = read(text, "").expect("valid");
        flags.sort();
        let expected = [
            "--http-hosts=a,b",
            "--kafka-auto-create=false",
            "--node-id=7",
            "--wal-batch-bytes=1MiB",
            "--wal-linger=5ms",
        ];
        assert_eq!(flags, expected);
    }

    #[test]
    fn the_environment_goes_before_the_file() {
        assert_eq!(
            read("node-id = 7\nwal-linger = \"5ms\"", "MINK_NODE_ID"),
            Ok(vec!["--wal-linger=5ms".into()])
        );
    }

    #[test]
    fn an_unknown_key_is_named() {
        for text in ["nodeid = 7", "config = \"x\"", "[wal]\nlinge = 1"] {
            assert!(matches!(read(text, ""), Err(FileError::Unknown { .. })), "{text}");
        }
        assert!(matches!(read("node-id = [1]", ""), Err(FileError::Kind { .. })));
        assert!(matches!(read("node-id = ", ""), Err(FileError::Syntax { .. })));
    }
}
