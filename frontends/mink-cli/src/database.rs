//! `mink db`: databases, which hold tables.
//!
//! Lives on: the command's task.
use crate::address::AdminAddress;
use crate::api::Api;
use crate::failure::Failure;
use crate::output::{OutputArgs, printer};
use clap::{Args, Subcommand};
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
        name: String,
        #[command(flatten)]
        node: AdminAddress,
    },
    /// Drop a database that has no tables
    #[command(after_help = "Example:\n  mink db drop sales")]
    Drop {
        name: String,
        #[command(flatten)]
        node: AdminAddress,
    },
}

pub(crate) async fn run(args: DatabaseArgs) -> Result<(), Failure> {
    match args.verb {
        Verb::List { node, output } => {
            let answer = Api::new(&node)?.get("/databases").await?;
            let mut printer = printer(output.output, &["database"])?;
            for database in answer.as_array().into_iter().flatten() {
                printer.row(vec![database.get("database").cloned().unwrap_or(Value::Null)])?;
            }
            printer.finish()
        }
        Verb::Create { name, node } => {
            Api::new(&node)?.call(Method::POST, "/databases", Some(&json!({ "name": name }))).await?;
            eprintln!("created database {name}");
            Ok(())
        }
        Verb::Drop { name, node } => {
            check(&name)?;
            Api::new(&node)?.call(Method::DELETE, &format!("/databases/{name}"), None).await?;
            eprintln!("dropped database {name}");
            Ok(())
        }
    }
}

/// A name that stands in a path must be a name.
fn check(name: &str) -> Result<(), Failure> {
    mink_types::DatabaseName::new(name).map(drop).map_err(|error| Failure::usage(error.to_string()))
}
