//! `mink table create`: a table with columns by SQL text, or a topic by its name and options.
//!
//! Lives on: the command's task.
use super::{Meant, is_listed, meant};
use crate::address::{AdminAddress, topic};
use crate::database;
use crate::failure::Failure;
use crate::sql::{self, Source};
use clap::Args;
use mink_types::{CleanupPolicy, Kept, Limits, OptionError, TableOptions, TablePath};
use reqwest::Method;
use serde_json::{Map, json};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  mink table create 'CREATE TABLE sales.orders (id BIGINT NOT NULL, customer STRING, amount DECIMAL(12, 2))'
  mink table create --file orders.sql
  mink table create kafka.events --buckets 4
  mink table create kafka.clicks --partitions 4 --if-not-exists
  mink table create kafka.audit --option table.log.ttl=-1 --option max.message.bytes=2000000

SQL makes a table with columns, in a database that is there (`mink db create sales`); docs/sql.md has types and options.
A name alone makes a table for Kafka's clients, whose columns are fixed. One of the database `kafka` is the topic of its
bare name. Options:
  bucket.num                 buckets, Kafka's partitions (as --buckets)
  table.log.ttl              ms that records are kept, -1 for ever (Kafka: retention.ms)
  table.log.retention-bytes  bytes that a bucket keeps, -1 for no bound (Kafka: retention.bytes)
  max.message.bytes          largest batch
  cleanup.policy             delete, compact or compact,delete; with compact each record needs a key, and nothing is
                             superseded yet
  message.timestamp.type     CreateTime (the producer says) or LogAppendTime

Kept and described for Kafka's tools, without effect:
";

/// Longest line of the help, in letters.
const HELP_WIDTH: usize = 110;

#[derive(Debug, Args)]
#[command(after_help = help())]
pub(super) struct CreateArgs {
    /// DATABASE.TABLE, or a whole statement: CREATE TABLE ...
    #[arg(value_name = "TABLE|SQL", value_parser = meant, required_unless_present = "file")]
    what: Option<Meant>,
    /// Run the CREATE TABLE statements of a file; - is stdin
    #[arg(long, value_name = "FILE", conflicts_with_all = ["what", "buckets", "options", "if_not_exists"])]
    file: Option<PathBuf>,
    /// Buckets, which Kafka calls partitions
    #[arg(long, visible_alias = "partitions", value_name = "N")]
    buckets: Option<u32>,
    /// An option of the table; may be repeated
    #[arg(long = "option", value_name = "NAME=VALUE", value_parser = option)]
    options: Vec<(String, String)>,
    /// It may be there already, and stays as it is
    #[arg(long)]
    if_not_exists: bool,
    #[command(flatten)]
    node: AdminAddress,
}

fn help() -> String {
    let mut help = EXAMPLES.to_owned();
    let mut line = String::new();
    for name in Kept::ALL.iter().map(|kept| kept.name) {
        if line.len() + name.len() + 3 > HELP_WIDTH {
            help.push_str(&std::mem::take(&mut line));
            help.push('\n');
        }
        line.push_str(if line.is_empty() { "  " } else { ", " });
        line.push_str(name);
    }
    help + &line
}

