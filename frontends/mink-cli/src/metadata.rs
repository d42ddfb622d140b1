//! `mink metadata`: the command log that nodes agree on.
//!
//! Lives on: the command's task.
use crate::address::AdminAddress;
use crate::api::Api;
use crate::failure::Failure;
use crate::output::{Form, OutputArgs, printer};
use clap::{Args, Subcommand};
use serde_json::Value;
use std::io::Write;

#[derive(Debug, Args)]
pub(crate) struct MetadataArgs {
    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "\
Example:
  mink metadata status

`index` and `hash` name the last row of the log that the node has applied; two nodes at one index have the same `digest`.";

#[derive(Debug, Subcommand)]
enum Verb {
    /// How far the log has come, and what it describes
    #[command(after_help = EXAMPLES)]
    Status {
        #[command(flatten)]
        node: AdminAddress,
        #[command(flatten)]
        output: OutputArgs,
    },
}

pub(crate) async fn run(args: MetadataArgs) -> Result<(), Failure> {
    let Verb::Status { node, output } = args.verb;
    let answer = Api::new(&node)?.get("/metadata").await?;
    if output.output == Form::Json {
        return Ok(writeln!(std::io::stdout(), "{answer}")?);
    }
    let mut printer = printer(output.output, &["name", "value"])?;
    for (name, value) in answer.as_object().into_iter().flatten() {
        printer.row(vec![Value::String(name.clone()), value.clone()])?;
    }
    printer.finish()
}
