//! `mink table`: tables, each of which is a Kafka topic.
//!
//! Lives on: the command's task.
use crate::address::{AdminAddress, table_path, topic};
use crate::api::Api;
use crate::failure::Failure;
use crate::output::{Form, OutputArgs, printer};
use clap::{Args, Subcommand};
use mink_types::TablePath;
use reqwest::Method;
use serde_json::{Map, Value, json};
use std::io::Write;

#[derive(Debug, Args)]
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
Tables with columns and keys, and SQL text, are not in this version.";

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
    #[command(after_help = CREATE_EXAMPLES)]
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
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.into(), value.into())),
        _ => Err("write NAME=VALUE".into()),
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
            for (name, value) in options {
                if map.insert(name.clone(), value.into()).is_some() {
                    return Err(Failure::usage(format!("option {name} is given twice")));
                }
            }
            let body = json!({ "table": table.to_string(), "options": map });
            Api::new(&node)?.call(Method::POST, "/tables", Some(&body)).await?;
            eprintln!("created table {table}, for Kafka clients the topic {}", topic(&table));
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
        assert_eq!(option("a=b=c"), Ok(("a".into(), "b=c".into())));
        assert!(option("a").is_err() && option("=b").is_err());
    }
}
