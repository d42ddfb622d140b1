//! `mink table`: tables, each of which is a Kafka topic.
//!
//! Lives on: the command's task.
use crate::address::{AdminAddress, table_path, topic};
use crate::api::Api;
use crate::failure::Failure;
use crate::output::{Form, OutputArgs, printer};
use clap::{Args, Subcommand};
use mink_types::{CleanupPolicy, Kept, Limits, OptionError, TableOptions, TablePath};
use reqwest::Method;
use serde_json::{Map, Value, json};
use std::io::Write;

const ALTER_HELP: &str = "\
The options of a table are altered with Kafka's own tools, which know it as a topic (kafka.events is `events`):
  kafka-configs.sh --bootstrap-server 127.0.0.1:9092 --alter --entity-type topics --entity-name events \\
    --add-config retention.ms=3600000
  kafka-topics.sh --bootstrap-server 127.0.0.1:9092 --alter --topic events --partitions 8

`mink table describe` shows of each bucket `end`, the offset that the next record gets, and `committed_end`: records
below it have been flushed to objects, those from it up to `end` are as durable, and lie in the WAL until they are flushed.";

#[derive(Debug, Args)]
#[command(after_help = ALTER_HELP)]
pub(crate) struct TableArgs {
    #[command(subcommand)]
    verb: Verb,
}

const CREATE_EXAMPLES: &str = "\
Examples:
  mink table create kafka.events --buckets 4
  mink table create kafka.clicks --partitions 4
  mink table create kafka.audit --option table.log.ttl=-1 --option max.message.bytes=2000000

A table of the database `kafka` is the topic of its bare name. Options:
  bucket.num                 buckets, Kafka's partitions (as --buckets)
  table.log.ttl              ms that records are kept, -1 for ever (Kafka: retention.ms)
  table.log.retention-bytes  bytes that a bucket keeps, -1 for no bound (Kafka: retention.bytes)
  max.message.bytes          largest batch
  cleanup.policy             delete, compact or compact,delete; with compact each record needs a key, and nothing is
                             superseded yet
  message.timestamp.type     CreateTime (the producer says) or LogAppendTime

Kept and described for Kafka's tools, without effect:
";

const CREATE_END: &str = "\nTables with columns and keys, and SQL text, are not in this version.";
/// Longest line of the help, in letters.
const HELP_WIDTH: usize = 110;

/// Options that have an effect, by all their names.
const RULING: [&str; 8] = [
    "bucket.num",
    "table.log.ttl",
    "retention.ms",
    "table.log.retention-bytes",
    "retention.bytes",
    "max.message.bytes",
    "cleanup.policy",
    "message.timestamp.type",
];

