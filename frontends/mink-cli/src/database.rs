//! `mink db`: databases, which hold tables.
//!
//! Lives on: the command's task.
//! Talks to: a node, by SQL over Flight; by `/api/v1` if the address says so.
use crate::address::{AdminAddress, Place};
use crate::failure::Failure;
use crate::output::{OutputArgs, printer};
use crate::sql;
use clap::{Args, Subcommand};
use mink_ddl::Statement;
use mink_types::DatabaseName;
use reqwest::Method;
use serde_json::{Value, json};

#[derive(Debug, Args)]
pub(crate) struct DatabaseArgs {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// List databases
    #[command(after_help = "Example:\n  mink db list --output json")]
    List {
        #[command(flatten)]
        node: AdminAddress,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Create a database
    #[command(after_help = "Example:\n  mink db create sales")]
    Create {
        #[arg(value_parser = name)]
        name: DatabaseName,
        #[command(flatten)]
        node: AdminAddress,
    },
    /// Drop a database that has no tables
    #[command(after_help = "Example:\n  mink db drop sales")]
    Drop {
        #[arg(value_parser = name)]
        name: DatabaseName,
        #[command(flatten)]
        node: AdminAddress,
    },
}

fn name(text: &str) -> Result<DatabaseName, String> {
    DatabaseName::new(text).map_err(|error| error.to_string())
}

pub(crate) async fn run(args: DatabaseArgs) -> Result<(), Failure> {
    match args.verb {
        Verb::List { node, output } => {
            let databases: Vec<Value> = if let Place::Http(_) = node.place()? {
                let answer = node.http().await?.get("/databases").await?;
                let named = answer.as_array().into_iter().flatten().filter_map(|row| row.get("database"));
                named.cloned().collect()
            } else {
                let rows = sql::rows(&node.flight().await?, &Statement::ShowDatabases.to_string()).await?;
                rows.iter().map(|row| row.value("database")).collect()
            };
            let mut printer = printer(output.output, &["database"])?;
            for database in databases {
                printer.row(vec![database])?;
            }
            printer.finish()
        }
        Verb::Create { name, node } => {
            if let Place::Http(_) = node.place()? {
                let body = json!({ "name": name.as_str() });
                node.http().await?.call(Method::POST, "/databases", Some(&body)).await?;
            } else {
                let name = name.clone();
                let statement = Statement::CreateDatabase { name, if_not_exists: false };
                sql::rows(&node.flight().await?, &statement.to_string()).await?;
            }
            eprintln!("created database {name}");
            Ok(())
        }
        Verb::Drop { name, node } => {
            if let Place::Http(_) = node.place()? {
                node.http().await?.call(Method::DELETE, &format!("/databases/{name}"), None).await?;
            } else {
                let name = name.clone();
                let statement = Statement::DropDatabase { name, if_exists: false };
                sql::rows(&node.flight().await?, &statement.to_string()).await?;
            }
            eprintln!("dropped database {name}");
            Ok(())
        }
    }
}
