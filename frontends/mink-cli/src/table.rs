//! `mink table`: tables with columns, and those that are topics of Kafka's clients.
//!
//! Lives on: the command's task.
//! Talks to: a node, by SQL over Flight where SQL says it; records and places of buckets are known to `/api/v1`.
mod alter;
mod create;
mod describe;

use crate::address::{AdminAddress, Place, table_path};
use crate::database;
use crate::failure::Failure;
use crate::output::{Form, OutputArgs, printer};
use crate::sql;
use clap::{Args, Subcommand};
use mink_ddl::Statement;
use mink_types::TablePath;
use reqwest::Method;
use serde_json::Value;

#[derive(Debug, Args)]
pub(crate) struct TableArgs {
    #[command(subcommand)]
    verb: Verb,
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
    /// Describe a table: columns, options and buckets
    Describe(describe::DescribeArgs),
    /// Create a table, with columns by SQL or a topic by its name
    Create(create::CreateArgs),
    /// Alter a table: its columns, options, partitions
    Alter(alter::AlterArgs),
    /// Drop a table and its records
    #[command(
        after_help = "Examples:\n  mink table drop sales.orders\n  mink table drop kafka.events --if-exists"
    )]
    Drop {
        /// DATABASE.TABLE
        #[arg(value_parser = table_path)]
        table: TablePath,
        /// It may be gone already
        #[arg(long)]
        if_exists: bool,
        #[command(flatten)]
        node: AdminAddress,
    },
}

/// What the command line names: a table, or a statement on one.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Meant {
    Table(TablePath),
    Sql(String),
}

/// A name has no blanks and a statement has.
fn meant(text: &str) -> Result<Meant, String> {
    if text.trim().contains(char::is_whitespace) {
        return Ok(Meant::Sql(text.to_owned()));
    }
    table_path(text).map(Meant::Table)
}

pub(crate) async fn run(args: TableArgs) -> Result<(), Failure> {
    match args.verb {
        Verb::List { node, output } => list(&node, output.output).await,
        Verb::Describe(args) => describe::run(args).await,
        Verb::Create(args) => create::run(args).await,
        Verb::Alter(args) => alter::run(args).await,
        Verb::Drop { table, if_exists, node } => drop_table(table, if_exists, &node).await,
    }
}

async fn drop_table(path: TablePath, if_exists: bool, node: &AdminAddress) -> Result<(), Failure> {
    let Place::Http(_) = node.place()? else {
        let statement = Statement::DropTable { path, if_exists, purge: false };
        return sql::tell(&sql::rows(&node.flight().await?, &statement.to_string()).await?);
    };
    let dropped = node.http().await?.call(Method::DELETE, &route(&path), None).await;
    if dropped.is_err() && if_exists && !is_listed(node, &path).await? {
        eprintln!("unchanged table {path}");
        return Ok(());
    }
    dropped.map_err(database::advised)?;
    eprintln!("dropped table {path}");
    Ok(())
}

/// Whether the node has a table, by `/api/v1`: its refusals are words for people alone.
async fn is_listed(node: &AdminAddress, path: &TablePath) -> Result<bool, Failure> {
    let tables = node.http().await?.get("/tables").await?;
    let mut named = tables.as_array().into_iter().flatten().map(|table| field(table, "table"));
    Ok(named.any(|name| name == path.to_string().as_str()))
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

/// What only the HTTP listener tells; none, with the reason on stderr, if the node was found by another one and this one cannot be had.
async fn over_http(node: &AdminAddress, path: &str, what: &str) -> Result<Option<Value>, Failure> {
    let asked = async { node.http().await?.get(path).await };
    match (asked.await, node.place()?) {
        (Ok(answer), _) => Ok(Some(answer)),
        (Err(failure), Place::Http(_)) => Err(failure),
        (Err(failure), Place::Flight(_)) => {
            eprintln!("mink: {what} are not shown: {}", failure.words());
            Ok(None)
        }
    }
}

async fn list(node: &AdminAddress, form: Form) -> Result<(), Failure> {
    // The tables first: a node that is not there is no reason to go without its counts.
    let tables = match node.place()? {
        Place::Flight(_) => Some(sql::rows(&node.flight().await?, "SHOW TABLES").await?),
        Place::Http(_) => None,
    };
    let counted = over_http(node, "/tables", "records").await?;
    let mut printer = printer(form, &["table", "kind", "log_format", "buckets", "records"])?;
    if let Some(counted) = counted {
        for table in counted.as_array().into_iter().flatten() {
            printer.row(counted_row(table))?;
        }
        return printer.finish();
    }
    for table in tables.into_iter().flatten() {
        let part = |name| crate::output::text(&table.value(name));
        let name = format!("{}.{}", part("database"), part("table"));
        let (format, buckets) = (table.value("format"), table.value("buckets"));
        printer.row(vec![name.into(), "log".into(), format, buckets, Value::Null])?;
    }
    printer.finish()
}

fn counted_row(table: &Value) -> Vec<Value> {
    let number = |bucket: &Value, name| bucket.get(name).and_then(Value::as_u64).unwrap_or(0);
    let records = |bucket: &Value| number(bucket, "end").saturating_sub(number(bucket, "log_start"));
    vec![
        field(table, "table"),
        field(table, "kind"),
        field(table, "log_format"),
        buckets(table).len().into(),
        buckets(table).iter().map(records).sum::<u64>().into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_name_is_a_table_and_what_has_blanks_is_sql() {
        assert_eq!(meant("kafka.a"), Ok(Meant::Table(table_path("kafka.a").unwrap())));
        assert_eq!(meant("CREATE TABLE a.b (c INT)"), Ok(Meant::Sql("CREATE TABLE a.b (c INT)".into())));
        assert_eq!(meant(" kafka.a\n").is_err(), table_path(" kafka.a\n").is_err());
        assert!(meant("orders").is_err_and(|words| words.contains("DATABASE.TABLE")));
    }

    #[test]
    fn records_of_a_table_are_those_of_its_buckets() {
        let bucket = |start: u64, end: u64| json!({ "log_start": start, "end": end });
        let table = json!({ "table": "a.b", "kind": "log", "log_format": "arrow", "buckets": [bucket(3, 5), bucket(0, 7)] });
        assert_eq!(counted_row(&table), [json!("a.b"), json!("log"), json!("arrow"), json!(2), json!(9)]);
    }
}
