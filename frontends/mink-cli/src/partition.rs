//! `mink partition`: the partitions of a table that is partitioned.
//!
//! Lives on: the command's task.
//! Talks to: a node, by SQL over Flight.
use crate::address::{AdminAddress, table_path};
use crate::failure::Failure;
use crate::output::{OutputArgs, printer};
use crate::sql;
use clap::{Args, Subcommand};
use mink_ddl::{Change, Statement};
use mink_types::TablePath;

#[derive(Debug, Args)]
pub(crate) struct PartitionArgs {
    #[command(subcommand)]
    verb: Verb,
}

const CREATE_EXAMPLES: &str = "\
Examples:
  mink partition create sales.orders dt=2026-01-31
  mink partition create sales.orders dt=2026-01-31 'region=north sea' --if-not-exists

Each column that the table is partitioned by gets a value, as text of its type.";

#[derive(Debug, Subcommand)]
enum Verb {
    /// List the partitions of a table
    #[command(after_help = "Example:\n  mink partition list sales.orders --output json")]
    List {
        /// DATABASE.TABLE
        #[arg(value_parser = table_path)]
        table: TablePath,
        #[command(flatten)]
        node: AdminAddress,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Create a partition
    #[command(after_help = CREATE_EXAMPLES)]
    Create {
        #[command(flatten)]
        named: NamedArgs,
        /// It may be there already
        #[arg(long)]
        if_not_exists: bool,
        #[command(flatten)]
        node: AdminAddress,
    },
    /// Drop a partition and its rows
    #[command(after_help = "Example:\n  mink partition drop sales.orders dt=2026-01-31")]
    Drop {
        #[command(flatten)]
        named: NamedArgs,
        /// It may be gone already
        #[arg(long)]
        if_exists: bool,
        #[command(flatten)]
        node: AdminAddress,
    },
}

/// A partition, by its values.
#[derive(Clone, Debug, Args)]
struct NamedArgs {
    /// DATABASE.TABLE
    #[arg(value_parser = table_path)]
    table: TablePath,
    /// A partition column and its value
    #[arg(value_name = "COLUMN=VALUE", value_parser = value, required = true)]
    values: Vec<(String, String)>,
}

/// What stands before the first `=` is the column.
fn value(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=').filter(|(column, _)| !column.is_empty());
    parts
        .map(|(column, value)| (column.to_owned(), value.to_owned()))
        .ok_or_else(|| "write COLUMN=VALUE, as dt=2026-01-31".into())
}

pub(crate) async fn run(args: PartitionArgs) -> Result<(), Failure> {
    match args.verb {
        Verb::List { table, node, output } => {
            let client = node.flight().await?;
            let described = client.describe(&table.to_string()).await;
            let described = described.map_err(|error| Failure::flight(&error))?;
            let statement = Statement::ShowPartitions { path: table };
            let rows = sql::rows(&client, &statement.to_string()).await?;
            let columns = columns(described.partitioned_by);
            let mut printer = printer(output.output, &columns)?;
            for row in &rows {
                printer.row(row.values(&columns))?;
            }
            printer.finish()
        }
        Verb::Create { named: NamedArgs { table, values }, if_not_exists, node } => {
            alter(&node, table, Change::AddPartition { values, if_not_exists }).await
        }
        Verb::Drop { named: NamedArgs { table, values }, if_exists, node } => {
            alter(&node, table, Change::DropPartition { values, if_exists }).await
        }
    }
}

/// The number and the values; a column that is called as the number takes its place.
fn columns(partitioned_by: Vec<String>) -> Vec<String> {
    let number = (!partitioned_by.iter().any(|column| column == "partition")).then(|| "partition".to_owned());
    number.into_iter().chain(partitioned_by).collect()
}

async fn alter(node: &AdminAddress, path: TablePath, change: Change) -> Result<(), Failure> {
    let statement = Statement::AlterTable { path, change: vec![change] };
    sql::tell(&sql::rows(&node.flight().await?, &statement.to_string()).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_all_behind_the_first_sign() {
        assert_eq!(value("dt=2026-01-31"), Ok(("dt".into(), "2026-01-31".into())));
        assert_eq!(value("a=b=c"), Ok(("a".into(), "b=c".into())));
        assert_eq!(value("a="), Ok(("a".into(), String::new())));
        assert!(value("=x").is_err() && value("dt").is_err_and(|words| words.contains("COLUMN=VALUE")));
    }

    #[test]
    fn values_reach_the_node_whatever_they_hold() {
        let values = vec![value("region=north's \"sea\"").expect("a value")];
        let change = vec![Change::AddPartition { values, if_not_exists: true }];
        let statement = Statement::AlterTable { path: table_path("a.b").expect("a table"), change };
        assert_eq!(mink_ddl::parse(&statement.to_string(), None).as_ref(), Ok(&statement));
    }

    #[test]
    fn a_column_called_as_the_number_takes_its_place() {
        assert_eq!(columns(vec!["dt".into()]), ["partition", "dt"]);
        assert_eq!(columns(vec!["partition".into()]), ["partition"]);
    }
}
