//! What to say beside clap's own words when a command line does not parse: which flag does what an unknown one was meant for, and where a
//! wrong value stands that nobody typed.
//!
//! Lives on: anywhere.
use clap::Command;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use mink_server::tell_variable;
use std::ffi::OsString;

/// Flags of Mink, with the words by which other software calls the like.
const MEANT: [(&str, &str, &[&str]); 9] = [
    (
        "kafka-listen",
        "--kafka-listen HOST:PORT says where Kafka clients connect (127.0.0.1:9092 by default), --flight-listen HOST:PORT where \
         those of Arrow Flight and Mink's commands do, --http-listen HOST:PORT where metrics are",
        &[
            "port",
            "p",
            "host",
            "bind",
            "address",
            "addr",
            "listen",
            "listener",
            "listeners",
            "kafka",
            "kafka-port",
        ],
    ),
    (
        "flight-listen",
        "--flight-listen HOST:PORT says where clients of Arrow Flight and Mink's commands connect (127.0.0.1:9123 by default)",
        &["flight", "flight-port", "flight-addr", "grpc", "grpc-port", "grpc-listen"],
    ),
    (
        "http-listen",
        "--http-listen HOST:PORT says where metrics and administration are (127.0.0.1:9180 by default)",
        &["http", "http-port", "http-addr", "admin-port", "metrics-port", "metrics-addr", "console-port"],
    ),
    (
        "kafka-advertise",
        "--kafka-advertise HOST:PORT is what Kafka clients are told",
        &["advertise", "advertised", "advertised-listeners", "advertise-addr", "advertised-host"],
    ),
    (
        "data-dir",
        "--data-dir DIR is where a node keeps its files (./mink-data by default)",
        &["d", "data", "dir", "directory", "data-directory", "datadir", "log-dir", "log-dirs", "path"],
    ),
    (
        "storage",
        "--storage s3://BUCKET/PREFIX, file:///DIR or memory:// is where records are kept",
        &["s3", "bucket", "store", "object-store", "storage-url", "s3-bucket", "endpoint", "s3-endpoint"],
    ),
    (
        "kafka",
        "--kafka HOST:PORT says where the Kafka listener is, in the place of the one that the node at --addr tells",
        &["b", "bootstrap-server", "bootstrap-servers", "broker", "brokers", "broker-list", "kafka-port"],
    ),
    (
        "addr",
        "--addr HOST:PORT says where the node's Flight listener is (127.0.0.1:9123 by default), --addr http://HOST:PORT its HTTP \
         listener; the node tells the others",
        &[
            "flight",
            "grpc",
            "http",
            "url",
            "address",
            "server",
            "port",
            "p",
            "host",
            "h",
            "node",
            "endpoint",
            "kafka",
            "bootstrap-server",
        ],
    ),
    (
        "execute",
        "--execute 'STATEMENTS', or -e, runs statements and ends",
        &["c", "command", "q", "query", "s", "sql", "statement"],
    ),
];

/// The error with what else there is to say. `arguments` are all words of the command line.
pub(crate) fn explain(error: clap::Error, command: &Command, arguments: &[OsString]) -> clap::Error {
    match error.kind() {
        ErrorKind::UnknownArgument => explain_unknown(error, called(command, arguments)),
        _ => tell_variable(error, command, arguments),
    }
}

fn explain_unknown(mut error: clap::Error, called: &Command) -> clap::Error {
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let unknown = unknown.trim_start_matches('-').split('=').next().unwrap_or_default();
    let has = |flag: &str| called.get_arguments().any(|argument| argument.get_long() == Some(flag));
    let meant = MEANT.iter().find(|(flag, _, words)| words.contains(&unknown) && has(flag));
    if let Some((_, tip, _)) = meant {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(*tip)]));
    }
    error
}

/// The command that the words call, as deep as they name one.
fn called<'a>(command: &'a Command, arguments: &[OsString]) -> &'a Command {
    let mut called = command;
    for word in arguments.iter().skip(1) {
        match called.find_subcommand(word) {
            Some(sub) => called = sub,
            None => break,
        }
    }
    called
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::{CommandFactory, Parser};

    fn words(line: &str) -> String {
        let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let error = Cli::try_parse_from(&arguments).expect_err("not a command line");
        explain(error, &Cli::command(), &arguments).to_string()
    }

    #[test]
    fn a_flag_of_other_software_gets_a_hint_toward_ours() {
        for (line, flag) in [
            ("mink serve --port 9092", "--kafka-listen HOST:PORT"),
            ("mink serve -p 9092", "--kafka-listen HOST:PORT"),
            ("mink serve --http-port=9180", "--http-listen HOST:PORT"),
            ("mink serve --data /tmp", "--data-dir DIR"),
            ("mink serve --advertised-listeners a:1", "--kafka-advertise HOST:PORT"),
            ("mink serve --bucket b", "--storage s3://"),
            ("mink read kafka.a --bootstrap-server a:1", "--kafka HOST:PORT"),
            ("mink write kafka.a --port 1", "--addr HOST:PORT"),
            ("mink table list --port 1", "--addr HOST:PORT"),
            ("mink table list --kafka a:1", "--addr HOST:PORT"),
            ("mink serve --grpc-port 1", "--flight-listen HOST:PORT"),
            ("mink sql -c x", "--execute 'STATEMENTS'"),
        ] {
            let words = words(line);
            assert!(words.contains(&format!("tip: {flag}")), "{line}: {words}");
        }
        assert!(!words("mink serve --nonsense").contains("HOST:PORT"));
    }

    #[test]
    fn every_flag_that_is_hinted_at_is_there() {
        let command = Cli::command();
        let has = |command: &Command, flag| command.get_arguments().any(|a| a.get_long() == Some(flag));
        for (flag, tip, _) in MEANT {
            let there = command
                .get_subcommands()
                .any(|sub| has(sub, flag) || sub.get_subcommands().any(|verb| has(verb, flag)));
            assert!(there && tip.starts_with(&format!("--{flag} ")), "{flag}");
        }
    }
}
