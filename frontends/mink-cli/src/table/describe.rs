//! `mink table describe`: what a table is (its columns, keys, options), told over Flight, and where its buckets stand, told over HTTP.
//!
//! Lives on: the command's task.
use super::{buckets, field, over_http, route};
use crate::address::{AdminAddress, Place, table_path, topic};
use crate::failure::Failure;
use crate::output::{Form, OutputArgs, printer, text};
use crate::sql;
use clap::Args;
use mink_client::flight::{FlightClient, TableDescription};
use mink_ddl::Statement;
use mink_types::TablePath;
use serde_json::{Map, Value, json};
use std::io::Write;

const EXAMPLES: &str = "\
Examples:
  mink table describe sales.orders
  mink table describe kafka.events --output json

Of each bucket, `end` is the offset that the next record gets, and `committed_end` that below which records have been flushed
to objects: those from it up to `end` are as durable, and lie in the WAL until they are flushed. Options are altered with
`mink table alter`; `mink sql -e 'SHOW CREATE TABLE sales.orders'` prints the statement that makes such a table.";

/// Columns of the list of buckets. The first only where there are partitions.
const BUCKET_COLUMNS: [&str; 8] =
    ["partition", "bucket", "node", "epoch", "log_start", "end", "committed_end", "objects"];
/// Columns of the list of columns.
const COLUMN_COLUMNS: [&str; 5] = ["column", "type", "nullable", "default", "comment"];

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct DescribeArgs {
    /// DATABASE.TABLE
    #[arg(value_parser = table_path)]
    table: TablePath,
    #[command(flatten)]
    node: AdminAddress,
    #[command(flatten)]
    output: OutputArgs,
}

pub(super) async fn run(args: DescribeArgs) -> Result<(), Failure> {
    let DescribeArgs { table, node, output } = args;
    let has_flight = match node.place()? {
        Place::Flight(_) => true,
        // The node may have no Flight listener, and then tables have no columns to show.
        Place::Http(_) => !node.describe().await?.flight.is_empty(),
    };
    let mut found = Map::new();
    if has_flight {
        found = what_it_is(&node.flight().await?, &table).await?;
    }
    let placed = over_http(&node, &route(&table), "buckets").await?;
    if let Some(Value::Object(placed)) = placed {
        // What is told twice is the same; over HTTP come the buckets, and names that programs know.
        found.extend(placed);
    }
    show(&Value::Object(found), &table, output.output)
}

/// What Flight tells.
async fn what_it_is(client: &FlightClient, table: &TablePath) -> Result<Map<String, Value>, Failure> {
    let described = client.describe(&table.to_string()).await.map_err(|error| Failure::flight(&error))?;
    let statement = Statement::Describe { path: table.clone() }.to_string();
    let columns: Vec<Value> = sql::rows(client, &statement).await?.iter().map(sql::Row::to_value).collect();
    let mut found = facts(described);
    found.insert("table".into(), table.to_string().into());
    found.insert("columns".into(), columns.into());
    Ok(found)
}

fn facts(described: TableDescription) -> Map<String, Value> {
    let options: Vec<Value> =
        described.options.iter().map(|option| json!([option.name, option.value])).collect();
    let mut found = Map::new();
    found.insert("id".into(), described.table_id.into());
    found.insert("schema".into(), described.schema.into());
    found.insert("bucket_count".into(), described.buckets.into());
    found.insert("bucket_key".into(), described.bucket_key.into());
    found.insert("partitioned_by".into(), described.partitioned_by.into());
    found.insert("options".into(), options.into());
    if !described.create_statement.is_empty() {
        found.insert("create_statement".into(), described.create_statement.into());
    }
    found
}

fn show(found: &Value, table: &TablePath, form: Form) -> Result<(), Failure> {
    if form == Form::Json {
        return Ok(writeln!(std::io::stdout(), "{found}")?);
    }
    if form == Form::Table {
        let mut out = std::io::stdout().lock();
        for line in heading(found, table) {
            writeln!(out, "{line}")?;
        }
        drop(out);
        if has_columns(found) {
            rows(form, &COLUMN_COLUMNS, list(found, "columns"))?;
        }
        if found.get("buckets").is_none() {
            return Ok(());
        }
    }
    let is_partitioned = !list(found, "partitioned_by").is_empty();
    let columns = BUCKET_COLUMNS.get(usize::from(!is_partitioned)..).unwrap_or_default();
    rows(form, columns, buckets(found))
}

fn rows(form: Form, columns: &[&str], rows: &[Value]) -> Result<(), Failure> {
    let mut printer = printer(form, columns)?;
    for row in rows {
        printer.row(columns.iter().map(|column| field(row, column)).collect())?;
    }
    printer.finish()
}

/// Whether it is one with columns of its own.
fn has_columns(found: &Value) -> bool {
    found.get("schema").and_then(Value::as_u64).is_some_and(|schema| schema > 0)
}

fn list<'a>(found: &'a Value, name: &str) -> &'a [Value] {
    found.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Lines for people.
fn heading(found: &Value, table: &TablePath) -> Vec<String> {
    let id = text(&field(found, "id"));
    let mut lines = vec![if has_columns(found) {
        format!("table {table}, schema {}, id {id}", text(&field(found, "schema")))
    } else {
        format!("table {table}, topic {}, id {id}", topic(table))
    }];
    for (name, words) in [("partitioned_by", "partitioned by"), ("bucket_key", "bucket key")] {
        let columns: Vec<String> = list(found, name).iter().map(text).collect();
        if !columns.is_empty() {
            lines.push(format!("  {words} {}", columns.join(", ")));
        }
    }
    for option in list(found, "options") {
        let part = |at| option.get(at).and_then(Value::as_str).unwrap_or_default();
        lines.push(format!("  {} = {}", part(0), part(1)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use mink_client::flight::TableOption;

    fn described() -> Value {
        Value::Object(facts(TableDescription {
            table_id: 7,
            schema: 2,
            buckets: 4,
            bucket_key: vec!["a".into(), "b".into()],
            partitioned_by: vec!["dt".into()],
            options: vec![TableOption { name: "bucket.num".into(), value: "4".into() }],
            ..TableDescription::default()
        }))
    }

    #[test]
    fn a_table_with_columns_is_told_with_its_keys_and_options() {
        let table = table_path("sales.orders").unwrap();
        let expected = [
            "table sales.orders, schema 2, id 7",
            "  partitioned by dt",
            "  bucket key a, b",
            "  bucket.num = 4",
        ];
        assert_eq!(heading(&described(), &table), expected);
    }

    #[test]
    fn a_table_of_kafkas_clients_is_told_as_a_topic() {
        let found = json!({ "id": 5, "schema": 0, "options": [] });
        let lines = heading(&found, &table_path("kafka.events").unwrap());
        assert_eq!(lines, ["table kafka.events, topic events, id 5"]);
        // As a node without Flight tells it.
        assert!(!has_columns(&json!({ "id": 5 })));
    }
}