fn create_help() -> String {
    let mut help = CREATE_EXAMPLES.to_owned();
    let mut line = String::new();
    for name in Kept::ALL.iter().map(|kept| kept.name) {
        if line.len() + name.len() + 3 > HELP_WIDTH {
            help.push_str(&std::mem::take(&mut line));
            help.push('\n');
        }
        line.push_str(if line.is_empty() { "  " } else { ", " });
        line.push_str(name);
    }
    help + &line + CREATE_END
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List tables
    #[command(after_help = "Example:\n  mink table list --output csv")]
    List {
        #[command(flatten)]
        node: AdminAddress,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Describe a table: options and buckets
    #[command(after_help = "Example:\n  mink table describe kafka.events")]
    Describe {
        /// DATABASE.TABLE
        #[arg(value_parser = table_path)]
        table: TablePath,
        #[command(flatten)]
        node: AdminAddress,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Create a table
    #[command(after_help = create_help())]
    Create {
        /// DATABASE.TABLE
        #[arg(value_parser = table_path)]
        table: TablePath,
        /// Buckets, which Kafka calls partitions
        #[arg(long, visible_alias = "partitions", value_name = "N")]
        buckets: Option<u32>,
        /// An option of the table; may be repeated
        #[arg(long = "option", value_name = "NAME=VALUE", value_parser = option)]
        options: Vec<(String, String)>,
        #[command(flatten)]
        node: AdminAddress,
    },
    /// Drop a table and its records
    #[command(after_help = "Example:\n  mink table drop kafka.events")]
    Drop {
        /// DATABASE.TABLE
        #[arg(value_parser = table_path)]
        table: TablePath,
        #[command(flatten)]
        node: AdminAddress,
    },
}

fn option(text: &str) -> Result<(String, String), String> {
    let (name, value) =
        text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or("write NAME=VALUE")?;
    // Whether the value will do is for the node to say, whose limits count.
    match TableOptions::default().set(name, value, &Limits::default()) {
        Err(OptionError::Unknown { .. }) => {
            let known = RULING.into_iter().chain(Kept::ALL.iter().map(|kept| kept.name));
            Err(match mink_server::closest(name, known) {
                Some(near) => format!("there is no option {name}; did you mean {near}?"),
                None => format!("there is no option {name}; `mink table create --help` lists those that are"),
            })
        }
        _ => Ok((name.into(), value.into())),
    }
}

/// What is to be known of a table that is compacted.
fn caution(options: &[(String, String)]) -> Option<&'static str> {
    let mut read = TableOptions::default();
    for (name, value) in options {
        // The node has taken them all; one that the defaults' limits do not allow says nothing of compaction.
        drop(read.set(name, value, &Limits::default()));
    }
    match read.cleanup {
        CleanupPolicy::Delete | CleanupPolicy::None => None,
        CleanupPolicy::Compact => Some(
            "nothing is superseded yet: all records of a key are kept, and the log only grows; cleanup.policy=compact,delete bounds it",
        ),
        CleanupPolicy::CompactDelete | CleanupPolicy::DeleteCompact => {
            Some("nothing is superseded yet: all records of a key are kept until they go by age or size")
        }
    }
}

pub(crate) async fn run(args: TableArgs) -> Result<(), Failure> {
    match args.verb {
        Verb::List { node, output } => list(&Api::new(&node)?.get("/tables").await?, output.output),
        Verb::Describe { table, node, output } => {
            describe(&Api::new(&node)?.get(&route(&table)).await?, &table, output.output)
        }
        Verb::Create { table, buckets, options, node } => {
            let mut map = Map::new();
            if let Some(buckets) = buckets {
                map.insert("bucket.num".into(), buckets.to_string().into());
            }
            for (name, value) in &options {
                if map.insert(name.clone(), value.as_str().into()).is_some() {
                    return Err(Failure::usage(format!("option {name} is given twice")));
                }
            }
            let body = json!({ "table": table.to_string(), "options": map });
            Api::new(&node)?.call(Method::POST, "/tables", Some(&body)).await?;
            eprintln!("created table {table}, for Kafka clients the topic {}", topic(&table));
            if let Some(words) = caution(&options) {
                eprintln!("{words}");
            }
            Ok(())
        }
        Verb::Drop { table, node } => {
            Api::new(&node)?.call(Method::DELETE, &route(&table), None).await?;
            eprintln!("dropped table {table}");
            Ok(())
        }
    }
}

fn route(table: &TablePath) -> String {
    format!("/tables/{}/{}", table.database, table.table)
}

fn field(value: &Value, name: &str) -> Value {
    value.get(name).cloned().unwrap_or(Value::Null)
}

fn buckets(table: &Value) -> &[Value] {
    table.get("buckets").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn list(answer: &Value, form: Form) -> Result<(), Failure> {
    let mut printer = printer(form, &["table", "kind", "log_format", "buckets", "records"])?;
    for table in answer.as_array().into_iter().flatten() {
        let number = |bucket: &Value, name| bucket.get(name).and_then(Value::as_u64).unwrap_or(0);
        let records = |bucket: &Value| number(bucket, "end").saturating_sub(number(bucket, "log_start"));
        printer.row(vec![
            field(table, "table"),
            field(table, "kind"),
            field(table, "log_format"),
            buckets(table).len().into(),
            buckets(table).iter().map(records).sum::<u64>().into(),
        ])?;
    }
    printer.finish()
}

fn describe(answer: &Value, table: &TablePath, form: Form) -> Result<(), Failure> {
    if form == Form::Json {
        return Ok(writeln!(std::io::stdout(), "{answer}")?);
    }
    if form == Form::Table {
        let mut out = std::io::stdout().lock();
        writeln!(out, "table {table}, topic {}, id {}", topic(table), field(answer, "id"))?;
        for option in answer.get("options").and_then(Value::as_array).into_iter().flatten() {
            let part = |at| option.get(at).and_then(Value::as_str).unwrap_or_default();
            writeln!(out, "  {} = {}", part(0), part(1))?;
        }
    }
    let columns = &["bucket", "node", "epoch", "log_start", "end", "committed_end", "objects"];
    let mut printer = printer(form, columns)?;
    for bucket in buckets(answer) {
        printer.row(columns.iter().map(|column| field(bucket, column)).collect())?;
    }
    printer.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_name_and_value() {
        assert_eq!(option("table.log.ttl=-1"), Ok(("table.log.ttl".into(), "-1".into())));
        assert_eq!(option("retention.ms=b=c"), Ok(("retention.ms".into(), "b=c".into())));
        assert!(option("a").is_err() && option("=b").is_err());
    }

    #[test]
    fn an_option_that_is_none_is_refused_with_the_nearest() {
        for (typed, near) in [
            ("cleanup.polcy=compact", "cleanup.policy"),
            ("retention.msec=1", "retention.ms"),
            ("segment.byte=1", "segment.bytes"),
            ("table.log.tll=1", "table.log.ttl"),
        ] {
            let words = option(typed).unwrap_err();
            assert!(words.ends_with(&format!("did you mean {near}?")), "{words}");
        }
        let words = option("nonsense=1").unwrap_err();
        assert!(words.contains("mink table create --help") && !words.contains("did you mean"), "{words}");
    }

    #[test]
    fn the_help_lists_what_is_taken_and_nothing_else() {
        let help = create_help();
        for name in RULING.into_iter().chain(Kept::ALL.iter().map(|kept| kept.name)) {
            assert!(help.contains(name), "{name} is not in the help");
            assert!(option(&format!("{name}=x")).is_ok(), "{name} is no option");
        }
        // As wide as the command line lets its help be.
        assert!(help.lines().all(|line| line.len() <= 120), "{help}");
    }

    #[test]
    fn a_compacted_table_comes_with_a_caution() {
        let told = |options: &[(&str, &str)]| {
            let options: Vec<_> =
                options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            caution(&options)
        };
        assert_eq!(told(&[]), None);
        assert_eq!(told(&[("cleanup.policy", "delete")]), None);
        let alone = told(&[("retention.ms", "5"), ("cleanup.policy", "compact")]).expect("told");
        assert!(alone.contains("nothing is superseded yet") && alone.contains("only grows"), "{alone}");
        let both = told(&[("cleanup.policy", "compact, delete")]).expect("told");
        assert!(both.contains("nothing is superseded yet") && !both.contains("only grows"), "{both}");
    }
}