fn option(text: &str) -> Result<(String, String), String> {
    let (name, value) =
        text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or("write NAME=VALUE")?;
    if name == "bucket.key" {
        return Err(
            "bucket.key is for tables with columns: CREATE TABLE ... WITH ('bucket.key' = 'id')".into()
        );
    }
    // Whether the value will do is for the node to say, whose limits count.
    match TableOptions::default().set(name, value, &Limits::default()) {
        Err(unknown @ OptionError::Unknown { .. }) => Err(unknown.to_string()),
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

pub(super) async fn run(args: CreateArgs) -> Result<(), Failure> {
    match (&args.what, &args.file) {
        (Some(Meant::Table(table)), _) => topic_table(&args, table).await,
        (Some(Meant::Sql(_)), _) if args.buckets.is_some() || !args.options.is_empty() => Err(
            Failure::usage("a statement has its options in it: CREATE TABLE ... WITH ('bucket.num' = '4')"),
        ),
        (Some(Meant::Sql(_)), _) if args.if_not_exists => {
            Err(Failure::usage("a statement says it itself: CREATE TABLE IF NOT EXISTS ..."))
        }
        (Some(Meant::Sql(text)), _) => by_sql(&args.node, Source::Typed, text).await,
        (None, Some(file)) => {
            let (name, text) = (file.display().to_string(), sql::read_script(file)?);
            by_sql(&args.node, Source::Named(&name), &text).await
        }
        (None, None) => Err(Failure::usage("name a table, or give its SQL")),
    }
}

async fn by_sql(node: &AdminAddress, source: Source<'_>, text: &str) -> Result<(), Failure> {
    sql::starts_with(source, text, &["CREATE", "TABLE"])?;
    sql::run_script(&node.flight().await?, source, text, sql::tell).await
}

/// What `/api/v1` says, with the command or the flag that helps.
fn advised(failure: Failure, table: &TablePath) -> Failure {
    let database = &table.database;
    if failure.words() == format!("database {database} does not exist") {
        return Failure::failed(format!("{}; `mink db create {database}` makes it", failure.words()));
    }
    database::advised(failure)
}

/// A table whose records are those of Kafka's clients. SQL makes none: it has no columns to say.
async fn topic_table(args: &CreateArgs, table: &TablePath) -> Result<(), Failure> {
    let mut map = Map::new();
    if let Some(buckets) = args.buckets {
        map.insert("bucket.num".into(), buckets.to_string().into());
    }
    for (name, value) in &args.options {
        if map.insert(name.clone(), value.as_str().into()).is_some() {
            return Err(Failure::usage(format!("option {name} is given twice")));
        }
    }
    let body = json!({ "table": table.to_string(), "options": map });
    let made = args.node.http().await?.call(Method::POST, "/tables", Some(&body)).await;
    if made.is_err() && args.if_not_exists && is_listed(&args.node, table).await? {
        eprintln!("unchanged table {table}");
        return Ok(());
    }
    made.map_err(|failure| advised(failure, table))?;
    eprintln!("created table {table}, for Kafka clients the topic {}", topic(table));
    if let Some(words) = caution(&args.options) {
        eprintln!("{words}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

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

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: CreateArgs,
    }

    #[test]
    fn a_table_comes_from_its_name_a_statement_or_a_file() {
        let parse = |words: &[&str]| Line::try_parse_from(["create"].iter().chain(words));
        assert!(parse(&["kafka.a", "--partitions", "4"]).is_ok() && parse(&["--file", "a.sql"]).is_ok());
        assert!(parse(&["kafka.a", "--if-not-exists"]).expect("a table").args.if_not_exists);
        assert!(parse(&["CREATE TABLE a.b (c INT)"]).is_ok());
        for wrong in [&[][..], &["a.b", "--file", "a.sql"], &["--file", "a.sql", "--buckets", "1"], &["b"]] {
            parse(wrong).expect_err("not a table");
        }
    }

    #[tokio::test]
    async fn what_is_no_create_table_and_options_beside_one_are_refused_before_a_node_is_asked() {
        for (words, said) in [
            (&["DROP TABLE a.b"][..], "CREATE TABLE is accepted here"),
            (&["CREATE TABLE a.b (c INT)", "--buckets", "4"], "bucket.num"),
            (&["CREATE TABLE a.b (c INT)", "--if-not-exists"], "CREATE TABLE IF NOT EXISTS"),
        ] {
            let line = ["create", "--addr", "127.0.0.1:1"].iter().chain(words);
            let args = Line::try_parse_from(line).expect("a command line").args;
            let refused = run(args).await;
            assert!(matches!(&refused, Err(Failure::Usage(words)) if words.contains(said)), "{refused:?}");
        }
    }

    #[test]
    fn a_database_that_is_not_there_is_told_with_the_command_that_makes_it() {
        let told = |words: &str| {
            let table = meant("sales.a").expect("a table");
            let Meant::Table(table) = table else { panic!("no table") };
            advised(Failure::failed(words), &table).words().to_owned()
        };
        assert!(told("database sales does not exist").ends_with("; `mink db create sales` makes it"));
        assert!(told("table sales.a exists already").ends_with("; --if-not-exists takes it as it is"));
    }

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
        assert!(option("bucket.key=id").is_err_and(|words| words.contains("tables with columns")));
        let words = option("nonsense=1").unwrap_err();
        assert!(words.contains("mink table create --help") && !words.contains("did you mean"), "{words}");
    }

    #[test]
    fn the_help_lists_what_is_taken_and_nothing_else() {
        let help = help();
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
