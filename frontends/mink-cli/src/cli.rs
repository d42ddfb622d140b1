//! The command line: what there is to call, in words for a stranger.
//!
//! Lives on: anywhere.
use crate::{
    bench, completions, database, demo, doctor, group, metadata, partition, read, sql, table, write,
};
use clap::{Parser, Subcommand};
use mink_server::ServeArgs;

const EXAMPLES: &str = "\
Try it:
  mink demo                          see data go in, survive a kill -9, and come out again
  mink serve                         a node on 127.0.0.1, data in ./mink-data
  kcat -P -b 127.0.0.1:9092 -t hello any Kafka client will do
  mink read kafka.hello              read it back
  mink sql                           databases and tables with columns
  mink doctor                        is everything well?

Results go to stdout, logs and progress to stderr. Exit codes: 0 done, 1 failed, 2 wrong usage,
130 interrupted.";

/// Mink: streaming storage on an object store. Speaks the Kafka protocol and Arrow Flight.
#[derive(Debug, Parser)]
#[command(name = "mink", version, after_help = EXAMPLES, max_term_width = 120)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const SERVE_EXAMPLES: &str = "\
Examples:
  mink serve
  mink serve --data-dir /var/lib/mink --kafka-listen 0.0.0.0:9092 --kafka-advertise box:9092
  mink serve --storage s3://bucket/prefix      with AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_REGION, AWS_ENDPOINT_URL
  mink serve --config mink.toml

When the node serves, stderr says `mink ready kafka=HOST:PORT flight=HOST:PORT http=HOST:PORT runtime=... shards=N`.
SIGTERM and SIGINT hand over what is in flight and exit with 0.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a node
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(Box<ServeArgs>),
    /// Show the whole path: 100,000 real events in, kill -9 twice, all of them out again
    Demo(demo::DemoArgs),
    /// Statements on databases and tables: a shell, or run and print
    Sql(sql::SqlArgs),
    /// Databases: list, create, drop
    Db(database::DatabaseArgs),
    /// Tables, topics of Kafka's clients among them: list, describe, create, alter, drop
    Table(table::TableArgs),
    /// Partitions of a table: list, create, drop
    Partition(partition::PartitionArgs),
    /// Consumer groups: list, describe, reset-offsets, delete
    Group(group::GroupArgs),
    /// Write rows or records from a file or stdin
    Write(write::WriteArgs),
    /// Read rows or records by offset or time
    Read(read::ReadArgs),
    /// The command log that nodes agree on
    Metadata(metadata::MetadataArgs),
    /// Check this machine and a running node, and say what to do
    Doctor(doctor::DoctorArgs),
    /// Measure throughput, latency and requests per GiB
    Bench(Box<bench::BenchArgs>),
    /// Print completions for a shell
    Completions(completions::CompletionsArgs),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    /// Commands that do something, with their words.
    fn leaves(command: &clap::Command, path: &str, found: &mut Vec<(String, clap::Command)>) {
        let subcommands: Vec<_> = command.get_subcommands().filter(|sub| sub.get_name() != "help").collect();
        if subcommands.is_empty() {
            found.push((path.to_owned(), command.clone()));
        }
        for sub in subcommands {
            leaves(sub, &format!("{path} {}", sub.get_name()), found);
        }
    }

    /// The words of an example as a shell would pass them. A comment stands behind two spaces; what a shell does with the rest is left out.
    fn words(example: &str) -> Vec<String> {
        let (mut words, mut word, mut quote) = (vec![], None::<String>, None);
        let mut characters = example.chars().peekable();
        while let Some(found) = characters.next() {
            match (quote, found) {
                (Some(open), found) if open == found => quote = None,
                (None, '\'' | '"') => {
                    quote = Some(found);
                    word.get_or_insert_default();
                }
                (None, ' ') if characters.peek() == Some(&' ') => break,
                (None, ' ') => words.extend(word.take()),
                (None, '|' | '>' | '<') => break,
                (_, found) => word.get_or_insert_default().push(found),
            }
        }
        assert_eq!(quote, None, "{example} has an open quote");
        words.extend(word);
        words
    }

    #[test]
    fn an_example_is_read_as_a_shell_does() {
        assert_eq!(words("a -e 'b  c;d' \"e 'f'\" | g"), ["a", "-e", "b  c;d", "e 'f'"]);
        assert_eq!(words("a ''  what it does"), ["a", ""]);
    }

    #[test]
    fn every_command_has_an_example_that_parses() {
        let mut found = Vec::new();
        leaves(&Cli::command(), "mink", &mut found);
        assert!(found.len() > 18, "{}", found.len());
        for (path, command) in found {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            let examples: Vec<&str> =
                help.lines().map(str::trim).filter(|line| line.starts_with(&path)).collect();
            assert!(!examples.is_empty(), "{path} has no example");
            for example in examples {
                Cli::try_parse_from(words(example)).unwrap_or_else(|error| panic!("{example}: {error}"));
            }
        }
    }

    #[test]
    fn wrong_usage_has_its_own_exit_code() {
        let error = Cli::try_parse_from(["mink", "read"]).expect_err("no table");
        assert_eq!(error.exit_code(), 2);
        assert_eq!(Cli::try_parse_from(["mink", "--help"]).expect_err("help").exit_code(), 0);
    }
}
